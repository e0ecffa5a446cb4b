"""The process that `warm_start` forks templates from: it imports, and waits to be asked."""

from __future__ import annotations

import gc
import json
import os
import signal
import socket
import sys
import time
from typing import Any

import accelbench.engines.scripted
import accelbench.run.worker.worker  # noqa: F401 - what is imported here is not imported again
from accelbench.core import child_launcher
from accelbench.run.process import template

LONGEST = 10.0  # seconds until a fork is given up that nobody has adopted


def become(request: dict[str, Any], out: int, channel: socket.socket) -> None:
    """Turn a fork into the template that was asked for. Never returns."""
    deadline = time.monotonic() + LONGEST
    while os.getppid() != request["parent"]:  # whoever forked this is leaving
        if time.monotonic() > deadline:
            os._exit(1)
        time.sleep(0.0005)
    child_launcher.die_with_parent(request["parent"])
    channel.sendall(os.getpid().to_bytes(4))
    channel.close()
    os.dup2(out, 1)
    os.dup2(out, 2)
    os.close(out)
    os.environ.clear()
    os.environ.update(request["env"])
    os.chdir(request["cwd"])
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    template.main(request["arguments"])


def serve(channel: socket.socket) -> None:
    """Fork on request until the asking end is closed."""
    while True:
        size, files, _, _ = socket.recv_fds(channel, 4, 1)
        if not size:
            return
        request = json.loads(channel.recv(int.from_bytes(size), socket.MSG_WAITALL))
        between = os.fork()
        if between == 0:
            if os.fork():
                os._exit(0)
            become(request, files[0], channel)
        os.waitpid(between, 0)
        os.close(files[0])


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.collect()
    gc.freeze()
    serve(socket.socket(fileno=int(sys.argv[1])))

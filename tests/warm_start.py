"""Worker templates without their imports: forked from a process that has them already.

Of what a scripted run costs, four fifths are the start of Python and the imports of the template
that its workers are forked from. A nursery imports them once a test process and forks every
template from itself. All else is as it is: real templates and workers, with the environment, the
parent, the socket and the deaths that they have otherwise.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import functools
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import psutil
import pytest

from accelbench.run.process import worker_pool

start_cold = worker_pool.start_process
_PR_SET_CHILD_SUBREAPER = 36
NURSERY = Path(__file__).with_name("warm_nursery.py")


class Adopted:
    """A child of this process that another one started; what the worker_pool asks of a `Popen`."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        return self._look(os.WNOHANG)

    def wait(self, timeout: float | None = None) -> int:
        deadline = None if timeout is None else time.monotonic() + timeout
        while (code := self._look(0 if deadline is None else os.WNOHANG)) is None:
            if deadline is not None and time.monotonic() > deadline:
                assert timeout is not None
                raise subprocess.TimeoutExpired("a warm template", timeout)
            time.sleep(0.001)
        return code

    def kill(self) -> None:
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)

    def _look(self, how: int) -> int | None:
        if self.returncode is None:
            try:
                pid, status = os.waitpid(self.pid, how)
            except ChildProcessError:  # somebody else has waited for it
                pid, status = self.pid, 0
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode


class Nursery:
    """A process that has imported what templates import: it runs `warm_nursery.py` in the end."""

    def __init__(self, *program: str, env: Mapping[str, str] | None = None) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", *(program or (str(NURSERY),)), str(theirs.fileno())],
                env=env,
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
            )
        self._socket = ours
        self.pid = self._process.pid
        atexit.register(self.close)

    def start(self, arguments: Sequence[str], env: Mapping[str, str], out: IO[bytes]) -> Adopted:
        """A template by its arguments, as a child of this process."""
        request = {"arguments": arguments, "env": dict(env), "cwd": str(Path.cwd())}
        # What forks it leaves at once, and the nearest subreaper above gets the orphan: us.
        libc = ctypes.CDLL(None)
        libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        try:
            body = json.dumps({**request, "parent": os.getpid()}).encode()
            socket.send_fds(self._socket, [len(body).to_bytes(4)], [out.fileno()])
            self._socket.sendall(body)
            return Adopted(int.from_bytes(self._socket.recv(4, socket.MSG_WAITALL)))
        finally:
            libc.prctl(_PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)

    def close(self) -> None:
        self._socket.close()
        self._process.wait()


@functools.cache
def _nursery(owner: int) -> Nursery:
    return Nursery()


def start_warm(
    arguments: Sequence[str], env: Mapping[str, str], out: IO[bytes], *other: Any
) -> Adopted | subprocess.Popen[bytes]:
    """A scripted template from the nursery, anything else, or of another Python, as always."""
    if other or "scripted" not in arguments or "fork" not in arguments:
        return start_cold(arguments, env, out, *other)
    return _nursery(os.getpid()).start(arguments, env, out)


@contextlib.contextmanager
def warm_templates() -> Iterator[None]:
    """Scripted templates come from the nursery meanwhile."""
    with pytest.MonkeyPatch.context() as patch:
        if sys.platform == "linux":
            patch.setattr(worker_pool, "start_process", start_warm)
        yield


def is_nursery(process: psutil.Process) -> bool:
    """Whether a child of this process is the nursery, which no run has started."""
    return _nursery.cache_info().currsize > 0 and process.pid == _nursery(os.getpid()).pid

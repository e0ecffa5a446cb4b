"""Whether a process can be forked, found and killed here; run in a throw-away process."""

from __future__ import annotations

import os
import signal

from accelbench.core import processes


def main() -> dict[str, bool]:
    """Fork a child and kill it; return what worked."""
    if not hasattr(os, "fork"):
        return {"fork": False, "pidfd": False}
    child = processes.fork()
    if child == 0:
        signal.pause()
        os._exit(0)
    handle = None
    try:
        handle = os.pidfd_open(child) if hasattr(os, "pidfd_open") else None
        if handle is not None:
            signal.pidfd_send_signal(handle, signal.SIGKILL)
    except OSError:
        handle = None
    if handle is None:
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    return {"fork": os.WIFSIGNALED(status), "pidfd": handle is not None}

"""Processes that are not disturbed when they must not be, and killed without a race.

`core/processes.py` makes sure that none outlives its parent.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """Delay Ctrl-C and SIGTERM until the block is over."""
    # By handlers, not by a mask: a thread of NumPy's libraries would take a masked signal, and
    # Python would still raise it in the main thread. Python raises none in other threads.
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    heard: list[int] = []
    before: dict[int, Any] = {}
    try:
        for number in (signal.SIGINT, signal.SIGTERM):
            before[number] = signal.signal(number, lambda got, _: heard.append(got))
        yield
    finally:
        for blocked, handler in before.items():
            signal.signal(blocked, signal.SIG_DFL if handler is None else handler)
    if heard:
        signal.raise_signal(heard[0])


def offer_to_oom_killer() -> None:
    """Let the kernel kill the worker first if memory runs out, not the user's desktop."""
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")


def own_process_group() -> None:
    """Lead a process group, so that whatever the engine starts is ended with the worker."""
    with contextlib.suppress(OSError):
        os.setpgid(0, 0)


class InterruptHold:
    """A hold on one process that stays valid if its number is used again."""

    # On Linux by a pidfd; elsewhere its parent keeps the number until the process is reaped.

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._fd: int | None = None
        if hasattr(os, "pidfd_open"):
            with contextlib.suppress(OSError):
                self._fd = os.pidfd_open(pid)

    def kill(self) -> None:
        with contextlib.suppress(OSError):
            if self._fd is not None:
                signal.pidfd_send_signal(self._fd, signal.SIGKILL)
            else:
                # Windows has no such signal, and ends a process by any.
                os.kill(self.pid, getattr(signal, "SIGKILL", signal.SIGTERM))
        if hasattr(os, "killpg"):
            # The group lives as long as any member, and its leader is not reaped yet.
            with contextlib.suppress(OSError):
                os.killpg(self.pid, signal.SIGKILL)

    def ended_within(self, seconds: float) -> bool:
        """Return whether it ends by itself in that time; wait in the kernel."""
        if self._fd is None:
            return False
        readable, _, _ = select.select([self._fd], [], [], seconds)
        return bool(readable)

    def close(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

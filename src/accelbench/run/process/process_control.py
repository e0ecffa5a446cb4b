"""Processes that end when they should: undisturbed while they must not, killed without a race.

That none outlives its parent is the care of whatever starts it (`core/processes.py`).
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
    """Hold back Ctrl-C and SIGTERM: what is inside happens whole, the signal is heard after it.

    By handlers, not by a mask: a thread of NumPy's libraries would take a masked
    signal, and Python would still raise it in the main thread. In other threads
    Python raises none.
    """
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
    """When the machine runs out of memory, the worker goes first, not the user's desktop."""
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")


def own_process_group() -> None:
    """Whatever the engine starts can then be ended together with the worker."""
    with contextlib.suppress(OSError):
        os.setpgid(0, 0)


class InterruptHold:
    """A hold on one process, immune to its number being used again.

    On Linux through a pidfd; elsewhere through the number, which its parent
    keeps from being used again until the process is reaped.
    """

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._fd: int | None = None
        if hasattr(os, "pidfd_open"):
            with contextlib.suppress(OSError):
                self._fd = os.pidfd_open(pid)

    def kill(self) -> None:
        """SIGKILL, to the process and what it started."""
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
        """Whether it ends by itself in that time; waits in the kernel."""
        if self._fd is None:
            return False
        readable, _, _ = select.select([self._fd], [], [], seconds)
        return bool(readable)

    def close(self) -> None:
        """Let go."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

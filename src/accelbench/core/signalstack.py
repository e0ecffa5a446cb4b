"""The stack on which this thread handles signals, kept from libraries that leave a freed one there.

Python handles signals on the thread's alternate stack, where it has one. OpenVINO's plugin for
CPUs puts its own in place and, of two engines that end in the order in which they began, takes back
what the first had put there and freed: the next signal with a handler then ends the process with
SIGSEGV, and no handler of a crash can say why.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from contextlib import contextmanager


class SignalStack(ctypes.Structure):
    """stack_t, as Linux has it."""

    _fields_ = (
        ("place", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("size", ctypes.c_size_t),
    )


def signal_stack() -> SignalStack | None:
    """Where this thread handles signals; None where nobody can be asked."""
    if sys.platform != "linux":
        return None
    stack = SignalStack()
    failed = ctypes.CDLL(None).sigaltstack(None, ctypes.byref(stack))
    return None if failed else stack


def put_back(stack: SignalStack | None) -> None:
    """Let this thread handle signals there again."""
    if stack is not None:
        ctypes.CDLL(None).sigaltstack(ctypes.byref(stack), None)


@contextmanager
def signal_stack_kept() -> Iterator[None]:
    """What is done in it leaves this thread's stack for signals as it was."""
    before = signal_stack()
    try:
        yield
    finally:
        put_back(before)

"""The CUDA driver of this process, whoever loaded it: PyTorch, CuPy, Numba, a binding of one's own.

A kernel is launched in microseconds and runs on. Libraries have a wait of their own each; the
driver has one for all of them, and says which devices this process has begun to use.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from typing import Any

from accelbench.core.errors import CaseError

_NAME = "libcuda.so.1"
#: Of the driver's answers: this thread has no context, so that nothing waits for it.
_NO_CONTEXT = 201


def loaded() -> Any:
    """The driver where a library of this process has loaded it; None otherwise: none is loaded."""
    without_loading = getattr(os, "RTLD_NOLOAD", None)  # Windows has no such question
    if without_loading is None:
        return None
    try:
        return ctypes.CDLL(_NAME, mode=without_loading)
    except OSError:
        return None


def used(driver: Any) -> list[int]:
    """Ordinals of the devices on which libraries of this process have a context."""
    count = ctypes.c_int()
    if driver.cuDeviceGetCount(ctypes.byref(count)) != 0:
        return []  # loaded and not begun
    return [number for number in range(count.value) if _is_active(driver, number)]


def _is_active(driver: Any, number: int) -> bool:
    flags, active = ctypes.c_uint(), ctypes.c_int()
    said = driver.cuDevicePrimaryCtxGetState(number, ctypes.byref(flags), ctypes.byref(active))
    return said == 0 and bool(active.value)


def waiter(driver: Any) -> Callable[[], None] | None:
    """What returns when every launch of this process has ended; None where no device is in use."""
    contexts = [_context(driver, number) for number in used(driver)]
    if not contexts:
        return None

    def wait() -> None:
        # A binding may have made a context of its own, which is no library's.
        _ended(driver.cuCtxSynchronize(), _NO_CONTEXT)
        for context in contexts:
            _ended(driver.cuCtxPushCurrent_v2(context))
            try:
                _ended(driver.cuCtxSynchronize())
            finally:
                driver.cuCtxPopCurrent_v2(ctypes.byref(ctypes.c_void_p()))

    return wait


def _context(driver: Any, number: int) -> ctypes.c_void_p:
    """A device's context, which stays for as long as this process does."""
    context = ctypes.c_void_p()
    _ended(driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), number))
    return context


def _ended(said: int, *allowed: int) -> None:
    """Raise where a launch failed: launches report it to whoever waits for them."""
    if said != 0 and said not in allowed:
        raise CaseError(
            "code_failed",
            f"what it launched on the GPU failed: the CUDA driver reports error {said}",
            "Run it in Python alone, with CUDA_LAUNCH_BLOCKING=1, and mend it.",
        )

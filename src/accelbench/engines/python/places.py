"""Where a callable worked, and the wait until all that it began there is done.

Imports torch and JAX only if what was called has imported them. CUDA is asked of its driver:
libraries have a wait of their own each, the driver has one for all of them, and knows which devices
this process has begun to use. A kernel is launched in microseconds and runs on.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

from accelbench.core.errors import CaseError
from accelbench.engines.python.answers import DEEPEST
from accelbench.engines.python.evaluation import parts

_NAME = "libcuda.so.1"
#: Of the driver's answers: this thread has no context, so that nothing waits for it.
_NO_CONTEXT = 201


def loaded() -> Any:
    """Return the driver if a library of this process has loaded it, else None."""
    without_loading = getattr(os, "RTLD_NOLOAD", None)  # Windows has no such question
    if without_loading is None:
        return None
    try:
        return ctypes.CDLL(_NAME, mode=without_loading)
    except OSError:
        return None


def used(driver: Any) -> list[int]:
    """Return the ordinals of the devices on which libraries of this process have a context."""
    count = ctypes.c_int()
    if driver.cuDeviceGetCount(ctypes.byref(count)) != 0:
        return []  # loaded and not begun
    return [number for number in range(count.value) if _is_active(driver, number)]


def _is_active(driver: Any, number: int) -> bool:
    flags, active = ctypes.c_uint(), ctypes.c_int()
    said = driver.cuDevicePrimaryCtxGetState(number, ctypes.byref(flags), ctypes.byref(active))
    return said == 0 and bool(active.value)


def waiter(driver: Any) -> Callable[[], None] | None:
    """Return a wait until every launch of this process has ended; None if no device is in use."""
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
    # It stays for as long as this process does.
    context = ctypes.c_void_p()
    _ended(driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), number))
    return context


def _ended(said: int, *allowed: int) -> None:
    # Launches report a failure to whoever waits for them.
    if said != 0 and said not in allowed:
        raise CaseError(
            "code_failed",
            f"what it launched on the GPU failed: the CUDA driver reports error {said}",
            "Run it in Python alone, with CUDA_LAUNCH_BLOCKING=1, and mend it.",
        )


Wait = Callable[[Any], Any]


def waiting(answer: Any) -> Wait | None:
    """Return a wait for an answer of such a kind; None if it is there when it is returned."""
    waits = [wait for wait in (_for_jax(answer), _for_torch(), _for_cuda()) if wait is not None]
    if len(waits) < 2:
        return waits[0] if waits else None

    def wait_for_all(answer: Any) -> None:
        for wait in waits:
            wait(answer)

    return wait_for_all


def _for_jax(answer: Any) -> Wait | None:
    # JAX launches from threads of its own: what it has not launched yet, no driver knows of.
    jax = sys.modules.get("jax")
    if jax is None or not (parts := list(_of_jax(jax, answer, 0))):
        return None
    known = {id(leaf) for leaf in jax.tree.leaves(answer)}
    if all(id(part) in known for part in parts):
        return jax.block_until_ready  # type: ignore[no-any-return]
    # An object of its owner's, into which JAX does not look.
    return lambda answer: jax.block_until_ready(list(_of_jax(jax, answer, 0)))


def _for_torch() -> Wait | None:
    # Of devices whose driver is not asked below; each only if torch has begun to use it.
    torch = sys.modules.get("torch")
    if torch is None or not _torch_has_begun(torch) or loaded() is not None:
        return None
    return lambda _answer: torch.cuda.synchronize()


def _torch_has_begun(torch: Any) -> bool:
    return bool(torch.cuda.is_available() and torch.cuda.is_initialized())


def _for_cuda() -> Wait | None:
    driver = loaded()
    wait = None if driver is None else waiter(driver)
    return None if wait is None else lambda _answer: wait()


def _of_jax(jax: Any, value: Any, depth: int) -> Iterator[Any]:
    if isinstance(value, jax.Array):
        yield value
    elif depth <= DEEPEST:
        for inner in parts(value):
            yield from _of_jax(jax, inner, depth + 1)


def devices(answer: Any) -> set[str]:
    """Return where a call worked: where its tensors lie, and the GPUs in use by then."""
    found: set[str] = set()
    _devices(answer, found, 0)
    driver = loaded()
    if driver is not None:
        found |= {f"cuda:{number}" for number in used(driver)}
    torch = sys.modules.get("torch")
    if torch is not None and _torch_has_begun(torch):
        found.add(f"{'rocm' if torch.version.hip else 'cuda'}:{torch.cuda.current_device()}")
    return found or {"cpu:0"}


def _devices(value: Any, found: set[str], depth: int) -> None:
    torch, jax = sys.modules.get("torch"), sys.modules.get("jax")
    if torch is not None and isinstance(value, torch.Tensor):
        device = value.device
        kind = "rocm" if device.type == "cuda" and torch.version.hip else device.type
        found.add(f"{kind}:{device.index or 0}")
    elif jax is not None and isinstance(value, jax.Array):
        for device in value.devices():
            kind = {"gpu": "cuda"}.get(device.platform, device.platform)
            found.add(f"{kind}:{device.id if kind != 'cpu' else 0}")
    elif depth <= DEEPEST:
        for inner in islice(parts(value), 64):
            _devices(inner, found, depth + 1)

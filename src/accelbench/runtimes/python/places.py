"""Where a callable worked, and the wait until all that it began there is done.

Imports torch and JAX only where what was called has imported them. CUDA is asked of its driver: not
only torch and JAX launch there, and what a call leaves behind is no part of its answer.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Set
from itertools import islice
from typing import Any

from accelbench.runtimes.python import cuda_driver
from accelbench.runtimes.python.answers import DEEPEST

Wait = Callable[[Any], Any]


def waiting(answer: Any) -> Wait | None:
    """What waits until an answer of such a kind is there; None where it is when it is returned."""
    waits = [wait for wait in (_for_jax(answer), _for_torch(), _for_cuda()) if wait is not None]
    if len(waits) < 2:
        return waits[0] if waits else None

    def wait_for_all(answer: Any) -> None:
        for wait in waits:
            wait(answer)

    return wait_for_all


def _for_jax(answer: Any) -> Wait | None:
    """JAX launches from threads of its own: what it has not launched yet, no driver knows of."""
    jax = sys.modules.get("jax")
    if jax is None or not (parts := list(_of_jax(jax, answer, 0))):
        return None
    known = {id(leaf) for leaf in jax.tree.leaves(answer)}
    if all(id(part) in known for part in parts):
        return jax.block_until_ready  # type: ignore[no-any-return]
    # An object of its owner's, into which JAX does not look.
    return lambda answer: jax.block_until_ready(list(_of_jax(jax, answer, 0)))


def _for_torch() -> Wait | None:
    """Of devices whose driver is not asked below; each only where torch has begun to use it."""
    torch = sys.modules.get("torch")
    if torch is None or not _torch_has_begun(torch) or cuda_driver.loaded() is not None:
        return None
    return lambda _answer: torch.cuda.synchronize()


def _torch_has_begun(torch: Any) -> bool:
    return bool(torch.cuda.is_available() and torch.cuda.is_initialized())


def _for_cuda() -> Wait | None:
    driver = cuda_driver.loaded()
    wait = None if driver is None else cuda_driver.waiter(driver)
    return None if wait is None else lambda _answer: wait()


def _of_jax(jax: Any, value: Any, depth: int) -> Iterator[Any]:
    """The arrays of JAX in an answer, wherever their values are compared."""
    if isinstance(value, jax.Array):
        yield value
    elif depth > DEEPEST or value is None or isinstance(value, (str, bytes, int, float)):
        return
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from _of_jax(jax, inner, depth + 1)
    elif isinstance(value, (list, tuple)):
        for inner in value:
            yield from _of_jax(jax, inner, depth + 1)
    elif hasattr(value, "__dict__") and not isinstance(value, type):
        for inner in vars(value).values():
            yield from _of_jax(jax, inner, depth + 1)


def devices(answer: Any) -> set[str]:
    """Where a call worked, with ordinals: where its tensors lie, and the GPUs in use by then.

    The processor where there is neither.
    """
    found: set[str] = set()
    _devices(answer, found, 0)
    driver = cuda_driver.loaded()
    if driver is not None:
        found |= {f"cuda:{number}" for number in cuda_driver.used(driver)}
    torch = sys.modules.get("torch")
    if torch is not None and _torch_has_begun(torch):
        found.add(f"{'rocm' if torch.version.hip else 'cuda'}:{torch.cuda.current_device()}")
    return found or {"cpu:0"}


def _devices(value: Any, found: set[str], depth: int) -> None:
    if depth > DEEPEST:
        return
    if isinstance(value, Mapping):
        value = tuple(value.values())
    if isinstance(value, (list, tuple, Set)):
        for inner in islice(value, 64):
            _devices(inner, found, depth + 1)
        return
    torch, jax = sys.modules.get("torch"), sys.modules.get("jax")
    if torch is not None and isinstance(value, torch.Tensor):
        device = value.device
        kind = "rocm" if device.type == "cuda" and torch.version.hip else device.type
        found.add(f"{kind}:{device.index or 0}")
    elif jax is not None and isinstance(value, jax.Array):
        for device in value.devices():
            kind = {"gpu": "cuda"}.get(device.platform, device.platform)
            found.add(f"{kind}:{device.id if kind != 'cpu' else 0}")

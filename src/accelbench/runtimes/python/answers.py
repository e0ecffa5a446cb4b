"""What a callable returns, as arrays by name that can be compared; and the wait until it is there.

Imports torch and JAX only where what was called has imported them.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from accelbench.core.errors import CaseError

#: Deeper than this nothing is looked into.
_DEEPEST = 8


def refuse_unfinished(answer: Any) -> None:
    """Refuse what says only how the work would be done."""
    what = ""
    if inspect.isawaitable(answer) or inspect.isasyncgen(answer):
        what = "a coroutine"
    elif isinstance(answer, Iterator):
        what = f"an iterator ({type(answer).__name__})"
    if what:
        raise CaseError(
            "unfinished",
            f"it returns {what}: its work is not done when it returns",
            "Let it go through all of it, such as by list(…) or asyncio.run(…).",
        )


def arrays(answer: Any) -> dict[str, Any]:
    """Every value of an answer as an array, by its place; text as its bytes.

    What is neither numbers nor text is left out: it is not compared. Where nothing is left there is
    one array without values.
    """
    found: dict[str, Any] = {}
    _gather(answer, "", found, 0)
    return found or {"nothing": np.zeros(0)}


def _gather(value: Any, name: str, found: dict[str, Any], depth: int) -> None:
    if value is None or depth > _DEEPEST:
        return
    if isinstance(value, (str, bytes)):
        text = value.encode() if isinstance(value, str) else value
        found[name or "output"] = np.frombuffer(text, np.uint8)
        return
    if isinstance(value, Mapping):
        for key, inner in value.items():
            _gather(inner, f"{name}.{key}" if name else str(key), found, depth + 1)
        return
    array = _array(value)
    if array is not None:
        found[name or "output"] = array
    elif isinstance(value, (list, tuple)):
        for place, inner in enumerate(value):
            _gather(inner, f"{name}.{place}" if name else str(place), found, depth + 1)
    elif hasattr(value, "__dict__"):
        _gather(vars(value), name, found, depth + 1)


def _array(value: Any) -> Any:
    """A tensor, an array, a number or an even list of numbers as an array; None of others."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        value = value.detach()
        value = value.float() if value.is_floating_point() else value.resolve_conj()
        return value.cpu().numpy()
    if isinstance(value, tuple) and any(hasattr(part, "shape") for part in value):
        return None
    try:
        array = np.asarray(value)
    except Exception:
        return None
    if array.dtype.kind in "biufc":
        return array
    if str(array.dtype) in ("bfloat16", "float8_e4m3fn", "float8_e5m2"):  # JAX's
        return array.astype(np.float32)
    return None


def waiting(answer: Any) -> Callable[[Any], Any] | None:
    """What waits until an answer of such a kind is there; None where it is when it is returned."""
    jax = sys.modules.get("jax")
    if jax is not None and any(isinstance(leaf, jax.Array) for leaf in jax.tree.leaves(answer)):
        return jax.block_until_ready  # type: ignore[no-any-return]
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available() and torch.cuda.is_initialized():
        return lambda _answer: torch.cuda.synchronize()
    return None


def devices(answer: Any) -> set[str]:
    """Where the tensors of an answer lie, with ordinals; the processor where there is none."""
    found: set[str] = set()
    _devices(answer, found, 0)
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available() and torch.cuda.is_initialized():
        found.add(f"{'rocm' if torch.version.hip else 'cuda'}:{torch.cuda.current_device()}")
    return found or {"cpu:0"}


def _devices(value: Any, found: set[str], depth: int) -> None:
    if depth > _DEEPEST:
        return
    if isinstance(value, Mapping):
        value = tuple(value.values())
    if isinstance(value, (list, tuple)):
        for inner in value[:64]:
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

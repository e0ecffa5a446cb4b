"""Answers of a callable as arrays by name, and whether all of an answer is there.

Imports torch and JAX only if what was called has imported them.
"""

from __future__ import annotations

import dataclasses
import hashlib
import inspect
import sys
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import is_dataclass
from itertools import islice
from types import ModuleType
from typing import Any

import numpy as np

from accelbench.core.errors import CaseError

#: How a sparse tensor keeps what it holds, by its layout.
_OF_SPARSE = {
    "sparse_coo": ("indices", "values"),
    "sparse_csr": ("crow_indices", "col_indices", "values"),
    "sparse_bsr": ("crow_indices", "col_indices", "values"),
    "sparse_csc": ("ccol_indices", "row_indices", "values"),
    "sparse_bsc": ("ccol_indices", "row_indices", "values"),
}


@dataclasses.dataclass(frozen=True)
class CompareInstead:
    """Another value that holds all that a value holds."""

    value: Any


def parts_of(value: Any) -> Mapping[str, Any] | CompareInstead | None:
    """Return what is compared in a value's place, its parts by name; None if that is itself."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        return _of_tensor(torch, value)
    if isinstance(value, np.ma.MaskedArray):
        # What lies under a mask is no part of it.
        return {"values": value.filled(0), "mask": np.ma.getmaskarray(value)}
    if isinstance(value, np.void) and value.dtype.names:
        return {name: value[name] for name in value.dtype.names}
    if isinstance(value, np.ndarray):
        return _of_array(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = [field.name for field in dataclasses.fields(value)]
        kept = {**getattr(value, "__dict__", {})}
        return {**{name: getattr(value, name, None) for name in fields}, **kept}
    return None


def _of_tensor(torch: Any, value: Any) -> Mapping[str, Any] | CompareInstead | None:
    if getattr(value, "is_nested", False):
        return CompareInstead(list(value.detach().unbind()))
    layout = str(value.layout).removeprefix("torch.")
    if layout in _OF_SPARSE:
        held = value.detach()
        held = held.coalesce() if layout == "sparse_coo" else held
        shape = np.asarray(tuple(held.shape), np.int64)
        return {"shape": shape, **{name: getattr(held, name)() for name in _OF_SPARSE[layout]}}
    if value.layout is not torch.strided:  # that of oneDNN
        return CompareInstead(value.detach().to_dense())
    return CompareInstead(value.detach().dequantize()) if value.is_quantized else None


def _of_array(value: Any) -> Mapping[str, Any] | CompareInstead | None:
    kind = value.dtype.kind
    if value.dtype.names:
        return {name: value[name] for name in value.dtype.names}
    if kind in "mM":
        return CompareInstead(np.ascontiguousarray(value).view(np.int64))
    if kind in "SU":
        shape = np.asarray(value.shape, np.int64)
        return {"shape": shape, "text": np.ascontiguousarray(value).tobytes()}
    if kind == "O":
        return CompareInstead(value.ravel().tolist())
    return None


#: Deeper than this nothing is looked into.
DEEPEST = 8
#: Of a list or a dict so many parts are asked whether they are finished.
MOST_PARTS = 10_000
#: Types that are named of what is not compared.
_MOST_TYPES = 3
#: What stands for work that goes on elsewhere, by its module; asked only where that is imported.
_ELSEWHERE = (
    ("concurrent.futures", "Future", "a future"),
    ("torch._C", "Future", "a future"),
    ("multiprocessing.pool", "ApplyResult", "a result to come"),
    ("threading", "Thread", "a thread"),
    ("multiprocessing.process", "BaseProcess", "a process"),
    ("subprocess", "Popen", "a process"),
)


def refuse_unfinished(answer: Any) -> None:
    """Refuse what says only how, or where, the work would be done; within objects too."""
    what = _unfinished(answer, 0)
    if what:
        raise CaseError(
            "unfinished",
            f"it returns {what}: its work is not done when it returns",
            "Let it go through all of it, such as by list(…) or asyncio.run(…).",
        )


def _unfinished(answer: Any, depth: int) -> str:
    """Return what an answer, or a part of it, is instead of finished work; "" if it is finished."""
    if inspect.isawaitable(answer) or inspect.isasyncgen(answer):
        return "a coroutine"
    if isinstance(answer, Iterator):
        return f"an iterator ({type(answer).__name__})"
    for place, name, words in _ELSEWHERE:
        kind = getattr(sys.modules.get(place), name, None)
        if isinstance(kind, type) and isinstance(answer, kind):
            return words
    if depth > DEEPEST:
        return ""
    if isinstance(answer, Mapping):
        parts: Iterable[Any] = answer.values()
    elif isinstance(answer, (list, tuple, Set)):
        parts = answer
    elif (inside := _inside(answer)) is not None:
        parts = inside
    elif shows_attributes(answer):
        parts = vars(answer).values()
    else:
        return ""
    several = (_unfinished(part, depth + 1) for part in islice(parts, MOST_PARTS))
    return next(filter(None, several), "")


def _inside(answer: Any) -> Iterable[Any] | None:
    if isinstance(answer, np.ndarray) and answer.dtype.kind != "O":
        return None
    if not isinstance(answer, np.ndarray) and not is_dataclass(answer):
        return None
    parts = parts_of(answer)
    if isinstance(parts, CompareInstead):
        return [parts.value]
    return None if parts is None else parts.values()


def arrays(answer: Any) -> dict[str, Any]:
    """Return every value of an answer as an array, by its place; text as its bytes.

    What is neither numbers nor text is not compared. If nothing is left there is one empty
    array.
    """
    found: dict[str, Any] = {}
    _gather(answer, "", found, 0)
    return found or {"nothing": np.zeros(0)}


def digest_of_values(values: Mapping[str, Any]) -> str:
    """Return a digest of such arrays, which changes with a value, a type or a place."""
    whole = hashlib.sha256()
    for name, array in values.items():
        whole.update(f"{name} {array.dtype} {array.shape} ".encode())
        whole.update(array.tobytes())
    return whole.hexdigest()


def _gather(value: Any, name: str, found: dict[str, Any], depth: int) -> None:
    if value is None or depth > DEEPEST:
        return
    if isinstance(value, (str, bytes)):
        text = value.encode() if isinstance(value, str) else value
        found[_free(name or "output", found)] = np.frombuffer(text, np.uint8)
        return
    parts = value if isinstance(value, Mapping) else parts_of(value)
    if isinstance(parts, CompareInstead):
        _gather(parts.value, name, found, depth + 1)
        return
    array = numpy_array(value) if parts is None else None
    if array is not None:
        found[_free(name or "output", found)] = array
    elif isinstance(value, Set):
        _gather(_in_order(value), name, found, depth)
    else:
        for key, inner in (_within(value) if parts is None else parts).items():
            _gather(inner, f"{name}.{key}" if name else str(key), found, depth + 1)


def _within(value: Any) -> Mapping[Any, Any]:
    if isinstance(value, (list, tuple)):
        return dict(enumerate(value))
    return getattr(value, "__dict__", {})


def _free(name: str, found: Mapping[str, Any]) -> str:
    # {"a": {"b": 1}, "a.b": 2} has two parts of the same place.
    return name if name not in found else _free(f"{name}'", found)


def shows_attributes(value: Any) -> bool:
    """Return whether the attributes of an object are a part of the answer, as a dataclass's are."""
    return (
        hasattr(value, "__dict__")
        and not isinstance(value, (type, ModuleType))
        and not (inspect.isroutine(value))
    )


def _in_order(values: Set[Any]) -> list[Any]:
    """Return a set's values in the same order in every process: by value or content.

    Python's own order follows the hashes of texts, which differ from process to process.
    """
    numbers = all(isinstance(value, (int, float, np.number)) for value in values)
    return sorted(values) if numbers else sorted(values, key=_content)


def _content(value: Any) -> tuple[str, str]:
    return type(value).__name__, digest_of_values(arrays(value))


def uncompared(answer: Any) -> list[str]:
    """Return the types of the parts of an answer whose values are not compared, each once."""
    found: dict[str, None] = {}
    _leave_out(answer, found, 0)
    return list(found)


def _leave_out(value: Any, found: dict[str, None], depth: int) -> None:
    if value is None or isinstance(value, (str, bytes)) or len(found) >= _MOST_TYPES:
        return
    if depth > DEEPEST:
        found[f"parts within {DEEPEST} others"] = None
    elif isinstance(value, Mapping):
        for inner in value.values():
            _leave_out(inner, found, depth + 1)
    elif (parts := parts_of(value)) is not None:
        inside = parts.value if isinstance(parts, CompareInstead) else parts
        _leave_out(inside, found, depth + 1)
    elif numpy_array(value) is not None:
        return
    elif isinstance(value, (list, tuple, Set)):
        for inner in islice(value, MOST_PARTS):
            _leave_out(inner, found, depth + 1)
    elif getattr(value, "__dict__", None):
        _leave_out(vars(value), found, depth + 1)
    else:
        found[type(value).__name__] = None


def numpy_array(value: Any) -> Any:
    """Return a tensor, an array, a number or an even list of numbers as an array, else None."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        try:
            return _of_torch(torch, value.detach())
        except (RuntimeError, NotImplementedError, TypeError):  # it has no values, as on meta
            return None
    cupy = sys.modules.get("cupy")
    if cupy is not None and isinstance(value, cupy.ndarray):
        value = value.get()
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


def _of_torch(torch: Any, value: Any) -> Any:
    # In fp32 if NumPy has no such type.
    kept = (torch.float64, torch.float32, torch.float16)
    if value.is_floating_point() and value.dtype not in kept:
        value = value.float()
    return value.resolve_conj().resolve_neg().cpu().numpy()

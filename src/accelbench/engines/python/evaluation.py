"""Parts of an answer that compute their values only when they are asked for them.

Late parts are evaluated within the timed step. Arrays, tensors, numbers, text and containers of
them are values already: they are neither copied nor looked at in a step. Which properties a caller
would read is not known, so they are not part of the step: those that take long are named, and an
answer that has no values of its own is refused for them.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import sys
from collections import UserDict, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from enum import Enum
from itertools import islice
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from accelbench.core.errors import CaseError
from accelbench.engines.python.answers import (
    DEEPEST,
    MOST_PARTS,
    arrays,
    numpy_array,
    shows_attributes,
)
from accelbench.models.code_models.loading import is_owners

_CONTAINERS = (dict, list, tuple, set, frozenset)
_SEQUENCES = (list, tuple, Set, deque)
_VALUES = (str, bytes, bytearray, memoryview, int, float, complex, np.ndarray, np.generic, Enum)
#: Methods without arguments by which libraries of lazy frames and arrays compute.
_COMPUTED_BY = ("collect", "compute")
#: Libraries whose lazy objects compute by another method, and that method.
_OF_LIBRARY = {"duckdb": "fetchall", "_duckdb": "fetchall", "ibis": "execute", "PIL": "load"}
#: Libraries whose other objects hold their values. JAX and CUDA are waited for (places.py).
_EAGER = {"numpy", "torch", "jax", "jaxlib", "cupy", "pandas", "polars", "pyarrow", "scipy"}
_AS_ARRAY = ("__array__", "__array_interface__", "__array_struct__", "__dlpack__", "__buffer__")
_AS_VALUE: Mapping[str, Callable[[Any], Any]] = {
    "__complex__": complex,
    "__float__": float,
    "__index__": int,
    "__int__": int,
    "__bytes__": bytes,
}
_READ_BY_ITERATION = ("__iter__", "__getitem__", "__missing__", "keys", "values", "items")
#: Methods by which a reader gets values of an object, none of which has to be called by name.
READ_BY = frozenset(
    (*_AS_ARRAY, *_AS_VALUE, *_READ_BY_ITERATION, "__call__", "__getattr__", "__getattribute__")
)
_TORCH_DEVICES = ("cpu", "cuda", "mps", "xpu", "hpu", "npu", "meta")


def late_parts(answer: Any) -> list[str]:
    """Return the types of the parts that are not evaluated yet, each with how it is evaluated."""
    found: dict[str, None] = {}
    _find_late(answer, found, 0)
    return list(found)


def evaluated(answer: Any, depth: int = 0) -> Any:
    """Return an answer with its late parts computed; itself if it has none.

    An object of which a part was late becomes a dictionary of its attributes.
    """
    if depth > DEEPEST:
        return answer
    if (how := _evaluation(answer)) is not None:
        value = _evaluate(answer, how)
        return answer if value is answer else evaluated(value, depth + 1)
    if isinstance(answer, Mapping):
        held = dict(answer)
    elif isinstance(answer, (np.ndarray, *_SEQUENCES)):
        held = dict(enumerate(parts(answer)))
    else:
        held = _attributes_of(answer)
    new = {key: evaluated(value, depth + 1) for key, value in held.items()}
    if all(new[key] is held[key] for key in new):
        return answer
    return list(new.values()) if isinstance(answer, (np.ndarray, *_SEQUENCES)) else new


def attributes(value: Any) -> dict[str, Any]:
    """Return the values that an object holds by name, in its dictionary and in its slots."""
    held = dict(getattr(value, "__dict__", {}))
    for kind in type(value).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            member = kind.__dict__.get(name)
            if inspect.ismemberdescriptor(member):
                try:
                    held[name] = member.__get__(value, kind)
                except AttributeError:  # it was not set
                    continue
    return held


def is_owned(kind: type) -> bool:
    """Return whether a type is of its owner's code, not of Python or of an installed library."""
    return _is_owned_module(kind.__module__)


@functools.cache
def _is_owned_module(module: str) -> bool:
    if module.partition(".")[0] in sys.stdlib_module_names:
        return module == "__main__"
    file = getattr(sys.modules.get(module), "__file__", None)
    return file is not None and is_owners(Path(file))


def _find_late(value: Any, found: dict[str, None], depth: int) -> None:
    if depth > DEEPEST:
        return
    if (how := _evaluation(value)) is not None:
        found[f"{type(value).__name__}.{how}"] = None
        return
    for part in islice(parts(value), MOST_PARTS):
        _find_late(part, found, depth + 1)


def parts(value: Any) -> Iterable[Any]:
    """Return the values within a container, an array of objects or an object."""
    if isinstance(value, Mapping):
        return value.values()
    if isinstance(value, _SEQUENCES):
        return value
    if isinstance(value, np.ndarray):
        return value.ravel().tolist() if value.dtype.kind == "O" else ()
    return _attributes_of(value).values()


def _attributes_of(value: Any) -> dict[str, Any]:
    kind = type(value)
    if kind.__module__.partition(".")[0] in _EAGER or issubclass(kind, (*_VALUES, type(None))):
        return {}
    return attributes(value) if shows_attributes(value) or is_owned(kind) else {}


def _evaluation(value: Any) -> str | None:
    """Return how a value is evaluated, by the name of a method; None if it is not late."""
    kind: Any = type(value)
    if kind in (*_CONTAINERS, *_VALUES, type(None)) or isinstance(value, type):
        return None
    how = _evaluation_of(kind)
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        late = is_owned(kind) or value.device.type not in _TORCH_DEVICES
        return "cpu" if late and value.device.type != "meta" else None
    if how is None and is_owned(kind) and hasattr(kind, "__getattr__"):
        how = next((name for name in _AS_ARRAY if hasattr(value, name)), None)
    return how


@functools.cache
def _evaluation_of(kind: type) -> str | None:
    root = kind.__module__.partition(".")[0]
    if issubclass(kind, _VALUES):
        return _own_value_of(kind)
    if root in sys.stdlib_module_names:
        return None
    for name in (*_COMPUTED_BY, _OF_LIBRARY.get(root, "")):
        if name and _needs_nothing(getattr(kind, name, None)):
            return name
    if issubclass(kind, _CONTAINERS):
        base = next(base for base in _CONTAINERS if issubclass(kind, base))
        changed = (n for n in _READ_BY_ITERATION if _is_own_way(kind, base, n))
        return next(changed, None) if is_owned(kind) else None
    if issubclass(kind, Mapping) and not issubclass(kind, UserDict) and root != "flax":
        return "__iter__"
    if root in _EAGER or (issubclass(kind, BaseException) and not is_owned(kind)):
        return None
    if (how := next((name for name in _AS_ARRAY if hasattr(kind, name)), None)) is not None:
        return how
    if not is_owned(kind):
        return None
    is_sequence = hasattr(kind, "__getitem__") and hasattr(kind, "__len__")
    names = ("__iter__", *(("__getitem__",) if is_sequence else ()), *_AS_VALUE)
    return next((name for name in names if hasattr(kind, name)), None)


def _own_value_of(kind: type) -> str | None:
    if not is_owned(kind) or issubclass(kind, Enum):
        return None
    base = next(base for base in _VALUES if issubclass(kind, base))
    names = ("__array__", *_AS_VALUE)
    return next((n for n in names if hasattr(kind, n) and _is_own_way(kind, base, n)), None)


def _is_own_way(kind: type, base: type, name: str) -> bool:
    return getattr(kind, name, None) is not getattr(base, name, None)


def _needs_nothing(method: Any) -> bool:
    if not callable(method):
        return False
    try:
        _self, *others = inspect.signature(method).parameters.values()
    except (TypeError, ValueError):  # of an extension: its library documents none
        return True
    return all(
        p.default is not p.empty or p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in others
    )


def _evaluate(value: Any, how: str) -> Any:
    if how == "__array__" and isinstance(value, np.ndarray):
        return np.asarray(value.__array__())
    if how in (*_AS_ARRAY, "cpu"):
        array = _from_dlpack(value) if how == "__dlpack__" else numpy_array(value)
        return value if array is None else array
    if how in _AS_VALUE:
        return _AS_VALUE[how](value)
    if how in _READ_BY_ITERATION:
        if isinstance(value, Mapping):
            return {key: value[key] for key in value}
        parts = list(islice(value, MOST_ITEMS))
        if len(parts) == MOST_ITEMS:
            raise CaseError(
                "unfinished",
                f"it returns a {type(value).__name__} that makes more than {MOST_ITEMS:,} items"
                " when it is read: its work is not done when it returns",
                "Return a list.",
            )
        return parts
    result = getattr(value, how)()
    return value if result is None or how == "load" else result


def _from_dlpack(value: Any) -> Any:
    try:
        return np.from_dlpack(value)
    except Exception:  # it is on a device that NumPy cannot read
        return None


#: An iteration may have no end.
MOST_ITEMS = 10_000_000


#: An attribute is named from this share of a step on, and from this time on.
_OF_A_STEP, _LEAST_NS = 0.25, 2_000
#: It is refused if it takes as long as a step, and at least so long.
_REFUSED_NS = 20_000
#: Quick attributes are read several times: the first time may be struck.
_READS, _QUICK_NS = 5, 1_000_000
_MOST_OBJECTS = 16

#: Names that an object which answers to any name may compute something for.
_LIKELY = ("value", "values", "result", "data", "output")

Read = Callable[[], Any]


def slow_attributes(
    answer: Any, inputs: Any, step_ns: float, now_ns: Callable[[], int]
) -> list[str]:
    """Return the attributes that take a relevant part of a step to read.

    Raises CaseError if an object has such attributes, and no values but those of its inputs.
    """
    least = max(_OF_A_STEP * step_ns, _LEAST_NS)
    found: dict[str, None] = {}
    for part in islice(_owned_objects(answer, 0), _MOST_OBJECTS):
        slow = [name for name, read in _computed(part) if _takes(read, least, now_ns)]
        late = max(step_ns, _REFUSED_NS)
        reads = (read for name, read in _computed(part) if name in slow)
        if any(_takes(read, late, now_ns) for read in reads) and _holds_only(part, inputs):
            raise CaseError(
                "unfinished",
                f"it returns an object that holds only its inputs and computes {slow[0]} when that"
                " is read: its work is not done when it returns",
                "Return the values, or read the attribute in the function.",
            )
        found |= dict.fromkeys(slow)
    return list(found)


def without_values(answer: Any, inputs: Any) -> list[str]:
    """Return the types within an answer whose methods may compute what it does not hold.

    Such an object has methods, and either no values but its inputs, or one of its inputs next to
    other values, or no numbers but integers.
    """
    found: dict[str, None] = {}
    for part in islice(_owned_objects(answer, 0), _MOST_OBJECTS):
        kind: Any = type(part)
        if _has_methods(kind) and (_holds_only(part, inputs) or _may_be_a_handle(part, inputs)):
            found[kind.__name__] = None
    return list(found)


def _has_methods(kind: type) -> bool:
    return any(
        hasattr(member, "__get__") and not inspect.ismemberdescriptor(member)
        for base in kind.__mro__
        if base is not object and is_owned(base)
        for name, member in vars(base).items()
        if name[:1] != "_" or name in READ_BY
    )


def _may_be_a_handle(value: Any, inputs: Any) -> bool:
    given = {key for key, array in _by_digest(inputs) if array.size > 1}
    held = list(_by_digest(_held(value)))
    if any(key in given for key, _array in held):
        return True
    return not any(array.size > 1 or array.dtype.kind in "fc" for array in _numbers(_held(value)))


def _numbers(held: Mapping[str, Any]) -> Iterator[Any]:
    named = {name: value for name, value in held.items() if not isinstance(value, (str, bytes))}
    yield from (array for array in arrays(named).values() if array.size)


def _holds_only(value: Any, inputs: Any) -> bool:
    given = {key for key, _array in _by_digest(inputs)}
    return all(not array.size or key in given for key, array in _by_digest(_held(value)))


def _held(value: Any) -> dict[Any, Any]:
    return dict(value) if isinstance(value, defaultdict) else attributes(value)


def _by_digest(value: Any) -> Iterator[tuple[str, Any]]:
    for array in arrays(value).values():
        head = f"{array.dtype} {array.shape} ".encode()
        yield hashlib.sha256(head + array.tobytes()).hexdigest(), array


def _owned_objects(value: Any, depth: int) -> Iterator[Any]:
    if depth > DEEPEST:
        return
    is_plain = isinstance(value, (type, FunctionType, ModuleType))
    if not is_plain and (is_owned(type(value)) or isinstance(value, defaultdict)):
        yield value
    for part in islice(parts(value), _MOST_OBJECTS):
        yield from _owned_objects(part, depth + 1)


def _computed(value: Any) -> Iterator[tuple[str, Read]]:
    """Yield the name of each computed attribute, and what reads it without keeping its value."""
    kind: Any = type(value)
    for name, member in _members(kind).items():
        label = f"{kind.__name__}.{name}"
        if isinstance(member, property) and member.fget is not None:
            yield label, functools.partial(member.fget, value)
        elif isinstance(member, functools.cached_property) and name not in vars(value):
            yield label, functools.partial(member.func, value)
    if isinstance(value, defaultdict) and value.default_factory is not None:
        yield f"{kind.__name__}.default_factory", value.default_factory
    if hasattr(kind, "__len__"):
        yield f"{kind.__name__}.__len__", functools.partial(len, value)
    if any("__getattr__" in vars(base) for base in kind.__mro__):
        for name in _LIKELY:
            yield f"{kind.__name__}.{name}", functools.partial(getattr, value, name)


@functools.cache
def _members(kind: type) -> Mapping[str, Any]:
    found: dict[str, Any] = {}
    for base in reversed(kind.__mro__):
        if base is not object and is_owned(base):
            found |= {name: member for name, member in vars(base).items() if name[:1] != "_"}
    return found


def _takes(read: Read, least_ns: float, now_ns: Callable[[], int]) -> bool:
    # One that fails takes no time.
    for _ in range(_READS):
        start = now_ns()
        try:
            read()
        except Exception:
            return False
        took = now_ns() - start
        if took < least_ns:
            return False
        if took > _QUICK_NS:
            break
    return True

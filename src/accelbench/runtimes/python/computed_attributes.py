"""Attributes of an answer that are computed when they are read: properties and cached properties.

Which of them a caller would read is not known, so they are not part of the timed step. Those that
take long are named, and an answer that has no values of its own is refused for them.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from types import FunctionType, ModuleType
from typing import Any

from accelbench.core.errors import CaseError
from accelbench.runtimes.python.answers import DEEPEST, arrays
from accelbench.runtimes.python.evaluation import READ_BY, attributes, is_owned, parts

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

    Raises:
        CaseError: an object has such attributes, and no values but those that its call was given.
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
    """Whether a type's own classes have functions or descriptors that a reader may use."""
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
    """Yield the values as arrays; text is none."""
    named = {name: value for name, value in held.items() if not isinstance(value, (str, bytes))}
    yield from (array for array in arrays(named).values() if array.size)


def _holds_only(value: Any, inputs: Any) -> bool:
    """Whether an object has no values but those that its call was given."""
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
    """Return the public members of a type's own classes."""
    found: dict[str, Any] = {}
    for base in reversed(kind.__mro__):
        if base is not object and is_owned(base):
            found |= {name: member for name, member in vars(base).items() if name[:1] != "_"}
    return found


def _takes(read: Read, least_ns: float, now_ns: Callable[[], int]) -> bool:
    """Whether every read takes so long; one that fails takes no time."""
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

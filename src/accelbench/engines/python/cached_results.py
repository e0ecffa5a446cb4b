"""Answers that are handed out again, of a function that is always called with the same inputs.

Other inputs would show a cache by what their first call takes (timing_plausibility.py). A function
with an example of its own has no other inputs. It is refused only if all of these hold for every
value of its answer:

    two calls with copies of the example return the very same object
    a cache or a container of the owner's code keeps it, and has kept it since the first call
    if it can be overwritten, the next call leaves it overwritten: nothing is computed anew

A buffer that each call fills, a constant and a table that is looked up do not meet them.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import gc
import inspect
import sys
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from accelbench.engines.python.answers import DEEPEST, MOST_PARTS
from accelbench.engines.python.evaluation import attributes, is_owned

#: Objects of the owner's code that are looked at.
_MOST_OBJECTS, _MOST_PLACES, _DEEPEST_OBJECT = 5_000, 10_000, 6
_MUTABLE = (list, dict, set, bytearray, deque)
_LRU: type = type(functools.lru_cache(lambda: None))
#: CPython keeps one object of each of these.
_SMALL = range(-5, 257)

#: What is called through another object, and how that is reached.
_WRAPPERS = (
    _LRU, MethodType, staticmethod, classmethod, property, functools.partial,
    functools.cached_property, FunctionType,
)  # fmt: skip
_LEADS = ("__wrapped__", "__self__", "__func__", "func", "fget")

Restore = Callable[[], None]


@dataclass
class OwnedState:
    """What the owner's code kept at some moment: which object each place of it held."""

    held: dict[int, dict[Any, int]] = field(default_factory=dict)  # by container: id by place
    namespaces: set[int] = field(default_factory=set)
    containers: list[Any] = field(default_factory=list)
    caches: list[Any] = field(default_factory=list)
    constants: set[int] = field(default_factory=set)

    def kept(self, container: Any, held: Any, namespace: bool = False) -> list[Any]:
        """Note what a container holds, and return it; of a huge one nothing."""
        if len(held) > _MOST_PLACES:
            return []
        items = list(held.items() if isinstance(held, Mapping) else enumerate(held))
        self.containers.append(container)
        self.held[id(container)] = {place: id(value) for place, value in items}
        if namespace:
            self.namespaces.add(id(container))
        return [value for _place, value in items]

    def forget_objects(self) -> OwnedState:
        """Return the same state by identities only, which keep nothing alive."""
        return OwnedState(self.held, self.namespaces)

    def hits(self) -> list[tuple[Any, int, int]]:
        return [(cache, *cache.cache_info()[:2]) for cache in self.caches]


@dataclass(frozen=True)
class Handout:
    """What two calls with the same inputs show of an answer."""

    kept_by: str = ""  # "cache" or "container": no call computes it; "" if that is not certain
    same: bool = False  # each call returns the same object, which no call can have written
    caches: tuple[str, ...] = ()  # caches of functools in which each call finds something


@dataclass(frozen=True)
class Calls:
    """How a function is called with copies of its example."""

    call: Callable[[Any], Any]
    make_inputs: Callable[[], Any]
    look: Callable[[], OwnedState]


def find_handout(
    calls: Calls, inputs: Any, answer: Any, before: OwnedState, is_quicker: bool
) -> Handout:
    """Return whether a function hands out what an earlier call has made.

    `before` is the state of its owner's code before the first call, which `is_quicker` compares
    later calls with.
    """
    counts = calls.look().hits()
    fresh = calls.make_inputs()
    again = calls.call(fresh)
    now = calls.look()
    hit = [cache for cache, hits, misses in counts if _only_hits(cache, hits, misses)]
    caches = tuple(cache.__name__ for cache in hit if inspect.signature(cache).parameters)
    ignored = now.constants | identities(inputs) | identities(fresh)
    shared = same_objects(answer, again, ignored)
    if not shared:
        return Handout(caches=caches)
    keepers = {keeper_of(value, before, now, hit) for value in shared}
    is_certain = "" not in keepers and (is_quicker or keepers == {"cache"})
    if is_certain and _stay_overwritten(calls, answer, shared, ignored):
        return Handout(min(keepers), caches=caches)
    return Handout(same=not any(map(_is_mutable, shared)), caches=caches)


def _only_hits(cache: Any, hits: int, misses: int) -> bool:
    info = cache.cache_info()
    return bool(info.hits > hits and info.misses == misses)


def _stay_overwritten(calls: Calls, answer: Any, shared: list[Any], ignored: set[int]) -> bool:
    """Return whether the next call returns the values as they were overwritten."""
    changed = [overwritten(value) for value in shared if _is_mutable(value)]
    try:
        if None in changed:
            return False
        third = calls.call(calls.make_inputs()) if changed else answer
        is_same = same_objects(answer, third, ignored) is not None
        return is_same and all(one[0]() for one in changed if one is not None)
    except Exception:  # it needs what it has kept
        return False
    finally:
        for one in changed:
            if one is not None:
                one[1]()


def owned_state(subject: Any, sources: Sequence[str]) -> OwnedState:
    """Look at the modules of an owner's code, and at what is called, as far as they can be seen."""
    state = OwnedState()
    own = set(sources)
    files = ((module, getattr(module, "__file__", None)) for module in [*sys.modules.values()])
    waiting = deque((module, 0) for module, file in files if file in own)
    waiting.append((subject, 0))
    seen: set[int] = set()
    while waiting and len(seen) < _MOST_OBJECTS:
        value, depth = waiting.popleft()
        if id(value) in seen or depth > _DEEPEST_OBJECT:
            continue
        seen.add(id(value))
        waiting.extend((part, depth + 1) for part in _looked_into(value, state))
    return state


def _looked_into(value: Any, state: OwnedState) -> Iterator[Any]:
    """Note what an object keeps, and yield what is to be looked at next."""
    if isinstance(value, _LRU):
        state.caches.append(value)
    elif isinstance(value, FunctionType):
        _note_constants(value.__code__, state)
        yield from value.__closure__ or ()
        yield value.__defaults__
        yield from state.kept(value, vars(value), namespace=True)
    elif isinstance(value, CellType):
        with contextlib.suppress(ValueError):  # it is empty
            yield from state.kept(value, {"": value.cell_contents}, namespace=True)
    elif isinstance(value, (dict, list, tuple, set, frozenset, deque)):
        yield from state.kept(value, value)
    elif isinstance(value, type) and is_owned(value):
        yield from state.kept(value, vars(value), namespace=True)
    elif not isinstance(value, type) and not inspect.isbuiltin(value):
        with contextlib.suppress(Exception):  # an object's attributes may do anything
            held = vars(value) if isinstance(value, ModuleType) else attributes(value)
            yield from state.kept(value, held, namespace=True)
    for name in _LEADS:
        if isinstance(value, _WRAPPERS):
            yield getattr(value, name, None)


def _note_constants(code: CodeType, state: OwnedState) -> None:
    for constant in code.co_consts:
        state.constants.add(id(constant))
        if isinstance(constant, CodeType):
            _note_constants(constant, state)


# -- the same objects in two answers


def same_objects(answer: Any, again: Any, ignored: set[int]) -> list[Any] | None:
    """Return the values that two answers share; None if one of them is a new value.

    `ignored` are objects that are no results: constants of the code and inputs.
    """
    found: list[Any] = []
    return found if _gather_same(answer, again, ignored, found, 0) else None


def _gather_same(one: Any, two: Any, ignored: set[int], found: list[Any], depth: int) -> bool:
    if id(one) in ignored:
        return id(two) in ignored
    if _is_trivial(one):
        return type(one) is type(two) and bool(one == two)
    if _same_memory(one, two):
        found.append(one)
        return True
    if depth > DEEPEST or type(one) is not type(two):
        return False
    parts, others = _answer_parts(one), _answer_parts(two)
    if not parts or len(parts) != len(others) or len(parts) > MOST_PARTS:
        return False
    pairs = zip(parts, others, strict=True)
    return all(_gather_same(*pair, ignored, found, depth + 1) for pair in pairs)


def _is_trivial(value: Any) -> bool:
    if isinstance(value, int):
        return isinstance(value, bool) or value in _SMALL
    if isinstance(value, (str, bytes, tuple, frozenset)):
        return len(value) < (2 if isinstance(value, (str, bytes)) else 1)
    return value is None or value is Ellipsis or isinstance(value, (type, ModuleType, FunctionType))


def _same_memory(one: Any, two: Any) -> bool:
    if isinstance(one, np.ndarray) and isinstance(two, np.ndarray) and one.size:
        return one.ctypes.data == two.ctypes.data and one.shape == two.shape
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(one, torch.Tensor) and isinstance(two, torch.Tensor):
        with contextlib.suppress(RuntimeError):  # it has no storage
            return bool(one.data_ptr() and one.data_ptr() == two.data_ptr())
    # An object of the owner's class is judged by the values that it holds.
    return one is two and not (hasattr(one, "__dict__") and is_owned(type(one)))


def _answer_parts(value: Any) -> list[Any]:
    if isinstance(value, Mapping):
        return list(value.values())
    if isinstance(value, (list, tuple)):
        return list(value)
    return list(attributes(value).values()) if is_owned(type(value)) else []


def identities(value: Any, depth: int = 0) -> set[int]:
    """Return the identities of a value, of what is within it, and of arrays that it views."""
    found = {id(value), id(_root(value))}
    if depth <= DEEPEST:
        for part in _answer_parts(value)[:MOST_PARTS]:
            found |= identities(part, depth + 1)
    return found


def _root(value: Any) -> Any:
    while isinstance(value, np.ndarray) and isinstance(value.base, np.ndarray):
        value = value.base
    return value


# -- what keeps them


def keeper_of(value: Any, before: OwnedState, now: OwnedState, hit: Sequence[Any]) -> str:
    """Return what has kept a value since the first call: "cache", "container" or "" for neither.

    `hit` are the caches of functools that the second call found something in.
    """
    wanted = {id(value), id(_root(value))}
    if any(wanted & _results_of(cache) for cache in hit):
        return "cache"
    # A value may be kept with others: memo[key] = value, seconds.
    wanted |= {
        id(c)
        for c in now.containers
        if isinstance(c, tuple) and wanted & {*now.held[id(c)].values()}
    }
    kept = any(_came_into(container, wanted, before, now) for container in now.containers)
    return "container" if kept else ""


def _results_of(cache: Any) -> set[int]:
    found = set()
    for referent in gc.get_referents(cache):
        found.add(id(referent))
        if isinstance(referent, dict):
            found |= {id(value) for value in referent.values()}
    return found


def _came_into(container: Any, wanted: set[int], before: OwnedState, now: OwnedState) -> bool:
    # A container got the value in the first call, and it alone: a table that was filled then has
    # many entries, of which the value is one.
    if isinstance(container, (tuple, frozenset)):
        return False
    held, had = now.held[id(container)], before.held.get(id(container), {})
    places = [place for place, value in held.items() if value in wanted]
    if not any(had.get(place) != held[place] for place in places):
        return False
    if id(container) in now.namespaces:
        return id(container) in before.namespaces
    return sum(had.get(place) != value for place, value in held.items()) == 1


# -- whether a call writes them


def _is_mutable(value: Any) -> bool:
    torch = sys.modules.get("torch")
    if isinstance(value, np.ndarray):
        return bool(value.flags.writeable)
    return isinstance(value, _MUTABLE) or (torch is not None and isinstance(value, torch.Tensor))


def overwritten(value: Any) -> tuple[Callable[[], bool], Restore] | None:
    """Overwrite a value; return whether it still is, and how its own is restored.

    None for what cannot be overwritten, or is memory of something else, such as a file.
    """
    if isinstance(value, _MUTABLE):
        return _emptied(value) if len(value) else None
    if isinstance(value, np.ndarray):
        root = _root(value)
        if root.base is not None or not value.flags.writeable or value.dtype.kind not in "biufc":
            return None
        saved = value.copy()
        other = 0 if saved.any() else 1
        value[...] = other
        return lambda: bool((value == other).all()), lambda: np.copyto(value, saved)
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        return _filled(value.detach())
    return None


def _emptied(value: Any) -> tuple[Callable[[], bool], Restore]:
    saved = copy.copy(value)

    def restore() -> None:
        value.clear()
        value.update(saved) if isinstance(value, (dict, set)) else value.extend(saved)

    value.clear()
    return lambda: not value, restore


def _filled(tensor: Any) -> tuple[Callable[[], bool], Restore]:
    saved = tensor.clone()
    other = 0 if bool(saved.any()) else 1
    tensor.fill_(other)
    return lambda: bool((tensor == other).all()), lambda: tensor.copy_(saved)

"""Find models whose way through their code depends on the values of their inputs. Imports torch.

A trace keeps the way that its own inputs took. Another input may take another one, and the
exported graph is wrong for it, although it is right for every input that takes the first.

A run is recorded as a graph: each operator, the weights and results that it reads, and the numbers
that Python gave it. A model that reads the value of a tensor that depends on its inputs is run
again: with the opposite of each value, which shows whether the value decides anything, and with
other draws of its inputs, which show whether they take the other way.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode

#: Draws of the inputs. A way that one input in ten takes is missed by one model in 30.
_DRAWS = 32
#: All draws together may take this long, as a large model takes seconds for each.
_MOST_SECONDS = 2.0
#: If no line reads a value, but sizes depend on values, fewer draws are taken.
_DRAWS_OF_SIZES = 8
#: Lines that read a value, of which each is tried with the opposite value.
_MOST_READS = 8

_READS_VALUE = torch.Tag.data_dependent_output
_SIZED_BY_VALUE = torch.Tag.dynamic_output_shape

_UNKNOWN = "a part that could not be followed"

Inputs = Mapping[str, torch.Tensor]


@dataclass
class Way:
    """One run of a module: its graph, and the lines of code that read values of its inputs."""

    graph: list[Any] = field(default_factory=list)
    places: list[str] = field(default_factory=list)
    has_free_sizes: bool = False  # the size of a result depends on values
    reads_numbers: bool = False  # a value that was read is not a Boolean


@dataclass(frozen=True)
class ValueDependence:
    """How the way of a module depends on values.

    Attributes:
        varies: two draws of the inputs took different ways.
        place: the line of code that decides the way; "" if no line is known.
        draws: draws that took the same way, if there is another one.
    """

    varies: bool = False
    place: str = ""
    draws: int = 0

    @property
    def is_undetermined(self) -> bool:
        """Whether there is another way that no draw took."""
        return bool(self.place) and not self.varies


def find_value_dependence(
    run: Callable[[Inputs], Any], module: torch.nn.Module, draw: Callable[[int], Inputs]
) -> ValueDependence:
    """Return how the way of a module depends on the values of its inputs.

    Args:
        run: calls the module.
        module: the module; its weights are known by their storages.
        draw: makes inputs; draw 0 is the one that is exported with.
    """
    try:
        recording = _Recording(run, module, draw)
        first = recording.way(0)
    except Exception:  # if it also fails without a recorder, the export reports why
        return ValueDependence(False, _UNKNOWN)
    deciding = recording.deciding_places(first)
    if not (deciding or first.has_free_sizes or first.reads_numbers):
        return ValueDependence()
    place = deciding[0] if deciding else ""
    most = _DRAWS if first.places else _DRAWS_OF_SIZES
    start, draws = time.monotonic(), 1
    while draws < most and time.monotonic() - start < _MOST_SECONDS:
        other = recording.way(draws)
        if other.graph != first.graph:
            return ValueDependence(True, place or next(iter(other.places), ""))
        draws += 1
    return ValueDependence(False, place, draws)


class _Recording:
    """Runs of a module, each recorded."""

    def __init__(
        self, run: Callable[[Inputs], Any], module: torch.nn.Module, draw: Callable[[int], Inputs]
    ) -> None:
        self._run, self._module, self._draw = run, module, draw
        first, second = draw(0), draw(1)
        # Masks of ones and the like are the same in every draw: no value of them is another one.
        self._varying = [name for name, value in first.items() if not value.equal(second[name])]

    def way(self, number: int, opposite: str = "") -> Way:
        """Record a run with a draw of the inputs; the line `opposite` first reads the opposite."""
        inputs = dict(self._draw(number))
        recorder = _Recorder(self._module, inputs, self._varying, opposite)
        torch.manual_seed(0)  # a model that draws numbers draws the same ones
        with torch.no_grad(), _compiling_nothing(), recorder, _ArrayReads(recorder):
            result = self._run(inputs)
        recorder.end(result)
        return recorder.way

    def deciding_places(self, first: Way) -> list[str]:
        """Return the lines that read a value which decides the way.

        If an opposite value raises an exception, the value is only checked.
        """
        places = list(dict.fromkeys(first.places))[:_MOST_READS]
        return [place for place in places if self._decides(first, place)]

    def _decides(self, first: Way, place: str) -> bool:
        try:
            return self.way(0, opposite=place).graph != first.graph
        except Exception:
            return False


@contextmanager
def _compiling_nothing() -> Iterator[None]:
    """Refuse to compile: torch.cond compiles itself, and keeps what it compiles for a recorder."""
    before = torch.compile

    def refuse(*_: Any, **__: Any) -> Any:
        raise RuntimeError("it compiles a part of itself")

    torch.compile = refuse
    try:
        yield
    finally:
        torch.compile = before


class _Recorder(TorchDispatchMode):  # type: ignore[misc]  # mypy skips torch
    """Record the operators of a module, and follow what depends on its inputs."""

    def __init__(
        self,
        module: torch.nn.Module,
        inputs: Inputs,
        varying: list[str],
        opposite: str,
    ) -> None:
        super().__init__()
        own = (*module.named_parameters(), *module.named_buffers(), *inputs.items())
        self._origins: dict[int, str | int] = {_key(tensor): name for name, tensor in own}
        self._dependent: dict[int, StorageWeakRef] = {}
        self._opposite = opposite
        self.way = Way()
        for name in varying:
            self._follow(inputs[name])

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        given = list(_flat((args, (kwargs or {}).values())))
        depends = any(torch.is_tensor(value) and self.depends(value) for value in given)
        # Before the call, which may change a tensor in place.
        origins = [self._origins.get(_key(value)) for value in given if torch.is_tensor(value)]
        result = func(*args, **(kwargs or {}))
        tags = func.tags
        self.way.has_free_sizes |= depends and _SIZED_BY_VALUE in tags
        if depends and _READS_VALUE in tags:
            result = self.read(result)
        # Whole numbers may be sizes. A trace follows those that depend on values.
        kinds = (bool, float, str) if self.way.has_free_sizes else (bool, int, float, str)
        numbers = [str(value) for value in given if isinstance(value, kinds)]
        step = len(self.way.graph)
        self.way.graph.append((str(func), origins, numbers))
        for value in _flat((result, args[:1] if func._schema.is_mutable else ())):
            if torch.is_tensor(value):
                self._origins[_key(value)] = step
                if depends:
                    self._follow(value)
        return result

    def depends(self, tensor: torch.Tensor) -> bool:
        """Return whether a tensor depends on inputs that vary."""
        reference = self._dependent.get(_key(tensor))
        return reference is not None and not reference.expired()

    def read(self, value: Any) -> Any:
        """Record that the code reads a value; return the one that it is given."""
        place = _place()
        self.way.places.append(place)
        self.way.reads_numbers |= not isinstance(value, bool)
        if place != self._opposite:
            return value
        self._opposite = ""
        return _opposite_of(value)

    def end(self, result: Any) -> None:
        """Record which results are the outputs."""
        tensors = [value for value in _flat((result,)) if torch.is_tensor(value)]
        self.way.graph.append([self._origins.get(_key(tensor)) for tensor in tensors])

    def _follow(self, tensor: torch.Tensor) -> None:
        self._dependent[_key(tensor)] = StorageWeakRef(tensor.untyped_storage())


class _ArrayReads(torch.overrides.TorchFunctionMode):  # type: ignore[misc]  # mypy skips torch
    """Record calls that take values out of torch without an operator."""

    def __init__(self, recorder: _Recorder) -> None:
        super().__init__()
        self._recorder = recorder

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        if func in (torch.Tensor.tolist, torch.Tensor.numpy) and self._recorder.depends(args[0]):
            return self._recorder.read(result)
        return result


def _opposite_of(value: Any) -> Any:
    """Return another value of the same type, on the other side of zero."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, list):
        return [_opposite_of(entry) for entry in value]
    return -value - 1 if value >= 0 else -value + 1


def _key(tensor: torch.Tensor) -> int:
    key: int = tensor.untyped_storage()._cdata
    return key


def _flat(values: Any) -> Iterator[Any]:
    for value in values:
        if isinstance(value, Mapping):
            yield from _flat(value.values())
        elif isinstance(value, (list, tuple, type({}.values()))):
            yield from _flat(value)
        else:
            yield value


#: Code of these packages reads values on behalf of the code that calls it.
_LIBRARIES = ("/torch/", "/accelbench/")


def _place() -> str:
    """Return the file and line of the model's code that reads a value."""
    for frame in reversed(traceback.extract_stack(limit=60)):
        if not any(library in frame.filename for library in _LIBRARIES):
            return f"{Path(frame.filename).name}, line {frame.lineno}"
    return "its own code"

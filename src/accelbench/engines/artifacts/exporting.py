"""torch → ONNX: the same names as PyTorch's, weights once, beside the graph. Imports torch.

By tracing (`dynamo=False`): a small model takes 0.3 to 6 s, by torch.export 10 to 60. Constants are
not folded: folding writes a second, transposed copy of tied weights, 54 MB for 28 MB of GPT-2's
small size. Engines fold for themselves.
"""

from __future__ import annotations

import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import numpy as np
import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode

from accelbench.core.case import Shapes
from accelbench.core.errors import UnsupportedError
from accelbench.engines.artifacts.cache import failed, place_trouble
from accelbench.engines.artifacts.external import gather, save
from accelbench.engines.artifacts.recipe import GRAPH, WEIGHTS, Recipe, Tensor
from accelbench.models.build import build_module
from accelbench.models.inputs import make_inputs, named_tensors, tensors

_TYPES = "token_type_ids"


@contextmanager
def applied(names: Sequence[str], module: Any) -> Iterator[None]:
    """Have a module and its library as the workarounds want them."""
    with ExitStack() as stack:
        for name in names:
            if name in _SET:
                _SET[name](module)
            if name == _ZEROS:
                stack.enter_context(_token_types_as_zeros(module))
            for place, attribute, other in _REPLACED.get(name, ()):
                owner = resolve_name(place)
                if hasattr(owner, attribute):  # not every transformers has each of them
                    stack.enter_context(_replaced(owner, attribute, other))
        yield


@contextmanager
def _replaced(owner: Any, name: str, other: Any) -> Iterator[None]:
    before = getattr(owner, name)
    setattr(owner, name, other)
    try:
        yield
    finally:
        setattr(owner, name, before)


def _nothing(*_: Any, **__: Any) -> None:
    return None


def unpadded(tensor: Any, original_size: Any) -> Any:
    """Do transformers' unpad_image with sizes as numbers: round() refuses a traced one."""
    height, width = (int(size) for size in original_size)
    now_height, now_width = int(tensor.shape[1]), int(tensor.shape[2])
    if width / height > now_width / now_height:
        new = int(round(height * (now_width / width), 7))
        pad = (now_height - new) // 2
        return tensor[:, pad : now_height - pad, :]
    new = int(round(width * (now_height / height), 7))
    pad = (now_width - new) // 2
    return tensor[:, :, pad : now_width - pad]


def selective_scan(
    hidden_states: Any,
    dt: Any,
    A: Any,  # noqa: N803 - transformers' names
    B: Any,  # noqa: N803
    C: Any,  # noqa: N803
    D: Any = None,  # noqa: N803
    z: Any = None,
    delta_bias: Any = None,
    delta_softplus: bool = False,
    return_last_state: bool = False,
    **_: Any,
) -> Any:
    """Do transformers' own scan over tokens, exact, without a loop over them."""
    functional = torch.nn.functional
    if delta_bias is not None:
        dt = dt + delta_bias.to(dt.dtype)[..., None]
    if delta_softplus:
        dt = functional.softplus(dt)
    B, C = B.transpose(1, 2), C.transpose(1, 2)  # noqa: N806
    decay = (A[None, :, None, :] * dt[:, :, :, None]).exp()
    step = dt[:, :, :, None] * B[:, None, :, :].float() * hidden_states[:, :, :, None].float()
    y = doubled(decay, step, C)
    if D is not None:
        y = y + hidden_states * D[None, :, None]
    if z is not None:
        y = y * functional.silu(z)
    return (y, None) if return_last_state else y


def doubled(decay: Any, step: Any, read: Any) -> Any:
    """Compute state = decay · state + step for every token, each round reaching twice as far."""
    reach, length = 1, decay.shape[2]
    while reach < length:
        later, earlier = decay[:, :, reach:], step[:, :, :-reach]
        step = torch.cat([step[:, :, :reach], step[:, :, reach:] + later * earlier], 2)
        decay = torch.cat([decay[:, :, :reach], later * decay[:, :, :-reach]], 2)
        reach *= 2
    return (step * read[:, None]).sum(-1)


def contracted(einsum: Callable[..., Any]) -> Callable[..., Any]:
    """Return torch.einsum with X-CLIP's sum, a video's row with its texts', as a product."""

    def other(equation: str, *operands: Any) -> Any:
        if equation != "bd,bkd->bk" or len(operands) != 2:
            return einsum(equation, *operands)
        rows, texts = operands
        return (texts @ rows[:, :, None])[:, :, 0]

    return other


def placed(tokens: Any, mask: Any, rows: Any) -> Any:
    """Do masked_scatter of whole rows, each token reading the row that is its own.

    The mask says the same of every number of a token, as transformers makes it.
    """
    here = mask[..., 0]
    # The how-manieth place of an image a token is; before the first it reads any row for nothing.
    nth = (here.reshape(-1).to(torch.int32).cumsum(0) - 1).clamp(min=0)
    source = rows.reshape(-1, tokens.shape[-1])[nth].reshape(tokens.shape)
    return torch.where(here[..., None], source, tokens)


@contextmanager
def _token_types_as_zeros(module: Any) -> Iterator[None]:
    # Without the buffer, transformers' text embeddings make zeros of the tokens' shape.
    held = [
        (layer, layer._buffers.get(_TYPES))
        for layer in module.modules()
        if _TYPES in layer._buffers
    ]
    for layer, _ in held:
        delattr(layer, _TYPES)
    try:
        yield
    finally:
        for layer, buffer in held:
            layer.register_buffer(_TYPES, buffer, persistent=False)


def written_out(
    values: Any, shape: Sequence[int], weight: Any = None, bias: Any = None, eps: float = 1e-5
) -> Any:
    """Compute torch's layer_norm as means, a product and a root."""
    axes = tuple(range(-len(shape), 0))
    off = values - values.mean(axes, keepdim=True)
    normed = off / ((off * off).mean(axes, keepdim=True) + eps).sqrt()
    if weight is not None:
        normed = normed * weight
    return normed if bias is None else normed + bias


#: Set for good: the module is of this export alone, and nobody asks for the former way again.
_SET: dict[str, Callable[[Any], None]] = {
    "experts_in_batches": lambda module: module.set_experts_implementation("batched_mm"),
    "eager_attention": lambda module: getattr(module, "set_attn_implementation", _nothing)("eager"),
}
_ZEROS = "token_types_as_zeros"
_LLAVA_NEXT = "transformers.models.llava_next.modeling_llava_next"
#: Functions that are others meanwhile, each by its owner and name.
_REPLACED: dict[str, tuple[tuple[str, str, Any], ...]] = {
    "scan_by_doubling": (
        ("transformers.models.mamba.modeling_mamba", "mamba_selective_scan", selective_scan),
    ),
    "no_packed_sequences": (
        ("transformers.masking_utils", "find_packed_sequence_indices", _nothing),
    ),
    "image_sizes_as_numbers": (
        (_LLAVA_NEXT, "unpad_image", unpadded),
        (_LLAVA_NEXT, "torch_compilable_check", _nothing),
    ),
    "layer_norm_written_out": (("torch.nn.functional", "layer_norm", written_out),),
    "product_for_einsum": (("torch", "einsum", contracted(torch.einsum)),),
    "gather_for_scatter": (("torch.Tensor", "masked_scatter", placed),),
}


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
    """How the way of a module depends on values."""

    varies: bool = False  # two draws of the inputs took different ways
    place: str = ""  # the line of code that decides the way; "" if no line is known
    draws: int = 0  # draws that took the same way, if there is another one

    @property
    def is_undetermined(self) -> bool:
        """Return whether there is another way that no draw took."""
        return bool(self.place) and not self.varies


def find_value_dependence(
    run: Callable[[Inputs], Any], module: torch.nn.Module, draw: Callable[[int], Inputs]
) -> ValueDependence:
    """Return how the way of a module depends on the values of its inputs.

    A trace keeps the way that its own inputs took: another input may take another one, and the
    exported graph is wrong for it. A run is recorded as a graph: each operator, what it reads,
    and the numbers that Python gave it. A model that reads the value of a tensor that depends
    on its inputs is run again: with the opposite of each value, which shows whether it decides
    anything, and with other draws, which show whether they take the other way. `draw(0)` is the
    one that is exported with.
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
        compiling = _replaced(torch, "compile", _refuse_to_compile)
        with torch.no_grad(), compiling, recorder, _ArrayReads(recorder):
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


def _refuse_to_compile(*_: Any, **__: Any) -> Any:
    # torch.cond compiles itself, and keeps what it compiles for a recorder.
    raise RuntimeError("it compiles a part of itself")


class _Recorder(TorchDispatchMode):  # type: ignore[misc]  # mypy skips torch
    """Record the operators of a module, and follow what depends on its inputs."""

    def __init__(
        self, module: torch.nn.Module, inputs: Inputs, varying: list[str], opposite: str
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
        reference = self._dependent.get(_key(tensor))
        return reference is not None and not reference.expired()

    def read(self, value: Any) -> Any:
        place = _place()
        self.way.places.append(place)
        self.way.reads_numbers |= not isinstance(value, bool)
        if place != self._opposite:
            return value
        self._opposite = ""
        return _opposite_of(value)

    def end(self, result: Any) -> None:
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
    for frame in reversed(traceback.extract_stack(limit=60)):
        if not any(library in frame.filename for library in _LIBRARIES):
            return f"{Path(frame.filename).name}, line {frame.lineno}"
    return "its own code"


#: Traced at three items: one would be taken for a constant, and what a trace has fixed all the
#: same is seen when it is verified at another batch, which nearly every one is.
_TRACED_BATCH = 3

_OPSET = 18


class Positional(torch.nn.Module):  # type: ignore[misc]  # mypy skips torch
    """A model that takes its inputs in order and gives a tuple of its tensors."""

    def __init__(
        self, module: torch.nn.Module, names: Sequence[str], constants: Mapping[str, Any]
    ) -> None:
        super().__init__()
        self.module = module
        self.names = tuple(names)
        self.constants = dict(constants)

    def forward(self, *inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        fed = dict(zip(self.names, inputs, strict=True))
        return tuple(named_tensors(self.module(**fed, **self.constants)).values())


def export(recipe: Recipe, folder: Path, spill: Path | None = None) -> dict[str, Any]:
    """Write model.onnx and model.data; return the manifest's fields that follow from the export.

    A folder to `spill` to takes weights that the memory does not hold.
    """
    spec = recipe.case.model
    made = build_module(spec, recipe.seed, recipe.weights, recipe.trust_remote_code, spill=spill)
    shapes = recipe.case.shapes
    settled = recipe.static or spec.fixed_batch is not None
    batch = shapes.batch if settled else _TRACED_BATCH
    fed, constants = _fed(recipe, batch, recipe.seed)
    wrapper = Positional(made.module, list(fed), constants)
    with torch.no_grad(), applied(recipe.workarounds, made.module):
        dependence = _refuse_kept_way(recipe, made.module, batch, constants)
        values = named_tensors(made.module(**fed, **constants))
        outputs = _file_names(values, fed)
        _write(recipe, wrapper, fed, outputs, folder / GRAPH)
    external(folder / GRAPH)
    fixed = batch if settled else None
    return {
        "file": GRAPH,
        "inputs": [_tensor(name, name, value, fixed) for name, value in fed.items()],
        "outputs": [_tensor(name, outputs[name], value, fixed) for name, value in values.items()],
        "batch": fixed,
        "weights_digest": made.digest,
        "other_way": dependence.place if dependence.is_undetermined else "",
    }


def _refuse_kept_way(
    recipe: Recipe, module: torch.nn.Module, batch: int, constants: Mapping[str, Any]
) -> ValueDependence:
    """Return how a module's way depends on values; refuse it if a trace would keep one."""
    dependence = find_value_dependence(
        lambda fed: module(**fed, **constants),
        module,
        lambda number: _fed(recipe, batch, recipe.seed + number)[0],
    )
    if dependence.varies and not _keeps_graph(recipe, module):
        raise UnsupportedError(
            "data_dependent",
            f"{recipe.case.model.id} takes another way through its code for other inputs"
            f"{dependence.place and f' ({dependence.place})'}, and an exported graph keeps one way",
            "Measure it with --framework pytorch, or write the choice as torch.where or"
            " torch.cond.",
        )
    return dependence


def _fed(recipe: Recipe, batch: int, seed: int) -> tuple[dict[str, torch.Tensor], dict[str, Any]]:
    """Return the inputs to trace with, and those that are written into the graph as numbers."""
    spec = recipe.case.model
    shapes: Shapes = replace(recipe.case.shapes, batch=batch)
    arrays = make_inputs(spec, shapes, seed)
    rows = {tensor.name: tensor.row for tensor in tensors(spec, shapes) if tensor.row is not None}
    if "image_sizes_as_numbers" not in recipe.workarounds:
        rows = {}
    fed = {
        name: torch.from_numpy(np.ascontiguousarray(value))
        for name, value in arrays.items()
        if name not in rows
    }
    return fed, {name: [list(row) for _ in range(batch)] for name, row in rows.items()}


def _file_names(values: Mapping[str, torch.Tensor], fed: Mapping[str, Any]) -> dict[str, str]:
    # An output that is called as an input is, such as a denoiser's sample, has another name.
    return {name: f"{name}_out" if name in fed else name for name in values}


def _keeps_graph(recipe: Recipe, module: torch.nn.Module) -> bool:
    """Return whether torch.export is used, which refuses a way that depends on values."""
    # Sizes that a program's nodes compute are numbers in a trace: they call operators, not Python.
    return getattr(module, "computes_sizes", False) or "graph_exporter" in recipe.workarounds


def _write(
    recipe: Recipe,
    wrapper: Positional,
    fed: Mapping[str, torch.Tensor],
    outputs: Mapping[str, str],
    path: Path,
) -> None:
    graph = _keeps_graph(recipe, wrapper.module)
    how: dict[str, Any] = {"dynamo": False}
    if graph:
        how = {"dynamo": True, "external_data": True, "verbose": False}
    names = [*fed, *outputs.values()]
    if not recipe.static and recipe.case.model.fixed_batch is None:
        if graph:
            free = {entry.name for entry in recipe.case.model.inputs if "batch" in entry.shape[:1]}
            axes = tuple({0: torch.export.Dim.DYNAMIC} if name in free else {} for name in fed)
            how["dynamic_shapes"] = (axes,)
        else:
            how["dynamic_axes"] = {name: {0: "batch"} for name in names}
    if not graph:
        how |= {"do_constant_folding": False, "opset_version": _OPSET}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.onnx.export(
                wrapper,
                tuple(fed.values()),
                str(path),
                input_names=list(fed),
                output_names=list(outputs.values()),
                **how,
            )
    except Exception as error:
        message = f"{recipe.case.model.id} cannot be exported to ONNX"
        raise place_trouble(error, path.parent.parent) or failed(
            "export_failed", message, error, "exporters"
        ) from error


def external(path: Path) -> None:
    """Keep the weights in one file beside the graph, each once."""
    import onnx

    model = onnx.load(str(path), load_external_data=False)
    if any(
        onnx.external_data_helper.uses_external_data(tensor) for tensor in model.graph.initializer
    ):
        # Beyond 2 GB the exporter writes files of its own: they are joined on the disk.
        gather(model, path, WEIGHTS)
    else:
        save(model, path, WEIGHTS)


def _tensor(name: str, file_name: str, value: torch.Tensor, batch: int | None) -> Tensor:
    shape: list[int | str] = list(value.shape)
    if batch is None and shape and shape[0] == _TRACED_BATCH:
        shape[0] = "batch"
    return Tensor(name, file_name, str(value.dtype).removeprefix("torch."), shape)

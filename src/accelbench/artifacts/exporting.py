"""torch → ONNX: the same names as PyTorch's, weights once, beside the graph. Imports torch.

By tracing (`dynamo=False`): a small model takes 0.3 to 6 s, by torch.export 10 to 60.
Constants are not folded: folding writes a second, transposed copy of tied weights, 54 MB
for 28 MB of GPT-2's small size. Engines fold for themselves.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from accelbench.artifacts.external import gather, save
from accelbench.artifacts.manifest import GRAPH, WEIGHTS, Tensor
from accelbench.artifacts.patches import applied
from accelbench.artifacts.recipe import Recipe
from accelbench.artifacts.trouble import failed, place_trouble
from accelbench.artifacts.ways import ValueDependence, find_value_dependence
from accelbench.catalog.build import built
from accelbench.catalog.inputs import make_inputs, tensors
from accelbench.catalog.outputs import named_tensors
from accelbench.core.case import Shapes
from accelbench.core.errors import UnsupportedError

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
        """The model's tensors in the order of their names."""
        fed = dict(zip(self.names, inputs, strict=True))
        return tuple(named_tensors(self.module(**fed, **self.constants)).values())


def export(recipe: Recipe, folder: Path, spill: Path | None = None) -> dict[str, Any]:
    """Write model.onnx and model.data; the manifest's fields that follow from the export.

    A folder to `spill` to takes weights that the memory does not hold.
    """
    spec = recipe.case.model
    made = built(spec, recipe.seed, recipe.weights, recipe.trust_remote_code, spill=spill)
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
    """Return how the way of a module depends on values, if it can be exported.

    Raises:
        UnsupportedError: other inputs take another way, and a trace would keep one.
    """
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
    """An output that is called as an input is, such as a denoiser's sample, has another name."""
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

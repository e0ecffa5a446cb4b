"""A graph of the user's own as the artefact that others are made of.

It stays where it lies: weights of gigabytes would be on the disk twice. One for fixed sizes is
written anew, as NPUs and browsers take no other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from accelbench.artifacts.manifest import GRAPH, WEIGHTS, Tensor
from accelbench.artifacts.recipe import Recipe
from accelbench.catalog.file_models.unchanged import refuse_changed
from accelbench.catalog.inputs import input_shapes
from accelbench.core.model import FileFormat, FileOutput


def adopt(recipe: Recipe, folder: Path) -> Mapping[str, Any]:
    """The manifest's fields of a model's own file; for fixed sizes, it is written to a folder.

    Raises:
        CaseError: it is no longer there, or no longer what was looked at.
    """
    model = recipe.case.model
    file = model.file
    assert file is not None
    path = Path(file.path)
    refuse_changed(file)
    outputs = file.outputs
    if file.format is FileFormat.NCNN:
        outputs = _outputs_at(recipe, path, outputs)
    inputs = [Tensor(entry.name, entry.name, entry.dtype, entry.shape) for entry in model.inputs]
    fields: dict[str, Any] = {
        "file": str(path),
        "outputs": [Tensor(entry.name, entry.name, entry.dtype, entry.shape) for entry in outputs],
        "batch": file.fixed_batch,
        "weights_digest": file.digest,
    }
    if not recipe.static:
        return {**fields, "inputs": inputs}
    sizes = input_shapes(model, recipe.case.shapes)
    _fix(path, sizes, folder)
    fixed = [replace(entry, shape=sizes[entry.name]) for entry in inputs]
    return {**fields, "file": GRAPH, "inputs": fixed, "batch": recipe.case.shapes.batch}


def _outputs_at(
    recipe: Recipe, path: Path, outputs: Sequence[FileOutput]
) -> tuple[FileOutput, ...]:
    """Outputs with the sizes that they have for a case's inputs; an unfit input is refused."""
    from accelbench.catalog.file_models.ncnn_sizes import item_shapes

    model = recipe.case.model
    sizes = input_shapes(model, recipe.case.shapes)
    items = {entry.name: (entry.dtype, sizes[entry.name][1:]) for entry in model.inputs}
    shapes = item_shapes(path, items)
    return tuple(replace(entry, shape=("batch", *shapes[entry.name])) for entry in outputs)


def _fix(path: Path, sizes: Mapping[str, tuple[int, ...]], folder: Path) -> None:
    """Write a graph for these sizes alone."""
    import onnx

    from accelbench.artifacts.external import save

    graph = onnx.load(str(path))
    for entry in graph.graph.input:
        if entry.name in sizes:
            dimensions = entry.type.tensor_type.shape.dim
            for dimension, size in zip(dimensions, sizes[entry.name], strict=True):
                dimension.dim_value = size
    # What was inferred for free sizes may contradict these.
    del graph.graph.value_info[:]
    save(graph, folder / GRAPH, WEIGHTS)

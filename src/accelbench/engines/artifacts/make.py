"""Making an artefact, stage by stage, each kept in the cache; in a process of its own.

    torch → onnx → onnx-folded, onnx-int8, onnx-qnn-int8, onnx-fp16
                 → ir, ir-int8

A graph of the user's own stays where it lies: weights of gigabytes would be on the disk twice. One
for fixed sizes is written anew, as NPUs and browsers take no other.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from accelbench.core.errors import CaseError
from accelbench.core.identity import to_plain
from accelbench.core.model import FileOutput
from accelbench.engines.artifacts.cache import Cache, Kept, failed, place_trouble
from accelbench.engines.artifacts.recipe import GRAPH, WEIGHTS, Manifest, Recipe, Tensor, versions
from accelbench.models.build import HUB
from accelbench.models.file_models.kinds import ItemShapes, shapes_reader
from accelbench.models.file_models.unchanged import refuse_changed
from accelbench.models.inputs import input_shapes
from accelbench.models.weights import fetch_folder


def make(recipe: Recipe, cache: Cache, spill: Path | None = None) -> Kept:
    """Return the artefact of a recipe, made if it is missing; weights that are too many `spill`."""
    if recipe.weights == HUB and recipe.case.model.hub_ids:
        # The key names the commit that is loaded: it must be there first.
        fetch_folder(recipe.case.model.hub_ids[0], recipe.trust_remote_code)
    key = recipe.key
    artefact = cache.find(key)
    if artefact is not None:
        return artefact
    base = None if recipe.base is recipe else make(recipe.base, cache, spill)
    with cache.making(key) as folder:
        began = time.monotonic()
        fields = _export(recipe, folder, spill) if base is None else _convert(recipe, base, folder)
        seconds = {**(dict(base.manifest.seconds) if base else {})}
        seconds[recipe.wanted.format] = round(time.monotonic() - began, 3)
        manifest = Manifest(
            **{
                **(plain_fields(base.manifest) if base else {}),
                **fields,
                "key": key,
                "format": recipe.wanted.format,
                "model": recipe.case.model.id,
                "workarounds": tuple(recipe.workarounds),
                "versions": versions(recipe.wanted.format),
                "seconds": seconds,
            }
        )
        manifest.save(folder)
    kept = cache.find(key)
    assert kept is not None, "what was just made is there"
    return kept


def plain_fields(manifest: Manifest) -> dict[str, Any]:
    """Return a manifest's fields, as another is begun with."""
    return {name: getattr(manifest, name) for name in to_plain(manifest)}


def _export(recipe: Recipe, folder: Path, spill: Path | None) -> Mapping[str, Any]:
    if recipe.case.model.graph is not None:
        return adopt(recipe, folder)
    from accelbench.engines.artifacts.exporting import export

    return export(recipe, folder, spill)


def _convert(recipe: Recipe, base: Kept, folder: Path) -> Mapping[str, Any]:
    try:
        return _converted(recipe, base, folder)
    except CaseError:
        raise
    except Exception as error:
        wanted = recipe.wanted.format
        message = f"the ONNX graph of {recipe.case.model.id} cannot be made {wanted}"
        need = sum(path.stat().st_size for path in base.folder.iterdir())
        raise place_trouble(error, folder.parent, need) or failed(
            "conversion_failed", message, error, "workarounds"
        ) from error


def _converted(recipe: Recipe, base: Kept, folder: Path) -> Mapping[str, Any]:
    from accelbench.engines.artifacts import external, intermediate, quantising

    wanted, manifest = recipe.wanted.format, base.manifest
    if wanted == "ir":
        return intermediate.convert(base.folder, manifest, folder)
    if wanted == "ir-int8":
        return intermediate.quantise(recipe, base.folder, manifest, folder)
    if wanted == "onnx-folded":
        return external.settle(base.folder, manifest, folder, recipe.case.shapes.batch)
    if wanted == "onnx-fp16":
        return quantising.halve(base.folder, manifest, folder)
    return quantising.quantise(recipe, base.folder, manifest, folder)


def adopt(recipe: Recipe, folder: Path) -> Mapping[str, Any]:
    """Return the manifest's fields of a model's own file; for fixed sizes, write it to a folder."""
    model = recipe.case.model
    file = model.file
    assert file is not None
    path = Path(file.path)
    refuse_changed(file)
    outputs = file.outputs
    if (sizes_of := shapes_reader(file.format)) is not None:
        outputs = _outputs_at(recipe, path, outputs, sizes_of)
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
    recipe: Recipe, path: Path, outputs: Sequence[FileOutput], sizes_of: ItemShapes
) -> tuple[FileOutput, ...]:
    # An input that does not fit is refused.
    model = recipe.case.model
    sizes = input_shapes(model, recipe.case.shapes)
    items = {entry.name: (entry.dtype, sizes[entry.name][1:]) for entry in model.inputs}
    shapes = sizes_of(path, items)
    return tuple(replace(entry, shape=("batch", *shapes[entry.name])) for entry in outputs)


def _fix(path: Path, sizes: Mapping[str, tuple[int, ...]], folder: Path) -> None:
    import onnx

    from accelbench.engines.artifacts.external import save

    graph = onnx.load(str(path))
    for entry in graph.graph.input:
        if entry.name in sizes:
            dimensions = entry.type.tensor_type.shape.dim
            for dimension, size in zip(dimensions, sizes[entry.name], strict=True):
                dimension.dim_value = size
    # What was inferred for free sizes may contradict these.
    del graph.graph.value_info[:]
    save(graph, folder / GRAPH, WEIGHTS)

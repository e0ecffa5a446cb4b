"""Making an artefact, stage by stage, each kept in the cache; in a process of its own.

torch → onnx → onnx-folded, onnx-int8, onnx-qnn-int8, onnx-fp16
             → ir, ir-int8
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from accelbench.artifacts.cache import Cache, Kept
from accelbench.artifacts.manifest import Manifest
from accelbench.artifacts.recipe import Recipe, versions
from accelbench.artifacts.trouble import failed, place_trouble
from accelbench.catalog.build import HUB
from accelbench.catalog.weights import fetched
from accelbench.core.errors import CaseError
from accelbench.core.identity import plain


def make(recipe: Recipe, cache: Cache, spill: Path | None = None) -> Kept:
    """The artefact of a recipe, made if it is not there; weights that are too many `spill`.

    Raises:
        CaseError: it cannot be made; `reason` is export_failed or conversion_failed, one of
            the weights', or that of a cache that cannot be written.
    """
    if recipe.weights == HUB and recipe.case.model.hub_ids:
        # The key names the commit that is loaded: it must be there first.
        fetched(recipe.case.model.hub_ids[0], recipe.trust_remote_code)
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
    """A manifest's fields, as another is begun with."""
    return {name: getattr(manifest, name) for name in plain(manifest)}


def _export(recipe: Recipe, folder: Path, spill: Path | None) -> Mapping[str, Any]:
    if recipe.case.model.graph is not None:
        from accelbench.artifacts.adopted import adopt

        return adopt(recipe, folder)
    from accelbench.artifacts.exporting import export

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
    from accelbench.artifacts import fixed_batch, intermediate, quantising

    wanted, manifest = recipe.wanted.format, base.manifest
    if wanted == "ir":
        return intermediate.convert(base.folder, manifest, folder)
    if wanted == "ir-int8":
        return intermediate.quantise(recipe, base.folder, manifest, folder)
    if wanted == "onnx-folded":
        return fixed_batch.settle(base.folder, manifest, folder, recipe.case.shapes.batch)
    if wanted == "onnx-fp16":
        return quantising.halve(base.folder, manifest, folder)
    return quantising.quantise(recipe, base.folder, manifest, folder)

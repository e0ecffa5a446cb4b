"""Artefacts for tests, made once a session and as small as they go."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
import onnxruntime
import torch

from accelbench.core.case import Case, Shapes, Target
from accelbench.core.protocols import ArtifactFormat
from accelbench.engines.artifacts.cache import Kept
from accelbench.engines.artifacts.make import make
from accelbench.engines.artifacts.recipe import Recipe
from accelbench.models.build import build
from accelbench.models.find import find
from accelbench.models.inputs import make_inputs, named_tensors, settle
from kept_artefacts import kept_artefacts


def case_of(
    model: str, batch: int = 2, precision: str = "fp32", target: str = "onnxruntime/cpu"
) -> Case:
    spec = find(model)
    shapes = Shapes(batch, sequence=16 if spec.sequence else None, steps=2 if spec.steps else None)
    runtime, _, hardware = target.partition("/")
    return Case(spec, Target(runtime, hardware), precision, settle(spec, shapes))


@cache
def made(
    model: str, kind: str = "onnx", static: bool = False, workarounds: tuple[str, ...] = ()
) -> Kept:
    """An artefact with the weights of seed 0."""
    recipe = Recipe(case_of(model), ArtifactFormat(kind, static), workarounds=workarounds)
    return make(recipe, kept_artefacts())


def by_torch(model: str, arrays: Mapping[str, Any]) -> dict[str, Any]:
    """What PyTorch itself gives, with the weights of seed 0."""
    fed = {name: torch.from_numpy(np.ascontiguousarray(one)) for name, one in arrays.items()}
    with torch.no_grad():
        found = named_tensors(build(find(model), seed=0)(**fed))
    return {name: one.numpy() for name, one in found.items()}


def by_engine(kept: Kept, arrays: Mapping[str, Any]) -> dict[str, Any]:
    """What a plain session of ONNX Runtime gives for the same."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 3, 1
    session = onnxruntime.InferenceSession(
        str(kept.folder / kept.manifest.file), options, providers=["CPUExecutionProvider"]
    )
    takes = {one.name for one in session.get_inputs()}
    fed = {one.file_name: arrays[one.name] for one in kept.manifest.inputs}
    values = session.run(
        [one.file_name for one in kept.manifest.outputs],
        {name: value for name, value in fed.items() if name in takes},
    )
    return {one.name: value for one, value in zip(kept.manifest.outputs, values, strict=True)}


def inputs_of(model: str, batch: int = 2, seed: int = 5) -> dict[str, Any]:
    case = case_of(model, batch)
    return dict(make_inputs(case.model, case.shapes, seed))

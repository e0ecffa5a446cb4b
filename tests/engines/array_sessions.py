"""Sessions on artefacts that are made once for all tests, as small as they go."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

from accelbench.core.case import Case, Shapes, Target
from accelbench.core.protocols import Device, Job
from accelbench.core.run_options import JobSettings
from accelbench.engines.artifacts.make import make
from accelbench.engines.artifacts.recipe import Recipe
from accelbench.models.build import build
from accelbench.models.find import find
from accelbench.models.inputs import make_inputs, named_tensors, settle
from kept_artefacts import kept_artefacts


def case_of(
    model: str,
    precision: str = "fp32",
    batch: int = 2,
    target: str = "onnxruntime/cpu",
    **options: Any,
) -> Case:
    spec = find(model)
    shapes = Shapes(batch, sequence=16 if spec.sequence else None, steps=2 if spec.steps else None)
    runtime, _, hardware = target.partition("/")
    return Case(spec, Target(runtime, hardware), precision, settle(spec, shapes), options=options)


def folder_of(runtime: Any, case: Case) -> Path:
    """Where the artefact lies that a runtime wants for a case."""
    return make(Recipe(case, runtime.wants(case)), kept_artefacts()).folder


@contextlib.contextmanager
def opened(runtime: Any, case: Case, device: Device, threads: int = 1) -> Iterator[Any]:
    folder = folder_of(runtime, case)
    session = runtime.open(Job(case, device, JobSettings(threads=threads), artefact=str(folder)))
    try:
        yield session
    finally:
        session.close()


@cache
def _module(model: str) -> torch.nn.Module:
    return build(find(model), seed=0)


def reference(case: Case, seed: int = 0) -> Mapping[str, Any]:
    """PyTorch's outputs for a forward pass of the case's inputs."""
    arrays = make_inputs(case.model, case.shapes, seed)
    fed = {name: torch.from_numpy(np.ascontiguousarray(one)) for name, one in arrays.items()}
    with torch.no_grad():
        found = named_tensors(_module(case.model.id)(**fed))
    return {name: one.numpy() for name, one in found.items()}


def distance(found: Mapping[str, Any], case: Case) -> float:
    """Of the worst output: in parts of what other inputs move."""
    right, other = reference(case), reference(case, seed=99)
    assert list(found) == list(right)
    worst = 0.0
    for name, value in right.items():
        assert found[name].shape == value.shape
        off, moved = found[name] - value, other[name] - value
        worst = max(worst, float(np.sqrt(np.mean(off**2) / np.mean(moved**2))))
    return worst

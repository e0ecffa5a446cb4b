"""What the tests of training share: a model that draws, a case, an opened session."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from made_up import THREE_CLASSES, made_up
from torch import nn

from accelbench.core.case import Case, Shapes, Target
from accelbench.core.model import InputSpec, ModelSpec
from accelbench.core.protocols import Device, Job
from accelbench.core.run_options import JobSettings
from accelbench.core.vocabulary import Mode, Timing
from accelbench.engines.pytorch import PytorchRuntime
from accelbench.engines.pytorch.session import PytorchSession
from accelbench.models.catalogue import MODELS
from accelbench.models.inputs import settle
from accelbench.models.selection import choose

CPU = Device("cpu", "a processor")
SMALL = [m for m in MODELS if "small" in m.sets and m.training is not None]


class Chancy(nn.Module):
    """Draws from every source that models draw from, in training alone."""

    def __init__(self, width: int = 8, explode: bool = False, steep: bool = False) -> None:
        super().__init__()
        self.first = nn.Linear(4, width)
        self.norm = nn.BatchNorm1d(width)
        self.second = nn.Linear(width, 3)
        self.explode = explode
        self.steep = steep

    def forward(self, features: torch.Tensor) -> dict[str, torch.Tensor]:
        hidden = self.norm(self.first(features))
        if self.training:
            hidden = nn.functional.dropout(hidden, 0.1)
            hidden = hidden * float(0.9 + 0.2 * np.random.random())
            hidden = hidden * (0.9 + 0.2 * random.random())
        else:
            torch.rand(1)  # one that evaluation draws must not be missed by the next step
            np.random.random()
            random.random()
        logits = self.second(hidden.tanh() * (1e4 if self.steep else 1.0))
        return {"logits": logits * torch.inf if self.explode else logits}


def chancy(**config: Any) -> ModelSpec:
    fed = InputSpec("features", ("batch", 4))
    return made_up(Chancy, fed, config=config, parameters=83, training=THREE_CLASSES)


def case_of(
    model: ModelSpec | str, precision: str = "fp32", batch: int = 2, **options: Any
) -> Case:
    spec = choose([model], None, (), (), all_models=False)[0] if isinstance(model, str) else model
    assert spec.training is not None
    # Short texts, but for those whose text begins with places of an image.
    places = any(one.lead for one in spec.training_variant.inputs)
    shapes = Shapes(batch, None if places or spec.sequence is None else 16)
    target = Target("pytorch", "cpu")
    return Case(spec, target, precision, settle(spec, shapes), Mode.TRAINING, options=options)


@contextlib.contextmanager
def opened(case: Case, seed: int = 0) -> Iterator[PytorchSession]:
    session = PytorchRuntime().open(Job(case, CPU, JobSettings(seed=seed, threads=1)))
    assert isinstance(session, PytorchSession)
    try:
        yield session
    finally:
        session.close()


def losses(case: Case, seed: int = 0, steps: int = 10) -> Sequence[float]:
    with opened(case, seed) as session:
        return session.sample(session.prepare(case), steps, Timing.EACH).losses


def training_facts(session: PytorchSession) -> Mapping[str, Any]:
    facts: Mapping[str, Any] = session.evidence().details["training"]
    return facts

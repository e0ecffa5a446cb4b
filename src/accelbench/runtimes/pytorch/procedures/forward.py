"""One forward pass."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch

from accelbench.catalog.outputs import named_tensors
from accelbench.core.case import Case
from accelbench.runtimes.pytorch.procedures.base import Inputs, Opened
from accelbench.runtimes.shared.local import Mark


class Forward:
    """The model, called once."""

    phases: tuple[str, ...] = ("step",)

    def __init__(self, case: Case, opened: Opened) -> None:
        self._case = case
        self._opened = opened

    @contextmanager
    def around(self) -> Iterator[None]:
        with torch.inference_mode(), self._opened.autocast():
            yield

    def step(self, inputs: Inputs) -> Any:
        return self._opened.run(**inputs)

    def split(self, inputs: Inputs, mark: Mark) -> Any:
        result = self.step(inputs)
        mark("step")
        return result

    def outputs(self, inputs: Inputs) -> Mapping[str, torch.Tensor]:
        return named_tensors(self.step(inputs))

    def named(self, left: Any) -> Mapping[str, torch.Tensor]:
        return named_tensors(left)

    def drain(self) -> Mapping[str, Any]:
        return {}

"""What sessions of engines that run torch's modules have in common. Imports torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import torch

from accelbench.core.abilities import StepPreview
from accelbench.core.case import Case
from accelbench.core.clock import Clock
from accelbench.core.model import ModelSpec
from accelbench.core.protocols import Evidence, Job
from accelbench.core.vocabulary import Mode
from accelbench.engines.shared.arrays import EngineSession
from accelbench.models.build import Built, build_module
from accelbench.models.inputs import tensors

DTYPES = {
    "fp32": torch.float32,
    "fp16": torch.float16,
    "bf16": torch.bfloat16,
    "amp-fp16": torch.float32,  # weights and inputs stay whole, autocast narrows each operation
    "amp-bf16": torch.float32,
    "int8": torch.float32,  # what is not quantised stays whole
}
T = TypeVar("T")


class ModuleSession(EngineSession):
    """One model on one device in one precision; shapes may change between measurements."""

    _procedure: Any  # of the case that is prepared

    def __init__(self, job: Job, clock: Clock, dtype: torch.dtype) -> None:
        if job.settings.threads:
            torch.set_num_threads(job.settings.threads)
        super().__init__(job, clock)
        self._dtype = dtype
        trains = job.case.mode is Mode.TRAINING
        # A model that is trained may have a head of its own.
        self._spec: ModelSpec = job.case.model.training_variant if trains else job.case.model

    def _build(self) -> Built:
        # In the type that it runs in: 7 billion weights would not fit most hosts in fp32.
        job = self._job
        return build_module(
            self._spec,
            job.settings.seed,
            self._spec.weights_setting(job.settings.weights),
            job.settings.trust_remote_code,
            self._dtype,
            None if job.spill is None else Path(job.spill),
        )

    def _host_inputs(self, case: Case, arrays: Mapping[str, Any]) -> dict[str, torch.Tensor]:
        """Return inputs as tensors on the host, floats in the type that the model runs in."""
        floats = {t.name for t in tensors(case.model, case.shapes, case.mode) if t.dtype == "float"}
        return {
            name: torch.from_numpy(array).to(dtype=self._dtype if name in floats else None)
            for name, array in arrays.items()
        }

    def loaded(self) -> Mapping[str, Any]:
        return self._inputs.columns()

    def _around(self) -> AbstractContextManager[None]:
        raise NotImplementedError

    def _whole_step(self, inputs: Any) -> None:
        """Make a step, which is done when this returns."""
        raise NotImplementedError

    def _recorded(self, inputs: Any, record: Callable[[Callable[[], None]], T]) -> T:
        with self._around():
            found = record(partial(self._whole_step, inputs))
            self._procedure.drain()
        return found

    def weight_values(self, most: int, draw: int) -> Mapping[str, Any]:
        values: Mapping[str, Any] = self._procedure.weight_values(most, draw)
        return values

    def preview_step(self, inputs: Any, most: int, draw: int) -> StepPreview | None:
        with self._around():
            preview: StepPreview | None = self._procedure.preview_step(inputs, most, draw)
        return preview

    def _evidence(self, devices: set[str], engine: str, details: Mapping[str, Any]) -> Evidence:
        return Evidence(
            devices=tuple(sorted(devices)),
            requested=str(self._job.device),
            engine=engine,
            emulated=self._job.device.emulated,
            details=details,
        )

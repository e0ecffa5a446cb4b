"""A model on several devices of one process, which make each training step together.

A step is one program of the whole batch, split by XLA (`layout.py`). On a CPU the devices are
parts of the processor that XLA shows as devices of their own; they have its memory in common.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping, Sequence
from typing import Any

import jax

from accelbench.core.case import Case
from accelbench.core.protocols import Evidence
from accelbench.core.vocabulary import Timing
from accelbench.hardware.machine import threads_of_each
from accelbench.runtimes.jax.engine_errors import case_errors
from accelbench.runtimes.jax.layout import Layout
from accelbench.runtimes.jax.platforms import Platform, name_of
from accelbench.runtimes.jax.profile import readable
from accelbench.runtimes.jax.session import JaxSession

#: Of a device nobody can tell these: why.
_OF_ALL_DEVICES = {
    "step_ms": "a step is one program, and is over when all devices have finished it",
    "threads": "the devices share the threads of one process",
    "host_memory_peak_mb": "the devices share the memory of one process",
}
_NO_PEAK = "the allocator of the device counts no peak, or none since the model was loaded"
#: Steps whose collectives are looked at.
_PROFILED_STEPS = 5


class ShardedSession(JaxSession):
    """One model on as many devices as its case has."""

    def _started(self) -> Platform:
        job = self._job
        threads, count = job.settings.threads, job.case.world_size
        if job.device.hardware == "cpu":
            # Each has its share, at least one: else one that waits would keep the next from coming.
            threads = count * threads_of_each(threads, count)
        return Platform(job.device.hardware, job.device.ordinal, threads, count)

    def _laid_out(self) -> Layout:
        return Layout.over(self._platform.devices, self._strategy)

    @property
    def _strategy(self) -> str:
        return str(self._job.case.options.get("strategy", "ddp"))

    def exchanged(self, case: Case) -> Mapping[str, Any]:
        """What the devices spend on each other, profiled: columns, and under "ranks" each one's."""
        from accelbench.runtimes.jax.programs import exchanged

        inputs = self.prepare(case)
        self.sample(inputs, 2, Timing.EACH)

        def step() -> None:
            self._step(self._prepared, inputs)
            self._synchronize()

        with case_errors():
            columns = exchanged(step, self._clock, _PROFILED_STEPS, self._layout.devices)
            self._prepared.drain()
        return columns

    def evidence(self) -> Evidence:
        told = super().evidence()
        program = self._program
        ranks = self._each()
        together = {
            "strategy": self._strategy,
            "backend": "XLA",
            "processes": 1,
            "devices": [str(device) for device in self._platform.devices],
            "of_each_device": self._job.case.shapes.batch // self._layout.devices,
            "split_weights": sum(_is_split(w) for w in self._model.weights.values()),
            "weights": len(self._model.weights),
            "collectives": {} if program is None else program.collectives,
            "ranks": ranks,
            "not_known": _not_known(ranks),
        }
        return Evidence(
            devices=tuple(sorted({_shared(name) for name in told.devices})),
            requested=told.requested,
            engine=told.engine,
            emulated=told.emulated,
            details={**told.details, "distributed": together},
        )

    def _each(self) -> list[dict[str, Any]]:
        """The devices as ranks have it; what the profiler tells of each stands beside them."""
        on_cpu = self._job.device.hardware == "cpu"
        return [
            {
                "rank": number,
                "host": socket.gethostname(),
                "device": "cpu" if on_cpu else name_of(device),
                "threads": None,
                "step_ms": None,
                "host_memory_peak_mb": None,
                "device_memory_peak_bytes": peak,
            }
            for number, (device, peak) in enumerate(
                zip(self._platform.devices, self._platform.peaks(), strict=True)
            )
        ]


def _not_known(ranks: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Why figures of a device are empty that a rank with a process of its own would have."""
    reasons = dict(_OF_ALL_DEVICES)
    if any(rank["device_memory_peak_bytes"] is None for rank in ranks):
        reasons["device_memory_peak_bytes"] = _NO_PEAK
    if not readable():
        reasons["communication"] = f"jax {jax.__version__} cannot read what XLA's profiler says"
    return reasons


def _shared(device: str) -> str:
    """A device as what several have in common: parts of a processor are that processor."""
    kind = device.partition(":")[0]
    return "cpu:0" if kind == "cpu" else kind


def _is_split(weight: jax.Array) -> bool:
    return not weight.is_fully_replicated

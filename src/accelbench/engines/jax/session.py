"""A model opened in JAX: built by torch, lowered, compiled, stepped, and asked if it ran."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch

from accelbench.core.case import Case
from accelbench.core.clock import Clock
from accelbench.core.errors import UnsupportedError
from accelbench.core.precision import weight_types
from accelbench.core.profile import Profile
from accelbench.core.protocols import Block, DeviceMemory, Evidence, Job
from accelbench.core.vocabulary import Timing
from accelbench.engines.jax.platforms import Layout, Platform, name_of
from accelbench.engines.jax.procedures import Example, Model, Opened, Procedure, make
from accelbench.engines.jax.programs import Program, Programs, exchanged, profile, readable
from accelbench.engines.shared.engine import first_line, memory_errors
from accelbench.engines.shared.local import LocalSampler
from accelbench.engines.shared.modules import DTYPES, ModuleSession
from accelbench.engines.shared.sketches import Sketch, sketch
from accelbench.hardware.machine import threads_of_each
from accelbench.models.build import Built
from accelbench.models.inputs import tensors


@contextmanager
def case_errors() -> Iterator[None]:
    """Turn what XLA and torch raise into errors of the case."""
    try:
        with memory_errors():
            yield
    except NotImplementedError as error:  # of forms of operators that the table refuses
        raise UnsupportedError(
            "operator",
            f"the jax runtime has no counterpart of {first_line(error)}",
            "Use --framework pytorch.",
        ) from error


class JaxSession(ModuleSession):
    """One model on one device in one precision; shapes may change between measurements.

    Every shape is a program of its own, made by `compile` or else by the first step, whose
    block then says how long that took.
    """

    def __init__(self, job: Job, clock: Clock) -> None:
        super().__init__(job, clock, DTYPES[job.case.precision])
        self._platform = self._started()
        self._layout = self._laid_out()
        if job.case.precision == "fp32":
            # fp32 means fp32: XLA's own default lets GPUs round to TF32 and TPUs to bf16.
            jax.config.update("jax_default_matmul_precision", "highest")
        with case_errors():
            made: Built = self._timed("build", self._build)
            self.weights_digest = made.digest
            module = made.module.to(self._dtype)
            self._model = self._timed("load", lambda: self._placed(module))
            del made
        self._programs = Programs(clock, job.case.precision)
        self._opened = Opened(job, self._model, self._programs)
        self._procedure: Procedure | None = None
        self._program: Program | None = None
        self._last: Any = None  # what the step before left on its way to the device

    def _placed(self, module: torch.nn.Module) -> Model:
        model = Model(module, lambda: self._build().module, self._layout)
        jax.block_until_ready(model.weights)
        return model

    def _started(self) -> Platform:
        job = self._job
        return Platform(job.device.hardware, job.device.ordinal, job.settings.threads)

    def _laid_out(self) -> Layout:
        return Layout.on(self._platform.device)

    def _around(self) -> AbstractContextManager[None]:
        return case_errors()

    @property
    def _prepared(self) -> Procedure:
        if self._procedure is None:
            raise ValueError("no case is prepared")
        return self._procedure

    def prepare(self, case: Case, seed: int | None = None) -> dict[str, jax.Array]:
        with case_errors():
            host = self._host_inputs(case, self._inputs.arrays(case, seed))
            specs = tensors(case.model, case.shapes, case.mode)
            rows = {t.name for t in specs if t.row}
            example = Example(
                {name: torch.empty_like(t) for name, t in host.items() if name not in rows},
                {name: t.tolist() for name, t in host.items() if name in rows},
                frozenset(t.name for t in specs if t.shape and t.shape[0] == "batch"),
            )
            # First the old one, with its optimizer's state: there may be no room for both.
            self._procedure = self._program = self._last = None
            self._procedure = make(case, self._opened, example)
            self.phases = self._procedure.phases
            fed = {name: tensor for name, tensor in host.items() if name not in rows}
            return example.arrays(self._layout, fed)

    def compile(self, inputs: Any) -> int | None:
        # Tracing, lowering and XLA's compiling; what torch takes to write its graph down is in the
        # evidence.
        before = self._programs.count
        with case_errors():
            self._program = self._prepared.compile()
        return self._program.compile_ns if self._programs.count > before else 0

    def sample(self, inputs: Any, n: int, timing: Timing) -> Block:
        sampler = LocalSampler(
            clock=self._clock,
            step=partial(self._step, self._prepared),
            synchronize=self._synchronize,
            around=case_errors,
            compiled=lambda: (self._programs.count, self._programs.total_ns),
            drain=self._prepared.drain,
        )
        return sampler.sample(inputs, n, timing)

    def _step(self, procedure: Procedure, inputs: Any) -> None:
        self._last = None  # or the outputs of two steps would be alive at once
        self._last = procedure.step(inputs)

    def _synchronize(self) -> None:
        # Whatever came before the last step is done too if a backend runs in order.
        jax.block_until_ready(self._last)

    def profile(self, inputs: Any, steps: int, traces: Path | None) -> Profile:
        device = str(self._job.device)
        return self._recorded(
            inputs, lambda step: profile(step, self._clock, steps, device, traces)
        )

    def _whole_step(self, inputs: Any) -> None:
        self._step(self._prepared, inputs)
        self._synchronize()

    def stepped(self, most: int) -> Mapping[str, Sketch]:
        if self._last is None or self._procedure is None:
            return {}
        with case_errors():
            # Picked on the host: a program that picks would have to be compiled.
            sketches = sketch(self._procedure.named(self._last), most)
        return {name: Sketch(part.shape, _widened(part.values)) for name, part in sketches.items()}

    def inspect(self, inputs: Any) -> None:
        with case_errors():
            self._look(self._prepared.look(inputs))
            # The next step may write over what the one before it left.
            self._last = None

    def outputs(self, inputs: Any) -> dict[str, Any]:
        self._last = None
        with case_errors():
            arrays = self._prepared.outputs(inputs)
            self._look(arrays)
            return {name: _widened(np.asarray(value)) for name, value in arrays.items()}

    @contextmanager
    def other_weights(self) -> Iterator[None]:
        # Doubled: exact both ways, since a power of two only moves the exponent.
        kept = self._model.double()
        try:
            yield
        finally:
            self._model.halve(kept)

    @contextmanager
    def without_dropout(self) -> Iterator[None]:
        # What is prepared within is a program of its own.
        self._opened.drops = False
        try:
            yield
        finally:
            self._opened.drops = True

    def _look(self, outputs: Mapping[str, jax.Array]) -> None:
        values = jax.block_until_ready(list(outputs.values()))
        devices = {name_of(d) for value in values for d in value.devices()}
        self._output_facts = {
            "output_devices": sorted(devices),
            "output_dtypes": sorted({str(value.dtype) for value in values}),
            "outputs_finite": all(_finite(value) for value in values),
        }

    def reset_memory(self) -> None:
        self._platform.reset_memory()

    def device_memory(self) -> DeviceMemory | None:
        return self._platform.memory()

    def evidence(self) -> Evidence:
        weights = self._model.weights.values()
        seen = {name_of(d) for weight in weights for d in weight.devices()}
        seen.update(self._output_facts.get("output_devices", ()))
        procedure = self._procedure
        return self._evidence(
            seen,
            f"jax {jax.__version__}",
            {
                **weight_types((str(weight.dtype), weight.size) for weight in weights),
                "jaxlib": version("jaxlib"),
                "torch": torch.__version__,
                **self._output_facts,
                **self._compiled_facts(),
                **self._inputs.details(),
                **({} if procedure is None else procedure.facts()),
                **self._platform.facts(),
            },
        )

    def _compiled_facts(self) -> dict[str, Any]:
        program = self._program
        if program is None:
            return {}
        return {
            "compiled": {f"{part}_ms": ns / 1e6 for part, ns in program.parts.items()},
            "computed_in": program.multiplied_in,
            "compiled_flops": program.flops,
        }

    def close(self) -> None:
        # Not deleted but emptied: closing twice is no error.
        self._procedure = self._program = self._last = None
        self._programs.forget()
        self._model.module = torch.nn.Module()
        self._model.weights = {}


def _widened(values: Any) -> Any:
    # 16-bit floats: NumPy knows no bf16, and verification wants numbers.
    return values.astype(np.float32) if jnp.issubdtype(values.dtype, jnp.floating) else values


@jax.jit  # type: ignore[untyped-decorator]
def _extremes_finite(value: Any) -> Any:
    # Without a temporary of the array's size: NaN passes through its extremes.
    return jnp.isfinite(jnp.min(value)) & jnp.isfinite(jnp.max(value))


def _finite(value: jax.Array) -> bool:
    has_floats = jnp.issubdtype(value.dtype, jnp.floating) and value.size
    return not has_floats or bool(_extremes_finite(value))


# -- several devices

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
    """A model on several devices of one process, which make each training step together.

    A step is one program of the whole batch, split by XLA (`Layout`). On a CPU the devices are
    parts of the processor that XLA shows as devices of their own; they have its memory in common.
    """

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
        inputs = self.prepare(case)
        self.sample(inputs, 2, Timing.EACH)
        clock, devices = self._clock, self._layout.devices
        return self._recorded(inputs, lambda step: exchanged(step, clock, _PROFILED_STEPS, devices))

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
            "split_weights": sum(not w.is_fully_replicated for w in self._model.weights.values()),
            "weights": len(self._model.weights),
            "collectives": {} if program is None else program.collectives,
            "ranks": ranks,
            "not_known": _not_known(ranks),
        }
        devices = {_shared(name) for name in told.devices}
        return self._evidence(devices, told.engine, {**told.details, "distributed": together})

    def _each(self) -> list[dict[str, Any]]:
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
    reasons = dict(_OF_ALL_DEVICES)
    if any(rank["device_memory_peak_bytes"] is None for rank in ranks):
        reasons["device_memory_peak_bytes"] = _NO_PEAK
    if not readable():
        reasons["communication"] = f"jax {jax.__version__} cannot read what XLA's profiler says"
    return reasons


def _shared(device: str) -> str:
    # Parts of a processor are that processor.
    kind = device.partition(":")[0]
    return "cpu:0" if kind == "cpu" else kind

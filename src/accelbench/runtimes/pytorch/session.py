"""A model opened in PyTorch: built, placed, stepped, and asked where it ran."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from accelbench.catalog.build import Built, built
from accelbench.catalog.inputs import tensors
from accelbench.catalog.narrow import in_precision
from accelbench.core.abilities import StepPreview
from accelbench.core.case import Case
from accelbench.core.clock import Clock
from accelbench.core.model import ModelSpec
from accelbench.core.precision import weight_types
from accelbench.core.profile import Profile
from accelbench.core.protocols import Block, DeviceMemory, Evidence, Job
from accelbench.core.vocabulary import Mode, Timing
from accelbench.runtimes.pytorch import int8
from accelbench.runtimes.pytorch.compiling import allow_many_graphs, compile_totals
from accelbench.runtimes.pytorch.doubling import doubled
from accelbench.runtimes.pytorch.engine_errors import memory_errors
from accelbench.runtimes.pytorch.module_state import ModuleState
from accelbench.runtimes.pytorch.places import TorchPlace, place_for
from accelbench.runtimes.pytorch.procedures import Opened, Procedure, Settling, Telling, make
from accelbench.runtimes.pytorch.procedures.chance import chances_kept, dropped_nothing, seed_all
from accelbench.runtimes.pytorch.procedures.forward import Forward
from accelbench.runtimes.pytorch.procedures.train import Train
from accelbench.runtimes.pytorch.rounding import Rounded
from accelbench.runtimes.shared.inputs import Inputs
from accelbench.runtimes.shared.local import LocalSampler
from accelbench.runtimes.shared.sketches import Sketch, places

_DTYPES = {
    "fp32": torch.float32,
    "fp16": torch.float16,
    "bf16": torch.bfloat16,
    "amp-fp16": torch.float32,  # weights and inputs stay whole, autocast narrows each operation
    "amp-bf16": torch.float32,
    "int8": torch.float32,  # what is not quantised stays whole
}
_AUTOCAST = {"amp-fp16": torch.float16, "amp-bf16": torch.bfloat16}


def _trains(case: Case) -> bool:
    return case.mode is Mode.TRAINING


def _weights_dtype(case: Case) -> torch.dtype:
    """Training keeps fp32 weights, whatever it calculates in, unless pure is asked for."""
    if _trains(case) and not case.options.get("pure"):
        return torch.float32
    return _DTYPES[case.precision]


def _autocast_dtype(case: Case) -> torch.dtype | None:
    if _trains(case) and not case.options.get("pure"):
        dtype = _DTYPES[case.precision.removeprefix("amp-")]
        return None if dtype is torch.float32 else dtype
    return _AUTOCAST.get(case.precision)


class PytorchSession:
    """One model on one device in one precision; shapes may change between measurements."""

    def __init__(self, job: Job, clock: Clock) -> None:
        case = job.case
        if job.settings.threads:
            torch.set_num_threads(job.settings.threads)
        self._job = job
        self._precision = case.precision
        self._dtype = _weights_dtype(case)
        self._narrow = _autocast_dtype(case)
        self._spec: ModelSpec = case.model.trained if _trains(case) else case.model
        self._place: TorchPlace = place_for(torch, job.device.hardware, job.device.ordinal)
        self.device_timed = self._place.timer is not None
        self.timings: dict[str, int] = {}
        self._quantised: dict[str, Any] = {}
        self._looked_with: Any = None
        self._replays = False  # each run draws the same numbers
        with memory_errors():
            made: Built = self._timed(clock, "build", self._build)
            self.weights_digest = made.digest
            self._module = self._timed(clock, "load", partial(self._load, made.module))
            del made
        # What of a module of its owner's nobody has read may change as it is called.
        watched = self._spec.code is not None and not _trains(case)
        self._state = ModuleState(self._module) if watched else None
        self._run: Callable[..., Any] = self._runnable(self._module)
        self._opened = Opened(
            job, self._module, self._run, self._place, clock, self._autocast, self._initial
        )
        self._use(self._procedure_of(case))
        self._output_facts: dict[str, Any] = {}
        self._inputs = Inputs(job, clock)

    def _runnable(self, module: torch.nn.Module) -> Callable[..., Any]:
        """What a step calls: the module, or what is made of it."""
        run: Callable[..., Any] = module
        if self._job.case.compiled:
            # Static shapes: with dynamic ones, the second batch size of a worker would
            # silently run other code than the first.
            allow_many_graphs()
            self._compiled_before = compile_totals()[0]
            mode = self._job.case.options.get("compile_mode")
            run = torch.compile(module, dynamic=False, mode=None if mode is None else str(mode))
        return run

    def _procedure_of(self, case: Case) -> Procedure:
        return make(case, self._opened)

    def _arrays(self, case: Case, seed: int | None) -> Mapping[str, Any]:
        return self._inputs.arrays(case, seed)

    def _use(self, procedure: Procedure) -> None:
        self._procedure = procedure
        self.phases = procedure.phases
        self._sampler = LocalSampler(
            clock=self._opened.clock,
            step=procedure.step,
            synchronize=self._place.synchronize,
            split=procedure.split,
            timer=self._place.timer,
            around=self._around,
            compiled=compile_totals if self._job.case.compiled else lambda: (0, 0),
            drain=procedure.drain,
        )

    def _timed(self, clock: Clock, name: str, do: Callable[[], Any]) -> Any:
        start = clock.now_ns()
        made = do()
        if self._place.synchronize is not None:
            self._place.synchronize()
        self.timings[name] = clock.now_ns() - start
        return made

    def _build(self) -> Built:
        """In the type that it runs in: 7 billion weights would not fit most hosts in fp32."""
        job = self._job
        spill = None if job.spill is None else Path(job.spill)
        return built(
            self._spec,
            job.settings.seed,
            self._spec.weights_from(job.settings.weights),
            job.settings.trust_remote_code,
            self._dtype,
            spill,
        )

    def _load(self, module: torch.nn.Module) -> torch.nn.Module:
        if self._narrow is not None and hasattr(module, "set_experts_implementation"):
            # Autocast does not reach the grouped products of experts: they would stay in fp32.
            module.set_experts_implementation("eager")
        placed = in_precision(module, self._dtype, self._place.device).eval()
        if self._precision == "int8":
            self._quantised = int8.quantise(placed)
        return placed

    def _initial(self) -> Mapping[str, torch.Tensor]:
        state: Mapping[str, torch.Tensor] = self._build().module.state_dict()
        return state

    def _autocast(self) -> AbstractContextManager[Any]:
        if self._narrow is None:
            return nullcontext()
        context: AbstractContextManager[Any] = torch.autocast(
            self._place.device.type, dtype=self._narrow
        )
        return context

    @contextmanager
    def _around(self) -> Iterator[None]:
        with memory_errors(), self._int8_refusals(), self._procedure.around():
            yield

    def _int8_refusals(self) -> AbstractContextManager[None]:
        return int8.refusals() if self._precision == "int8" else nullcontext()

    def prepare(self, case: Case, seed: int | None = None) -> dict[str, torch.Tensor]:
        with memory_errors():
            self._use(self._procedure_of(case))
            inputs = self._placed(case, self._arrays(case, seed))
            if isinstance(self._procedure, Settling):
                self._procedure.settle(inputs)
            return inputs

    def _placed(self, case: Case, arrays: Mapping[str, Any]) -> dict[str, torch.Tensor]:
        floats = {i.name for i in tensors(case.model, case.shapes, case.mode) if i.dtype == "float"}
        return {
            name: torch.from_numpy(array).to(
                device=self._place.device, dtype=self._dtype if name in floats else None
            )
            for name, array in arrays.items()
        }

    def loaded(self) -> Mapping[str, Any]:
        return self._inputs.columns()

    def compile(self, inputs: Any) -> int | None:
        """torch.compile works at the first call; that call's block carries its time."""
        return None

    def sample(self, inputs: Any, n: int, timing: Timing) -> Block:
        return self._sampler.sample(inputs, n, timing)

    def profile(self, inputs: Any, steps: int, traces: Path | None) -> Profile:
        from accelbench.runtimes.pytorch.profile import profile

        def step() -> None:
            self._procedure.step(inputs)
            if self._place.synchronize is not None:
                self._place.synchronize()

        with self._around():
            report = profile(step, self._opened.clock, steps, str(self._job.device), traces)
            self._procedure.drain()
            return report

    def stepped(self, most: int) -> Mapping[str, Sketch]:
        left = self._sampler.left
        if left is None:
            return {}
        sketches = {}
        with self._around():
            for name, tensor in self._procedure.named(left).items():
                # Picked where it lies: on a device the whole of it would be copied.
                where = torch.from_numpy(places(tensor.numel(), most)).to(tensor.device)
                some = tensor.reshape(-1)[where]
                some = some.float() if some.is_floating_point() else some.resolve_conj()
                sketches[name] = Sketch(tuple(tensor.shape), some.cpu().numpy())
        return sketches

    def weight_values(self, most: int, draw: int) -> Mapping[str, Any]:
        return self._training.weight_values(most, draw)

    def preview_step(self, inputs: Any, most: int, draw: int) -> StepPreview | None:
        with self._around():
            return self._training.preview_step(inputs, most, draw)

    @property
    def _training(self) -> Train:
        assert isinstance(self._procedure, Train)
        return self._procedure

    def inspect(self, inputs: Any) -> None:
        self._sampler.left = None
        self._looked_with = inputs
        with self._around():
            self._look(self._procedure.outputs(inputs))

    def _int8_facts(self) -> dict[str, Any]:
        """That what was quantised was computed in int8: counted in a step of its own."""
        if not self._quantised or self._looked_with is None:
            return self._quantised
        if "int8_products" not in self._quantised:
            with self._around():
                facts = int8.products(lambda: self._procedure.outputs(self._looked_with))
            self._quantised |= facts
        return self._quantised

    def outputs(self, inputs: Any) -> dict[str, Any]:
        self._sampler.left = None
        if self._quantised:
            self._looked_with = inputs
        if self._replays:
            seed_all(self._job.settings.seed)
        with self._around():
            values = self._procedure.outputs(inputs)
            self._look(values)
            return {
                name: (t.float() if t.is_floating_point() else t.resolve_conj()).cpu().numpy()
                for name, t in values.items()
            }

    def exact(self, inputs: Any) -> dict[str, Any]:
        """In fp64, by the same module; it stays in it."""
        self._module.double()
        wide = {name: t.double() if t.is_floating_point() else t for name, t in inputs.items()}
        with self._around():
            return {name: t.cpu().numpy() for name, t in self._procedure.outputs(wide).items()}

    def rounded(self, inputs: Any, precision: str) -> dict[str, Any]:
        """The same pass with its numbers rounded."""
        with self._around(), Rounded(precision):
            outputs = self._procedure.outputs(inputs)
        return {name: t.cpu().numpy() for name, t in outputs.items()}

    def narrow_products(self) -> AbstractContextManager[Any]:
        return Rounded("tf32")

    def nudge(self, by: float) -> None:
        with torch.no_grad():
            for weight in self._doubling():
                flat = torch.arange(weight.numel(), device=weight.device).reshape(weight.shape)
                weight.mul_(1 + by * (1 - 2 * (flat % 2)))

    def other_weights(self) -> AbstractContextManager[None]:
        return doubled(self._doubling())

    def _doubling(self) -> list[torch.Tensor]:
        return [p for p in int8.plain(self._module.parameters()) if p.is_floating_point()]

    @contextmanager
    def same_draws(self) -> Iterator[None]:
        self._replays = True
        try:
            with chances_kept(self._place.device):
                yield
        finally:
            self._replays = False

    def without_dropout(self) -> AbstractContextManager[None]:
        return dropped_nothing(self._module)

    def _look(self, outputs: Mapping[str, torch.Tensor]) -> None:
        values = outputs.values()
        self._output_facts = {
            "output_devices": sorted({str(t.device) for t in values}),
            "output_dtypes": sorted({str(t.dtype).removeprefix("torch.") for t in values}),
            "outputs_finite": all(_finite(t) for t in values),
        }

    def reset_memory(self) -> None:
        self._place.reset_memory()

    def device_memory(self) -> DeviceMemory | None:
        return self._place.memory()

    def evidence(self) -> Evidence:
        """Read back from the tensors themselves after they were computed."""
        weights = {str(p.device) for p in self._module.parameters()}
        seen = weights.union(self._output_facts.get("output_devices", ()))
        hardware = self._job.device.hardware
        return Evidence(
            devices=tuple(sorted(self._named(name, hardware) for name in seen)),
            requested=str(self._job.device),
            engine=f"torch {torch.__version__}",
            emulated=self._job.device.emulated,
            details={
                **weight_types((int8.stored_type(p), p.numel()) for p in self._module.parameters()),
                "autocast": self._cast_to(),
                **self._compiling_facts(),
                **self._output_facts,
                **({} if self._state is None else self._changes(self._state)),
                **self._int8_facts(),
                **self._inputs.details(),
                **(self._procedure.facts() if isinstance(self._procedure, Telling) else {}),
                **self._place.facts(),
            },
        )

    def _compiling_facts(self) -> dict[str, int]:
        if not self._job.case.compiled:
            return {}
        return {"compiled_graphs": compile_totals()[0] - self._compiled_before}

    def _cast_to(self) -> str | None:
        """Return the type that torch casts products to within a step; None if it casts nothing."""
        kind = self._place.device.type
        with self._autocast():
            is_on = torch.is_autocast_enabled(kind)
            return str(torch.get_autocast_dtype(kind))[6:] if is_on else None

    def _changes(self, state: ModuleState) -> dict[str, list[str]]:
        with torch.inference_mode():
            return {"state_changed": state.changed(self._module)}

    def _named(self, name: str, hardware: str) -> str:
        """torch's "cpu" or "cuda:1" in our words: with an ordinal always.

        ROCm's PyTorch calls its devices "cuda"; CudaPlace has proved the build.
        """
        kind, _, ordinal = name.partition(":")
        return f"{hardware if kind == self._place.device.type else kind}:{ordinal or 0}"

    def close(self) -> None:
        # Not deleted but replaced: closing twice is no error.
        self._module = torch.nn.Module()
        self._run = self._module
        self._opened = replace(self._opened, module=self._module, run=self._run)
        self._use(Forward(self._job.case, self._opened))


def _finite(tensor: torch.Tensor) -> bool:
    """Without a temporary of the tensor's size: its extremes tell, and NaN passes through them."""
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor.resolve_conj())
    if not tensor.is_floating_point() or tensor.numel() == 0:
        return True
    low, high = torch.aminmax(tensor)
    return bool(torch.isfinite(low)) and bool(torch.isfinite(high))

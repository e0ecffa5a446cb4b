"""A model opened in PyTorch: built, placed, stepped, and asked if it ran.

Where a step's time goes in PyTorch, by torch.profiler.

On the CPU it is an operator's own time, without the operators that it calls; on another device the
time of the kernels that it started there, which run beside the host.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ProfilerActivity, record_function
from torch.utils._python_dispatch import TorchDispatchMode

from accelbench.core.case import Case
from accelbench.core.clock import Clock
from accelbench.core.precision import weight_types
from accelbench.core.profile import OperatorTime, Profile, build_profile
from accelbench.core.protocols import Block, DeviceMemory, Evidence, Job
from accelbench.core.vocabulary import Mode, Timing
from accelbench.engines.pytorch import int8
from accelbench.engines.pytorch.places import TorchPlace, place_for
from accelbench.engines.pytorch.procedures import Forward, Opened, Procedure, make
from accelbench.engines.pytorch.procedures.base import chances_kept, dropped_nothing, seed_all
from accelbench.engines.shared.engine import memory_errors
from accelbench.engines.shared.local import LocalSampler, walls
from accelbench.engines.shared.modules import DTYPES, ModuleSession
from accelbench.engines.shared.sketches import Sketch, places
from accelbench.models.build import Built
from accelbench.models.narrow import in_precision

_aten = torch.ops.aten

#: What multiplies weights or what was computed with something computed; in inference these come
#: undivided. A table of embeddings is quantised like a weight.
_PRODUCTS = frozenset(
    (
        _aten.linear.default,
        _aten.matmul.default,
        _aten.mm.default,
        _aten.addmm.default,
        _aten.bmm.default,
        _aten.baddbmm.default,
        _aten.einsum.default,
        _aten._grouped_mm.default,
        _aten.convolution.default,
        _aten.conv1d.default,
        _aten.conv2d.default,
        _aten.conv3d.default,
        _aten.conv_transpose1d.default,
        _aten.conv_transpose2d.input,
        _aten.scaled_dot_product_attention.default,
        _aten.embedding.default,
        # What training adds: attention that keeps what its backward pass needs, and such passes.
        _aten.convolution_backward.default,
        _aten._scaled_dot_product_flash_attention_for_cpu.default,
        _aten._scaled_dot_product_flash_attention_for_cpu_backward.default,
    )
)

#: Masks hold the lowest number there is; steps between that and anything would leave nothing.
_MASK = -1e9

Rounder = Callable[[torch.Tensor], torch.Tensor]


class Rounded(TorchDispatchMode):  # type: ignore[misc]  # mypy skips torch
    """A mode in which fp32 is rounded as another precision rounds.

    In bf16 and fp16 every result is rounded; in int8 and tf32 what enters a product is, in int8
    to 255 steps between its least and its largest value, weights and what they are multiplied
    with alike. How far that moves the outputs is the model's own sensitivity: BERT's tiny size
    0.008 in bf16 and 0.01 in int8, X-CLIP's 0.12 and 0.3, in units of what other inputs move.
    """

    def __init__(self, precision: str) -> None:
        super().__init__()
        self._round = _ROUNDERS[precision]
        self._results = precision not in ("int8", "tf32")

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        if func in _PRODUCTS:
            args = tuple(self._rounded(arg) for arg in args)
        output = func(*args, **(kwargs or {}))
        return self._rounded(output) if self._results and not func.is_view else output

    def _rounded(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor) and value.dtype == torch.float32 and value.numel() > 1:
            return self._round(value)
        if isinstance(value, (list, tuple)):
            return type(value)(self._rounded(part) for part in value)
        return value


def _narrow(dtype: torch.dtype) -> Rounder:
    return lambda value: value.to(dtype).to(torch.float32)


def _ten_bits(value: torch.Tensor) -> torch.Tensor:
    """Return the numbers rounded to ten bits after the first, as TF32 does; fp16 has as many."""
    bits = value.contiguous().view(torch.int32)
    return ((bits + 0x1000) & ~0x1FFF).view(torch.float32)


def _stepped(value: torch.Tensor) -> torch.Tensor:
    # To 255 steps between the least and the largest, zero being one of them.
    low, high = (float(bound) for bound in value.clamp(_MASK, -_MASK).aminmax())
    if low <= _MASK:
        return value
    step = (max(high, 0.0) - min(low, 0.0)) / 255
    return torch.round(value / step) * step if step else value


_ROUNDERS: dict[str, Rounder] = {
    "bf16": _narrow(torch.bfloat16),
    "fp16": _narrow(torch.float16),
    "int8": _stepped,
    "tf32": _ten_bits,
}


#: Values of each tensor that are looked at: of a buffer all but the largest's, of weights some.
_OF_BUFFERS, _OF_WEIGHTS = 1 << 16, 1 << 10
#: What a name begins with of a module that is in training; such are told first.
_MODE = "the mode of"
#: Names that are told.
_MOST_NAMES = 3


class ModuleState:
    """A module's buffers, weights and modes as they were when it was opened.

    A batch normalisation that is put back into training within `forward`, a running average or
    a cache in a buffer make each step begin where the one before ended. Nothing in a step's
    time shows that.
    """

    def __init__(self, module: torch.nn.Module) -> None:
        self._before = _marks(module)

    def changed(self, module: torch.nn.Module) -> list[str]:
        """Return names of what is no longer as it was; of many the first, and how many more."""
        now = _marks(module)
        keys = sorted({**self._before, **now}, key=lambda name: not name.startswith(_MODE))
        names = [name for name in keys if self._before.get(name) != now.get(name)]
        more = len(names) - _MOST_NAMES
        return names[:_MOST_NAMES] + ([f"{more} more"] if more > 0 else [])


def _marks(module: torch.nn.Module) -> dict[str, str]:
    marks = {f"{_MODE} {name or 'it'}": "" for name, m in module.named_modules() if m.training}
    for named, most in (
        (module.named_buffers(), _OF_BUFFERS),
        (module.named_parameters(), _OF_WEIGHTS),
    ):
        for name, tensor in named:
            # A quantised tensor is of a class of its own, and has no values to be picked.
            if type(tensor) in (torch.Tensor, torch.nn.Parameter):
                marks[name] = _mark(tensor.detach(), most)
    return marks


def _mark(tensor: torch.Tensor, most: int) -> str:
    if tensor.layout is not torch.strided or tensor.is_meta:
        return str(tuple(tensor.shape))
    where = torch.from_numpy(places(tensor.numel(), most)).to(tensor.device)
    some = tensor.reshape(-1)[where]
    some = torch.view_as_real(some.resolve_conj()) if some.is_complex() else some
    # In one type, whatever the module was cast to since.
    values = some.double().cpu().numpy()
    return hashlib.sha256(str(tuple(tensor.shape)).encode() + values.tobytes()).hexdigest()


@contextmanager
def doubled(weights: Sequence[torch.Tensor]) -> Iterator[None]:
    """Double weights meanwhile: exact both ways, since a power of two only moves the exponent.

    Of a weight that would be infinite then, such as a mask's, a copy is kept.
    """
    with torch.no_grad():
        kept = {i: weight.clone() for i, weight in enumerate(weights) if not _can_double(weight)}
        for weight in weights:
            weight.mul_(2)
    try:
        yield
    finally:
        with torch.no_grad():
            for i, weight in enumerate(weights):
                if i in kept:
                    weight.copy_(kept[i])
                else:
                    weight.mul_(0.5)


def _can_double(weight: torch.Tensor) -> bool:
    if not weight.numel():
        return True
    low, high = torch.aminmax(weight)
    return bool(torch.maximum(-low, high) <= torch.finfo(weight.dtype).max / 2)


def allow_many_graphs() -> None:
    """Let Dynamo compile one graph a batch size, and in training another without dropout.

    After eight of one module it would go on without compiling, and not say so.
    """
    import torch._dynamo.config as dynamo

    dynamo.cache_size_limit = max(dynamo.cache_size_limit, 64)


def compile_totals() -> tuple[int, int]:
    """Return how many graphs Dynamo has compiled in this process, and the nanoseconds spent."""
    from torch._dynamo import utils

    graphs = int(utils.counters["stats"]["unique_graphs"])
    # What the backward pass needs is compiled when it is first called, and timed apart.
    parts = ("_compile.compile_inner", "backward._backward_impl")
    seconds = sum(sum(utils.compilation_time_metrics.get(part, ())) for part in parts)
    return graphs, round(seconds * 1e9)


_AUTOCAST = {"amp-fp16": torch.float16, "amp-bf16": torch.bfloat16}


def _trains(case: Case) -> bool:
    return case.mode is Mode.TRAINING


def _weights_dtype(case: Case) -> torch.dtype:
    # Training keeps fp32 weights, whatever it calculates in, unless pure is asked for.
    if _trains(case) and not case.options.get("pure"):
        return torch.float32
    return DTYPES[case.precision]


def _autocast_dtype(case: Case) -> torch.dtype | None:
    if _trains(case) and not case.options.get("pure"):
        dtype = DTYPES[case.precision.removeprefix("amp-")]
        return None if dtype is torch.float32 else dtype
    return _AUTOCAST.get(case.precision)


class PytorchSession(ModuleSession):
    """One model on one device of PyTorch."""

    _procedure: Procedure

    def __init__(self, job: Job, clock: Clock) -> None:
        case = job.case
        super().__init__(job, clock, _weights_dtype(case))
        self._precision = case.precision
        self._narrow = _autocast_dtype(case)
        self._place: TorchPlace = place_for(torch, job.device.hardware, job.device.ordinal)
        self.device_timed = self._place.timer is not None
        self._quantised: dict[str, Any] = {}
        self._replays = False  # each run draws the same numbers
        with memory_errors():
            made: Built = self._timed("build", self._build)
            self.weights_digest = made.digest
            self._module = self._timed("load", partial(self._load, made.module))
            del made
        # What of a module of its owner's nobody has read may change as it is called.
        watched = self._spec.code is not None and not _trains(case)
        self._state = ModuleState(self._module) if watched else None
        self._run: Callable[..., Any] = self._runnable(self._module)
        self._opened = Opened(
            job, self._module, self._run, self._place, clock, self._autocast, self._initial
        )
        self._use(self._procedure_of(case))

    def _runnable(self, module: torch.nn.Module) -> Callable[..., Any]:
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

    def _wait(self) -> None:
        if self._place.synchronize is not None:
            self._place.synchronize()

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
        refusals = int8.refusals() if self._precision == "int8" else nullcontext()
        with memory_errors(), refusals, self._procedure.around():
            yield

    def prepare(self, case: Case, seed: int | None = None) -> dict[str, torch.Tensor]:
        with memory_errors():
            self._use(self._procedure_of(case))
            inputs = self._placed(case, self._arrays(case, seed))
            self._procedure.settle(inputs)
            return inputs

    def _placed(self, case: Case, arrays: Mapping[str, Any]) -> dict[str, torch.Tensor]:
        hosted = self._host_inputs(case, arrays)
        return {name: tensor.to(self._place.device) for name, tensor in hosted.items()}

    # It is compiled at the first call, whose block has that time: `compile` has nothing to do.

    def sample(self, inputs: Any, n: int, timing: Timing) -> Block:
        return self._sampler.sample(inputs, n, timing)

    def profile(self, inputs: Any, steps: int, traces: Path | None) -> Profile:

        clock, device = self._opened.clock, str(self._job.device)
        return self._recorded(inputs, lambda step: profile(step, clock, steps, device, traces))

    def _whole_step(self, inputs: Any) -> None:
        self._procedure.step(inputs)
        self._wait()

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

    def inspect(self, inputs: Any) -> None:
        self._sampler.left = None
        self._looked_with = inputs
        with self._around():
            self._look(self._procedure.outputs(inputs))

    def _int8_facts(self) -> dict[str, Any]:
        # That what was quantised was computed in int8 is counted in a step of its own.
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
        # By the same module; it stays in fp64.
        self._module.double()
        wide = {name: t.double() if t.is_floating_point() else t for name, t in inputs.items()}
        with self._around():
            return {name: t.cpu().numpy() for name, t in self._procedure.outputs(wide).items()}

    def rounded(self, inputs: Any, precision: str) -> dict[str, Any]:
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
        weights = {str(p.device) for p in self._module.parameters()}
        seen = weights.union(self._output_facts.get("output_devices", ()))
        hardware = self._job.device.hardware
        return self._evidence(
            {self._named(name, hardware) for name in seen},
            f"torch {torch.__version__}",
            {
                **weight_types((int8.stored_type(p), p.numel()) for p in self._module.parameters()),
                "autocast": self._cast_to(),
                **self._compiling_facts(),
                **self._output_facts,
                **({} if self._state is None else self._changes(self._state)),
                **self._int8_facts(),
                **self._inputs.details(),
                **self._procedure.facts(),
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
        # With an ordinal always. ROCm's PyTorch calls its devices "cuda"; CudaPlace has proved the
        # build.
        kind, _, ordinal = name.partition(":")
        return f"{hardware if kind == self._place.device.type else kind}:{ordinal or 0}"

    def close(self) -> None:
        # Not deleted but replaced: closing twice is no error.
        self._module = torch.nn.Module()
        self._run = self._module
        self._opened = replace(self._opened, module=self._module, run=self._run)
        self._use(Forward(self._job.case, self._opened))


def _finite(tensor: torch.Tensor) -> bool:
    # Without a temporary of the tensor's size: its extremes tell, and NaN passes through them.
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor.resolve_conj())
    if not tensor.is_floating_point() or tensor.numel() == 0:
        return True
    low, high = torch.aminmax(tensor)
    return bool(torch.isfinite(low)) and bool(torch.isfinite(high))


NAME = "torch.profiler"
_STEP = "accelbench::step"
_TRACE = "trace.json"
#: CUPTI's own work, which torch.profiler lists among the operators: on an H200 "Activity Buffer
#: Request" came as one that took 0.065 ms of a step.
_OVERHEADS = frozenset(
    {
    "Activity Buffer Request", "Buffer Flush", "Command Buffer Full", "Driver Compiler",
    "Instrumentation", "Lazy Function Loading", "Resource", "Runtime Triggered Module Loading",
    }
)  # fmt: skip
_HOST = (
    "Own times of operators on the host's calling thread. What they leave of the step is Python's"
    " and the profiler's."
)
_DEVICE = (
    "Times of kernels on the device, by the operator that started them. What they leave of the"
    " step the device spent waiting for the host."
)


def profile(
    step: Callable[[], Any], clock: Clock, steps: int, device: str, traces: Path | None
) -> Profile:
    """Run steps, each done when it returns, under torch's profiler; `device` is such as "cpu:0"."""
    on_host = device.startswith("cpu")
    activities = [ProfilerActivity.CPU]
    more = ProfilerActivity.XPU if device.startswith("xpu") else ProfilerActivity.CUDA
    if not on_host and more in torch.profiler.supported_activities():
        activities.append(more)

    def marked() -> None:
        with record_function(_STEP):
            step()

    with torch.profiler.profile(activities=activities, record_shapes=True) as profiler:
        times = walls(clock, steps, marked)
    rows = profiler.key_averages(group_by_input_shape=True)
    report = build_profile(NAME, spent(rows, device), times, _HOST if on_host else _DEVICE)
    if traces is None:
        return report
    profiler.export_chrome_trace(str(traces / _TRACE))
    return replace(report, trace=_TRACE)


def spent(rows: Iterable[Any], device: str) -> Iterator[OperatorTime]:
    """Yield what the profiler's rows say, each an operator with some shapes of its inputs."""
    on_host = device.startswith("cpu")
    for row in rows:
        # The kernels' own rows say once more what is told of the operators that started them.
        if row.key == _STEP or row.device_type != torch.autograd.DeviceType.CPU:
            continue
        if row.key in _OVERHEADS:
            continue
        us = row.self_cpu_time_total if on_host else row.self_device_time_total
        yield OperatorTime(shapes(row.input_shapes), row.key, us * 1e3, row.count, device)


def shapes(input_shapes: Iterable[Any]) -> str:
    """Return shapes of inputs as people write them: 128x768, 768x768; none of numbers."""
    return ", ".join("x".join(map(str, shape)) for shape in input_shapes if shape)

"""A model read by OpenVINO, compiled for each case's shapes, run, and asked where and in what.

A step is one synchronous request on inputs that lie where the engine reads them. On a GPU or NPU
the copies there and back are part of it, as they are of OpenVINO's benchmark_app. `hint=throughput`
compiles with as many streams as the engine thinks best, but a step stays one request; how many
would fill the device is in the evidence (`optimal_requests`).
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from accelbench.core.clock import Clock
from accelbench.core.errors import CaseError, UnsupportedError
from accelbench.core.processes import keep_signal_stack
from accelbench.core.profile import OperatorTime, build_profile
from accelbench.core.profile import Profile as Profiled
from accelbench.core.protocols import DeviceMemory, Evidence, Job
from accelbench.engines.artifacts.intermediate import told
from accelbench.engines.openvino.quiet_import import openvino
from accelbench.engines.openvino.units import (
    AUTO,
    GPU,
    LATENCY,
    NPU,
    computed,
    engine_name,
    executing,
    kind,
    not_computed,
    places,
    properties,
)
from accelbench.engines.shared.arrays import ArraySession, timed
from accelbench.engines.shared.engine import engine_error
from accelbench.engines.shared.local import LocalSampler, rounded_shares, shares, walls
from accelbench.store.files import default_folder

#: Nodes whose arithmetic is what a precision is asked for.
_PRODUCTS = frozenset(
    {
        "FullyConnected", "MatMul", "Gemm", "Convolution", "GroupConvolution", "BinaryConvolution",
        "Deconvolution", "ScaledDotProductAttention", "ScaledDotProductAttentionWithKVCache",
        "MHA", "QKVProjection", "LLMMLP", "LSTMSequence", "GRUSequence", "RNNSeq", "RNNCell",
    }
)  # fmt: skip
_NO_WORK = frozenset({"Input", "Output", "Const", "Constant", "Parameter", "Result"})
_WORDS = {"f32": "fp32", "bf16": "bf16", "f16": "fp16", "i8": "int8", "u8": "int8"}
_KERNELS = 6


@dataclass(frozen=True)
class Profile:
    """Shares of the time of a few runs, by type.

    A node's kernel is what tells: `brgemm_avx512_bf16`. Its `runtimePrecision` names the type
    of what comes out, which after a comparison is u8, whatever was multiplied before.
    """

    computed_in: Mapping[str, float]  # of products, by precision
    by_type: Mapping[str, float]  # of everything, by the kernels' own words
    kernels: tuple[str, ...] = ()  # those that took longest
    why: str = ""  # why nothing is told

    def as_details(self) -> dict[str, Any]:
        if self.why:
            return {"computed_in": None, "computed_in_unknown": self.why}
        unknown = (
            {} if self.computed_in else {"computed_in_unknown": "the profile names no product"}
        )
        return {
            **unknown,
            "computed_in": rounded_shares(self.computed_in),
            "time_by_type": rounded_shares(self.by_type),
            "kernels": list(self.kernels),
        }


def understood(nodes: Iterable[Mapping[str, str]]) -> Profile:
    """Return the profile of a model's nodes, each by its runtime information."""
    spent: Counter[str] = Counter()
    products: Counter[str] = Counter()
    counted: Counter[str] = Counter()
    kernels: Counter[str] = Counter()
    for node in nodes:
        layer = node.get("layerType")
        if layer is None or layer in _NO_WORK:
            continue
        kernel = node.get("primitiveType", "unknown")
        type_ = kernel.rpartition("_")[2].lower()
        text = node.get("execTimeMcs", "")
        time = int(text) if text.isdecimal() else 0  # "not_executed": folded, or done in place
        spent[type_] += time
        kernels[kernel] += time
        if layer in _PRODUCTS:
            word = _WORDS.get(type_, type_)
            products[word] += time
            counted[word] += 1
    # Products of a model so small that none of them takes a microsecond are counted.
    return Profile(
        computed_in=shares(products) or shares(counted),
        by_type=shares(spent),
        kernels=tuple(name for name, time in kernels.most_common(_KERNELS) if time),
    )


def nodes_of(compiled: Any) -> list[dict[str, str]]:
    """Return the nodes of a model that was compiled with PERF_COUNT and has run."""
    nodes = []
    for node in compiled.get_runtime_model().get_ordered_ops():
        info = node.get_rt_info()
        nodes.append({k: str(v.astype(str)) for k, v in info.items() if hasattr(v, "astype")})
    return nodes


_MICROSECOND = timedelta(microseconds=1)

NAME = "OpenVINO's performance counters"
REMARK = (
    "Times of the nodes that the model was compiled to, in whole microseconds; those that were"
    " folded into others, or that take less than one, are not among them."
)


@dataclass
class CountedRequest:
    """An infer request whose counters are read after every inference."""

    request: Any
    where: str
    # whether a counter is the mean of all inferences so far, as the CPU's is (seen in 2026.4: after
    # one of 199 ms and one of 225 ms it says 212 ms), or the last one's
    averages: bool
    spent: list[OperatorTime] = field(default_factory=list)
    reading_ns: int = 0  # what reading took so far, which is no part of a step
    _totals: dict[str, float] = field(default_factory=dict)
    _count: int = 0

    def infer(self, share_outputs: bool) -> None:
        self.request.infer(share_outputs=share_outputs)
        start = time.perf_counter_ns()
        self._count += 1
        for info in self.request.get_profiling_info():
            ns = info.real_time / _MICROSECOND * 1e3
            if self.averages:
                total = ns * self._count
                ns = total - self._totals.get(info.node_name, 0.0)
                self._totals[info.node_name] = total
            self.spent.append(OperatorTime(info.node_name, info.node_type, ns, where=self.where))
        self.reading_ns += time.perf_counter_ns() - start

    def __getattr__(self, name: str) -> Any:
        return getattr(self.request, name)


_GPU, _NPU = "GPU_MEMORY_STATISTICS", "NPU_DEVICE_ALLOC_MEM_SIZE"

#: Kinds of a GPU's buffers that lie in the host's memory: the host's figures have those.
_HOSTS = frozenset({"usm_host"})


class UnitMemory:
    """The plugin's own count of what OpenVINO has allocated on a unit, if it has one.

    The GPU's plugin counts its process's buffers by where they lie; the NPU's tells what its
    driver has given to anybody, so what was taken before the model was read is subtracted. Of
    the CPU the kernel knows. None keeps a peak that can be started anew: the highest of what is
    sampled is the peak.
    """

    def __init__(self, core: Any) -> None:
        self._core = core
        self._before: dict[str, int] = {}

    def begin(self, unit: str) -> None:
        # What is there now is not the model's.
        reading = self._told(unit)
        if reading is not None and kind(unit) == NPU:
            self._before[unit] = reading[0]

    def now(self, unit: str) -> DeviceMemory | None:
        """Return what the model takes; None if the unit has no memory or tells nothing of it."""
        reading = self._told(unit)
        if reading is None:
            return None
        taken, counter = reading
        return DeviceMemory(
            peak_bytes=None,
            current_bytes=max(taken - self._before.get(unit, 0), 0),
            source=f"openvino {counter}",
        )

    def _told(self, unit: str) -> tuple[int, str] | None:
        known = _COUNTERS.get(kind(unit))
        if known is None:
            return None
        counter, understood = known
        try:
            return understood(self._core.get_property(unit, counter)), counter
        except (RuntimeError, TypeError, ValueError):  # an older driver, or no such device
            return None


def _on_the_card(buffers: Mapping[str, int]) -> int:
    return sum(int(size) for where, size in buffers.items() if where not in _HOSTS)


_COUNTERS: Mapping[str, tuple[str, Callable[[Any], int]]] = {
    GPU: (_GPU, _on_the_card),
    NPU: (_NPU, int),
}


_PROFILED_RUNS = 3

Shapes = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class BoundInputs:
    """Inputs in the model's order; the engine reads them where they lie."""

    arrays: tuple[Any, ...]

    @cached_property
    def tensors(self) -> list[Any]:
        return [openvino.Tensor(array, shared_memory=True) for array in self.arrays]

    @property
    def shapes(self) -> Shapes:
        return tuple(array.shape for array in self.arrays)


@dataclass
class _Compiled:
    """A model compiled for some shapes, and the one request that is made of it."""

    shapes: Shapes
    model: Any
    request: Any
    fed: BoundInputs | None = None
    stands_in: bool = False  # for one that was given back: it tells the same, but counts

    def feed(self, bound: BoundInputs) -> None:
        for position, tensor in enumerate(bound.tensors):
            self.request.set_input_tensor(position, tensor)
        self.fed = bound


def _names(port: Any) -> set[str]:
    # The layer's name stands for a port that has none of its own.
    return set(port.get_names()) or {str(port.get_node().get_friendly_name())}


def place_of(name: str, given: Sequence[Collection[str]]) -> int:
    """Return which output of a model has a name; a sequence of tensors, taken apart, has none."""
    for place, names in enumerate(given):
        if name in names:
            return place
    raise CaseError(
        "no_outputs",
        f"OpenVINO's model has no output {name}",
        "Export the model with tensors as outputs, or use another engine.",
    )


def known_name(names: Collection[str], known: Sequence[str]) -> str:
    """Return the one of an input's names that its file has; raise CaseError if it has none."""
    for name in known:
        if name in names:
            return name
    raise CaseError(
        "session_failed",
        f"OpenVINO's model takes an input {', '.join(sorted(names))}, which its file does not have",
        "Use another engine: the conversion has changed what the model reads.",
    )


class OpenvinoSession(ArraySession):
    """One model on one unit."""

    def __init__(self, job: Job, clock: Clock) -> None:
        self._unit = engine_name(job.device)
        self._hint = str(job.case.options.get("hint", LATENCY))
        self._cache = None
        if job.case.options.get("model_cache"):
            self._cache = str(default_folder() / "openvino")
        self._compiled: _Compiled | None = None
        self._compilations = self._compile_ns = 0
        self._shapes: Shapes | None = None
        self._memory: UnitMemory | None = None
        self._profile: Profile | None = None
        super().__init__(job, clock)
        self._sampler = LocalSampler(
            clock=clock, step=self._step, compiled=lambda: (self._compilations, self._compile_ns)
        )

    # -- opening and compiling

    @keep_signal_stack()
    def _open(self) -> None:
        self._core = openvino.Core()
        self._memory = UnitMemory(self._core)
        self._memory.begin(self._unit)
        self._capabilities = self._asked_capabilities()
        precision = self._case.precision
        why = not_computed(precision, self._unit, self._capabilities)
        if why is not None:
            advice = f"It computes {', '.join(computed(self._capabilities))} there."
            raise UnsupportedError("precision", why, advice)
        if self._cache:
            self._core.set_property({"CACHE_DIR": self._cache})
        try:
            self._model: Any = self._core.read_model(str(self.model_path))
        except Exception as error:
            raise in_words(error, "session_failed") from error
        # What the graph itself takes: an input that a trace did not need is not among it.
        taken = [_names(port) for port in self._model.inputs]
        known = [input_.file_name for input_ in self.manifest.inputs]
        self._takes = [known_name(names, known) for names in taken]
        self._types = [port.get_element_type().to_dtype() for port in self._model.inputs]
        given = [_names(port) for port in self._model.outputs]
        self._gives = [place_of(output.file_name, given) for output in self.manifest.outputs]

    def _asked_capabilities(self) -> list[str]:
        try:
            return sorted(self._core.get_property(self._unit, "OPTIMIZATION_CAPABILITIES"))
        except Exception as error:
            raise UnsupportedError(
                "engine_sees_no_device",
                f"OpenVINO finds no {self._unit}",
                "accelbench hardware shows what is present.",
            ) from error

    def _properties(self, unit: str) -> dict[str, Any]:
        return properties(
            unit, self._case.precision, self._hint, self._job.settings.threads, self._capabilities
        )

    @keep_signal_stack()
    def _made(self, unit: str, shapes: Shapes, more: Mapping[str, Any]) -> Any:
        # Compiled for these shapes alone: each is another program.
        try:
            if shapes != self._shapes:
                self._model.reshape(dict(enumerate(map(list, shapes))))
                self._shapes = shapes
            return self._core.compile_model(self._model, unit, {**self._properties(unit), **more})
        except Exception as error:
            raise in_words(error, "compile_failed") from error

    def compile(self, inputs: Any) -> int:
        # What was compiled for other shapes is given back first.
        shapes = self._as_bound(inputs).shapes
        self._compiled = None
        model, spent = timed(self._clock, lambda: self._made(self._unit, shapes, {}))
        self._compiled = _Compiled(shapes, model, model.create_infer_request())
        self._compilations += 1
        self._compile_ns += spent
        return spent

    # -- running

    def _bind(self, arrays: Mapping[str, Any]) -> BoundInputs:
        return BoundInputs(
            tuple(
                np.ascontiguousarray(arrays[name], dtype=dtype)
                for name, dtype in zip(self._takes, self._types, strict=True)
            )
        )

    def _as_bound(self, inputs: Any) -> BoundInputs:
        # What is prepared for a whole denoising is bound pass by pass.
        return inputs if isinstance(inputs, BoundInputs) else self._bind(inputs)

    def _run(self, bound: BoundInputs) -> Any:
        compiled = self._compiled
        if compiled is None or compiled.fed is not bound:
            compiled = self._ready(bound)
        try:
            compiled.request.infer(share_outputs=True)
        except Exception as error:
            raise in_words(error, "run_failed") from error
        return compiled.request

    def _ready(self, bound: BoundInputs) -> _Compiled:
        compiled = self._compiled
        if compiled is None or compiled.stands_in or compiled.shapes != bound.shapes:
            self.compile(bound)
            compiled = self._compiled
        assert compiled is not None
        compiled.feed(bound)
        return compiled

    def _read(self, result: Any) -> list[Any]:
        return [result.get_output_tensor(position).data for position in self._gives]

    def _seen(self, inputs: Any) -> dict[str, Any]:
        outputs = super()._seen(inputs)
        self._looked_with = self._as_bound(inputs)
        return outputs

    def device_memory(self) -> DeviceMemory | None:
        unit = self._unit_within() if self._unit == AUTO else self._unit
        return None if self._memory is None else self._memory.now(unit)

    # -- evidence

    def _profiled(self, bound: BoundInputs) -> Profile:
        unit = self._unit_within()
        alone = not self._room_for_another()
        if alone:
            self._compiled = None
        try:
            counted = self._counting(unit, bound.shapes)
            counted.feed(bound)
            for _ in range(_PROFILED_RUNS):
                counted.request.infer(share_outputs=True)
            if alone:
                counted.stands_in, counted.fed = True, None
                self._compiled = counted
            return understood(nodes_of(counted.model))
        except Exception as error:
            return Profile({}, {}, why=in_words(error, "profile_failed").message)

    def _room_for_another(self) -> bool:
        # The weights once more: of seven billion, in bf16, 24 GiB do not hold them.
        weights = self.model_path.with_suffix(".bin").stat().st_size
        return psutil.virtual_memory().available > weights

    def _unit_within(self) -> str:
        # AUTO itself counts nothing of its nodes, what it chose does.
        return executing(self._said("EXECUTION_DEVICES") or [self._unit])[0]

    def _counting(self, unit: str, shapes: Shapes) -> _Compiled:
        model = self._made(unit, shapes, {"PERF_COUNT": True})
        return _Compiled(shapes, model, model.create_infer_request())

    def profile(self, inputs: Any, steps: int, traces: Path | None) -> Profiled:
        unit = self._unit_within()
        counted = self._counting(unit, self._as_bound(inputs).shapes)
        where = places(self._job.device, [unit])[0]
        averages = unit.startswith("CPU")
        request = counted.request = CountedRequest(counted.request, where, averages)
        measured, self._compiled = self._compiled, counted
        try:
            self._step(inputs)
            request.spent, request.reading_ns = [], 0
            times = walls(self._clock, steps, lambda: self._step(inputs))
        finally:
            self._compiled = measured
        # What reading the counters took was in between.
        return build_profile(
            NAME, request.spent, [ns - request.reading_ns // steps for ns in times], REMARK
        )

    def _said(self, name: str) -> Any:
        """Return a property in force of what was compiled; None if it is not told."""
        if self._compiled is None:
            return None
        value = _property(self._compiled.model, name)
        if value is not None:
            return value
        # AUTO has it of the device that it chose.
        within = _property(self._compiled.model, "DEVICE_PROPERTIES") or {}
        return next((dict(settings).get(name) for settings in dict(within).values()), None)

    def evidence(self) -> Evidence:
        looked_with = self._looked_with
        if self._profile is None and looked_with is not None and self._compiled is not None:
            self._profile = self._profiled(looked_with)
        devices = self._said("EXECUTION_DEVICES") or []
        hint = self._said("INFERENCE_PRECISION_HINT")
        details = {
            "unit": self._unit.lower(),
            "execution_devices": [name.lower() for name in executing(devices)],
            "threads": self._said("INFERENCE_NUM_THREADS") or self._job.settings.threads,
            "streams": self._said("NUM_STREAMS"),
            "cpu_pinning": self._said("ENABLE_CPU_PINNING"),
            "hint": self._hint,
            "requests_in_flight": 1,
            "optimal_requests": self._said("OPTIMAL_NUMBER_OF_INFER_REQUESTS"),
            "precision_hint": None if hint is None else str(hint.get_type_name()),
            "isa": instructions(self._said("RUNTIME_REQUIREMENTS")),
            "model_cache": self._cache_used(),
            **({} if self._profile is None else self._profile.as_details()),
        }
        engine = f"openvino {openvino.__version__.partition('-')[0]}"
        return self._evidence(engine, details, places(self._job.device, devices))

    def _cache_used(self) -> dict[str, Any] | None:
        if self._cache is None:
            return None
        return {"folder": self._cache, "loaded": self._said("LOADED_FROM_CACHE")}

    def close(self) -> None:
        self._compiled = self._looked_with = self._model = self._core = self._memory = None


def _property(model: Any, name: str) -> Any:
    try:
        return model.get_property(name)
    except (RuntimeError, TypeError):  # not of this unit, or of a type that Python has not
        return None


def instructions(requirements: Any) -> str | None:
    """Return the instruction set of a model's kernels, from what the compiled model requires."""
    for part in str(requirements or "").split(";"):
        name, _, value = part.partition("=")
        if name.strip() == "isa":
            return value.strip()
    return None


def in_words(error: Exception, reason: str) -> CaseError:
    """Return what the engine says as an error of the case."""
    return engine_error(error, reason, "OpenVINO", told(error), ("not enough",))

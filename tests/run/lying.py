"""A world in which sessions may lie: its clock, a model, a session here and one afar.

Time passes only where it is told to, so that what is caught is caught on any machine. The model's
work is told by its forward pass: so much an item.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from accelbench.core.case import Case, Shapes, Target
from accelbench.core.model import InputSpec, ModelSpec
from accelbench.core.protocols import Block, Device, DeviceMemory, Evidence, Job, RuntimeInfo
from accelbench.core.serial import case_to_json, device_to_json
from accelbench.core.vocabulary import Architecture, Family, Provenance, Timing
from accelbench.engines.pytorch.session import PytorchSession
from accelbench.engines.scripted import VirtualClock
from accelbench.engines.shared.local import LocalSampler
from accelbench.engines.shared.sketches import Sketch, sketch
from accelbench.hardware.common import NotAvailable
from accelbench.hardware.hostmemory import HostMemory, PageUse
from accelbench.models.inputs import make_inputs
from accelbench.run.worker import worker
from accelbench.run.worker.case_checks import ReadTimes
from accelbench.run.worker.worker import CaseBench

ITEM_NS, LAUNCH_NS, LINK_NS = 6_000_000, 20_000, 1_500_000
BUILD_NS, LOAD_NS = 150_000_000, 2_000_000
BATCH = 8
SPARE_NS = 50e6  # what a second run of a verified batch may take
CPU = Device("cpu", "a processor", count=64)


class World:
    """The clock, and work that is queued on a device where one is not waited for."""

    def __init__(self) -> None:
        self.clock = VirtualClock(40.0)
        self.pending_ns = 0.0
        self.waits = True  # whether whoever starts work waits for it

    def work(self, items: int) -> None:
        self.clock.advance(LAUNCH_NS)
        self.pending_ns += items * ITEM_NS
        if self.waits:
            self.wait()

    def wait(self) -> None:
        self.clock.advance(self.pending_ns)
        self.pending_ns = 0.0


WORLD = World()


class Net(nn.Module):
    """Says how much it works."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(16, 32), nn.Linear(32, 24)

    def forward(self, features: torch.Tensor) -> dict[str, torch.Tensor]:
        WORLD.work(len(features))
        return {"scores": self.second(self.first(features).tanh())}


MODEL = ModelSpec(
    id="net", family=Family.VISION, architecture=Architecture.VISION, modalities=("vision",),
    task="test", size="tiny", builder=f"{__name__}:Net", parameters=1336,
    inputs=(InputSpec("features", ("batch", 16)),), config={},
)  # fmt: skip
CASE = Case(MODEL, Target("liar", "cpu"), "fp32", Shapes(BATCH))

Step = Callable[[Mapping[str, Any]], Any]


@dataclass
class Lie:
    """What a session does otherwise; each part is given what is honest, and may use it."""

    step: Callable[[Step, Mapping[str, Any]], Any] | None = None
    prepared: Callable[[Step, Mapping[str, Any]], Any] | None = None
    sample: Callable[[Callable[..., Block], Any, int, Timing], Any] | None = None
    outputs: Callable[[Step, Mapping[str, Any]], Any] | None = None
    stepped: Callable[[Any, Any], Any] | None = None
    evidence: Callable[[Evidence], Any] | None = None
    memory: DeviceMemory | None = None
    timings: Mapping[str, Any] = field(default_factory=dict)
    computes: str = ""  # the precision, whichever was asked for; of pytorch's own session
    compile: Any = None
    opening_ns: int = 0  # what it does before its session is there
    compiling_ns: int = 0  # and before the first step
    device_ns: int | None = None  # by the timers of its device, if it claims to have any
    waits: bool = True
    kept: dict[Any, Any] = field(default_factory=dict)  # what it remembers


HONEST = Lie()


class Lying:
    """Stands before a session's own methods."""

    lie: Lie
    inputs: Any = None  # that were stepped or asked for last

    def prepare(self, case: Case, seed: int | None = None) -> Any:
        inputs = super().prepare(case, seed)
        if self.lie.prepared:
            self.lie.prepared(super().outputs, inputs)
        return inputs

    def sample(self, inputs: Any, n: int, timing: Timing) -> Any:
        honest = super().sample
        if timing is Timing.DEVICE:
            WORLD.work(BATCH * n)
            return Block(n, timing, {"step": [self.lie.device_ns or 0] * n})
        return self.lie.sample(honest, inputs, n, timing) if self.lie.sample else honest(
            inputs, n, timing
        )  # fmt: skip

    def outputs(self, inputs: Any) -> Any:
        self.inputs = inputs
        honest = super().outputs
        found = self.lie.outputs(honest, inputs) if self.lie.outputs else honest(inputs)
        WORLD.wait()
        return found

    def stepped(self, most: int) -> Any:
        WORLD.wait()
        honest = super().stepped
        return self.lie.stepped(self, most) if self.lie.stepped else honest(most)

    def evidence(self) -> Any:
        found = super().evidence()
        return self.lie.evidence(found) if self.lie.evidence else found

    def device_memory(self) -> Any:
        return self.lie.memory or super().device_memory()

    def compile(self, inputs: Any) -> Any:
        WORLD.clock.advance(self.lie.compiling_ns)
        return self.lie.compile

    @property
    def device_timed(self) -> bool:
        return self.lie.device_ns is not None

    @device_timed.setter
    def device_timed(self, timed: bool) -> None:
        """Ignore what the honest session sets."""

    def _stepping(self, honest: Step) -> Step:
        def step(inputs: Mapping[str, Any]) -> Any:
            self.inputs = inputs
            return self.lie.step(honest, inputs) if self.lie.step else honest(inputs)

        return step


class Here(Lying, PytorchSession):
    """The pytorch runtime's own session."""

    def __init__(self, job: Job, lie: Lie) -> None:
        self.lie = lie
        precision = lie.computes or job.case.precision
        super().__init__(replace(job, case=replace(job.case, precision=precision)), WORLD.clock)
        WORLD.clock.advance(BUILD_NS + LOAD_NS + lie.opening_ns)
        self.timings.update({"build": BUILD_NS, "load": LOAD_NS, **lie.timings})

    def _use(self, procedure: Any) -> None:
        super()._use(procedure)
        self._sampler.step = self._stepping(procedure.step)


class ScriptedMemory(HostMemory):
    """Counts a megabyte: to read /proc and to collect garbage took nine tenths of a lie's time."""

    def reset_peak(self) -> None: ...

    def peak_bytes(self) -> int:
        return 2**20

    current_bytes = peak_bytes


@contextmanager
def scripted_memory() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(HostMemory, "start", lambda: ScriptedMemory(0, "a script"))
        patch.setattr(worker, "release_freed_memory", lambda: None)
        yield


class Remote:
    """An engine in another process, that times itself and is asked over a link."""

    phases, weights_digest = ("step",), "weights"
    # A model is a view of weights: doubling them is not offered.

    def __init__(self, job: Job, lie: Lie) -> None:
        self.lie = lie
        WORLD.clock.advance(LOAD_NS + lie.opening_ns)
        self.timings = {"load": LOAD_NS, **lie.timings}
        draw = np.random.default_rng(job.settings.seed)
        self._weights = draw.standard_normal((16, 32)), draw.standard_normal((32, 24))
        self._job = job
        self._sampler = LocalSampler(WORLD.clock, self._stepping(self._run))
        self.host_memory = ScriptedMemory(0, "a script")

    def _asked(self) -> None:
        WORLD.clock.advance(LINK_NS)

    def _run(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        WORLD.work(len(inputs["features"]))
        first, second = self._weights
        return {"scores": (np.tanh(inputs["features"] @ first) @ second).astype(np.float32)}

    def prepare(self, case: Case, seed: int | None = None) -> dict[str, Any]:
        self._asked()
        seed = self._job.settings.seed if seed is None else seed
        return dict(make_inputs(case.model, case.shapes, seed, case.mode))

    def sample(self, inputs: Any, n: int, timing: Timing) -> Block:
        self._asked()
        return self._sampler.sample(inputs, n, timing)

    def inspect(self, inputs: Any) -> None:
        self._sampler.left = None

    def outputs(self, inputs: Any) -> dict[str, Any]:
        self._asked()
        return self._run(inputs)

    def stepped(self, most: int) -> Mapping[str, Sketch]:
        self._asked()
        return {} if self._sampler.left is None else sketch(self._sampler.left, most)

    def evidence(self) -> Evidence:
        return Evidence(("cpu:0",), "cpu:0", "an engine elsewhere")

    def reset_memory(self) -> None: ...

    def device_memory(self) -> None:
        return None

    def cpu_seconds(self) -> float:
        return 0.0

    def close(self) -> None: ...


class Afar(Lying, Remote):
    """That engine's session."""


KINDS: Mapping[str, Any] = {"pytorch": Here, "remote": Afar}


class Silent:
    """Nobody listens."""

    def phase(self, name: str) -> None: ...

    def progress(self, *_: Any) -> None: ...


def runtime_of(kind: str, lie: Lie) -> Any:
    info = RuntimeInfo("liar", ("cpu",), "torch", "", provenance=Provenance.MEASURED)
    return SimpleNamespace(
        info=info, clock=lambda: WORLD.clock, open=lambda job: KINDS[kind](job, lie)
    )


def uncounted(_: Iterable[int]) -> NotAvailable:
    """Times of threads that nothing counts: those of this process are not the world's."""
    return NotAvailable("a world of its own")


def bench_of(runtime: Any, *readers: Any) -> CaseBench:
    with scripted_memory():
        return CaseBench(runtime, Silent(), WORLD.clock, *(readers or (uncounted,)))


def opened(
    kind: str,
    lie: Lie,
    device: Device = CPU,
    read_times: ReadTimes = uncounted,
    case: Case = CASE,
    read_pages: Callable[[], PageUse | None] = lambda: None,
) -> tuple[CaseBench, dict[str, Any]]:
    """A bench with a session open that lies, and what it tells of that."""
    WORLD.waits = lie.waits
    runtime: Any = runtime_of(kind, lie)
    bench = bench_of(runtime, read_times, read_pages)
    settings = {"seed": 0, "threads": 1}
    job = {"case": case_to_json(case), "device": device_to_json(device), **settings}
    more = {"weights": "random", "trust_remote_code": False}
    return bench, ask_bench(bench, {"do": "open", "job": {**job, **more}})


def measured(bench: CaseBench, iterations: int = 40, case: Case = CASE) -> dict[str, Any]:
    """What a bench answers that is asked to measure."""
    rules = {"iterations": iterations, "warmup": 5, "seconds": 10}
    measure = {"do": "measure", "case": case_to_json(case), "rules": rules, "alone": True}
    return ask_bench(bench, measure)


def ask_bench(bench: CaseBench, request: Mapping[str, Any]) -> dict[str, Any]:
    """As over the wire: JSON that holds no NaN."""
    with scripted_memory():
        found: dict[str, Any] = json.loads(json.dumps(bench.answer(request), allow_nan=False))
    return found

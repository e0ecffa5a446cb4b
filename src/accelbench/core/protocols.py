"""What the rooms promise each other: devices, runtimes, sessions, blocks, evidence."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

from accelbench.core.case import Case
from accelbench.core.clock import Clock
from accelbench.core.identity import digest
from accelbench.core.model import FileFormat
from accelbench.core.option_types import RuntimeOption
from accelbench.core.run_options import JobSettings
from accelbench.core.vocabulary import Belongs, Provenance, Timing

#: The version of these protocols; a plugin states the one it was written for.
API_VERSION = 1


@dataclass(frozen=True)
class Device:
    """One place where work can run, found present."""

    hardware: str
    name: str  # as people know it: "AMD EPYC 9355", "NVIDIA H200"
    ordinal: int = 0
    vendor: str = ""
    memory_bytes: int | None = None
    count: int = 1  # of cores for a CPU, of units otherwise: part of what makes it fast
    power_limit_watts: float | None = None
    driver: str = ""
    emulated: bool = False  # software standing in for the device: never compared by time
    details: Mapping[str, Any] = field(default_factory=dict)  # shown to people, never hashed
    unit: str = ""  # which kind of unit, where a platform has several: OpenVINO's cpu, gpu, npu

    @cached_property
    def fingerprint(self) -> str:
        """Stable from day to day: model, count, memory, power limit."""
        memory = None if self.memory_bytes is None else installed_gib(self.memory_bytes)
        return digest(
            {
                "hardware": self.hardware,
                "unit": self.unit,
                "name": self.name,
                "vendor": self.vendor,
                "memory_gib": memory,
                "count": self.count,
                "power_limit": self.power_limit_watts,
                "emulated": self.emulated,
            }
        )

    def __str__(self) -> str:
        return f"{self.hardware}:{self.ordinal}"


@dataclass(frozen=True)
class Absent:
    """A platform that is not here: why, and what would bring it."""

    hardware: str
    reason: str
    remedy: str
    details: Mapping[str, Any] = field(default_factory=dict)


#: What is here: of each platform its devices, or why there is none.
Inventory = Mapping[str, Sequence[Device | Absent]]


def installed_gib(visible_bytes: float) -> int:
    """The size that was probably bought, from what the system shows of it.

    What kernels and firmware keep for themselves varies from boot to boot, so
    the size is rounded up, in steps of a sixteenth and at least 1 GiB: 23.5 GiB
    of a 24 GiB machine must not become 23 because a kernel took 50 MiB more.
    """
    gib = visible_bytes / 2**30
    step = max(1, (1 << (max(int(gib), 1).bit_length() - 1)) // 16)
    return math.ceil(gib / step) * step


class Detector(Protocol):
    """Finds one platform. One vendor a file; a plugin's looks the same.

    It may have a `colour`, "#rrggbb": the one that its marks have in every chart.
    """

    hardware: str

    def detect(self) -> list[Device | Absent]:
        """Every device present, or exactly one Absent. Never raises, never imports an engine."""


@dataclass(frozen=True)
class Support:
    """Whether a runtime can run a case; where not, why and what to do instead."""

    ok: bool
    reason: str = ""  # a short stable token
    message: str = ""
    advice: str = ""


SUPPORTED = Support(ok=True)


#: Of a step's time, what may pass on the host: shapes and gathers that a device's engine leaves
#: there on purpose. More is another device's time.
ELSEWHERE_ALLOWED = 0.1


@dataclass(frozen=True)
class Evidence:
    """Proof of where the work ran and in which types, read back from the engine after it ran.

    What `details` reports of types is described in run/verify/precision_proof.py.
    """

    devices: tuple[str, ...]  # as the engine names them: "cpu", "cuda:0"
    requested: str = ""
    engine: str = ""  # "torch 2.13.0"
    emulated: bool = False
    details: Mapping[str, Any] = field(default_factory=dict)  # providers, partitions, kernels …
    shares: Mapping[str, float] = field(default_factory=dict)  # of the time, by device, if told

    @property
    def elsewhere(self) -> Mapping[str, float | None]:
        """Devices that were not asked for and took part; with their share, where it is told."""
        requested_kind, _, ordinal = self.requested.partition(":")
        others = {}
        for device in self.devices if requested_kind else ():
            kind, _, number = device.partition(":")
            # An engine that names no ordinal has said nothing about it.
            if kind != requested_kind or (ordinal and number and ordinal != number):
                others[device] = self.shares.get(device)
        return others

    @property
    def fell_back(self) -> bool:
        """True where work ran somewhere else than asked: any, or more than the share allowed."""
        shares = self.elsewhere.values()
        return any(part is None for part in shares) or sum(filter(None, shares)) > ELSEWHERE_ALLOWED


@dataclass(frozen=True)
class Block:
    """n samples, measured where they happened.

    `phase_ns` has a list per phase: one entry a step for EACH, PHASES and DEVICE;
    one entry for the whole block for WHOLE. `token_ns` has, for a PHASES block of
    a model that generates, a list a request: when each token was there, counted
    from the request's start. `losses` has a training step's loss each. `compilations` counts
    compilations that happened during the block, `compile_ns` the time they took of it,
    for engines that compile at the first call: more than none was no steady state.
    """

    steps: int
    timing: Timing
    phase_ns: Mapping[str, Sequence[int]]
    token_ns: Sequence[Sequence[int]] = ()
    losses: Sequence[float] = ()
    compilations: int = 0
    compile_ns: int = 0


_stop_after: ContextVar[int | None] = ContextVar("_stop_after", default=None)


@contextmanager
def stopping_after(steps: int) -> Iterator[None]:
    """End blocks early, after so many steps: which step of a block is the last is not announced.

    The outputs of that step are kept, so a check can look at any step of a block.
    """
    before = _stop_after.set(steps)
    try:
        yield
    finally:
        _stop_after.reset(before)


def most_steps(n: int) -> int:
    """Return how many steps a block of n runs: n, or fewer within `stopping_after`."""
    return min(n, _stop_after.get() or n)


@dataclass(frozen=True)
class Job:
    """What a runtime needs to open a session."""

    case: Case
    device: Device
    settings: JobSettings = field(default_factory=JobSettings)
    artefact: str | None = None  # the folder of what the runtime wants opened
    spill: str | None = None  # a folder for weights that memory does not hold; nothing is timed

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Settings off the job itself, where runtimes of other packages have read them."""
            if name in JobSettings.names():
                return getattr(self.settings, name)
            raise AttributeError(f"a job has no {name}")


@dataclass(frozen=True)
class DeviceMemory:
    """The allocator's counters of a device that has them."""

    peak_bytes: int | None  # None where the allocator keeps no peak
    current_bytes: int
    reserved_bytes: int | None = None
    source: str = ""


class Session(Protocol):
    """A model opened on a device, ready to be stepped."""

    @property
    def phases(self) -> tuple[str, ...]:
        """("step",), ("prefill", "decode"), …: of what was prepared last."""

    @property
    def device_timed(self) -> bool:
        """Whether sample() takes Timing.DEVICE."""

    @property
    def timings(self) -> Mapping[str, int]:
        """Nanoseconds of build, load and so on, as far as they have happened."""

    @property
    def weights_digest(self) -> str:
        """A digest of the weights, so that two results can be told to have had the same."""

    def prepare(self, case: Case, seed: int | None = None) -> Any:
        """Seeded inputs for a case's shapes, on the device. Not timed as part of a step.

        A training session starts anew from its initial weights. `seed` draws other
        inputs than the job's own.
        """

    def compile(self, inputs: Any) -> int | None:
        """Compile for these inputs; nanoseconds.

        None where nothing is compiled, or where the engine compiles at the first
        call: then that call's block says how long it took.
        """

    def sample(self, inputs: Any, n: int, timing: Timing) -> Block:
        """n samples, measured here."""

    def inspect(self, inputs: Any) -> None:
        """One step whose outputs are looked at where they lie, for the evidence.

        It runs in the memory pass, so it must not copy them.
        """

    def outputs(self, inputs: Any) -> Mapping[str, Any]:
        """One run's named outputs as NumPy arrays."""

    def reset_memory(self) -> None:
        """Restart the device's peak counters."""

    def device_memory(self) -> DeviceMemory | None:
        """The device allocator's counters, None where there are none."""

    def evidence(self) -> Evidence:
        """Where the work ran, read back from what `inspect` or `outputs` saw last."""

    def close(self) -> None:
        """Free everything."""


@dataclass(frozen=True)
class RuntimeInfo:
    """A runtime's card: readable without importing its engine."""

    name: str
    hardware: tuple[str, ...]  # platforms it serves
    package: str  # the engine's import name
    extra: str  # the extra that installs it
    default_for: tuple[str, ...] = ()  # platforms whose default runtime it is
    precisions: tuple[str, ...] = ("fp32",)
    api_version: int = API_VERSION
    isolation: Literal["fork", "spawn", "remote"] = "spawn"
    consumes: Literal["torch", "onnx"] = "torch"
    files: tuple[FileFormat, ...] = ()  # formats of models' own files that it measures
    reader: str = ""  # the module that reads them, if no other engine can: `file_models.kinds`
    domains: tuple[str, ...] = ()  # of operators in them that it alone may know
    preload: tuple[str, ...] = ()  # modules a warm template may import; nothing may run in it
    environment: Mapping[str, str] = field(default_factory=dict)  # set before the worker's exec
    provenance: Provenance = Provenance.MEASURED  # the scripted runtime says simulated
    compiles: bool = False  # always, asked or not: the column `compiled` is true of its results
    options: tuple[RuntimeOption, ...] = ()  # of its own, beside --threads and --compile
    generates: bool = True  # token by token; else a forward pass is what is measured by default
    reopens: bool = False  # what is dear to start serves one model after another in a worker
    distributes: bool = False  # several may share a step
    ranks: Literal["processes", "devices"] = "processes"  # that do: devices are of one process
    several_machines: bool = False  # whose processes may share a step
    spills: bool = False  # heeds Job.spill: fp32 weights may stay on the disk, nothing being timed
    # What other rooms say of it; read through core/devices.py, so that none of them lists runtimes.
    title: str = ""  # as people write it: "ONNX Runtime"; the name unless given
    short: str = ""  # in a narrow column of a table: "ort"; the name unless given
    aliases: tuple[str, ...] = ()  # other words that people type for it: "onnx", "ort"
    engine_packages: tuple[str, ...] = ()  # distributions that are the engine; the first's version
    packages: tuple[str, ...] = ()  # further ones whose version can change a figure
    dashes: tuple[int, ...] = ()  # of its lines in charts; drawn by lot from its name unless given
    place: int = 100  # in lists of engines: what most people have comes first
    reasons: Mapping[str, Belongs] = field(default_factory=dict)  # that it alone gives


@runtime_checkable
class Runtime(Protocol):
    """HOW a model runs: one file, one entry point."""

    info: RuntimeInfo

    def probe(self) -> list[Device | Absent]:
        """What this engine itself sees. Runs in a throw-away process: it may import and hang."""

    def supports(self, case: Case, device: Device) -> Support:
        """Without importing the engine."""

    def clock(self) -> Clock:
        """The clock its blocks are timed by."""

    def open(self, job: Job) -> Session:
        """Build, load and place the model. Raises CaseError with a reason."""


@runtime_checkable
class SetUp(Protocol):
    """A runtime that needs more than its package: something that a command fetches."""

    def ready(self) -> Support:
        """Whether that is there. Where it is not, only who names its platforms hears of it."""


@dataclass(frozen=True)
class ArtifactFormat:
    """What a runtime opens instead of a torch module."""

    format: str  # one of artifacts.recipe.FORMATS, or a file format
    static: bool = False  # the batch is fixed too, as NPUs want it


@runtime_checkable
class Importing(Protocol):
    """A runtime that opens an artefact: a model exported before, in a process of its own."""

    def wants(self, case: Case) -> ArtifactFormat:
        """Without importing the engine."""

"""Protocols between the packages: devices, engines, sessions, blocks and evidence."""

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
    """Device that was found present."""

    hardware: str
    name: str  # display name: "AMD EPYC 9355", "NVIDIA H200"
    ordinal: int = 0
    vendor: str = ""
    memory_bytes: int | None = None
    count: int = 1  # of cores for a CPU, of units otherwise
    power_limit_watts: float | None = None
    driver: str = ""
    emulated: bool = False  # software simulates the device: its times are never compared
    details: Mapping[str, Any] = field(default_factory=dict)  # shown to people, never hashed
    unit: str = ""  # kind of unit if a platform has several: OpenVINO's cpu, gpu, npu

    @cached_property
    def fingerprint(self) -> str:
        """Hash of stable properties: model, count, memory and power limit."""
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
    """Platform that is not present, with the reason and the remedy."""

    hardware: str
    reason: str
    remedy: str
    details: Mapping[str, Any] = field(default_factory=dict)


#: The devices of each platform, or the reason why there are none.
Inventory = Mapping[str, Sequence[Device | Absent]]


def installed_gib(visible_bytes: float) -> int:
    """Return the installed memory that the visible memory suggests.

    The memory that kernels and firmware reserve varies from boot to boot, so the size is rounded up
    in steps of a sixteenth and at least 1 GiB. A 24 GiB machine that shows 23.5 GiB must not become
    23 because a kernel took 50 MiB more.
    """
    gib = visible_bytes / 2**30
    step = max(1, (1 << (max(int(gib), 1).bit_length() - 1)) // 16)
    return math.ceil(gib / step) * step


class Detector(Protocol):
    """Detector of one platform, in a file of its own or a plugin.

    It may have a `colour`, "#rrggbb", for its marks in charts.
    """

    hardware: str

    def detect(self) -> list[Device | Absent]:
        """Return every device present, or exactly one Absent.

        It never raises and never imports an engine.
        """


@dataclass(frozen=True)
class Support:
    """Whether an engine can run a case; if not, the reason and the advice."""

    ok: bool
    reason: str = ""  # a short stable token
    message: str = ""
    advice: str = ""


SUPPORTED = Support(ok=True)


#: Largest share of a step's time on other devices: engines leave shapes and gathers on the host on
#: purpose.
MAX_SHARE_ELSEWHERE = 0.1


@dataclass(frozen=True)
class Evidence:
    """Proof of the devices and types of the work, read from the engine after it ran.

    The types in `details` are described in run/verify/precision_proof.py.
    """

    devices: tuple[str, ...]  # as the engine names them: "cpu", "cuda:0"
    requested: str = ""
    engine: str = ""  # "torch 2.13.0"
    emulated: bool = False
    details: Mapping[str, Any] = field(default_factory=dict)  # providers, partitions, kernels …
    shares: Mapping[str, float] = field(default_factory=dict)  # of the time by device, if known

    @property
    def other_devices(self) -> Mapping[str, float | None]:
        """Devices that took part without being requested, with their share if it is known."""
        requested_kind, _, ordinal = self.requested.partition(":")
        others = {}
        for device in self.devices if requested_kind else ():
            kind, _, number = device.partition(":")
            # A name without an ordinal matches every ordinal.
            if kind != requested_kind or (ordinal and number and ordinal != number):
                others[device] = self.shares.get(device)
        return others

    @property
    def fell_back(self) -> bool:
        """Whether work ran on other devices, beyond the allowed share."""
        shares = self.other_devices.values()
        return (
            any(part is None for part in shares) or sum(filter(None, shares)) > MAX_SHARE_ELSEWHERE
        )


@dataclass(frozen=True)
class Block:
    """Samples of n steps, measured in the process that ran them.

    `phase_ns` has a list per phase: one entry per step for EACH, PHASES and DEVICE, and one entry
    for the whole block for WHOLE. `token_ns` has a list per request for a PHASES block of a model
    that generates: the time of each token since the start of the request. `losses` has each
    training step's loss. `compilations` counts compilations during the block, and `compile_ns` is
    their time, for engines that compile at the first call: a block with compilations is not a
    steady state.
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
    """End blocks early, after a number of steps that the session does not know in advance.

    The outputs of that step are kept, so a check can examine any step of a block.
    """
    before = _stop_after.set(steps)
    try:
        yield
    finally:
        _stop_after.reset(before)


def most_steps(n: int) -> int:
    """Return the number of steps of a block of n: n, or fewer within `stopping_after`."""
    return min(n, _stop_after.get() or n)


@dataclass(frozen=True)
class Job:
    """Input of an engine that opens a session."""

    case: Case
    device: Device
    settings: JobSettings = field(default_factory=JobSettings)
    artefact: str | None = None  # folder of the exported model that the engine opens
    spill: str | None = None  # folder for weights that exceed memory; nothing is timed

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Return a setting, for engines of other packages that read settings from the job."""
            if name in JobSettings.names():
                return getattr(self.settings, name)
            raise AttributeError(f"a job has no {name}")


@dataclass(frozen=True)
class DeviceMemory:
    """Counters of a device's memory allocator."""

    peak_bytes: int | None  # None if the allocator keeps no peak
    current_bytes: int
    reserved_bytes: int | None = None
    source: str = ""


class Session(Protocol):
    """Model opened on a device, ready to run steps."""

    @property
    def phases(self) -> tuple[str, ...]:
        """Phases of the inputs prepared last: ("step",), ("prefill", "decode")."""

    @property
    def device_timed(self) -> bool:
        """Whether `sample` accepts Timing.DEVICE."""

    @property
    def timings(self) -> Mapping[str, int]:
        """Nanoseconds of build, load and other phases that have happened."""

    @property
    def weights_digest(self) -> str:
        """Digest of the weights, to compare the weights of results."""

    def prepare(self, case: Case, seed: int | None = None) -> Any:
        """Return seeded inputs for a case's shapes, on the device, outside the timed step.

        A training session restarts from its initial weights. `seed` replaces the job's seed for the
        inputs.
        """

    def compile(self, inputs: Any) -> int | None:
        """Compile for these inputs and return the nanoseconds.

        It returns None if nothing is compiled, or if the engine compiles at the first call: then
        the block of that call has the time.
        """

    def sample(self, inputs: Any, n: int, timing: Timing) -> Block:
        """Return a block of n steps, timed in this process."""

    def inspect(self, inputs: Any) -> None:
        """Run one step and examine its outputs on the device, for the evidence.

        It runs in the memory pass, so it must not copy them.
        """

    def outputs(self, inputs: Any) -> Mapping[str, Any]:
        """Return one run's named outputs as NumPy arrays."""

    def reset_memory(self) -> None:
        """Reset the device's peak counters."""

    def device_memory(self) -> DeviceMemory | None:
        """Return the device allocator's counters; None if it has none."""

    def evidence(self) -> Evidence:
        """Return the devices of the work that `inspect` or `outputs` saw last."""

    def close(self) -> None:
        """Free all resources."""


@dataclass(frozen=True)
class RuntimeInfo:
    """Card of an engine, which can be read without importing the engine."""

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
    reader: str = ""  # module that reads them, if only this engine can: `file_models.kinds`
    domains: tuple[str, ...] = ()  # of operators in them that only this engine may know
    preload: tuple[str, ...] = ()  # modules that a warm template may import without running them
    environment: Mapping[str, str] = field(default_factory=dict)  # set before the worker's exec
    provenance: Provenance = Provenance.MEASURED  # the scripted engine sets simulated
    compiles: bool = False  # always, so that the column `compiled` is true for its results
    options: tuple[RuntimeOption, ...] = ()  # its own, in addition to --threads and --compile
    generates: bool = True  # token by token; otherwise a forward pass is measured by default
    reopens: bool = False  # it starts slowly, so one worker opens one model after another
    distributes: bool = False  # several processes or devices may share a step
    ranks: Literal["processes", "devices"] = "processes"  # devices belong to one process
    several_machines: bool = False  # their processes may share a step
    spills: bool = False  # it uses Job.spill: fp32 weights may stay on disk if nothing is timed
    # Display and listing, read through core/devices.py, so that no other package lists engines.
    title: str = ""  # display name: "ONNX Runtime"; the name unless given
    short: str = ""  # in a narrow column of a table: "ort"; the name unless given
    aliases: tuple[str, ...] = ()  # other names that people type: "onnx", "ort"
    engine_packages: tuple[str, ...] = ()  # distributions of the engine; the first has its version
    packages: tuple[str, ...] = ()  # further distributions whose version can change a result
    dashes: tuple[int, ...] = ()  # of its lines in charts; derived from its name unless given
    place: int = 100  # order in lists of engines: the most common ones first
    reasons: Mapping[str, Belongs] = field(default_factory=dict)  # that only this engine gives


@runtime_checkable
class Runtime(Protocol):
    """Engine: one file, one entry point."""

    info: RuntimeInfo

    def probe(self) -> list[Device | Absent]:
        """Return the devices that the engine sees.

        It runs in a disposable process, so it may import the engine and hang.
        """

    def supports(self, case: Case, device: Device) -> Support:
        """Return whether the engine can run a case, without importing the engine."""

    def clock(self) -> Clock:
        """Return the clock that times its blocks."""

    def open(self, job: Job) -> Session:
        """Build, load and place the model; raise CaseError with a reason if that fails."""


@runtime_checkable
class SetUp(Protocol):
    """Engine that needs more than its package, such as files that a command downloads."""

    def ready(self) -> Support:
        """Return whether those files are there.

        If they are not, only users who name its platforms get the message.
        """


@dataclass(frozen=True)
class ArtifactFormat:
    """Format of the exported model that an engine opens."""

    format: str  # one of artifacts.recipe.FORMATS, or a file format
    static: bool = False  # the batch is fixed too, as NPUs want it


@runtime_checkable
class Importing(Protocol):
    """Engine that opens a model that another process exported."""

    def wants(self, case: Case) -> ArtifactFormat:
        """Return the format for a case, without importing the engine."""

"""Calibration of a device: its worker is started and heard, and the results are stored.

    algorithm bandwidth = bytes ÷ time of a collective
    bus bandwidth       = algorithm bandwidth × what each byte crosses of the links (nccl-tests)

https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md

Timing of a probe: warm-up, then blocks of steps until its time is over.

    first step │ warm-up, twice as many steps each time │ block │ block │ block …

A block takes 20 ms: 10,000 times what a clock's reading costs, and five of them fit a tenth of a
second. The device is waited for only at a block's end, so that launches overlap as they do in use.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Timer
from typing import Any, Protocol

import numpy as np

from accelbench.core import processes
from accelbench.core.calibration import (
    COLLECTIVE_WARNINGS,
    DeviceCalibration,
    ProbeKind,
    ProbeRefusal,
    ProbeResult,
    ProbeSpec,
    spec_from_body,
)
from accelbench.core.clock import Clock, MonotonicClock
from accelbench.core.errors import CaseError, SurroundingsError
from accelbench.core.facts import DEVICE_CALIBRATED, HARDWARE_MEASURED, Fact, new_run_id, utc_now
from accelbench.core.identity import digest
from accelbench.core.jsonc import JsonError, loads
from accelbench.core.protocols import Device
from accelbench.core.serial import device_to_json
from accelbench.engines.pytorch.distributed.group import RankGroup, RankLaunch, backend_of
from accelbench.engines.pytorch.runtime import PytorchRuntime
from accelbench.hardware.machine import FOREIGN_SHARE, QUOTA_SHARE, STEAL_SHARE, threads_of_each
from accelbench.measure.intervals import median_interval
from accelbench.run.conduct.launch_context import Surroundings
from accelbench.run.process.worker_pool import START_SECONDS, worker_environment
from accelbench.store.files import Scratch
from accelbench.store.journal import Journal

_BLOCK_NS = 20_000_000
_WARMUP_SHARE = 0.25
#: An interval of a median needs five; they may take three times the probe's time.
FEWEST_BLOCKS = 5
_OVERTIME = 3.0
_MOST_BLOCKS = 200


@dataclass(frozen=True)
class ProbeBlocks:
    """Blocks of a probe: how many steps each has, and what each took."""

    steps: int
    samples_ns: tuple[int, ...]

    @property
    def step_seconds(self) -> float:
        return min(self.samples_ns) / self.steps / 1e9


def time_probe(
    step: Callable[[], object], synchronize: Callable[[], None] | None, seconds: float, clock: Clock
) -> ProbeBlocks:
    """Time a probe for so many seconds, warm-up included.

    A step may return before the device has done it, if `synchronize` waits for the device.
    """

    def block(steps: int) -> int:
        begin = clock.now_ns()
        for _ in range(steps):
            step()
        if synchronize is not None:
            synchronize()
        return clock.now_ns() - begin

    return time_blocks(block, seconds, clock)


def time_blocks(block: Callable[[int], int], seconds: float, clock: Clock) -> ProbeBlocks:
    """Return the nanoseconds of blocks of steps, after a warm-up."""
    begin = clock.now_ns()
    budget = int(seconds * 1e9)
    block(1)  # pages, kernels and workspaces of the first step
    steps, took = 1, block(1)
    while clock.now_ns() - begin < budget * _WARMUP_SHARE:
        if took < _BLOCK_NS:
            steps *= 2
        took = block(steps)
    steps = max(1, round(steps * _BLOCK_NS / max(took, 1)))
    samples = [block(steps)]
    while len(samples) < _MOST_BLOCKS:
        elapsed = clock.now_ns() - begin
        few = len(samples) < FEWEST_BLOCKS
        if elapsed >= (budget * _OVERTIME if few else budget):
            break
        samples.append(block(steps))
    return ProbeBlocks(steps, tuple(samples))


def figure_of(spec: ProbeSpec, steps: int, samples_ns: Sequence[int]) -> ProbeResult:
    """Return a probe's median rate with its interval, from the times of its blocks."""
    # The interval is that of the median of dependent samples (`measure/intervals.py`).
    seconds = np.asarray(samples_ns, dtype=np.float64) / 1e9 / steps
    values = seconds if spec.kind is ProbeKind.LAUNCH else spec.work / seconds
    interval = median_interval(values)
    return ProbeResult(
        spec, steps, tuple(samples_ns), float(np.median(values)),
        interval.low if interval else None, interval.high if interval else None,
    )  # fmt: skip


#: By what nccl-tests multiply an algorithm's bandwidth, of n ranks.
BUS_FACTORS: Mapping[str, Callable[[int], float]] = {
    "all_reduce": lambda n: 2 * (n - 1) / n,
    "all_gather": lambda n: (n - 1) / n,
    "reduce_scatter": lambda n: (n - 1) / n,
    "broadcast": lambda _n: 1.0,
}
#: Bytes: from what latency decides to what bandwidth does.
_SIZES = (2**10, 2**14, 2**18, 2**20, 2**22, 2**24)
_SECONDS = 0.4  # of each
_VALUE = 4


class Asked(Protocol):
    """A group of ranks that answers questions."""

    def ask(self, do: str, **what: object) -> list[object]:
        """Return every rank's answer."""


def collective_specs(ranks: int) -> list[ProbeSpec]:
    """Each collective at each size: whole values for every rank, so some bytes less than named."""
    return [
        ProbeSpec(
            ProbeKind.COLLECTIVE,
            f"probe/{name}-{_named(size)}-{ranks}-ranks",
            "fp32",
            whole,
            whole * factor(ranks),
        )
        for name, factor in BUS_FACTORS.items()
        for size in _SIZES
        for whole in (size // (_VALUE * ranks) * _VALUE * ranks,)
    ]


def _named(size: int) -> str:
    return f"{size // 2**20}MiB" if size >= 2**20 else f"{size // 2**10}KiB"


@dataclass(frozen=True)
class CollectiveAnswers:
    """The results of collectives."""

    figures: Sequence[ProbeResult] = ()  # of those that were timed
    refusals: Sequence[ProbeRefusal] = ()  # why others were not
    #: the machine meanwhile; empty where ranks were lost.
    environment: Mapping[str, Any] = field(default_factory=dict)


def time_collectives(
    hardware: str, ranks: int, hear: Callable[[int, int], None]
) -> CollectiveAnswers:
    """Start ranks, time every collective among them, and end them.

    Each rank has a device of the platform; of a CPU a share of the threads. `hear` gets the
    progress.
    """
    specs = collective_specs(ranks)
    try:
        threads = threads_of_each(None, ranks)
        group = RankGroup(RankLaunch(ranks, backend_of(hardware), threads))
    except CaseError as error:
        return CollectiveAnswers(refusals=[_refusal("probe/collectives", error)])
    with closing(group):
        worked, before = _cpu_seconds(group), Surroundings().before()
        figures, refusals = timed_on(group, specs, MonotonicClock(), hear)
        done = _cpu_seconds(group)
        if worked is None or done is None:
            return CollectiveAnswers(figures, refusals)
        around, _ = Surroundings().after(before, done - worked)
        return CollectiveAnswers(figures, refusals, dict(around))


def _cpu_seconds(group: Asked) -> float | None:
    """What the ranks have worked, all together; None if they are lost."""
    try:
        return sum(float(str(seconds)) for seconds in group.ask("cpu_seconds"))
    except CaseError:
        return None


def timed_on(
    group: Asked, specs: list[ProbeSpec], clock: Clock, hear: Callable[[int, int], None]
) -> tuple[list[ProbeResult], list[ProbeRefusal]]:
    """Return the figures of probes on a group; if it is lost, why nothing came after."""
    figures: list[ProbeResult] = []

    def block(steps: int) -> int:
        # A collective is over when its last rank has its result.
        return max(int(str(took)) for took in group.ask("time_collective", steps=steps))

    for done, spec in enumerate(specs):
        hear(done, len(specs))
        try:
            group.ask("open_collective", name=spec.collective, size=spec.size)
            blocks = time_blocks(block, _SECONDS, clock)
        except CaseError as error:
            return figures, [_refusal(spec.name, error)]  # all ranks are gone with it
        figures.append(figure_of(spec, blocks.steps, blocks.samples_ns))
    hear(len(specs), len(specs))
    return figures, []


def _refusal(name: str, error: CaseError) -> ProbeRefusal:
    return ProbeRefusal(name, "fp32", error.message)


WORKER = "accelbench.run.calibration_worker"
#: Of all probes of a device; importing the engine takes another three seconds.
SECONDS = 26.0
#: A worker that takes so many times as long hangs.
_PATIENCE = 5.0

#: Hears what has come of a probe: how many have been timed or refused, of how many.
Hear = Callable[[int, int], None]


def calibrate(
    device: Device,
    seconds: float = SECONDS,
    hear: Hear = lambda _done, _of: None,
    processes: int = 1,
) -> DeviceCalibration:
    """Time the probes of a device in a process of its own; with several processes, collectives too.

    Raises SurroundingsError if the engine cannot use the device, or its process died too early.
    """
    began, before = utc_now(), Surroundings().before()
    request = json.dumps({"device": device_to_json(device), "seconds": seconds})
    with closing(Scratch()) as scratch:
        log = scratch.folder / "calibration.log"
        with closing(_answers(request, seconds, log)) as answers:
            calibration = _gathered(device, began, answers, hear)
        if not calibration.figures:
            raise SurroundingsError(
                f"No probe could be timed on {device.name} ({device}): {_why(calibration, log)}",
                "`accelbench doctor` says whether PyTorch works with it.",
            )
        worker_seconds = float(calibration.conditions.get("worker_cpu_seconds") or 0.0)
        around, _ = Surroundings().after(before, worker_seconds)
        alone = replace(
            calibration,
            conditions={**calibration.conditions, "environment": dict(around)},
            warnings=disturbances(around) if worker_seconds else (),
        )
        return alone if processes == 1 else _with_collectives(alone, processes, hear)


def _with_collectives(
    calibration: DeviceCalibration, processes: int, hear: Hear
) -> DeviceCalibration:
    answers = time_collectives(calibration.hardware, processes, hear)
    return replace(
        calibration,
        figures=(*calibration.figures, *answers.figures),
        refusals=(*calibration.refusals, *answers.refusals),
        conditions={
            **calibration.conditions,
            "collective_processes": processes,
            "collective_environment": answers.environment,
            COLLECTIVE_WARNINGS: disturbances(answers.environment, "collectives may be too slow"),
        },
    )


def disturbances(around: Mapping[str, Any], so: str = "peaks may be too low") -> tuple[str, ...]:
    """Return warnings about what took time from the probes: a peak measured meanwhile is too
    low."""
    kinds = (
        ("foreign", FOREIGN_SHARE, "Other processes used {} of the CPUs meanwhile"),
        ("steal", STEAL_SHARE, "The hypervisor gave {} of the CPUs' time to others meanwhile"),
        ("quota_stopped", QUOTA_SHARE, "The CPU quota stopped it for {} of the time"),
    )
    return tuple(
        f"{sentence.format(f'{100 * share:.0f} %')}: {so}. Calibrate again when it is quiet."
        for name, allowed, sentence in kinds
        if (share := float(around.get(name) or 0.0)) > allowed
    )


def _answers(request: str, seconds: float, log: Path) -> Generator[Mapping[str, Any]]:
    """What the worker says, until it ends or its time is over."""
    with log.open("wb") as errors:
        process = processes.start_python(
            WORKER, [request], processes.PIPE, errors,
            environment=worker_environment(PytorchRuntime(), None),
        )  # fmt: skip
        watch = Timer(START_SECONDS + _PATIENCE * seconds, process.kill)
        watch.daemon = True
        watch.start()
        try:
            assert process.stdout is not None
            for line in process.stdout:
                try:
                    yield loads(line.decode(errors="replace"))
                except JsonError:
                    continue  # a line that a killed worker left half
            process.wait()
        finally:
            watch.cancel()
            process.kill()
            process.wait()


def _gathered(
    device: Device, began: str, answers: Iterable[Mapping[str, Any]], hear: Hear
) -> DeviceCalibration:
    figures: list[ProbeResult] = []
    refusals: list[ProbeRefusal] = []
    about: Mapping[str, Any] = {}
    ended, worker_seconds = False, 0.0
    for answer in answers:
        if "engine" in answer:
            about = answer
        elif "probe" in answer:
            spec = spec_from_body(answer["probe"])
            figures.append(figure_of(spec, answer["steps"], answer["samples_ns"]))
        elif "refused" in answer:
            refusals.append(ProbeRefusal(**answer["refused"]))
        elif "failed" in answer:
            raise SurroundingsError(f"{answer['failed']}.".replace("..", "."), answer["advice"])
        elif "ended" in answer:
            ended, worker_seconds = True, answer["ended"]
        if about and not ended:
            hear(len(figures) + len(refusals), about["probes"])
    if not ended:
        refusals.append(ProbeRefusal("probe/*", "", "the worker ended before its last probe"))
    return DeviceCalibration(
        fingerprint=device.fingerprint,
        hardware=device.hardware,
        device_name=device.name,
        measured_at=began,
        engine=str(about.get("engine", "")),
        threads=about.get("threads"),
        figures=tuple(figures),
        refusals=tuple(refusals),
        conditions={**about.get("facts", {}), "worker_cpu_seconds": worker_seconds},
    )


def _why(calibration: DeviceCalibration, log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    said = lines[-1] if lines else calibration.refusals[0].reason
    return f"{said}.".replace("..", ".")


def record(
    calibration: DeviceCalibration,
    device: Device,
    folder: Path,
    environment: Mapping[str, Any],
    run_id: str | None = None,
) -> str:
    """Store a calibration in a journal of its own, without a run; return its id."""
    run_id = run_id or new_run_id()
    key = digest([calibration.fingerprint, calibration.measured_at, run_id])
    body = {**calibration.to_body(), "run_id": run_id, "environment": dict(environment)}
    with Journal.create(folder, run_id) as journal:
        # Whoever reads along takes the calibration for the end.
        journal.append(Fact(HARDWARE_MEASURED, key, _hardware(calibration, device, run_id)))
        journal.append(Fact(DEVICE_CALIBRATED, key, body))
    return run_id


def _hardware(calibration: DeviceCalibration, device: Device, run_id: str) -> dict[str, Any]:
    limits = calibration.limits
    peaks = {
        "peak_compute_flops": limits.peaks["fp32"],
        "peak_bandwidth_bytes_per_s": limits.bandwidth,
        "peaks_source": f"measured by hardware --calibrate with {calibration.engine}",
        "peaks_measured_at": calibration.measured_at,
    } if limits else {}  # fmt: skip
    return {
        **device_to_json(device),
        "measured_at": calibration.measured_at,
        "run_id": run_id,
        "runtime_version": calibration.engine.partition(" ")[2] or None,
        **peaks,
    }

"""The context of a launch: settings, everything with an effect, and what its run remembers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, MutableMapping
from dataclasses import dataclass, field, replace
from typing import Any

from accelbench.core.clock import cpu_seconds
from accelbench.core.columns import step_ms
from accelbench.core.facts import Fact
from accelbench.core.identity import to_plain
from accelbench.core.unusable_reasons import MAX_WAITING
from accelbench.core.vocabulary import Outcome, Status
from accelbench.hardware.machine import (
    MachineSnapshot,
    compare,
    noise_warnings,
    take_snapshot,
    threads_of_each,
)
from accelbench.run.conduct.artifacts import ArtifactExports
from accelbench.run.messages import OTHER_PRECISION
from accelbench.run.plan.request import Planned
from accelbench.run.plan.run_forecast import Budget
from accelbench.run.plan.sharing import one_process
from accelbench.run.plan.targets import Simulate, counted_as
from accelbench.run.process.worker_client import WorkerContext
from accelbench.run.process.worker_pool import WorkerPool
from accelbench.run.verify.convergence import Curves
from accelbench.run.verify.verification import Verifications, cell_of

COLUMN = "scaling_efficiency"

#: Of what was estimated: how far the largest process's memory may be from it unsaid.
ESTIMATE_BOUND = 0.15


@dataclass
class OneProcessTimes:
    """The last time of a step in one process, by case and device."""

    _seen: dict[tuple[str, str], float] = field(default_factory=dict)

    @classmethod
    def of(cls, rows: Iterable[Mapping[str, Any]]) -> OneProcessTimes:
        times = cls()
        for row in rows:
            times._note(row)
        return times

    def look(self, body: MutableMapping[str, Any], planned: Planned, nodes: int) -> None:
        # Launches alternate in their order: the last time before is the nearest one.
        if body.get("status") != Status.OK:
            return
        case = planned.case
        if case.world_size == 1:
            self._note(body)
            return
        _hold_estimate(body)
        asked = case.options.get("threads")
        threads = threads_of_each(None if asked is None else int(asked), case.world_size // nodes)
        alone = self._seen.get((one_process(case, threads).case_id, str(body["device"])))
        together = step_ms(body)
        if alone is None or not together:
            nulls = {**(body.get("nulls") or {}), COLUMN: "one process was not measured before it"}
            body["nulls"] = nulls
            return
        body[COLUMN] = alone / (case.world_size * together)
        body["nulls"] = {k: why for k, why in (body.get("nulls") or {}).items() if k != COLUMN}

    def _note(self, row: Mapping[str, Any]) -> None:
        duration = step_ms(row)
        if row.get("status") == Status.OK and row.get("world_size") == 1 and duration:
            self._seen[(str(row["case_id"]), str(row["device"]))] = duration


def _hold_estimate(body: MutableMapping[str, Any]) -> None:
    """Warn if the estimate that the plan relied on was wrong."""
    estimate, peak = body.get("memory_estimate_mb"), body.get("memory_peak_mb")
    if not estimate or peak is None or abs(peak / estimate - 1) <= ESTIMATE_BOUND:
        return
    text = (
        f"The largest process took {peak:.0f} MB where {estimate:.0f} MB were estimated,"
        f" {abs(peak / estimate - 1):.0%} {'more' if peak > estimate else 'less'}."
    )
    body["warnings"] = [*(body.get("warnings") or ()), text]


class FloatComputations:
    """Files stored in another precision that engines of a run compute in fp32."""

    # A user who named no precision did not ask for the one that a file is stored in.

    def __init__(self) -> None:
        self._cells: set[str] = set()  # at whatever batch

    def apply(self, planned: Planned) -> Planned:
        """Return a case in fp32 if its engine is known to compute it so."""
        if not planned.as_stored or cell_of(planned) not in self._cells:
            return planned
        return replace(planned, case=replace(planned.case, precision="fp32"))

    def learn(self, planned: Planned, outcome: Outcome) -> bool:
        """Return whether an outcome shows that a case is to be measured again in fp32."""
        if not planned.as_stored or outcome.reason != OTHER_PRECISION:
            return False
        if planned.case.precision == "fp32":
            return False
        self._cells.add(cell_of(planned))
        return True

    def note(self, planned: Planned, outcome: Outcome) -> Outcome:
        if outcome.status is not Status.OK or _cell_of_file(planned) not in self._cells:
            return outcome
        file, runtime = planned.case.model.graph, planned.case.target.runtime
        assert file is not None  # as it is in a cell
        warning = (
            f"The file is stored in {file.precision}, but {runtime} computed its products in"
            " floats: the result is of fp32."
        )
        return replace(outcome, warnings=[*outcome.warnings, warning])


def _cell_of_file(planned: Planned) -> str:
    file = planned.case.model.graph
    if file is None or not planned.as_stored:
        return ""
    return cell_of(replace(planned, case=replace(planned.case, precision=file.precision)))


@dataclass(frozen=True)
class SurroundingsBefore:
    """The machine, and this process's own work, when a case began."""

    machine: MachineSnapshot
    own_cpu_seconds: float


class Surroundings:
    """Readings of the machine around a case."""

    def before(self) -> SurroundingsBefore:
        return SurroundingsBefore(take_snapshot(), cpu_seconds())

    def after(
        self,
        before: SurroundingsBefore,
        worker_cpu_seconds: float,
        threads: int | None = None,
        metrics: Mapping[str, Any] | None = None,
        other_run: str = "",
    ) -> tuple[Mapping[str, Any], list[str]]:
        """Return the environment to store, and warnings.

        `metrics` show how much the case was disturbed; `other_run` measured meanwhile, if it is not
        empty.
        """
        metrics = metrics or {}
        now = take_snapshot()
        own = worker_cpu_seconds + cpu_seconds() - before.own_cpu_seconds
        disturbance = compare(before.machine, now, own)
        machine = before.machine
        return {
            "load_before": to_plain(machine.load),
            "load_after": to_plain(now.load),
            "governor": str(machine.governor),
            "memory_available": machine.memory_available,
            **to_plain(disturbance),
        }, [
            *_too_many(threads, machine),
            *noise_warnings(
                disturbance,
                machine,
                slowed(metrics),
                threads,
                waited=(metrics.get("cpu_wait_share") or 0.0) > MAX_WAITING,
                other_run=other_run,
            ),
        ]


def slowed(metrics: Mapping[str, Any]) -> float | None:
    """Return a case's median step as a multiple of its fastest; None if steps were not timed
    singly."""
    # The fastest step is the nearest to an undisturbed one that a busy machine has.
    median, fastest = metrics.get("latency_p50_ms"), metrics.get("latency_min_ms")
    return median / fastest if median and fastest else None


def _too_many(threads: int | None, machine: MachineSnapshot) -> list[str]:
    cpus = machine.limits.effective_cpus(machine.cpus)
    if threads is None or threads <= cpus:
        return []
    few = max(1, int(cpus))
    sentence = f"It was measured with {threads} threads on {cpus:g} CPUs: they took turns."
    return [f"{sentence} Use --threads {few}."]


@dataclass
class Repeats:
    """The outputs of a run's launches, by case and device."""

    _seen: dict[tuple[str, str], tuple[int, str]] = field(default_factory=dict)

    def look(self, body: MutableMapping[str, Any]) -> None:
        digest = body.get("outputs_digest")
        if digest is None:
            return
        key = (str(body["case_id"]), str(body["device_fingerprint"]))
        launch, before = self._seen.setdefault(key, (body["launch"], digest))
        if digest != before:
            text = f"The same seeded inputs gave other outputs in launch {launch}."
            body["warnings"] = [*(body.get("warnings") or ()), text]


@dataclass
class LaunchTally:
    """The number of results of each status."""

    counts: dict[str, int] = field(default_factory=dict)

    def add(self, status: str) -> None:
        self.counts[status] = self.counts.get(status, 0) + 1

    @classmethod
    def of(cls, rows: Iterable[Mapping[str, Any]]) -> LaunchTally:
        tally = cls()
        for row in rows:
            tally.add(counted_as(row))
        return tally

    @property
    def all_fine(self) -> bool:
        """Whether every case is ok, unsupported or skipped; simulated cases cannot fail."""
        fine = {"ok", "unsupported", "skipped", "simulated", "not simulated"}
        return set(self.counts) <= fine


@dataclass(frozen=True)
class RunMeans:
    """Parts that a run takes from its caller instead of making its own."""

    pool: WorkerPool | None = None  # workers, whose processes outlast the run
    budget: Budget | None = None  # its time, where it is a part of a larger run's


@dataclass(frozen=True)
class LaunchContext(WorkerContext):
    """A run as its launches see it."""

    append: Callable[[Fact], None]  # durable when it returns
    surroundings: Surroundings
    conditions: Mapping[str, Any]  # versions and such, the same for the whole run
    tally: LaunchTally = field(default_factory=LaunchTally)
    repeats: Repeats = field(default_factory=Repeats)
    one_process: OneProcessTimes = field(default_factory=OneProcessTimes)
    curves: Curves = field(default_factory=Curves)
    artefacts: ArtifactExports = field(default_factory=ArtifactExports)
    verifications: Verifications = field(default_factory=Verifications)
    in_floats: FloatComputations = field(default_factory=FloatComputations)
    waits: dict[str, list[float]] = field(default_factory=dict)  # seconds, by the run's name
    simulate: Simulate | None = None  # what is not here comes to; None where nobody may say

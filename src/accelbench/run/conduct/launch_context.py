"""The context of a launch: settings, and everything with an effect."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from accelbench.core.facts import Fact
from accelbench.run.conduct.artifacts import ArtifactExports
from accelbench.run.conduct.proven_outcome import FloatComputations
from accelbench.run.conduct.scaling import OneProcessTimes
from accelbench.run.conduct.surroundings import Surroundings
from accelbench.run.plan.run_forecast import Budget
from accelbench.run.plan.targets import Simulate, counted_as
from accelbench.run.process.worker_client import WorkerContext
from accelbench.run.process.worker_pool import WorkerPool
from accelbench.run.verify.convergence import Curves
from accelbench.run.verify.launch_repeats import Repeats
from accelbench.run.verify.verification import Verifications


@dataclass
class LaunchTally:
    """The number of results of each status."""

    counts: dict[str, int] = field(default_factory=dict)

    def add(self, status: str) -> None:
        self.counts[status] = self.counts.get(status, 0) + 1

    @classmethod
    def of(cls, rows: Iterable[Mapping[str, Any]]) -> LaunchTally:
        """Count the results of a run."""
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

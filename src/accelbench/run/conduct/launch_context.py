"""What a launch needs of its run: the settings, and everything with an effect, handed in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from accelbench.core.facts import Fact
from accelbench.core.model import AnalyticCost
from accelbench.core.protocols import Runtime
from accelbench.run.conduct.artifacts import ArtifactExports
from accelbench.run.conduct.observer import Observer
from accelbench.run.conduct.simulation import Simulate
from accelbench.run.conduct.surroundings import Surroundings
from accelbench.run.plan.budget import Budget
from accelbench.run.plan.request import Estimate, Free, Planned
from accelbench.run.process.worker_pool import WorkerPool
from accelbench.run.verify.convergence import Curves
from accelbench.run.verify.launch_repeats import Repeats
from accelbench.run.verify.verification import Verifications

DEFAULT_TIMEOUT = 600.0


@dataclass(frozen=True)
class RunSettings:
    """How a run goes about its cases."""

    run_id: str
    seed: int = 0
    weights: str = "random"
    data: str | None = None  # a folder of real inputs
    trust_remote_code: bool = False
    threads: int | None = None
    launches: int = 1
    iterations: int | None = None
    warmup: int | None = None
    timeout: float = DEFAULT_TIMEOUT  # for opening a model, and for each case
    budget: float | None = None  # seconds for the whole run
    verify: str = "auto"  # auto · require · only · off
    fix: bool = True  # try workarounds
    profile: bool = False  # say afterwards where each case's time goes


@dataclass
class LaunchTally:
    """How many results of each status."""

    counts: dict[str, int] = field(default_factory=dict)

    def add(self, status: str) -> None:
        """Count one."""
        self.counts[status] = self.counts.get(status, 0) + 1

    @property
    def all_fine(self) -> bool:
        """True where every case is ok, unsupported or skipped; what is calculated cannot fail."""
        fine = {"ok", "unsupported", "skipped", "simulated", "not simulated"}
        return set(self.counts) <= fine


@dataclass(frozen=True)
class LaunchContext:
    """A run as its launches see it."""

    settings: RunSettings
    worker_pool: WorkerPool
    runtimes: Mapping[str, Runtime]
    append: Callable[[Fact], None]  # durable when it returns
    observer: Observer
    budget: Budget
    surroundings: Surroundings
    estimate: Estimate
    free: Free
    cost: Callable[[Planned], AnalyticCost | None]
    conditions: Mapping[str, Any]  # versions and such, the same for the whole run
    tally: LaunchTally = field(default_factory=LaunchTally)
    repeats: Repeats = field(default_factory=Repeats)
    curves: Curves = field(default_factory=Curves)
    artefacts: ArtifactExports = field(default_factory=ArtifactExports)
    verifications: Verifications = field(default_factory=Verifications)
    simulate: Simulate | None = None  # what is not here comes to; None where nobody may say

"""What of a run those need who start workers and ask them: its settings, workers, room, time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from accelbench.core.model import AnalyticCost
from accelbench.core.protocols import Runtime
from accelbench.run.plan.budget import Budget
from accelbench.run.plan.request import Estimate, Free, Planned
from accelbench.run.plan.run_settings import RunSettings
from accelbench.run.process.observer import Observer
from accelbench.run.process.worker_pool import WorkerPool


@dataclass(frozen=True)
class WorkerContext:
    """A run as those see it who ask its workers."""

    settings: RunSettings
    worker_pool: WorkerPool
    runtimes: Mapping[str, Runtime]
    observer: Observer
    budget: Budget
    estimate: Estimate
    free: Free
    cost: Callable[[Planned], AnalyticCost | None]

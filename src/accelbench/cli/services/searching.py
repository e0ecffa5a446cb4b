"""`recommend --verify` under limits: the largest batch that keeps them, in each precision.

Every way is bracketed on its own (`select/constraints/batch_search.py`); what is to be measured
next of all of them is one run, so that an engine starts once a round.
"""

from __future__ import annotations

import json
import math
import shlex
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from accelbench.analysis.launch_intervals import interval_within
from accelbench.cli.display.terminal import complain
from accelbench.cli.services import verification_runs
from accelbench.cli.services.just_measured import rows_of, step, why_failed, why_no_time
from accelbench.cli.services.measuring import measured
from accelbench.core.errors import SurroundingsError
from accelbench.core.facts import new_run_id
from accelbench.core.protocols import Inventory, Runtime
from accelbench.core.vocabulary import Status
from accelbench.core.worth import answered
from accelbench.hardware.detect import detect_all
from accelbench.run.conduct.lifecycle import RunSpec
from accelbench.run.plan import planning
from accelbench.run.plan.request import Plan, joined
from accelbench.select.constraints.batch_search import LARGEST, largest, next_batch
from accelbench.select.evidence.units import rounded
from accelbench.select.query.query import shapes_named

if TYPE_CHECKING:
    from accelbench.select.constraints.limits import Limits
    from accelbench.store.database import Database

#: What a search takes unless somebody gives it another time.
USUAL_SECONDS = 600.0
_ALIAS = "it is another way by another name"
BUDGET_OVER = "the budget ended the search"
SETTLED = "settled"

Words = Mapping[str, Any]
#: What tells the ways of a round apart.
Key = tuple[str, str, str, str]


@dataclass
class SearchedConfiguration:
    """A hardware, engine and precision, with what became of its batches.

    Attributes:
        case: what is measured, whatever its batch.
        first: the batch to begin with.
        tried: batch → how much of its tightest limit it takes.
        unknown: batch → why it was not measured, or what was says nothing of the limits.
        aside: batch that fits → why its figures are not in the answer all the same.
        again: batches whose time was of no use once, and that are measured a second time.
        unsure: batch → how its time may or may not keep the limit; the search goes on below it.
        engine: as the plan names it.
        ended: why it is not gone on with, where the bracket is not closed.
    """

    case: verification_runs.VerificationCase
    first: int
    tried: dict[int, float] = field(default_factory=dict)
    unknown: dict[int, str] = field(default_factory=dict)
    aside: dict[int, str] = field(default_factory=dict)
    again: set[int] = field(default_factory=set)
    unsure: dict[int, str] = field(default_factory=dict)
    engine: str = ""
    ended: str = ""

    def to_dict(self) -> dict[str, Any]:
        """As the answer has it."""
        most = largest(self.tried)
        return {
            "hardware": self.case.hardware,
            "runtime": self.engine or self.case.runtime,
            "precision": self.case.precision,
            "options": dict(self.case.options),
            "largest_batch": most,
            "largest_tried": LARGEST if most == LARGEST else None,
            "tried": [self._told_of(batch) for batch in sorted({*self.tried, *self.unknown})],
            "ended": self.ended or SETTLED,
        }

    def _told_of(self, batch: int) -> dict[str, Any]:
        """What became of a batch: whether it fits, or None where that is not known."""
        known = batch in self.tried and batch not in self.unsure
        fits = self.tried[batch] <= 1.0 if known else None
        why = self.unknown.get(batch) or self.aside.get(batch) or self.unsure.get(batch)
        return {"batch_size": batch, "fits": fits, **({"why": why} if why else {})}

    def stop_at(self, batch: int, why: str) -> None:
        """Of a batch it is not known whether it fits, and where to go on neither."""
        self.unknown[batch] = why
        self.ended = f"batch {batch} is not known to fit or not"

    def judge(self, batch: int, row: Words, limits: Limits) -> None:
        """What a measurement says of a batch."""
        memory, latency = row["memory_peak_mb"], limits.max_latency_ms
        takes = 0.0
        if limits.memory_mb is not None:
            if memory is None:
                self.stop_at(batch, "its memory is not measured")
                return
            takes = memory / limits.memory_mb
        no_time = why_no_time(row)
        known = step(row)
        if latency is not None and takes <= 1.0:
            if no_time or known is None:
                # A bad moment of the machine passes; what is of no use twice says why.
                if batch in self.again:
                    self.stop_at(batch, no_time)
                self.again.add(batch)
                return
            low, high = interval_within(row, known[1]) or (known[0], known[0])
            takes = max(takes, max(high, known[0]) / latency)
            if low <= latency < high:
                ends = f"{rounded(low)} to {rounded(high)} ms"
                self.unsure[batch] = f"its time lies from {ends}, on both sides of the limit"
        self.tried[batch] = takes
        if no_time and takes <= 1.0:
            self.aside[batch] = no_time


class BatchSearch:
    """Measures batches of one model until the largest that fits is known in every way.

    Args:
        database: where it is stored.
        limits: what has to be kept.
        among: the only batches that are asked about, if some are.
        seconds: how long it may take.
        now: a clock.
    """

    def __init__(
        self,
        database: Database,
        limits: Limits,
        among: Sequence[int] = (),
        seconds: float = USUAL_SECONDS,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._database, self._limits, self._among = database, limits, among
        self._now, self._end = now, now() + seconds
        #: What was run.
        self.runs: list[str] = []
        self._inventory: Inventory = detect_all()
        self._runtimes: Mapping[str, Runtime] = planning.installed_runtimes()

    def through(self, to_search: Iterable[Words], shapes: Words) -> list[dict[str, Any]]:
        """Each way with what was found.

        Args:
            to_search: the ways, as an answer under limits has them.
            shapes: sizes that were asked for.

        Raises:
            SurroundingsError: this machine can go none of them.
        """
        sizes = shapes_named(shapes)
        cases = [verification_runs.case_of(words, sizes) for words in to_search]
        ways = [SearchedConfiguration(case, case.batch_size) for case in cases]
        while self._round(ways):
            pass
        if all(way.ended and not way.tried and not way.unknown for way in ways):
            for why in dict.fromkeys(way.ended for way in ways):
                complain(f"not measured here: {why}")
            raise SurroundingsError(
                "Nothing of the search can be measured on this machine.",
                "Add --hardware here to search on what is here.",
            )
        return [way.to_dict() for way in ways if way.ended != _ALIAS]

    def _round(self, ways: Sequence[SearchedConfiguration]) -> bool:
        """Measure what is next of each way; whether there was anything."""
        plans: dict[Any, list[Plan]] = {}
        batches: dict[Key, tuple[SearchedConfiguration, int]] = {}
        for way in ways:
            batch = None if way.ended else next_batch(way.tried, way.first, self._among)
            if batch is None or batch in way.tried:
                continue
            if self._now() >= self._end:
                way.ended = BUDGET_OVER
                continue
            case = replace(way.case, batch_size=batch)
            plan, why = verification_runs.planned_here(case, self._inventory, self._runtimes)
            if plan is None:
                way.ended = why[0] if why else "no case came of it"
                continue
            planned = plan.cases[0].case
            way.engine = planned.target.runtime
            key = _key(way.engine, planned.target.hardware, planned.precision, planned.options)
            if key in batches:
                way.ended = _ALIAS
                continue
            batches[key] = way, batch
            plans.setdefault(case.settings, []).append(Plan(plan.cases[:1], plan.notes))
        if not plans:
            return False
        left = max(self._end - self._now(), 1.0)
        command = shlex.join(["accelbench", *sys.argv[1:]])
        about = {"command": command, "label": "recommend --verify"}
        journeys = [
            RunSpec(
                joined(several),
                replace(settings, run_id=new_run_id(), budget=left),
                self._runtimes,
                about,
            )
            for settings, several in plans.items()
        ]
        self._judge(measured(self._database, lambda *_: journeys), batches)
        return True

    def _judge(
        self, runs: Sequence[str], batches: Mapping[Key, tuple[SearchedConfiguration, int]]
    ) -> None:
        """What became of each batch that was asked for."""
        self.runs += runs
        rows = rows_of(self._database, runs)
        names = ("runtime", "hardware", "precision", "options")
        by_key = {_key(*(row[name] for name in names)): row for row in rows}
        for key, (way, batch) in batches.items():
            row = by_key.get(key)
            if row is None:
                way.ended = "it was not measured"
            elif row["status"] == Status.SKIPPED:
                way.ended = BUDGET_OVER
            elif row["status"] == Status.OUT_OF_MEMORY:
                way.tried[batch] = math.inf
            elif row["status"] == Status.UNSUPPORTED:
                way.ended = why_failed(row)
            elif not answered(row):
                way.stop_at(batch, why_failed(row))
            else:
                way.judge(batch, row, self._limits)


def _key(runtime: str, hardware: str, precision: str, options: Words | None) -> Key:
    return runtime, hardware, precision, json.dumps(dict(options or {}), sort_keys=True)

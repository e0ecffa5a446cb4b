"""`recommend --verify`: measure the answer, or search for the largest batch within limits.

All configurations are searched together, one run a round, so that an engine starts once a round.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from accelbench.cli.services.measuring import measured, rows_of, step, why_failed, why_no_time
from accelbench.cli.services.opening import typed_command
from accelbench.core.case import engine_options
from accelbench.core.devices import default_precision
from accelbench.core.errors import SurroundingsError, UsageError
from accelbench.core.facts import new_run_id
from accelbench.core.precision import parse_precision
from accelbench.core.protocols import Device, Inventory, Runtime
from accelbench.core.result_statistics import FEWEST_LAUNCHES
from accelbench.core.run_options import RunSettings
from accelbench.core.vocabulary import Mode, Status
from accelbench.hardware.detect import detect_all
from accelbench.judge.ratios import interval_within
from accelbench.models.find import find
from accelbench.present.terminal.terminal import complain
from accelbench.recommend.constraints.measurement_candidates import LARGEST, largest, next_batch
from accelbench.recommend.evidence.cells import rounded
from accelbench.recommend.query import GENERATING, shapes_named
from accelbench.run.conduct.lifecycle import PlannedRun
from accelbench.run.plan import expand
from accelbench.run.plan.automatic import SIZES
from accelbench.run.plan.request import Plan, Planned, Request, joined
from accelbench.run.plan.targets import nothing_measured

if TYPE_CHECKING:
    from accelbench.recommend.constraints.limits import Limits
    from accelbench.store.database import Database


Words = Mapping[str, Any]
#: Options that are asked of every engine, in either mode.
_OF_ALL = ("compile", "threads")
_NOT_TRIED = (Status.UNSUPPORTED.value, Status.SKIPPED.value)


@dataclass(frozen=True)
class VerificationCase:
    """What is worth measuring, in the words of an answer."""

    model: str
    hardware: str
    runtime: str | None
    precision: str
    batch_size: int
    mode: str
    shapes: Words = field(default_factory=dict)
    launches: int = 1
    device: str | None = None  # by its name, where it is of one
    #: only this engine will do; else the platform's own, where this one is not here
    exact: bool = False
    options: Words = field(default_factory=dict)  # what was set on purpose
    weights: str = "random"  # random, hub, or a folder
    data: str | None = None  # a folder of real inputs
    energy: bool = False  # it is measured too

    def request(self, inventory: Inventory, installed: Iterable[str]) -> Request:
        named = self.runtime in set(installed)
        if self.exact and self.runtime and not named:
            raise UsageError(f"The engine {self.runtime} is not here.")
        sizes: dict[str, Any] = {
            name: (self.shapes[column],) for name, column in SIZES.items() if self._has(column)
        }
        own = engine_options(self.options)
        trains = {n: v for n, v in self.options.items() if n not in (*own, *_OF_ALL)}
        return Request(
            models=(find(self.model),),
            hardware=(self._place(inventory),),
            # What was imported may be of an engine that nobody has here.
            runtimes=(str(self.runtime),) if named else (),
            batch_sizes=(self.batch_size,),
            precisions=(parse_precision(self.precision),),
            modes=(Mode(self.mode),),
            options={name: self.options[name] for name in _OF_ALL if name in self.options},
            training_options=trains,
            runtime_options={str(self.runtime): own} if named and own else {},
            **sizes,
        )

    @property
    def settings(self) -> RunSettings:
        threads = self.options.get("threads")
        return RunSettings(
            weights=self.weights,
            data=self.data,
            threads=threads,
            energy=self.energy,
            launches=self.launches,
        )

    def _place(self, inventory: Inventory) -> str:
        """The platform, and of several devices which: a name would make another series of it."""
        platform, _, word = self.hardware.partition(":")
        meant = (self.device or word).lower()
        devices = [
            entry for entry in inventory.get(platform.lower(), ()) if isinstance(entry, Device)
        ]
        for number, device in enumerate(devices):
            if meant in (device.name.lower(), device.unit, str(device.ordinal)):
                first = not number or not meant
                return platform.lower() if first else f"{platform}:{device.unit or device.ordinal}"
        return f"{platform}:{meant}".lower() if meant else platform.lower()

    def _has(self, column: str) -> bool:
        generating = column in GENERATING and self.mode == Mode.TRAINING
        return self.shapes.get(column) is not None and not generating


def measured_again(database: Database, answers: Sequence[Words]) -> list[str]:
    """Measure what answers recommend; where none wins clearly, all that may be first."""
    return _measure(database, [case for words in answers for case in _named_by(words)])


def measured_options(database: Database, answers: Sequence[Words], shapes: Words) -> list[str]:
    """Measure what searches under limits think worth it: the runs."""
    sizes = shapes_named(shapes)
    return _measure(
        database, [case_of(words, sizes) for answer in answers for words in answer["to_verify"]]
    )


def case_of(words: Words, sizes: Words) -> VerificationCase:
    """What a search thinks worth measuring."""
    names = ("model", "hardware", "device", "runtime", "precision", "batch_size", "mode")
    more = ("options", "weights", "data")
    return VerificationCase(
        **{name: words[name] for name in (*names, *more)},
        shapes={**sizes, **words["shapes"]},
        exact=True,
        energy=words.get("energy", False),
    )


def _named_by(answer: Words) -> Iterable[VerificationCase]:
    """The first; beside it those that it does not clearly beat, in launches enough to tell.

    Where it has the only figure there is, all the others: alone it is the best of nothing.
    """
    first, question = answer["primary_recommendation"], answer["question"]
    unclear = answer["no_clear_winner_between"]
    rest = answer["fallback_options"] if answer["compared"] == [first] else unclear
    for name in dict.fromkeys([*([first] if first else []), *rest]):
        score = answer["all_scores"][name]
        yield VerificationCase(
            question["model"],
            name,
            score.get("runtime"),
            score.get("precision")
            or question["precision"]
            or default_precision(name.partition(":")[0], score.get("runtime")),
            question["batch_size"],
            question["mode"],
            question["shapes"],
            FEWEST_LAUNCHES if unclear else 1,
        )


def _measure(database: Database, cases: Sequence[VerificationCase]) -> list[str]:
    made = measured(database, lambda hardware, runtimes: _planned(cases, hardware, runtimes))
    _refuse_nothing(database, made)
    return made


def _planned(
    cases: Sequence[VerificationCase], inventory: Inventory, runtimes: Mapping[str, Runtime]
) -> list[PlannedRun]:
    plans: dict[RunSettings, list[Plan]] = {}
    cannot: dict[str, None] = {}
    for case in cases:
        plan, reasons = planned_here(case, inventory, runtimes)
        cannot |= dict.fromkeys(reasons)
        if plan is not None:
            plans.setdefault(case.settings, []).append(plan)
    for why in cannot:
        complain(f"not measured here: {why}")
    if not cases:
        complain("nothing is measured: no case would change the answer.")
        return []
    if not plans:
        raise SurroundingsError(
            "Nothing of the answer can be measured on this machine.",
            "Add --hardware here to choose among what is here."
            if _is_absent(cases, inventory)
            else "",
        )
    return _runs(plans, runtimes)


def _runs(
    plans: Mapping[RunSettings, Sequence[Plan]], runtimes: Mapping[str, Runtime], **more: Any
) -> list[PlannedRun]:
    about = {"command": typed_command(), "label": "recommend --verify"}
    return [
        PlannedRun(
            joined(several), settings.with_values(run_id=new_run_id(), **more), runtimes, about
        )
        for settings, several in plans.items()
    ]


def _is_absent(cases: Iterable[VerificationCase], inventory: Inventory) -> bool:
    platforms = {case.hardware.partition(":")[0].lower() for case in cases}
    return any(
        not any(isinstance(entry, Device) for entry in inventory.get(name, ()))
        for name in platforms
    )


def planned_here(
    case: VerificationCase, inventory: Inventory, runtimes: Mapping[str, Runtime]
) -> tuple[Plan | None, list[str]]:
    """What of a case this machine can measure, and why not the rest."""
    try:
        plan = expand.plan_for(case.request(inventory, runtimes), inventory, runtimes)
    except UsageError as error:
        return None, [str(error)]
    able = [case for case in plan.cases if case.refusal is None and not _stands_in(case)]
    why = [f"{case.refusal.message}." for case in plan.cases if case.refusal]
    why += [
        f"{case.case.target.hardware_label} is emulated here, and its times are no device's."
        for case in plan.cases
        if _stands_in(case)
    ]
    return (Plan(tuple(able), plan.notes) if able else None), why


def _refuse_nothing(database: Database, runs: Sequence[str]) -> None:
    rows = rows_of(database, runs)
    if rows and all(row["status"] in _NOT_TRIED for row in rows):
        raise SurroundingsError(nothing_measured(rows))


def _stands_in(planned: Planned) -> bool:
    """Whether it would be measured on what is no device, and count for nothing."""
    return planned.device is not None and planned.device.emulated


#: What a search takes unless somebody gives it another time.
USUAL_SECONDS = 600.0
_ALIAS = "it is another way by another name"
BUDGET_OVER = "the budget ended the search"
SETTLED = "settled"

#: What tells the ways of a round apart.
Key = tuple[str, str, str, str]


@dataclass
class SearchedConfiguration:
    """A hardware, engine and precision, with what became of its batches."""

    case: VerificationCase  # what is measured, whatever its batch
    first: int  # the batch to begin with
    #: batch → how much of its tightest limit it takes
    tried: dict[int, float] = field(default_factory=dict)
    #: batch → why it was not measured, or what was says nothing of the limits
    unknown: dict[int, str] = field(default_factory=dict)
    #: batch that fits → why its figures are not in the answer all the same
    aside: dict[int, str] = field(default_factory=dict)
    #: batches whose time was of no use once, and that are measured a second time
    again: set[int] = field(default_factory=set)
    #: batch → how its time may or may not keep the limit; the search goes on below it
    unsure: dict[int, str] = field(default_factory=dict)
    engine: str = ""  # as the plan names it
    ended: str = ""  # why it is not gone on with, where the bracket is not closed

    def to_dict(self) -> dict[str, Any]:
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
        known = batch in self.tried and batch not in self.unsure
        fits = self.tried[batch] <= 1.0 if known else None
        why = self.unknown.get(batch) or self.aside.get(batch) or self.unsure.get(batch)
        return {"batch_size": batch, "fits": fits, **({"why": why} if why else {})}

    def stop_at(self, batch: int, why: str) -> None:
        self.unknown[batch] = why
        self.ended = f"batch {batch} is not known to fit or not"

    def judge(self, batch: int, row: Words, limits: Limits) -> None:
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
    """Measures batches of one model until the largest that fits is known in every way."""

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
        self._runtimes: Mapping[str, Runtime] = expand.installed_runtimes()

    def through(self, to_search: Iterable[Words], shapes: Words) -> list[dict[str, Any]]:
        sizes = shapes_named(shapes)
        cases = [case_of(words, sizes) for words in to_search]
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
        plans: dict[RunSettings, list[Plan]] = {}
        batches: dict[Key, tuple[SearchedConfiguration, int]] = {}
        for way in ways:
            batch = None if way.ended else next_batch(way.tried, way.first, self._among)
            if batch is None or batch in way.tried:
                continue
            if self._now() >= self._end:
                way.ended = BUDGET_OVER
                continue
            case = replace(way.case, batch_size=batch)
            plan, why = planned_here(case, self._inventory, self._runtimes)
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
        journeys = _runs(plans, self._runtimes, budget=left)
        self._judge(measured(self._database, lambda *_: journeys), batches)
        return True

    def _judge(
        self, runs: Sequence[str], batches: Mapping[Key, tuple[SearchedConfiguration, int]]
    ) -> None:
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
            elif not row["answered"]:
                way.stop_at(batch, why_failed(row))
            else:
                way.judge(batch, row, self._limits)


def _key(runtime: str, hardware: str, precision: str, options: Words | None) -> Key:
    return runtime, hardware, precision, json.dumps(dict(options or {}), sort_keys=True)

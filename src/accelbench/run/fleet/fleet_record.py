"""What a fleet's run writes: journals beside the database, of the whole and of each node's part.

What nodes send is held until a case has all its launches from one attempt, and where two arms are
compared with each other until all cases of the unit have; then it goes into the journal of the
node's part, synced, and counts. Whatever comes of that case afterwards, from an
attempt that was given up or from a node that was cut off, is dropped.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from accelbench.core.facts import (
    HARDWARE_MEASURED,
    PART,
    PROFILE,
    RESULT,
    RUN_EXTENDED,
    RUN_FINISHED,
    RUN_RESUMED,
    RUN_STARTED,
    Fact,
    utc_now,
)
from accelbench.core.identity import digest
from accelbench.run.fleet.work_units import CaseKey, WorkUnit
from accelbench.store.ingest import journals_in
from accelbench.store.journal import SUFFIX, Journal, journal_path, read


class FactSink(Protocol):
    """Where facts of a run go, one after the other."""

    def append(self, fact: Fact) -> None:
        """Durable when it returns."""
        ...

    def close(self) -> None:
        """No more is coming."""
        ...


class Sinks(Protocol):
    """Where the facts of runs go."""

    def open(self, run_id: str) -> tuple[FactSink, bool]:
        """Where those of a run go, and whether there are some already."""
        ...


@dataclass(frozen=True)
class JournalSinks:
    """Journals in a folder."""

    folder: Path

    def open(self, run_id: str) -> tuple[FactSink, bool]:
        if journal_path(self.folder, run_id).is_file():
            journal = Journal.resume(self.folder, run_id)
            return journal, any(fact.kind == RUN_STARTED for fact in journal.facts())
        return Journal.create(self.folder, run_id), False


@dataclass
class _Part:
    """What one node measures."""

    sink: FactSink
    begun: bool
    hardware: set[str] = field(default_factory=set)


@dataclass
class _Attempt:
    """What an attempt has sent that does not count yet."""

    started: Mapping[str, Any] | None = None
    extended: bool = False  # its part knows its plan
    hardware: list[Fact] = field(default_factory=list)
    results: dict[CaseKey, list[Fact]] = field(default_factory=dict)
    taken: set[CaseKey] = field(default_factory=set)


class FleetRecord:
    """The facts of a fleet's run, as they come to count."""

    def __init__(self, fleet: str, sinks: Sinks, units: Iterable[WorkUnit], against: str) -> None:
        self.fleet = fleet
        self.counts: Counter[str] = Counter()
        self.dropped = 0  # results of cases that had theirs already
        self._sinks = sinks
        self._units = {unit.number: unit for unit in units}
        self._against = against
        self._left: dict[int, set[CaseKey]] = {
            number: set(unit.keys(against)) for number, unit in self._units.items()
        }
        self._parts: dict[str, _Part] = {}
        self._attempts: dict[tuple[int, int], _Attempt] = {}

    def left(self, unit: int) -> WorkUnit:
        """What of a unit has not ended."""
        whole = self._units[unit]
        done = whole.keys(self._against).keys() - self._left[unit]
        return whole.without(case for case, _ in done) if done else whole

    def complete(self, unit: int) -> bool:
        """Whether every case of a unit has ended."""
        return not self._left[unit]

    def take(self, unit: int, attempt: int, facts: Iterable[Fact]) -> list[Mapping[str, Any]]:
        """Take what a node sent of an attempt; the results that count from now on."""
        held = self._attempts.setdefault((unit, attempt), _Attempt())
        counted: list[Mapping[str, Any]] = []
        for fact in facts:
            if fact.kind == RUN_STARTED:
                held.started = fact.body
            elif fact.kind == HARDWARE_MEASURED:
                held.hardware.append(fact)
            elif fact.kind == RESULT:
                counted += self._result(unit, held, fact)
            elif fact.kind == PROFILE and held.taken:
                self._part(held).sink.append(fact)
        return counted

    def forget(self, unit: int, attempt: int) -> None:
        """Nothing more comes of an attempt."""
        held = self._attempts.pop((unit, attempt), None)
        if held is not None:
            self.dropped += sum(map(len, held.results.values()))

    def unmeasured(self, unit: int, bodies: Iterable[Mapping[str, Any]], sink: FactSink) -> None:
        """Results of cases that were given up: they are of the fleet's run itself."""
        for body in bodies:
            sink.append(Fact(RESULT, str(body["result_id"]), body))
            self.counts[str(body["status"])] += 1
        self._left[unit] = set()

    def close(self, status: str) -> None:
        """The parts have come to their end."""
        for run_id, part in self._parts.items():
            part.sink.append(_finished(run_id, status))
            part.sink.close()

    def _result(self, unit: int, held: _Attempt, fact: Fact) -> list[Mapping[str, Any]]:
        """Hold a result; all of its case, where they are there now and count."""
        key = (str(fact.body["case_id"]), str(fact.body.get("arm") or ""))
        if key not in self._left[unit]:
            self.dropped += 1
            return []
        held.results.setdefault(key, []).append(fact)
        launches = self._units[unit].launches
        whole = {key for key, results in held.results.items() if len(results) >= launches}
        if self._against and whole != self._left[unit]:
            return []  # what is compared with each other counts together
        counted: list[Mapping[str, Any]] = []
        part = self._part(held) if whole else None
        for each in (fact for key in whole for fact in held.results.pop(key)):
            assert part is not None
            part.sink.append(each)
            self.counts[str(each.body["status"])] += 1
            counted.append(each.body)
        held.taken |= whole
        self._left[unit] -= whole
        return counted

    def _part(self, held: _Attempt) -> _Part:
        """The part that an attempt is of, which knows of it from now on."""
        assert held.started is not None
        run_id = str(held.started["run_id"])
        part = self._parts.get(run_id)
        if part is None:
            self._parts[run_id] = part = _Part(*self._sinks.open(run_id))
            if part.begun:
                part.sink.append(_resumed(run_id, held.started))
        if not part.begun:
            part.sink.append(Fact(RUN_STARTED, run_id, held.started))
            part.begun = held.extended = True
        elif not held.extended:
            part.sink.append(_extended(run_id, held.started))
            held.extended = True
        for fact in held.hardware:
            fingerprint = str(fact.body.get("fingerprint"))
            if fingerprint not in part.hardware:
                part.hardware.add(fingerprint)
                part.sink.append(fact)
        held.hardware.clear()
        return part


def facts_of(lines: Iterable[bytes]) -> list[Fact]:
    """The facts of journal lines, as a node sends them: without their sums."""
    records = map(json.loads, lines)
    return [Fact(r["kind"], r["id"], r["body"], r["version"]) for r in records]


def parts_in(folder: Path, fleet: str) -> list[Path]:
    """The journals of the parts of a fleet's run."""
    begins = f"{fleet}{PART}"
    paths = journals_in(folder)
    return [path for path in paths if path.name.removesuffix(SUFFIX).startswith(begins)]


def ended_in(folder: Path, fleet: str) -> dict[str, dict[CaseKey, int]]:
    """How many results of each case and arm a fleet's run has, by the runs that are its parts."""
    ended: dict[str, dict[CaseKey, int]] = {}
    for path in (journal_path(folder, fleet), *parts_in(folder, fleet)):
        counts = ended.setdefault(path.name.removesuffix(SUFFIX), {})
        for fact in read(path):
            if fact.kind == RESULT:
                key = (str(fact.body["case_id"]), str(fact.body.get("arm") or ""))
                counts[key] = counts.get(key, 0) + 1
    return ended


def finish_parts(folder: Path, fleet: str, status: str) -> None:
    """Say of parts that nobody went on with how the fleet's run has ended, and they with it."""
    for path in parts_in(folder, fleet):
        milestones = [
            fact for fact in read(path) if fact.kind in (RUN_STARTED, RUN_RESUMED, RUN_FINISHED)
        ]
        if milestones and milestones[-1].body.get("status") not in (status, "finished"):
            run_id = path.name.removesuffix(SUFFIX)
            with Journal.resume(folder, run_id) as journal:
                journal.append(_finished(run_id, status))


def _extended(run_id: str, started: Mapping[str, Any]) -> Fact:
    body = {"run_id": run_id, "extended_at": utc_now(), "plan": started["plan"]}
    if "against" in started:
        body["against"] = started["against"]
    return Fact(RUN_EXTENDED, digest([run_id, started.get("fleet"), body["extended_at"]]), body)


def _resumed(run_id: str, started: Mapping[str, Any]) -> Fact:
    moment = utc_now()
    body = {"run_id": run_id, "resumed_at": moment, "environment": started["environment"]}
    return Fact(RUN_RESUMED, digest([run_id, moment]), body)


def _finished(run_id: str, status: str) -> Fact:
    moment = utc_now()
    body = {"run_id": run_id, "finished_at": moment, "status": status}
    return Fact(RUN_FINISHED, digest([run_id, moment]), body)

"""Journals of a fleet's run: one for the run, and one for each node's part.

Results of a node are held until a case has all its launches from one attempt, or if two arms are
compared, until all cases of the unit have. Then they go into the journal of the node's part,
synced, and count. Later results of the case, from attempts that were given up, are dropped.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from accelbench.core.errors import StoreError
from accelbench.core.facts import (
    HARDWARE_MEASURED,
    PART_SEPARATOR,
    PROFILE,
    RESULT,
    RUN_EXTENDED,
    RUN_STARTED,
    Fact,
    utc_now,
)
from accelbench.core.identity import digest
from accelbench.core.run_options import RunSettings
from accelbench.core.unusable_reasons import THIS_ARM
from accelbench.core.vocabulary import Outcome, Provenance
from accelbench.fleet.dispatch import CaseKey, WorkUnit, can_be_tried
from accelbench.fleet.fleet_nodes import FleetNode, find_differences
from accelbench.run.conduct.lifecycle import FLEET, PlannedRun, started_fact
from accelbench.run.conduct.results import LaunchFacts, compose, launch_numbers
from accelbench.run.conduct.run_record import (
    arm_to_json,
    finished_fact,
    last_status,
    planned_to_json,
    resumed_fact,
)
from accelbench.run.plan.request import Plan, Planned
from accelbench.store.journal import (
    SUFFIX,
    Journal,
    is_being_written,
    journal_path,
    list_journals,
    read,
)


class FactSink(Protocol):
    """Destination of the facts of one run."""

    def append(self, fact: Fact) -> None:
        """Store a fact durably."""

    def close(self) -> None:
        """Close the destination."""


#: Opens the destination for a run's facts; also returns whether the run has begun.
OpenSink = Callable[[str], tuple[FactSink, bool]]


def open_journal(folder: Path, run_id: str) -> tuple[FactSink, bool]:
    """Open or create the journal of a run; return it and whether the run has begun."""
    if journal_path(folder, run_id).is_file():
        journal = Journal.resume(folder, run_id)
        return journal, any(fact.kind == RUN_STARTED for fact in journal.facts())
    return Journal.create(folder, run_id), False


@dataclass
class _Part:
    """Part of a run that one node measures."""

    sink: FactSink
    begun: bool
    hardware: set[str] = field(default_factory=set)


@dataclass
class _Attempt:
    """Facts of an attempt that do not count yet."""

    started: Mapping[str, Any] | None = None
    extended: bool = False  # its part contains its plan
    hardware: list[Fact] = field(default_factory=list)
    results: dict[CaseKey, list[Fact]] = field(default_factory=dict)
    taken: set[CaseKey] = field(default_factory=set)


class FleetRecord:
    """Facts of a fleet's run that count."""

    def __init__(
        self,
        fleet: str,
        open_sink: OpenSink,
        units: Iterable[WorkUnit],
        against: str,
        own: FactSink,  # the fleet's own journal, for cases that no node measured
    ) -> None:
        self.fleet = fleet
        self.counts: Counter[str] = Counter()
        self.dropped = 0  # results of cases that were complete
        self._open_sink, self._own = open_sink, own
        self._units = {unit.number: unit for unit in units}
        self._against = against
        self._left: dict[int, set[CaseKey]] = {
            number: set(unit.keys(against)) for number, unit in self._units.items()
        }
        self._parts: dict[str, _Part] = {}
        self._attempts: dict[tuple[int, int], _Attempt] = {}

    def remaining_unit(self, unit: int) -> WorkUnit:
        whole = self._units[unit]
        done = whole.keys(self._against).keys() - self._left[unit]
        return whole.remove_cases(case for case, _ in done) if done else whole

    def is_complete(self, unit: int) -> bool:
        return not self._left[unit]

    def take(self, unit: int, attempt: int, facts: Iterable[Fact]) -> list[Mapping[str, Any]]:
        """Take the facts that a node sent for an attempt; return the results that now count."""
        held = self._attempts.setdefault((unit, attempt), _Attempt())
        counted: list[Mapping[str, Any]] = []
        for fact in facts:
            if fact.kind == RUN_STARTED:
                held.started = fact.body
            elif fact.kind == HARDWARE_MEASURED:
                held.hardware.append(fact)
            elif fact.kind == RESULT:
                counted += self._take_result(unit, held, fact)
            elif fact.kind == PROFILE and held.taken:
                self._open_part(held).sink.append(fact)
        return counted

    def forget(self, unit: int, attempt: int) -> None:
        held = self._attempts.pop((unit, attempt), None)
        if held is not None:
            self.dropped += sum(map(len, held.results.values()))

    def store_unmeasured(self, unit: int, bodies: Iterable[Mapping[str, Any]]) -> None:
        """Store results of cases that were given up, as results of the fleet's run itself."""
        for body in bodies:
            self._own.append(Fact(RESULT, str(body["result_id"]), body))
            self.counts[str(body["status"])] += 1
        self._left[unit] = set()

    def close(self, status: str) -> None:
        for run_id, part in self._parts.items():
            part.sink.append(finished_fact(run_id, status))
            part.sink.close()

    def _take_result(self, unit: int, held: _Attempt, fact: Fact) -> list[Mapping[str, Any]]:
        """Hold a result; return all results of its case if it is complete and counts."""
        key = case_key(fact)
        if key not in self._left[unit]:
            self.dropped += 1
            return []
        held.results.setdefault(key, []).append(fact)
        launches = self._units[unit].launches
        whole = {key for key, results in held.results.items() if len(results) >= launches}
        if self._against and whole != self._left[unit]:
            return []  # compared cases count together
        counted: list[Mapping[str, Any]] = []
        part = self._open_part(held) if whole else None
        for each in (fact for key in whole for fact in held.results.pop(key)):
            assert part is not None
            part.sink.append(each)
            self.counts[str(each.body["status"])] += 1
            counted.append(each.body)
        held.taken |= whole
        self._left[unit] -= whole
        return counted

    def _open_part(self, held: _Attempt) -> _Part:
        """Return the part of an attempt after adding the attempt's plan to it."""
        assert held.started is not None
        run_id = str(held.started["run_id"])
        part = self._parts.get(run_id)
        if part is None:
            self._parts[run_id] = part = _Part(*self._open_sink(run_id))
            if part.begun:
                part.sink.append(resumed_fact(run_id, held.started["environment"]))
        if not part.begun:
            part.sink.append(Fact(RUN_STARTED, run_id, held.started))
            part.begun = held.extended = True
        elif not held.extended:
            part.sink.append(_extended_fact(run_id, held.started))
            held.extended = True
        for fact in held.hardware:
            fingerprint = str(fact.body.get("fingerprint"))
            if fingerprint not in part.hardware:
                part.hardware.add(fingerprint)
                part.sink.append(fact)
        held.hardware.clear()
        return part


def parse_facts(lines: Iterable[bytes]) -> list[Fact]:
    """Parse the facts of journal lines without checksums, as sent by nodes."""
    records = map(json.loads, lines)
    return [Fact(r["kind"], r["id"], r["body"], r["version"]) for r in records]


def list_parts(folder: Path, fleet: str) -> list[Path]:
    """Return the journals of the parts of a fleet's run."""
    begins = f"{fleet}{PART_SEPARATOR}"
    paths = list_journals(folder)
    return [path for path in paths if path.name.removesuffix(SUFFIX).startswith(begins)]


def iter_facts(folder: Path, fleet: str, kind: str) -> Iterator[tuple[str, Fact]]:
    """Yield the facts of a kind of a fleet's run, each with the id of its part."""
    for path in (journal_path(folder, fleet), *list_parts(folder, fleet)):
        run_id = path.name.removesuffix(SUFFIX)
        yield from ((run_id, fact) for fact in read(path) if fact.kind == kind)


def count_results(folder: Path, fleet: str) -> dict[str, Counter[CaseKey]]:
    """Return the number of results of each case and arm, by the parts of a fleet's run."""
    ended: dict[str, Counter[CaseKey]] = {}
    for run_id, fact in iter_facts(folder, fleet, RESULT):
        ended.setdefault(run_id, Counter())[case_key(fact)] += 1
    return ended


def case_key(result: Fact) -> CaseKey:
    """Return the key that identifies a result's case within a unit."""
    return str(result.body["case_id"]), str(result.body.get("arm") or "")


def finish_parts(folder: Path, fleet: str, status: str) -> None:
    """Record the end of the fleet's run in parts that no node continued."""
    for path in list_parts(folder, fleet):
        facts = read(path)
        if facts and last_status(facts) not in (status, "finished"):
            run_id = path.name.removesuffix(SUFFIX)
            with Journal.resume(folder, run_id) as journal:
                journal.append(finished_fact(run_id, status))


def _extended_fact(run_id: str, started: Mapping[str, Any]) -> Fact:
    body = {"run_id": run_id, "extended_at": utc_now(), "plan": started["plan"]}
    if "against" in started:
        body["against"] = started["against"]
    return Fact(RUN_EXTENDED, digest([run_id, started.get("fleet"), body["extended_at"]]), body)


#: Cases of a plan in one line of a journal.
_CHUNK = 1000
#: Number of results with samples in memory; more samples stay in the journals and the store.
_MAX_WITH_SAMPLES = 20_000


def record_start(
    journal: Journal,
    spec: PlannedRun,
    nodes: Sequence[FleetNode],
    surroundings: Mapping[str, Any],
    *,
    each: bool,
) -> None:
    """Record the plan, a thousand cases a line: a line with many more would fill the memory."""
    fleet = spec.settings.run_id
    plans = _split_plan([_drop_device(planned) for planned in spec.plan.cases])
    other = None
    if spec.other is not None:
        other_plan = Plan(tuple(_drop_device(planned) for planned in spec.other.plan.cases))
        other = arm_to_json(replace(spec.other, plan=other_plan))
    about = {
        "each": each,
        "nodes": {node.name: _describe_node(node) for node in nodes},
        "differences": [str(difference) for difference in find_differences(nodes)],
    }
    journal.append(started_fact(spec, surroundings, next(plans, []), other, **{FLEET: about}))
    for number, plan in enumerate(plans):
        more = {"run_id": fleet, "extended_at": utc_now(), "plan": plan}
        journal.append(Fact(RUN_EXTENDED, digest([fleet, number]), more))


def _split_plan(cases: Sequence[Planned]) -> Iterator[list[dict[str, Any]]]:
    for first in range(0, len(cases), _CHUNK):
        yield [planned_to_json(planned) for planned in cases[first : first + _CHUNK]]


def _drop_device(planned: Planned) -> Planned:
    return replace(planned, device=None)


def _describe_node(node: FleetNode) -> dict[str, Any]:
    devices = [f"{d}: {d.name}" for found in node.devices.values() for d in found]
    return {"id": node.id, "accelbench": node.version, "devices": devices}


def find_unfinished(folder: Path) -> str | None:
    """Return the newest interrupted run of a fleet in a folder of journals, or None."""
    for path in sorted(folder.glob(f"*{SUFFIX}"), reverse=True):
        run_id = path.name.removesuffix(SUFFIX)
        if PART_SEPARATOR in run_id or is_being_written(path):
            continue
        facts = read(path)
        begun = any(f.kind == RUN_STARTED and isinstance(f.body.get(FLEET), Mapping) for f in facts)
        if begun and last_status(facts) != "finished":
            return run_id
    return None


def find_start(fleet: str, facts: Iterable[Fact]) -> dict[str, Any]:
    """Return the start fact of a fleet's run with its whole plan.

    Raises StoreError if the run is not a fleet's.
    """
    begun: dict[str, Any] | None = None
    for fact in facts:
        if fact.kind == RUN_STARTED and isinstance(fact.body.get(FLEET), Mapping):
            begun = {**fact.body, "plan": list(fact.body["plan"])}
        elif fact.kind == RUN_EXTENDED and begun is not None:
            begun["plan"] += fact.body["plan"]
    if begun is None:
        raise StoreError(
            f"Run {fleet} is not a fleet's.", "Continue it with accelbench run --resume."
        )
    return begun


def build_unmeasured(
    run_id: str, arm: str, settings: RunSettings, cases: Iterable[Planned], outcome: Outcome
) -> Iterator[dict[str, Any]]:
    """Yield results of cases that no node measured, one for each launch."""
    for launch in launch_numbers(settings.launches):
        facts = LaunchFacts(run_id, launch, arm, settings)
        for planned in cases:
            now = utc_now()
            yield compose(facts, planned, outcome, Provenance.MEASURED, None, now, now)


def build_refused(spec: PlannedRun) -> Iterator[dict[str, Any]]:
    """Yield results of cases that the plan refuses on every node."""
    this, settings = THIS_ARM if spec.other else "", spec.settings
    for planned in spec.plan.cases:
        if planned.refusal is not None and not can_be_tried(planned):
            outcome, cases = planned.refusal.outcome, [_drop_device(planned)]
            yield from build_unmeasured(settings.run_id, this, settings, cases, outcome)


def read_rows(folder: Path, fleet: str) -> list[Mapping[str, Any]]:
    """Return every result of a fleet's run and its parts."""
    rows: list[Mapping[str, Any]] = []
    for _, fact in iter_facts(folder, fleet, RESULT):
        body = fact.body
        if len(rows) >= _MAX_WITH_SAMPLES:
            body = {name: value for name, value in body.items() if name != "samples"}
        rows.append(body)
    return rows


def read_profiles(folder: Path, fleet: str) -> list[Mapping[str, Any]]:
    """Return the profiles of a fleet's run; the first one if a case was profiled twice."""
    found: dict[str, Mapping[str, Any]] = {}
    for _, fact in iter_facts(folder, fleet, PROFILE):
        found.setdefault(fact.id, fact.body)
    return list(found.values())

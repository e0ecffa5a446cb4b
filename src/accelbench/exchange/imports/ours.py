"""Import of accelbench's own result files, and of JSON and CSV from `db export`.

Results keep their ids, so that known ones are recognised. A file's statement of a run counts only
if the run itself has none.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from accelbench.core.case import QUESTION
from accelbench.core.columns import BY_NAME
from accelbench.core.facts import RUN_FINISHED, RUN_STARTED, Fact
from accelbench.core.jsonc import JsonError, loads
from accelbench.core.safe_text import in_quotes
from accelbench.core.serial import case_from_json, device_from_json
from accelbench.core.vocabulary import Provenance
from accelbench.exchange.imports.records import (
    MalformedError,
    Record,
    object_of,
    objects_in,
    quick_object_of,
    table_of,
)
from accelbench.exchange.imports.result_row import (
    Source,
    hold,
    hold_samples,
    rates_of,
    refuse_contradictions,
)
from accelbench.exchange.result_schema import SCHEMA_ID, SCHEMA_VERSION
from accelbench.exchange.titles import RUN, RUNS, told


@dataclass(frozen=True)
class Run:
    """A run that has results."""

    id: str
    about: Mapping[str, Any]  # as run_started says it
    own: bool = False  # it is the import itself

    def facts(self) -> tuple[Fact, Fact]:
        """Return facts of its begin and end, with ids other than the run's own facts."""
        fact_id = self.id if self.own else f"import/{self.id}"
        ended = {"status": "finished", "finished_at": self.about.get("finished_at")}
        return (
            Fact(RUN_STARTED, fact_id, {**self.about, "run_id": self.id}),
            Fact(RUN_FINISHED, fact_id, {**ended, "run_id": self.id}),
        )


@dataclass(frozen=True)
class Table:
    """A file's content that is too large to be held."""

    query: str  # for its results, by our columns
    rows: int
    runs: Sequence[Run]
    theirs: int = 0  # say themselves whose they are
    samples: bool = False  # are in the file as well, and are not read
    empty: int = 0  # lines without a figure: what did not run


def about_ours(run: Any, row: Mapping[str, Any], source: Source) -> dict[str, Any]:
    """Return what a file and one of its rows state of a run of ours.

    Its machine is the one that it was made on. A source that the user names is the machine's name,
    and so is the format's if the file names no machine.
    """
    about = told(run) if isinstance(run, Mapping) else {}
    about.setdefault("started_at", row.get("started_at"))
    machine = dict(about.get("environment") or {})
    if row.get("provenance") == Provenance.IMPORTED:
        machine = machine or {"source": _theirs(row.get("conditions")) or source.to_dict()}
    elif source.named or not machine:
        machine["source"] = source.to_dict()
    return {**about, "environment": machine}


def says_another(body: Mapping[str, Any], source: Source) -> bool:
    """Return whether a result states another provenance, which no import changes."""
    theirs = _theirs(body.get("conditions"))
    return theirs is not None and theirs != source.to_dict()


def _theirs(conditions: Any) -> Any:
    return conditions.get("source") if isinstance(conditions, Mapping) else None


def once(runs: Iterable[Run]) -> list[Run]:
    """Return each run once, as first stated."""
    by_id: dict[str, Run] = {}
    for run in runs:
        by_id.setdefault(run.id, run)
    return list(by_id.values())


#: Errors of an entry that is not a case and a device of this version.
_OTHER_VERSION = (KeyError, TypeError, ValueError, AttributeError)


@dataclass(frozen=True)
class StoredPlan:
    """Parts of each planned question by case_id, and each device's name by its fingerprint."""

    questions: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)

    def complete(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        conditions = body.get("conditions") or {}
        parts = self.questions.get(str(body.get("case_id")))
        if parts is None or QUESTION in conditions:
            return body
        return {**body, "conditions": {**conditions, QUESTION: parts}}


def read_plan(whole: Record) -> StoredPlan:
    """Return the plan of a document; empty if it has none that this version reads."""
    run = whole.values.get(RUN)
    entries = run.get("plan") if isinstance(run, Mapping) else None
    questions, names = {}, {}
    for entry in entries if isinstance(entries, list) else ():
        try:
            case, device = case_from_json(entry["case"]), entry.get("device")
            questions[case.case_id] = case.identity_without_columns
            if device is not None:
                known = device_from_json(device)
                names[known.fingerprint] = known.name
        except _OTHER_VERSION:
            continue
    return StoredPlan(questions, names)


JSON_PATTERN = "*.json"
CSV_PATTERN = "*.csv"
#: The column of an export with `--samples`.
SAMPLES = "samples"

#: Without these a line is nobody's result.
NEEDED = ("result_id", "case_id", "model", "hardware", "runtime", "status", "provenance")


def json_rows(file: Path, source: Source) -> Iterator[dict[str, Any]]:
    """Yield one row per result of a result file or of an export."""
    if whole := quick_object_of(file):
        try:
            yield from list(_json_rows(whole, source))
        except MalformedError:
            pass  # read again, it is told with its line
        else:
            return
    yield from _json_rows(object_of(file), source)


def _json_rows(whole: Record, source: Source) -> Iterator[dict[str, Any]]:
    refuse_another(whole)
    runs = runs_told(whole)
    for _, body in read_results(whole):
        yield _imported(body, source, runs.get(str(body.get("run_id")), runs.get("")))


def csv_rows(file: Path, source: Source) -> Iterator[dict[str, Any]]:
    """Yield one row per line of an export."""
    for line, body in read_lines(file):
        yield _imported(body, source, run_of(line))


def read_results(whole: Record) -> list[tuple[Record, dict[str, Any]]]:
    """Return each result of a document with its samples; refuse one that contradicts itself."""
    results = list(told_as_json(whole))
    for record, body in results:
        if record.has("samples"):
            body["samples"] = dict(record.of("samples").values)
        if record.has("sampling"):
            body["sampling"] = dict(record.of("sampling").values)
        hold_samples(record, body)
    plan = read_plan(whole)
    for record, body in results:
        _refuse_unplanned(record, body, plan)
    refuse_contradictions([(record, plan.complete(body)) for record, body in results])
    return results


def _refuse_unplanned(record: Record, body: Mapping[str, Any], plan: StoredPlan) -> None:
    """Refuse another name of the device than the run's plan has for its fingerprint."""
    name, planned = body.get("device_name"), plan.names.get(str(body.get("device_fingerprint")))
    if planned is not None and name is not None and name != planned:
        record.wrong("device_name", f"the run was planned on {in_quotes(planned)}")


def read_lines(file: Path) -> list[tuple[Record, dict[str, Any]]]:
    """Return each result of an export; refuse one that contradicts itself."""
    lines = list(told_as_csv(file))
    refuse_contradictions(lines)
    return lines


def refuse_another(whole: Record) -> None:
    """Refuse a document that states that it does not hold our results."""
    schema = whole.values.get("schema")
    if schema is None or schema == SCHEMA_ID:
        return
    kind, _, version = str(schema).removeprefix("urn:accelbench:").rpartition(":")
    why, advice = f"it is {in_quotes(schema)} where {in_quotes(SCHEMA_ID)} is expected", ""
    if kind == "aggregate":
        why = "it is what all result files of a folder say together, and holds no results"
        advice = "Name a file of raw_results, which is beside its folder."
    elif kind in ("", "result") and version.isdecimal() and int(version) > SCHEMA_VERSION:
        why = f"it was written by a newer accelbench ({version}, known here: {SCHEMA_VERSION})"
        advice = "Upgrade accelbench."
    line = (whole.lines or {}).get("schema", whole.line)
    raise MalformedError(whole.file, line, "schema", why, advice)


def runs_told(whole: Record) -> dict[str, Any]:
    """Return a document's statements of its runs, by id; under None those of all its results.

    A result file has one run, an export any number.
    """
    runs = dict(whole.of(RUNS).values) if whole.has(RUNS) else {}
    return {**runs, "": dict(whole.of(RUN).values)} if whole.has(RUN) else runs


def told_as_json(whole: Record) -> Iterator[tuple[Record, dict[str, Any]]]:
    """Yield each result of a document without its samples."""
    for record in objects_in(whole.file, whole.list("results"), "result"):
        body = {n: record.values[n] for n in BY_NAME if record.values.get(n) is not None}
        _hold(record, body)
        yield record, body


def has_samples(file: Path) -> bool:
    """Return whether a CSV export has samples next to its results."""
    with file.open(newline="", encoding="utf-8-sig") as stream:
        return SAMPLES in next(csv.reader(stream), [])


def told_as_csv(file: Path) -> Iterator[tuple[Record, dict[str, Any]]]:
    """Yield each result of an export."""
    for line in table_of(file, NEEDED):
        body = columns_of(line)
        body.setdefault("arm", "")  # a cell does not tell an empty word from none
        _hold(line, body)
        yield line, body


def columns_of(line: Record) -> dict[str, Any]:
    """Return the cells that have a column's name, as it holds them."""
    return {name: _cell(line, name) for name in BY_NAME if line.values.get(name)}


def _hold(record: Record, body: Mapping[str, Any]) -> None:
    for name in NEEDED:
        record.text(name)
    hold(record, body, rates_of(body))


def run_of(line: Record) -> Any:
    """Return what a line of an export states of its run, or None."""
    return _json(line, RUN) if line.has(RUN) else None


def _imported(body: dict[str, Any], source: Source, run: Any) -> dict[str, Any]:
    about = about_ours(run, body, source)
    provenance = body["provenance"]
    if provenance == Provenance.MEASURED:
        body["provenance"] = Provenance.IMPORTED.value
    conditions = body.get("conditions") or {}
    if provenance != Provenance.IMPORTED:
        conditions = {**conditions, "source": source.to_dict()}
    return {**body, "conditions": conditions, RUN: about}


def _cell(line: Record, name: str) -> Any:
    kind = BY_NAME[name].kind
    if kind in ("text", "time"):
        return line.values[name]
    if kind == "int":
        return line.whole(name, above=None)
    if kind == "float":
        return line.number(name)
    if kind == "bool":
        return line.truth(name)
    return _json(line, name)


def _json(line: Record, name: str) -> Any:
    try:
        return loads(line.values[name])
    except JsonError as error:
        why = f"it is no JSON: {error.message}"
        raise MalformedError(line.file, line.line, name, why) from error

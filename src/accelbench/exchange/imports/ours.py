"""Importer of accelbench's own result files, and of JSON and CSV from `db export`.

Results keep their ids, so that known ones are recognised. A file's facts about a run count only if
the store has none for it.
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
    iter_objects,
    read_object,
    read_object_fast,
    read_table,
)
from accelbench.exchange.imports.result_row import (
    Source,
    check_samples,
    check_values,
    rate_tolerance,
    refuse_contradictions,
)
from accelbench.exchange.result_schema import SCHEMA_ID, SCHEMA_VERSION
from accelbench.exchange.titles import RUN, RUNS, run_facts


@dataclass(frozen=True)
class Run:
    """Run that has results."""

    id: str
    about: Mapping[str, Any]  # as in the fact run_started
    is_import: bool = False  # the import itself

    def facts(self) -> tuple[Fact, Fact]:
        """Return facts of its start and end, with ids other than the run's own facts."""
        fact_id = self.id if self.is_import else f"import/{self.id}"
        ended = {"status": "finished", "finished_at": self.about.get("finished_at")}
        return (
            Fact(RUN_STARTED, fact_id, {**self.about, "run_id": self.id}),
            Fact(RUN_FINISHED, fact_id, {**ended, "run_id": self.id}),
        )


@dataclass(frozen=True)
class Table:
    """Content of a file that is too large for memory."""

    query: str  # selects its results, by our columns
    rows: int
    runs: Sequence[Run]
    sourced: int = 0  # number of results that name their source
    samples: bool = False  # the file also has samples, which are not read
    empty: int = 0  # lines without a value, which did not run


def describe_run(run: Any, row: Mapping[str, Any], source: Source) -> dict[str, Any]:
    """Return the facts of a run from a file and one of its rows.

    Its machine is the one that it was measured on. A source that the user names is the machine's
    name, and so is the format's if the file names no machine.
    """
    facts = run_facts(run) if isinstance(run, Mapping) else {}
    facts.setdefault("started_at", row.get("started_at"))
    machine = dict(facts.get("environment") or {})
    if row.get("provenance") == Provenance.IMPORTED:
        machine = machine or {"source": _stated_source(row.get("conditions")) or source.to_dict()}
    elif source.is_named or not machine:
        machine["source"] = source.to_dict()
    return {**facts, "environment": machine}


def has_other_source(body: Mapping[str, Any], source: Source) -> bool:
    """Return whether a result names another source, which no import changes."""
    stated = _stated_source(body.get("conditions"))
    return stated is not None and stated != source.to_dict()


def _stated_source(conditions: Any) -> Any:
    return conditions.get("source") if isinstance(conditions, Mapping) else None


def unique_runs(runs: Iterable[Run]) -> list[Run]:
    """Return each run once, with its first facts."""
    by_id: dict[str, Run] = {}
    for run in runs:
        by_id.setdefault(run.id, run)
    return list(by_id.values())


#: Errors of entries that another version wrote.
_VERSION_ERRORS = (KeyError, TypeError, ValueError, AttributeError)


@dataclass(frozen=True)
class StoredPlan:
    """Parts of each planned question by case_id, and device names by fingerprint."""

    questions: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)

    def complete(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        conditions = body.get("conditions") or {}
        parts = self.questions.get(str(body.get("case_id")))
        if parts is None or QUESTION in conditions:
            return body
        return {**body, "conditions": {**conditions, QUESTION: parts}}


def read_plan(whole: Record) -> StoredPlan:
    """Return the plan of a document; empty if this version cannot read it."""
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
        except _VERSION_ERRORS:
            continue
    return StoredPlan(questions, names)


JSON_PATTERN = "*.json"
CSV_PATTERN = "*.csv"
#: The column of an export with `--samples`.
SAMPLES = "samples"

#: Columns that every result needs.
REQUIRED_COLUMNS = ("result_id", "case_id", "model", "hardware", "runtime", "status", "provenance")


def read_json_rows(file: Path, source: Source) -> Iterator[dict[str, Any]]:
    """Yield one row per result of a result file or of an export."""
    if whole := read_object_fast(file):
        try:
            yield from list(_convert_results(whole, source))
        except MalformedError:
            pass  # the slower reader reports it with its line
        else:
            return
    yield from _convert_results(read_object(file), source)


def _convert_results(whole: Record, source: Source) -> Iterator[dict[str, Any]]:
    refuse_other_schema(whole)
    runs = read_runs(whole)
    for _, body in read_results(whole):
        yield _mark_imported(body, source, runs.get(str(body.get("run_id")), runs.get("")))


def read_csv_rows(file: Path, source: Source) -> Iterator[dict[str, Any]]:
    """Yield one row per line of an export."""
    for line, body in read_csv_results(file):
        yield _mark_imported(body, source, parse_run(line))


def read_results(whole: Record) -> list[tuple[Record, dict[str, Any]]]:
    """Return each result of a document with its samples; refuse contradictory ones."""
    results = list(iter_json_results(whole))
    for record, body in results:
        if record.has("samples"):
            body["samples"] = dict(record.child("samples").values)
        if record.has("sampling"):
            body["sampling"] = dict(record.child("sampling").values)
        check_samples(record, body)
    plan = read_plan(whole)
    for record, body in results:
        _refuse_other_device(record, body, plan)
    refuse_contradictions([(record, plan.complete(body)) for record, body in results])
    return results


def _refuse_other_device(record: Record, body: Mapping[str, Any], plan: StoredPlan) -> None:
    """Refuse a device name other than the one that the run's plan has for its fingerprint."""
    name, planned = body.get("device_name"), plan.names.get(str(body.get("device_fingerprint")))
    if planned is not None and name is not None and name != planned:
        record.refuse("device_name", f"the run was planned on {in_quotes(planned)}")


def read_csv_results(file: Path) -> list[tuple[Record, dict[str, Any]]]:
    """Return each result of a CSV export; refuse contradictory ones."""
    lines = list(iter_csv_results(file))
    refuse_contradictions(lines)
    return lines


def refuse_other_schema(whole: Record) -> None:
    """Refuse a document with another schema than our results."""
    schema = whole.values.get("schema")
    if schema is None or schema == SCHEMA_ID:
        return
    kind, _, version = str(schema).removeprefix("urn:accelbench:").rpartition(":")
    why, advice = f"it is {in_quotes(schema)}, and {in_quotes(SCHEMA_ID)} is expected", ""
    if kind == "aggregate":
        why = "it summarises the result files of a folder, and has no results"
        advice = "Name a file of raw_results, which is next to its folder."
    elif kind in ("", "result") and version.isdecimal() and int(version) > SCHEMA_VERSION:
        why = f"it was written by a newer accelbench ({version}, known here: {SCHEMA_VERSION})"
        advice = "Upgrade accelbench."
    line = (whole.lines or {}).get("schema", whole.line)
    raise MalformedError(whole.file, line, "schema", why, advice)


def read_runs(whole: Record) -> dict[str, Any]:
    """Return a document's runs by id; "" has the run of all its results.

    A result file has one run, an export any number.
    """
    runs = dict(whole.child(RUNS).values) if whole.has(RUNS) else {}
    return {**runs, "": dict(whole.child(RUN).values)} if whole.has(RUN) else runs


def iter_json_results(whole: Record) -> Iterator[tuple[Record, dict[str, Any]]]:
    """Yield each result of a document without its samples."""
    for record in iter_objects(whole.file, whole.list("results"), "result"):
        body = {n: record.values[n] for n in BY_NAME if record.values.get(n) is not None}
        _check_result(record, body)
        yield record, body


def has_samples(file: Path) -> bool:
    """Return whether a CSV export has samples next to its results."""
    with file.open(newline="", encoding="utf-8-sig") as stream:
        return SAMPLES in next(csv.reader(stream), [])


def iter_csv_results(file: Path) -> Iterator[tuple[Record, dict[str, Any]]]:
    """Yield each result of a CSV export."""
    for line in read_table(file, REQUIRED_COLUMNS):
        body = parse_columns(line)
        body.setdefault("arm", "")  # a cell cannot distinguish an empty text from none
        _check_result(line, body)
        yield line, body


def parse_columns(line: Record) -> dict[str, Any]:
    """Return the cells of our columns, converted to the columns' types."""
    return {name: _parse_cell(line, name) for name in BY_NAME if line.values.get(name)}


def _check_result(record: Record, body: Mapping[str, Any]) -> None:
    for name in REQUIRED_COLUMNS:
        record.text(name)
    check_values(record, body, rate_tolerance(body))


def parse_run(line: Record) -> Any:
    """Return the facts that a line of an export has about its run, or None."""
    return _parse_json(line, RUN) if line.has(RUN) else None


def _mark_imported(body: dict[str, Any], source: Source, run: Any) -> dict[str, Any]:
    about = describe_run(run, body, source)
    provenance = body["provenance"]
    if provenance == Provenance.MEASURED:
        body["provenance"] = Provenance.IMPORTED.value
    conditions = body.get("conditions") or {}
    if provenance != Provenance.IMPORTED:
        conditions = {**conditions, "source": source.to_dict()}
    return {**body, "conditions": conditions, RUN: about}


def _parse_cell(line: Record, name: str) -> Any:
    kind = BY_NAME[name].kind
    if kind in ("text", "time"):
        return line.values[name]
    if kind == "int":
        return line.whole(name, above=None)
    if kind == "float":
        return line.number(name)
    if kind == "bool":
        return line.boolean(name)
    return _parse_json(line, name)


def _parse_json(line: Record, name: str) -> Any:
    try:
        return loads(line.values[name])
    except JsonError as error:
        why = f"it is not valid JSON: {error.message}"
        raise MalformedError(line.file, line.line, name, why) from error

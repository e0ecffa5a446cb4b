"""Our own results from elsewhere: result files, and what `db export` writes as JSON and CSV.

They keep their identities, so that what is here already is known again. What somebody
measured is imported here; what was predicted or simulated stays that.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from accelbench.core.columns import BY_NAME
from accelbench.core.jsonc import JsonError, loads
from accelbench.core.visible import in_quotes
from accelbench.core.vocabulary import Provenance
from accelbench.exchange.imports.holding import (
    hold,
    hold_samples,
    rates_of,
    refuse_contradictions,
)
from accelbench.exchange.imports.plans import StoredPlan, read_plan
from accelbench.exchange.imports.records import (
    MalformedError,
    Record,
    object_of,
    objects_in,
    quick_object_of,
    table_of,
)
from accelbench.exchange.imports.result_row import Source
from accelbench.exchange.imports.runs import about_ours
from accelbench.exchange.result_schema import SCHEMA_ID, SCHEMA_VERSION
from accelbench.exchange.run_facts import RUN, RUNS

JSON_PATTERN = "*.json"
CSV_PATTERN = "*.csv"
#: The column of an export with `--samples`.
SAMPLES = "samples"

#: Without these a line is nobody's result.
NEEDED = ("result_id", "case_id", "model", "hardware", "runtime", "status", "provenance")


def json_rows(file: Path, source: Source) -> Iterator[dict[str, Any]]:
    """A row a result of a result file or of an export."""
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
    """Yield a row for each line of an export."""
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
    """Refuse a document that says that it holds something else than results as they are known here.

    One that says nothing is looked at.
    """
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
    """What a document says of its runs, by their ids; under none what it says of all its results.

    A result file is of one run, an export of any number.
    """
    runs = dict(whole.of(RUNS).values) if whole.has(RUNS) else {}
    return {**runs, "": dict(whole.of(RUN).values)} if whole.has(RUN) else runs


def told_as_json(whole: Record) -> Iterator[tuple[Record, dict[str, Any]]]:
    """Each result of a document as it stands there, without its samples."""
    for record in objects_in(whole.file, whole.list("results"), "result"):
        body = {n: record.values[n] for n in BY_NAME if record.values.get(n) is not None}
        _hold(record, body)
        yield record, body


def has_samples(file: Path) -> bool:
    """Whether an export as CSV has samples beside its results."""
    with file.open(newline="", encoding="utf-8-sig") as stream:
        return SAMPLES in next(csv.reader(stream), [])


def told_as_csv(file: Path) -> Iterator[tuple[Record, dict[str, Any]]]:
    """Each result of an export as it stands there."""
    for line in table_of(file, NEEDED):
        body = columns_of(line)
        body.setdefault("arm", "")  # a cell does not tell an empty word from none
        _hold(line, body)
        yield line, body


def columns_of(line: Record) -> dict[str, Any]:
    """The cells that have a column's name, as it holds them."""
    return {name: _cell(line, name) for name in BY_NAME if line.values.get(name)}


def _hold(record: Record, body: Mapping[str, Any]) -> None:
    for name in NEEDED:
        record.text(name)
    hold(record, body, rates_of(body))


def run_of(line: Record) -> Any:
    """What a line of an export says of its run; None where it says nothing."""
    return _json(line, RUN) if line.has(RUN) else None


def _imported(body: dict[str, Any], source: Source, run: Any) -> dict[str, Any]:
    """The body for the store; under "run", what is known of its run."""
    about = about_ours(run, body, source)
    provenance = body["provenance"]
    if provenance == Provenance.MEASURED:
        body["provenance"] = Provenance.IMPORTED.value
    conditions = body.get("conditions") or {}
    if provenance != Provenance.IMPORTED:
        conditions = {**conditions, "source": source.to_dict()}
    return {**body, "conditions": conditions, RUN: about}


def _cell(line: Record, name: str) -> Any:
    """A cell as its column holds it."""
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

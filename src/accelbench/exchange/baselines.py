"""Baselines from files: of `compare`, `db export`, `run` or the guide's programs.

Rows are not changed. The columns that a file omits are listed.
"""

from __future__ import annotations

import csv
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import geometric_mean
from typing import Any

from accelbench.core.columns import BY_NAME, CONFIGURATION_COLUMNS
from accelbench.core.errors import UsageError
from accelbench.core.jsonc import JsonError, loads
from accelbench.core.plausible_values import ABOVE_ZERO
from accelbench.core.unusable_reasons import REFUSED_THERE
from accelbench.core.vocabulary import Provenance, Status
from accelbench.exchange.imports import guide
from accelbench.exchange.imports.ours import (
    REQUIRED_COLUMNS,
    parse_columns,
    parse_run,
    read_csv_results,
    read_results,
    read_runs,
    refuse_other_schema,
)
from accelbench.exchange.imports.records import (
    MalformedError,
    Record,
    iter_objects,
    read_object,
    read_table,
    read_text,
)
from accelbench.exchange.imports.result_row import (
    Source,
    check_values,
    rate_tolerance,
    refuse_contradictions,
    split_records,
)
from accelbench.exchange.titles import LAUNCH_COLUMNS, LAUNCH_VALUES, machine_facts

Row = dict[str, Any]

#: Names that `compare` uses for the values of one side, and their columns.
_SIDE_COLUMNS = {"latency_ms": "latency_mean_ms", "memory_mb": "memory_peak_mb"}
#: Relative rounding error between a side's value and the mean of its launches.
_ROUNDING = 1e-3
#: Axes along which a baseline would combine several runs, whose order in time is unknown.
_RUN_AXES = ("run", "date")
#: Columns whose values make results incomparable, by their names in refusals.
_IDENTITY_COLUMNS = {
    "weights": "weights_digest",
    "workarounds": "workarounds",
    "emulated": "emulated",
}
#: Start of a refusal of incomparable results. Names of `_IDENTITY_COLUMNS` follow.
_MISMATCH_PREFIX = "not alike: "
_COMPARISON_COLUMNS = ("axis", "model", "hardware", "runtime", *_SIDE_COLUMNS)
#: Columns that an import fills in if another program wrote the guide's CSV. The guide's options
#: have no form that could be parsed.
_ASSUMED = ("scenario", "world_size", "compiled", "mode")


@dataclass(frozen=True)
class BaselineFile:
    """Content of a baseline file."""

    rows: tuple[Row, ...]
    stated: frozenset[str]  # columns of the configuration that the file has
    omitted: tuple[str, ...] = ()  # of `_IDENTITY_COLUMNS`
    environment: Mapping[str, Any] | None = None  # of the machine, if known


def read_baseline(path: Path) -> BaselineFile:
    """Read a baseline file; raise UsageError if it is missing, malformed or of another format."""
    if path.suffix.lower() == ".json":
        return _read_json_baseline(path)
    if path.suffix.lower() == ".csv":
        return _read_csv_baseline(path)
    raise UsageError(f"{path} is not a baseline.", "Use CSV, JSON or a database of accelbench.")


def _read_json_baseline(path: Path) -> BaselineFile:
    whole = read_object(path)
    if "comparisons" in whole.values:
        sides = list(iter_objects(path, whole.list("comparisons")))
        omitted = _omitted_names(sides[0].values if sides else ())
        read = [
            launch for side in sides for launch in _iter_launches(side, dict(side.values), omitted)
        ]
        refuse_contradictions(read)
        rows = tuple(row for _, row in read)
        return BaselineFile(rows, _known_columns(rows), omitted)
    refuse_other_schema(whole)
    if "results" not in whole.values:
        raise MalformedError(path, 1, "results", "the file has neither 'results' nor 'comparisons'")
    results = _unique_results(
        _mark_measured(_drop_samples(body)) for _, body in read_results(whole)
    )
    runs = read_runs(whole)
    row_runs = [runs.get(str(row.get("run_id")), runs.get("")) for row in results]
    return BaselineFile(
        results, frozenset(CONFIGURATION_COLUMNS), environment=_one_machine(row_runs)
    )


def _read_csv_baseline(path: Path) -> BaselineFile:
    header = next(csv.reader(read_text(path).splitlines()[:1]), [])
    if set(REQUIRED_COLUMNS) <= set(header):
        lines = read_csv_results(path)
        results = _unique_results(_mark_measured(body) for _, body in lines)
        machine = _one_machine([parse_run(line) for line, _ in lines])
        return BaselineFile(
            results, frozenset(CONFIGURATION_COLUMNS) & set(header), _omitted_names(header), machine
        )
    if set(_COMPARISON_COLUMNS) <= set(header):
        omitted = _omitted_names(header)
        read = [
            launch
            for line in read_table(path, _COMPARISON_COLUMNS)
            for launch in _iter_launches(line, _parse_side(line), omitted)
        ]
        refuse_contradictions(read)
        return BaselineFile(
            tuple(row for _, row in read), frozenset(CONFIGURATION_COLUMNS) & set(header), omitted
        )
    if set(guide.NEEDED) <= set(header):
        placed_rows = split_records(guide.read_rows(path, Source("guide")))
        refuse_contradictions(placed_rows)
        rows = [_convert_guide_row(row, header) for _, row in placed_rows]
        return BaselineFile(tuple(rows), _known_columns(rows), _omitted_names(header))
    why = "the header is neither that of `compare --output`, `db export` nor the guide's CSV"
    raise MalformedError(path, 1, None, why)


def _one_machine(runs: Iterable[Any]) -> Mapping[str, Any] | None:
    environments = [run.get("environment") if isinstance(run, Mapping) else None for run in runs]
    facts = [machine_facts(environment) for environment in environments]
    return facts[0] if facts and facts[0] and all(fact == facts[0] for fact in facts) else None


def _convert_guide_row(row: Row, header: Sequence[str]) -> Row:
    values = {name: v for name, v in row.items() if name not in _ASSUMED or name in header}
    values.pop("options", None)
    return _mark_measured(values)


def _parse_side(line: Record) -> Row:
    cell = line.values.get(LAUNCH_VALUES)
    if not cell:
        return parse_columns(line)
    try:
        return {**parse_columns(line), LAUNCH_VALUES: loads(cell)}
    except JsonError as error:
        line.refuse(LAUNCH_VALUES, f"it is not JSON: {error.message}", error)


def _read_side_values(side: Record) -> Row:
    """Return a side's values, checked: known values are numbers, and a latency is above 0."""
    return {
        name: side.number(name, above=0 if column in ABOVE_ZERO else None)
        for name, column in _SIDE_COLUMNS.items()
        if side.values.get(name) not in (None, "")
    }


def _iter_launches(
    side: Record, values: Mapping[str, Any], omitted: Collection[str]
) -> Iterator[tuple[Record, Row]]:
    """Yield the launches of a side of a comparison; older files have only their mean."""
    combined = _build_side(side, {**values, **_read_side_values(side)}, omitted)
    launches = values.get(LAUNCH_VALUES)
    if not launches:
        yield side, combined
        return
    listed = Record(side.file, side.line, {LAUNCH_VALUES: launches})
    common = {name: value for name, value in combined.items() if name not in LAUNCH_COLUMNS}
    rows = []
    for launch in iter_objects(side.file, listed.list(LAUNCH_VALUES), LAUNCH_VALUES):
        placed_at = Record(side.file, side.line, launch.values)
        row = common | {n: launch.values[n] for n in LAUNCH_COLUMNS if n in launch.values}
        check_values(placed_at, row, rate_tolerance(common))
        rows.append((placed_at, row))
    for name, column in _SIDE_COLUMNS.items():
        column = _value_column(side, name, column)
        each = [float(row[column]) for _, row in rows if row.get(column)]
        if column not in combined or (len(each) < len(rows) and name != "latency_ms"):
            continue
        if (
            len(each) < len(rows)
            or abs(geometric_mean(each) / float(combined[column]) - 1.0) > _ROUNDING
        ):
            side.refuse(LAUNCH_VALUES, f"their mean is not {name}")
    yield from rows


def _build_side(side: Record, values: Mapping[str, Any], omitted: Collection[str]) -> Row:
    """Return a side of a comparison as one launch, with the mean of its launches.

    If the file omits the columns that differ, only the side's refusal names them.
    """
    if side.values.get("axis") in _RUN_AXES:
        side.refuse("axis", "a comparison of several runs cannot be a baseline")
    row = {name: values[name] for name in BY_NAME if values.get(name) is not None}
    row |= {
        _value_column(side, name, column): values[name]
        for name, column in _SIDE_COLUMNS.items()
        if values.get(name) is not None
    }
    check_values(side, row, rate_tolerance(row))
    refused = [word for word in _mismatch_names(side) if word in omitted]
    return {**row, "status": Status.OK.value, **({REFUSED_THERE: refused} if refused else {})}


def _mismatch_names(side: Record) -> list[str]:
    refusal = str(side.values.get("refused") or "")
    head, _, words = refusal.partition(_MISMATCH_PREFIX)
    return words.split(", ") if words and not head else []


def _value_column(side: Record, name: str, column: str) -> str:
    median = name == "latency_ms" and side.values.get("figure") != "mean"
    return "latency_p50_ms" if median else column


def _drop_samples(body: Mapping[str, Any]) -> Row:
    return {name: value for name, value in body.items() if name not in ("samples", "sampling")}


def _mark_measured(body: Mapping[str, Any]) -> Row:
    row = dict(body)
    if row.get("provenance") == Provenance.IMPORTED:
        conditions = row.get("conditions") or {}
        row["provenance"] = Provenance.MEASURED.value
        row["conditions"] = {name: v for name, v in conditions.items() if name != "source"}
    return row


def _unique_results(rows: Iterable[Row]) -> tuple[Row, ...]:
    return tuple({str(row["result_id"]): row for row in rows}.values())


def _omitted_names(header: Collection[str]) -> tuple[str, ...]:
    return tuple(name for name, column in _IDENTITY_COLUMNS.items() if column not in header)


def _known_columns(rows: Any) -> frozenset[str]:
    return frozenset(name for name in CONFIGURATION_COLUMNS if any(name in row for row in rows))

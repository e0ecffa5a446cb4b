"""A file as a baseline: of `compare`, `db export`, `run` or the guide's programs.

Rows are taken as they are, and what the file leaves open is named.
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
    NEEDED,
    columns_of,
    read_lines,
    read_results,
    refuse_another,
    run_of,
    runs_told,
)
from accelbench.exchange.imports.records import (
    MalformedError,
    Record,
    object_of,
    objects_in,
    table_of,
    text_of,
)
from accelbench.exchange.imports.result_row import (
    Source,
    hold,
    rates_of,
    refuse_contradictions,
    split_records,
)
from accelbench.exchange.titles import LAUNCH_VALUES, OF_A_LAUNCH, machine_facts

Row = dict[str, Any]

#: What `compare` calls figures of a side, which has several launches, and their columns.
_OF_A_SIDE = {"latency_ms": "latency_mean_ms", "memory_mb": "memory_peak_mb"}
#: The values of launches have the values of their side as their middle, but for rounding.
_ROUNDED = 1e-3
#: Along these a baseline would be of several runs at once, which nothing tells the age of.
_OF_RUNS = ("run", "date")
#: What makes figures those of different things, by the column that says it.
_SAYS = {"weights": "weights_digest", "workarounds": "workarounds", "emulated": "emulated"}
#: How a refusal begins that is for what figures are of; what follows is words of `_SAYS`.
_NOT_ALIKE = "not alike: "
_COMPARED = ("axis", "model", "hardware", "runtime", *_OF_A_SIDE)
#: What nobody says who wrote the guide's CSV without us, and an import fills in; the guide's
#: options have no form that could be read back.
_ASSUMED = ("scenario", "world_size", "compiled", "mode")


@dataclass(frozen=True)
class FromFile:
    """Content of a file."""

    rows: tuple[Row, ...]
    told: frozenset[str]  # of what was asked, what it says
    untold: tuple[str, ...] = ()  # of what makes figures those of different things, what it omits
    environment: Mapping[str, Any] | None = None  # of the machine, where it says it


def read_baseline(path: Path) -> FromFile:
    """Read a baseline file; raise UsageError if it is missing, malformed or of another form."""
    if path.suffix.lower() == ".json":
        return _of_json(path)
    if path.suffix.lower() == ".csv":
        return _of_csv(path)
    raise UsageError(f"{path} is no baseline.", "One is CSV, JSON or a database of ours.")


def _of_json(path: Path) -> FromFile:
    whole = object_of(path)
    if "comparisons" in whole.values:
        sides = list(objects_in(path, whole.list("comparisons")))
        untold = _untold(sides[0].values if sides else ())
        read = [one for side in sides for one in _launches(side, dict(side.values), untold)]
        refuse_contradictions(read)
        rows = tuple(row for _, row in read)
        return FromFile(rows, _columns(rows), untold)
    refuse_another(whole)
    if "results" not in whole.values:
        raise MalformedError(path, 1, "results", "neither this nor 'comparisons' is there")
    results = _once(_as_measured(_without_samples(body)) for _, body in read_results(whole))
    runs = runs_told(whole)
    row_runs = [runs.get(str(row.get("run_id")), runs.get("")) for row in results]
    return FromFile(results, frozenset(CONFIGURATION_COLUMNS), environment=_one_machine(row_runs))


def _of_csv(path: Path) -> FromFile:
    header = next(csv.reader(text_of(path).splitlines()[:1]), [])
    if set(NEEDED) <= set(header):
        lines = read_lines(path)
        results = _once(_as_measured(body) for _, body in lines)
        machine = _one_machine([run_of(line) for line, _ in lines])
        return FromFile(
            results, frozenset(CONFIGURATION_COLUMNS) & set(header), _untold(header), machine
        )
    if set(_COMPARED) <= set(header):
        untold = _untold(header)
        read = [
            one
            for line in table_of(path, _COMPARED)
            for one in _launches(line, _typed(line), untold)
        ]
        refuse_contradictions(read)
        return FromFile(
            tuple(row for _, row in read), frozenset(CONFIGURATION_COLUMNS) & set(header), untold
        )
    if set(guide.NEEDED) <= set(header):
        placed_rows = split_records(guide.rows(path, Source("guide")))
        refuse_contradictions(placed_rows)
        rows = [_of_guide(row, header) for _, row in placed_rows]
        return FromFile(tuple(rows), _columns(rows), _untold(header))
    why = "the header is neither that of `compare --output`, `db export` nor the guide's CSV"
    raise MalformedError(path, 1, None, why)


def _one_machine(runs: Iterable[Any]) -> Mapping[str, Any] | None:
    environments = [run.get("environment") if isinstance(run, Mapping) else None for run in runs]
    facts = [machine_facts(environment) for environment in environments]
    return facts[0] if facts and facts[0] and all(fact == facts[0] for fact in facts) else None


def _of_guide(row: Row, header: Sequence[str]) -> Row:
    values = {name: v for name, v in row.items() if name not in _ASSUMED or name in header}
    values.pop("options", None)
    return _as_measured(values)


def _typed(line: Record) -> Row:
    cell = line.values.get(LAUNCH_VALUES)
    if not cell:
        return columns_of(line)
    try:
        return {**columns_of(line), LAUNCH_VALUES: loads(cell)}
    except JsonError as error:
        line.wrong(LAUNCH_VALUES, f"it is not JSON: {error.message}", error)


def _figures(side: Record) -> Row:
    """Check a side: a latency is above 0, and what is known is a number."""
    return {
        name: side.number(name, above=0 if column in ABOVE_ZERO else None)
        for name, column in _OF_A_SIDE.items()
        if side.values.get(name) not in (None, "")
    }


def _launches(
    side: Record, values: Mapping[str, Any], untold: Collection[str]
) -> Iterator[tuple[Record, Row]]:
    """Yield the launches of a side of a comparison; older files have only their middle."""
    middle = _side(side, {**values, **_figures(side)}, untold)
    launches = values.get(LAUNCH_VALUES)
    if not launches:
        yield side, middle
        return
    listed = Record(side.file, side.line, {LAUNCH_VALUES: launches})
    common = {name: value for name, value in middle.items() if name not in OF_A_LAUNCH}
    rows = []
    for launch in objects_in(side.file, listed.list(LAUNCH_VALUES), LAUNCH_VALUES):
        placed_at = Record(side.file, side.line, launch.values)
        row = common | {n: launch.values[n] for n in OF_A_LAUNCH if n in launch.values}
        hold(placed_at, row, rates_of(common))
        rows.append((placed_at, row))
    for name, column in _OF_A_SIDE.items():
        column = _column(side, name, column)
        each = [float(row[column]) for _, row in rows if row.get(column)]
        if column not in middle or (len(each) < len(rows) and name != "latency_ms"):
            continue
        if (
            len(each) < len(rows)
            or abs(geometric_mean(each) / float(middle[column]) - 1.0) > _ROUNDED
        ):
            side.wrong(LAUNCH_VALUES, f"their middle is not {name}")
    yield from rows


def _side(side: Record, values: Mapping[str, Any], untold: Collection[str]) -> Row:
    """Return a side of a comparison as one launch: the middle of those that it had.

    If the file omits what differed, only the refusal of the side shows it.
    """
    if side.values.get("axis") in _OF_RUNS:
        side.wrong("axis", "a comparison of several runs is no baseline")
    row = {name: values[name] for name in BY_NAME if values.get(name) is not None}
    row |= {
        _column(side, name, column): values[name]
        for name, column in _OF_A_SIDE.items()
        if values.get(name) is not None
    }
    hold(side, row, rates_of(row))
    refused = [word for word in _refused(side) if word in untold]
    return {**row, "status": Status.OK.value, **({REFUSED_THERE: refused} if refused else {})}


def _refused(side: Record) -> list[str]:
    refusal = str(side.values.get("refused") or "")
    head, _, words = refusal.partition(_NOT_ALIKE)
    return words.split(", ") if words and not head else []


def _column(side: Record, name: str, column: str) -> str:
    median = name == "latency_ms" and side.values.get("figure") != "mean"
    return "latency_p50_ms" if median else column


def _without_samples(body: Mapping[str, Any]) -> Row:
    return {name: value for name, value in body.items() if name not in ("samples", "sampling")}


def _as_measured(body: Mapping[str, Any]) -> Row:
    row = dict(body)
    if row.get("provenance") == Provenance.IMPORTED:
        conditions = row.get("conditions") or {}
        row["provenance"] = Provenance.MEASURED.value
        row["conditions"] = {name: v for name, v in conditions.items() if name != "source"}
    return row


def _once(rows: Iterable[Row]) -> tuple[Row, ...]:
    return tuple({str(row["result_id"]): row for row in rows}.values())


def _untold(header: Collection[str]) -> tuple[str, ...]:
    return tuple(name for name, column in _SAYS.items() if column not in header)


def _columns(rows: Any) -> frozenset[str]:
    return frozenset(name for name in CONFIGURATION_COLUMNS if any(name in row for row in rows))

"""Exports of results: CSV, JSON, Parquet, Arrow, Markdown, JUnit XML, Bencher and
github-action-benchmark.
"""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any
from xml.etree import ElementTree as ET

from accelbench.core import result_statistics
from accelbench.core.columns import COLUMNS
from accelbench.core.errors import UsageError
from accelbench.core.formatting import NO_DATA, UNKNOWN_MODEL, format_count
from accelbench.core.identity import canonical_json
from accelbench.core.precision import summarise_inexact
from accelbench.core.safe_text import csv_cell, in_quotes, visible
from accelbench.core.unusable_reasons import failed_launches_text, is_mostly_failed, why_unusable
from accelbench.core.vocabulary import Provenance, Quality, Status
from accelbench.evidence.launches import launches_of
from accelbench.evidence.measurements import RunMeasurement
from accelbench.exchange.result_schema import SCHEMA_ID
from accelbench.exchange.series import (
    LATENCY,
    MEASURES,
    SeriesEntry,
    Value,
    measure_value,
    newest_entries,
)
from accelbench.exchange.titles import RUN, RUNS, format_title
from accelbench.exchange.writing import write_exactly
from accelbench.present.document import TableColumn
from accelbench.present.markdown import table_lines
from accelbench.store.database import Database
from accelbench.store.insert import copy_arrow, copy_parquet


def write_lines(stream: IO[str], names: Iterable[str], rows: Iterable[Iterable[Any]]) -> int:
    """Write a header and rows to a stream, and return how many rows there were."""
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(map(csv_cell, names))
    count = 0
    for row in rows:
        writer.writerow(map(cell_text, row))
        count += 1
    return count


def cell_text(value: Any) -> str:
    """Return a value as a cell; lists and maps become JSON."""
    if value is None:
        return ""
    if isinstance(value, str):
        return csv_cell(value)
    if isinstance(value, float):
        return repr(value)  # the shortest spelling that reads back as the same number
    return canonical_json(value)


Row = Mapping[str, Any]


@dataclass(frozen=True)
class Entries:
    """Number of an export's entries, and of questions left out, by reason."""

    written: int
    left_out: Mapping[str, int] = field(default_factory=dict)

    def told(self) -> str:
        """Sentence about what was left out, or ""."""
        if not self.left_out:
            return ""
        return f"Left out: {', '.join(f'{n} {why}' for why, n in self.left_out.items())}."


def entries(written: int, without: Iterable[SeriesEntry], rows: Iterable[Row]) -> Entries:
    """Return the counts of an export; `without` are the entries without a value."""
    counts = Counter(map(why_left_out, without)) + nobodys(rows)
    return Entries(written, dict(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))))


def why_left_out(entry: SeriesEntry) -> str:
    """Return why an entry has no time to watch, as the end of "1 …"."""
    ended = entry.measured.launches
    if not ended:
        if any(row["wrong_outputs"] for row in entry.launches):
            return "with wrong outputs"
        return str(entry.launches[0].get("status") or Status.FAILED)
    if is_mostly_failed(ended):
        return "of which most launches failed"
    if not entry.measured.is_usable:
        return "unusable"
    kinds = {result_statistics.best_statistic(row) for row in ended}
    if kinds <= {*result_statistics.TAILS}:
        return "known by a percentile alone"
    return (
        "known by a rate alone"
        if kinds <= {result_statistics.Statistic.RATE}
        else "without a figure"
    )


def nobodys(rows: Iterable[Row]) -> Counter[str]:
    """Return questions that were not measured, or only by a stand-in, except for checks' arms."""
    real: set[str] = set()
    others: dict[str, str] = {}
    for row in rows:
        provenance = str(row.get("provenance"))
        if row.get("emulated"):
            others.setdefault(format_title(row), "emulated")
        elif provenance in (Provenance.PREDICTED, Provenance.SIMULATED):
            others.setdefault(format_title(row), provenance)
        else:
            real.add(format_title(row))
    return Counter(kind for name, kind in others.items() if name not in real)


#: From here on a figure's digits are all before the point.
_LONG = 1e4


def write_markdown(
    path: Path,
    rows: Sequence[Mapping[str, Any]],
    runs: Mapping[str, Mapping[str, Any]] | None = None,
) -> Entries:
    """Write a line for each result, and return how many; `runs` have the labels, by id."""
    rows = launches_of(rows)
    unit = result_statistics.common_unit(rows)
    arms = ("arm",) if any(row.get("arm") for row in rows) else ()
    numbers = ("median ms", "mean ms", unit, "peak MB", "launch")
    columns = [
        TableColumn("what"),
        *(TableColumn(label, is_number=True) for label in numbers),
        *map(TableColumn, (*arms, "status", "from", "run")),
    ]
    cells = (_cells(row, unit, bool(arms), runs or {}) for row in rows)
    text = "".join(f"{line}\n" for line in table_lines(columns, cells))
    path.write_text(text, encoding="utf-8")
    return Entries(len(rows))


def _cells(
    row: Mapping[str, Any], unit: str, arms: bool, runs: Mapping[str, Mapping[str, Any]]
) -> list[str]:
    status = str(row.get("status") or NO_DATA)
    if status != Status.OK:
        status = f"{status}: {row.get('reason') or row.get('message') or 'no reason'}"
    else:
        wrong = "wrong outputs" if row["wrong_outputs"] else ""
        useless = "" if row["times_usable"] else Quality.UNUSABLE.value
        status = ", ".join(filter(None, (wrong or status, useless, summarise_inexact([row]))))
    notes = [str(row.get("provenance") or ""), "emulated" if row.get("emulated") else ""]
    return [
        format_title(row),
        _median(row),
        _figure(result_statistics.step_of(row, result_statistics.Statistic.MEAN)),
        f"{_figure(row.get('throughput'))} {result_statistics.differing_unit(row, unit)}".rstrip(),
        _figure(row.get("memory_peak_mb")),
        "" if row.get("launch") is None else str(row["launch"]),
        *([str(row.get("arm") or "")] if arms else []),
        status,
        ", ".join(word for word in notes if word),
        _run(row, runs),
    ]


def _run(row: Mapping[str, Any], runs: Mapping[str, Mapping[str, Any]]) -> str:
    run = str(row.get("run_id") or "")
    label = runs.get(run, {}).get("label")
    return f"{run} ({label})" if label else run


def _median(row: Mapping[str, Any]) -> str:
    """Return the median step, or a percentile with its name if nothing else is known."""
    statistic = result_statistics.best_statistic(row)
    if statistic in result_statistics.TAILS:
        return f"{_figure(result_statistics.step_of(row, statistic))} ({statistic})"
    return _figure(result_statistics.step_of(row, result_statistics.Statistic.MEDIAN))


def _figure(value: float | None) -> str:
    if value is None:
        return NO_DATA
    return f"{value:,.0f}" if abs(value) >= _LONG else f"{value:.4g}"


def write_json(
    path: Path,
    names: Sequence[str],
    rows: Iterable[Mapping[str, Any]],
    runs: Mapping[str, Mapping[str, Any]] | None = None,
) -> int:
    """Write runs and these columns of rows, one line each; return the number of rows."""
    count = 0
    with path.open("x", encoding="utf-8", newline="\n") as stream:
        stream.write(f'{{"schema": "{SCHEMA_ID}",')
        if runs:
            each = (f"{_text(run)}: {_text(about)}" for run, about in runs.items())
            stream.write(f' "{RUNS}": {{\n')
            stream.write(",\n".join(each))
            stream.write("\n},")
        stream.write(' "results": [')
        for row in rows:
            stream.write(",\n" if count else "\n")
            stream.write(_text({name: row[name] for name in names}))
            count += 1
        stream.write("\n]}\n")
    return count


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def write_csv(
    path: Path,
    names: Sequence[str],
    rows: Iterable[Mapping[str, Any]],
    runs: Mapping[str, Mapping[str, Any]] | None = None,
) -> int:
    """Write these columns of rows, with lists, maps, samples and runs as JSON; return how many."""
    heads = [*names, RUN] if runs else names
    abouts = {run: canonical_json(about) for run, about in (runs or {}).items()}
    lines = (
        (*(row[name] for name in names), *([abouts.get(row["run_id"])] if runs else []))
        for row in rows
    )
    with path.open("x", encoding="utf-8", newline="") as stream:
        return write_lines(stream, heads, lines)


_LEFT_OUT = (Status.UNSUPPORTED, Status.SKIPPED)


def write_junit(path: Path, rows: Sequence[Mapping[str, Any]]) -> Entries:
    """Write one case per question; return the counts."""
    suite = ET.Element("testsuite", name="accelbench")
    counts = {"tests": 0, "failures": 0, "skipped": 0}
    for entry in newest_entries(rows):
        name, launches, measured = entry
        worst = next((row for row in launches if row.get("status") != Status.OK), launches[0])
        case = ET.SubElement(
            suite,
            "testcase",
            name=visible(name),
            classname=visible(str(worst.get("model") or UNKNOWN_MODEL)),
        )
        counts["tests"] += 1
        latency = measure_value(measured, MEASURES[0])
        if latency is not None:  # a throughput, or a failure, took no time that is known
            case.set("time", f"{latency.median / 1e3:.6f}")
        _properties(case, measured)
        status = worst.get("status")
        if status != Status.OK:
            kind = "skipped" if status in _LEFT_OUT else "failure"
            counts["skipped" if kind == "skipped" else "failures"] += 1
            element = ET.SubElement(case, kind, message=visible(str(worst.get("message") or "")))
            if kind == "failure":
                element.set("type", visible(str(worst.get("reason") or status)))
            element.text = visible(str(worst.get("advice") or ""))
        elif useless := _useless(measured):
            counts["skipped"] += 1
            ET.SubElement(case, "skipped", message=useless)
    for word, count in counts.items():
        suite.set(word, str(count))
    root = ET.Element("testsuites")
    root.append(suite)
    ET.indent(root)
    ET.ElementTree(root).write(path, encoding="utf-8", xml_declaration=True)
    return entries(counts["tests"], (), rows)


def _useless(measured: RunMeasurement) -> str:
    if not measured.launches or measured.is_usable:
        return ""
    return f"{Quality.UNUSABLE.value}: {why_unusable(measured.launches)}"


def _properties(case: ET.Element, measured: RunMeasurement) -> None:
    known = [(quantity, measure_value(measured, quantity)) for quantity in MEASURES]
    if not any(result for _, result in known):
        return
    listed = ET.SubElement(case, "properties")
    for measure, figure in known:
        if figure is not None:
            name = f"{measure.name} ({measure.unit})"
            ET.SubElement(listed, "property", name=name, value=f"{figure.median:.6g}")


def write_bencher(path: Path, rows: Sequence[Mapping[str, Any]]) -> Entries:
    """Write one benchmark per question; return the counts."""
    benchmarks, without = {}, []
    for entry in newest_entries(rows):
        measures = {
            f"{measure.name} ({measure.unit})": _metric(known)
            for measure in MEASURES
            if (known := measure_value(entry.measured, measure)) is not None
        }
        if measures:
            benchmarks[entry.name] = measures
        else:
            without.append(entry)
    path.write_text(json.dumps(benchmarks, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return entries(len(benchmarks), without, rows)


def _metric(known: Value) -> dict[str, float]:
    ends = {"lower_value": known.low, "upper_value": known.high}
    return {"value": known.median, **{name: end for name, end in ends.items() if end is not None}}


def write_action(path: Path, rows: Sequence[Mapping[str, Any]]) -> Entries:
    """Write one entry per question; return the counts."""
    written, without = [], []
    for entry in newest_entries(rows):
        latency = measure_value(entry.measured, LATENCY)
        if latency is None:
            without.append(entry)
            continue
        launched = format_count(latency.launches, "launch", "launches")
        failed = failed_launches_text(entry.measured.launches)
        of_run = f"{launched} of run {entry.launches[0].get('run_id')}"
        written_entry = {
            "name": entry.name,
            "unit": LATENCY.unit,
            "value": latency.median,
            "extra": visible(", ".join(filter(None, (of_run, failed)))),
        }
        # Optional there; it stands behind the value in charts and comments.
        if latency.low is not None:
            written_entry["range"] = f"{latency.low:.6g} - {latency.high:.6g}"
        written.append(written_entry)
    path.write_text(json.dumps(written, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return entries(len(written), without, rows)


#: Tables of our columns: written line by line, or copied as they are stored; and what has a form of
#: its own.
LINES = {"csv": write_csv, "json": write_json}
COPIES = {"parquet": copy_parquet, "arrow": copy_arrow}
TABLES = (*LINES, *COPIES)
REPORTS = {
    "markdown": write_markdown,
    "github-action-benchmark": write_action,
    "bencher": write_bencher,
    "junit": write_junit,
}
FORMATS = (*TABLES, *REPORTS)
#: What a report calls what stands in it, where that is one a question, not one a result.
ENTRIES = {
    "github-action-benchmark": ("entry", "entries"),
    "bencher": ("benchmark", "benchmarks"),
    "junit": ("test case", "test cases"),
}
#: A suffix that is not its format's name.
_SUFFIXES = {"md": "markdown", "xml": "junit", "feather": "arrow"}


def format_for(path: Path, option: str | None) -> str:
    """Return the format asked for, else the one of the file's suffix."""
    suffix = path.suffix.removeprefix(".").lower()
    name = (option or _SUFFIXES.get(suffix, suffix)).lower()
    if name not in FORMATS:
        raise UsageError(
            f"There is no format named {in_quotes(name)}." if name else f"{path} names no format.",
            f"Use --format {', '.join(FORMATS)}.",
        )
    return name


def export_table(
    path: Path,
    database: Database,
    name: str,
    where: str = "",
    params: Sequence[object] = (),
    *,
    samples: bool = False,
    runs: Mapping[str, Mapping[str, Any]] | None = None,
) -> int:
    """Write results of a database into a new file, with the types of the store; return how many.

    In columns, JSON is text, samples a map of phase to nanoseconds. `where` is a condition in SQL
    with ? for each of the parameters; `samples` adds "samples" and "sampling".
    """
    if name in COPIES:
        facts = {run: canonical_json(about) for run, about in (runs or {}).items()}
        run_column = (RUN, facts) if facts else None
        return write_exactly(
            path,
            lambda written: database.copy_results(
                written, COPIES[name], where, params, samples=samples, runs=run_column
            ),
        )
    names = [column.name for column in COLUMNS] + (["samples", "sampling"] if samples else [])
    rows = database.iterate_results(where, params, samples=samples)
    return write_exactly(path, lambda written: LINES[name](written, names, rows, runs))


def export_report(
    path: Path,
    rows: Sequence[Mapping[str, Any]],
    name: str,
    runs: Mapping[str, Mapping[str, Any]] | None = None,
) -> Entries:
    """Write results into a new file in a form of its own, and return how many entries it has.

    Most reports have an entry for each question; Markdown has one for each result, with its run.
    """
    if name == "markdown":
        return write_exactly(path, lambda written: write_markdown(written, rows, runs))
    return write_exactly(path, lambda written: REPORTS[name](written, rows))


def wrote(name: str, entries: int, results: int) -> str:
    """Return what an export wrote, in words."""
    if name not in ENTRIES:
        return format_count(results, "result")
    return f"{format_count(entries, *ENTRIES[name])} of {format_count(results, 'result')}"

"""The sections of a report, from what is known. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from accelbench.analysis.cells import Matrix, MatrixCell
from accelbench.analysis.checking import Check
from accelbench.analysis.matrix import RULE
from accelbench.analysis.points import Point
from accelbench.analysis.summary import summary
from accelbench.analysis.warned import warned
from accelbench.core.columns import BY_NAME
from accelbench.core.exactness import error_of
from accelbench.core.rows import Json, Row, texts
from accelbench.core.visible import without_homes
from accelbench.core.vocabulary import Status
from accelbench.query.findings.collected import findings_of
from accelbench.report.charts import CHARTS
from accelbench.report.charts.chart import Subject, picture
from accelbench.report.full_report.contents import (
    EXPORT,
    Block,
    Figure,
    Report,
    Section,
    Table,
    Text,
)
from accelbench.report.full_report.costs import costs
from accelbench.report.full_report.drawn_tables import digits as digits
from accelbench.report.full_report.drawn_tables import drawn_table
from accelbench.report.full_report.drawn_tables import told as told_value
from accelbench.report.full_report.predictions import predictions
from accelbench.report.full_report.result_lines import anchors_of, chosen_points, names_of, results
from accelbench.report.full_report.task_accuracy import task_accuracy
from accelbench.report.full_report.told_findings import more_findings, task_section, told_findings
from accelbench.report.matrix import BEST_PRECISION, mark, precisions
from accelbench.report.prediction_evidence import PredictionEvidence

_MOST_WARNINGS = 40
#: Lines of the tables about outputs and failures; more are in the files of `db export`.
_MOST_LINES = 500


@dataclass(frozen=True)
class ReportData:
    """All that a report is made of."""

    subject: Subject
    runs: Sequence[Row]  # of benchmark_runs
    source: str  # the database, or the files
    made_at: str
    predictions: PredictionEvidence | None = None  # of a database
    check: Check | None = None  # the newest run against those before, of a database
    others: Sequence[str] = ()  # what else the database has, with the command for a report of it


def report(known: ReportData, title: str = "accelbench report") -> Report:
    """All of it."""
    subject = known.subject
    findings = findings_of(subject.rows, subject.points, subject.known, known.check, subject.sign)
    shown = chosen_points(subject.points, findings)
    sections = [
        Section(
            "Summary",
            [
                Text(
                    summary(known.subject.rows, known.subject.points, known.subject.known),
                    listed=True,
                )
            ],
        ),
        *task_section(findings),
        *more_findings(findings),
        results(subject.points, shown),
        *task_accuracy(subject.accuracies, subject.points),
        *costs(known.subject),
        *_charts(known.subject),
        *predictions(known.predictions),
        *_matrix(known.subject.matrix),
        _verification(known),
        *_refusals(known),
        _environment(known),
        _computed(),
    ]
    about = [
        f"{known.subject.machine} · {without_homes(known.source)}",
        f"Made {known.made_at[:16].replace('T', ' ')} UTC.",
        *(f"Not in this report: {other}" for other in known.others),
    ]
    return Report(title, about, sections, told_findings(findings, anchors_of(shown)))


# -- pictures


def _charts(subject: Subject) -> Iterable[Section]:
    drawn = [image for chart in CHARTS.values() if (image := picture(chart, subject)) is not None]
    for drawing in drawn:
        yield Section(drawing.chart.title, [Figure(drawing, drawn_table(drawing))])


# -- matrix


def _matrix(matrix: Matrix | None) -> Iterable[Section]:
    if matrix is None or not matrix.models:
        return
    headers = ["model", *matrix.hardware]
    rows = [
        [line.name, *(_level(line.cells[name]) for name in matrix.hardware)]
        for line in matrix.models
    ]
    why = [
        [line.name, name, cell.availability.value, cell.reason]
        for line in matrix.models
        for name, cell in line.cells.items()
        if cell.reason and cell.has_result
    ]
    yield Section(
        "Compatibility matrix",
        [
            Table(headers, rows, caption=f"Inference, {BEST_PRECISION}"),
            Table(["model", "hardware", "state", "reason"], why, caption="Reasons", folded=True),
            Text(RULE, listed=True),
        ],
    )


def _level(cell: MatrixCell) -> str:
    """The level, and the precision where it is not the usual one."""
    named = " and ".join(precisions(cell))
    return f"{mark(cell)} ({named})" if named else mark(cell)


# -- trust


def _verification(known: ReportData) -> Section:
    done = [row for row in known.subject.rows if row.get("status") == Status.OK]
    kept, more = _once(done, "verification", "self_check", "workarounds")
    rows = [
        [
            name,
            str(row.get("verification") or "not_done"),
            told_value(row.get("verification_error")),
            told_value(row.get("verification_tolerance")),
            str(row.get("self_check") or "not_done"),
            "; ".join(texts(row, "workarounds")),
        ]
        for row, name in kept
    ]
    headers = ("configuration", "outputs", "error", "tolerance", "self-check", "workarounds")
    blocks: list[Block] = [
        Text([_OUTPUTS]),
        Table(headers, rows, frozenset({2, 3}), *_whole(more), folded=len(rows) > 40),
    ]
    warnings = warned(done)
    if warnings:
        lines = [[warning.text, f"{len(warning.rows):,}"] for warning in warnings[:_MOST_WARNINGS]]
        if len(warnings) > len(lines):
            rest = sum(len(warning.rows) for warning in warnings[len(lines) :])
            lines.append([f"{len(warnings) - len(lines):,} more", f"{rest:,}"])
        blocks.append(Table(("warning", "launches"), lines, frozenset({1}), "Warnings"))
    return Section("Verification and workarounds", blocks)


def _whole(more: int, caption: str = "Every cell") -> tuple[str, str]:
    """A caption, with how many lines a table of thousands leaves out, and what brings them."""
    if not more:
        return caption, ""
    return f"{caption}: the worst first; {more:,} more are in the files of", EXPORT


def _once(rows: Sequence[Row], *columns: str) -> tuple[list[tuple[Row, str]], int]:
    """One launch of each cell for whatever its launches say of these, with the cell's name.

    Of those that say the same, the one whose outputs are furthest from the reference's. Of
    thousands those stay that are furthest of all, and how many do not is told.
    """
    by_key: dict[tuple[object, ...], Row] = {}
    for row in rows:
        cell = (row.get("case_id"), row.get("device_fingerprint"), row.get("runtime"))
        key = (*cell, *(str(row.get(name)) for name in columns))
        if key not in by_key or (error_of(row) or 0.0) > (error_of(by_key[key]) or 0.0):
            by_key[key] = row
    kept = list(by_key.values())
    more = max(0, len(kept) - _MOST_LINES)
    if more:
        worst = sorted(range(len(kept)), key=lambda at: _order(kept[at]))[:_MOST_LINES]
        kept = [kept[at] for at in sorted(worst)]
    names = names_of([Point([row], "") for row in kept])
    return list(zip(kept, names, strict=True)), more


def _order(row: Row) -> tuple[bool, float]:
    """Workarounds and the largest errors first."""
    return not texts(row, "workarounds"), -(error_of(row) or 0.0)


def _refusals(known: ReportData) -> Iterable[Section]:
    bad = [row for row in known.subject.rows if row.get("status") != Status.OK]
    if not bad:
        return
    kept, more = _once(bad, "status", "reason")
    rows = [
        [name, *(str(row.get(n) or "") for n in ("status", "reason", "message", "advice"))]
        for row, name in kept
    ]
    headers = ("configuration", "status", "reason", "what happened", "what to do")
    yield Section("Without a figure", [Table(headers, rows, frozenset(), *_whole(more, "And why"))])


# -- around it


_PACKAGES = "packages"


def _environment(known: ReportData) -> Section:
    runs = [
        [
            str(run.get("run_id")),
            str(run.get("label") or ""),
            str(run.get("started_at") or "")[:19],
            str(run.get("status") or ""),
            str(run.get("git_commit") or "")[:12],
            without_homes(str(run.get("command") or "")),
        ]
        for run in known.runs
    ]
    blocks: list[Block] = []
    if runs:
        headers = ("run", "label", "began (UTC)", "status", "commit", "command")
        blocks.append(Table(headers, runs, caption="Runs", folded=len(runs) > 20))
    facts: dict[str, set[str]] = {}
    for run in known.runs:
        for name, value in _flat(_object(run.get("environment"))):
            facts.setdefault(name, set()).add(without_homes(value))
    if facts:
        rows = [[name, " · ".join(sorted(values))] for name, values in sorted(facts.items())]
        blocks.append(Table(("what", "value"), rows, caption="Machine and software"))
    return Section("Environment", blocks or [Text(["Nothing is known of it."])])


def _object(value: object) -> Json:
    document: object = json.loads(value) if isinstance(value, str) else value
    return document if isinstance(document, Mapping) else {}


def _flat(values: Json, before: str = "") -> Iterable[tuple[str, str]]:
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat(value, "" if name == _PACKAGES else f"{before}{name} ")
        elif value not in (None, ""):
            yield f"{before}{name}".replace("_", " "), str(value)


_OUTPUTS = (
    "Outputs are compared with PyTorch's in fp32 on the CPU, with the same weights and inputs;"
    " those of a file with the file as it is, those of a callable with its own reference. An error"
    " is in parts of what other inputs change; a workaround is a declared change that made a"
    " configuration run."
)
_METHOD = (
    (
        "A configuration is a model at a size, on a device, by an engine, in a precision."
        " Its figure is the geometric mean of the launches that stand for it, each a fresh process:"
        " of the newest software, those of the run that says most."
    ),
    (
        "With two launches and more the interval is of them: Student's t on the logarithms of their"
        " latencies, 95 %. With one it is of the samples within it, corrected for how alike"
        " neighbours are, and says nothing of how launches differ."
    ),
    (
        "Outliers are marked, never dropped. A speed-up compares the time of an item, with Welch's"
        " interval on logarithms. Emulated times mean nothing and are not shown."
    ),
    (
        "Over time a point is the median of a run's launches, not their geometric mean: one bad"
        " launch is no step."
    ),
    (
        "Imported figures are others' own; predicted and simulated ones were not measured, and they"
        " are in no comparison."
    ),
)
#: The columns whose figures a report shows.
_SHOWN = (
    *("latency_p50_ms", "latency_ci_low_ms", "throughput", "memory_peak_mb", "first_inference_ms"),
    *("build_ms", "load_ms", "compile_ms", "sample_count", "outlier_count", "quality"),
    *("verification_error", "verification_tolerance", "flops", "bytes_moved"),
)


def _computed() -> Section:
    rows = [
        [column.header or name, column.unit or "", column.doc]
        for name in _SHOWN
        for column in (BY_NAME[name],)
    ]
    return Section(
        "How each figure was computed",
        [Text(_METHOD), Table(("figure", "unit", "what it is"), rows, caption="Columns")],
    )

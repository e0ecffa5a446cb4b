"""Sections of a report about findings, tasks, charts and predictions. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from accelbench.core.nouns import NO_DATA, counted, four_digits
from accelbench.judge.findings.collected import NOTHING, Findings
from accelbench.judge.findings.finding import (
    FindingKind,
    StoreFinding,
    crowded,
    model,
    question,
    way,
    whose,
)
from accelbench.judge.findings.tasks import Best
from accelbench.present.charts.chart import Picture
from accelbench.present.document import (
    ChartBlock,
    DocumentSection,
    EvidenceLink,
    KeyFinding,
    Notes,
    Table,
    columns,
)
from accelbench.present.texts import phrase

if TYPE_CHECKING:
    from accelbench.predict.scoring import EvaluatedCases
    from accelbench.present.prediction_evidence import PredictionEvidence


#: Writes the rows that a table leaves out.
EXPORT = phrase("report.export-command")
#: The sections that findings lead to.
RESULTS, FAILURES = "results", "without-a-figure"
VERIFICATION = "verification-and-workarounds"
#: Configurations that a sentence leads to one by one.
_MOST_LINKS = 3
_SECTIONS: Mapping[FindingKind, str] = {
    FindingKind.FAILURES: FAILURES,
    FindingKind.OUTPUTS: FAILURES,
    FindingKind.PRECISION: VERIFICATION,
    FindingKind.PRECISE: VERIFICATION,
}


def foremost_findings(findings: Findings, row_ids: Mapping[str, str]) -> list[KeyFinding]:
    """Return the findings for the head of a page; one that says so if there are none."""
    foremost = findings.foremost
    if not foremost:
        return [KeyFinding(NOTHING)]
    return [KeyFinding(one.sentence, list(_links(one, row_ids)), one.command) for one in foremost]


def _links(finding: StoreFinding, row_ids: Mapping[str, str]) -> Iterable[EvidenceLink]:
    section = _SECTIONS.get(finding.kind, RESULTS)
    rows = [
        (each, row)
        for each in finding.evidence
        if (row := next((row_ids[key] for key in each.results if key in row_ids), ""))
    ]
    if finding.evidence and len(rows) == len(finding.evidence) <= _MOST_LINKS:
        yield from (EvidenceLink(each.name, RESULTS, row) for each, row in rows)
    elif finding.evidence:
        yield EvidenceLink(counted(len(finding.evidence), "configuration"), section)


def task_section(findings: Findings) -> list[DocumentSection]:
    """Return the section of what is fastest, cheapest and most precise for each task, if any."""
    if not findings.tasks:
        return []
    several = crowded(point.row for task in findings.tasks for point in task.points)
    rows = [
        [
            task.task.replace("_", " "),
            counted(len(task.points), "configuration"),
            *(_best(best, several) for best in (task.fastest, task.cheapest, task.precise)),
        ]
        for task in findings.tasks
    ]
    headers = ("task", "among", "fastest", "cheapest", "most precise")
    caption = phrase("report.task-caption")
    return [DocumentSection("By task", [Table(columns(headers), rows, caption=caption)])]


def _best(best: Best | None, several: frozenset[str]) -> str:
    if best is None:
        return NO_DATA
    row = best.point.row
    subject = f"{model(row)} by {way(row, several)}, {question(row)}{whose(row)}"
    return f"{subject}: {best.figure}; {best.beside}"


def more_findings(findings: Findings) -> list[DocumentSection]:
    """Return the section of the findings that are not at the head, if there are any."""
    foremost = findings.foremost
    rest = [
        f"{finding.sentence}{f' Next: {finding.command}' if finding.command else ''}"
        for finding in findings.every
        if finding not in foremost
    ]
    return [DocumentSection("More findings", [Notes(rest, is_list=True)])] if rest else []


#: More lines of what a chart shows are in the database, and in `db export`.
_MOST_DRAWN = 200


def chart_section(drawing: Picture, *notes: str) -> DocumentSection:
    """Return the section of a chart, below notes if there are any."""
    chart = drawing.chart
    block = ChartBlock(
        chart.name, chart.title, chart.answers, drawing.about, drawing.spec, _data(drawing)
    )
    return DocumentSection(chart.title, [*([Notes(notes)] if notes else []), block])


def _data(drawing: Picture) -> Table:
    records = [
        {name: value for name, value in record.items() if name not in ("paint", "panel", "place")}
        for record in drawing.records[:_MOST_DRAWN]
    ]
    # In the order of the fields, whichever record is the first to have a value in one.
    names = dict.fromkeys(name for record in records for name in record)
    rows = [[text_of(record.get(name)) for name in names] for record in records]
    numbers = {
        i for i, name in enumerate(names) if any(isinstance(r.get(name), float) for r in records)
    }
    more = len(drawing.records) - len(records)
    caption = (
        f"Figures of {drawing.chart.title}"
        f"{f' (the first {len(records)} of {len(drawing.records)})' if more else ''}"
    )
    return Table(columns(names, numbers), rows, caption=caption, is_folded=True)


def text_of(value: object) -> str:
    """Return a value as a cell; an absent one is empty."""
    if value is None:
        return ""
    return four_digits(value) if isinstance(value, float) else str(value)


AGAINST_MEASURED = "Predicted against measured"
_LEFT_OUT = phrase("report.predictions-about")
_SCALING = phrase("report.scaling-about")
HEADERS = ("target", "engine", "cases", "median error, %", "inside 25 %, %", "coverage, %")
CAPTION = phrase("report.scores-caption")


def predictions(evidence: PredictionEvidence | None) -> Iterable[DocumentSection]:
    """Yield the sections; only a sentence if there is too little to judge."""
    if evidence is None:
        return
    if evidence.picture is None:
        notes = [Notes([evidence.why])] if evidence.why else []
        yield DocumentSection(AGAINST_MEASURED, notes)
        return
    blocks = chart_section(evidence.picture, _LEFT_OUT).blocks
    scores = Table(columns(HEADERS, {2, 3, 4, 5}), score_rows(evidence.cases), caption=CAPTION)
    yield DocumentSection(AGAINST_MEASURED, [*blocks, scores])
    if evidence.scaling_picture is not None:
        yield chart_section(evidence.scaling_picture, _SCALING)


def score_rows(cases: Mapping[str, EvaluatedCases]) -> list[list[str]]:
    """Return the scores of each target: of all cases, and of each engine."""
    return [
        [target, name, f"{score['n']:,}", *(_percent(score[what]) for what in _SHARES)]
        for target, entry in cases.items()
        for name, score in (("all", entry.score()), *entry.score_by_group().items())
        if score["n"]
    ]


_SHARES = ("mdape", "within25", "coverage90")


def _percent(value: float | None) -> str:
    return NO_DATA if value is None else f"{value:.0f}" if value >= 10 else f"{value:.1f}"

"""What a report is made of: sections of text, tables and pictures; findings; predictions. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from accelbench.core.nouns import NO_DATA, counted
from accelbench.query.findings.collected import NOTHING, Findings
from accelbench.query.findings.finding import (
    FindingKind,
    StoreFinding,
    crowded,
    model,
    question,
    way,
    whose,
)
from accelbench.query.findings.tasks import Best
from accelbench.report.charts.chart import Picture

if TYPE_CHECKING:
    from accelbench.predict.scoring import EvaluatedCases
    from accelbench.report.prediction_evidence import PredictionEvidence


@dataclass(frozen=True)
class Text:
    """Paragraphs, or the items of a list."""

    lines: Sequence[str]
    listed: bool = False


#: What brings the lines that a table leaves out.
EXPORT = "accelbench db export csv"


@dataclass(frozen=True)
class Table:
    """A table; figures stand to the right."""

    headers: Sequence[str]
    rows: Sequence[Sequence[str]]
    figures: frozenset[int] = frozenset()  # columns that hold figures
    caption: str = ""
    command: str = ""  # what brings the rest: the last words of the caption
    folded: bool = False  # shown where somebody opens it
    anchors: Sequence[str] = ()  # of its lines, what a finding leads to


@dataclass(frozen=True)
class Figure:
    """A picture, and what is drawn in it as a table."""

    picture: Picture
    table: Table


Block = Text | Table | Figure


@dataclass(frozen=True)
class EvidenceLink:
    """A place in the report that a sentence rests on."""

    text: str
    anchor: str


@dataclass(frozen=True)
class Sentence:
    """A finding at the head of a report, what it rests on, and what to do next."""

    text: str
    evidence: Sequence[EvidenceLink] = ()
    command: str = ""


@dataclass(frozen=True)
class Section:
    """A heading and what stands below it."""

    title: str
    blocks: Sequence[Block]

    @property
    def anchor(self) -> str:
        """What leads to it, in both spellings: as a heading of Markdown is known by."""
        words = self.title.lower().replace(" ", "-")
        return "".join(letter for letter in words if letter.isalnum() or letter == "-")


@dataclass(frozen=True)
class Report:
    """All of it."""

    title: str
    about: Sequence[str]
    sections: Sequence[Section]
    findings: Sequence[Sentence] = ()


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


def told_findings(findings: Findings, anchors: Mapping[str, str]) -> list[Sentence]:
    """Those that stand at the head; that there is nothing to say is one as well."""
    foremost = findings.foremost
    if not foremost:
        return [Sentence(NOTHING)]
    return [Sentence(one.sentence, list(_links(one, anchors)), one.command) for one in foremost]


def _links(finding: StoreFinding, anchors: Mapping[str, str]) -> Iterable[EvidenceLink]:
    section = _SECTIONS.get(finding.kind, RESULTS)
    lines = [
        (each, anchor)
        for each in finding.evidence
        if (anchor := next((anchors[key] for key in each.results if key in anchors), ""))
    ]
    if finding.evidence and len(lines) == len(finding.evidence) <= _MOST_LINKS:
        yield from (EvidenceLink(each.name, anchor) for each, anchor in lines)
    elif finding.evidence:
        yield EvidenceLink(counted(len(finding.evidence), "configuration"), section)


def task_section(findings: Findings) -> list[Section]:
    """For each task what is fastest, cheapest and most precise; nothing of no task."""
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
    caption = (
        "At the batch size that most devices ran, of as many devices as most have, like with like"
    )
    return [Section("By task", [Table(headers, rows, caption=caption)])]


def _best(best: Best | None, several: frozenset[str]) -> str:
    if best is None:
        return NO_DATA
    row = best.point.row
    subject = f"{model(row)} by {way(row, several)}, {question(row)}{whose(row)}"
    return f"{subject}: {best.figure}; {best.beside}"


def more_findings(findings: Findings) -> list[Section]:
    """What is less important than what stands at the head."""
    foremost = findings.foremost
    rest = [
        f"{finding.sentence}{f' Next: {finding.command}' if finding.command else ''}"
        for finding in findings.every
        if finding not in foremost
    ]
    return [Section("More findings", [Text(rest, listed=True)])] if rest else []


#: More lines of what a chart shows are in the database, and in `db export`.
_MOST_DRAWN = 200


def drawn_table(drawing: Picture) -> Table:
    """The figures of a picture."""
    records = [
        {name: value for name, value in record.items() if name not in ("paint", "panel", "place")}
        for record in drawing.records[:_MOST_DRAWN]
    ]
    # In the order of the fields, whichever record is the first to have a value in one.
    names = dict.fromkeys(name for record in records for name in record)
    headers = [n for n in names if any(record.get(n) not in (None, "") for record in records)]
    rows = [[told(record.get(name)) for name in headers] for record in records]
    numbers = frozenset(
        i for i, name in enumerate(headers) if any(isinstance(r.get(name), float) for r in records)
    )
    more = len(drawing.records) - len(records)
    caption = (
        f"Figures of {drawing.chart.title}"
        f"{f' (the first {len(records)} of {len(drawing.records)})' if more else ''}"
    )
    return Table(headers or ["nothing"], rows, numbers, caption, folded=True)


def told(value: object) -> str:
    """A value in a field; nothing of what is absent."""
    if value is None:
        return ""
    return digits(value) if isinstance(value, float) else str(value)


def digits(value: float) -> str:
    """Four digits, as many as such figures carry, or all of a large number: 0.1234, 23,960."""
    return f"{value:,.0f}" if abs(value) >= 1e4 else f"{value:.4g}"


AGAINST_MEASURED = "Predicted against measured"
_LEFT_OUT = (
    "Each figure was predicted by accelbench's own predictor from the measurements of other models"
    " of the database alone; what was measured of the same case says how far it was off. Predicted"
    " figures stand in this section and in the next one, and in no comparison."
)
_SCALING = (
    "Lines and bands are predicted from all that was measured of these models and others; circles"
    " are measured."
)
HEADERS = ("target", "engine", "cases", "median error, %", "inside 25 %, %", "coverage, %")
CAPTION = "By engine; coverage is the share inside the 90 % interval"


def predictions(evidence: PredictionEvidence | None) -> Iterable[Section]:
    """The sections; a sentence where there is too little to judge, none where nobody asked."""
    if evidence is None:
        return
    picture = evidence.picture
    if picture is None:
        yield Section(AGAINST_MEASURED, [Text([evidence.why])] if evidence.why else [])
        return
    blocks: list[Block] = [
        Text([_LEFT_OUT]),
        Figure(picture, drawn_table(picture)),
        Table(HEADERS, score_rows(evidence.cases), frozenset({2, 3, 4, 5}), CAPTION),
    ]
    yield Section(AGAINST_MEASURED, blocks)
    scaling = evidence.scaling_picture
    if scaling is not None:
        figure = Figure(scaling, drawn_table(scaling))
        yield Section(scaling.chart.title, [Text([_SCALING]), figure])


def score_rows(cases: Mapping[str, EvaluatedCases]) -> list[list[str]]:
    """Scores of each target: of all cases, and of each engine."""
    return [
        [target, name, f"{score['n']:,}", *(_percent(score[what]) for what in _SHARES)]
        for target, entry in cases.items()
        for name, score in (("all", entry.score()), *entry.score_by_group().items())
        if score["n"]
    ]


_SHARES = ("mdape", "within25", "coverage90")


def _percent(value: float | None) -> str:
    return NO_DATA if value is None else f"{value:.0f}" if value >= 10 else f"{value:.1f}"

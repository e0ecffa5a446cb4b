"""The sections of a report. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from accelbench.core.columns import BY_NAME
from accelbench.core.formatting import NO_DATA, NOT_APPLICABLE, format_count, format_four_digits
from accelbench.core.precision import error_of, summarise_inexact
from accelbench.core.result_statistics import Statistic, common_unit, differing_unit
from accelbench.core.rows import Json, Row, number, text, texts
from accelbench.core.safe_text import hide_homes
from accelbench.core.unusable_reasons import failed_launches_text
from accelbench.core.vocabulary import Status
from accelbench.judge.accuracies import (
    AccuracyPlace,
    accuracy_against,
    accuracy_of,
    cost_sentence,
    like_for_like,
    place_of,
)
from accelbench.judge.costs import amount, cost_notes, has_costs, items_of, known_price, money
from accelbench.judge.findings.collected import NOTHING, Findings, findings_of
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
from accelbench.judge.matrix import RULE, Matrix, MatrixCell
from accelbench.judge.points import FigureInterval, Point
from accelbench.judge.questions import Key, values
from accelbench.judge.ratios import mean_beside
from accelbench.judge.regressions import Check
from accelbench.judge.summary import summary
from accelbench.judge.warned import warned
from accelbench.present.charts import CHARTS
from accelbench.present.charts.chart import Picture, Subject, newer_set_aside, picture
from accelbench.present.charts.words import ALIKE, PLACE, PointNames, told
from accelbench.present.document import (
    ChartBlock,
    Document,
    DocumentSection,
    EvidenceLink,
    KeyFinding,
    KeyFindings,
    Notes,
    Table,
    columns,
)
from accelbench.present.matrix import BEST_PRECISION, mark, precisions
from accelbench.present.prediction_evidence import PredictionEvidence
from accelbench.present.texts import phrase

if TYPE_CHECKING:
    from accelbench.predict.scoring import EvaluatedCases


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
        yield EvidenceLink(format_count(len(finding.evidence), "configuration"), section)


def task_section(findings: Findings) -> list[DocumentSection]:
    """Return the section of what is fastest, cheapest and most precise for each task, if any."""
    if not findings.tasks:
        return []
    several = crowded(point.row for task in findings.tasks for point in task.points)
    rows = [
        [
            task.task.replace("_", " "),
            format_count(len(task.points), "configuration"),
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
    return format_four_digits(value) if isinstance(value, float) else str(value)


AGAINST_MEASURED = "Predicted against measured"
_LEFT_OUT = phrase("report.predictions-about")
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
        yield chart_section(evidence.scaling_picture, phrase("report.scaling-about"))


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


_HEADERS = (
    *("model", "engine", "precision", "metric", "accuracy", "95 % interval", "samples"),
    "measured, UTC",
)
_DAY = 10  # of a moment: 2026-01-02


def task_accuracy(
    accuracies: Mapping[AccuracyPlace, Sequence[Row]], points: Sequence[Point]
) -> Iterable[DocumentSection]:
    """The section; none where nothing was labelled. Batches of a place have one line."""
    if not accuracies:
        return
    blocks: list[Table | Notes] = [Notes([phrase("report.accuracy-about")])]
    lines = [_line(place, rows[0]) for place, rows in accuracies.items()]
    blocks.append(Table(columns(_HEADERS, {4, 5, 6}), lines, caption="Every cell"))
    sentences = [*_costs(accuracies), *_other_weights(accuracies, points)]
    if sentences:
        blocks.append(Notes(sentences, is_list=True))
    yield DocumentSection("Task accuracy", blocks)


def _line(place: AccuracyPlace, row: Row) -> list[str]:
    known = accuracy_of(row)
    assert known is not None  # else it were no place
    figures = (known.metric.heading, known.shown, known.interval, f"{known.samples:,}")
    day = text(row, "started_at")[:_DAY]
    return [place.model, place.engine, place.precision, *figures, day]


def _costs(accuracies: Mapping[AccuracyPlace, Sequence[Row]]) -> Iterable[str]:
    for place, rows in accuracies.items():
        if place.precision == "fp32":
            continue
        known = accuracies.get(place.as_fp32(), ())
        base = like_for_like(rows[0], known)
        cost = accuracy_against(rows[:1], [base]) if base is not None else None
        if cost is not None:
            yield cost_sentence(_name(place), "fp32", cost)
        elif known:
            yield phrase("report.accuracy-not-compared", name=_name(place))


def _other_weights(
    accuracies: Mapping[AccuracyPlace, Sequence[Row]], points: Sequence[Point]
) -> Iterable[str]:
    timed: dict[AccuracyPlace, set[object]] = {}
    for point in points:
        place = place_of(point.row, point.machine)
        timed.setdefault(place, set()).update(row.get("weights_digest") for row in point.rows)
    for place, rows in accuracies.items():
        if place in timed and rows[0].get("weights_digest") not in timed[place]:
            yield phrase("report.accuracy-other-weights", name=_name(place))


def _name(place: AccuracyPlace) -> str:
    return f"{place.model}, {place.engine}, {place.precision}"


#: A table's lines may be as long as names are: what is cut reads like what it is beside.
LONGEST_NAME = 400


#: Configurations of the table of results; all of thousands are in the files of `db export`.
MOST_RESULTS = 1000


def chosen_points(points: Sequence[Point], findings: Findings) -> list[Point]:
    """What the table of results has: of thousands what findings rest on, and of each model what
    is fastest in each mode and batch; in the order of names.
    """
    if len(points) <= MOST_RESULTS:
        return sorted(points, key=_result_lines_place)
    told = {
        key for finding in findings.foremost for each in finding.evidence for key in each.results
    }

    def order(point: Point) -> tuple[object, ...]:
        first = not any(str(row.get("result_id")) in told for row in point.rows)
        return first, not point.usable, ranks[id(point)], _result_lines_place(point)

    ranks: dict[int, int] = {}
    counts: dict[object, int] = {}
    for point in sorted(points, key=lambda point: point.item_ms):
        case = tuple(str(point.row.get(name)) for name in ("model", "mode", "batch_size"))
        ranks[id(point)] = counts[case] = counts.get(case, -1) + 1
    return sorted(sorted(points, key=order)[:MOST_RESULTS], key=_result_lines_place)


def row_ids_of(points: Sequence[Point]) -> dict[str, str]:
    """Return the id of the table's row for each result."""
    return {
        str(row.get("result_id")): f"c{number}"
        for number, point in enumerate(points)
        for row in point.rows
    }


def results(every: Sequence[Point], points: Sequence[Point]) -> DocumentSection:
    """The section."""
    unit = common_unit(point.row for point in points)
    headers = (
        *("configuration", "figures", "median latency, ms", "95 % interval", unit, "peak MB"),
        *("first step, ms", "launches", "samples", "quality"),
    )
    names = told(points, always=("model",), longest=LONGEST_NAME) if points else PointNames((), "")
    rows = [
        _result_lines_cell(point, name, unit)
        for point, name in zip(points, names.apart, strict=True)
    ]
    caption = phrase("report.results-caption")
    aside = newer_set_aside(points)
    caption += phrase("report.newer-set-aside", aside=aside[0]) if aside else ""
    caption += f". All: {names.together}" if names.together else ""
    more = len(every) - len(points)
    if more:
        caption = caption.replace("Every configuration", f"{len(points):,} configurations", 1)
        caption += phrase("report.slower-left-out", more=more)
    if not rows:
        return DocumentSection("Results", [Notes([phrase("report.no-results")])])
    table = Table(
        columns(headers, range(2, 9)),
        rows,
        caption=caption,
        command=EXPORT if more else "",
        row_ids=[f"c{number}" for number in range(len(rows))],
    )
    return DocumentSection("Results", [table])


def _result_lines_place(point: Point) -> tuple[str | int, ...]:
    row = point.row
    words = (str(row.get(n)) for n in ("model", "mode", "hardware", "runtime", "precision"))
    return (*words, int(number(row, "batch_size") or 0))


def names_of(points: Sequence[Point]) -> Sequence[str]:
    """What tells configurations apart, whole."""
    return told(points, always=("model",), longest=LONGEST_NAME).apart if points else []


def _result_lines_cell(point: Point, name: str, unit: str) -> list[str]:
    latency, timed = point.latency, point.timed
    word = str(point.measurement.quality or "").replace("_", " ")
    quality = (word, failed_launches_text(point.rows), summarise_inexact(point.rows))
    rate = f"{figure(point.throughput)} {differing_unit(point.row, unit)}"
    first = point.metric("first_inference_ms")
    return [
        name,
        point.kind,
        _time(point) if timed else NOT_APPLICABLE,
        latency.spread.ends(format_four_digits) if timed and latency and latency.spread else "",
        rate.rstrip() if timed else NOT_APPLICABLE,
        figure(point.memory),
        figure(first) if timed else NOT_APPLICABLE,
        str(len(point.rows)),
        f"{point.samples:,}" if point.samples else NO_DATA,
        ", ".join(filter(None, quality)),
    ]


def _time(point: Point) -> str:
    if point.latency is None and point.percentile is not None:
        value, statistic = point.percentile
        return f"{figure(FigureInterval(value))} {statistic}"
    mean = mean_beside(point.rows)
    named = f" (mean {format_four_digits(mean)})" if mean else ""
    if point.latency_by is Statistic.MEAN:
        named = f" {Statistic.MEAN}"
    return f"{figure(point.latency)}{named}"


def figure(span: FigureInterval | None) -> str:
    """A figure, or that there is none."""
    return NO_DATA if span is None else format_four_digits(span.value)


#: More models than this are told of in the table alone.
_MOST_MODELS = 12
#: A longer table is shown where somebody opens it.
_MOST_OPEN = 40
#: Other places whose cheapest is told beside the cheapest of all.
_OTHERS = 3
COMPUTED = (
    (phrase("report.cost-formula")),
    (phrase("report.cost-prices")),
    (phrase("report.cost-busy")),
)


def costs(subject: Subject) -> Iterable[DocumentSection]:
    """The section; none where nobody gave a price and no result says its own cost."""
    notes = cost_notes(subject.rows, subject.prices)
    if not has_costs(subject.rows):
        if notes:
            yield DocumentSection("Cost", [Notes(notes)])
        return
    priced = [point for point in subject.points if point.cost or point.step_cost]
    blocks: list[Table | Notes] = [
        Notes(cheapest(priced, subject.sign), is_list=True),
        _table(priced, subject.sign),
        Notes([*notes, *COMPUTED]),
    ]
    yield DocumentSection("Cost", blocks)


def cheapest(priced: Sequence[Point], sign: str) -> list[str]:
    """Of each model what is cheapest, and the cheapest of other places: sentences."""
    groups: dict[Key, list[Point]] = {}
    for point in priced:
        if point.cost is not None and point.usable:
            groups.setdefault((point.machine, *values(point.row, ALIKE)), []).append(point)
    best: dict[Key, list[Point]] = {}
    for several in groups.values():  # of one model the work that was done in most ways
        key = values(several[0].row, ("model", "mode"))
        best[key] = max(best.get(key, []), several, key=len)
    return [_cheapest(several, sign) for several in list(best.values())[:_MOST_MODELS]]


def _cheapest(several: Sequence[Point], sign: str) -> str:
    names = told(several, always=(PLACE,), longest=60)
    ordered = sorted(zip(several, names.apart, strict=True), key=lambda pair: _value(pair[0].cost))
    first, way = ordered[0]
    places: dict[Key, str] = {}
    for point, name in ordered:
        place = values(point.row, ("hardware", "device_name"))
        places.setdefault(place, f"{name} {sign}{money(_value(point.cost))}")
    others = list(places.values())[1:]
    beside = f"; elsewhere {', '.join(others[:_OTHERS])}" if others else ""
    row = first.row
    return phrase(
        "report.cheapest",
        model=row.get("model"),
        mode=row.get("mode"),
        way=way,
        sign=sign,
        value=money(_value(first.cost)),
        items_of=items_of(row),
        beside=beside,
        unsure=_unsure(ordered),
    )


def _unsure(ordered: Sequence[tuple[Point, str]]) -> str:
    if len(ordered) < 2:
        return ""
    (first, _), (second, name) = ordered[:2]
    if min(len(first.rows), len(second.rows)) < 2 or first.cost is None or second.cost is None:
        return phrase("report.cheapest-single-launch")
    if first.cost.sure and second.cost.sure and first.cost.sure[1] < second.cost.sure[0]:
        return ""
    return phrase("report.cheapest-inconclusive", name=name)


def _value(span: FigureInterval | None) -> float:
    return span.value if span is not None else float("inf")


def _table(priced: Sequence[Point], sign: str) -> Table:
    ordered = sorted(
        priced,
        key=lambda one: (str(one.row.get("model")), str(one.row.get("mode")), _value(one.cost)),
    )
    names = told(ordered, always=("model",), longest=72).apart
    mark = sign.strip()
    headers = (
        *("configuration", "figures", f"{mark} for a million", "of", "95 % interval"),
        *(f"{mark} a training step", f"{mark} an hour", "priced as"),
    )
    rows = [[name, *_cell(point)] for point, name in zip(ordered, names, strict=True)]
    return Table(
        columns(headers, {2, 4, 5, 6}),
        rows,
        caption=phrase("report.costs-caption"),
        is_folded=len(ordered) > _MOST_OPEN,
    )


def _cell(point: Point) -> list[str]:
    cost, step = point.cost, point.step_cost
    price = known_price(point.row)
    several = f"{price.devices} × " if price and price.devices != 1 else ""
    return [
        point.kind,
        money(cost.value) if cost else NO_DATA,
        items_of(point.row),
        cost.spread.ends(money) if cost and cost.spread else "",
        money(step.value) if step else "",
        amount(price.per_hour, "") if price else NOT_APPLICABLE,
        "its own figure" if price is None else f"{several}{price.name}",
    ]


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


def report(known: ReportData, title: str = "accelbench report") -> Document:
    """Return the report."""
    subject = known.subject
    findings = findings_of(subject.rows, subject.points, subject.known, known.check, subject.sign)
    shown = chosen_points(subject.points, findings)
    lines = Notes(summary(subject.rows, subject.points, subject.known), is_list=True)
    sections = [
        DocumentSection("Summary", [lines]),
        *task_section(findings),
        *more_findings(findings),
        results(subject.points, shown),
        *task_accuracy(subject.accuracies, subject.points),
        *costs(subject),
        *(
            chart_section(drawn)
            for chart in CHARTS.values()
            if (drawn := picture(chart, subject)) is not None
        ),
        *predictions(known.predictions),
        *_matrix(subject.matrix),
        _verification(known),
        *_refusals(known),
        _environment(known),
        _computed(),
    ]
    about = [
        f"{known.subject.machine} · {hide_homes(known.source)}",
        f"Made {known.made_at[:16].replace('T', ' ')} UTC.",
        *(phrase("report.other-report", other=other) for other in known.others),
    ]
    foremost = KeyFindings(foremost_findings(findings, row_ids_of(shown)))
    return Document(title, [Notes(about), foremost, *sections])


def _matrix(matrix: Matrix | None) -> Iterable[DocumentSection]:
    if matrix is None or not matrix.models:
        return

    def level(cell: MatrixCell) -> str:
        named = " and ".join(precisions(cell))
        return f"{mark(cell)} ({named})" if named else mark(cell)

    headers = ["model", *matrix.hardware]
    rows = [
        [line.name, *(level(line.cells[name]) for name in matrix.hardware)]
        for line in matrix.models
    ]
    why = [
        [line.name, name, cell.availability.value, cell.reason]
        for line in matrix.models
        for name, cell in line.cells.items()
        if cell.reason and cell.has_result
    ]
    yield DocumentSection(
        "Compatibility matrix",
        [
            Table(columns(headers), rows, caption=f"Inference, {BEST_PRECISION}"),
            Table(
                columns(("model", "hardware", "state", "reason")),
                why,
                caption="Reasons",
                is_folded=True,
            ),
            Notes(RULE, is_list=True),
        ],
    )


def _verification(known: ReportData) -> DocumentSection:
    done = [row for row in known.subject.rows if row.get("status") == Status.OK]
    kept, more = _once(done, "verification", "self_check", "workarounds")
    rows = [
        [
            name,
            str(row.get("verification") or "not_done"),
            text_of(row.get("verification_error")),
            text_of(row.get("verification_tolerance")),
            str(row.get("self_check") or "not_done"),
            "; ".join(texts(row, "workarounds")),
        ]
        for row, name in kept
    ]
    headers = ("configuration", "outputs", "error", "tolerance", "self-check", "workarounds")
    blocks: list[Table | Notes] = [
        Notes([_OUTPUTS]),
        _capped(Table(columns(headers, {2, 3}), rows, is_folded=len(rows) > 40), more),
    ]
    warnings = warned(done)
    if warnings:
        lines = [[warning.text, f"{len(warning.rows):,}"] for warning in warnings[:_MOST_WARNINGS]]
        if len(warnings) > len(lines):
            rest = sum(len(warning.rows) for warning in warnings[len(lines) :])
            lines.append([f"{len(warnings) - len(lines):,} more", f"{rest:,}"])
        blocks.append(Table(columns(("warning", "launches"), {1}), lines, caption="Warnings"))
    return DocumentSection("Verification and workarounds", blocks)


def _capped(table: Table, more: int, caption: str = "Every cell") -> Table:
    if not more:
        return replace(table, caption=caption)
    caption = phrase("report.worst-first", caption=caption, more=more)
    return replace(table, caption=caption, command=EXPORT)


def _once(rows: Sequence[Row], *columns: str) -> tuple[list[tuple[Row, str]], int]:
    """Return a launch for each distinct statement of a cell, and how many are left out.

    Of equal statements the launch with the largest error stays; of thousands the largest errors.
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
        # Workarounds and the largest errors first.
        order = [(not texts(row, "workarounds"), -(error_of(row) or 0.0)) for row in kept]
        worst = sorted(range(len(kept)), key=order.__getitem__)[:_MOST_LINES]
        kept = [kept[at] for at in sorted(worst)]
    names = names_of([Point([row], "") for row in kept])
    return list(zip(kept, names, strict=True)), more


def _refusals(known: ReportData) -> Iterable[DocumentSection]:
    bad = [row for row in known.subject.rows if row.get("status") != Status.OK]
    if not bad:
        return
    kept, more = _once(bad, "status", "reason")
    rows = [
        [name, *(str(row.get(n) or "") for n in ("status", "reason", "message", "advice"))]
        for row, name in kept
    ]
    headers = ("configuration", "status", "reason", "what happened", "what to do")
    table = _capped(Table(columns(headers), rows), more, "And why")
    yield DocumentSection("Without a figure", [table])


_PACKAGES = "packages"


def _environment(known: ReportData) -> DocumentSection:
    runs = [
        [
            str(run.get("run_id")),
            str(run.get("label") or ""),
            str(run.get("started_at") or "")[:19],
            str(run.get("status") or ""),
            str(run.get("git_commit") or "")[:12],
            hide_homes(str(run.get("command") or "")),
        ]
        for run in known.runs
    ]
    blocks: list[Table | Notes] = []
    if runs:
        headers = ("run", "label", "began (UTC)", "status", "commit", "command")
        is_folded = len(runs) > 20
        blocks.append(Table(columns(headers), runs, caption="Runs", is_folded=is_folded))
    facts: dict[str, set[str]] = {}
    for run in known.runs:
        stored = run.get("environment")
        document: object = json.loads(stored) if isinstance(stored, str) else stored
        for name, value in _flat(document if isinstance(document, Mapping) else {}):
            facts.setdefault(name, set()).add(hide_homes(value))
    if facts:
        rows = [[name, " · ".join(sorted(values))] for name, values in sorted(facts.items())]
        table = Table(columns(("what", "value")), rows, caption="Machine and software")
        blocks.append(table)
    return DocumentSection("Environment", blocks or [Notes([phrase("report.environment-unknown")])])


def _flat(values: Json, before: str = "") -> Iterable[tuple[str, str]]:
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat(value, "" if name == _PACKAGES else f"{before}{name} ")
        elif value not in (None, ""):
            yield f"{before}{name}".replace("_", " "), str(value)


_OUTPUTS = phrase("report.verification-about")
_METHOD = (
    (phrase("report.method-configuration")),
    (phrase("report.method-intervals")),
    (phrase("report.method-outliers")),
    (phrase("report.method-history")),
    (phrase("report.method-imported")),
)
#: The columns whose figures a report shows.
_SHOWN = (
    *("latency_p50_ms", "latency_ci_low_ms", "throughput", "memory_peak_mb", "first_inference_ms"),
    *("build_ms", "load_ms", "compile_ms", "sample_count", "outlier_count", "quality"),
    *("verification_error", "verification_tolerance", "flops", "bytes_moved"),
)


def _computed() -> DocumentSection:
    shown = [(name, BY_NAME[name]) for name in _SHOWN]
    rows = [[column.header or name, column.unit or "", column.doc] for name, column in shown]
    table = Table(columns(("figure", "unit", "what it is")), rows, caption="Columns")
    return DocumentSection(phrase("report.method-title"), [Notes(_METHOD), table])

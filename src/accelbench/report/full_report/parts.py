"""The sections of a report. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from accelbench.analysis.accuracies import (
    AccuracyPlace,
    accuracy_against,
    accuracy_of,
    cost_sentence,
    like_for_like,
    place_of,
)
from accelbench.analysis.checking import Check
from accelbench.analysis.costs import amount, cost_notes, has_costs, items_of, known_price, money
from accelbench.analysis.matrix import RULE, Matrix, MatrixCell
from accelbench.analysis.points import FigureInterval, Point
from accelbench.analysis.questions import Key, values
from accelbench.analysis.ratios import mean_beside
from accelbench.analysis.summary import summary
from accelbench.analysis.warned import warned
from accelbench.core.columns import BY_NAME
from accelbench.core.figures import Statistic, unit_beside, unit_of_all
from accelbench.core.nouns import NO_DATA, NOT_APPLICABLE
from accelbench.core.precision import error_of, not_exact
from accelbench.core.rows import Json, Row, number, text, texts
from accelbench.core.visible import without_homes
from accelbench.core.vocabulary import Status
from accelbench.core.worth import launches_failed
from accelbench.query.findings.collected import Findings, findings_of
from accelbench.report.charts import CHARTS
from accelbench.report.charts.chart import Subject, newer_set_aside, picture
from accelbench.report.charts.words import ALIKE, PLACE, PointNames, told
from accelbench.report.full_report.contents import (
    EXPORT,
    Block,
    Figure,
    Report,
    Section,
    Table,
    Text,
    drawn_table,
    more_findings,
    predictions,
    task_section,
    told_findings,
)
from accelbench.report.full_report.contents import digits as digits
from accelbench.report.full_report.contents import told as told_value
from accelbench.report.matrix import BEST_PRECISION, mark, precisions
from accelbench.report.prediction_evidence import PredictionEvidence

_WHAT = (
    "What outputs are worth against labelled data, by the sessions that were timed: of each the"
    " newest result that has an accuracy. Intervals are of the samples, 95 %; a difference is of"
    " the same samples, pair by pair."
)
_HEADERS = (
    *("model", "engine", "precision", "metric", "accuracy", "95 % interval", "samples"),
    "measured, UTC",
)
_DAY = 10  # of a moment: 2026-01-02


def task_accuracy(
    accuracies: Mapping[AccuracyPlace, Sequence[Row]], points: Sequence[Point]
) -> Iterable[Section]:
    """The section; none where nothing was labelled. Batches of a place have one line."""
    if not accuracies:
        return
    blocks: list[Block] = [Text([_WHAT])]
    lines = [_line(place, rows[0]) for place, rows in accuracies.items()]
    blocks.append(Table(_HEADERS, lines, frozenset({4, 5, 6}), "Every cell"))
    sentences = [*_costs(accuracies), *_other_weights(accuracies, points)]
    if sentences:
        blocks.append(Text(sentences, listed=True))
    yield Section("Task accuracy", blocks)


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
            yield f"{_name(place)}: accuracy is not compared with fp32: it is of other weights."


def _other_weights(
    accuracies: Mapping[AccuracyPlace, Sequence[Row]], points: Sequence[Point]
) -> Iterable[str]:
    """Whose figures are of other weights than their accuracy."""
    timed: dict[AccuracyPlace, set[object]] = {}
    for point in points:
        place = place_of(point.row, point.machine)
        timed.setdefault(place, set()).update(row.get("weights_digest") for row in point.rows)
    for place, rows in accuracies.items():
        if place in timed and rows[0].get("weights_digest") not in timed[place]:
            yield (
                f"{_name(place)}: its accuracy is of other weights than its figures, which a later"
                " run without labelled data measured."
            )


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


def anchors_of(points: Sequence[Point]) -> dict[str, str]:
    """Of each result the line of the table that it is in."""
    return {
        str(row.get("result_id")): f"c{number}"
        for number, point in enumerate(points)
        for row in point.rows
    }


def results(every: Sequence[Point], points: Sequence[Point]) -> Section:
    """The section."""
    unit = unit_of_all(point.row for point in points)
    headers = (
        *("configuration", "figures", "median latency, ms", "95 % interval", unit, "peak MB"),
        *("first step, ms", "launches", "samples", "quality"),
    )
    names = told(points, always=("model",), longest=LONGEST_NAME) if points else PointNames((), "")
    rows = [
        _result_lines_cell(point, name, unit)
        for point, name in zip(points, names.apart, strict=True)
    ]
    caption = "Every configuration: the geometric mean of its launches"
    aside = newer_set_aside(points)
    caption += f"; {aside[0]}, of the same software, that say less" if aside else ""
    caption += f". All: {names.together}" if names.together else ""
    more = len(every) - len(points)
    if more:
        caption = caption.replace("Every configuration", f"{len(points):,} configurations", 1)
        caption += f". {more:,} more, slower ways of the same models, are in the files of"
    lines = [f"c{number}" for number in range(len(rows))]
    right = frozenset({2, 3, 4, 5, 6, 7, 8})
    table = Table(headers, rows, right, caption, EXPORT if more else "", anchors=lines)
    return Section("Results", [table if rows else Text(["There are no figures."])])


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
    quality = (word, launches_failed(point.rows), not_exact(point.rows))
    rate = f"{figure(point.throughput)} {unit_beside(point.row, unit)}"
    first = point.metric("first_inference_ms")
    return [
        name,
        point.kind,
        _time(point) if timed else NOT_APPLICABLE,
        latency.spread.ends(digits) if timed and latency and latency.spread else "",
        rate.rstrip() if timed else NOT_APPLICABLE,
        figure(point.memory),
        figure(first) if timed else NOT_APPLICABLE,
        str(len(point.rows)),
        f"{point.samples:,}" if point.samples else NO_DATA,
        ", ".join(filter(None, quality)),
    ]


def _time(point: Point) -> str:
    """A latency, or the percentile that is all that is known, with its name."""
    if point.latency is None and point.percentile is not None:
        value, statistic = point.percentile
        return f"{figure(FigureInterval(value))} {statistic}"
    mean = mean_beside(point.rows)
    named = f" (mean {digits(mean)})" if mean else ""
    if point.latency_by is Statistic.MEAN:
        named = f" {Statistic.MEAN}"
    return f"{figure(point.latency)}{named}"


def figure(span: FigureInterval | None) -> str:
    """A figure, or that there is none."""
    return NO_DATA if span is None else digits(span.value)


#: More models than this are told of in the table alone.
_MOST_MODELS = 12
#: A longer table is shown where somebody opens it.
_MOST_OPEN = 40
#: Other places whose cheapest is told beside the cheapest of all.
_OTHERS = 3
COMPUTED = (
    (
        "A million items cost the price of an hour ÷ 3,600 ÷ items a second × 1,000,000; a training"
        " step costs the price of an hour ÷ 3,600 × its seconds, by the mean of all steps. What"
        " an item is stands in the table: an inference, or an image, a token, a second of sound."
    ),
    (
        "Prices are the user's: the most specific name counts, a machine's before a device's before"
        " a platform's. A device's or a platform's price is of one device, so several cost several"
        " times as much; a machine's is of the whole machine. The interval is that of the"
        " throughput, as a price has none."
    ),
    (
        "The device is taken to be busy all the time: what stands idle, storage, transfer and"
        " whoever runs it are not in the figure. What is emulated, predicted or simulated has no"
        " cost."
    ),
)


def costs(subject: Subject) -> Iterable[Section]:
    """The section; none where nobody gave a price and no result says its own cost."""
    notes = cost_notes(subject.rows, subject.prices)
    if not has_costs(subject.rows):
        if notes:
            yield Section("Cost", [Text(notes)])
        return
    priced = [point for point in subject.points if point.cost or point.step_cost]
    blocks: list[Block] = [
        Text(cheapest(priced, subject.sign), listed=True),
        _table(priced, subject.sign),
        Text([*notes, *COMPUTED]),
    ]
    yield Section("Cost", blocks)


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
    return (
        f"{row.get('model')}, {row.get('mode')}: cheapest is {way},"
        f" {sign}{money(_value(first.cost))} for a million {items_of(row)}{beside}."
        f"{_unsure(ordered)}"
    )


def _unsure(ordered: Sequence[tuple[Point, str]]) -> str:
    """What is said where launches do not tell the cheapest from the next."""
    if len(ordered) < 2:
        return ""
    (first, _), (second, name) = ordered[:2]
    if min(len(first.rows), len(second.rows)) < 2 or first.cost is None or second.cost is None:
        return " A single launch does not show how sure it is."
    if first.cost.sure and second.cost.sure and first.cost.sure[1] < second.cost.sure[0]:
        return ""
    return f" Launches do not tell it from {name}."


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
    folded = len(ordered) > _MOST_OPEN
    rows = [[name, *_cell(point)] for point, name in zip(ordered, names, strict=True)]
    caption = "Every configuration that has a price"
    return Table(headers, rows, frozenset({2, 4, 5, 6}), caption, folded=folded)


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


def report(known: ReportData, title: str = "accelbench report") -> Report:
    """All of it."""
    subject = known.subject
    findings = findings_of(subject.rows, subject.points, subject.known, known.check, subject.sign)
    shown = chosen_points(subject.points, findings)
    foremost = Text(summary(subject.rows, subject.points, subject.known), listed=True)
    sections = [
        Section("Summary", [foremost]),
        *task_section(findings),
        *more_findings(findings),
        results(subject.points, shown),
        *task_accuracy(subject.accuracies, subject.points),
        *costs(subject),
        *(
            Section(drawn.chart.title, [Figure(drawn, drawn_table(drawn))])
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
        f"{known.subject.machine} · {without_homes(known.source)}",
        f"Made {known.made_at[:16].replace('T', ' ')} UTC.",
        *(f"Not in this report: {other}" for other in known.others),
    ]
    return Report(title, about, sections, told_findings(findings, anchors_of(shown)))


def _matrix(matrix: Matrix | None) -> Iterable[Section]:
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
    yield Section(
        "Compatibility matrix",
        [
            Table(headers, rows, caption=f"Inference, {BEST_PRECISION}"),
            Table(["model", "hardware", "state", "reason"], why, caption="Reasons", folded=True),
            Text(RULE, listed=True),
        ],
    )


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
        # Workarounds and the largest errors first.
        order = [(not texts(row, "workarounds"), -(error_of(row) or 0.0)) for row in kept]
        worst = sorted(range(len(kept)), key=order.__getitem__)[:_MOST_LINES]
        kept = [kept[at] for at in sorted(worst)]
    names = names_of([Point([row], "") for row in kept])
    return list(zip(kept, names, strict=True)), more


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
        stored = run.get("environment")
        document: object = json.loads(stored) if isinstance(stored, str) else stored
        for name, value in _flat(document if isinstance(document, Mapping) else {}):
            facts.setdefault(name, set()).add(without_homes(value))
    if facts:
        rows = [[name, " · ".join(sorted(values))] for name, values in sorted(facts.items())]
        blocks.append(Table(("what", "value"), rows, caption="Machine and software"))
    return Section("Environment", blocks or [Text(["Nothing is known of it."])])


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
    shown = [(name, BY_NAME[name]) for name in _SHOWN]
    rows = [[column.header or name, column.unit or "", column.doc] for name, column in shown]
    columns = Table(("figure", "unit", "what it is"), rows, caption="Columns")
    return Section("How each figure was computed", [Text(_METHOD), columns])

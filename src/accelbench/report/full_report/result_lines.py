"""The table of a report's results: every configuration, or of thousands those that matter. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from accelbench.analysis.launch_intervals import mean_beside
from accelbench.analysis.points import FigureInterval, Point
from accelbench.core.absent import NO_DATA, NOT_APPLICABLE
from accelbench.core.exactness import not_exact
from accelbench.core.figures import Statistic
from accelbench.core.launch_failures import launches_failed
from accelbench.core.rates import unit_beside, unit_of_all
from accelbench.core.rows import number
from accelbench.core.worth import quality_of
from accelbench.query.findings.collected import Findings
from accelbench.report.charts.chart import newer_set_aside
from accelbench.report.charts.words import PointNames, told
from accelbench.report.full_report.contents import EXPORT, Section, Table, Text
from accelbench.report.full_report.drawn_tables import digits

#: A table's lines may be as long as names are: what is cut reads like what it is beside.
LONGEST_NAME = 400


#: Configurations of the table of results; all of thousands are in the files of `db export`.
MOST_RESULTS = 1000


def chosen_points(points: Sequence[Point], findings: Findings) -> list[Point]:
    """What the table of results has: of thousands what findings rest on, and of each model what
    is fastest in each mode and batch; in the order of names.
    """
    if len(points) <= MOST_RESULTS:
        return sorted(points, key=_place)
    told = {
        key for finding in findings.foremost for each in finding.evidence for key in each.results
    }

    def order(point: Point) -> tuple[object, ...]:
        first = not any(str(row.get("result_id")) in told for row in point.rows)
        return first, not point.usable, ranks[id(point)], _place(point)

    ranks: dict[int, int] = {}
    counts: dict[object, int] = {}
    for point in sorted(points, key=lambda point: point.item_ms):
        case = tuple(str(point.row.get(name)) for name in ("model", "mode", "batch_size"))
        ranks[id(point)] = counts[case] = counts.get(case, -1) + 1
    return sorted(sorted(points, key=order)[:MOST_RESULTS], key=_place)


def anchors_of(points: Sequence[Point]) -> dict[str, str]:
    """Of each result the line of the table that it is in."""
    return {
        str(row.get("result_id")): f"c{number}"
        for number, point in enumerate(points)
        for row in point.rows
    }


def results(every: Sequence[Point], points: Sequence[Point]) -> Section:
    """The section.

    Args:
        every: all configurations.
        points: those that the table has.
    """
    unit = unit_of_all(point.row for point in points)
    headers = (
        *("configuration", "figures", "median latency, ms", "95 % interval", unit, "peak MB"),
        *("first step, ms", "launches", "samples", "quality"),
    )
    names = told(points, always=("model",), longest=LONGEST_NAME) if points else PointNames((), "")
    rows = [_cell(point, name, unit) for point, name in zip(points, names.apart, strict=True)]
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


def _place(point: Point) -> tuple[str | int, ...]:
    """By what people look for first."""
    row = point.row
    words = (str(row.get(n)) for n in ("model", "mode", "hardware", "runtime", "precision"))
    return (*words, int(number(row, "batch_size") or 0))


def names_of(points: Sequence[Point]) -> Sequence[str]:
    """What tells configurations apart, whole."""
    return told(points, always=("model",), longest=LONGEST_NAME).apart if points else []


def _cell(point: Point, name: str, unit: str) -> list[str]:
    latency, timed = point.latency, point.timed
    quality = quality_of(point.rows)
    first = point.metric("first_inference_ms")
    return [
        name,
        point.kind,
        _time(point) if timed else NOT_APPLICABLE,
        latency.spread.ends(digits) if timed and latency and latency.spread else "",
        _rate(point, unit) if timed else NOT_APPLICABLE,
        figure(point.memory),
        figure(first) if timed else NOT_APPLICABLE,
        str(len(point.rows)),
        f"{point.samples:,}" if point.samples else NO_DATA,
        ", ".join(
            filter(
                None,
                (quality and _plain(quality), launches_failed(point.rows), not_exact(point.rows)),
            )
        ),
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


def _rate(point: Point, unit: str) -> str:
    return f"{figure(point.throughput)} {unit_beside(point.row, unit)}".rstrip()


def _plain(word: object) -> str:
    return str(word).replace("_", " ")


def figure(span: FigureInterval | None) -> str:
    """A figure, or that there is none."""
    return NO_DATA if span is None else digits(span.value)

"""The section of a report about task accuracy: what each precision costs. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from accelbench.analysis.accuracies import (
    AccuracyPlace,
    accuracy_against,
    accuracy_of,
    cost_sentence,
    like_for_like,
    place_of,
)
from accelbench.analysis.points import Point
from accelbench.core.rows import Row, text
from accelbench.report.full_report.contents import Block, Section, Table, Text

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
    """The section; none where nothing was labelled. Batches of a place have one line.

    Args:
        accuracies: results that have one, by their places, the newest first.
        points: what the figures of the report are of.
    """
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

"""Bars along an axis: platforms, precisions, engines, modes, and costs. Pure.

In each panel stands one question of one model, at every place of the axis where it was answered.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from accelbench.core.formatting import format_value
from accelbench.core.result_statistics import throughput_unit, unit_kind
from accelbench.core.rows import number
from accelbench.core.vocabulary import Quality
from accelbench.judge.costs import PRICE, cost_notes, items_of
from accelbench.judge.points import Point, alike_of_each, alike_together
from accelbench.judge.questions import AXES, ComparisonAxis
from accelbench.present.charts import axes, marks, words
from accelbench.present.charts.axes import Spec, layer, named
from accelbench.present.charts.by_batch import along_batches
from accelbench.present.charts.chart import ChartBody, Subject
from accelbench.present.charts.marks import Quantity
from accelbench.present.texts import phrase

#: More bars in one panel are read by nobody.
_MOST_BARS = 10
#: A panel's model is its title.
_TOLD = tuple(name for name in words.EVERYTHING if name != "model")
#: A bar's name, and what an unusable one says in it: a bar may be too short for its outline.
_LONGEST_NAME, _USELESS = 40, f" ({Quality.UNUSABLE.value})"
#: Beside the longest bar there has to be room for its figure.
_ROOM = 1.22
#: An interval that is longer than this many of the longest bar is cut off: bars would be slivers.
_FURTHEST = 1.6
#: Beside the middle of a bar stands its figure, so its interval is drawn below.
_BELOW = 5.5

#: Of a model the question that most places answered is drawn.
_QUESTIONS = (phrase("charts.other-question"), phrase("charts.other-questions"))


@dataclass(frozen=True)
class Comparison:
    """What is compared with each other, and by which figure."""

    axis: ComparisonAxis
    quantity: Quantity

    @property
    def at_every_batch(self) -> bool:
        """Whether the chart shows every batch: training costs another share at each."""
        return self.axis.name == "mode"

    @property
    def always(self) -> tuple[str, ...]:
        """What each bar says, even if something else tells it apart."""
        return (words.PLACE if self.axis.name == "hardware" else self.axis.columns[0],)

    def question(self, point: Point) -> object:
        """What bars of a panel have in common; a rate of tokens is none beside one of images."""
        kind = unit_kind(throughput_unit(point.row)) if self.quantity.rate else ""
        return point.question(self.axis), kind


@dataclass(frozen=True)
class _AnsweredQuestion:
    key: object
    points: Sequence[Point]
    places: int

    @property
    def order(self) -> tuple[int, int, int]:
        """Of a model's questions the one is drawn that most places answered, and most often; of
        such as are alike that of the smallest batch.
        """
        return self.places, len(self.points), -_batch(self.points[0])


def _questions(points: Iterable[Point], beside: Comparison) -> list[_AnsweredQuestion]:
    groups = alike_together(points, beside.question)
    return [
        # A single answer has a single place: of most questions of thousands there is one.
        _AnsweredQuestion(key, several, 1 if len(several) == 1 else _places(several, beside.axis))
        for key, several in groups.items()
    ]


def _beside_each_other(
    questions: Iterable[_AnsweredQuestion], comparison: Comparison
) -> list[_AnsweredQuestion]:
    """Return the question of each model that most places answered; at every batch if asked."""
    best: dict[object, _AnsweredQuestion] = {}
    for one in questions:
        row = one.points[0].row
        mode = None if comparison.at_every_batch else row.get("mode")
        model = (one.points[0].machine, row.get("model"), mode)
        known = best.setdefault(model, one)
        # A question of a single place is drawn of no model.
        if one.places > 1 and one.order > known.order:
            best[model] = one
    panels = [one for one in best.values() if one.places > 1]
    if comparison.at_every_batch:
        panels = _at_every_batch(panels, questions, comparison.axis)
    return sorted(panels, key=lambda one: (-one.places, str(one.points[0].row.get("model"))))


def _at_every_batch(
    panels: Iterable[_AnsweredQuestion],
    questions: Iterable[_AnsweredQuestion],
    axis: ComparisonAxis,
) -> list[_AnsweredQuestion]:
    but_its_batch = tuple(name for name in axis.alike if name != "batch_size")

    def same(one: _AnsweredQuestion) -> object:
        return one.points[0].machine, one.points[0].asked_in(but_its_batch)

    batches: dict[object, list[_AnsweredQuestion]] = {}
    for one in questions:
        if one.places > 1:
            batches.setdefault(same(one), []).append(one)
    made = []
    for panel in panels:
        several = sorted(batches[same(panel)], key=lambda one: _batch(one.points[0]))
        points = [point for one in several for point in one.points]
        made.append(_AnsweredQuestion(several[0].key, points, _places(points, axis)))
    return made


def _batch(point: Point) -> int:
    return int(number(point.row, "batch_size") or 0)


def _places(points: Sequence[Point], axis: ComparisonAxis) -> int:
    return len({axis.value(point.row) for point in points})


def draw_bars(
    subject: Subject, quantity: Quantity = marks.LATENCY, axis: str = "hardware"
) -> ChartBody | None:
    """A panel for each question that several places of the axis answered."""
    comparison = Comparison(AXES[axis], quantity)
    known = [point for point in subject.points if quantity.figure(point)]
    questions = _questions([point for point in known if point.timed], comparison)
    groups = _beside_each_other(questions, comparison)
    if not groups:
        return None
    shown = [_kept(group.points, comparison) for group in groups[: marks.MOST_PANELS]]
    drawn = [point for panel in shown for point in panel]
    devices = subject.devices
    records = [_bars(panel, comparison, drawn, devices) for panel in shown]
    scales = _scales(quantity.title, records)
    abouts = [
        words.told(panel, _TOLD, comparison.always, among=drawn, devices=devices).together
        for panel in shown
    ]
    named_scales = axes.in_their_units(scales, shown)
    views = [
        ([about], _layers(bars, scale))
        for about, bars, scale in zip(abouts, records, named_scales, strict=True)
    ]
    fewer = sum(len(group.points) for group in groups[: marks.MOST_PANELS]) - len(drawn)
    # Of models of which one question was chosen, others that several places answered.
    chosen = {comparison.question(point) for group in groups for point in group.points}
    others = sum(one.places > 1 and one.key not in chosen for one in questions)
    # Those that would stand beside the bars, had their times a meaning.
    asked = {comparison.question(panel[0]) for panel in shown}
    bare = alike_of_each([point for point in known if not point.timed], comparison.question)
    notes = [
        *marks.panel_notes(scales, records, len(groups) - len(shown)),
        *words.left_out(fewer, "bar" if comparison.at_every_batch else "slower bar"),
        *words.left_out(others, *_QUESTIONS),
        *quantity.stand_ins(sum(comparison.question(point) in asked for point in bare)),
    ]
    legend_of = partial(marks.kind_legend, bars=True)
    return marks.draw_panels(shown, records, views, notes, legend_of, {"step": 21})


def _kept(points: Sequence[Point], comparison: Comparison) -> list[Point]:
    """Keep the fastest points, in groups of a platform; of training whole batches."""
    quantity = comparison.quantity

    def place(point: Point) -> tuple[int, str, float]:
        value = quantity.of(point).value * (-1 if quantity.rate else 1)
        # Inference before training, whatever is asked of them, batch by batch.
        if comparison.at_every_batch:
            return _batch(point), str(point.row.get("mode")), value
        return 0, str(point.row.get("hardware")), value

    if comparison.at_every_batch:  # whole batches, so that each bar has its other one
        kept = sorted(points, key=_batch)
        while len(kept) > _MOST_BARS and _batch(kept[0]) != _batch(kept[-1]):
            kept = [point for point in kept if _batch(point) != _batch(kept[-1])]
    else:
        kept = sorted(points, key=lambda point: point.item_ms)
    return sorted(kept[:_MOST_BARS], key=place)


def _bars(
    points: Sequence[Point], comparison: Comparison, drawn: Sequence[Point], devices: words.Devices
) -> list[axes.Record]:
    quantity = comparison.quantity
    bad = [not point.usable and quantity.timed for point in points]
    longest = _LONGEST_NAME - (len(_USELESS) if any(bad) else 0)
    told = words.told(points, _TOLD, comparison.always, longest, drawn, devices)
    bars = []
    for cell, name, useless in zip(points, words.unique(told.apart), bad, strict=True):
        label = f"{name}{_USELESS}".strip() if useless else name
        said = format_value(quantity.of(cell).value)
        bars.append(quantity.record(cell, bar=label, said=said))
    return bars


def _scales(title: str, records: Sequence[Sequence[axes.Record]]) -> list[axes.ChartAxis]:
    longest = [_longest(bars) for bars in records]
    if max(longest) <= 4 * min(longest):
        longest = [max(longest)] * len(longest)
    return [axes.axis(title, [end], log=False) for end in longest]


def _longest(bars: Sequence[axes.Record]) -> float:
    value = float(max(bar["value"] for bar in bars))
    high = max(bar["high"] or 0.0 for bar in bars)
    return max(value * _ROOM, min(high, value * _FURTHEST))


def _layers(records: Sequence[axes.Record], scale: axes.ChartAxis) -> list[Spec]:
    y = named("bar", (bar["bar"] for bar in records), labelLimit=270)
    place = {"y": y, "x": scale.of("value")}
    painted = {**place, **marks.PAINTED, "tooltip": marks.tooltip(scale.title, records)}
    area = layer("bar", painted, strokeWidth=1.5, height={"band": 0.74})
    figures = marks.haloed({**place, "text": {"field": "said"}}, dx=5, dy=-2)
    return [area, *marks.whiskers(records, "x", place, scale, yOffset=_BELOW), *figures]


#: One step costs next to nothing, and an axis of that is read by nobody.
_STEPS = 1_000_000


def draw_costs(subject: Subject) -> ChartBody | None:
    """What a million items cost, on each platform."""
    return _told(subject, draw_bars(subject, _cost(subject)))


def draw_costs_by_batch(subject: Subject) -> ChartBody | None:
    """What a million items cost, along batches."""
    return _told(subject, along_batches(subject, _cost(subject)))


def draw_training_costs(subject: Subject) -> ChartBody | None:
    """What a million steps of training cost, on each platform."""
    title = phrase("charts.cost-of-million-steps", sign=subject.sign.strip())
    steps = Quantity(title, lambda point: point.step_cost and point.step_cost.times(_STEPS))
    return _told(subject, draw_bars(subject, steps))


def _cost(subject: Subject) -> Quantity:
    counted = {items_of(point.row) for point in subject.points if point.cost}
    items = words.safe(counted.pop(), 24) if len(counted) == 1 else "items"
    title = phrase("charts.cost-of-million-items", items=items, sign=subject.sign.strip())
    return Quantity(title, lambda point: point.cost)


def _told(subject: Subject, drawn: ChartBody | None) -> ChartBody | None:
    if drawn is None:
        return None
    shown = [row for point in drawn.points for row in point.rows]
    bare = [row for row in subject.rows if PRICE not in row]
    notes = [words.safe(note, 300) for note in cost_notes([*shown, *bare], subject.prices)]
    # What ran on a stand-in has no cost, so that no chart of costs knows of it by itself.
    stand_ins = words.emulated(sum(not point.timed for point in subject.points))
    return replace(drawn, notes=[*notes, *drawn.notes, *stand_ins])

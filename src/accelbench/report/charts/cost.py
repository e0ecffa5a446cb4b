"""Costs by the user's prices: beside each other, along batches, in training. Pure."""

from __future__ import annotations

from dataclasses import replace

from accelbench.analysis.costs import PRICE, cost_notes, items_of
from accelbench.analysis.questions import AXES
from accelbench.report.charts.bars import Comparison, Figure, compared
from accelbench.report.charts.by_batch import along_batches
from accelbench.report.charts.chart import Chart, ChartBody, Subject
from accelbench.report.charts.words import emulated, safe

#: One step costs next to nothing, and an axis of that is read by nobody.
_STEPS = 1_000_000


def _beside(subject: Subject) -> ChartBody | None:
    return _compared(subject, lambda point: point.cost, _title(subject))


def _along_batches(subject: Subject) -> ChartBody | None:
    return _told(subject, along_batches(subject, lambda point: point.cost, _title(subject)))


def _of_training(subject: Subject) -> ChartBody | None:
    title = f"cost of a million training steps, {subject.sign.strip()}"
    return _compared(subject, lambda one: one.step_cost and one.step_cost.times(_STEPS), title)


def _compared(subject: Subject, figure: Figure, title: str) -> ChartBody | None:
    return _told(subject, compared(subject, Comparison(AXES["hardware"], figure, title)))


def _title(subject: Subject) -> str:
    counted = {items_of(point.row) for point in subject.points if point.cost}
    items = safe(counted.pop(), 24) if len(counted) == 1 else "items"
    return f"cost of a million {items}, {subject.sign.strip()}"


def _told(subject: Subject, drawn: ChartBody | None) -> ChartBody | None:
    if drawn is None:
        return None
    shown = [row for point in drawn.points for row in point.rows]
    bare = [row for row in subject.rows if PRICE not in row]
    notes = [safe(note, 300) for note in cost_notes([*shown, *bare], subject.prices)]
    # What ran on a stand-in has no cost, so that no chart of costs knows of it by itself.
    stand_ins = emulated(sum(not point.timed for point in subject.points))
    return replace(drawn, notes=[*notes, *drawn.notes, *stand_ins])


HARDWARE_COST = Chart(
    "hardware-cost",
    "Hardware: cost",
    "what a million items cost on each platform",
    "a model on two platforms that have a price (--prices)",
    _beside,
)
COST_BY_BATCH = Chart(
    "cost-by-batch",
    "Cost against batch size",
    "how much cheaper a larger batch makes an item",
    "a model at two batch sizes on a platform that has a price (--prices)",
    _along_batches,
)
TRAINING_COST = Chart(
    "training-cost",
    "Training: cost",
    "what training steps cost on each platform",
    "a model trained on two platforms that have a price (--prices)",
    _of_training,
)

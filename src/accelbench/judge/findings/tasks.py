"""For each task the fastest, the cheapest and the most precise configuration. Pure.

What is chosen among is alike: measured here where anything was, one request after another where
that was asked, as many devices as most have, at the batch size that most devices ran, and of each
model the size that most were asked. The runner-up is what is next of all that the best may be
compared with, and the best is certain where it is better than each of them: one that is known
roughly may be better than it, however far behind its figure is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from accelbench.core.columns import AccuracyMetric
from accelbench.core.devices import device_count
from accelbench.core.formatting import format_digits
from accelbench.core.precision import error_of, summarise_inexact
from accelbench.core.rows import number
from accelbench.core.unusable_reasons import source_of
from accelbench.core.vocabulary import SINGLE_STREAM, Family, Mode, Provenance
from accelbench.judge.accuracies import TaskAccuracy, accuracy_against, accuracy_among
from accelbench.judge.comparison import unlike
from accelbench.judge.costs import items_of, money
from accelbench.judge.findings.finding import figure_of, model, sizes_of, sure, way
from accelbench.judge.points import Point, common_batch
from accelbench.judge.questions import SHAPES, Key, values
from accelbench.judge.ratios import Ratio, quickest, ratio
from accelbench.judge.run_noise import Histories

#: What has to be alike of a model's answers beside its batch.
_WORK = (*SHAPES, "weights", "data_source", "optimizer")


@dataclass(frozen=True)
class Best:
    """The best of a task in one respect.

    Attributes:
        figure: what it is best by, with its interval.
        beside: how it stands to what is next.
        sure: whether it is certain that it is better than what is next.
        next: that; None where there is nothing that it may be compared with.
        ratio: of times, where it is best by them.
        among: all that it is best of, with itself.
    """

    point: Point
    figure: str
    beside: str
    sure: bool = False
    next: Point | None = None
    ratio: Ratio | None = None
    among: Sequence[Point] = ()

    @property
    def of_one_size(self) -> bool:
        """Whether all that it is best of were asked the same sizes; models may have their own."""
        return len({values(point.row, SHAPES) for point in self.among}) < 2


@dataclass(frozen=True)
class TaskBest:
    """What is best of a task."""

    task: str
    mode: str
    points: Sequence[Point]
    fastest: Best | None
    cheapest: Best | None
    precise: Best | None

    @property
    def models(self) -> int:
        """How many models were chosen among."""
        return len({point.row.get("model") for point in self.points})


def best_of_tasks(
    points: Iterable[Point], known: Histories, several: frozenset[str], sign: str = "$"
) -> list[TaskBest]:
    """Every task that has an answer, those with most configurations first."""
    tasks: dict[tuple[str, str], list[Point]] = {}
    for point in points:
        if point.timed and point.usable and point.row["comparable"] and point.times:
            tasks.setdefault((_task(point), str(point.row.get("mode"))), []).append(point)
    made = []
    for (task, mode), candidates in tasks.items():
        if not task:
            continue
        alike = _alike(candidates)
        made.append(
            TaskBest(
                task,
                mode,
                alike,
                _fastest(alike, known, several),
                _cheapest(alike, several, sign),
                _precise(alike, several),
            )
        )
    return sorted(
        made, key=lambda best: (best.mode != Mode.INFERENCE, -len(best.points), best.task)
    )


def _task(point: Point) -> str:
    """What its model is for; of what others published, whose models say none, its family.

    Models of which nobody says either have nothing in common: each stands for itself.
    """
    row = point.row
    family = row.get("family")
    known = family if family != Family.UNKNOWN else row.get("model")
    return str(row.get("task") or known or "")


def _alike(points: Sequence[Point]) -> list[Point]:
    kept = _most(points, _whose, lambda key: key[0] != Provenance.MEASURED)
    kept = _most(
        kept, lambda p: (p.row.get("scenario") or SINGLE_STREAM,), lambda k: k[0] != SINGLE_STREAM
    )
    kept = _most(kept, lambda point: (device_count(point.row),))
    common = common_batch(kept)
    kept = [point for point in kept if (number(point.row, "batch_size") or None) == common]
    by_model: dict[str, list[Point]] = {}
    for point in kept:
        by_model.setdefault(str(point.row.get("model")), []).append(point)
    return [
        point
        for alike in by_model.values()
        for point in _most(alike, lambda point: values(point.row, _WORK))
    ]


def _whose(point: Point) -> Key:
    return point.row.get("provenance"), source_of(point.row)


def _most(
    points: Sequence[Point],
    key: Callable[[Point], Key],
    first: Callable[[Key], object] = lambda _: 0,
) -> list[Point]:
    """The points of one key: what comes first, and of that the one that most have."""
    if len(points) == 1:
        return [*points]
    counts = Counter(map(key, points))
    chosen = min(counts, key=lambda name: (first(name), -counts[name], str(name)))
    return [point for point in points if key(point) == chosen]


def _fastest(points: Sequence[Point], known: Histories, several: frozenset[str]) -> Best | None:
    exact = [point for point in points if not summarise_inexact(point.rows)] or list(points)
    best = exact[quickest([point.rows for point in exact])]
    others, among = _rivals(best, exact, several)
    figure, left_out = figure_of(best), _left_out(points, exact, among)
    if not others:
        beside = f"nothing usable beside it to compare with{left_out}"
        return Best(best, figure, beside, among=among)
    second = others[quickest([point.rows for point in others])]
    held = ratio(best.rows, second.rows, known)
    name = _name(second, best, several)
    if held is None:
        beside = f"{name} has no figure in common with it{left_out}"
        return Best(best, figure, beside, next=second, among=among)
    decided = _is_faster(held)
    rough = [
        point
        for point in (others if decided else ())
        if point is not second and not _is_faster(ratio(best.rows, point.rows, known))
    ]
    if held.told and (decided or held.low is None):
        beside = f"{format_digits(held.value)}× as fast as {name} ({sure(held)})"
    elif decided:
        beside = f"faster than {name}, by how much can't be told ({sure(held)})"
    else:
        beside = f"whether it is faster than {name} can't be told ({sure(held, ' × as fast')})"
    if rough:
        beside += f"; whether it is faster than {_named(rough, best, several)} can't be told"
    return Best(best, figure, beside + left_out, decided and not rough, second, held, among)


def _is_faster(held: Ratio | None) -> bool:
    return held is not None and held.ends[0] > 1.0


def _rivals(
    best: Point, points: Sequence[Point], several: frozenset[str]
) -> tuple[list[Point], list[Point]]:
    """What the best may be compared with; and the same with itself, and with what ran as it did."""
    others = [point for point in points if point is not best and _may_meet(best, point, several)]
    meeting = {id(point) for point in others}
    alike = [
        point
        for point in points
        if id(point) in meeting or point is best or _same_way(best, point, several)
    ]
    return others, alike


def _left_out(points: Sequence[Point], exact: Sequence[Point], among: Sequence[Point]) -> str:
    kept, known = {id(point) for point in exact}, {id(point) for point in among}
    whys = [
        summarise_inexact(point.rows) if id(point) not in kept else "not alike"
        for point in points
        if id(point) not in known
    ]
    told = ", ".join(f"{count} ({why})" for why, count in Counter(whys).most_common())
    return f"; not counted: {told}" if told else ""


def _named(points: Sequence[Point], beside: Point, several: frozenset[str]) -> str:
    more = f" and {len(points) - 1:,} more" if len(points) > 1 else ""
    return f"{_name(points[0], beside, several)}{more}"


def _may_meet(best: Point, other: Point, several: frozenset[str]) -> bool:
    models = best.row.get("model") != other.row.get("model")
    if _same_way(best, other, several):
        return False
    return not unlike(best.rows, other.rows, "model" if models else "")


def _same_way(best: Point, other: Point, several: frozenset[str]) -> bool:
    """Whether a sentence would say the same of both: they differ in their threads, say."""
    same = best.row.get("model") == other.row.get("model")
    return same and way(best.row, several) == way(other.row, several)


def _name(point: Point, beside: Point, several: frozenset[str]) -> str:
    named = way(point.row, several)
    same = point.row.get("model") == beside.row.get("model")
    if same:
        return named
    alike = values(point.row, SHAPES) == values(beside.row, SHAPES)
    sizes = "" if alike else sizes_of(point.row)
    return f"{model(point.row)}{f' ({sizes})' if sizes else ''} by {named}"


def _cheapest(points: Sequence[Point], several: frozenset[str], sign: str) -> Best | None:
    """By what a million items cost; costs of other items are no costs of these."""
    exact = [point for point in points if not summarise_inexact(point.rows)]
    priced = [point for point in exact if point.cost is not None]
    if not priced:
        return None
    kinds = Counter(items_of(point.row) for point in priced)
    of = min(kinds, key=lambda items: (-kinds[items], items))
    order = sorted(
        (point for point in priced if items_of(point.row) == of),
        key=lambda point: point.cost.value if point.cost else 0.0,
    )
    best, cost = order[0], order[0].cost
    assert cost is not None
    interval = cost.spread.sentence(money) if cost.spread else "no interval"
    figure = f"{amount_of(cost.value, sign)} a million {of} ({interval})"
    others, among = _rivals(best, order, several)
    if not others:
        return Best(best, figure, "nothing usable beside it to compare with", among=among)
    second, other = others[0], others[0].cost
    assert other is not None
    name = f"{_name(second, best, several)}, {amount_of(other.value, sign)}"
    rough = [point for point in others if not _costs_more(point, cost.sure and cost.sure[1])]
    if not rough:
        return Best(best, figure, f"less than {name}", True, second, among=among)
    beside = f"whether it is less than {name} can't be told"
    if second not in rough:
        beside = f"less than {name}; whether it is less than {_named(rough, best, several)} can't"
        beside += " be told"
    return Best(best, figure, beside, False, second, among=among)


def _costs_more(point: Point, most: float | None) -> bool:
    low = point.cost.sure[0] if point.cost is not None and point.cost.sure else None
    return most is not None and low is not None and most < low


def amount_of(value: float, sign: str) -> str:
    """A cost in three digits, with its currency."""
    return f"{sign}{money(value)}"


def _precise(points: Sequence[Point], several: frozenset[str]) -> Best | None:
    """By task accuracy where that was measured, else by how near outputs are to the reference's."""
    scored = [(point, known) for point in points if (known := accuracy_among(point.rows))]
    if scored:
        return _most_accurate(scored, several)
    held = [(error, point) for point in points if (error := _error(point)) is not None]
    if not held:
        return None
    error, best = min(held, key=lambda pair: (pair[0], pair[1].item_ms))
    figure = f"outputs off by {error:.2g} at most, compared with the reference"
    others = sorted((e, p.item_ms, n) for n, (e, p) in enumerate(held) if p is not best)
    if not others:
        return Best(best, figure, "nothing usable beside it to compare with")
    off, _, at = others[0]
    second = held[at][1]
    name = _name(second, best, several)
    beside = f"next {name}, {off:.2g}" if off > error else f"as near as {name}"
    # Digits of rounding are no news: a finding is of task accuracy alone.
    return Best(best, figure, beside, False, second)


def _error(point: Point) -> float | None:
    if any(row.get("verification") != "ok" for row in point.rows):
        return None
    errors = [error_of(row) for row in point.rows]
    return max((error for error in errors if error is not None), default=None)


def _most_accurate(scored: Sequence[tuple[Point, TaskAccuracy]], several: frozenset[str]) -> Best:
    """Accuracies by one metric on the same samples, which most have."""
    kinds = Counter((known.metric, known.digest) for _, known in scored)
    kind = min(kinds, key=lambda each: (-kinds[each], str(each)))
    alike = [pair for pair in scored if (pair[1].metric, pair[1].digest) == kind]
    falling = kind[0] is not AccuracyMetric.PERPLEXITY
    alike.sort(key=lambda pair: -pair[1].value if falling else pair[1].value)
    best, known = alike[0]
    interval = f" (95 % interval {known.interval})" if known.interval else ""
    figure = (
        f"{known.metric.heading} {known.shown}{interval} on {known.samples:,} {known.metric.item}"
    )
    among = [point for point, _ in alike]
    if len(alike) == 1:
        return Best(best, figure, "nothing usable beside it to compare with", among=among)
    second, other = alike[1]
    name = f"{_name(second, best, several)}, {other.shown}"
    rough = [point for point in among[1:] if not _is_better(best, point)]
    if not rough:
        return Best(best, figure, f"better than {name}", True, second, among=among)
    beside = f"whether it is better than {name} can't be told"
    return Best(best, figure, beside, False, second, among=among)


def _is_better(best: Point, other: Point) -> bool:
    cost = accuracy_against(best.rows, other.rows)
    return cost is not None and cost.difference is not None and cost.difference.is_significant

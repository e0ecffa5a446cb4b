"""The result of a candidate for a question: a ladder from measured to unknown. Pure.

Each rung is named in the answer. A rung is asked only if all above it know nothing. An estimate
carries the bounds that it takes the truth to lie between; docs/choosing.md explains them. Nothing
is estimated for what failed when it was last tried.

An estimate is no quicker than a step can be on its device:

    operations a millisecond ≤ 2 × the device's best
                             ≤ 4 × the device's best × the share of its best that the model reaches
                                   where it was measured at about the batch, the device filled

The best of a device is the rate that one in twenty models exceeds there, in one precision. Which
share of it a model reaches hardly depends on the device: of 885 vision models measured on a GeForce
RTX 4090 and on a Core i9, one reached more than four times the share on the other, and 37 more than
twice (public figures of timm, batches of 256 to 1,024 on the card, 1 on the processor).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from heapq import nsmallest
from typing import TYPE_CHECKING, Any, overload

from accelbench.analysis.questions import SHAPES
from accelbench.catalog.cost import memory_estimate_bytes
from accelbench.core.case import Option, Shapes
from accelbench.core.errors import AccelbenchError
from accelbench.core.figures import Statistic
from accelbench.core.precision import error_of
from accelbench.core.rows import Row, number
from accelbench.core.vocabulary import MIB, Mode, Provenance
from accelbench.core.worth import FAILED, LAUNCHED
from accelbench.hardware.rooflines import called
from accelbench.select.evidence.cells import (
    FEWEST_FITTED,
    NEAR_BATCH,
    SINGLE,
    EvidenceCell,
    FigureOrigin,
    ModelKnowledge,
    best,
    items_a_step,
    rounded,
    unit_of,
)
from accelbench.select.evidence.failures import Failure, in_the_way
from accelbench.select.evidence.sql import Key, Rates
from accelbench.select.query.query import GENERATING, SIZES, Query

if TYPE_CHECKING:
    from accelbench.predict.answers import PredictedFigures


#: How far bounds are stretched by how much a family's batch, or size, matters.
STRETCH: Mapping[str, float] = {"low": 0.5, "medium": 1.0, "high": 1.5}


@dataclass(frozen=True)
class Bounds:
    """Between `low` and `high`, and most likely `middle`."""

    middle: float
    low: float
    high: float

    @overload
    @staticmethod
    def exact(value: float) -> Bounds: ...
    @overload
    @staticmethod
    def exact(value: float | None) -> Bounds | None: ...
    @staticmethod
    def exact(value: float | None) -> Bounds | None:
        """A figure that was measured; None of none."""
        return None if value is None else Bounds(value, value, value)


def stretched(middle: float, low: float, high: float, importance: str) -> tuple[float, float]:
    """Bounds as far as a family's batch, or size, matters."""
    by = STRETCH[importance]
    return middle * (low / middle) ** by, middle * (high / middle) ** by


def no_nearer(middle: float, low: float, high: float) -> tuple[float, float]:
    """Bounds no nearer than those of a single measured figure."""
    return min(low, middle / (1 + SINGLE)), max(high, middle * (1 + SINGLE))


#: Beyond the largest batch an item is taken to cost the same, give or take so much a doubling.
BEYOND = 0.2


def at_batch(step: float, batch: int, target: int) -> Bounds:
    """What a step of one batch comes to at another.

    An item costs the same at about the same batch. Of a far larger one nobody knows how much of a
    step is saved with all but a few of its items, and of a far smaller one what more of them cost:
    the same as of the model's own figures.
    """
    alike = step * target / batch
    if is_near(target, batch):
        return Bounds(alike, alike, alike)
    if target < batch:
        return Bounds(step * math.sqrt(target / batch), alike, step)
    reach = math.exp(BEYOND * math.log2(target / batch))
    return Bounds(alike, max(alike / reach, step), alike * reach)


def is_near(batch: int, other: int) -> bool:
    """Whether two batches are about the same."""
    return max(batch, other) <= NEAR_BATCH * min(batch, other)


MEASURED, BETWEEN, EXTRAPOLATED, PREDICTED, ROOFLINE, NEIGHBOUR, RULE = (
    *("measured", "between batches", "extrapolated", "predicted"),
    *("roofline", "neighbour", "rule"),
)
#: What tells questions of other models apart.
QuestionKey = tuple[object, ...]

#: A neighbourhood wants so many neighbours.
_NEIGHBOURS, _FEWEST_NEIGHBOURS = 5, 3
#: An efficiency is that of models with about as much work: the nearest so many.
_MOST_FITTED = 100
_TOKENS = "tokens"


@dataclass(frozen=True)
class FigureQuestion:
    """What is to run, as far as figures are concerned."""

    model: str
    family: str
    batch: int
    mode: str
    precisions: Sequence[str] = ()
    shapes: Mapping[str, int] = field(default_factory=dict)
    batch_importance: str = "medium"
    size_importance: str = "medium"


@dataclass(frozen=True)
class Figure:
    """What a step takes on a candidate, or is thought to.

    Attributes:
        basis: the rung it is from.
        low: with high, where the latency lies.
        cell: the figure that it is, or the way that it is an estimate of.
        scaled: of an estimate from other models, what each of their figures alone comes to.
        origin: who measured it, or what it is estimated from.
    """

    basis: str
    latency: float
    throughput: float
    low: float
    high: float
    cell: EvidenceCell
    note: str = ""
    scaled: Mapping[QuestionKey, float] = field(default_factory=dict, repr=False)
    batch: int = 1
    predicted: PredictedFigures | None = field(default=None, repr=False)
    origin: FigureOrigin = field(default_factory=FigureOrigin, repr=False)

    @property
    def measured(self) -> bool:
        return self.basis == MEASURED

    @property
    def provenance(self) -> str | None:
        """Measured here, imported or predicted; None of an estimate from what was measured."""
        if self.predicted is not None:
            return Provenance.PREDICTED
        return self.cell.row.get("provenance") if self.measured else None

    @property
    def statistic(self) -> Statistic:
        """Which figure of a step its latency is."""
        return self.cell.statistic

    @property
    def rate(self) -> float | None:
        """Its throughput, where that is known: nobody makes one of a median or a percentile."""
        return self.throughput if self.cell.has_rate else None

    @property
    def unit(self) -> str:
        """What the throughput counts, in the plural: images, tokens."""
        return unit_of(self.cell.row)

    def to_dict(self) -> dict[str, object]:
        """As the answer's `predictions`."""
        row: Row = self.cell.row
        entry: dict[str, object] = {
            "basis": self.basis,
            "latency": self.latency,
            "figure": str(self.statistic),
            "throughput": self.rate,
            "throughput_unit": self.unit,
            "latency_low": self.low,
            "latency_high": self.high,
        }
        if self.measured:
            more = ("memory_peak_mb", "ttft_ms", "tpot_ms", "tokens_per_second", "power_watts",
                    "energy_per_item_joules")  # fmt: skip
            entry |= {name: row[name] for name in more if row.get(name) is not None}
            if (error := error_of(row)) is not None:
                entry["verification_error"] = error
            entry["launches"] = len(self.cell.latencies)
            if row.get(FAILED):
                entry |= {name: row[name] for name in (FAILED, LAUNCHED)}
            entry["provenance"] = row.get("provenance")
            entry["source"] = row.get("source")
            entry["latency_interval"] = self.cell.interval_told()
        return entry


def figure(
    question: FigureQuestion,
    own: Sequence[EvidenceCell],
    peers: Sequence[EvidenceCell],
    known: ModelKnowledge,
    failures: Sequence[Failure] = (),
    predicted: Figure | None = None,
) -> Figure | None:
    """The figure of a candidate by the first rung that has one.

    Args:
        question: what is asked.
        own: the candidate's cells of the model, in one context and mode.
        peers: its cells of the family's other models, one a question, by engines that did not fail.
        known: of the model, whatever it was measured on.
        failures: the candidate's, of the same question, that nothing has made history.
        predicted: what a prediction from what was measured there makes of it.
    """
    here = [cell for cell in own if cell.batch == question.batch]
    if here:
        return _measured(best(here))
    free, against = in_the_way(question.batch, own, failures)
    if (own_figure := from_batches(question, free)) is not None:
        # Above the largest batch 46 and 27 % off in the median, a prediction 17 and 18 % (CPU,
        # inference and training); between batches and below the smallest it is no nearer.
        beyond = all(cell.batch < question.batch for cell in free)
        # Where a way failed, what is left was measured.
        nearer = beyond and not against
        return predicted if predicted and nearer and _alike(predicted, own_figure) else own_figure
    return predicted or from_others(question, peers, known)


def _alike(predicted: Figure, own: Figure) -> bool:
    """Whether their rates can be held together: a source may count tokens where we count items."""
    return predicted.unit == own.unit or _TOKENS not in (predicted.unit, own.unit)


def _measured(cell: EvidenceCell) -> Figure:
    low, high = cell.bounds
    origin = FigureOrigin.of([cell])
    return Figure(
        MEASURED, cell.latency, cell.throughput, low, high, cell, batch=cell.batch, origin=origin
    )


def from_batches(question: FigureQuestion, own: Sequence[EvidenceCell]) -> Figure | None:
    """From the same model at other batches, way by way; the fastest way counts."""
    ways: dict[tuple[str, ...], dict[int, EvidenceCell]] = {}
    for cell in own:
        by_batch = ways.setdefault(cell.way, {})
        by_batch[cell.batch] = best([cell, by_batch.get(cell.batch, cell)])
    estimates = [_of_batches(question, by_batch) for _, by_batch in sorted(ways.items())]
    return min(estimates, key=_time, default=None)


def _of_batches(question: FigureQuestion, by_batch: Mapping[int, EvidenceCell]) -> Figure:
    """Between batches and below them the bounds are what cannot be otherwise; above, a guess."""
    batch, basis, second = question.batch, EXTRAPOLATED, None
    below = max((b for b in by_batch if b < batch), default=None)
    above = min((b for b in by_batch if b > batch), default=None)
    if below is not None and above is not None:
        # A larger batch takes no less time, and mostly no more an item: both bound it.
        first, last = by_batch[below], by_batch[above]
        share = math.log(batch / below) / math.log(above / below)
        middle = first.latency ** (1 - share) * last.latency**share
        low = max(first.latency, last.latency * batch / above)
        high = min(last.latency, first.latency * batch / below)
        low, high, cell = min(low, high, middle), max(low, high, middle), first
        basis, note, second = BETWEEN, f"between batch {below} and {above}", last
    elif below is not None:
        cell = by_batch[below]
        middle = cell.latency * batch / below
        reach = math.exp(BEYOND * math.log2(batch / below))
        low, high = stretched(middle, middle / reach, middle * reach, question.batch_importance)
        low = max(low, cell.latency)
        note = f"from batch {below}, the largest that was measured: whether more fits is not known"
    else:
        assert above is not None
        cell = by_batch[above]
        middle = cell.latency * math.sqrt(batch / above)
        low, high = cell.latency * batch / above, cell.latency
        note = f"from batch {above}, the smallest that was measured"
    low, high = no_nearer(middle, low, high)
    made = _estimate(question, basis, middle, low, high, cell, note, items_a_step([cell]))
    return made if second is None else replace(made, origin=FigureOrigin.of([cell, second]))


def from_others(
    question: FigureQuestion, peers: Sequence[EvidenceCell], known: ModelKnowledge
) -> Figure | None:
    """From other models: by their operations, else by their weights."""
    return roofline(question, peers, known) or neighbour(question, peers, known)


def roofline(
    question: FigureQuestion, peers: Sequence[EvidenceCell], known: ModelKnowledge
) -> Figure | None:
    """From the operations of a step, by a regression on models with about as much work there.

    Of the same kind, where there are enough of them.
    """
    from accelbench.predict.work_regression import WorkFigure, from_work  # needs numpy

    if not known.flops:
        return None
    work = math.log(known.flops)
    counted = [(abs(cell.work - work), cell) for cell in peers if cell.work is not None]
    kin = [pair for pair in counted if pair[1].row.get("kin") == known.kin] if known.kin else []
    fitted = _nearest(kin if len(kin) >= FEWEST_FITTED else counted, _MOST_FITTED)
    if len(fitted) < FEWEST_FITTED:
        return None
    step = known.flops * question.batch
    scaled = {
        cell.question: at_batch(
            known.flops * cell.batch * cell.latency / flops, cell.batch, question.batch
        )
        for cell in fitted
        if (flops := cell.row["flops"])
    }
    estimate = from_work([
        WorkFigure(
            math.log(scaled[cell.question].middle),
            _apart(question, known, cell),
            str(cell.row.get("kin") or cell.model),
        )
        for cell in fitted
    ])  # fmt: skip
    note = f"{step / 1e9:.4g} GFLOP at the rate of {len(fitted)} figures"
    return _from_others(
        question, ROOFLINE, estimate.middle, estimate.low, estimate.high, fitted, note, scaled
    )


def _apart(
    question: FigureQuestion, known: ModelKnowledge, cell: EvidenceCell
) -> tuple[float, ...]:
    """How far a figure is from a question in work, weights, batch and sizes, as logarithms."""
    work = None if cell.work is None else math.exp(cell.work)
    pairs: list[tuple[float | None, float | None]] = [
        (known.flops, work),
        (known.parameters, number(cell.row, "parameters")),
        (question.batch, cell.batch),
    ]
    pairs += [(question.shapes.get(name), number(cell.row, name)) for name in SHAPES]
    return tuple(math.log(theirs / ours) if ours and theirs else 0.0 for ours, theirs in pairs)


def neighbour(
    question: FigureQuestion, peers: Sequence[EvidenceCell], known: ModelKnowledge
) -> Figure | None:
    """From the measured models of the family that have about as many weights."""
    if not known.parameters:
        return None
    weights = math.log(known.parameters)
    # Weights say nothing of what another size of input costs; operations do.
    alike = [
        cell for cell in peers if cell.weights is not None and has_sizes(cell, question.shapes)
    ]
    apart = {cell.model: abs((cell.weights or 0.0) - weights) for cell in alike}
    models = sorted(apart, key=lambda model: (apart[model], model))[:_NEIGHBOURS]
    nearest = [
        min((cell for cell in alike if cell.model == model), key=lambda cell: cell.order)
        for model in models
    ]
    if len(nearest) < _FEWEST_NEIGHBOURS:
        return None
    scaled = {
        cell.question: at_batch(
            cell.latency * known.parameters / parameters, cell.batch, question.batch
        )
        for cell in nearest
        if (parameters := cell.row["parameters"])
    }
    note = f"by their weights from {', '.join(cell.model for cell in nearest)}"
    middles = [span.middle for span in scaled.values()]
    low, high = min(middles), max(middles)
    middle = math.exp(math.fsum(map(math.log, middles)) / len(middles))
    return _from_others(question, NEIGHBOUR, middle, low, high, nearest, note, scaled)


def _nearest(counted: Sequence[tuple[float, EvidenceCell]], most: int) -> list[EvidenceCell]:
    if len(counted) > most:  # so that of many few are ordered
        farthest = nsmallest(most, (apart for apart, _ in counted))[-1]
        counted = [pair for pair in counted if pair[0] <= farthest]
    return [cell for _, cell in sorted(counted, key=_place)[:most]]


def _place(pair: tuple[float, EvidenceCell]) -> tuple[float, int]:
    return pair[0], pair[1].order


def has_sizes(cell: EvidenceCell, sizes: Mapping[str, int]) -> bool:
    """Whether a figure is of these sizes, as far as it says them."""
    return all(cell.row.get(name) in (None, value) for name, value in sizes.items())


def _from_others(
    question: FigureQuestion,
    basis: str,
    middle: float,
    low: float,
    high: float,
    cells: Sequence[EvidenceCell],
    note: str,
    spans: Mapping[QuestionKey, Bounds],
) -> Figure:
    """An estimate, said to be of the way that most of the figures are of."""
    ways = Counter(cell.way for cell in cells)
    way = min(ways, key=lambda way: (-ways[way], way))
    cell = next(cell for cell in cells if cell.way == way)
    low, high = stretched(middle, low, high, question.size_importance)
    # What another batch leaves open is no guess: no importance moves it.
    low /= max(span.middle / span.low for span in spans.values())
    high *= max(span.high / span.middle for span in spans.values())
    low, high = no_nearer(middle, low, high)
    unit = unit_of(cell.row)
    alike = [other for other in cells if unit_of(other.row) == unit]
    # Steps that make more tokens, or hear more seconds, do more of them.
    of_size = [cell for cell in alike if has_sizes(cell, question.shapes)]
    items = items_a_step(of_size or alike)
    # How two places compare at a far batch does not say how they do at this one.
    scaled = {key: span.middle for key, span in spans.items() if span.low == span.high}
    far = sorted({cell.batch for cell in cells if not is_near(cell.batch, question.batch)})
    if far:
        between = f"{far[0]} to {far[-1]}" if len(far) > 1 else str(far[0])
        note += f", measured at batch {between}"
    estimate = _estimate(question, basis, middle, low, high, cell, note, items)
    return replace(estimate, scaled=scaled, origin=FigureOrigin.of(cells))


def _estimate(
    question: FigureQuestion,
    basis: str,
    middle: float,
    low: float,
    high: float,
    cell: EvidenceCell,
    note: str,
    items: float,
) -> Figure:
    """A step at the batch asked, which does so many items for each of the batch."""
    rate = 1e3 * items * question.batch / middle
    origin = FigureOrigin.of([cell])
    return Figure(basis, middle, rate, low, high, cell, note, batch=question.batch, origin=origin)


def _time(prediction: Figure) -> tuple[float, int]:
    return prediction.latency, prediction.cell.order


#: Seen were up to twice, where a name stands for several sizes of a model.
_BEYOND_BEST = 2.0
_BEYOND_SHARE = 4.0
#: With less than this share of its best a device may have waited for work: of 1,000 models whose
#: large batches fill a card, 995 reach more.
_FILLED = 0.04


def bounded(
    figure: Figure, flops: float | None, own: Iterable[EvidenceCell], rates: Rates
) -> Figure:
    """An estimate, no quicker than it can be."""
    if figure.measured or not flops:
        return figure
    limit = _limit(figure, flops, own, rates)
    if limit is None:
        return figure
    rate, why = limit
    least = flops * figure.batch / rate
    if least <= figure.low:
        return figure
    middle = max(figure.latency, least)
    return replace(
        figure,
        latency=middle,
        throughput=figure.throughput * figure.latency / middle,
        low=least,
        high=max(figure.high, middle),
        note=f"{figure.note}; no less than {rounded(least)} ms, {why}",
    )


def key_of(cell: EvidenceCell) -> Key:
    """Where a figure belongs among the rates."""
    return cell.hardware, cell.device, cell.precision, cell.mode


def _limit(
    figure: Figure, flops: float, own: Iterable[EvidenceCell], rates: Rates
) -> tuple[float, str] | None:
    """The most operations a millisecond, and by what."""
    limits = []
    documented = _documented(figure.cell)
    if documented is not None:
        limits.append((documented, "by what its maker says it computes"))
    best = rates.get(key_of(figure.cell))
    if best is not None:
        limits.append((_BEYOND_BEST * best, "by the most that any model reaches there"))
        near = (cell for cell in own if is_near(cell.batch, figure.batch))
        share = max((_share(cell, flops, rates) for cell in near), default=0.0)
        if share >= _FILLED:
            reached = f"by the {share:.0%} of another device's best that the model reaches there"
            limits.append((_BEYOND_SHARE * best * share, reached))
    return min(limits, default=None)


def _share(cell: EvidenceCell, flops: float, rates: Rates) -> float:
    best = rates.get(key_of(cell))
    return flops * cell.batch / cell.latency / best if best else 0.0


def _documented(cell: EvidenceCell) -> float | None:
    """Operations a millisecond that its maker gives for the precision; None of most devices."""
    narrow = cell.precision.removeprefix("amp-")
    roofline = called(cell.hardware, cell.device)
    known = None if roofline is None else roofline.highest_per_second(narrow)
    return None if known is None else known / 1e3


#: Of a batch size, what the catalogue counts that it takes.
Counted = Callable[[int], float | None]


def counted_memory(
    query: Query,
    batch: int,
    precision: str,
    sizes: Mapping[str, int],
    options: Mapping[str, Option] | None = None,
) -> float | None:
    """Return megabytes as the catalogue counts them, at sizes by column; None if it does not."""
    if query.spec is None:
        return None
    made = GENERATING if query.mode == Mode.TRAINING else ()
    known: dict[str, Any] = {
        SIZES[name]: int(value) for name, value in sizes.items() if name not in made
    }
    try:
        estimate = memory_estimate_bytes(
            query.spec, Shapes(batch, **known), precision or "fp32", query.mode, options
        )
    except AccelbenchError:
        return None
    return None if estimate is None else estimate / MIB


def by_batches(batch: int, way: Sequence[EvidenceCell], count: Counted) -> Bounds | None:
    """By what the same way took at other batches; None where nobody measured that.

    A larger batch takes no less, and mostly no more an item: both bound it. Between the ends it
    grows as between the two nearest batches, else as the catalogue counts.
    """
    known: dict[int, float] = {}
    for cell in way:  # of several that are called alike the one that took most
        took = float(cell.row.get("memory_peak_mb") or 0.0)
        known[cell.batch] = max(took, known.get(cell.batch, took))
    known = {size: took for size, took in known.items() if took}
    if not known:
        return None
    if batch in known:
        return Bounds.exact(known[batch])
    below = max((b for b in known if b < batch), default=None)
    above = min((b for b in known if b > batch), default=None)
    low = known[below] if below is not None else 0.0
    high = known[above] if above is not None else known[max(known)] * batch / max(known)
    low, high = min(low, high), max(low, high)
    near = min(known, key=lambda size: (abs(size - batch), size))
    growth = _growth(near, batch, known, count)
    middle = high if growth is None else known[near] + growth * (batch - near)
    return Bounds(min(max(middle, low), high), low, high)


def _growth(near: int, batch: int, known: Mapping[int, float], count: Counted) -> float | None:
    """What an item more takes, about there."""
    if len(known) > 1:
        first, last = sorted(sorted(known, key=lambda size: (abs(size - batch), size))[:2])
        return (known[last] - known[first]) / (last - first)
    here, there = count(near), count(batch)
    return None if here is None or there is None else (there - here) / (batch - near)

"""Task accuracy: what a model's outputs are worth against labels, with an interval.

Every metric is a score of each sample whose mean says it, but for F1: so that two engines or
precisions can be compared with each other sample by sample.

    top1, top5   1 where the label is among the largest outputs, else 0; Wilson's interval
    f1           label × 2²⁰ + prediction + 1, a cell of the confusion matrix; bootstrap
    perplexity   the log loss of a sequence's tokens over the mean number of tokens of a sequence:
                 their mean is the logarithm of the perplexity; an interval of that mean over
                 sequences, as tokens of one sequence depend on each other
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accelbench.core.columns import AccuracyMetric
from accelbench.core.ranges import ACCURACY
from accelbench.measure.student import t_quantile

Numbers = NDArray[np.floating[Any]]
Whole = NDArray[np.integer[Any]]

#: Of the normal distribution, for 95 %.
Z = 1.959963984540054
#: Resamples of the bootstrap, and the seed of them all: the same samples give the same interval.
RESAMPLES, SEED = 1000, 0
#: A larger log loss makes a perplexity that no column holds.
_MOST_LOSS = math.log(ACCURACY.most)
#: Columns of the confusion matrix: more classes no model tells apart. The first is of outputs that
#: are no numbers, and predict nothing.
WIDTH = 2**20


@dataclass(frozen=True)
class AccuracyFigure:
    """An accuracy with its 95 % interval; of one sequence there is none."""

    value: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class AccuracyDifference:
    """The difference of two accuracies on the same samples.

    In points of a share for top1, top5 and f1; for perplexity the ratio minus one.
    """

    value: float
    low: float
    high: float
    lost: int | None = None  # samples that the baseline alone has right
    gained: int | None = None

    @property
    def told(self) -> bool:
        """Whether the interval leaves out that there is no difference."""
        return self.low > 0.0 or self.high < 0.0


def predictions(outputs: Numbers) -> Whole:
    """Return the class with the largest output, the first of equal ones; -1 if one is no number."""
    whole = np.isfinite(outputs).all(axis=1)
    return np.asarray(np.where(whole, outputs.argmax(axis=1), -1))


def within_top(outputs: Numbers, labels: Whole, count: int) -> NDArray[np.bool_]:
    """Whether each label is among the largest outputs; of equal ones the first counts as larger."""
    own = np.take_along_axis(outputs, labels[:, None], axis=1)
    places = np.arange(outputs.shape[1])
    before = (outputs > own) | ((outputs == own) & (places < labels[:, None]))
    whole = np.isfinite(outputs).all(axis=1)
    return np.asarray(whole & (before.sum(axis=1) < count))


def wilson(right: int, count: int) -> AccuracyFigure:
    """Return a share with Wilson's interval, which holds near 0 and 1 too."""
    share, more = right / count, Z * Z / count
    middle = (share + more / 2) / (1 + more)
    half = Z * math.sqrt(share * (1 - share) / count + more / count / 4) / (1 + more)
    low = 0.0 if right == 0 else middle - half
    high = 1.0 if right == count else middle + half
    return AccuracyFigure(share, low, high)


def cells_of(labels: Whole, predicted: Whole) -> Whole:
    """Cells of the confusion matrix, one a sample."""
    return np.asarray(labels, np.int64) * WIDTH + predicted + 1


def f1_of(cells: Whole) -> AccuracyFigure:
    """Macro F1 with a bootstrap interval over samples."""
    places, counts = np.unique(cells, return_counts=True)
    value = float(_macro(counts[None, :], places)[0])
    spread = _macro(_resampled(counts), places)
    low, high = np.quantile(spread, [0.025, 0.975])
    # A class that is drawn in no resample makes the others' mean another one.
    return AccuracyFigure(value, min(float(low), value), max(float(high), value))


def perplexity_of(scores: Sequence[float] | Numbers) -> AccuracyFigure:
    """Return the perplexity of sequences, from their scores."""
    known = np.asarray(scores, np.float64)
    mean, half = _mean(known)
    if math.isinf(half):
        return AccuracyFigure(_exp(mean), None, None)
    return AccuracyFigure(_exp(mean), _exp(mean - half), _exp(mean + half))


def perplexity_scores(losses: Numbers, tokens: Whole) -> Numbers:
    """Scores of sequences, from the log loss of all of each one's tokens and their number."""
    return np.asarray(losses / (tokens.sum() / len(tokens)), np.float64)


def token_losses(logits: Numbers, targets: Whole) -> Numbers:
    """Return the log loss of every target, in float64; `logits` end with the vocabulary."""
    wide = np.asarray(logits, np.float64)
    top = wide.max(axis=-1, keepdims=True)
    total = np.log(np.exp(wide - top).sum(axis=-1)) + top[..., 0]
    return np.asarray(total - np.take_along_axis(wide, targets[..., None], axis=-1)[..., 0])


def figure_of(metric: AccuracyMetric, scores: Numbers) -> AccuracyFigure:
    """Return the figure that scores of samples come to."""
    if metric is AccuracyMetric.F1:
        return f1_of(scores.astype(np.int64))
    if metric is AccuracyMetric.PERPLEXITY:
        return perplexity_of(scores)
    return wilson(int(scores.sum()), len(scores))


def difference(
    metric: AccuracyMetric, base: Sequence[float], other: Sequence[float]
) -> AccuracyDifference:
    """Return how far an accuracy is above its baseline on the same samples, in pairs."""
    # Shares have Agresti and Min's interval of a paired difference (2005), which adds half a sample
    # to each of the four ways in which two answers can be right or wrong: if no answer differs it
    # still has a width. F1 is resampled in pairs; perplexity has the interval of a mean.
    ours, theirs = np.asarray(base, np.float64), np.asarray(other, np.float64)
    if metric is AccuracyMetric.F1:
        return _f1_difference(ours.astype(np.int64), theirs.astype(np.int64))
    if metric is AccuracyMetric.PERPLEXITY:
        mean, half = _mean(theirs - ours)
        return AccuracyDifference(_exp(mean) - 1, _exp(mean - half) - 1, _exp(mean + half) - 1)
    lost, gained = int((ours > theirs).sum()), int((theirs > ours).sum())
    count = len(ours) + 2.0
    less, more = lost + 0.5, gained + 0.5
    middle = (more - less) / count
    half = Z * math.sqrt(less + more - (more - less) ** 2 / count) / count
    value = (gained - lost) / len(ours)
    return AccuracyDifference(value, middle - half, middle + half, lost, gained)


def _f1_difference(base: Whole, other: Whole) -> AccuracyDifference:
    pairs, counts = np.unique(np.stack([base, other]), axis=1, return_counts=True)
    drawn = np.concatenate([counts[None, :], _resampled(counts)])
    spread = _macro(drawn, pairs[1]) - _macro(drawn, pairs[0])
    low, high = np.quantile(spread[1:], [0.025, 0.975])
    right = [side % WIDTH == side // WIDTH + 1 for side in (base, other)]
    lost, gained = int((right[0] & ~right[1]).sum()), int((right[1] & ~right[0]).sum())
    return AccuracyDifference(float(spread[0]), float(low), float(high), lost, gained)


def _resampled(counts: Whole) -> Whole:
    """How often each kind of sample is drawn, in every resample."""
    random = np.random.Generator(np.random.PCG64(SEED))
    whole: Whole = random.multinomial(counts.sum(), counts / counts.sum(), RESAMPLES)
    return whole


def _macro(counts: Whole, places: Whole) -> Numbers:
    """Macro F1 of each row of counts: the mean over classes that are labelled or predicted."""
    labels, predicted = places // WIDTH, places % WIDTH - 1
    scores = np.zeros(len(counts))
    there = np.zeros(len(counts))
    for number in np.union1d(labels, predicted[predicted >= 0]):
        of, so = labels == number, predicted == number
        right = counts[:, of & so].sum(axis=1)
        both = counts[:, of].sum(axis=1) + counts[:, so].sum(axis=1)
        present = both > 0
        scores += np.where(present, 2 * right / np.maximum(both, 1), 0.0)
        there += present
    return np.asarray(scores / np.maximum(there, 1))


def _mean(values: Numbers) -> tuple[float, float]:
    """Return a mean and half its 95 % interval; of one value nobody knows how far it is off."""
    mean = float(values.mean())
    if len(values) < 2:
        return mean, math.inf
    spread = float(values.std(ddof=1)) / math.sqrt(len(values))
    return mean, t_quantile(0.975, len(values) - 1) * spread


def _exp(value: float) -> float:
    return math.exp(value) if value < _MOST_LOSS else math.inf

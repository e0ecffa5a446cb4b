"""Task accuracy: agreement of a model's outputs with labels, with an interval.

Every metric except F1 is the mean of a score per sample, so two engines or precisions can be
compared sample by sample.

    top1, top5   1 if the label is among the largest outputs, else 0; Wilson's interval
    f1           label × 2²⁰ + prediction + 1, a cell of the confusion matrix; bootstrap
    perplexity   the log loss of a sequence's tokens ÷ the mean number of tokens of a sequence:
                 their mean is the logarithm of the perplexity; the interval is over sequences,
                 because the tokens of one sequence depend on each other
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

#: The 97.5 % quantile of the normal distribution.
Z = 1.959963984540054
#: Resamples of the bootstrap, and their fixed seed: the same samples give the same interval.
RESAMPLES, SEED = 1000, 0
#: Largest log loss whose perplexity fits the column.
_MOST_LOSS = math.log(ACCURACY.most)
#: Columns of the confusion matrix, more than any model has classes. The first column is for outputs
#: that are not numbers and predict nothing.
WIDTH = 2**20


@dataclass(frozen=True)
class AccuracyEstimate:
    """Accuracy with its 95 % interval; a single sequence has none."""

    value: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class AccuracyDifference:
    """Difference of two accuracies on the same samples.

    It is a difference of shares for top1, top5 and f1, and the ratio minus one for perplexity.
    """

    value: float
    low: float
    high: float
    lost: int | None = None  # samples that only the baseline has right
    gained: int | None = None

    @property
    def is_significant(self) -> bool:
        """Whether the interval excludes zero."""
        return self.low > 0.0 or self.high < 0.0


def predict_classes(outputs: Numbers) -> Whole:
    """Return the class with the largest output, or the first of several; -1 for NaN or infinity."""
    whole = np.isfinite(outputs).all(axis=1)
    return np.asarray(np.where(whole, outputs.argmax(axis=1), -1))


def is_in_top(outputs: Numbers, labels: Whole, count: int) -> NDArray[np.bool_]:
    """Return whether each label is among the largest outputs; the first of equal ones is larger."""
    own = np.take_along_axis(outputs, labels[:, None], axis=1)
    places = np.arange(outputs.shape[1])
    before = (outputs > own) | ((outputs == own) & (places < labels[:, None]))
    whole = np.isfinite(outputs).all(axis=1)
    return np.asarray(whole & (before.sum(axis=1) < count))


def wilson_interval(right: int, count: int) -> AccuracyEstimate:
    """Return a share with Wilson's interval, which holds near 0 and 1 too."""
    share, more = right / count, Z * Z / count
    middle = (share + more / 2) / (1 + more)
    half = Z * math.sqrt(share * (1 - share) / count + more / count / 4) / (1 + more)
    low = 0.0 if right == 0 else middle - half
    high = 1.0 if right == count else middle + half
    return AccuracyEstimate(share, low, high)


def confusion_cells(labels: Whole, predicted: Whole) -> Whole:
    """Return the cell of the confusion matrix of each sample."""
    return np.asarray(labels, np.int64) * WIDTH + predicted + 1


def estimate_f1(cells: Whole) -> AccuracyEstimate:
    """Return the macro F1 with a bootstrap interval over samples."""
    places, counts = np.unique(cells, return_counts=True)
    value = float(_macro_f1(counts[None, :], places)[0])
    spread = _macro_f1(_resample(counts), places)
    low, high = np.quantile(spread, [0.025, 0.975])
    # A class that a resample misses changes the mean over the others.
    return AccuracyEstimate(value, min(float(low), value), max(float(high), value))


def estimate_perplexity(scores: Sequence[float] | Numbers) -> AccuracyEstimate:
    """Return the perplexity of sequences, from their scores."""
    known = np.asarray(scores, np.float64)
    mean, half = _mean(known)
    if math.isinf(half):
        return AccuracyEstimate(_exp(mean), None, None)
    return AccuracyEstimate(_exp(mean), _exp(mean - half), _exp(mean + half))


def perplexity_scores(losses: Numbers, tokens: Whole) -> Numbers:
    """Return scores of sequences, from each one's total log loss and number of tokens."""
    return np.asarray(losses / (tokens.sum() / len(tokens)), np.float64)


def token_losses(logits: Numbers, targets: Whole) -> Numbers:
    """Return the log loss of every target, in float64; `logits` end with the vocabulary."""
    wide = np.asarray(logits, np.float64)
    top = wide.max(axis=-1, keepdims=True)
    total = np.log(np.exp(wide - top).sum(axis=-1)) + top[..., 0]
    return np.asarray(total - np.take_along_axis(wide, targets[..., None], axis=-1)[..., 0])


def estimate_accuracy(metric: AccuracyMetric, scores: Numbers) -> AccuracyEstimate:
    """Return the accuracy of scores of samples."""
    if metric is AccuracyMetric.F1:
        return estimate_f1(scores.astype(np.int64))
    if metric is AccuracyMetric.PERPLEXITY:
        return estimate_perplexity(scores)
    return wilson_interval(int(scores.sum()), len(scores))


def compare_scores(
    metric: AccuracyMetric, baseline: Sequence[float], candidate: Sequence[float]
) -> AccuracyDifference:
    """Return the difference of an accuracy from its baseline on the same samples."""
    # Shares have Agresti and Min's interval of a paired difference (2005), which adds half a sample
    # to each of the four combinations of right and wrong, so that it has a width without
    # differences. F1 is resampled in pairs; perplexity has the interval of a mean.
    first, second = np.asarray(baseline, np.float64), np.asarray(candidate, np.float64)
    if metric is AccuracyMetric.F1:
        return _f1_difference(first.astype(np.int64), second.astype(np.int64))
    if metric is AccuracyMetric.PERPLEXITY:
        mean, half = _mean(second - first)
        return AccuracyDifference(_exp(mean) - 1, _exp(mean - half) - 1, _exp(mean + half) - 1)
    lost, gained = int((first > second).sum()), int((second > first).sum())
    count = len(first) + 2.0
    less, more = lost + 0.5, gained + 0.5
    middle = (more - less) / count
    half = Z * math.sqrt(less + more - (more - less) ** 2 / count) / count
    value = (gained - lost) / len(first)
    return AccuracyDifference(value, middle - half, middle + half, lost, gained)


def _f1_difference(baseline: Whole, candidate: Whole) -> AccuracyDifference:
    pairs, counts = np.unique(np.stack([baseline, candidate]), axis=1, return_counts=True)
    resampled = np.concatenate([counts[None, :], _resample(counts)])
    spread = _macro_f1(resampled, pairs[1]) - _macro_f1(resampled, pairs[0])
    low, high = np.quantile(spread[1:], [0.025, 0.975])
    right = [side % WIDTH == side // WIDTH + 1 for side in (baseline, candidate)]
    lost, gained = int((right[0] & ~right[1]).sum()), int((right[1] & ~right[0]).sum())
    return AccuracyDifference(float(spread[0]), float(low), float(high), lost, gained)


def _resample(counts: Whole) -> Whole:
    """Return how often each kind of sample is drawn, in every resample."""
    random = np.random.Generator(np.random.PCG64(SEED))
    whole: Whole = random.multinomial(counts.sum(), counts / counts.sum(), RESAMPLES)
    return whole


def _macro_f1(counts: Whole, places: Whole) -> Numbers:
    """Return the macro F1 of each row of counts: the mean over labelled or predicted classes."""
    labels, predicted = places // WIDTH, places % WIDTH - 1
    scores = np.zeros(len(counts))
    class_count = np.zeros(len(counts))
    for number in np.union1d(labels, predicted[predicted >= 0]):
        is_labelled, is_predicted = labels == number, predicted == number
        right = counts[:, is_labelled & is_predicted].sum(axis=1)
        both = counts[:, is_labelled].sum(axis=1) + counts[:, is_predicted].sum(axis=1)
        present = both > 0
        scores += np.where(present, 2 * right / np.maximum(both, 1), 0.0)
        class_count += present
    return np.asarray(scores / np.maximum(class_count, 1))


def _mean(values: Numbers) -> tuple[float, float]:
    """Return a mean and half its 95 % interval, which is infinite for one value."""
    mean = float(values.mean())
    if len(values) < 2:
        return mean, math.inf
    spread = float(values.std(ddof=1)) / math.sqrt(len(values))
    return mean, t_quantile(0.975, len(values) - 1) * spread


def _exp(value: float) -> float:
    return math.exp(value) if value < _MOST_LOSS else math.inf

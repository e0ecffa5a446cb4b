"""Accuracy, its intervals and paired differences, against figures computed by other means."""

import math

import numpy as np
import pytest

from accelbench.core.columns import AccuracyMetric
from accelbench.measure.accuracy import (
    _macro_f1,
    compare_scores,
    confusion_cells,
    estimate_accuracy,
    estimate_f1,
    estimate_perplexity,
    is_in_top,
    perplexity_scores,
    predict_classes,
    token_losses,
    wilson_interval,
)

TOP1, F1, PERPLEXITY = AccuracyMetric.TOP1, AccuracyMetric.F1, AccuracyMetric.PERPLEXITY


def test_wilsons_interval_is_that_of_the_literature():
    """Newcombe 1998, table I: 81 of 263, 15 of 148, 0 of 20, 1 of 29."""
    for right, count, low, high in [
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ]:
        figure = wilson_interval(right, count)
        assert figure.value == right / count
        assert figure.low == pytest.approx(low, abs=5e-5)
        assert figure.high == pytest.approx(high, abs=5e-5)
    assert wilson_interval(20, 20).high == 1.0


def test_predictions_and_places_of_equal_outputs():
    outputs = np.array([[1.0, 3.0, 3.0, 0.0], [np.nan, 9.0, 1.0, 0.0]])
    assert predict_classes(outputs).tolist() == [1, -1]
    labels = np.array([2, 1])
    assert is_in_top(outputs, labels, 1).tolist() == [False, False]
    assert is_in_top(outputs, labels, 2).tolist() == [True, False]

    random = np.random.default_rng(0)
    outputs = random.integers(0, 4, (200, 9)).astype(float)
    labels = random.integers(0, 9, 200)
    order = np.argsort(-outputs, axis=1, kind="stable")
    expected = (order[:, :5] == labels[:, None]).any(axis=1)
    assert (is_in_top(outputs, labels, 5) == expected).all()


def test_f1_is_the_mean_of_classes():
    labels = np.array([0, 0, 0, 0, 1, 1, 2])
    predicted = np.array([0, 0, 1, 0, 1, 0, 3])
    figure = estimate_f1(confusion_cells(labels, predicted))
    # 0: 2·3/(4+4); 1: 2·1/(2+2); 2 and 3: never right
    assert figure.value == pytest.approx((0.75 + 0.5 + 0.0 + 0.0) / 4)
    assert figure.low is not None
    assert figure.high is not None
    assert figure.low < figure.value < figure.high
    assert (
        estimate_f1(confusion_cells(labels, predicted)) == figure
    )  # the same samples, the same interval

    # A resample may have drawn none of it.
    places = confusion_cells(np.array([0, 1]), np.array([0, 1]))
    assert _macro_f1(np.array([[2, 0], [1, 1]]), places).tolist() == [1.0, 1.0]
    assert estimate_f1(confusion_cells(np.array([0, 1]), np.array([0, -1]))).value == pytest.approx(
        0.5
    )


def test_perplexity_is_of_tokens():
    losses, tokens = np.array([4.0, 9.0, 2.0]), np.array([2, 6, 1])
    scores = perplexity_scores(losses, tokens)
    figure = estimate_perplexity(scores)
    assert figure.value == pytest.approx(math.exp(15 / 9))
    half = 4.302653 * scores.std(ddof=1) / math.sqrt(3)  # t of two degrees of freedom
    assert figure.low == pytest.approx(math.exp(15 / 9 - half))
    assert figure.high == pytest.approx(math.exp(15 / 9 + half))
    assert estimate_perplexity(scores[:1]).low is None

    logits = np.array([[[0.0, 0.0], [1000.0, 0.0]]], np.float32)
    assert token_losses(logits, np.array([[1, 0]])).tolist() == [[math.log(2), 0.0]]


def test_differences_are_of_pairs():
    base = [1.0] * 90 + [0.0] * 10
    other = [0.0] * 12 + [1.0] * 78 + [1.0] * 2 + [0.0] * 8
    held = compare_scores(TOP1, base, other)
    assert (held.lost, held.gained) == (12, 2)
    assert held.value == pytest.approx(-0.10)
    # Agresti and Min 2005, half a sample in each of the four cells
    middle, width = (2.5 - 12.5) / 102, math.sqrt(15 - 100 / 102) / 102
    assert held.low == pytest.approx(middle - 1.959964 * width)
    assert held.high == pytest.approx(middle + 1.959964 * width)
    assert held.is_significant

    held = compare_scores(TOP1, [1.0] * 50, [1.0] * 50)
    assert held.value == 0.0
    assert held.low < 0.0 < held.high
    assert not held.is_significant

    labels = np.arange(300) % 3
    base = confusion_cells(labels, labels).astype(float)
    worse = confusion_cells(labels, np.where(np.arange(300) % 10 == 0, (labels + 1) % 3, labels))
    held = compare_scores(F1, list(base), list(worse.astype(float)))
    assert held.value == pytest.approx(estimate_accuracy(F1, worse.astype(float)).value - 1.0)
    assert held.is_significant
    assert (held.lost, held.gained) == (30, 0)
    scores = np.linspace(1.0, 3.0, 20)
    slightly = compare_scores(PERPLEXITY, list(scores), list(scores + 0.01))
    assert slightly.value == pytest.approx(math.exp(0.01) - 1)
    assert slightly.is_significant  # a hundredth, of sequences that are apart by 2

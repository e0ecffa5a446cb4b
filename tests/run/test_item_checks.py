"""Items whose outputs are copies, or depend on where they lie in the batch, are doubted."""

import numpy as np
import pytest

from accelbench.run.verify.agreement import Batches, pick
from accelbench.run.verify.timed_steps import MOST_DOUBTED, copied_items, moved_items

BATCH = 16
STREAM = np.random.default_rng(0).standard_normal((BATCH, 6, 5)).astype(np.float32)
RIGHT = pick({"y": STREAM[:3]}, 0)
OTHER = pick({"y": STREAM[3:6]}, 0)
FIRST, SECOND = (tuple(np.random.default_rng(seed).permutation(BATCH).tolist()) for seed in (1, 2))


def copied(outputs, precision="fp32", right=RIGHT):
    return copied_items({"y": outputs}, right, Batches((0, 1, 2), FIRST), precision, draw=4)


def test_what_differs_or_could_by_chance_is_doubted_by_nobody():
    outputs = STREAM[list(FIRST)]
    assert copied(outputs) == []
    # Independent items are √2 apart in each value, and copies 1e-5 of that.
    outputs[4] = outputs[5] + np.float32(1.8e-5)
    assert copied(outputs) == []

    few = np.round(STREAM[list(FIRST), 0, :1])
    right = pick({"y": np.round(STREAM[:3, 0, :1])}, 0)
    assert copied(few, "fp32", right) != []
    assert copied(few, "bf16", right) == []
    ids = np.zeros((BATCH, 20), np.int64)
    assert copied(ids, right=pick({"y": ids[:3]}, 0)) == []
    runs = {order: {"y": np.arange(4.0)} for order in (FIRST, SECOND)}
    right = pick({"y": np.arange(4.0)}, 0)
    assert moved_items(runs, right, [right], (0, 1, 2), "fp32") == []


@pytest.mark.parametrize("noise", [0.0, 1e-7, 1.2e-5])
def test_a_copy_is_doubted_and_the_item_that_it_is_a_copy_of(noise):
    outputs, rows = STREAM[list(FIRST)], {item: row for row, item in enumerate(FIRST)}
    outputs[rows[7]] = outputs[rows[9]] + np.float32(noise)
    assert sorted(copied(outputs)) == [7, 9]
    outputs[rows[7]] = outputs[rows[1]]  # the reference has item 1, which is right
    assert copied(outputs) == [7]
    outputs[:] = outputs[rows[1]]
    assert len(copied(outputs)) == 0  # no item differs: the reference has settled it


def test_no_more_items_are_doubted_than_the_reference_may_compute():
    outputs = STREAM[list(FIRST)]
    outputs[4:] = outputs[4]
    found = copied(outputs)
    assert 0 < len(found) <= MOST_DOUBTED
    assert not set(found) & {0, 1, 2}


def test_items_are_compared_along_any_axis_and_in_any_place():
    outputs = STREAM[list(FIRST)]
    outputs[5] = outputs[6]
    right = pick({"y": np.moveaxis(STREAM[:3], 0, 1)}, 0)
    assert copied(np.moveaxis(outputs, 0, 1), right=right) != []
    alike = outputs[:, 0] @ outputs[:, 1].T
    right = pick({"y": STREAM[:3, 0] @ STREAM[:3, 1].T}, 0)
    assert copied(alike, right=right) != []

    first, second = STREAM[list(FIRST)], STREAM[list(SECOND)]
    rounding = np.float32(1e-6)
    assert moved(first, second + rounding) == []
    first[-1], second[-1] = first[:-1].mean(0), second[:-1].mean(0)
    assert sorted(moved(first, second)) == sorted({FIRST[-1], SECOND[-1]})
    assert sorted(moved(first, second, "int8")) == sorted({FIRST[-1], SECOND[-1]})

    first, second = STREAM[list(FIRST)], STREAM[list(SECOND)]
    second[4, 0, 0] = np.nan
    assert moved(first, second) == [SECOND[4]]


@pytest.mark.parametrize("value", [np.nan, np.inf, 0.0])
def test_outputs_that_tell_nothing_are_doubted_by_nobody(value):
    assert copied(np.full((BATCH, 6, 5), value, np.float32)) == []


def moved(first, second, precision="fp32"):
    runs = {FIRST: {"y": first}, SECOND: {"y": second}}
    return moved_items(runs, RIGHT, [OTHER], (0, 1, 2), precision)

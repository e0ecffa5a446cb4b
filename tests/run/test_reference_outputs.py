"""A reference's outputs as they are kept, and their counterparts in other batches."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accelbench.run.verify.agreement import (
    Batches,
    ReferenceOutputs,
    agree,
    fits,
    load,
    pairs,
    pick,
    rows_of,
    save,
)


def test_of_a_large_output_the_same_values_are_picked_and_its_shape_is_told():
    large = np.arange(1000.0).reshape(10, 100)
    one, again, another = (pick({"y": large}, draw, most=20)["y"] for draw in (3, 3, 4))
    assert one.shape == (10, 100)
    assert one.values.shape == (20,)
    np.testing.assert_array_equal(one.values, again.values)
    np.testing.assert_array_equal(one.values, large.reshape(-1)[one.places])
    assert not np.array_equal(one.values, another.values)


@given(st.lists(st.integers(0, 3), max_size=3), st.sampled_from(["f4", "f8", "i8", "bool"]))
def test_what_is_kept_comes_back(tmp_path_factory, shape, dtype):
    path = tmp_path_factory.mktemp("kept") / "outputs.npz"
    outputs = pick({"a b": np.ones(shape, dtype), "é/..": np.zeros((2, 2))}, 0, most=3)
    save(outputs, path)
    again = load(path)
    assert list(again) == list(outputs)
    for name, one in outputs.items():
        assert again[name].shape == one.shape
        assert again[name].values.dtype == one.values.dtype
        np.testing.assert_array_equal(again[name].values, one.values)
        assert (again[name].places is None) == (one.places is None)


#: A stream of items; the reference has the first three.
STREAM = np.random.default_rng(2).standard_normal((64, 4, 5)).astype(np.float32)
FEW = STREAM[:3]


def order_of(batch):
    if batch <= len(FEW):
        return tuple(range(batch))
    return tuple(np.random.default_rng(batch).permutation(batch).tolist())


def batches_of(batch):
    return Batches((0, 1, 2), order_of(batch))


def batch_of(batch):
    return STREAM[list(order_of(batch))]


@pytest.mark.parametrize("batch", [1, 2, 3, 4, 7, 64])
def test_the_references_items_are_found_in_a_batch_of_others(batch):
    batches = batches_of(batch)
    found = pairs(batch_of(batch), pick({"y": FEW}, 0)["y"], batches)
    np.testing.assert_array_equal(found.found, found.right)
    assert found.items is not None
    rows = {row for row, item in enumerate(batches.found) if item < 3}
    assert {row: n for row, n in enumerate(np.bincount(found.items)) if n} == dict.fromkeys(
        rows, 20
    )


@pytest.mark.parametrize("batch", [1, 2, 3, 4, 8])
def test_items_times_heads_and_each_item_with_each_other_are_found_too(batch):
    heads, right = batch_of(batch).reshape(-1, 5), pick({"y": FEW.reshape(12, 5)}, 0)["y"]
    found = pairs(heads, right, batches_of(batch))
    np.testing.assert_array_equal(found.found, found.right)
    assert found.found.size == min(batch, 3) * 20

    items = STREAM[:, 0].astype(np.float64)
    alike, rows = items @ items.T, list(order_of(batch))
    right = pick({"y": alike[:3, :3]}, 0)["y"]
    found = pairs(alike[np.ix_(rows, rows)], right, batches_of(batch))
    np.testing.assert_array_equal(found.found, found.right)
    assert found.found.size == min(batch, 3) ** 2


def test_outputs_are_items_along_the_axes_that_grow():
    found = pairs(np.moveaxis(batch_of(8), 0, 1), pick({"y": np.moveaxis(FEW, 0, 1)}, 0)["y"],
                  batches_of(8))  # fmt: skip
    np.testing.assert_array_equal(found.found, found.right)
    assert found.items is not None
    assert {order_of(8)[row] for row in found.items} == {0, 1, 2}

    found = pairs(np.arange(4.0), pick({"y": np.arange(4.0)}, 0)["y"], batches_of(8))
    np.testing.assert_array_equal(found.found, found.right)
    assert found.items is None
    assert not fits((6,), ReferenceOutputs((3,), np.zeros(3)), Batches((0, 1), (0, 1, 2, 3)))

    items = STREAM[:, 0].astype(np.float64)
    alike, order = items @ items.T, order_of(8)
    cut = rows_of(alike[np.ix_(order, order)], (3, 3), np.array([1, 5]), batches_of(8))
    chosen = [order[1], order[5]]
    np.testing.assert_array_equal(cut, alike[np.ix_(chosen, chosen)])


@pytest.mark.parametrize(
    ("shape", "batches", "right"),
    [
        ((8, 4, 5), batches_of(8), True),
        ((3, 4, 5), batches_of(8), True),  # of no item
        ((7, 4, 5), batches_of(8), False),
        ((8, 4), batches_of(8), False),
        ((8, 4, 6), batches_of(8), False),
        ((2, 4, 5), batches_of(2), True),
        ((3, 4, 5), Batches(), True),
        ((6, 4, 5), Batches(), False),
    ],
)
def test_a_shape_fits_if_each_axis_grows_with_the_batch_or_stays(shape, batches, right):
    assert fits(shape, ReferenceOutputs((3, 4, 5), FEW.reshape(-1)), batches) is right


@pytest.mark.parametrize("most", [7, 40])
@pytest.mark.parametrize("batch", [1, 3, 8, 64])
def test_of_large_outputs_each_picked_value_is_compared_with_its_counterpart(most, batch):
    found = pairs(batch_of(batch), pick({"y": FEW}, 5, most)["y"], batches_of(batch))
    np.testing.assert_array_equal(found.found, found.right)
    assert found.found.size > 0
    assert found.items is not None
    assert all(order_of(batch)[row] < 3 for row in found.items)


@pytest.mark.parametrize("batch", [8, 32, 64])
def test_a_part_of_a_batch_that_is_repeated_does_not_agree(batch):
    right, other = pick({"y": FEW}, 0), pick({"y": FEW[::-1] + 1}, 0)
    honest = batch_of(batch)
    assert agree({"y": honest}, right, other, "int8", batches=batches_of(batch)).ok
    for computed in (1, 3, batch // 2):
        found = honest[np.arange(batch) % computed]
        assert not agree({"y": found}, right, other, "int8", batches=batches_of(batch)).ok

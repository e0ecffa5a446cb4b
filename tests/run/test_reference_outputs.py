"""What is kept of a reference's outputs, and which of its values another batch has where."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accelbench.run.verify import reference_outputs
from accelbench.run.verify.agreement import agree
from accelbench.run.verify.reference_outputs import (
    Batches,
    ReferenceOutputs,
    fits,
    load,
    pairs,
    pick,
    save,
)

FEW = np.random.default_rng(1).standard_normal((3, 4, 5)).astype(np.float32)


def test_of_a_large_output_the_same_values_are_picked_and_its_shape_is_told() -> None:
    large = np.arange(1000.0).reshape(10, 100)
    one, again, another = (pick({"y": large}, draw, most=20)["y"] for draw in (3, 3, 4))
    assert one.shape == (10, 100)
    assert one.values.shape == (20,)
    np.testing.assert_array_equal(one.values, again.values)
    np.testing.assert_array_equal(one.values, large.reshape(-1)[one.places])
    assert not np.array_equal(one.values, another.values)


@given(st.lists(st.integers(0, 3), max_size=3), st.sampled_from(["f4", "f8", "i8", "bool"]))
def test_what_is_kept_comes_back(
    tmp_path_factory: pytest.TempPathFactory, shape: list[int], dtype: str
) -> None:
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


def repeated(few: Any, batch: int) -> Any:
    return few[np.arange(batch) % len(few)]


@pytest.mark.parametrize("batch", [1, 2, 3, 4, 7, 32])
def test_a_batch_of_repeated_items_is_the_references_again_and_again(batch: int) -> None:
    found = pairs(repeated(FEW, batch), pick({"y": FEW}, 0)["y"], Batches(3, batch), 0)
    np.testing.assert_array_equal(found.found, found.right)
    assert found.items is not None
    assert np.bincount(found.items).tolist() == [20] * batch


def test_items_times_heads_and_each_item_with_each_repeat_too() -> None:
    heads = FEW.reshape(12, 5)
    whole = repeated(FEW, 8).reshape(32, 5)
    found = pairs(whole, pick({"y": heads}, 0)["y"], Batches(3, 8), 0)
    np.testing.assert_array_equal(found.found, found.right)
    assert np.bincount(found.items).tolist() == [20] * 8

    alike = FEW[:, 0] @ FEW[:, 0].T
    many = repeated(FEW, 8)[:, 0] @ repeated(FEW, 8)[:, 0].T
    found = pairs(many, pick({"y": alike}, 0)["y"], Batches(3, 8), 0)
    np.testing.assert_allclose(found.found, found.right, rtol=1e-6)
    assert found.found.size == 64


def test_what_does_not_grow_with_the_batch_is_of_no_item() -> None:
    found = pairs(np.arange(4.0), pick({"y": np.arange(4.0)}, 0)["y"], Batches(3, 8), 0)
    np.testing.assert_array_equal(found.found, found.right)
    assert found.items is None


@pytest.mark.parametrize(
    ("shape", "batches", "right"),
    [
        ((8, 4, 5), Batches(3, 8), True),
        ((3, 4, 5), Batches(3, 8), True),  # of no item
        ((7, 4, 5), Batches(3, 8), False),
        ((8, 4), Batches(3, 8), False),
        ((8, 4, 6), Batches(3, 8), False),
        ((3, 4, 5), Batches(), True),
        ((6, 4, 5), Batches(), False),
    ],
)
def test_a_shape_fits_where_each_axis_grows_with_the_batch_or_stays(
    shape: tuple[int, ...], batches: Batches, right: bool
) -> None:
    assert fits(shape, ReferenceOutputs((3, 4, 5), FEW.reshape(-1)), batches) is right


@pytest.mark.parametrize("most", [7, 40])
@pytest.mark.parametrize("batch", [1, 3, 8])
def test_of_large_outputs_each_picked_value_is_held_against_its_like(
    monkeypatch: pytest.MonkeyPatch, most: int, batch: int
) -> None:
    """Whether the reference was picked from, or only the batch is too large to compare whole."""
    monkeypatch.setattr(reference_outputs, "MOST_VALUES", 7)
    found = pairs(repeated(FEW, batch), pick({"y": FEW}, 5, most)["y"], Batches(3, batch), 5)
    np.testing.assert_array_equal(found.found, found.right)
    assert found.found.size > 0


@pytest.mark.parametrize("batch", [2, 8, 32])
def test_who_computes_a_part_of_a_batch_and_repeats_it_is_seen(batch: int) -> None:
    right, other = pick({"y": FEW}, 0), pick({"y": FEW[::-1] + 1}, 0)
    honest = repeated(FEW, batch)
    assert agree({"y": honest}, right, other, "int8", batches=Batches(3, batch)).ok
    half = repeated(honest[: batch // 2], batch)
    assert not agree({"y": half}, right, other, "int8", batches=Batches(3, batch)).ok

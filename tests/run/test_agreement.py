"""How far outputs are from their reference, and what a precision may cost."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accelbench.run.agreement import (
    TOLERANCES,
    Agreement,
    agree,
    load,
    pick,
    save,
    tolerance_of,
)

RIGHT = np.random.default_rng(1).standard_normal((4, 50)).astype(np.float32)
OTHER = np.random.default_rng(2).standard_normal((4, 50)).astype(np.float32)


def held(output: Any, precision: str = "fp32", right: Any = RIGHT, other: Any = OTHER) -> Agreement:
    return agree(pick({"y": output}, 0), pick({"y": right}, 0), pick({"y": other}, 0), precision)


def test_the_same_agrees_to_the_last_bit() -> None:
    assert held(RIGHT) == Agreement(0.0, TOLERANCES["fp32"].error, {"y": 0.0})


def test_outputs_of_other_inputs_are_one_yardstick_away() -> None:
    found = held(OTHER)
    assert found.error == pytest.approx(1.0, rel=0.01)
    assert not found.ok
    assert not held(OTHER, "bf16").ok


@pytest.mark.parametrize(("places", "asked"), [(10, "fp16"), (7, "bf16")])
def test_a_silent_downgrade_is_no_fp32(places: int, asked: str) -> None:
    """Rounding to so many bits passes as what it is, and not as what it is not."""
    rounded = np.round(RIGHT * 2**places) / 2**places
    assert held(rounded, asked).ok
    assert not held(rounded, "fp32").ok


def test_the_order_of_summation_passes() -> None:
    assert held(RIGHT * (1 + 1e-6)).ok


def test_an_output_that_hardly_moves_may_be_off_by_its_rounding_alone() -> None:
    """Box corners of an untrained detector: all near one half, moved by a ten thousandth."""
    right, other = 0.5 + 1e-4 * RIGHT, 0.5 + 1e-4 * OTHER
    found = held(right + 2.0**-9, "bf16", right, other)
    assert found.ok
    assert not found.telling
    assert not held(right + 0.1, "bf16", right, other).ok
    assert held(right, "fp32", right, other).telling


@pytest.mark.parametrize(
    ("output", "words"),
    [(RIGHT[:2], "the shape (2, 50), not (4, 50)"), (RIGHT.reshape(50, 4), "the shape (50, 4)")],
)
def test_another_shape_is_wrong(output: Any, words: str) -> None:
    found = held(output, "bf16")
    assert not found.ok
    assert words in found.wrong


def test_a_missing_output_is_wrong_and_one_too_many_is_not() -> None:
    whole = pick({"y": RIGHT, "z": RIGHT}, 0)
    assert "z is missing" in agree(pick({"y": RIGHT}, 0), whole, whole, "fp32").wrong
    assert agree(whole, pick({"y": RIGHT}, 0), pick({"y": OTHER}, 0), "fp32").ok


def test_numbers_that_are_none_count_where_the_reference_has_some() -> None:
    holes = RIGHT.copy()
    holes[0, 0] = np.nan
    assert held(holes).error == float("inf")
    assert held(holes, right=holes).ok
    assert held(RIGHT, right=holes).error == float("inf")


def test_decisions_must_be_the_same_only_where_there_is_nothing_else() -> None:
    ids, others = np.array([1, 2, 3]), np.array([1, 2, 4])
    assert not held(others, right=ids, other=others).ok
    assert held(ids, right=ids, other=others).ok
    both = pick({"ids": ids, "y": RIGHT}, 0), pick({"ids": others, "y": OTHER}, 0)
    assert agree(pick({"ids": others, "y": RIGHT}, 0), *both, "fp32").ok


def test_autocast_may_cost_what_its_type_may() -> None:
    assert tolerance_of("amp-bf16") is TOLERANCES["bf16"]


def test_of_a_large_output_the_same_values_are_picked_and_its_shape_is_told() -> None:
    large = np.arange(1000.0).reshape(10, 100)
    one, again, another = (pick({"y": large}, draw, most=20)["y"] for draw in (3, 3, 4))
    assert one.shape == (10, 100)
    assert one.values.shape == (20,)
    np.testing.assert_array_equal(one.values, again.values)
    assert not np.array_equal(one.values, another.values)


@given(st.lists(st.integers(0, 3), max_size=3), st.sampled_from(["f4", "f8", "i8", "bool"]))
def test_what_is_kept_comes_back(
    tmp_path_factory: pytest.TempPathFactory, shape: list[int], dtype: str
) -> None:
    path = tmp_path_factory.mktemp("kept") / "outputs.npz"
    outputs = pick({"a b": np.ones(shape, dtype), "é/..": np.zeros((2, 2))}, 0)
    save(outputs, path)
    again = load(path)
    assert list(again) == list(outputs)
    for name, one in outputs.items():
        assert again[name].shape == one.shape
        assert again[name].values.dtype == one.values.dtype
        np.testing.assert_array_equal(again[name].values, one.values)

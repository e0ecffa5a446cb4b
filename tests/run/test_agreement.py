"""How far outputs are from their reference, and what a precision may cost."""

import numpy as np
import pytest

from accelbench.run.verify.agreement import Agreement, Batches, agree, pick
from accelbench.run.verify.verdicts import (
    NOT_FINITE,
    NOT_TELLING,
    TOLERANCES,
    compute_tolerance,
    judged,
    tolerance_of,
)

RIGHT = np.random.default_rng(1).standard_normal((4, 50)).astype(np.float32)
OTHER = np.random.default_rng(2).standard_normal((4, 50)).astype(np.float32)


def held(output, precision="fp32", right=RIGHT, other=OTHER):
    return agree({"y": output}, pick({"y": right}, 0), pick({"y": other}, 0), precision)


def test_the_distance_is_of_what_other_inputs_move():
    assert held(RIGHT) == Agreement(0.0, TOLERANCES["fp32"].most, {"y": 0.0})
    found = held(OTHER)
    assert found.error == pytest.approx(1.0, rel=0.01)
    assert not found.ok
    assert not held(OTHER, "bf16").ok
    assert held(RIGHT * (1 + 1e-6)).ok


@pytest.mark.parametrize(("places", "asked"), [(10, "fp16"), (7, "bf16")])
def test_a_silent_downgrade_is_no_fp32(places, asked):
    """Rounding to so many bits passes as what it is, and not as what it is not."""
    rounded = np.round(RIGHT * 2**places) / 2**places
    assert held(rounded, asked).ok
    assert not held(rounded, "fp32").ok


def test_rounding_alone_is_allowed_and_autocast_costs_its_type():
    # Box corners of an untrained detector: all near one half, moved by a ten thousandth.
    right, other = 0.5 + 1e-4 * RIGHT, 0.5 + 1e-4 * OTHER
    found = held(right + 2.0**-9, "bf16", right, other)
    assert found.ok
    assert not found.telling
    assert not held(right + 0.1, "bf16", right, other).ok
    assert held(right, "fp32", right, other).telling

    assert tolerance_of("amp-bf16") is TOLERANCES["bf16"]


@pytest.mark.parametrize(
    ("output", "words"),
    [(RIGHT[:2], "the shape (2, 50), not (4, 50)"), (RIGHT.reshape(50, 4), "the shape (50, 4)")],
)
def test_another_shape_is_wrong(output, words):
    found = held(output, "bf16")
    assert not found.ok
    assert words in found.wrong


def test_shapes_and_missing_numbers_or_outputs_are_wrong():
    whole = pick({"y": RIGHT, "z": RIGHT}, 0)
    assert "z is missing" in agree({"y": RIGHT}, whole, whole, "fp32").wrong
    both = {"y": RIGHT, "z": RIGHT}
    assert agree(both, pick({"y": RIGHT}, 0), pick({"y": OTHER}, 0), "fp32").ok

    holes = RIGHT.copy()
    holes[0, 0] = np.nan
    assert held(holes).error == float("inf")
    assert held(holes, right=holes).ok
    assert held(RIGHT, right=holes).error == float("inf")


def test_decisions_are_the_same_or_others():
    ids, others = np.array([1, 2, 3]), np.array([1, 2, 4])
    assert not held(others, right=ids, other=others).ok
    assert held(ids, right=ids, other=others).ok
    right, other = pick({"ids": ids, "y": RIGHT}, 0), pick({"ids": others, "y": OTHER}, 0)
    assert agree({"ids": others, "y": RIGHT}, right, other, "fp32").ok
    assert "ids is missing" in agree({"y": RIGHT}, right, other, "fp32").wrong
    assert "ids has the shape" in agree({"ids": ids[:2], "y": RIGHT}, right, other, "fp32").wrong

    # Ids of 0 to 30,000 of which one is the next: by its distance it would be 1e-5 off.
    right, other = IDS * 150, IDS[::-1] * 150
    assert held(right, "fp32", right, other).ok
    off = right.copy()
    off[2, 7] += 1
    assert not held(off, "fp32", right, other).ok
    assert held(off, "bf16", right, other).ok  # one of fifty, beside a tie
    assert not held(off + 1, "bf16", right, other).ok

    right = RIGHT > 0
    assert held(right, "fp32", right, OTHER > 0).ok
    assert not held(~right, "bf16", right, OTHER > 0).ok


def test_one_item_value_or_part_that_is_wrong_is_seen():
    right = np.random.default_rng(3).standard_normal((64, 50)).astype(np.float32)
    other = np.random.default_rng(4).standard_normal((64, 50)).astype(np.float32)
    wrong = right.copy()
    wrong[63] = right[0]
    batches = Batches(tuple(range(64)), tuple(range(64)))
    found = agree({"y": wrong}, pick({"y": right}, 0), pick({"y": other}, 0), "int8",
                  batches=batches)  # fmt: skip
    assert found.error == pytest.approx(1.0, rel=0.3)
    assert not found.ok

    # One other draw may lie near the first by chance: then no engine would agree.
    right = pick({"y": np.float32([5.0])}, 0)
    near = pick({"y": np.float32([5.0 + 1e-3])}, 0)
    far = [pick({"y": np.float32([value])}, 0) for value in (3.0, 4.5, 7.0)]
    off = {"y": np.float32([5.0 + 1e-5])}
    assert not agree(off, right, near, "fp32").ok
    assert agree(off, right, [near, *far], "fp32").ok
    assert not agree({"y": np.float32([5.1])}, right, [near, *far], "fp32").ok

    right, other = RIGHT + 1j * OTHER, OTHER + 1j * RIGHT
    assert held(right * (1 + 1e-6), "fp32", right, other).ok
    assert not held(right.conj(), "bf16", right, other).ok
    assert not held(right.real, "bf16", right, other).ok
    pairs = np.stack([right.real, right.imag], -1)  # as ONNX has them
    assert held(pairs, "fp32", right, other).ok
    assert not held(pairs[..., ::-1], "bf16", right, other).ok


@pytest.mark.parametrize(
    ("rounded", "precision", "allowed"),
    [
        (0.01, "bf16", 0.04),
        (0.01, "amp-bf16", 0.04),
        (1e-6, "bf16", TOLERANCES["bf16"].least),
        (3.0, "int8", TOLERANCES["int8"].most),
        (None, "int8", TOLERANCES["int8"].most),
        (None, "fp32", 2e-4),
    ],
)
def test_what_is_allowed_is_what_rounding_costs_the_model_itself(rounded, precision, allowed):
    assert compute_tolerance(precision, rounded) == pytest.approx(allowed)


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param((RIGHT + OTHER) / 2, id="halfway to another's"),
        pytest.param(RIGHT * 0.4, id="shrunk"),
        pytest.param(np.where(np.arange(50) % 5 < 2, 0, RIGHT), id="two fifths missing"),
        pytest.param(np.where(np.arange(50) % 10 == 0, -RIGHT, RIGHT), id="a tenth turned"),
    ],
)
def test_what_no_rounding_explains_is_wrong_in_int8_too(wrong):
    """In int8, a model such as BERT is moved by a hundredth of what other inputs move."""
    allowed = compute_tolerance("int8", 0.02)
    right, other = pick({"y": RIGHT}, 0), pick({"y": OTHER}, 0)
    assert not agree({"y": wrong}, right, other, "int8", allowed=allowed).ok
    assert agree({"y": RIGHT + 0.05 * OTHER}, right, other, "int8", allowed=allowed).ok


IDS = np.arange(200).reshape(4, 50)


def test_a_reference_without_a_finite_value_is_told_from_one_that_ignores_its_inputs():
    nothing = {"y": np.full((2, 3), np.nan)}
    found = agree(nothing, pick(nothing, 0), pick(nothing, 0), "fp32")
    assert (found.telling, found.finite) == (False, False)
    assert held(RIGHT).finite
    answer = {"error": 0.0, "tolerance": 1e-4, "errors": {}, "wrong": "", "telling": False}
    assert judged({**answer, "finite": False}).why == NOT_FINITE
    assert judged({**answer, "finite": True}).why == NOT_TELLING

"""Quantised figures count unasked only where their verified error is small, and say it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from choosing_world import result, selector

from accelbench.core.errors import UsageError
from accelbench.core.precision import MAX_ERROR, is_quantised

PLAIN = result(latency_p50_ms=10.0, verification_error=2e-6)


def int8(error: float | None, **more: Any) -> dict[str, Any]:
    """Four times as fast as in fp32."""
    usual = {"precision": "int8", "latency_p50_ms": 2.5, "runtime": "onnxruntime"}
    verification = "not_done" if error is None else "ok"
    return result(**{**usual, "verification": verification, "verification_error": error, **more})


def chosen(folder: Path, *results: dict[str, Any], **more: Any) -> dict[str, Any]:
    return selector(folder, *results).select_hardware(
        model_name="bert-tiny", available_hardware=["cpu"], **more
    )


@pytest.mark.parametrize(
    ("error", "precision"), [(None, "fp32"), (0.3, "fp32"), (MAX_ERROR, "int8")]
)
def test_int8_is_chosen_unasked_only_within_a_stated_error(tmp_path, error, precision):
    answer = chosen(tmp_path, PLAIN, int8(error))
    assert answer["all_scores"]["cpu"]["precision"] == precision
    said = f"by default, int8 may have an error of {MAX_ERROR:g}"
    assert (said in answer["explanation"]) is (precision == "fp32")
    assert [one["precision"] for one in answer["left_out"]] == (
        ["int8"] if precision == "fp32" else []
    )


def test_int8_that_is_named_is_taken_with_its_error(tmp_path):
    answer = chosen(tmp_path, PLAIN, int8(0.3), precision="int8")
    assert answer["all_scores"]["cpu"]["predictions"]["verification_error"] == 0.3
    assert answer["left_out"] == []


def test_a_platform_with_int8_alone_has_no_figure_unasked(tmp_path):
    answer = selector(tmp_path, PLAIN, int8(None, hardware="qnn", runtime="qnn")).select_hardware(
        model_name="bert-tiny", available_hardware=["cpu", "qnn"]
    )
    assert answer["primary_recommendation"] == "cpu"
    qnn = answer["all_scores"]["qnn"]
    # What was measured in int8 is no prediction of anything: it is left out, and said to be.
    assert (qnn["basis"], qnn.get("predictions")) == ("rule", None)
    assert [one["hardware"] for one in answer["left_out"]] == ["qnn"]


def test_a_slower_int8_is_not_worth_a_word(tmp_path):
    assert chosen(tmp_path, PLAIN, int8(None, latency_p50_ms=20.0))["left_out"] == []


@pytest.mark.parametrize(
    ("limits", "asked", "best"),
    [
        ({}, {}, "fp32"),
        ({"max_error": 0.5}, {}, "int8"),
        ({"max_error": 0.1}, {}, "fp32"),
        ({}, {"precision": "int8"}, "int8"),
    ],
)
def test_under_limits_the_error_is_limited_unasked_too(tmp_path, limits, asked, best):
    both = selector(tmp_path, PLAIN, int8(0.3))
    found = both.best_under({"max_latency_ms": 50.0, **limits}, model_name="bert-tiny", **asked)
    assert found["best"]["precision"] == best


def test_where_int8_alone_would_fit_it_says_what_keeps_it_out(tmp_path):
    found = selector(tmp_path, int8(None)).best_under({}, model_name="bert-tiny")
    assert found["best"] is None
    assert "its error was not verified" in found["explanation"]


@pytest.mark.parametrize(
    ("name", "quantised"),
    [
        *((name, True) for name in ("int8", "INT8", "w8a16", "w8a8_mixed_int16", "uint8", "fp8")),
        *((name, True) for name in ("int8(w8/a8, some a16/w4)", "fp4", "nf4", "float8_e4m3")),
        *((name, True) for name in ("w4", "4bit", "bnb-4bit", "gptq", "awq", "i8", "s8", "fp6")),
        *((name, True) for name in ("ternary", "gguf", "hqq", "UNSET", "")),
        *((name, False) for name in ("fp32", "fp16", "bf16", "amp-fp16", "float", "fp64")),
        *((name, False) for name in ("default(fp16/fp32)", "tf32", "float16", "bfloat16", "half")),
    ],
)
def test_what_is_quantised_is_told_by_its_name(name, quantised):
    assert is_quantised(name) is quantised


def test_a_precision_that_others_call_their_own_can_be_named(tmp_path):
    theirs = int8(None, precision="w8a16", provenance="imported")
    answer = chosen(tmp_path, PLAIN, theirs, precision="W8A16")
    assert answer["all_scores"]["cpu"]["precision"] == "w8a16"
    with pytest.raises(UsageError, match="no precision named"):
        chosen(tmp_path, PLAIN, precision="fp23")

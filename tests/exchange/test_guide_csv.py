"""The guide's names for our columns, and its CSV."""

import csv
import io
import math
from datetime import datetime, timedelta, timezone

import pytest
from bodies import NASTY, body

from accelbench.core.columns import BY_NAME
from accelbench.core.safe_text import csv_cell
from accelbench.exchange.guide_csv import (
    CASE_COLUMNS,
    COLUMNS,
    GUIDE_COLUMNS,
    OTHER_COLUMNS,
    VALUE_COLUMNS,
    csv_name,
    encode,
    guide_result,
    parse_header,
)

SHAPES = '{"input_ids": [2, 16], "attention_mask": [2, 16]}'


def test_columns_of_the_guide():
    # Every name beside the guides is a column.
    assert set(VALUE_COLUMNS.values()) <= BY_NAME.keys()
    assert set(OTHER_COLUMNS) - BY_NAME.keys() == {"model_id"}
    assert len(COLUMNS) == len(set(COLUMNS))
    # A figure that is known is the stores.
    made = guide_result(body(1, throughput=7, memory_peak_mb=3.5, compile_ms=0.25), "BERT", "abc")
    assert (made["throughput_ips"], made["memory_mb"]) == (7.0, 3.5)
    assert (made["compilation_time_ms"], made["latency_mean_ms"]) == (0.25, 1.1)
    assert (made["throughput"], made["memory_peak_mb"]) == (7.0, 3.5)
    # A figure that is not known is nan here and none where it is the stores.
    made = guide_result(body(0, latency_p50_ms=None), "BERT", None)
    assert math.isnan(made["latency_p50_ms"])
    assert math.isnan(made["throughput_ips"])
    assert made["throughput"] is None
    # The shape is the first inputs and all are there.
    made = guide_result(body(0, input_shape=SHAPES), "BERT", None)
    assert made["input_shape"] == (2, 16)
    assert made["input_shapes"] == {"input_ids": (2, 16), "attention_mask": (2, 16)}
    assert guide_result(body(0), "BERT", None)["input_shape"] == ()


@pytest.mark.parametrize(
    ("stored", "long"), [("fp16", "float16"), ("amp-bf16", "amp_bfloat16"), ("fp6", "fp6")]
)
def test_the_dtype_is_the_long_form(stored, long):
    made = guide_result(body(0, precision=stored), "BERT", None)
    assert (made["dtype"], made["precision"]) == (long, stored)


def test_columns_beside_it():
    # Warnings are the results own and those beside it.
    assert guide_result(body(0, warnings=["own"]), "BERT", None, ["beside"])["warnings"] == [
        "own",
        "beside",
    ]
    # The guides own columns come first and the times of tokens are there.
    assert COLUMNS[: len(GUIDE_COLUMNS)] == GUIDE_COLUMNS
    made = guide_result(body(0, ttft_ms=5.5, tpot_ms=0.5), "gpt2", None)
    (line,) = csv.DictReader(io.StringIO(encode([made], header=True).decode(), newline=""))
    assert (line["ttft_ms"], line["tpot_ms"]) == ("5.5", "0.5")
    # Names are in utc.
    there = timezone(timedelta(hours=5))
    assert csv_name(datetime(2025, 1, 1, 17, tzinfo=there)) == (
        "benchmark_results_20250101_120000.csv"
    )
    assert parse_header("") == ()
    # What the time is worth is said beside it.
    told = {"emulated": True, "verification": "ok", "workarounds": ["fixed_batch"]}
    text = encode([guide_result(body(0, **told), "BERT", None)], header=True).decode()
    (line,) = csv.DictReader(io.StringIO(text))
    assert (line["emulated"], line["verification"]) == ("True", "ok")
    assert line["workarounds"] == '["fixed_batch"]'
    # The arm of a comparison is a column.
    made = guide_result(body(1, arm="threads=1", launch=2), "BERT", None)
    (read,) = csv.DictReader(io.StringIO(encode([made], header=True).decode()))
    assert (read["arm"], read["launch"]) == ("threads=1", "2")


def test_a_line_reads_back(capsys):
    results = [guide_result(body(i, message=text), text, None) for i, text in enumerate(NASTY)]
    text = encode(results[:1], header=True).decode() + encode(results[1:], header=False).decode()
    rows = list(csv.DictReader(io.StringIO(text, newline="")))
    assert [row["message"] for row in rows] == list(map(csv_cell, NASTY))
    assert [row["model"] for row in rows] == list(map(csv_cell, NASTY))
    assert [float(row["latency_mean_ms"]) for row in rows] == [
        made["latency_mean_ms"] for made in results
    ]
    assert {row["latency_p50_ms"] for row in rows} == {""}
    assert parse_header(text.splitlines()[0]) == COLUMNS


@pytest.mark.parametrize(
    "other",
    [
        {"mode": "training"},
        {"sequence_length": 64},
        {"image_size": 64},
        {"prompt_tokens": 64},
        {"new_tokens": 8},
        {"audio_seconds": 5},
        {"denoising_steps": 4},
        {"optimizer": "sgd"},
        {"compiled": True},
        {"threads": 2},
        {"weights": "/some/folder"},
        {"options": {"pure": True}},
        {"launch": 1},
    ],
)
def test_two_questions_never_have_the_same_line(other):
    usual = {"mode": "inference", "compiled": False, "threads": 1, "weights": "random"}
    made = [guide_result(body(0, **{**usual, **more}), "BERT", None) for more in ({}, other)]
    lines = list(csv.DictReader(io.StringIO(encode(made, header=True).decode(), newline="")))
    one, two = ([line[n] for n in (*GUIDE_COLUMNS, *CASE_COLUMNS)] for line in lines)
    assert one != two

"""Limits on the command line: what is said, what is measured by --verify, and by hand."""

from __future__ import annotations

import json
import shlex
from typing import Any

import pytest
from recommend_world import ASKED, DB, answer
from stored_rows import store

from accelbench.cli.services.searching import VerificationCase
from accelbench.core.protocols import Absent, Device
from accelbench.run import execute
from accelbench.store.database import Database

HERE = {
    "cpu": [Device("cpu", "A processor")],
    "cuda": [Device("cuda", "A card"), Device("cuda", "Another card", 1)],
    "openvino": [
        Device("openvino", "A processor", unit="cpu"),
        Device("openvino", "Arc", unit="gpu"),
    ],
    "qnn": [Device("qnn", "HTP emulation", emulated=True)],
    "rocm": [Absent("rocm", "no driver", "Install it.")],
}


@pytest.fixture
def planned(planned: list[Any], monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What would have been measured on the devices of `HERE`."""
    monkeypatch.setattr(execute, "LazyInventory", lambda: HERE)
    return planned


@pytest.mark.parametrize("word", ["nan", "inf", "-3", "0"])
def test_a_limit_that_limits_nothing_is_a_slip(recommend, word):
    code, out, err = recommend("bert-tiny", f"--max-latency-ms={word}")
    assert (code, out) == (2, "")
    assert len(err.splitlines()) == 1
    assert "max_latency_ms" in err


def test_tokens_stand_at_the_head_of_their_column(tmp_path, recommend):
    writes = {
        "model": "gpt2", "family": "text_generation", "sequence_length": None,
        "prompt_tokens": 64, "new_tokens": 16, "latency_p50_ms": 100.0,
    }  # fmt: skip
    tokens = {**writes, "throughput": 160.0, "throughput_unit": "tokens/s"}
    store(tmp_path / DB, tokens)
    _, out, _ = recommend("gpt2", "--hardware", "cpu", "--memory-mb", "5000")
    assert "tokens/s" in out
    assert "items/s" not in out
    assert "* nothing else fits." in out
    items = {**writes, "runtime": "onnxruntime", "throughput": 9.0}
    store(tmp_path / DB, {**items, "throughput_unit": "sequences/s"}, run="s")
    _, out, _ = recommend("gpt2", "--hardware", "cpu", "--memory-mb", "5000", "--explain")
    assert "160 tokens/s" in " ".join(out.split())
    assert "9.00 sequences/s" in " ".join(out.split())


def test_the_front_says_what_it_is_by(tmp_path, recommend):
    own = {"model": "ours", "family": "vision"}
    store(tmp_path / DB, {**own, "memory_peak_mb": None}, {**own, "runtime": "onnxruntime"})
    _, out, _ = recommend("ours", "--max-latency-ms", "50")
    assert "beats it in latency and throughput." in out


# -- measured by --verify


def test_where_nothing_would_change_the_answer_it_says_so(tmp_path, recommend, planned):
    store(tmp_path / DB, {})
    code, _, err = recommend(
        "bert-tiny", "--hardware", "cpu", "--min-throughput", "1e9", "--verify"
    )
    assert (code, planned) == (1, [])
    assert "no case would change the answer" in err


def test_every_setting_of_the_option_is_measured(tmp_path, recommend, planned):
    settings = {"compile": True, "threads": 2}
    store(tmp_path / DB, {"options": settings, "sequence_length": 64, "batch_size": 4})
    code, _, err = recommend("bert-tiny", "--min-throughput", "1", "--verify")
    assert code == 0, err
    (journey,) = planned
    ((case, device),) = [(one.case, one.device) for one in journey.plan.cases]
    assert (case.shapes.batch, case.shapes.sequence) == (4, 64)
    assert case.options == settings
    assert (str(case.target), device.name) == ("pytorch/cpu", "A processor")
    assert journey.settings.threads == 2


def test_another_device_than_the_one_named_is_not_measured(tmp_path, recommend, planned):
    store(tmp_path / DB, {"device_name": "A processor of others"})
    code, _, err = recommend("bert-tiny", "--min-throughput", "1", "--verify")
    assert (code, planned) == (3, [])
    assert "cpu has no device a processor of others" in err


@pytest.mark.parametrize(
    ("hardware", "device", "place"),
    [
        ("cpu", "A processor", "cpu"),
        ("cpu:A processor", None, "cpu"),
        ("cuda", "Another card", "cuda:1"),
        ("cuda:1", None, "cuda:1"),
        ("cuda", None, "cuda"),
        ("openvino", "Arc", "openvino:gpu"),
        ("cuda", "A third card", "cuda:a third card"),
        ("rocm", None, "rocm"),
    ],
)
def test_a_device_is_named_as_a_run_by_hand_would(hardware, device, place):
    one = VerificationCase("bert-tiny", hardware, None, "fp32", 1, "inference", device=device)
    assert one.request(HERE, ()).hardware == (place,)


def test_the_gap_is_filled_for_real(tmp_path, recommend):
    store(tmp_path / DB, {"model": "another"})
    words = ("bert-tiny", "--hardware", "cpu", "--precision", "fp32", "--batch-sizes", "2")
    limits = ("--sequence-length", "32", "--memory-mb", "4000")
    for _ in range(4):  # what it measures beside other tests may be unusable, which answers nothing
        code, out, err = recommend(*words, *limits, "--verify")
        if "unusable" not in err:
            break
    assert code == 0, err
    assert "1 of 1 configurations fit" in " ".join(out.split())
    row, *_ = (one for one in Database(tmp_path / DB).results() if one["model"] == "bert-tiny")
    assert (row["batch_size"], row["sequence_length"]) == (2, 32)
    (found,) = recommend.json(*words, *limits)["recommendations"]
    assert (found["best"]["basis"], found["best"]["batch_size"]) == ("measured", 2)


def test_the_command_by_hand_asks_the_same(tmp_path, recommend, command):
    change = {"runtime": "onnxruntime", "sequence_length": 64, "options": {"threads": 1}}
    store(tmp_path / DB, {**change, "device_name": "A processor, by name"})
    (found,) = recommend.json("bert-tiny", "--memory-mb", "500")["recommendations"]
    words = shlex.split(found["to_verify"][0]["command"])
    assert words[:2] == ["accelbench", "run"]
    code, out, err = command("run")(*words[2:], "--dry-run", "--json")
    assert code == 0, err
    (case,) = json.loads(out)["cases"]
    assert case
    assert "onnxruntime" in out
    assert "64" in out


# -- over stored results


@pytest.mark.usefixtures("measured")
def test_the_best_batch_size_under_a_memory_limit(recommend):
    found = answer(recommend, "bert-tiny", "--hardware", "cpu", "--memory-mb", 2048)
    assert (found["best"]["batch_size"], found["best"]["basis"]) == (8, "measured")
    found = answer(recommend, "bert-tiny", "--hardware", "cpu", "--memory-mb", 200)
    assert found["best"]["batch_size"] == 1
    assert [one["batch_size"] for one in found["does_not_fit"]] == [8]
    code, out, _ = recommend("bert-tiny", "--hardware", "cpu", "--memory-mb", 200)
    assert code == 0
    assert "bert-tiny (inference, seq 128) under --memory-mb 200" in out
    assert "batch 8: memory 300 MB is above 200" in out
    assert all(len(line) <= 80 for line in out.splitlines())


@pytest.mark.usefixtures("measured")
def test_the_front_is_marked(recommend):
    found = answer(recommend, "bert-tiny", "--max-latency-ms", 100)
    front = {(one["hardware"], one["batch_size"]) for one in found["pareto"]}
    assert front == {("cuda", 1)}  # as much memory, less time, more of it
    _, out, _ = recommend("bert-tiny", "--max-latency-ms", 100, "--explain")
    lines = out.splitlines()
    (starred,) = [at for at, line in enumerate(lines) if line.rstrip().endswith("*")]
    assert "cuda" in lines[starred] or "cuda" in lines[starred - 1]  # names may stand above


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("--memory-mb", "1"), 1),
        (("--min-throughput", "1e9"), 1),
        (("--max-power", "100"), 4),  # no power was measured: nobody can tell
        (("--max-power", "100", "--memory-mb", "1"), 1),
    ],
)
@pytest.mark.usefixtures("measured")
def test_where_nothing_fits_it_ends_with_1_and_with_4_where_nobody_knows(recommend, words, code):
    found, out, _ = recommend("bert-tiny", *words)
    assert found == code
    assert "Nothing fits" in out


def test_a_model_that_was_never_measured_cannot_be_told(recommend):
    code, out, _ = recommend("bert-tiny", "--memory-mb", "2048", "--hardware", "cpu")
    assert code == 4
    assert "To measure: accelbench run bert-tiny --hardware cpu" in out.replace("\n", " ")


def test_what_is_to_be_measured_goes_where_it_is_looked_for(recommend, tmp_path):
    """The advice lacked --db: what it measured went into another database."""
    store(tmp_path / "other.duckdb", {"memory_peak_mb": None})
    words = ("bert-tiny", "--memory-mb", "500", "--hardware", "cpu", "--db", "other.duckdb")
    _, out, _ = recommend(*words)
    assert "--db other.duckdb" in " ".join(out.partition("To measure")[2].split())


def test_what_is_only_counted_is_told_in_full_by_explain(tmp_path, recommend):
    rates = ({"scenario": f"served_{name}", "latency_p50_ms": None} for name in "abcdef")
    bare = {"latency_mean_ms": None, "batch_size": None, "throughput": 9.0}
    store(tmp_path / DB, *({**ASKED, **rate, **bare} for rate in rates))
    words = ("bert-tiny", "--min-throughput", 5, "--hardware", "cpu")
    _, short, _ = recommend(*words)
    assert "2 more such: --explain." in " ".join(short.split())
    assert "served_f" not in short
    _, whole, _ = recommend(*words, "--explain")
    assert all(f"served_{name}" in whole for name in "abcdef")


def test_a_way_is_shown_by_what_tells_it_from_others(tmp_path, recommend, monkeypatch):
    monkeypatch.setenv("COLUMNS", "150")
    torch = {**ASKED, "hardware": "cuda", "device_name": "A card", "latency_p50_ms": 1.0}
    rows = [
        {**torch, "compiled": True},
        {**torch, "compiled": False, "latency_p50_ms": 2.0},
        {**ASKED, "runtime": "ncnn", "threads": 16},
        {**ASKED, "runtime": "ncnn", "threads": 1, "latency_p50_ms": 30.0},
    ]
    store(tmp_path / DB, *({**row, "series_key": str(n)} for n, row in enumerate(rows)))
    words = ("bert-tiny", "--hardware", "cpu,cuda")
    for limits in ((), ("--max-latency-ms", 20)):
        _, out, _ = recommend(*words, *limits)
        assert "pytorch compiled fp32" in out
    assert "ncnn fp32 16 threads" in recommend(*words)[1]
    assert "ncnn fp32 1 thread, batch 1: mean latency" in " ".join(out.split())


def test_another_engine_than_the_one_named_is_not_measured(tmp_path, recommend, planned):
    store(tmp_path / DB, {"runtime": "tensorrt"})
    code, _, err = recommend("bert-tiny", "--min-throughput", "1", "--verify")
    assert (code, planned) == (3, [])
    assert "The engine tensorrt is not here" in err


def test_what_is_emulated_is_not_measured(recommend, planned):
    code, _, err = recommend("bert-tiny", "--hardware", "qnn", "--memory-mb", "500", "--verify")
    assert (code, planned) == (3, [])
    assert "qnn" in err

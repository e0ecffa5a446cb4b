"""Comparisons of what others published: versions, submissions, threads, single figures, tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from stored_rows import store

from accelbench.judge.comparison import compared
from accelbench.judge.conditions import differences
from accelbench.judge.questions import AXES
from accelbench.judge.run_noise import Histories
from accelbench.judge.versions import engine_version, versions_apart
from accelbench.present.comparison import document
from accelbench.present.terminal.compare import headings, speed, submission
from asked_rows import row

DB = "accelbench.duckdb"
THEIRS = {"provenance": "imported", "weights_digest": None, "run_id": "import-1"}
NO_LATENCY = {"latency_p50_ms": None, "latency_mean_ms": None}


def submitted(device: str, by: str, rate: float, **changes: Any) -> dict[str, Any]:
    """A result of a benchmark that many submit to."""
    host = changes.pop("host", "A host")
    conditions = {"engine": "TensorRT 10.11", "Submitter": by, "said": {"Processor": host}}
    about = {"hardware": "cuda", "device_name": device, "runtime": "mlperf", "throughput": rate}
    return row(**THEIRS, **NO_LATENCY, **about, conditions=conditions) | changes


def test_published_results():
    # One of eight by the same software stood for all, without a word: they began at 78,464.
    rates = (("Google", 78_464.0), ("Lambda", 102_725.0), ("Dell", 99_000.0))
    rows = [submitted("8x B200", by, rate) for by, rate in rates]
    (lines,) = compared(
        [*rows, submitted("8x H200", "Dell", 51_000.0)], AXES["hardware"], known=Histories()
    )
    assert list(map(submission, lines)) == ["Lambda, fastest of 3: 78,464 … 102,725", "Dell"]
    best, alone = document([lines], AXES["hardware"])
    assert (best["submitter"], best["fastest_of"]) == ("Lambda", 3)
    assert (best["alike_throughput_low"], best["alike_throughput_high"]) == (78_464.0, 102_725.0)
    assert best["alike_item_ms_low"] is None
    assert (alone["fastest_of"], alone["alike_throughput_low"]) == (1, None)
    # Systems are not alike in their devices and hosts.
    one = submitted("1x RTX 4090", "x", 136.0, host="i9-13900K")
    two = submitted("2x RTX 4090", "x", 105.0, host="w7-2495X")
    assert differences(one, two) == ["devices 1 → 2", "host i9-13900K → w7-2495X"]
    assert differences(one, submitted("1x RTX 5090", "y", 200.0, host="i9-13900K")) == [
        "Submitter x → y"
    ]
    cpus = [one | {"hardware": "cpu"}, two | {"hardware": "cpu"}]
    assert differences(*cpus) == ["devices 1 → 2"]  # there the processor is the device
    # A ratio without an interval is marked.
    (lines,) = compared(
        [row(**THEIRS), row(**THEIRS | {"threads": 4, "latency_p50_ms": 2.0})],
        AXES["threads"],
        known=Histories(),
    )
    assert [speed(one, AXES["threads"]) for one in lines] == ["baseline", "4.00×, single"]
    # An engine says its version where figures of several stand together.
    told = [row(conditions={"engine": f"torch {version} eager"}) for version in ("2.4", "2.9")]
    assert [engine_version(one) for one in told] == ["torch 2.4 eager", "torch 2.9 eager"]
    assert engine_version(row(runtime="onnx", conditions={"engine": "onnx"})) == ""
    assert (versions_apart(told), versions_apart(told[:1])) == (True, False)
    ours = {"torch": "2.13", "onnxruntime": "1.31"}
    beside = [row(conditions=ours), row(conditions=ours, runtime="onnxruntime")]
    assert not versions_apart(beside)
    assert versions_apart([one | THEIRS for one in beside])
    # A heading of what others published has its version and threads.
    theirs = row(**THEIRS, conditions={"engine": "torch 2.4 eager"}, threads=1)
    usual = "bert-tiny · fp32 · batch 1 · seq 128"
    assert headings([[theirs, theirs]], AXES["hardware"]) == [
        f"{usual} · 1 thread · torch 2.4 eager"
    ]
    other = theirs | {"threads": 4, "conditions": {"engine": "torch 2.9 eager"}}
    assert headings([[theirs, other]], AXES["hardware"]) == [usual]


@pytest.fixture
def published(tmp_path: Path) -> None:
    """Two tables: in one the devices differ in threads and versions, in the other in engines."""
    theirs = {"provenance": "imported"}
    cards = {"hardware": "qnn", "device_name": "A phone"}

    def ran(engine: str, ms: float, **more: Any) -> dict[str, Any]:
        told = {"engine": engine, "source": {"name": "s"}}
        return {**theirs, "latency_p50_ms": ms, "conditions": told, **more}

    store(
        tmp_path / DB,
        ran("ncnn 1.0", 8.0, runtime="ncnn", threads=16),
        ran("ncnn 1.1", 4.0, runtime="ncnn", threads=4, **cards),
        ran("onnx", 8.0, runtime="onnx", precision="int8"),
        ran("onnx", 40.0, runtime="onnx", precision="int8", **cards),
        ran("qnn", 1.0, runtime="qnn", precision="int8", **cards),
    )


@pytest.mark.usefixtures("published")
def test_a_table_has_threads_and_versions_and_what_is_said_of_it_below_it(compare):
    code, out, _ = compare()
    assert code == 0
    fp32, int8 = out.split("bert-tiny · ")[1:]
    assert "threads" in fp32.splitlines()[2]
    assert "ncnn 1.1" in fp32
    assert "≠ also where the threads are not as many as the baseline's." in fp32
    assert "≠ qnn A phone: engine ncnn 1.0 → ncnn 1.1." in " ".join(fp32.split())
    assert "slower:" not in fp32
    assert "The fastest runtime stands for a place; slower: onnx at qnn A phone." in int8
    assert "threads" not in int8.splitlines()[2]
    found = compare.json()["comparisons"]
    assert {one["engine_version"] for one in found} == {"ncnn 1.0", "ncnn 1.1", None}


def test_tables_by_different_figures_say_each_theirs(tmp_path, compare):
    """A rate of a server stood over “by the time of an item, mean, p90, p99”."""
    rate = {**NO_LATENCY, "throughput": 500.0, "scenario": "server"}
    tail = {**NO_LATENCY, "throughput": None, "latency_p90_ms": 9.0}
    gpu = {"hardware": "cuda", "device_name": "A card"}
    store(tmp_path / DB, rate, {**rate, **gpu}, tail, {**tail, **gpu})
    out = compare()[1]
    by_tail, by_rate = sorted(out.split("bert-tiny · ")[1:], key=lambda one: "server" in one)
    assert "Times as fast: by the p90 time of an item." in by_tail
    assert "Times as fast: by the rate of items" in by_rate


def test_the_figure_that_is_unusable_is_marked_and_not_the_one_beside_it(tmp_path, compare):
    """“refused” stood on the row that was sound; its baseline was shown plain."""
    sound = {"runtime": "onnxruntime", "latency_p50_ms": 2.0}
    store(tmp_path / DB, {"quality": "unusable"}, sound)
    out = compare("--by", "engine")[1]
    assert "8.00?" in out
    assert "2.00?" not in out
    assert "1 not compared, its baseline is unusable: interval wider than ±25 %." in out


def test_lines_of_a_pivot_say_their_versions(tmp_path, compare):
    """NHWC by torch 2.1 stood beside NCHW by torch 2.9, unmarked."""
    sides = [
        {
            "provenance": "imported",
            "conditions": {"engine": f"torch {version} eager", "source": {"name": "s"}},
            "options": {"layout": layout},
        }
        for layout, version in (("nhwc", "2.1"), ("nchw", "2.9"))
    ]
    store(tmp_path / DB, *sides)
    out = compare("--pivot")[1]
    assert "torch 2.1 eager" in " ".join(out.split())
    lines = [line for one in compare.json("--pivot")["pivots"] for line in one["lines"]]
    assert {line["engine_version"] for line in lines} == {"torch 2.1 eager", "torch 2.9 eager"}

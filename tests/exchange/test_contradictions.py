"""Results that contradict themselves are refused by their field, whichever way they come in."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from foreign_files import bring
from honest import document, honest

from accelbench.core.columns import BY_NAME
from accelbench.core.errors import UsageError
from accelbench.core.facts import RESULT, Fact
from accelbench.core.vocabulary import Timing
from accelbench.exchange.baselines import read_baseline
from accelbench.exchange.imports.reading import read_import
from accelbench.exchange.imports.records import MalformedError
from accelbench.measure.summary import Resolution, summarise
from accelbench.store.database import Database
from accelbench.store.journal import encode
from accelbench.store.merge_validation import ConflictError

MEAN = 425.8
#: An interval of ±37 % of the median, of enough samples to be judged.
WIDE: dict[str, Any] = {"samples": {}, "sampling": {}, "sample_count": 40}
WIDE |= {"latency_min_ms": 100.0, "latency_ci_low_ms": 250.0, "latency_ci_high_ms": 550.0}
WIDE |= {"latency_max_ms": 900.0}
#: Changed values, and the column that is named.
CORRUPTED: list[tuple[dict[str, Any], str]] = [
    ({"latency_p50_ms": 38.0, "latency_min_ms": None, "latency_ci_low_ms": None}, "latency_p50_ms"),
    ({"latency_mean_ms": MEAN * 1.01, "throughput": 1e3 / MEAN / 1.01}, "latency_mean_ms"),
    ({"latency_max_ms": 999.0}, "latency_max_ms"), ({"latency_min_ms": 300.0}, "latency_min_ms"),
    ({"latency_std_ms": 5.0}, "latency_std_ms"),
    ({"latency_ci_low_ms": 100.0}, "latency_ci_low_ms"),
    ({"latency_ci_low_ms": 401.9, "latency_ci_high_ms": 402.1}, "latency_ci_low_ms"),
    ({"latency_ci_high_ms": 402.0}, "latency_ci_high_ms"),
    ({"host_memory_peak_mb": 10.0, "host_memory_avg_mb": 50.0}, "host_memory_peak_mb"),
    ({"throughput": 1e3 / MEAN * 1.05}, "throughput"),
    ({"throughput": 1e3 / MEAN * 2}, "throughput"),
    ({"samples": {"step": [1, 2, 3, 4, 5]}}, "latency_mean_ms"),
    ({"samples": {"step": []}, "sample_count": 0}, "samples"),
    ({"sample_count": None}, "sample_count"), ({"sampling_ms": 100.0}, "sampling_ms"),
    ({"model": "gpt2-tiny"}, "case_id"), ({"precision": "fp16"}, "case_id"),
    ({"runtime": "jax"}, "case_id"), ({"sequence_length": 64}, "case_id"),
    ({"options": {"lr": 0.2}}, "case_id"), ({"mode": "training"}, "case_id"),
    ({"case_id": "0" * 16}, "result_id"), ({"device": "cuda:0"}, "result_id"),
    ({"launch": 3}, "result_id"), ({"arm": "this"}, "result_id"), ({"run_id": "s"}, "result_id"),
    ({"device_fingerprint": "0" * 16}, "series_key"), ({"threads": 1}, "series_key"),
    ({"status": "failed"}, "reason"), ({"cpu_wait_share": 0.7}, "quality"), (WIDE, "quality"),
    ({"precision_proof": None}, "precision_proof"), ({"memory_peak_mb": None}, "memory_peak_mb"),
    ({"cpu_wait_share": 0.7, "quality": None}, "quality"), ({"flops": 1e25}, "latency_mean_ms"),
    ({"latency_mean_ms": -7.0}, "latency_mean_ms"), ({"memory_peak_mb": -1.0}, "memory_peak_mb"),
    ({"verification": "certainly"}, "verification"),
    ({"started_at": "2999-01-01T00:00:00Z"}, "started_at"),
]  # fmt: skip
SCORED = {"accuracy": 0.5, "accuracy_metric": "top1", "accuracy_samples": 2}
SCORED |= {"accuracy_per_sample": [1.0, 0.0]}
#: Side values that are physically impossible, and the column that is named.
IMPOSSIBLE: list[tuple[dict[str, Any], str]] = [
    ({"accuracy": 1.7, "accuracy_metric": "top1"}, "accuracy"),
    ({"accuracy": 1.7}, "accuracy"),
    ({"accuracy": 0.9, "accuracy_high": 1.1, "accuracy_metric": "f1"}, "accuracy_high"),
    ({"accuracy": 0.2, "accuracy_metric": "perplexity"}, "accuracy"),
    (SCORED | {"accuracy": 1.0}, "accuracy"),
    (SCORED | {"accuracy_samples": 3}, "accuracy_samples"),
    ({"power_watts": 1e7}, "power_watts"),
    ({"idle_power_watts": 1e7}, "idle_power_watts"),
    ({"energy_joules": 1e7}, "energy_joules"),
    ({"energy_steps": 1000, "energy_window_ms": 5000.0}, "energy_steps"),
    ({"prefill_ms": 900.0, "decode_ms": 1500.0}, "decode_ms"),
    ({"prefill_ms": 1e-6, "decode_ms": 1e6}, "decode_ms"),
    ({"memory_peak_mb": 1e-6}, "memory_peak_mb"),
    ({"memory_peak_mb": 1e9}, "memory_peak_mb"),
    ({"device_memory_peak_mb": 1e-6}, "device_memory_peak_mb"),
    ({"first_inference_ms": 1e-3}, "first_inference_ms"),
    ({"device_time_ms": 1e-4}, "device_time_ms"),
    ({"verification": "failed"}, "verification"),
    ({"self_check": "failed"}, "self_check"),
]
#: What may be: the same values within their bounds.
POSSIBLE: list[dict[str, Any]] = [
    {"accuracy": 1.0, "accuracy_low": 0.9, "accuracy_high": 1.0, "accuracy_metric": "top5"},
    {"accuracy": 31.7, "accuracy_metric": "perplexity"},
    SCORED,
    {"power_watts": 1500.0, "idle_power_watts": 90.0, "energy_joules": 600.0},
    {"energy_steps": 12, "energy_window_ms": 5000.0},
    {"prefill_ms": 300.0, "decode_ms": 700.0},
    {"device_memory_peak_mb": 0.0},
    {"first_inference_ms": 371.0, "device_time_ms": 40.0},
    {"verification": "not_done", "self_check": "not_done"},
]
each_corrupted = pytest.mark.parametrize(
    ("changed", "column"), [*CORRUPTED, *IMPOSSIBLE], ids=lambda one: str(one)[:50]
)


def write(path: Path, *bodies: dict[str, Any]) -> Path:
    path.write_text(document(*bodies))
    return path


@pytest.mark.parametrize("kind", ["independent", "alternating", "opposed", "few values"])
def test_an_honest_interval_spans_more_ranks_than_are_needed(kind, tmp_path):
    draw = np.random.default_rng(1)
    for count in (5, 8, 30, 31, 240):
        steps = draw.normal(4e8, 1e7, count)
        if kind == "alternating":
            steps[::2] += 5e7
        elif kind == "opposed":
            steps[1:] -= 0.9 * (steps[:-1] - 4e8)
        elif kind == "few values":
            steps = 1e8 * draw.integers(1, 5, count)
        samples = [int(ns) for ns in steps]
        summary = summarise(samples, Resolution(Timing.EACH, 1), 1)
        body = honest() | {"samples": {"step": samples}, "sampling_ms": sum(samples) / 1e6}
        body["quality"] = "unusable"  # of few values it is wider than ±25 %
        body |= {name: value for name, value in summary.items() if name in body}
        read_import("json", write(tmp_path / "r.json", body))


@each_corrupted
def test_an_import_refuses_it(changed, column, tmp_path):
    with pytest.raises(MalformedError) as caught:
        read_import("json", write(tmp_path / "r.json", honest() | changed))
    assert caught.value.field == column
    assert caught.value.line is not None


@pytest.mark.parametrize(
    "changed",
    [
        WIDE | {"quality": "unusable"},
        {"cpu_wait_share": 0.7, "quality": "unusable"},
        WIDE | {"sample_count": 29},  # as many as were asked for
        {"memory_peak_mb": None, "nulls": None},  # a table without that column
        {"quality": "fixed", "cpu_wait_share": 0.5},
    ],
    ids=lambda one: str(one)[:50],
)
def test_what_the_rules_of_quality_allow_is_taken(changed, tmp_path):
    path = write(tmp_path / "r.json", honest() | changed)
    assert read_import("json", path).results == 1


@pytest.mark.parametrize(
    ("changed", "column"),
    [*CORRUPTED[:8], *CORRUPTED[-10:-5], *IMPOSSIBLE],
    ids=lambda one: str(one)[:50],
)
def test_a_baseline_is_checked_alike(changed, column, tmp_path):
    assert read_baseline(write(tmp_path / "good.json", honest())).rows
    with pytest.raises(MalformedError) as caught:
        read_baseline(write(tmp_path / "r.json", honest() | changed))
    assert caught.value.field == column


@pytest.mark.parametrize("changed", POSSIBLE, ids=lambda one: str(one)[:50])
def test_side_values_within_their_bounds_are_taken(changed, tmp_path):
    path = write(tmp_path / "r.json", honest() | changed)
    assert read_import("json", path).results == 1
    assert read_baseline(path).rows


@pytest.mark.parametrize(("changed", "column"), IMPOSSIBLE, ids=lambda one: str(one)[:50])
def test_a_record_of_another_program_is_bounded_too(changed, column, tmp_path):
    foreign = {name: value for name, value in honest().items() if name not in _OURS}
    with pytest.raises(MalformedError) as caught:
        read_import("json", write(tmp_path / "r.json", foreign | changed))
    assert caught.value.field == column


_OURS = ("protocol_version", "samples", "sampling", "nulls")


def test_a_merge_refuses_impossible_side_values(tmp_path):
    there = Database(tmp_path / "b.duckdb")
    bring(there, "json", write(tmp_path / "r.json", honest()))
    with duckdb.connect(str(there.path)) as con:
        con.execute("UPDATE fact_result SET power_watts = 1e7")
    merged = Database(tmp_path / "a.duckdb").merge(there.path)
    assert (merged.results, merged.refused) == (0, 1)
    assert "power_watts: " in merged.problems[0]


def test_a_journal_keeps_what_a_database_refuses(tmp_path):
    """A line with a right checksum is no evidence: -7 ms was stored as measured and ok."""
    database = Database(tmp_path / "a.duckdb")
    database.ensure()
    database.journals.mkdir()
    wrong = [*CORRUPTED, *IMPOSSIBLE]
    bodies = [honest() | changed for changed, _ in wrong]
    facts = [Fact(RESULT, f"bad-{n}", body) for n, body in enumerate(bodies)]
    good = honest()
    facts.append(Fact(RESULT, good["result_id"], good))
    journal = database.journals / "r.jsonl"
    journal.write_bytes(b"".join(map(encode, facts)))
    before = journal.read_bytes()
    filled = database.fill()
    assert (filled.results, filled.refused) == (1, len(wrong))
    assert [row["result_id"] for row in database.results()] == [good["result_id"]]
    refused: Any = database.status()["refused"]
    assert {one["result_id"] for one in refused} == {f"bad-{n}" for n in range(len(wrong))}
    assert all(one["why"].partition(":")[0] in BY_NAME for one in refused)
    assert journal.read_bytes() == before


def test_a_merge_refuses_what_a_doctored_database_has(tmp_path):
    there = Database(tmp_path / "b.duckdb")
    bring(there, "json", write(tmp_path / "r.json", honest()))
    with duckdb.connect(str(there.path)) as con:
        con.execute("UPDATE fact_result SET precision = 'fp16'")
    merged = Database(tmp_path / "a.duckdb").merge(there.path)
    assert (merged.results, merged.refused) == (0, 1)
    assert "case_id: " in merged.problems[0]
    with duckdb.connect(str(there.path)) as con:
        con.execute("UPDATE fact_result SET precision = 'fp32'")
        con.execute("UPDATE fact_samples SET samples = list_transform(samples, lambda x: x // 2)")
    merged = Database(tmp_path / "c.duckdb").merge(there.path)
    assert (merged.results, merged.refused) == (0, 1)
    assert "latency_mean_ms: " in merged.problems[0]


@pytest.mark.parametrize("column", ["device_name", "verification", "seed"])
def test_it_is_there_already_only_if_it_is_the_same(column, tmp_path):
    database = Database(tmp_path / "a.duckdb")
    first = honest() | {"verification": "reference", "seed": 0}
    assert bring(database, "json", write(tmp_path / "r.json", first)) == 1
    assert bring(database, "json", tmp_path / "r.json") == 0
    other = {"device_name": "Another", "verification": "ok", "seed": 1}[column]
    with pytest.raises(ConflictError) as caught:
        bring(database, "json", write(tmp_path / "s.json", first | {column: other}))
    assert caught.value.column == column


@pytest.mark.parametrize("form", ["json", "csv", "parquet"])
def test_what_was_exported_comes_in_again(form, tmp_path):
    failed = honest() | {"status": "failed", "reason": "crash", "launch": 0}
    failed = {k: v for k, v in failed.items() if not k.startswith(("latency", "sampl", "through"))}
    from accelbench.present.table_export import export_table

    database = Database(tmp_path / "a.duckdb")
    bring(database, "json", write(tmp_path / "r.json", honest()))
    other = Database(tmp_path / "b.duckdb")
    bring(other, "json", write(tmp_path / "f.json", failed))
    for number, store in enumerate((database, other)):
        path = tmp_path / f"e{number}.{form}"
        export_table(path, store, form, samples=True, runs={})
        found = read_import(form, path)
        assert found.results == 1
        again = store.bring_in(found.run_id, found.facts, found.bodies, found.queries)
        assert again.results == 0


TIMM = "benchmark-infer-amp-nhwc-pt240-cu124-rtx4090.csv"
HEADER = "model,infer_img_size,infer_samples_per_sec,infer_step_time,infer_batch_size,param_count"


@pytest.mark.parametrize(
    ("size", "parameters", "taken"),
    [("224", "25.6", False), ("", "25.6", False), ("224", "", False), ("32", "0.01", True)],
)
def test_a_rate_that_no_device_reaches_is_refused(size, parameters, taken, tmp_path):
    """1e8 images a second: too many operations, or more bytes than the card's memory gives."""
    path = tmp_path / TIMM
    good = "resnet50,224,4000,64.0,256,25.6\n"
    path.write_text(f"{HEADER}\n{good}resnet50,{size},1e8,0.00256,256,{parameters}\n")
    if taken:
        assert read_import("timm", path).results == 2
        return
    with pytest.raises(UsageError) as caught:
        read_import("timm", path)
    assert isinstance(caught.value, MalformedError)
    assert (caught.value.field, caught.value.line) == ("latency_mean_ms", 3)


def test_a_result_of_another_tool_has_no_case_to_recompute(tmp_path):
    body = honest() | {"protocol_version": None, "conditions": {}, "case_id": "theirs"}
    path = write(tmp_path / "r.json", body)
    assert json.loads(path.read_text())["results"][0]["case_id"] == "theirs"
    assert read_import("json", path).results == 1

"""aggregated_benchmarks.json: the right figures from the right results, whole at any moment."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from bodies import body
from power import every_cut

from accelbench.core.columns import BY_NAME
from accelbench.exchange import result_file
from accelbench.exchange.aggregate import (
    ENOUGH_SAMPLES,
    SCHEMA_ID,
    AggregateRows,
    aggregate,
    aggregate_schema,
    format_schema,
    read_folder,
    update_aggregate,
)
from accelbench.exchange.result_file import to_row

WHEN = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
RUN = {"run_id": "r", "started_at": "2026-01-02T03:04:05.000000Z", "git_commit": "abc"}


def check(document: Any) -> None:
    schema = aggregate_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(document, schema, jsonschema.Draft202012Validator)


def ok(batch: int, ms: float, **more: Any) -> dict[str, Any]:
    """A result of resnet-tiny: batch ÷ ms items a millisecond."""
    name = "-".join(map(str, (batch, ms, *more.values())))
    return body(
        **{
            "result_id": name, "run_id": "r", "case_id": f"batch {batch}", "model": "resnet-tiny",
            "device": "cpu:0", "mode": "inference", "image_size": 64, "batch_size": batch,
            "latency_p50_ms": ms, "latency_mean_ms": ms, "throughput": 1000 * batch / ms,
            "throughput_unit": "images/s", "memory_peak_mb": 10.0 + batch, "quality": "converged",
            **more,
        },
    )  # fmt: skip


def aggregated(*bodies: dict[str, Any]) -> dict[str, Any]:
    document = aggregate(AggregateRows([to_row(one) for one in bodies]))
    check(json.loads(json.dumps(document, allow_nan=False)))
    return document


def entry(*bodies: dict[str, Any]) -> dict[str, Any]:
    (one,) = aggregated(*bodies)["entries"]
    return dict(one)


def test_the_schema():
    # The published schema is up to date.
    published = Path(__file__).parents[2] / "docs" / "aggregate-schema.json"
    assert published.read_text(encoding="utf-8") == format_schema(), (
        "python -m accelbench.exchange.aggregate > docs/aggregate-schema.json"
    )
    # Every figure named is a column.
    from accelbench.exchange.aggregate import OTHER_COLUMNS, QUESTION

    assert set(QUESTION) | set(OTHER_COLUMNS) <= BY_NAME.keys()


def test_the_best_figures():
    # The best figures come with their batch.
    found = entry(ok(1, 4.0), ok(8, 8.0), ok(32, 40.0))  # 250, 1000 and 800 images/s
    assert found["best_latency"] == {
        "latency_ms": 4.0,
        "latency_statistic": "p50",
        "batch_size": 1,
        "flags": [],
    }
    assert found["best_throughput"] == {
        "throughput": 1000.0,
        "unit": "images/s",
        "batch_size": 8,
        "flags": [],
    }
    assert (found["memory_peak"]["memory_peak_mb"], found["memory_peak"]["batch_size"]) == (42, 32)
    # 1000 at batch 8, where 8 times the 250 of batch 1 would be 2000.
    assert found["batch_scaling_efficiency"] == pytest.approx(0.5)
    assert [one["batch_size"] for one in found["batches"]] == [1, 8, 32]
    assert entry(ok(4, 4.0), ok(8, 4.0))["batch_scaling_efficiency"] == pytest.approx(1.0)


@pytest.mark.parametrize("bodies", [[ok(8, 4.0)], [ok(1, 1.0), ok(8, 16.0)], []])
def test_no_efficiency_where_there_is_nothing_to_compare(bodies):
    refused = ok(2, 1.0, status="failed", throughput=None, latency_p50_ms=None)
    assert entry(*bodies, refused)["batch_scaling_efficiency"] is None


def test_launches_of_a_batch():
    # Of several launches the median counts not the luckiest.
    found = entry(*(ok(1, ms, launch=i) for i, ms in enumerate((5.0, 1.0, 4.0))))
    assert found["best_latency"]["latency_ms"] == 4.0
    assert found["best_throughput"]["throughput"] == 250.0
    assert found["batches"][0]["results"] == 3
    # Medians and means are not mixed.
    too_short = ok(1, 3.0, latency_p50_ms=None)
    found = entry(ok(1, 1.0, latency_mean_ms=2.0), too_short)["best_latency"]
    assert (found["latency_ms"], found["latency_statistic"]) == (2.5, "mean")
    # Only the batch varies within an entry.
    others = [
        {"model": "bert-tiny"}, {"hardware": "cuda", "device": "cuda:0"}, {"device": "cpu:1"},
        {"runtime": "onnxruntime"}, {"precision": "bf16"}, {"mode": "training"},
        {"image_size": 128}, {"options": {"compile": True}}, {"weights": "google/some"},
    ]  # fmt: skip
    document = aggregated(ok(1, 1.0), ok(2, 1.0), *(ok(1, 2.0, **more) for more in others))
    assert len(document["entries"]) == 1 + len(others)
    assert document["results"] == 2 + len(others)
    assert {"image_size": 128} in [one["shape"] for one in document["entries"]]
    # Doubtful results stay and are flagged.
    found = entry(ok(1, 4.0), ok(8, 8.0, quality="throttled"), ok(8, 8.0, quality="unsteady"))
    assert found["flags"] == ["throttled", "unsteady"]
    assert found["best_throughput"]["flags"] == ["throttled", "unsteady"]
    assert found["best_latency"]["flags"] == []


def test_times_that_do_not_count():
    # Nothing is the best by a time that is unusable.
    found = entry(ok(1, 4.0), ok(8, 1.0, quality="unusable"))
    assert found["best_latency"]["batch_size"] == found["best_throughput"]["batch_size"] == 1
    assert found["flags"] == ["unusable"]
    assert [one["latency_ms"] for one in found["batches"]] == [4.0, 1.0]
    assert entry(ok(8, 1.0, quality="unusable"))["best_latency"] is None
    launches = [ok(8, 4.0), ok(8, 40.0, quality="unusable"), ok(8, 5.0, quality="fixed")]
    assert entry(*launches)["best_latency"]["latency_ms"] == 4.5
    # Results of few samples are flagged and a time limit alone is not.
    found = entry(
        ok(1, 4.0, sample_count=30, quality="time_limited"),
        ok(2, 4.0, sample_count=29, quality="time_limited"),
        ok(8, 8.0, sample_count=3, quality="unsteady"),
        ok(8, 8.0, sample_count=100),
        ok(32, 80.0),  # imported, say: nobody counted
    )
    flags = {one["batch_size"]: one["flags"] for one in found["batches"]}
    assert flags == {1: [], 2: ["few_samples"], 8: ["few_samples", "unsteady"], 32: []}
    assert found["flags"] == ["few_samples", "unsteady"]
    assert found["best_throughput"]["flags"] == ["few_samples", "unsteady"]
    # Few samples are those that the measuring rules call few.
    from accelbench.measure.stopping import StoppingRule

    assert StoppingRule().minimum == ENOUGH_SAMPLES


def test_what_was_not_measured():
    # What was not measured feeds nothing.
    document = aggregated(
        ok(1, 4.0, provenance="imported"),
        ok(1, 0.1, provenance="predicted"),
        ok(1, 0.1, provenance="simulated"),
        ok(1, 0.1, provenance="dreamt"),
    )
    assert document["left_out"] == {"predicted": 1, "simulated": 1, "unknown": 1}
    (found,) = document["entries"]
    assert found["best_latency"]["latency_ms"] == 4.0
    assert found["provenance"] == ["imported"]
    # Emulated results are counted and their times are not used.
    found = entry(ok(1, 4.0, emulated=True))
    assert found["emulated"]
    assert found["status_counts"] == {"ok": 1}
    assert found["best_latency"] is found["best_throughput"] is None
    assert found["batches"] == []
    # What did not work is counted by status.
    document = aggregated(
        ok(1, 4.0),
        ok(8, 0.1, status="out_of_memory"),
        ok(32, 0.1, status="out_of_memory"),
        ok(1, 0.1, status="wonderful", launch=1),
    )
    counts = {"ok": 1, "out_of_memory": 2, "unknown": 1}
    assert document["status_counts"] == counts
    assert document["entries"][0]["status_counts"] == counts
    assert document["entries"][0]["best_latency"]["latency_ms"] == 4.0
    assert aggregated()["entries"] == []


# -- from files


def test_it_is_made_of_all_result_files_of_the_folder(tmp_path):
    raw = tmp_path / "raw_results"
    result_file.write_results(raw, RUN, [ok(1, 4.0), ok(1, 4.0, hardware="cuda")], WHEN)
    path = update_aggregate(tmp_path)
    assert path == tmp_path / "processed_results" / "aggregated_benchmarks.json"
    first = json.loads(path.read_text(encoding="utf-8"))
    result_file.write_results(raw, {**RUN, "run_id": "s"}, [ok(8, 8.0, run_id="s")], WHEN)
    update_aggregate(tmp_path)
    second = json.loads(path.read_text(encoding="utf-8"))
    for document in (first, second):
        check(document)
        assert document["schema"] == SCHEMA_ID
    assert (first["files"], first["results"]) == (2, 2)
    assert (second["files"], second["results"]) == (3, 3)
    assert [run["run_id"] for run in second["runs"]] == ["r", "s"]
    assert second["runs"][0]["git_commit"] == "abc"
    cpu = next(one for one in second["entries"] if one["hardware"] == "cpu")
    assert cpu["run_ids"] == ["r", "s"]
    assert cpu["best_throughput"]["batch_size"] == 8
    assert list(path.parent.iterdir()) == [path]  # and nothing temporary


def test_a_result_that_is_in_two_files_counts_once(tmp_path):
    raw = tmp_path / "raw_results"
    for _ in range(2):
        result_file.write_results(raw, RUN, [ok(1, 4.0)], WHEN)
    assert aggregate(read_folder(raw))["results"] == 1


def test_other_files_are_skipped_and_listed(tmp_path):
    raw = tmp_path / "raw_results"
    result_file.write_results(raw, RUN, [ok(1, 4.0)], WHEN)
    good = result_file.build_document(RUN, [ok(1, 4.0)])
    others = {
        "a-torn.json": json.dumps(good)[:-20],
        "b-foreign.json": '{"results": []}',
        "c-list.json": "[1, 2]",
        "d-strange.json": json.dumps({**good, "results": [1]}),
        "e-binary.json": "\x00",
    }
    for name, content in others.items():
        (raw / name).write_text(content)
    (raw / "notes.txt").write_text("not looked at")
    (raw / "f-folder.json").mkdir()
    update_aggregate(tmp_path)
    document = json.loads(
        (tmp_path / "processed_results" / "aggregated_benchmarks.json").read_text()
    )
    check(document)
    assert document["results"] == 1
    skipped = {one["file"]: one["reason"] for one in document["skipped_files"]}
    assert list(skipped) == [*others, "f-folder.json"]
    assert skipped["a-torn.json"].startswith("it is not valid JSON: line 1")
    assert "schema" in skipped["b-foreign.json"]


def test_values_of_other_types_are_set_aside(tmp_path):
    raw = tmp_path / "raw_results"
    document = result_file.build_document(RUN, [ok(1, 4.0)])
    document["results"][0] |= {"latency_p50_ms": "fast", "batch_size": 0, "flops": True}
    raw.mkdir()
    (raw / "x.json").write_text(json.dumps(document))
    (found,) = aggregate(read_folder(raw))["entries"]
    assert found["batches"] == []


def test_a_folder_without_results_has_an_empty_document(tmp_path):
    document = json.loads(update_aggregate(tmp_path).read_text())
    check(document)
    assert document["files"] == 0


def test_power_cuts_leave_the_old_document_or_the_new_one(tmp_path):
    numbers = iter(range(10**6))

    def make() -> Path:
        root = tmp_path / str(next(numbers))
        result_file.write_results(root / "raw_results", RUN, [ok(1, 4.0)], WHEN)
        update_aggregate(root)
        result_file.write_results(root / "raw_results", RUN, [ok(8, 8.0)], WHEN)
        return root

    def act(root: Path, files: Any) -> None:
        update_aggregate(root, files)

    found = set()
    for root, where in every_cut(make, act):
        path = root / "processed_results" / "aggregated_benchmarks.json"
        found.add(json.loads(path.read_text(encoding="utf-8"))["results"])
        assert found <= {1, 2}, where
    assert found == {1, 2}

"""What a report says of task accuracy: a line a cell, and what a precision costs in pairs."""

from __future__ import annotations

from typing import Any

from dashboard_world import result, store

from accelbench.judge.accuracies import accuracy_places
from accelbench.judge.points import points
from accelbench.present.charts.chart import Subject
from accelbench.present.markdown import as_markdown
from accelbench.present.report_data import known_in
from accelbench.present.report_parts import ReportData, report
from accelbench.store.database import Database
from asked_rows import row


def measured(number: int, **more: Any) -> dict[str, Any]:
    figures = {
        "result_id": f"x{number}", "case_id": f"c{number}", "latency_p50_ms": 8.0,
        "latency_mean_ms": 8.0, "throughput": 125.0, "sample_count": 50,
        "started_at": "2026-01-02T03:04:05.000000Z",
    }  # fmt: skip
    return row(**(figures | more))


def accuracy(right: int, digest: str = "d") -> dict[str, Any]:
    return {
        "accuracy": right / 200, "accuracy_low": right / 200 - 0.04,
        "accuracy_high": right / 200 + 0.03, "accuracy_samples": 200, "accuracy_metric": "top1",
        "accuracy_per_sample": [1.0] * right + [0.0] * (200 - right), "accuracy_digest": digest,
    }  # fmt: skip


def told(*rows: dict[str, Any]) -> str:
    accuracies = accuracy_places(rows, {})
    subject = Subject(points(rows), machine="lab", rows=rows, accuracies=accuracies)
    data = ReportData(subject, [], "lab.duckdb", "2026-01-03T00:00:00Z")
    return as_markdown(report(data))


def test_accuracy_in_a_report():
    # A report says what a precision costs.
    text = told(
        measured(0, **accuracy(180)),
        measured(1, batch_size=8, **accuracy(180)),
        measured(2, precision="int8", **accuracy(160)),
    )
    section = text.partition("## Task accuracy")[2].partition("\n## ")[0]
    assert section.count("| 90.0 % |") == 1  # batches once
    assert "| 80.0 % | 76.0 % to 83.0 % | 200 |" in section
    assert "top-1 −10.0 points (−14." in section
    assert "on the same 200 samples: 20 lost, 0 gained." in section
    # What is not of the same samples is not held against each other.
    text = told(measured(0, **accuracy(180)), measured(2, precision="int8", **accuracy(160, "e")))
    assert "top-1 is not compared with fp32: they are not of the same samples." in text
    assert "Task accuracy" not in told(measured(0))


LATER = {"started_at": "2026-02-02T03:04:05.000000Z", "finished_at": "2026-02-02T03:04:06.000000Z"}


def section(database: Database) -> str:
    text = as_markdown(report(known_in(database, {}, None)))
    return text.partition("## Task accuracy")[2].partition("\n## ")[0]


def test_a_later_run_without_labelled_data_hides_no_accuracy(tmp_path):
    database = Database(tmp_path / "results.duckdb")
    fp32, int8 = accuracy(180), {"precision": "int8", **accuracy(160)}
    store(database, "run-1", result(**fp32), result(**int8))
    store(database, "run-2", result(**LATER), result(precision="int8", **LATER))
    told_now = section(database)
    assert "| 90.0 % | 86.0 % to 93.0 % | 200 | 2026-01-02 |" in told_now
    assert "on the same 200 samples: 20 lost, 0 gained." in told_now
    assert "other weights" not in told_now


def test_an_accuracy_is_of_the_newest_labelled_data_and_its_cost_of_the_same(tmp_path):
    database = Database(tmp_path / "results.duckdb")
    first = [result(**accuracy(180)), result(precision="int8", **accuracy(160))]
    store(database, "run-1", *first)
    store(database, "run-2", result(**accuracy(170, "e"), **LATER))
    told_now = section(database)
    assert "| 85.0 % |" in told_now
    assert "| 90.0 % |" not in told_now
    assert "20 lost, 0 gained." in told_now  # against the fp32 of run-1, of the same samples


def test_an_accuracy_of_other_weights_says_so(tmp_path):
    database = Database(tmp_path / "results.duckdb")
    store(database, "run-1", result(**accuracy(180)))
    changed = result(precision="int8", weights_digest="v2", **accuracy(160), **LATER)
    store(database, "run-2", result(weights_digest="v2", **LATER), changed)
    told_now = section(database)
    assert "fp32: its accuracy is of other weights than its figures" in told_now
    assert "int8: accuracy is not compared with fp32: it is of other weights." in told_now

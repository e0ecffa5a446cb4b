"""What a report says of task accuracy: a line a cell, and what a precision costs in pairs."""

from __future__ import annotations

from typing import Any

from accelbench.analysis.points import points
from accelbench.report.charts.chart import Subject
from accelbench.report.full_report.as_markdown import markdown
from accelbench.report.full_report.parts import ReportData, report
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
    subject = Subject(points(rows), machine="lab", rows=rows)
    data = ReportData(subject, [], "lab.duckdb", "2026-01-03T00:00:00Z")
    return markdown(report(data), {})


def test_a_report_says_what_a_precision_costs() -> None:
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


def test_what_is_not_of_the_same_samples_is_not_held_against_each_other() -> None:
    text = told(measured(0, **accuracy(180)), measured(2, precision="int8", **accuracy(160, "e")))
    assert "top-1 is not held against fp32: they are not of the same samples." in text
    assert "Task accuracy" not in told(measured(0))

from accelbench.core.columns import COLUMNS
from accelbench.core.vocabulary import Status
from accelbench.exchange.result_file import to_entry, to_row


def test_rows_of_an_export():
    # Every column in order and none where absent.
    row = to_row({"model": "m", "batch_size": 8, "status": Status.OK, "input_shape": (8, 3)})
    assert list(row) == [column.name for column in COLUMNS]
    known = {name: value for name, value in row.items() if value is not None}
    assert known == {"model": "m", "batch_size": 8, "status": "ok", "input_shape": "[8,3]"}
    row = to_row({"compiled": False, "launch": 0, "warnings": []})
    assert (row["compiled"], row["launch"], row["warnings"]) == (False, 0, [])
    # Times have one spelling.
    row = to_row({"started_at": "2026-01-02T05:04:05+02:00", "finished_at": "2026-01-02T03:04:06Z"})
    assert row["started_at"] == "2026-01-02T03:04:05.000000Z"
    assert row["finished_at"] == "2026-01-02T03:04:06.000000Z"
    # An entry stands alone with its samples.
    entry = to_entry({"model": "m", "samples": {"step": [1, 2]}})
    assert entry["samples"] == {"step": [1, 2]}
    assert "samples" not in to_entry({"model": "m"})
    steps = {"step": {"timing": "whole", "steps": [26, 26]}}
    assert to_entry({"samples": {"step": [1, 2]}, "sampling": steps})["sampling"] == steps
    assert entry["sampling"] == {}
    assert "samples" not in to_row({"samples": {"step": [1]}})
    # Nothing that json cannot hold gets in.
    row = to_row({"latency_mean_ms": float("nan"), "throughput": float("inf"), "batch_size": True})
    assert (row["latency_mean_ms"], row["throughput"], row["batch_size"]) == (None, None, None)
    assert to_row({"evidence": {"x": [float("nan")]}})["evidence"] is None
    assert row["warnings"] == [
        "batch_size was not stored: true is not a whole number of 64 bits",
        "latency_mean_ms was not stored: NaN is not a number",
        "throughput was not stored: Infinity is not a number",
    ]

"""What earlier results took by the clock, beside their steps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from accelbench.core.facts import RESULT, RUN_STARTED, Fact
from accelbench.judge.older_runs import EarlierTimes, earlier_times
from accelbench.store.database import Database
from accelbench.store.journal import Journal


def times(path: Path, *changes: dict[str, Any]) -> EarlierTimes:
    """Of results of one run, each beginning and ending at a second of one minute."""
    database = Database(path / "a.duckdb")
    database.ensure()
    with Journal.create(database.journals, "r") as journal:
        journal.append(Fact(RUN_STARTED, "r", {"started_at": "2026-01-01T00:00:00Z"}))
        for number, change in enumerate(changes):
            begins, ends = change.pop("at")
            result = {
                "run_id": "r", "model": "bert-tiny", "mode": "inference", "hardware": "cpu",
                "runtime": "pytorch", "precision": "fp32", "batch_size": 1, "status": "ok",
                "provenance": "measured", "latency_mean_ms": 100.0, "first_inference_ms": 500.0,
                "warmup_ms": 500.0, "sampling_ms": 3000.0, "build_ms": 600.0, "load_ms": 100.0,
                "started_at": f"2026-01-01T00:00:{begins:02d}Z",
                "finished_at": f"2026-01-01T00:00:{ends:02d}Z",
                "conditions": {"cases_before_in_worker": number, "rules": {"iterations": None}},
                **change,
            }  # fmt: skip
            journal.append(Fact(RESULT, f"r-{number}", result))
    database.fill()
    return earlier_times(database)


WHERE = ("bert-tiny", "pytorch", "cpu")


def test_opening_and_further_batches_are_told_apart(tmp_path):
    known = times(tmp_path, {"at": (0, 10)}, {"at": (11, 16), "batch_size": 4, "compile_ms": 200.0})
    opening = known.beside(WHERE, "fp32", opens=True, checked=True)
    assert opening is not None
    assert opening.high == pytest.approx(6.0)  # of ten seconds four were in steps
    assert opening.low == pytest.approx(0.7)  # build and load: an export is in the cache now
    again = known.beside(WHERE, "fp32", opens=False, checked=True)
    assert again is not None
    assert again.high == pytest.approx(2.0)  # a second before it began, five less four within
    assert again.low == pytest.approx(0.2)  # the model was open: its compilation alone
    assert known.beside(("vit-tiny", "pytorch", "cpu"), "fp32", opens=True, checked=True) is None


def test_results_of_the_same_precision_and_checks_go_first(tmp_path):
    opens = {"conditions": {"cases_before_in_worker": 0}}
    known = times(
        tmp_path,
        {"at": (0, 10), **opens},
        {"at": (10, 30), **opens, "verification": "ok"},
        {"at": (30, 37), **opens, "verification": "ok", "precision": "bf16"},
    )

    def most(precision: str, *, checked: bool) -> float:
        beside = known.beside(WHERE, precision, opens=True, checked=checked)
        assert beside is not None
        return beside.high

    assert most("fp32", checked=False) == pytest.approx(6.0)
    assert most("fp32", checked=True) == pytest.approx(16.0)
    assert most("bf16", checked=True) == pytest.approx(3.0)
    assert most("bf16", checked=False) == pytest.approx(6.0)


def test_steps_that_were_asked_for_say_nothing_of_the_rules(tmp_path):
    known = times(
        tmp_path, {"at": (0, 10)}, {"at": (10, 20), "conditions": {"rules": {"iterations": 5}}}
    )
    assert [entry.sampled for entry in known.times] == [pytest.approx(3.5), None]

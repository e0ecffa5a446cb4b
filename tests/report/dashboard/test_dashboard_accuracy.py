"""The page of a cell says what its outputs are worth, whichever run measured that."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from dashboard_world import MACHINE, OTHER, result, store, visitor

from accelbench.store.database import Database

LATER = {"started_at": "2026-02-02T03:04:05.000000Z", "finished_at": "2026-02-02T03:04:06.000000Z"}


def accuracy(right: int) -> dict[str, Any]:
    return {
        "accuracy": right / 200, "accuracy_low": right / 200 - 0.04,
        "accuracy_high": right / 200 + 0.03, "accuracy_samples": 200, "accuracy_metric": "top1",
        "accuracy_per_sample": [1.0] * right + [0.0] * (200 - right), "accuracy_digest": "d",
    }  # fmt: skip


def page_of(database: Database, precision: str) -> str:
    """The page of the cell of bert-tiny on the lab's processor in a precision, as its text."""
    site = visitor(database)
    for key in re.findall(r"/cell/([0-9a-f]{16})\"", site.get("/results").text):
        page = site.get(f"/cell/{key}").text
        row = site.get(f"/cell/{key}.json").text
        if f'"{precision}"' in row and '"lab"' in row:
            return " ".join(re.sub(r"<[^>]+>", " ", page).split())
    raise AssertionError(precision)


def test_a_cell_has_its_accuracy_with_its_interval_and_what_its_precision_costs(
    tmp_path: Path,
) -> None:
    database = Database(tmp_path / "results.duckdb")
    int8 = result(precision="int8", **accuracy(160))
    store(database, "run-1", result(**accuracy(180)), int8)
    fp32_page, int8_page = page_of(database, "fp32"), page_of(database, "int8")
    assert "Accuracy, top-1 90.0 % 86.0 % to 93.0 %, of 200 samples" in fp32_page
    assert "against fp32" not in fp32_page
    assert "Accuracy, top-1 80.0 % 76.0 % to 83.0 %, of 200 samples" in int8_page
    assert "on the same 200 samples: 20 lost, 0 gained." in int8_page
    assert "another run" not in int8_page


def test_a_later_run_without_labelled_data_leaves_the_accuracy_of_an_earlier_one(
    tmp_path: Path,
) -> None:
    database = Database(tmp_path / "results.duckdb")
    store(database, "run-1", result(**accuracy(180)))
    store(database, "run-2", result(weights_digest="v2", **LATER))
    store(database, "run-3", result(**accuracy(20), **LATER), machine=OTHER)
    page = page_of(database, "fp32")
    assert "Accuracy, top-1 90.0 %" in page
    assert "Accuracy was measured by another run , of other weights than these launches." in page


def test_a_cell_without_accuracy_says_nothing_of_it(tmp_path: Path) -> None:
    database = Database(tmp_path / "results.duckdb")
    store(database, "run-1", result(), machine=MACHINE)
    assert "Accuracy" not in page_of(database, "fp32")

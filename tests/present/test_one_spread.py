"""One rule for intervals and ranges: every view of the same launches shows the same ends."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from asked_store import said
from dashboard_world import MACHINE, result, store, visitor

from accelbench.core.formatting import NOT_KNOWN, format_digits
from accelbench.present.chart_data import subject_in
from accelbench.present.charts.marks import record
from accelbench.store.database import Database

FEW, WILD = (1.93, 2.34, 2.1), (0.01, 30.0, 5.0, 0.02, 900.0)


def launches(model: str, steps: tuple[float, ...]) -> list[dict[str, Any]]:
    return [
        result(
            model=model,
            series_key=model,
            launch=number,
            latency_p50_ms=step,
            latency_mean_ms=step,
            throughput=1e3 / step,
            started_at=f"2026-02-01 00:00:{number:02}",
        )
        for number, step in enumerate(steps)
    ]


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Database:
    made = Database(tmp_path_factory.mktemp("spread") / "spread.duckdb")
    made.ensure()
    rows = [*launches("bert-tiny", FEW), *launches("vit-tiny", WILD)]
    store(made, "r1", *rows, machine=MACHINE)
    return made


def measured(answer: Any) -> Any:
    """Return the interval of the measured configuration of an answer."""
    (one,) = (entry for entry in answer["configurations"] if entry["basis"] == "measured")
    return one["predictions"]["latency_interval"]


def test_one_range_everywhere(database):
    # A recommendation has the range of few launches.
    words = ("recommend", "bert-tiny", "vit-tiny", "--hardware", "cpu", "--json")
    few, wild = json.loads(said(database, *words))["recommendations"]
    interval = measured(few)
    assert (interval["low"], interval["high"]) == (min(FEW), max(FEW))
    assert (interval["ends_are"], interval["count"]) == ("range", 3)
    interval = measured(wild)
    assert (interval["low"], interval["high"]) == (None, None)
    assert interval["why_no_ends"]
    assert NOT_KNOWN in said(database, "recommend", "vit-tiny", "--hardware", "cpu")
    # Pages have the range of few launches.
    page = visitor(database)
    shown = f"{format_digits(min(FEW))} … {format_digits(max(FEW))}, range of 3 launches"
    table = page.get("/results").text
    (key,) = dict.fromkeys(
        re.findall(r'href="/cell/([0-9a-f]{16})"', page.get("/results?model=bert-tiny").text)
    )
    for text in (table, page.get(f"/cell/{key}").text, page.get("/model/bert-tiny").text):
        assert shown in text
    assert NOT_KNOWN in table
    assert "range of 5" not in table
    # Records of charts have the range.
    points = subject_in(database, {}, None).points
    records = {
        str(point.row["model"]): record(point, point.latency) for point in points if point.latency
    }
    few, wild = records["bert-tiny"], records["vit-tiny"]
    assert (few["low"], few["high"]) == (min(FEW), max(FEW))
    assert few["interval_of"] == "range of 3 launches"
    assert (wild["low"], wild["high"]) == (None, None)


def test_a_report_has_the_range(database, tmp_path):
    path = tmp_path / "report.html"
    said(database, "report", "--output", str(path))
    text = path.read_text()
    assert f"{format_digits(min(FEW))} to {format_digits(max(FEW))}, range of 3 launches" in text
    assert NOT_KNOWN in text


def test_no_ratio_has_an_interval_that_is_too_wide(tmp_path):
    made = Database(tmp_path / "ratio.duckdb")
    made.ensure()
    rows = launches("bert-tiny", WILD)
    for row in launches("bert-tiny", (2.0, 2.01, 1.99, 2.02, 1.98)):
        rows.append({**row, "runtime": "onnxruntime", "series_key": "other"})
    store(made, "r1", *rows, machine=MACHINE)
    words = ("compare", "--by", "engine")
    line = json.loads(said(made, *words, "--json"))["comparisons"][-1]
    assert (line["speedup_low"], line["speedup_high"]) == (None, None)
    assert line["cannot_tell"]
    assert NOT_KNOWN in said(made, *words)

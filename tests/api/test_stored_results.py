"""Stored results in a notebook: a table with pictures of intervals, and one script of ours."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from typing import Any

import pytest

import accelbench
from accelbench.api.result import StoredTable
from accelbench.core.errors import UsageError
from accelbench.core.facts import RESULT, RUN_STARTED, Fact
from accelbench.store.database import Database
from accelbench.store.journal import Journal
from hostile_names import MARKUP

_SCRIPT = re.compile(r"<script>.*?</script>", re.DOTALL)


def row(batch: int, median: float | None, **changes: Any) -> dict[str, Any]:
    return {
        "model": "bert-tiny", "hardware": "cpu", "runtime": "pytorch", "device_name": "A processor",
        "precision": "fp32", "batch_size": batch, "mode": "inference", "status": "ok",
        "provenance": "measured", "quality": "converged", "latency_p50_ms": median,
        "latency_ci_low_ms": median and 0.9 * median, "latency_ci_high_ms": median and 1.1 * median,
        "started_at": "2026-01-02T03:04:05.000000Z", **changes,
    }  # fmt: skip


def drawn(table: StoredTable) -> ET.Element:
    """The page as an element, without its script; one that is not well-formed is an error."""
    return ET.fromstring(f"<div>{_SCRIPT.sub('', table._repr_html_())}</div>")


def test_results_of_a_database_are_a_table(tmp_path):
    database = Database(tmp_path / "a.duckdb")
    database.ensure()
    with Journal.create(database.journals, "r") as journal:
        journal.append(Fact(RUN_STARTED, "r", {"started_at": "2026-01-01T00:00:00Z"}))
        for batch in (8, 1):
            journal.append(Fact(RESULT, f"r-{batch}", row(batch, float(batch))))
    found = accelbench.results("bert-tiny", db=database.path)
    assert len(found) == 2
    assert [one["batch_size"] for one in found.sort("latency_p50_ms").rows] == [1, 8]
    assert len(accelbench.results(db=database.path, batch_sizes=8)) == 1
    assert "batch 8" in repr(found)


def test_how_a_table_looks():
    # An interval is drawn on one scale from zero.
    page = drawn(StoredTable([row(1, 10.0), row(8, 20.0)]))
    lines = [str(line.get("points")).split() for line in page.iter("polyline")]
    ends = [tuple(float(point.partition(",")[0]) for point in line) for line in lines]
    assert ends[1][1] == 155.0  # 22 ms, the largest of all
    assert ends[0] == pytest.approx((66.4, 80.0), abs=0.1)
    (label, _) = [svg.get("aria-label") for svg in page.iter("svg")]
    assert label == "10 ms, ±10.0%"
    # What is not known is no data and has no picture.
    lost = row(1, None, status="failed", message="it broke", device_name=None, quality=None)
    page = drawn(StoredTable([lost]))
    cells = ["".join(cell.itertext()).strip() for cell in page.findall(".//td")]
    assert cells == [
        *("unknown device", "no data", "no data", "no data", "no data"),
        "failed: it broke",
    ]
    assert page.find(".//svg") is None
    # No time is shown of what was emulated.
    page = StoredTable([row(1, 1.25, emulated=True, throughput=800.0)])._repr_html_()
    assert "1.25" not in page
    assert "800" not in page
    assert "emulated" in page
    # A colour of ours would be unreadable in a dark or in a light notebook.
    page = _SCRIPT.sub("", StoredTable([row(1, 1.0)])._repr_html_())
    assert "#" not in page
    assert "style" not in page
    assert "currentColor" in page


@pytest.mark.parametrize(
    ("changes", "filled"),
    [({}, True), ({"provenance": "imported"}, False), ({"quality": "unusable"}, False)],
)
def test_what_nobody_measured_here_is_hollow(changes, filled):
    circle = drawn(StoredTable([row(1, 1.0, **changes)])).find(".//circle")
    assert circle is not None
    assert (circle.get("fill") == "currentColor") is filled


@pytest.mark.parametrize("name", MARKUP)
def test_a_name_is_text_and_nothing_of_it_runs(name):
    scripts = [
        _SCRIPT.findall(StoredTable([row(1, 1.0, model=word)])._repr_html_())
        for word in (name, "bert-tiny")
    ]
    assert scripts[0] == scripts[1]
    assert len(scripts[0]) == 1
    page = drawn(StoredTable([row(1, 1.0, model=name, device_name=name, quality=name)]))
    allowed = {*("div", "table", "caption", "thead", "tbody", "tr", "th", "td", "bdi")}
    assert {one.tag for one in page.iter()} == {*allowed, "svg", "polyline", "circle"}
    assert not [a for one in page.iter() for a in one.attrib if a.startswith("on")]


def test_better_ones_come_first_and_those_without_a_value_last():
    table = StoredTable([row(1, 1.0, throughput=None), row(2, 1.0, throughput=3.0)])
    table = StoredTable([*table.rows, row(4, 1.0, throughput=5.0)])
    assert [one["batch_size"] for one in table.sort("throughput").rows] == [4, 2, 1]
    assert [one["batch_size"] for one in table.sort("throughput", descending=False).rows] == [
        2,
        4,
        1,
    ]


@pytest.mark.parametrize(
    ("column", "said"), [("latency", "There is no column"), ("options", "have no order")]
)
def test_a_column_that_cannot_be_sorted_by_is_refused(column, said):
    with pytest.raises(UsageError, match=said):
        StoredTable([]).sort(column)

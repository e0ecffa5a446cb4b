"""Tables of a notebook in a browser: sorted, filtered, with names that somebody chose."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from chrome import Chrome
from dashboard_world import result

from accelbench.api.result import StoredTable
from hostile_names import MARKUP


@pytest.fixture
def shown(tab: Chrome, tmp_path: Path) -> Chrome:
    rows: list[dict[str, Any]] = [
        result(model="b", latency_p50_ms=10.0, throughput=9.0),
        result(model="c", latency_p50_ms=None, latency_mean_ms=None, throughput=None),
        result(model="a", latency_p50_ms=2.5, throughput=100.0),
        *(result(model=name, device_name=name, latency_p50_ms=50.0) for name in MARKUP),
    ]
    page = tmp_path / "notebook.html"
    # Two of them, as a notebook has: each is made ready once.
    table = StoredTable(rows)._repr_html_()
    page.write_text(f"<!doctype html><meta charset=utf-8>{table}{table}", encoding="utf-8")
    tab.go(page.as_uri())
    return tab


_FIRST = """(at) => [...document.querySelector('table').tBodies[0].rows].filter((r) => !r.hidden)
    .map((r) => r.cells[at].textContent.trim())"""


def column(tab: Chrome, at: int) -> list[str]:
    found: list[str] = tab.page.evaluate(_FIRST, at)
    return found


def test_a_table_of_a_notebook(shown):
    # A heading sorts by figures and what has none stays last.
    heading = shown.page.get_by_role("button", name="time of a step").first
    heading.click()
    times = column(shown, 2)
    assert times[:2] == ["2.5 ms p50", "10 ms p50"]
    assert times[-1] == "no data"
    heading.click()
    times = column(shown, 2)
    assert times[-3:] == ["10 ms p50", "2.5 ms p50", "no data"]
    assert shown.js("document.querySelector('th[aria-sort]').getAttribute('aria-sort')") == (
        "descending"
    )
    # Words filter.
    search = shown.page.get_by_role("searchbox").first
    search.fill("2.5 PYTORCH")
    assert [name.split()[0] for name in column(shown, 0)] == ["a"]
    assert shown.page.get_by_role("status").first.text_content() == f" 1 of {3 + len(MARKUP)}"
    search.fill("")
    assert len(column(shown, 0)) == 3 + len(MARKUP)
    # Names are text and each table is made ready once.
    assert shown.page.get_by_role("searchbox").count() == 2
    assert shown.dialogs == []
    assert shown.complaints() == []
    assert shown.js("document.querySelectorAll('img, iframe, object, embed').length") == 0


def test_without_a_script_the_table_is_there(tab, shown):
    tab.scripts(False)
    try:
        tab.page.reload()
        assert tab.page.get_by_role("table").first.is_visible()
    finally:
        tab.scripts(True)

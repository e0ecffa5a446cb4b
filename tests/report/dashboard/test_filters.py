"""The filters of a page offer every value, however many there are."""

from __future__ import annotations

import re
from pathlib import Path

from dashboard_world import result, store, visitor

from accelbench.report.dashboard.snapshots.cells import MOST_CHOICES
from accelbench.store.database import Database


def test_every_device_can_be_chosen(tmp_path: Path) -> None:
    """60 of 158 devices were offered, and the page did not mention the others."""
    database = Database(tmp_path / "a.duckdb")
    database.ensure()
    names = [f"Card {number:03d}" for number in range(MOST_CHOICES + 25)]
    rows = [
        result(hardware="cuda", device_name=name, device_fingerprint=name, case_id=name)
        for name in names
    ]
    store(database, "r", *rows)
    site = visitor(database)
    page = site.get("/results").text
    boxes = re.findall(r'name="device" value="([^"]+)"', page)
    (select,) = re.findall(r'<select id="device-more" name="device">(.*?)</select>', page)
    others = [value for value in re.findall(r'<option value="([^"]*)"', select) if value]
    assert len(boxes) == MOST_CHOICES
    assert sorted([*boxes, *others]) == names
    assert f"{MOST_CHOICES} of {len(names)}" in page
    chosen = site.get(f"/results?device={others[-1].replace(' ', '+')}").text
    assert f'value="{others[-1]}" checked' in chosen


def test_few_values_have_no_list_below_them(tmp_path: Path) -> None:
    database = Database(tmp_path / "a.duckdb")
    database.ensure()
    store(database, "r", result(), result(hardware="cuda", device_name="A card", case_id="b"))
    assert "device-more" not in visitor(database).get("/results").text

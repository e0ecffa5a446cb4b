"""The filters of a page offer every value, however many there are."""

from __future__ import annotations

import re
from pathlib import Path

from dashboard_world import result, store, visitor

from accelbench.core.worth import REASON_TEXTS, UnusableReason
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


def test_an_unusable_cell_shows_its_own_reason_alone(tmp_path: Path) -> None:
    database = Database(tmp_path / "a.duckdb")
    database.ensure()
    store(database, "r", result(quality="unusable", unexplained_share=0.7))
    site = visitor(database)
    (address,) = set(re.findall(r'href="(/cell/[0-9a-f]{16})"', site.get("/results").text))
    for page in (site.get(address).text, site.get("/model/bert-tiny").text):
        assert REASON_TEXTS[UnusableReason.UNACCOUNTED] in page
        assert REASON_TEXTS[UnusableReason.TOO_NOISY] not in page
        assert REASON_TEXTS[UnusableReason.WAITED] not in page


def test_an_implausible_result_is_listed_with_its_calculation(tmp_path: Path) -> None:
    database = Database(tmp_path / "a.duckdb")
    about = {
        "provenance": "imported",
        "hardware": "vulkan",
        "flops": 8.18e9,
        "samples": {},
        "device_name": "Board, Rockchip RK3588S",
        "precision": "fp16",
    }
    bodies = [
        {**result(model="resnet-50", latency_mean_ms=ms, latency_p50_ms=ms, **about),
         "result_id": f"r{ms}", "throughput": 1e3 / ms, "case_id": f"c{ms}", "series_key": f"s{ms}"}
        for ms in (0.96, 38.0)
    ]  # fmt: skip
    database.bring_in("import-a", [], bodies)
    site = visitor(database)
    for address in ("/model/resnet-50", "/device/Board%2C%20Rockchip%20RK3588S"):
        table = site.get(address).text.partition('aria-label="Table of implausible results"')[2]
        cells = re.findall(r'<td class="figure"[^>]*>([^<]*)</td>', table)
        assert cells[1:6] == ["8.18", "0.960", "8.52", "1.02", "8.32"]
    (model,) = re.findall(r"<tbody>(.*?)</tbody>", site.get("/models").text, re.DOTALL)
    assert "26.3" in model  # 1,000 ÷ 38 items per second, and not 1,042

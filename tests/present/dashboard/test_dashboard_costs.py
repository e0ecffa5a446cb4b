"""Costs in the dashboard: told to cells once, the same that charts and tables show."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path
from typing import Any

import pytest
from dashboard_world import HOSTILE, hostile, result, store, stored_in
from starlette.testclient import TestClient

from accelbench.exchange.prices import Prices
from accelbench.present.dashboard.routes import application
from accelbench.present.dashboard.snapshot import SnapshotKeeper, taken
from accelbench.present.publishing.bundle import published_pages
from accelbench.store.database import Database

PRICES = Prices({"cpu": 0.36, "NVIDIA A100": 3.6, "office": 7.2})


def visitor(database: Database, prices: Prices | None) -> TestClient:
    keeper = SnapshotKeeper(database, prices=prices)
    return TestClient(application(database, keeper=keeper), base_url="http://127.0.0.1:8501")


@pytest.fixture
def database(stored: Database) -> Database:
    return stored


def cells(database: Database, prices: Prices | None) -> list[dict[str, Any]]:
    return taken(database, "now", prices).ask("FROM cell ORDER BY key")


def test_a_cell_costs_its_price_over_its_throughput(database):
    found = [one for one in cells(database, PRICES) if one["cost_per_million"] is not None]
    assert {one["priced_by"] for one in found} == {"cpu", "NVIDIA A100", "office"}
    for one in found:
        expected = one["price_per_hour"] / 3600 / one["throughput"] * 1e6
        assert one["cost_per_million"] == pytest.approx(expected)
        assert one["currency"] == "USD"


def test_what_nobody_measured_what_is_emulated_and_what_failed_have_none(database):
    found = cells(database, Prices({"cpu": 1.0, "cuda": 1.0, "webgpu": 1.0}))
    bare = {one["kind"] for one in found if one["cost_per_million"] is None}
    assert bare == {"simulated", "predicted", "emulated", "measured"}  # of which one failed
    assert {one["status"] for one in found if one["kind"] == "measured"} == {"ok", "failed"}
    costly = [one for one in found if one["cost_per_million"] is not None]
    assert {(one["kind"], one["status"]) for one in costly} == {
        ("measured", "ok"),
        ("imported", "ok"),
    }


def test_several_devices_and_a_cost_of_its_own(tmp_path):
    database = stored_in(tmp_path / "b.duckdb")
    card = {"hardware": "cuda", "device_name": "NVIDIA A100", "throughput": 1000.0}
    store(
        database,
        "r",
        result(**card, world_size=4, case_id="four"),
        result(**card, cost_usd=9.0, case_id="own"),
    )
    by_case = {str(one["case_id"]): one for one in cells(database, PRICES)}
    assert by_case["four"]["cost_per_million"] == pytest.approx(4.0)
    assert (by_case["own"]["cost_per_million"], by_case["own"]["priced_by"]) == (9.0, None)
    euros = {str(one["case_id"]): one for one in cells(database, Prices({"cuda": 3.6}, "EUR"))}
    assert euros["own"]["cost_per_million"] == pytest.approx(1.0)
    unpriced = {str(one["case_id"]): one for one in cells(database, None)}
    assert unpriced["own"]["cost_per_million"] == 9.0
    assert unpriced["four"]["cost_per_million"] is None


def test_a_table_has_the_column_and_is_ordered_by_it(database):
    page = visitor(database, PRICES).get("/results?sort=cost").text
    assert "$/M" in page
    assert "cost of a million items, by <bdi>prices.json</bdi>" in page
    shown = [
        float(one) for one in re.findall(r'<td class="figure spare \w+"[^>]*>([\d.]+)</td>', page)
    ]
    costs = shown[1::2]  # beside each memory
    assert len(costs) > 3
    assert costs == sorted(costs)


def test_without_prices_there_is_no_column(database):
    someone = visitor(database, None)
    assert "$/M" not in someone.get("/results").text
    (key, *_) = [one["key"] for one in cells(database, None)]
    assert "Cost" not in someone.get(f"/cell/{key}").text


def test_a_cell_says_by_which_price_and_what_a_training_step_costs(tmp_path):
    database = stored_in(
        tmp_path / "t.duckdb", result(mode="training", latency_mean_ms=500.0, throughput=1.6)
    )
    store(database, "g", result(hardware="rocm", device_name="MI300X"))
    someone = visitor(database, PRICES)
    by_platform = {str(one["hardware"]): one["key"] for one in cells(database, PRICES)}
    page = someone.get(f"/cell/{by_platform['cpu']}").text
    assert "Cost of a million <bdi>sequences</bdi></dt><dd>$62.5" in page
    assert "<bdi>cpu at $0.36 an hour</bdi>" in page
    assert "Cost of a training step</dt><dd>$0.0000500</dd>" in page
    assert "no price of this device" in someone.get(f"/cell/{by_platform['rocm']}").text


def test_cells_as_a_file_have_cost_and_currency(database):
    lines = list(csv.DictReader(io.StringIO(visitor(database, PRICES).get("/cells.csv").text)))
    priced = [one for one in lines if one["cost_per_million"]]
    assert {one["currency"] for one in priced} == {"USD"}
    assert any(one["priced_by"] == "office" for one in priced)


def test_charts_of_cost_are_drawn_and_say_the_price(database):
    pytest.importorskip("vl_convert")
    page = visitor(database, PRICES).get("/chart/hardware-cost?machine=").text
    assert "Priced by prices.json" in page
    assert "nothing to show" in visitor(database, None).get("/chart/hardware-cost.svg").text


def test_a_comparison_has_the_column(database):
    keys = [one["key"] for one in cells(database, PRICES)][:3]
    page = visitor(database, PRICES).get("/compare", params=[("cell", key) for key in keys]).text
    assert ">$/M</th>" in page


def test_prices_of_nothing_here_are_named(database):
    said = "Prices of p.json that are of nothing here: "
    prices = Prices({"A100": 1.0, "cpu": 1.0, "OFFICE": 2.0, "lab-9": 3.0}, path=Path("p.json"))
    taken_with = taken(database, "now", prices)
    meant = "lab-9."
    assert taken_with.unmatched_prices == said + meant
    someone = visitor(database, prices)
    for address in ("/", "/results", "/recommend"):
        assert said + meant in someone.get(address).text, address
    # A price that a more specific one overrides is of something here all the same.
    assert taken(database, "now", PRICES).unmatched_prices == ""
    assert taken(database, "now").unmatched_prices == ""
    many = Prices({f"lab-{n}": 1.0 for n in range(50)})
    assert taken(database, "now", many).unmatched_prices.endswith("and 44 more.")


def test_a_bundle_tells_nobody_of_prices_of_nothing_in_it(database):
    keeper = SnapshotKeeper(database, prices=Prices({"secret-lab": 1.0, "cpu": 1.0}))
    app = application(database, keeper=keeper, instead=lambda site: published_pages(site, [], []))
    page = TestClient(app, base_url="http://127.0.0.1:8501").get("/results").text
    assert "Results" in page
    assert "secret-lab" not in page


def test_names_of_prices_are_text(tmp_path):
    database = hostile(tmp_path / "h.duckdb")
    prices = Prices(dict.fromkeys(HOSTILE, 1.0), "EUR", Path("<script>prices</script>.json"))
    someone = visitor(database, prices)
    for key in [one["key"] for one in cells(database, prices)]:
        assert "<script>" not in someone.get(f"/cell/{key}").text.replace("<script src=", "")
    assert "<script>prices" not in someone.get("/results").text

"""Prices in an answer: whose they are, in which currency, what has none; dates and units."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from choosing_world import result, selector

from accelbench.core.errors import UsageError
from accelbench.recommend.selector import ranked

EUROS = '{"currency": "EUR", "per_hour": {"A card": 3.6, "cpu": 0.36}}'


def answer(folder: Path, prices: Any, *more: str) -> dict[str, Any]:
    both = (result(), result(hardware="cuda", latency_p50_ms=2.0))
    chosen = selector(folder, *both, prices=prices)
    return chosen.select_hardware(model_name="bert-tiny", available_hardware=["cpu", "cuda", *more])


def test_prices_of_a_file_in_its_currency(tmp_path):
    (tmp_path / "euros.json").write_text(EUROS)
    found = answer(tmp_path, tmp_path / "euros.json", "rocm")
    assert found["currency"] == "EUR"
    card = found["all_scores"]["cuda"]["cost_per_million"]
    assert card == pytest.approx(3.6 / 3600 / 500 * 1e6)
    assert found["cost_notes"] == [
        "Priced by euros.json: A card at €3.60 an hour; cpu at €0.36 an hour.",
    ]
    assert "€2.00 per million" in found["explanation"]
    assert "$" not in found["explanation"]
    assert found["cost_notes"][0] in found["explanation"]
    assert (
        answer(tmp_path, str(tmp_path / "euros.json"), "rocm")["all_scores"]
        == (found["all_scores"])
    )


def test_what_has_no_price_is_named_and_costs_do_not_count_then(tmp_path):
    (tmp_path / "p.json").write_text('{"per_hour": {"cuda": 1.0}}')
    notes = answer(tmp_path, tmp_path / "p.json")["cost_notes"]
    assert "Without a price: A processor (cpu)." in notes
    assert "Without a price or a rate: cpu." in notes


def test_a_function_is_of_dollars(tmp_path):
    found = answer(tmp_path, lambda row: 2.0 if row["hardware"] == "cpu" else None)
    assert found["currency"] == "USD"
    assert found["all_scores"]["cpu"]["cost_per_million"] == 2.0
    assert "$2.00 per million" in found["explanation"]
    assert "Without a price: A card (cuda)." in found["cost_notes"]
    with pytest.raises(UsageError, match="prices gave -1 for a million items"):
        answer(tmp_path, lambda _: -1)


def test_without_prices_nothing_is_said_of_costs(tmp_path):
    assert not {"currency", "cost_notes"} & set(answer(tmp_path, None))


def test_prices_may_be_given_later(tmp_path):
    chosen = selector(tmp_path, result())
    chosen.prices = lambda _: 3.0
    assert chosen.select_hardware(model_name="bert-tiny")["currency"] == "USD"


def test_the_date_is_that_of_what_is_recommended(tmp_path):
    chosen = selector(
        tmp_path,
        result(started_at="2026-05-05T00:00:00.000000Z"),
        result(hardware="cuda", latency_p50_ms=1.0),
    )
    found = chosen.select_hardware(model_name="bert-tiny")
    assert found["primary_recommendation"] == "cuda"
    assert str(found["data_date"]).startswith("2026-01-02")
    assert f"Data of {found['data_date']} (cuda)." in found["explanation"]
    assert chosen.select_hardware("audio", "of-ours-7b")["data_date"] is None


def test_models_are_in_order_within_what_they_count():
    def one(rate: float | None, unit: str | None) -> dict[str, Any]:
        said = {"latency": 1.0, "throughput": rate, "throughput_unit": unit}
        score = {"basis": "measured", "predictions": said} if rate else {"basis": "rule"}
        return {"primary_recommendation": "cpu", "all_scores": {"cpu": score}}

    found = ranked(
        {
            "writer": one(9000.0, "tokens/s"),
            "slow": one(10.0, "images/s"),
            "fast": one(20.0, "images/s"),
            "unknown": one(None, None),
        }
    )
    assert [(row["model"], row["throughput_unit"]) for row in found] == [
        ("fast", "images/s"),
        ("slow", "images/s"),
        ("writer", "tokens/s"),
        ("unknown", None),
    ]

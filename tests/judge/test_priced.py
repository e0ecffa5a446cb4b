"""What figures cost: which price counts, the formulas, and what is never priced."""

from __future__ import annotations

from typing import Any

import pytest

from accelbench.evidence.launches import launches_of
from accelbench.exchange.prices import Prices
from accelbench.judge.costs import (
    PRICE,
    amount,
    cost_notes,
    cost_of,
    items_of,
    money,
    names_of_place,
    nothing_priced,
    per_million,
    per_step,
    price_of,
    told_of,
    unmatched_prices,
    with_costs,
)
from accelbench.judge.machines import Machine
from accelbench.judge.points import points
from accelbench.judge.sides import PER_MILLION, PER_STEP, Side
from asked_rows import row

LAB = Machine("lab", "A processor", 2, 16)
CARD = {"hardware": "cuda", "device_name": "NVIDIA H200", "device_fingerprint": "f1"}


def priced(per_hour: dict[str, float], **changes: Any) -> tuple[str, float, str] | None:
    found = price_of(row(**changes), Prices(per_hour), LAB)
    return None if found is None else (found.name, found.per_hour, found.covers)


def test_an_hour_s_price_over_what_an_hour_brings():
    assert per_million(3.6, 1000.0) == pytest.approx(1.0)
    assert per_million(0.69, 8039.0) == pytest.approx(0.02384, rel=1e-3)
    assert per_step(3.6, 250.0) == pytest.approx(0.00025)


def test_the_most_specific_name_counts():
    names = {"cuda": 1.0, "NVIDIA H200": 2.0, "cuda:NVIDIA H200": 3.0, "f1": 4.0, LAB.id: 5.0}
    expected = [("machine", 6.0), ("machine", 5.0), ("device", 4.0), ("device", 3.0)]
    expected += [("device", 2.0), ("platform", 1.0)]
    prices = names | {"lab": 6.0}
    for covers, price in expected:
        name = next(one for one, value in prices.items() if value == price)
        assert priced(prices, **CARD) == (name, price, covers)
        del prices[name]
    assert priced(prices, **CARD) is None


def test_a_name_means_a_device_as_everywhere_whatever_its_case():
    assert priced({"nvidia  h200": 2.0}, **CARD) == ("nvidia  h200", 2.0, "device")
    assert priced({"H200": 2.0}, **CARD) == ("H200", 2.0, "device")
    assert priced({"cuda:h200": 2.0, "cuda": 1.0}, **CARD) == ("cuda:h200", 2.0, "device")
    several = {**CARD, "device_name": "8x NVIDIA H200-SXM-141GB"}
    assert priced({"h200": 2.0}, **several) == ("h200", 16.0, "device")
    assert priced({"h200": 2.0}, **{**CARD, "device_name": "NVIDIA H200-NVL-141GB"}) is None
    a100 = {**CARD, "device_name": "NVIDIA A100-SXM4-80GB"}
    assert priced({"a100": 1.0, "A100 SXM 80GB": 2.0}, **a100) == ("A100 SXM 80GB", 2.0, "device")
    assert not unmatched_prices(Prices({"h200": 2.0}), names_of_place(row(**CARD)), ())
    assert priced({"NVIDIA H200 NVL": 2.0}, **CARD) is None


def test_a_machine_s_price_is_of_the_runs_of_that_machine_alone():
    prices = Prices({"lab": 3.6})
    rows = [row(run_id="here", throughput=1000.0), row(run_id="there", throughput=1000.0)]
    here, there = with_costs(rows, prices, {"here": LAB, "there": Machine("office")})
    assert here[PER_MILLION] == pytest.approx(1.0)
    assert PER_MILLION not in there
    source = price_of(row(), Prices({"cloud": 2.0}), Machine("source cloud"))
    assert source is not None


def priced_row(result: dict[str, Any], *given: Any) -> dict[str, object]:
    """Return the costs of a result as the relation of launches has it."""
    (launch,) = launches_of([result])
    return cost_of(launch, *given)


@pytest.mark.parametrize(
    ("name", "changes", "per_hour"),
    [
        ("NVIDIA H200", {**CARD, "world_size": 4}, 10.0),
        ("cuda", {**CARD, "world_size": 4}, 10.0),
        ("lab", {**CARD, "world_size": 4}, 2.5),
        ("NVIDIA H200", {**CARD, "device_name": "8x NVIDIA H200"}, 20.0),
        ("NVIDIA H200", {**CARD, "device_name": "8x NVIDIA H200", "world_size": 8}, 20.0),
        ("8x NVIDIA H200", {**CARD, "device_name": "8x NVIDIA H200", "world_size": 8}, 2.5),
        ("cpu", {"world_size": 4}, 2.5),
        ("A processor", {"device_name": "2x A processor", "world_size": 2}, 5.0),
    ],
)
def test_several_devices_cost_several_times_as_much(name, changes, per_hour):
    """Processes on one CPU share it; a machine's price, and one of all eight, is of the lot."""
    found = priced({name: 2.5}, **changes)
    assert found is not None
    assert found[:2] == (name, per_hour)


def test_a_million_of_what_the_throughput_counts():
    tokens = row(throughput=500.0, throughput_unit="tokens/s", batch_size=4)
    assert items_of(tokens) == "tokens"
    assert priced_row(tokens, Prices({"cpu": 3.6}))[PER_MILLION] == pytest.approx(2.0)
    assert items_of(row(throughput=1.0, throughput_unit="audio s/s")) == "seconds of sound"
    # Without a throughput it is by the batch, whatever a rate would have counted.
    bare = row(throughput_unit="tokens/s", batch_size=4)
    assert items_of(bare) == "inferences"
    assert priced_row(bare, Prices({"cpu": 3.6}))[PER_MILLION] == pytest.approx(2.25)  # 9 ms of 4


def test_a_training_step_costs_its_mean_time_and_inference_has_none():
    prices = Prices({"cpu": 3.6})
    step = priced_row(row(mode="training"), prices)[PER_STEP]
    assert step == pytest.approx(9e-6)  # 9 ms, and not the median's 8
    assert PER_STEP not in priced_row(row(), prices)
    rate = row(mode="training", latency_p50_ms=None, latency_mean_ms=None, batch_size=4)
    assert priced_row(rate | {"throughput": 1000.0}, prices)[PER_STEP] == pytest.approx(4e-6)
    tokens = rate | {"throughput": 1000.0, "throughput_unit": "tokens/s"}
    assert PER_STEP not in priced_row(tokens, prices)


@pytest.mark.parametrize(
    "changes",
    [
        {"provenance": "simulated"},
        {"provenance": "predicted"},
        {"emulated": True},
        {"status": "failed"},
    ],
)
def test_what_nobody_measured_has_no_cost(changes):
    assert priced_row(row(**changes, cost_usd=2.0), Prices({"cpu": 3.6}), LAB) == {}


def test_a_tail_of_latencies_says_nothing_of_a_cost():
    tail = row(latency_p50_ms=None, latency_mean_ms=None, latency_p99_ms=9.0)
    found = priced_row(tail, Prices({"cpu": 3.6}))
    assert set(found) == {PRICE}


def test_a_result_that_says_its_own_cost_keeps_it_in_its_own_currency():
    own = row(cost_usd=7.0, throughput=1000.0)
    assert priced_row(own, None) == {PER_MILLION: 7.0}
    assert priced_row(own, Prices({"cpu": 3.6})) == {PER_MILLION: 7.0}
    euros = priced_row(own, Prices({"cpu": 3.6}, "EUR"))
    assert euros[PER_MILLION] == pytest.approx(1.0)


def test_rows_stay_as_they_were():
    given = row(throughput=1000.0)
    before = dict(given)
    with_costs([given], Prices({"cpu": 3.6}), {})
    assert given == before


def test_the_cost_of_a_place_is_the_middle_of_its_launches():
    prices = Prices({"cpu": 3.6})
    rows = with_costs([row(throughput=rate) for rate in (500.0, 2000.0)], prices, {})
    assert Side(("cpu",), rows).cost == pytest.approx(1.0)
    (point,) = points(rows)
    assert point.cost is not None
    assert point.cost.value == pytest.approx(1.0)
    assert (point.cost.low or 0) < 1.0 < (point.cost.high or 0)
    assert point.step_cost is None


# -- words -------------------------------------------------------------------------------


def test_notes_name_prices_and_what_has_none():
    prices = Prices({"cpu": 0.1, "NVIDIA H200": 2.5, "mps": 1.0})
    given = [row(), row(**CARD, world_size=2), row(hardware="rocm", device_name="MI300X")]
    rows = with_costs(given, prices, {})
    first, second = cost_notes(rows, prices)
    assert first == (
        "Priced by prices.json: 2 × NVIDIA H200 at $2.50 an hour each; cpu at $0.10 an hour."
    )
    assert second == "Without a price: MI300X (rocm)."
    assert cost_notes(rows, None) == []


def test_a_file_that_is_of_nothing_here_says_what_is_and_what_was_meant():
    prices = Prices({"H20": 2.5})
    rows = with_costs([row(**CARD)], prices, {})
    (said,) = nothing_priced(rows, prices)
    assert said == (
        "No price of prices.json is of what is here: it has H20; here are NVIDIA H200 (cuda)."
        " Did you mean NVIDIA H200?"
    )
    assert nothing_priced(with_costs([row()], Prices({"cpu": 1.0}), {}), Prices({"cpu": 1.0})) == []
    assert nothing_priced([], prices) == []


@pytest.mark.parametrize(
    ("value", "said"),
    [(1.2, "$1.20"), (0.035, "$0.035"), (1234.5, "$1,234.50"), (3.0, "$3.00"), (1e-5, "$0.00001")],
)
def test_a_price_has_cents(value, said):
    assert amount(value, "$") == said


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (0.02384, "0.0238"),
        (1.0, "1.00"),
        (12.34, "12.3"),
        (4321.0, "4,321"),
        (1.48e-6, "0.00000148"),
    ],
)
def test_a_cost_has_three_digits_and_no_exponent(value, said):
    assert money(value) == said
    assert money(None) == "no data"


def test_a_price_in_words():
    found = price_of(row(**CARD, world_size=8), Prices({"NVIDIA H200": 2.5}, "EUR"))
    assert found is not None
    said = told_of(found, Prices({}, "EUR"))
    assert said == "8 × NVIDIA H200 at €2.50 an hour each"

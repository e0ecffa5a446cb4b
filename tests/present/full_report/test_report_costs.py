"""The section of a report that says what is cheapest, and whether launches tell it."""

from __future__ import annotations

from typing import Any

from accelbench.exchange.prices import Prices
from accelbench.judge.costs import with_costs
from accelbench.judge.points import points
from accelbench.present.charts.chart import Subject
from accelbench.present.document import Notes, Table
from accelbench.present.report_parts import costs
from asked_rows import row

PRICES = Prices({"cpu": 0.36, "A card": 3.6})
CARD = {"hardware": "cuda", "device_name": "A card"}


def launches(*rates: float, **changes: Any) -> list[dict[str, Any]]:
    return [row(throughput=rate, launch=n, **changes) for n, rate in enumerate(rates)]


def subject(*rows: dict[str, Any], prices: Prices | None = PRICES) -> Subject:
    told = with_costs(rows, prices, {})
    return Subject(points(told), rows=told, prices=prices)


def sentences(*rows: dict[str, Any]) -> list[str]:
    (section,) = costs(subject(*rows))
    first = section.blocks[0]
    assert isinstance(first, Notes)
    return list(first.sentences)


def test_costs_in_a_report():
    # The cheapest place and the next where launches tell.
    cpu, card = launches(100.0, 101.0, 99.0), launches(500.0, 501.0, 499.0, **CARD)
    (said,) = sentences(*cpu, *card)
    assert said == (
        "bert-tiny, inference: cheapest is cpu, $1.00 for a million inferences;"
        " elsewhere cuda $2.00."
    )
    # Where launches do not tell or there is one that is said.
    cpu, card = launches(100.0, 150.0), launches(900.0, 1300.0, **CARD)
    (unsure,) = sentences(*cpu, *card)
    assert unsure.endswith(" Launches do not tell it from cuda.")
    (single,) = sentences(*launches(100.0), *launches(500.0, **CARD))
    assert single.endswith(" A single launch does not show how sure it is.")
    # Other work is no cheaper way.
    short = launches(1000.0, sequence_length=16)
    long = launches(100.0, 100.0) + launches(500.0, **CARD)
    (said,) = sentences(*short, *long)
    assert "$1.00" in said
    # Every priced cell stands in the table with its price.
    trained = launches(100.0, 100.0, mode="training", world_size=2, **CARD)
    (section,) = costs(subject(*launches(100.0), *trained, row(hardware="rocm")))
    (table,) = [one for one in section.blocks if isinstance(one, Table)]
    assert [(one[2], one[5], one[6], one[7]) for one in table.rows] == [
        ("1.00", "", "0.36", "cpu"),
        ("20.0", "0.0000180", "7.20", "2 × A card"),  # 9 ms of 2 cards
    ]
    notes = section.blocks[-1]
    assert isinstance(notes, Notes)
    assert "Without a price: A processor (rocm)." in notes.sentences
    # Without prices there is no section and with unfitting ones only a sentence.
    assert list(costs(subject(*launches(100.0), prices=None))) == []
    (section,) = costs(subject(*launches(100.0), prices=Prices({"A processr": 1.0})))
    (text,) = section.blocks
    assert isinstance(text, Notes)
    assert text.sentences[0].endswith("Did you mean A processor?")

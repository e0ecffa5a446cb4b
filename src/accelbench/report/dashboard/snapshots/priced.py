"""What cells cost: told to a snapshot's cells once, so that tables are ordered by it.

Thousands of cells ran in a few places, and a place has one price: prices are looked up for places,
and a single statement makes costs of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from accelbench.analysis.cost_words import told_of, unmatched_prices
from accelbench.analysis.costs import (
    Price,
    items_of,
    known_price,
    names_of_place,
    per_million,
    price_of,
    with_costs,
)
from accelbench.analysis.machines import Machine
from accelbench.analysis.sides import PER_MILLION, Side
from accelbench.core.rows import Row
from accelbench.exchange.prices import USUAL_CURRENCY, Prices

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

#: What tells places apart for `price_of`.
_PLACE = ("machine", "hardware", "device_name", "device_fingerprint", "world_size")
#: Without a price are those that nobody measured and what a stand-in did.
_PRICEABLE = "status = 'ok' AND kind IN ('measured', 'imported')"
_COLUMNS = """
ALTER TABLE cell ADD COLUMN cost_per_million DOUBLE;
ALTER TABLE cell ADD COLUMN currency VARCHAR;
ALTER TABLE cell ADD COLUMN price_per_hour DOUBLE;
ALTER TABLE cell ADD COLUMN priced_by VARCHAR;
"""
_COSTS = f"""
UPDATE cell SET cost_per_million = hour.each_million / throughput, currency = ?,
    price_per_hour = hour.per_hour, priced_by = hour.name
FROM (
    SELECT unnest(?::VARCHAR[]) AS place, unnest(?::VARCHAR[]) AS name,
        unnest(?::DOUBLE[]) AS per_hour, unnest(?::DOUBLE[]) AS each_million
) AS hour
WHERE {_PRICEABLE} AND throughput > 0 AND {{place}} = hour.place
"""  # noqa: S608 — our columns
#: A cell that says its own cost keeps it.
_OWN = f"""
UPDATE cell SET cost_per_million = own_cost, currency = ?, price_per_hour = NULL, priced_by = NULL
WHERE {_PRICEABLE} AND own_cost IS NOT NULL
"""  # noqa: S608 — our columns


def add_costs(
    memory: DuckDBPyConnection, machines: Mapping[str, Machine], prices: Prices | None
) -> bool:
    """Give cells their costs; whether any has one.

    Args:
        memory: the snapshot, with the table `cell`.
        machines: by their ids.
        prices: the user's; without any, a cell has the cost that it says itself.
    """
    memory.execute(_COLUMNS)
    place = f"concat_ws(chr(31), {', '.join(f'coalesce({n}::VARCHAR, chr(0))' for n in _PLACE)})"
    if prices is not None:
        by_place = _found(memory, machines, prices, place)
        lists: tuple[Sequence[object], ...] = (
            list(by_place),
            [price.name for price in by_place.values()],
            [price.per_hour for price in by_place.values()],
            [per_million(price.per_hour, 1.0) for price in by_place.values()],
        )
        memory.execute(_COSTS.format(place=place), [prices.currency, *lists])
    if prices is None or prices.currency == USUAL_CURRENCY:
        memory.execute(_OWN, [USUAL_CURRENCY])
    memory.execute("ALTER TABLE cell DROP COLUMN own_cost")
    ((count,),) = memory.execute("SELECT count(cost_per_million) FROM cell").fetchall()
    return bool(count)


def without_a_place(
    memory: DuckDBPyConnection, machines: Mapping[str, Machine], prices: Prices | None
) -> str:
    """Which prices are of no device, platform or machine of a snapshot, in a sentence; else ""."""
    if prices is None:
        return ""
    known, devices = set[str](), set[str]()
    for values in memory.execute(f"SELECT DISTINCT {', '.join(_PLACE)} FROM cell").fetchall():  # noqa: S608
        row = dict(zip(_PLACE, values, strict=True))
        known |= names_of_place(row, machines.get(str(row["machine"])))
        devices |= {str(row["device_name"])} if row["device_name"] else set()
    return unmatched_prices(prices, known, sorted(devices))


@dataclass(frozen=True)
class StepCost:
    """What a cell's page says beside the cost of a million.

    Attributes:
        items: what a million is of.
        per_step: what a training step costs.
        price: what an hour costs, in words.
    """

    items: str
    per_step: float | None
    price: str


def spent_of(
    rows: Sequence[Row], prices: Prices | None, machine: Machine | None
) -> StepCost | None:
    """Of the launches of one cell; None where they have no cost."""
    machines = {} if machine is None else {str(row.get("run_id") or ""): machine for row in rows}
    cost_rows = [row for row in with_costs(rows, prices, machines) if row.get(PER_MILLION)]
    if not cost_rows:
        return None
    side, price = Side((), cost_rows), known_price(cost_rows[0])
    words = told_of(price, prices) if price is not None and prices is not None else ""
    return StepCost(items_of(cost_rows[0]), side.step_cost, words)


def _found(
    memory: DuckDBPyConnection, machines: Mapping[str, Machine], prices: Prices, place: str
) -> dict[str, Price]:
    """The price of each place that has one."""
    places = memory.execute(
        f"SELECT DISTINCT {place}, {', '.join(_PLACE)} FROM cell WHERE {_PRICEABLE}"  # noqa: S608
    ).fetchall()
    by_place = {}
    for key, *values in places:
        row = dict(zip(_PLACE, values, strict=True))
        price = price_of(row, prices, machines.get(str(row["machine"])))
        if price is not None:
            by_place[str(key)] = price
    return by_place

"""What has to be said where costs are shown: by which prices, and what has none. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import floor, log10

from accelbench.analysis.costs import PRICE, Price, known_price, priceable
from accelbench.analysis.sides import PER_MILLION, PER_STEP
from accelbench.core.absent import NO_DATA, UNKNOWN_HARDWARE
from accelbench.core.rows import Row
from accelbench.exchange.prices import Prices, near_names, plain_name

#: More names than this are counted.
_NAMED = 6
#: Names that may have been meant, of those that are like one.
_MEANT = 2


def priced_by(rows: Iterable[Row]) -> list[Price]:
    """The prices that were used, each once, in the order of their names."""
    prices = {price for row in rows if (price := known_price(row))}
    return sorted(prices, key=lambda price: (price.name, price.devices))


def without_price(rows: Iterable[Row]) -> list[str]:
    """Devices that a price would give a cost, and that have none."""
    bare = (row for row in rows if priceable(row) and not row.get(PRICE))
    return sorted({_device(row) for row in bare if row.get(PER_MILLION) is None})


def cost_notes(rows: Sequence[Row], prices: Prices | None) -> list[str]:
    """Sentences for below a table or a title; none where nobody gave prices.

    Args:
        rows: as `with_costs` gave them.
        prices: the user's.
    """
    if prices is None:
        return []
    used = priced_by(rows)
    if not used:
        return nothing_priced(rows, prices)
    bare = without_price(rows)
    notes = [f"Priced by {prices.source}: {'; '.join(told_of(price, prices) for price in used)}."]
    if bare:
        notes.append(f"Without a price: {_listed(bare)}.")
    return notes


def told_of(price: Price, prices: Prices) -> str:
    """A price in words: 8 × NVIDIA H200 at $2.50 an hour each."""
    unit_price = f"{price.name} at {amount(price.each, prices.sign)} an hour"
    return unit_price if price.devices == 1 else f"{price.devices} × {unit_price} each"


def amount(value: float, sign: str) -> str:
    """A price, with cents: $1.20, $0.035."""
    whole, _, cents = f"{value:,.9f}".partition(".")
    return f"{sign}{whole}.{cents.rstrip('0'):0<2}"


def money(value: float | None) -> str:
    """A cost in three digits, however little it is, and without an exponent; no data of none."""
    if value is None or value <= 0:
        return NO_DATA
    return f"{value:,.{max(0, 2 - floor(log10(value)))}f}"


def has_costs(rows: Iterable[Row]) -> bool:
    """Whether anything is known to cost anything."""
    return any(row.get(name) is not None for row in rows for name in (PER_MILLION, PER_STEP))


def nothing_priced(rows: Sequence[Row], prices: Prices | None) -> list[str]:
    """That no price is of anything here, and which name may have been meant; else nothing."""
    if prices is None or priced_by(rows):
        return []
    devices = without_price(rows)
    if not devices:
        return []
    names = [name.rpartition(" (")[0] or name for name in devices]
    near = dict.fromkeys(
        candidate for name in prices.per_hour for candidate in near_names(name, names)
    )
    meant = f" Did you mean {' or '.join(list(near)[:_MEANT])}?" if near else ""
    intro = f"No price of {prices.source} is of what is here: it has"
    return [f"{intro} {_listed(list(prices.per_hour))}; here are {_listed(devices)}.{meant}"]


def unmatched_prices(prices: Prices, known: Iterable[str], devices: Sequence[str]) -> str:
    """A sentence on the prices that are of nothing here, each with the name that may be meant.

    Args:
        prices: the user's.
        known: every name that a price of something here could have.
        devices: the names of devices, as they are shown.
    """
    names = {plain_name(name) for name in known}
    unmatched = [
        f"{name}{_meant(name, devices)}"
        for name in prices.per_hour
        if plain_name(name) not in names
    ]
    return (
        f"Prices of {prices.source} that are of nothing here: {_listed(unmatched)}."
        if unmatched
        else ""
    )


def _meant(name: str, devices: Sequence[str]) -> str:
    near = near_names(name, devices)[:_MEANT]
    return f" (did you mean {' or '.join(near)}?)" if near else ""


def _device(row: Row) -> str:
    platform = str(row.get("hardware") or UNKNOWN_HARDWARE)
    name = row.get("device_name")
    return f"{name} ({platform})" if name else platform


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more} more" if more > 0 else "")

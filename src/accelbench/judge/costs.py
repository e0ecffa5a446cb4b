"""What figures cost, by prices that a user has given. Pure.

A cost is derived when rows are read, and never stored: a price is the user's, not a measurement.
What nobody measured, and what a stand-in for the device did, has none.

What has to be said where costs are shown: by which prices, and what has none. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import floor, log10

from accelbench.core.device_facts import facts_of
from accelbench.core.devices import parse_device_count
from accelbench.core.formatting import NO_DATA, UNKNOWN_HARDWARE
from accelbench.core.result_statistics import unit_kind
from accelbench.core.rows import Row, number
from accelbench.core.vocabulary import Mode
from accelbench.evidence.launches import launches_of
from accelbench.exchange.prices import DEFAULT_CURRENCY, Prices, find_similar, normalise_name
from accelbench.judge.machines import Machine
from accelbench.judge.sides import PER_MILLION, PER_STEP
from accelbench.judge.verdicts import METRICS

_RATE = {metric.name: metric.of for metric in METRICS}["throughput"]
_HOUR_SECONDS = 3600.0
#: What a million of is priced, since one item costs next to nothing.
_MILLION = 1e6
#: Where a row says by which price.
PRICE = "price"
#: Its processes share what it is: only an import's name says that there were several.
_SHARED = "cpu"
#: Of a unit, what people call the items.
_ITEMS = {"audio s": "seconds of sound", "": "inferences", "item": "items"}


@dataclass(frozen=True)
class Price:
    """What an hour of what a row ran on costs.

    Attributes:
        name: of the price, as the file spells it.
        each: by that name.
        devices: how many of these worked on a step; a machine is one.
        covers: machine, device or platform.
    """

    name: str
    each: float
    devices: int
    covers: str

    @property
    def per_hour(self) -> float:
        """Of all of them."""
        return self.each * self.devices


def per_million(per_hour: float, items_a_second: float) -> float:
    """What a million items cost."""
    return per_hour / _HOUR_SECONDS / items_a_second * _MILLION


def per_step(per_hour: float, step_ms: float) -> float:
    """What one step costs."""
    return per_hour / _HOUR_SECONDS * step_ms / 1e3


def price_of(row: Row, prices: Prices, machine: Machine | None = None) -> Price | None:
    """The price of what a row ran on, by the most specific name that has one.

    A machine's price is of all that is in it, whatever of it worked. A device's or a platform's
    is of one device, so several cost several times as much.
    """
    for covers, name, devices in _names(row, machine):
        spelt = prices.find_key(name)
        if spelt is None and covers == "device":
            spelt = prices.by_device.get(name)
        if spelt is not None:
            return Price(spelt, prices.per_hour[spelt], devices, covers)
    return None


def names_of_place(row: Row, machine: Machine | None = None) -> set[str]:
    """Every name under which a price would be of what a row ran on."""
    return {name for _, name, _ in _names(row, machine)}


def _names(row: Row, machine: Machine | None) -> Iterable[tuple[str, str, int]]:
    """The names of what it ran on, the most specific first, each with how many of it there were."""
    if machine is not None:
        yield "machine", machine.name, 1
        yield "machine", machine.name.removeprefix("source "), 1
        yield "machine", machine.id, 1
    platform, device = str(row.get("hardware") or ""), str(row.get("device_name") or "")
    devices, single = parse_device_count(device)
    counted = devices > 1
    if platform != _SHARED:
        devices = max(devices, int(number(row, "world_size") or 1))
    if row.get("device_fingerprint"):
        yield "device", str(row["device_fingerprint"]), devices
    if counted:  # a price of eight under the name of eight is of all of them
        yield "device", f"{platform}:{device}", 1
        yield "device", device, 1
    yield "device", f"{platform}:{single}", devices
    yield "device", single, devices
    if facts := facts_of(single, platform):
        yield "device", facts.name, devices
    yield "platform", platform, devices


def known_price(row: Row) -> Price | None:
    """The price of a row as `with_costs` gave it."""
    price = row.get(PRICE)
    return price if isinstance(price, Price) else None


def items_of(row: Row) -> str:
    """What is counted of a row: images, tokens; inferences where nobody says."""
    unit = str(row.get("throughput_unit") or "") if row.get("throughput") else ""
    word = unit.lower().removesuffix("/s").strip()
    return _ITEMS.get(word, word)


def priceable(row: Row) -> bool:
    """Whether a row's time is a device's: answered, measured by somebody, and not emulated."""
    return bool(row["answered"] and row["comparable"] and not row.get("emulated"))


def step_time(row: Row) -> float | None:
    """Milliseconds of a step in the long run: its mean, as slow steps are paid for as well."""
    known = number(row, "latency_mean_ms") or number(row, "latency_p50_ms")
    if known:
        return float(known)
    rate = number(row, "throughput")
    # Of items that are not the batch's — tokens, seconds of sound — a rate says nothing of a step.
    whole = rate and not unit_kind(str(row.get("throughput_unit") or ""))
    return 1e3 * int(number(row, "batch_size") or 1) / float(rate) if whole and rate else None


def cost_of(row: Row, prices: Prices | None, machine: Machine | None = None) -> dict[str, object]:
    """What a row is told of its cost; nothing where it has no price.

    A row that says its own cost keeps it, where that is of the same currency.
    """
    own_cost = number(row, "cost_usd")
    if (prices is None and not own_cost) or not priceable(row):
        return {}
    price = None if prices is None else price_of(row, prices, machine)
    rate, step = _RATE(row), step_time(row)
    costs: dict[str, object] = {}
    if price is not None:
        costs[PRICE] = price
        if rate:
            costs[PER_MILLION] = per_million(price.per_hour, rate)
        if row.get("mode") == Mode.TRAINING and step is not None:
            costs[PER_STEP] = per_step(price.per_hour, step)
    if own_cost and (prices is None or prices.currency == DEFAULT_CURRENCY):
        # Of its own: by which price a step was, nobody knows.
        return {PER_MILLION: float(own_cost)}
    return costs


def with_costs(
    rows: Iterable[Row], prices: Prices | None, machines: Mapping[str, Machine]
) -> list[dict[str, object]]:
    """The rows, those that have a price with what they cost.

    Args:
        rows: of any status and provenance.
        prices: the user's; without any, a row has the cost that it says itself.
        machines: of each run.
    """
    return [
        {**row, **cost_of(row, prices, machines.get(str(row.get("run_id") or "")))}
        for row in launches_of(rows)
    ]


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
        candidate for name in prices.per_hour for candidate in find_similar(name, names)
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
    known = set(known)
    names = {normalise_name(name) for name in known}
    unmatched = [
        f"{name}{_meant(name, devices)}"
        for name in prices.per_hour
        if normalise_name(name) not in names
        and not any(key == name and device in known for device, key in prices.by_device.items())
    ]
    return (
        f"Prices of {prices.source} that are of nothing here: {_listed(unmatched)}."
        if unmatched
        else ""
    )


def _meant(name: str, devices: Sequence[str]) -> str:
    near = find_similar(name, devices)[:_MEANT]
    return f" (did you mean {' or '.join(near)}?)" if near else ""


def _device(row: Row) -> str:
    platform = str(row.get("hardware") or UNKNOWN_HARDWARE)
    name = row.get("device_name")
    return f"{name} ({platform})" if name else platform


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more} more" if more > 0 else "")

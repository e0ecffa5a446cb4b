"""Figures, moments and sizes as people read them, for templates. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from markupsafe import Markup, escape

from accelbench.analysis.costs import money
from accelbench.analysis.ratios import Ratio
from accelbench.core.axes import AS_TOLD, axes_of
from accelbench.core.devices import devices_beside
from accelbench.core.figures import ends_text
from accelbench.core.nouns import NO_DATA, counted
from accelbench.core.rows import Row
from accelbench.core.vocabulary import SINGLE_STREAM
from accelbench.core.worth import (
    FAILED,
    LAUNCHED,
    UnusableReason,
    add_calculation,
    launches_failed,
    percentile_text,
    reason_texts,
)
from accelbench.report.charts.words import figure, safe, short_device

_SIZES = [(axis.column, axis.page_label) for axis in axes_of(*AS_TOLD)]


def number(value: float | None) -> str:
    """Three digits and more; no data of nothing."""
    return NO_DATA if value is None else figure(float(value))


def whole(value: float | None) -> str:
    """A count."""
    return NO_DATA if value is None else f"{int(value):,}"


def moment(value: object) -> str:
    """To the minute, in UTC, as everything stored is."""
    return str(value)[:16].replace("T", " ") if value else NO_DATA


def day(value: object) -> str:
    """The day alone."""
    return str(value)[:10] if value else NO_DATA


def device(name: object) -> str:
    """A device's name without what its platform says already."""
    return short_device(str(name)) if name else ""


def size(row: Row) -> str:
    """What an item is: seq 128, 224 px."""
    return " · ".join(template.format(row[n]) for n, template in _SIZES if row.get(n))


def devices(row: Row) -> str:
    """How many devices worked on a step, where the device's name beside it does not say it."""
    return devices_beside(row, device(row.get("device_name")))


def title(row: Row) -> str:
    """What a cell is of, without its model: what stands after the name."""
    words = [
        f"{row.get('runtime')} on {row.get('hardware')}",
        devices_beside(row, ""),
        str(row.get("precision")),
        f"batch {row['batch_size']}" if row.get("batch_size") else "",
        size(row),
        "training" if row.get("mode") == "training" else "",
        scenario
        if (scenario := str(row.get("scenario") or SINGLE_STREAM)) != SINGLE_STREAM
        else "",
        str(row.get("apart") or ""),
    ]
    return " · ".join(word for word in words if word)


#: An item of the batch by another name; the heading of its column says as much.
_ITEMS = frozenset(("images/s", "items/s", "inferences/s", "samples/s", "sequences/s"))


def unit(row: Row) -> str:
    """What a rate counts, where that is no item of the batch: tokens/s, queries/s."""
    text = str(row.get("throughput_unit") or "")
    return "" if text.lower() in _ITEMS else text


def why_not(cell: Row) -> str:
    """Return why a cell's times are unusable."""
    reasons = cell["why_unusable"]
    if isinstance(reasons, list) and UnusableReason.MOST_LAUNCHES_FAILED in reasons:
        return launches_failed([{FAILED: cell["failed"], LAUNCHED: cell["launches"]}])
    return reason_texts(reasons)


def explain_cell(cell: Row) -> str:
    """Return why a cell's times are unusable, with the calculation of an implausible rate."""
    return add_calculation(why_not(cell), cell)


def ends(low: float | None, high: float | None) -> str:
    """Return both ends of an interval: 1.52 to 2.83; "" without them."""
    return ends_text(low, high, figure)


def ratio_ends(ratio: Ratio) -> str:
    """Return both ends of a ratio's interval: 1.1× to 1.3×."""
    return ratio.ends_text(share)


def tails(row: Row) -> str:
    """p90, p95 and p99 of a launch, ~ before those that are only rough."""
    names = (f"latency_{name}_ms" for name in ("p90", "p95", "p99"))
    return " · ".join(percentile_text(row, name, number) for name in names)


def seen(name: object) -> str:
    """A name that can be clicked on even where it is nothing but spaces."""
    text = str(name)
    return text if text.strip() else f"“{text}”"


def share(value: float | None) -> str:
    """A ratio: 1.84×."""
    return NO_DATA if value is None else f"{figure(value)}×"


#: A change beyond this is said as how many times as much: +5,845.9 % tells nobody anything.
_MUCH = 10.0


def change(share: float) -> str:
    """A change as a share: +50.1 %; beyond ten times 59×."""
    return f"{share * 100:+.1f} %" if share < _MUCH else f"{1.0 + share:,.0f}×"


def plain(value: object) -> str:
    """Any value in one line."""
    if value is None or value == "":
        return NO_DATA
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return figure(value)
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, list | tuple):
        return ", ".join(plain(member) for member in value) or "none"
    if isinstance(value, Mapping):
        return " · ".join(f"{key} {plain(member)}" for key, member in value.items()) or "none"
    return str(value)


def calm(text: object) -> str:
    """For a window's title, where nothing can be kept apart: without what turns text round."""
    return safe(str(text).strip(), 120)


def exact(value: object) -> Markup:
    """What a form sends back, which nobody sees: the name as it is stored."""
    return escape(str(value))


_FILTERS: tuple[Callable[..., object], ...] = (
    *(calm, change, counted, day, device, devices, exact, moment, money, number, plain, seen),
    *(share, size, tails, title, unit, whole),
)
FILTERS = {one.__name__: one for one in _FILTERS}

"""The number, date and name formats of templates. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from markupsafe import Markup, escape

from accelbench.core import unusable_reasons
from accelbench.core.axes import TITLE_ORDER, axes_of
from accelbench.core.devices import device_count_text
from accelbench.core.formatting import NO_DATA, format_count, format_value
from accelbench.core.result_statistics import ends_text
from accelbench.core.rows import Row
from accelbench.core.vocabulary import SINGLE_STREAM
from accelbench.judge.costs import money
from accelbench.judge.ratios import Ratio
from accelbench.present.charts.words import safe, short_device

_SIZES = [(axis.column, axis.page_label) for axis in axes_of(*TITLE_ORDER)]


def whole(value: float | None) -> str:
    """Return a count."""
    return NO_DATA if value is None else f"{int(value):,}"


def moment(value: object) -> str:
    """Return a time stamp to the minute, in UTC like all stored ones."""
    return str(value)[:16].replace("T", " ") if value else NO_DATA


def day(value: object) -> str:
    """Return the day of a time stamp."""
    return str(value)[:10] if value else NO_DATA


def device(name: object) -> str:
    """Return the name of a device without that of its platform."""
    return short_device(str(name)) if name else ""


def size(row: Row) -> str:
    """Return the size of an item: seq 128, 224 px."""
    return " · ".join(template.format(row[n]) for n, template in _SIZES if row.get(n))


def devices(row: Row) -> str:
    """Return the number of devices, unless the device's name has it."""
    return device_count_text(row, device(row.get("device_name")))


def title(row: Row) -> str:
    """Return the name of a configuration without its model."""
    scenario = str(row.get("scenario") or SINGLE_STREAM)
    words = [
        f"{row.get('runtime')} on {row.get('hardware')}",
        device_count_text(row, ""),
        str(row.get("precision")),
        f"batch {row['batch_size']}" if row.get("batch_size") else "",
        size(row),
        "training" if row.get("mode") == "training" else "",
        "" if scenario == SINGLE_STREAM else scenario,
        str(row.get("apart") or ""),
    ]
    return " · ".join(word for word in words if word)


#: Units of batch items, which the heading of the column names.
_ITEMS = frozenset(("images/s", "items/s", "inferences/s", "samples/s", "sequences/s"))


def unit(row: Row) -> str:
    """Return the unit of a rate if it does not count batch items: tokens/s, queries/s."""
    text = str(row.get("throughput_unit") or "")
    return "" if text.lower() in _ITEMS else text


def why_not(cell: Row) -> str:
    """Return why a cell's times are unusable."""
    reasons = cell["why_unusable"]
    if (
        isinstance(reasons, list)
        and unusable_reasons.UnusableReason.MOST_LAUNCHES_FAILED in reasons
    ):
        return unusable_reasons.failed_launches_text(
            [{unusable_reasons.FAILED: cell["failed"], unusable_reasons.LAUNCHED: cell["launches"]}]
        )
    return unusable_reasons.reason_texts(reasons)


def explain_cell(cell: Row) -> str:
    """Return why a cell's times are unusable, with the calculation of an implausible rate."""
    return unusable_reasons.add_calculation(why_not(cell), cell)


def ends(low: float | None, high: float | None) -> str:
    """Return both ends of an interval: 1.52 to 2.83; "" without them."""
    return ends_text(low, high, format_value)


def ratio_ends(ratio: Ratio) -> str:
    """Return both ends of a ratio's interval: 1.1× to 1.3×."""
    return ratio.ends_text(share)


def tails(row: Row) -> str:
    """Return p90, p95 and p99 of a launch, with ~ if they are rough."""
    names = (f"latency_{name}_ms" for name in ("p90", "p95", "p99"))
    return " · ".join(unusable_reasons.percentile_text(row, name, format_value) for name in names)


def seen(name: object) -> str:
    """Return a name that can be clicked even if it has only spaces."""
    text = str(name)
    return text if text.strip() else f"“{text}”"


def share(value: float | None) -> str:
    """Return a ratio: 1.84×."""
    return NO_DATA if value is None else f"{format_value(value)}×"


#: A larger change is shown as a ratio: +5,845.9 % is hard to read.
_MUCH = 10.0


def change(share: float) -> str:
    """Return a change: +50.1 %, or 59×."""
    return f"{share * 100:+.1f} %" if share < _MUCH else f"{1.0 + share:,.0f}×"


def plain(value: object) -> str:
    """Return any value in one line."""
    if value is None or value == "":
        return NO_DATA
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return format_value(value)
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, list | tuple):
        return ", ".join(plain(member) for member in value) or "none"
    if isinstance(value, Mapping):
        return " · ".join(f"{key} {plain(member)}" for key, member in value.items()) or "none"
    return str(value)


def calm(text: object) -> str:
    """Return a text for the title of a window, without control characters of direction."""
    return safe(str(text).strip(), 120)


def exact(value: object) -> Markup:
    """Return a value of a form exactly as it is stored."""
    return escape(str(value))


_FILTERS: tuple[Callable[..., object], ...] = (
    *(calm, change, format_count, day, device, devices, exact, moment, money, plain, seen),
    *(share, size, tails, title, unit, whole),
)
FILTERS = {"number": format_value, **{one.__name__: one for one in _FILTERS}}

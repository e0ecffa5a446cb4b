"""Statistics of results: the time per item, units of rates, and the text of intervals.

The time of a step is its median, or its mean if no median is known. A rate, and a cost derived from
it, follows the mean: the time of all work divided by its items. A percentile is used only if
nothing else is known. Each statistic is compared with the same statistic.

Student's t on the logarithms of two launches gives intervals such as 0.00757 to 9.32 ms around
0.266 ms. Below five launches a view therefore shows the fastest and the slowest launch as a range.
An interval wider than a factor of 100 is shown as not known.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Any

from accelbench.core.columns import step_ms
from accelbench.core.formatting import NOT_KNOWN, format_count
from accelbench.core.rows import Row, number, text
from accelbench.core.unusable_reasons import REASON_COLUMNS, rough_column

#: Unit of a rate without a named unit, and of rates with several units.
ITEMS = "items/s"


#: Names for an item of the batch, which are comparable. Other units are not: a token, a second of
#: sound, a batch, a thousand samples, the share of one of several cards.
_BATCH_ITEMS = (
    *("item", "inference", "image", "img", "querie", "query", "request", "sample", "sequence"),
    *("frame", "fp", "example", "sentence", "clip", "n/a", ""),
)
#: How a unit expresses "per second".
_A_SECOND = r"\s*(/|per)\s*(s|sec|second)$"


@lru_cache(maxsize=1024)
def unit_kind(unit: str) -> str:
    """Return the kind of a unit, equal for comparable rates; "" for items of the batch."""
    word = re.sub(_A_SECOND, "", unit.strip().lower()).rstrip("s")
    return "" if word in _BATCH_ITEMS else word


def unit_kind_sql(column: str) -> str:
    """Return `unit_kind` of a column as SQL."""
    word = f"rtrim(regexp_replace(lower(trim(coalesce({column}, ''))), '{_A_SECOND}', ''), 's')"
    known = ", ".join(f"'{unit}'" for unit in _BATCH_ITEMS)
    return f"CASE WHEN {word} IN ({known}) THEN '' ELSE {word} END"


def throughput_unit(row: Row) -> str:
    """Return the unit of a result's rate as its source names it; samples are items."""
    unit = str(row.get("throughput_unit") or ITEMS)
    return ITEMS if unit.lower() == "samples/s" else unit


def common_unit(rows: Iterable[Row]) -> str:
    """Return the common unit of all rates, for the heading of their column or axis."""
    units = {throughput_unit(row) for row in rows if row.get("throughput") is not None}
    return units.pop() if len(units) == 1 else ITEMS


def differing_unit(row: Row, heading: str) -> str:
    """Return the unit to show next to a rate if it differs from its column's; else ""."""
    unit = throughput_unit(row) if row.get("throughput") is not None else heading
    return "" if unit == heading or (heading == ITEMS and not unit_kind(unit)) else unit


class Statistic(StrEnum):
    """Statistic of a time, in the order of preference."""

    MEDIAN = "p50"
    MEAN = "mean"
    RATE = "throughput"
    P90 = "p90"
    P95 = "p95"
    P99 = "p99"


_COLUMN = {
    Statistic.MEDIAN: "latency_p50_ms",
    Statistic.MEAN: "latency_mean_ms",
    Statistic.P90: "latency_p90_ms",
    Statistic.P95: "latency_p95_ms",
    Statistic.P99: "latency_p99_ms",
}
#: Percentiles are used if nothing else is known, as in many MLPerf results.
TAILS = frozenset({Statistic.P90, Statistic.P95, Statistic.P99})
#: A mean and a rate are the same statistic: the time of all the work divided by its items.
MEANS = frozenset({Statistic.MEAN, Statistic.RATE})
#: The order of preference for rankings by rate.
RATES_FIRST = (*sorted(MEANS), *(one for one in Statistic if one not in MEANS))
#: Columns from which a result's times follow, and with TIME_COLUMNS their quality too.
STEP_COLUMNS = (
    *_COLUMN.values(),
    *(rough_column(_COLUMN[tail]) for tail in sorted(TAILS)),
    "throughput",
)
TIME_COLUMNS = tuple(
    dict.fromkeys(
        (
            *STEP_COLUMNS,
            *REASON_COLUMNS,
            *("sample_count", "effective_sample_count", "latency_std_ms"),
        )
    )
)


#: Statistics of a step's time, in the order of preference.
_STEPS = (Statistic.MEDIAN, Statistic.MEAN)
_NOTHING_ELSE = (
    "coalesce(latency_mean_ms, 0) = 0 AND coalesce(latency_p50_ms, 0) = 0"
    " AND coalesce(throughput, 0) = 0"
)
_FINE = {
    tail: f"{_COLUMN[tail]} > 0 AND NOT coalesce({rough_column(_COLUMN[tail])}, false)"
    for tail in sorted(TAILS)
}
#: SQL of the percentile of a row without other times, and of the percentile's name.
TAIL_SQL, TAIL_NAME_SQL = (
    f"CASE WHEN {_NOTHING_ELSE} THEN CASE "
    + " ".join(f"WHEN {fine} THEN {of(tail)}" for tail, fine in _FINE.items())
    + " END END"
    for of in (_COLUMN.__getitem__, lambda tail: f"'{tail}'")
)


#: SQL of each percentile of a row without other times; NULL if it is rough.
TAILS_SQL = {
    tail: f"CASE WHEN {_NOTHING_ELSE} AND {fine} THEN {_COLUMN[tail]} END"
    for tail, fine in _FINE.items()
}


#: SQL of a step's time: the median, else the mean.
STEP_SQL = "coalesce(nullif(latency_p50_ms, 0), nullif(latency_mean_ms, 0))"
#: SQL of a step's time for rankings by rate: the mean, else the median; and its name.
STEP_BY_RATE_SQL = "coalesce(nullif(latency_mean_ms, 0), nullif(latency_p50_ms, 0))"
STEP_BY_RATE_NAME_SQL = (
    "CASE WHEN latency_mean_ms > 0 THEN 'mean' WHEN latency_p50_ms > 0 THEN 'p50' END"
)


def item_count(row: Row) -> int:
    """Return the number of items of a step; 1 if it is not known."""
    return int(number(row, "batch_size") or 1)


def step_time_ms(row: Row) -> float | None:
    """Return the median time of a step, else the mean; None if only a rate or a tail is known."""
    return step_ms(row) or None


def find_tail(row: Row) -> tuple[float, Statistic] | None:
    """Return the percentile of a result that has no median, mean or rate."""
    for tail in sorted(TAILS):
        duration = number(row, _COLUMN[tail])
        if duration and not row.get(rough_column(_COLUMN[tail])):
            return float(duration), tail
    return None


def find_common_tail(rows: Sequence[Row]) -> tuple[Statistic, list[float]] | None:
    """Return the lowest percentile that all launches have, with its values.

    It is None if any launch has another statistic. The p90 of one launch and the p99 of another,
    whose p90 is rough, have no common middle.
    """
    if not rows or any(best_statistic(row) not in TAILS for row in rows):
        return None
    for tail in sorted(TAILS):
        steps = [step for row in rows if (step := step_of(row, tail)) is not None]
        if len(steps) == len(rows):
            return tail, steps
    return None


def step_of(row: Row, statistic: Statistic) -> float | None:
    """Return milliseconds of a step by a statistic; a rate has none."""
    name = _COLUMN.get(statistic)
    step = None if name is None else number(row, name)
    if name is None or not step or (statistic in TAILS and row.get(rough_column(name))):
        return None
    return float(step)


def item_ms(row: Row, statistic: Statistic) -> float | None:
    """Return milliseconds per item by a statistic; None for zero."""
    if statistic is Statistic.RATE:
        rate = number(row, "throughput")
        return 1e3 / float(rate) if rate else None
    step = step_of(row, statistic)
    return None if step is None else step / item_count(row)


def rate_of(row: Row) -> float | None:
    """Return items per second: the stored rate, or the rate of a mean and a known batch."""
    if rate := number(row, "throughput"):
        return float(rate)
    step = step_of(row, Statistic.MEAN)
    return None if step is None or not row.get("batch_size") else 1e3 * item_count(row) / step


def best_statistic(row: Row) -> Statistic | None:
    """Return the preferred statistic that a result has; None if it has none."""
    return next((statistic for statistic in Statistic if item_ms(row, statistic) is not None), None)


def statistic_name(statistic: Statistic) -> str:
    """Return the display name: a time calculated from a rate is a mean."""
    return str(Statistic.MEAN if statistic in MEANS else statistic)


Times = tuple[float, ...]


def common_times(rows: Sequence[Row], others: Sequence[Row] = ()) -> tuple[Statistic, Times] | None:
    """Return a statistic that all results have, and the time per item of each of `rows`.

    If all have a rate of tokens, an item is a token: a request with twice the tokens takes longer.
    Otherwise an item is one of the batch, and a step of unknown batch has no time per item.
    """
    every = [*rows, *others]
    if not every:
        return None
    batches = not others or all(row.get("batch_size") for row in every)
    step = next((one for one in _STEPS if batches and _all_have(every, one)), None)
    # Imported rates and times may differ by pauses between steps: a ratio uses the shown value.
    if step is not None and not _count_other_items(every):
        return step, _times(rows, step)
    if _have_common_rate(every):
        means = batches and _all_have(every, Statistic.MEAN)
        return Statistic.MEAN if means else Statistic.RATE, _times(rows, Statistic.RATE)
    if step is not None:
        return step, _times(rows, step)
    if all(_mean_item_ms(row) is not None for row in every) and not _have_several_units(every):
        return Statistic.RATE, tuple(float(_mean_item_ms(row) or 0.0) for row in rows)
    statistic = next(
        (kind for kind in Statistic if kind not in MEANS and _all_have(every, kind)), None
    )
    return None if statistic is None or not batches else (statistic, _times(rows, statistic))


def _times(rows: Iterable[Row], statistic: Statistic) -> Times:
    return tuple(float(item_ms(row, statistic) or 0.0) for row in rows)


def _all_have(rows: Iterable[Row], statistic: Statistic) -> bool:
    return all(item_ms(row, statistic) is not None for row in rows)


def _mean_item_ms(row: Row) -> float | None:
    mean = item_ms(row, Statistic.MEAN) if row.get("batch_size") else None
    return item_ms(row, Statistic.RATE) if mean is None else mean


def _have_common_rate(rows: Sequence[Row]) -> bool:
    return _all_have(rows, Statistic.RATE) and not _have_several_units(rows)


def _count_other_items(rows: Iterable[Row]) -> bool:
    """Return whether any rate counts something other than items of the batch."""
    return any(unit_kind(str(row.get("throughput_unit") or "")) for row in rows)


def _have_several_units(rows: Iterable[Row]) -> bool:
    """Return whether the rates name different units; a missing unit fits any."""
    units = (text(row, "throughput_unit") for row in rows)
    return len({unit_kind(unit) for unit in units if unit}) > 1


#: Fewest launches whose interval is shown.
FEWEST_LAUNCHES = 5
#: The high end of the widest interval that is shown, as a multiple of the low end.
WIDEST_INTERVAL = 100.0
#: Reason why both ends are null.
TOO_WIDE = f"the 95 % interval is wider than a factor of {WIDEST_INTERVAL:.0f}"
#: An interval is lopsided if one end is this many times as far from the value as the other, and
#: farther by this share of the value. ± would misplace both ends by half of that.
_LOPSIDED = ((1.5, 0.02), (3.0, 0.005))
#: Beyond this half-width both ends are shown: at ±100 % the ends are zero and twice the value.
_WIDEST_SHARE = 0.5

Number = Callable[[float], str]


class SpreadKind(StrEnum):
    """Meaning of the two ends of a spread."""

    INTERVAL = "interval"  # 95 %, of five launches or more
    RANGE = "range"  # the fastest and the slowest of two to four launches
    SAMPLES = "samples"  # 95 %, within a single launch


@dataclass(frozen=True)
class Spread:
    """The ends that are shown next to a value."""

    # the lower end, and `high` the upper one; both None if the interval is too wide
    low: float | None
    high: float | None
    kind: SpreadKind
    count: int = 1  # of launches or runs

    @property
    def absence_reason(self) -> str:
        """Reason why the ends are unknown; "" if they are known."""
        return TOO_WIDE if self.low is None else ""

    def describe_count(self, one: str = "launch", many: str = "launches") -> str:
        """Return the source of the ends: "of 5 launches", "range of 3 launches"."""
        if self.kind is SpreadKind.SAMPLES:
            return f"within one {one}"
        number = format_count(self.count, one, many)
        return f"range of {number}" if self.kind is SpreadKind.RANGE else f"of {number}"

    def text(
        self, middle: float, number: Number, unit: str = "", noun: tuple[str, str] | None = None
    ) -> str:
        """Return the text next to a value: "±2.1%" or "1.93 … 2.34, range of 3 launches".

        The unit follows both ends and includes its space. `noun` is the singular and plural of the
        counted thing.
        """
        if self.kind is SpreadKind.RANGE and self.low is not None and self.high is not None:
            ends = f"{number(self.low)} … {number(self.high)}{unit}"
            return f"{ends}, {self.describe_count(*noun) if noun else self.describe_count()}"
        if self.low is None:
            return NOT_KNOWN
        return interval_text(self.low, middle, self.high, number, unit)

    def ends(self, number: Number, unit: str = "") -> str:
        """Return both ends in a column of intervals: "7.90 to 8.12"."""
        if self.low is None or self.high is None:
            return NOT_KNOWN
        ends = f"{number(self.low)} to {number(self.high)}{unit}"
        return ends if self.kind is SpreadKind.INTERVAL else f"{ends}, {self.describe_count()}"

    def sentence(self, number: Number, unit: str = "") -> str:
        """Return it in a sentence: "95 % interval 7.90 to 8.12, of 5 launches"."""
        if self.low is None or self.high is None:
            return f"95 % interval {NOT_KNOWN}, {self.describe_count()}"
        ends = f"{number(self.low)} to {number(self.high)}{unit}"
        if self.kind is SpreadKind.RANGE:
            return f"{self.describe_count()} {ends}"
        return f"95 % interval {ends}, {self.describe_count()}"


def ends_document(spread: Spread | None) -> dict[str, object]:
    """Return the ends as JSON has them, what they are, and the reason if they are null."""
    if spread is None:
        return {"low": None, "high": None, "ends_are": None, "why_no_ends": "no interval is known"}
    return {
        "low": spread.low,
        "high": spread.high,
        "ends_are": spread.kind.value,
        "why_no_ends": spread.absence_reason or None,
    }


def read_spread(document: Mapping[str, Any] | None) -> Spread | None:
    """Return the spread of a document with a `count`; None without one."""
    if document is None or document["ends_are"] is None:
        return None
    kind = SpreadKind(document["ends_are"])
    return Spread(document["low"], document["high"], kind, document["count"])


def is_too_wide(low: float, high: float) -> bool:
    """Return whether an interval is too wide to be shown; one that begins at zero is."""
    return high > 0.0 and high > WIDEST_INTERVAL * low


def shown_ends(low: float | None, high: float | None) -> tuple[float | None, float | None]:
    """Return both ends of an interval, or None twice if it is not known or too wide."""
    if low is None or high is None or is_too_wide(low, high):
        return None, None
    return low, high


def ends_text(
    low: float | None, high: float | None, number: Number, between: str = " to ", unit: str = ""
) -> str:
    """Return both ends of an interval, NOT_KNOWN if it is too wide, and "" without ends."""
    if low is None or high is None:
        return ""
    if is_too_wide(low, high):
        return NOT_KNOWN
    return f"{number(low)}{between}{number(high)}{unit}"


def changes_text(low: float, high: float, number: Number, between: str = " … ") -> str:
    """Return both ends of a change, which are shares of the value before: "-2.0% … +3.1%"."""
    if is_too_wide(1.0 + low, 1.0 + high):
        return NOT_KNOWN
    return f"{number(low)}{between}{number(high)}"


def interval_text(
    low: float | None, middle: float | None, high: float | None, number: Number, unit: str = ""
) -> str:
    """Return an interval around a value: ± per cent of it, or both ends if it is lopsided."""
    if low is None or high is None or not middle:
        return ""
    if is_too_wide(low, high):
        return NOT_KNOWN
    below, above = middle - low, high - middle
    far, near = max(below, above), min(below, above)
    lopsided = any(
        far > times * near and far - near > part * abs(middle) for times, part in _LOPSIDED
    )
    if lopsided or far > _WIDEST_SHARE * abs(middle):
        return f"{number(low)} … {number(high)}{unit}"
    return f"±{50.0 * (high - low) / abs(middle):.1f}%"

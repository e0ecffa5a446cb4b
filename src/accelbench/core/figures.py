"""Which figure of a result is a time per item, and which one several results have in common. Pure.

The time of a step is its median, and its mean where no median is known. A rate, and a cost made of
it, is by the mean: the time of all the work divided by its items. A percentile stands where there
is nothing else. Each is compared with the same alone.

Units of throughput: which rates count the same, and how a column of rates is headed. Pure.

How an interval, or the range of a few launches, is shown: one rule for every view. Pure.

Student's t on the logarithms of two launches gives intervals such as 0.00757 to 9.32 ms around
0.266 ms. Below five launches a view therefore shows the fastest and the slowest launch and names
them a range. An interval wider than a factor of 100 is not shown, and not known.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Any

from accelbench.core.columns import step_ms
from accelbench.core.nouns import NOT_KNOWN, counted
from accelbench.core.rows import Row, number, text
from accelbench.core.unusable_reasons import REASON_COLUMNS, rough_column

#: The unit of a rate whose source names none, and of rates that are of several kinds of items.
ITEMS = "items/s"


#: An item of the batch by any other name is the same item. Whatever else is counted is of a kind of
#: its own: a token, a second of sound, a batch, a thousand samples, what one of several cards does.
_OF_THE_BATCH = (
    *("item", "inference", "image", "img", "querie", "query", "request", "sample", "sequence"),
    *("frame", "fp", "example", "sentence", "clip", "n/a", ""),
)
#: How a rate says that it is of a second.
_A_SECOND = r"\s*(/|per)\s*(s|sec|second)$"


@lru_cache(maxsize=1024)
def kind_of_unit(unit: str) -> str:
    """What tells units apart whose rates cannot be held together; "" of items of the batch."""
    word = re.sub(_A_SECOND, "", unit.strip().lower()).rstrip("s")
    return "" if word in _OF_THE_BATCH else word


def kind_sql(column: str) -> str:
    """The same of a column of units, in SQL."""
    word = f"rtrim(regexp_replace(lower(trim(coalesce({column}, ''))), '{_A_SECOND}', ''), 's')"
    known = ", ".join(f"'{unit}'" for unit in _OF_THE_BATCH)
    return f"CASE WHEN {word} IN ({known}) THEN '' ELSE {word} END"


def unit_of(row: Row) -> str:
    """Return the unit of a result's rate as its source names it; samples are items."""
    unit = str(row.get("throughput_unit") or ITEMS)
    return ITEMS if unit.lower() == "samples/s" else unit


def unit_of_all(rows: Iterable[Row]) -> str:
    """The unit that all rates have, for the heading of their column or axis."""
    units = {unit_of(row) for row in rows if row.get("throughput") is not None}
    return units.pop() if len(units) == 1 else ITEMS


def unit_beside(row: Row, heading: str) -> str:
    """Return the unit to write beside a rate whose column has another; "" if there is none."""
    unit = unit_of(row) if row.get("throughput") is not None else heading
    return "" if unit == heading or (heading == ITEMS and not kind_of_unit(unit)) else unit


class Statistic(StrEnum):
    """Which figure a time is, in the order in which one is chosen."""

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
#: Where there is nothing else, as in much of MLPerf, a tail is compared with the same tail.
TAILS = frozenset({Statistic.P90, Statistic.P95, Statistic.P99})
#: A mean and a rate are one figure: the time of all the work, divided by its items.
MEANS = frozenset({Statistic.MEAN, Statistic.RATE})
#: The order in which a figure is chosen where places are ranked by their rates.
RATES_FIRST = (*sorted(MEANS), *(one for one in Statistic if one not in MEANS))
#: What a row has to have for its figures to be found, and for what they are worth.
OF_A_STEP = (
    *_COLUMN.values(),
    *(rough_column(_COLUMN[tail]) for tail in sorted(TAILS)),
    "throughput",
)
TIMES = tuple(
    dict.fromkeys(
        (*OF_A_STEP, *REASON_COLUMNS, *("sample_count", "effective_sample_count", "latency_std_ms"))
    )
)


#: The time of a step, from the one that is chosen first.
_STEPS = (Statistic.MEDIAN, Statistic.MEAN)
_NOTHING_ELSE = (
    "coalesce(latency_mean_ms, 0) = 0 AND coalesce(latency_p50_ms, 0) = 0"
    " AND coalesce(throughput, 0) = 0"
)
_FINE = {
    tail: f"{_COLUMN[tail]} > 0 AND NOT coalesce({rough_column(_COLUMN[tail])}, false)"
    for tail in sorted(TAILS)
}
#: The percentile of a row of which nothing else is known, and its name, in SQL.
TAIL_SQL, TAIL_OF_SQL = (
    f"CASE WHEN {_NOTHING_ELSE} THEN CASE "
    + " ".join(f"WHEN {fine} THEN {of(tail)}" for tail, fine in _FINE.items())
    + " END END"
    for of in (_COLUMN.__getitem__, lambda tail: f"'{tail}'")
)


#: Each percentile of a row of which nothing else is known, in SQL; NULL where it is only rough.
TAILS_SQL = {
    tail: f"CASE WHEN {_NOTHING_ELSE} AND {fine} THEN {_COLUMN[tail]} END"
    for tail, fine in _FINE.items()
}


#: A step of a row, in SQL: the median, else the mean.
STEP_SQL = "coalesce(nullif(latency_p50_ms, 0), nullif(latency_mean_ms, 0))"
#: The same where places are ranked by their rates: the mean, else the median; and which it is.
STEP_BY_RATE_SQL = "coalesce(nullif(latency_mean_ms, 0), nullif(latency_p50_ms, 0))"
STEP_BY_RATE_OF_SQL = (
    "CASE WHEN latency_mean_ms > 0 THEN 'mean' WHEN latency_p50_ms > 0 THEN 'p50' END"
)


def items(row: Row) -> int:
    """Items of a step, where that is known."""
    return int(number(row, "batch_size") or 1)


def latency(row: Row) -> float | None:
    """What a step took at the median, or on average; nothing is made of a rate or of a tail."""
    return step_ms(row) or None


def tail_of(row: Row) -> tuple[float, Statistic] | None:
    """The percentile that stands for a result of which no median, no mean and no rate is known."""
    for tail in sorted(TAILS):
        duration = number(row, _COLUMN[tail])
        if duration and not row.get(rough_column(_COLUMN[tail])):
            return float(duration), tail
    return None


def tail_of_all(rows: Sequence[Row]) -> tuple[Statistic, list[float]] | None:
    """The lowest percentile that all launches have, and of each of them; None where one has more.

    The p90 of one beside the p99 of another, whose p90 is only rough, has no middle.
    """
    if not rows or any(statistic_of(row) not in TAILS for row in rows):
        return None
    for tail in sorted(TAILS):
        steps = [step for row in rows if (step := step_of(row, tail)) is not None]
        if len(steps) == len(rows):
            return tail, steps
    return None


def step_of(row: Row, statistic: Statistic) -> float | None:
    """Milliseconds of a step by a figure; a rate has none."""
    name = _COLUMN.get(statistic)
    step = None if name is None else number(row, name)
    if name is None or not step or (statistic in TAILS and row.get(rough_column(name))):
        return None
    return float(step)


def item_ms(row: Row, statistic: Statistic) -> float | None:
    """Milliseconds an item by a figure; nothing takes no time at all."""
    if statistic is Statistic.RATE:
        rate = number(row, "throughput")
        return 1e3 / float(rate) if rate else None
    step = step_of(row, statistic)
    return None if step is None else step / items(row)


def rate_of(row: Row) -> float | None:
    """Items a second: as it is said, or what a mean of a known batch comes to."""
    if rate := number(row, "throughput"):
        return float(rate)
    step = step_of(row, Statistic.MEAN)
    return None if step is None or not row.get("batch_size") else 1e3 * items(row) / step


def statistic_of(row: Row) -> Statistic | None:
    """The figure of a result that says most; None where it has none."""
    return next((figure for figure in Statistic if item_ms(row, figure) is not None), None)


def name_of(statistic: Statistic) -> str:
    """As people read it: a time by a rate is a mean."""
    return str(Statistic.MEAN if statistic in MEANS else statistic)


Times = tuple[float, ...]


def times_by(rows: Sequence[Row], others: Sequence[Row] = ()) -> tuple[Statistic, Times] | None:
    """Return the figure that all results have, and what an item took by it in each of the first.

    Where all say a rate of tokens, an item is one of those: of a request with twice the tokens
    nobody expects the same time. Else it is one of the batch, and of a batch that is not known no
    step says what an item took.
    """
    every = [*rows, *others]
    if not every:
        return None
    batches = not others or all(row.get("batch_size") for row in every)
    step = next((one for one in _STEPS if batches and _all(every, one)), None)
    # Rates and times of others may differ, by pauses between steps: a ratio is of what is shown.
    if step is not None and not _counted_apart(every):
        return step, _times(rows, step)
    if _counts_alike(every):
        means = batches and _all(every, Statistic.MEAN)
        return Statistic.MEAN if means else Statistic.RATE, _times(rows, Statistic.RATE)
    if step is not None:
        return step, _times(rows, step)
    if all(_mean(row) is not None for row in every) and not _other_units(every):
        return Statistic.RATE, tuple(float(_mean(row) or 0.0) for row in rows)
    figure = next((kind for kind in Statistic if kind not in MEANS and _all(every, kind)), None)
    return None if figure is None or not batches else (figure, _times(rows, figure))


def _times(rows: Iterable[Row], statistic: Statistic) -> Times:
    return tuple(float(item_ms(row, statistic) or 0.0) for row in rows)


def _all(rows: Iterable[Row], statistic: Statistic) -> bool:
    return all(item_ms(row, statistic) is not None for row in rows)


def _mean(row: Row) -> float | None:
    """A mean, or the same as a rate: of rows of which some say the one and some the other.

    The mean of a batch that nobody knows is of no item, as a rate is.
    """
    mean = item_ms(row, Statistic.MEAN) if row.get("batch_size") else None
    return item_ms(row, Statistic.RATE) if mean is None else mean


def _counts_alike(rows: Sequence[Row]) -> bool:
    return _all(rows, Statistic.RATE) and not _other_units(rows)


def _counted_apart(rows: Iterable[Row]) -> bool:
    """Whether any rate is of other things than items of the batch."""
    return any(kind_of_unit(str(row.get("throughput_unit") or "")) for row in rows)


def _other_units(rows: Iterable[Row]) -> bool:
    """Whether rates are said of different things; what says nothing may be of any."""
    units = (text(row, "throughput_unit") for row in rows)
    return len({kind_of_unit(unit) for unit in units if unit}) > 1


#: From so many launches on, their interval is shown.
FEWEST_LAUNCHES = 5
#: The high end of the widest interval that is shown, as a multiple of the low end.
WIDEST_INTERVAL = 100.0
#: The reason of a low and a high end that are null.
TOO_WIDE = f"the 95 % interval is wider than a factor of {WIDEST_INTERVAL:.0f}"
#: An interval is lopsided where one end is so many times as far from the figure as the other, and
#: further by so large a part of it: ± would put both ends at the wrong place by half of that.
_LOPSIDED = ((1.5, 0.02), (3.0, 0.005))
#: Of ±100 % the one end is nothing and the other twice the figure: these are told as what they are.
_NO_LONGER_A_SHARE = 0.5

Number = Callable[[float], str]


class SpreadKind(StrEnum):
    """What the two ends of a spread are."""

    INTERVAL = "interval"  # 95 %, of five launches or more
    RANGE = "range"  # the fastest and the slowest of two to four launches
    SAMPLES = "samples"  # 95 %, within a single launch


@dataclass(frozen=True)
class Spread:
    """The ends that are shown next to a value."""

    # the lower end, and `high` the upper one; both None if the interval is too wide
    low: float | None
    high: float | None
    kind: SpreadKind  # what they are
    count: int = 1  # the launches, or the runs, that they are of

    @property
    def why_not(self) -> str:
        """The reason why there are no ends; "" if there are."""
        return TOO_WIDE if self.low is None else ""

    def of(self, one: str = "launch", many: str = "launches") -> str:
        """Return what the ends are of: "of 5 launches", "range of 3 launches"."""
        if self.kind is SpreadKind.SAMPLES:
            return f"within one {one}"
        number = counted(self.count, one, many)
        return f"range of {number}" if self.kind is SpreadKind.RANGE else f"of {number}"

    def text(
        self, middle: float, number: Number, unit: str = "", noun: tuple[str, str] | None = None
    ) -> str:
        """Return it next to its value: "±2.1%", or "1.93 … 2.34, range of 3 launches".

        The unit is behind both ends, with its space; `noun` is one and many of what it is of.
        """
        if self.kind is SpreadKind.RANGE and self.low is not None and self.high is not None:
            ends = f"{number(self.low)} … {number(self.high)}{unit}"
            return f"{ends}, {self.of(*noun) if noun else self.of()}"
        if self.low is None:
            return NOT_KNOWN
        return interval_text(self.low, middle, self.high, number, unit)

    def ends(self, number: Number, unit: str = "") -> str:
        """Return both ends in a column of intervals: "7.90 to 8.12"."""
        if self.low is None or self.high is None:
            return NOT_KNOWN
        ends = f"{number(self.low)} to {number(self.high)}{unit}"
        return ends if self.kind is SpreadKind.INTERVAL else f"{ends}, {self.of()}"

    def sentence(self, number: Number, unit: str = "") -> str:
        """Return it in a sentence: "95 % interval 7.90 to 8.12, of 5 launches"."""
        if self.low is None or self.high is None:
            return f"95 % interval {NOT_KNOWN}, {self.of()}"
        ends = f"{number(self.low)} to {number(self.high)}{unit}"
        if self.kind is SpreadKind.RANGE:
            return f"{self.of()} {ends}"
        return f"95 % interval {ends}, {self.of()}"


def ends_document(spread: Spread | None) -> dict[str, object]:
    """Return the ends as JSON has them, what they are, and the reason if they are null."""
    if spread is None:
        return {"low": None, "high": None, "ends_are": None, "why_no_ends": "no interval is known"}
    return {
        "low": spread.low,
        "high": spread.high,
        "ends_are": spread.kind.value,
        "why_no_ends": spread.why_not or None,
    }


def spread_in(document: Mapping[str, Any] | None) -> Spread | None:
    """Return the spread of a document, with its `count`; None without one."""
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
    if lopsided or far > _NO_LONGER_A_SHARE * abs(middle):
        return f"{number(low)} … {number(high)}{unit}"
    return f"±{50.0 * (high - low) / abs(middle):.1f}%"

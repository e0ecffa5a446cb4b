"""How an interval, or the range of a few launches, is shown: one rule for every view. Pure.

Student's t on the logarithms of two launches gives intervals such as 0.00757 to 9.32 ms around
0.266 ms. Below five launches a view therefore shows the fastest and the slowest launch and names
them a range. An interval wider than a factor of 100 is not shown, and not known.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from accelbench.core.absent import NOT_KNOWN
from accelbench.core.nouns import counted

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
    """The ends that are shown next to a value.

    Attributes:
        low: the lower end, and `high` the upper one; both None if the interval is too wide.
        kind: what they are.
        count: the launches, or the runs, that they are of.
    """

    low: float | None
    high: float | None
    kind: SpreadKind
    count: int = 1

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

        Args:
            middle: the value.
            number: the format of the value.
            unit: the unit behind both ends, with its space.
            noun: one and many of what it is of, if that is not launches.
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
    low: float | None,
    middle: float | None,
    high: float | None,
    number: Number,
    unit: str = "",
) -> str:
    """Return an interval around a value: ± per cent of it, or both ends if it is lopsided.

    Args:
        low: the lower end; without both ends there is nothing to show.
        middle: the value.
        high: the upper end.
        number: the format of the value.
        unit: the unit behind both ends, with its space.
    """
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

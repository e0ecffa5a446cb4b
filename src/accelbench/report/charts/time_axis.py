"""An axis of time: where its lines stand and what they say, in UTC and in 24 hours. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta

from accelbench.report.charts.axes import Spec

#: Distances of lines: seconds, then months.
_SECONDS = (
    *(1, 5, 15, 30, 60, 300, 900, 1800, 3600, 3 * 3600, 6 * 3600, 12 * 3600),
    *(86_400, 2 * 86_400, 7 * 86_400),
)
_MONTHS = (1, 3, 6, 12, 24, 60, 120, 1200)
_DAY = 86_400
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
#: Of the whole axis, what a line's words need.
_ROOM = 0.12
#: A Monday, from which weeks are counted.
_MONDAY = datetime(1970, 1, 5, tzinfo=UTC)


def utc(moment: str) -> datetime | None:
    """A moment as it was written; what says no zone is in UTC. None of what is no moment."""
    try:
        known = datetime.fromisoformat(moment)
    except ValueError:
        return None
    return (known if known.tzinfo else known.replace(tzinfo=UTC)).astimezone(UTC)


def said(moment: str) -> str:
    """As a page and a picture made elsewhere read it alike."""
    known = utc(moment)
    return known.isoformat(timespec="seconds").replace("+00:00", "Z") if known else moment


def lines(first: datetime, last: datetime, most: int) -> list[tuple[datetime, list[str]]]:
    """Where an axis has its lines, at most so many, and what they say in one row or two.

    Below the first one, and wherever it is another, stands what the upper row leaves out: the day
    below hours, the year below days and months.
    """
    ticks, upper, lower = _placed(first, last, most)
    labels = []
    before = ""
    for tick in ticks:
        below = f"{tick:{lower}}" if lower else ""
        labels.append((tick, [f"{tick:{upper}}", *([below] if below != before else [])]))
        before = below
    return labels


def axis(moments: Sequence[str], most: int) -> Spec:
    """What an axis of these moments says; left to the program that draws where one is none."""
    known = [instant for moment in moments if (instant := utc(moment)) is not None]
    if not known or len(known) < len(moments):
        return {"tickCount": most}
    ticks = lines(min(known), max(known), most)
    # Plain numbers would be turned into dates by a function that a page's interpreter has wrong.
    places = {"expr": f"[{', '.join(str(_thousandths(tick)) for tick, _ in ticks)}]"}
    return {"values": places, "labelExpr": _words(ticks)}


def _words(ticks: Sequence[tuple[datetime, list[str]]]) -> str:
    """An expression that says a line's words."""
    chosen = (
        f"toNumber(datum.value) === {_thousandths(tick)} ? [{', '.join(map(repr, rows))}] : "
        for tick, rows in ticks
    )
    return f"{''.join(chosen)}''"


def _placed(first: datetime, last: datetime, most: int) -> tuple[list[datetime], str, str]:
    """The places, and how the upper and the lower row are written."""
    for step in _SECONDS:
        if (last - first).total_seconds() / step < most + 1:
            ticks = _every(step, first, last)
            if len(ticks) <= most:
                clock = "%H:%M:%S" if step < 60 else "%H:%M"
                upper, lower = (clock, "%Y-%m-%d") if step < _DAY else ("%d %b", "%Y")
                return ticks or [first], upper if ticks else "%Y-%m-%d", lower if ticks else ""
    for months in _MONTHS:
        ticks = list(_monthly(months, first, last))
        # What comes before the first January is of a year too.
        if not ticks or ticks[0] - first > _ROOM * (last - first):
            ticks = [first, *ticks]
        if len(ticks) <= most:
            break
    return (ticks, "%b", "%Y") if months < 12 else (ticks, "%Y", "")


def _every(step: int, first: datetime, last: datetime) -> list[datetime]:
    begin = _MONDAY if step > _DAY else _EPOCH
    number = -(-int((first - begin).total_seconds()) // step)
    ticks = []
    while (tick := begin + timedelta(seconds=number * step)) <= last:
        if tick >= first:
            ticks.append(tick)
        number += 1
    return ticks


def _monthly(months: int, first: datetime, last: datetime) -> Iterator[datetime]:
    number = (first.year * 12 + first.month - 1) // months * months
    while (tick := datetime(number // 12, number % 12 + 1, 1, tzinfo=UTC)) <= last:
        if tick >= first:
            yield tick
        number += months


def _thousandths(moment: datetime) -> int:
    return round(moment.timestamp() * 1000)

"""Which figure of a result is a time per item, and which one several results have in common. Pure.

The time of a step is its median, and its mean where no median is known. A rate, and a cost made of
it, is by the mean: the time of all the work divided by its items. A percentile stands where there
is nothing else. Each is compared with the same alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum

from accelbench.core.columns import step_ms
from accelbench.core.rates import kind_of_unit
from accelbench.core.rows import Row, number, text
from accelbench.core.worth import REASON_COLUMNS, rough_column


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
        (
            *OF_A_STEP,
            *REASON_COLUMNS,
            *("sample_count", "effective_sample_count", "latency_std_ms"),
        )
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
    """The figure that all results have, and what an item took by it in each of the first.

    Where all say a rate of tokens, an item is one of those: of a request with twice the tokens
    nobody expects the same time. Else it is one of the batch, and of a batch that is not known no
    step says what an item took.

    Args:
        rows: launches of one side.
        others: those of the other, whose figure has to be the same.
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

"""What a figure is worth: whether anything is judged or chosen by it, and how its interval is told.

A figure whose quality is `unusable` stays where it is shown, with its interval, and counts nowhere
where one figure is compared with another: not in a verdict, not as the best of several.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from typing import TypeVar

from accelbench.core.columns import STEP_MS, step_ms
from accelbench.core.documented_peaks import describe_rate
from accelbench.core.rows import Row, number
from accelbench.core.vocabulary import Quality, Status

Launch = TypeVar("Launch", bound=Row)


class UnusableText(StrEnum):
    """Why the times of a launch decide nothing; the value is the end of a sentence."""

    NOISY = "interval wider than ±25 %"
    WAITED = "its threads waited for other processes longer than they ran"
    UNACCOUNTED = "more than half of the measured time is in no step"
    IMPLAUSIBLE = "its rate exceeds three times the documented peak of the device"


#: What follows the cause in the warning of an unusable launch.
NOT_USED = "Shown, but not used in comparisons or recommendations."
#: Half of the widest interval that a usable value has, as a share of the value.
UNUSABLE_WIDTH = 0.25
#: An interval of fewer samples that were asked for reaches nearly from the fastest to the slowest.
FEWEST_JUDGED = 30
#: The largest share of the time with work to do that threads of a usable launch wait for a CPU.
MOST_WAITING = 0.5
#: The largest share of the time of all questions that is in no step of a usable launch.
MOST_UNACCOUNTED = 0.5
#: Columns that `wide_sql` reads.
WIDTH_COLUMNS = ("latency_ci_low_ms", "latency_ci_high_ms", "latency_p50_ms", "latency_mean_ms")
#: Columns that `reason_unusable` reads.
REASON_COLUMNS = (
    *("quality", "cpu_wait_share", "unexplained_share", "implausible_rate"),
    *WIDTH_COLUMNS,
)
#: The same of a row of benchmark_results.
USABLE_SQL = f"coalesce(quality, '') <> '{Quality.UNUSABLE.value}'"

#: From the most certain quality to the least.
_QUALITIES = tuple(
    quality.value
    for quality in (
        *(Quality.CONVERGED, Quality.NOISE_LIMITED, Quality.TIME_LIMITED, Quality.FIXED),
        *(Quality.UNSTEADY, Quality.THROTTLED, Quality.UNUSABLE),
    )
)
#: What sampling ends at: half of an interval, as a part of the figure, and how many independent
#: samples have to carry one that is believed to be so narrow. Of five it is from the fastest
#: to the slowest, and five that happen to be alike say nothing of the sixth.
_NARROW, _KNOWN = 0.01, 20.0
_FAIRLY_NARROW = 0.05


def usable(row: Row) -> bool:
    """Whether anything may be judged or chosen by a result's times; it may, if nothing is said."""
    return row.get("quality") != Quality.UNUSABLE


def reason_unusable(row: Row) -> UnusableText:
    """Return why a result's times are unusable; the noise, if its row names no other cause."""
    if row.get("implausible_rate"):
        return UnusableText.IMPLAUSIBLE
    if (number(row, "cpu_wait_share") or 0.0) > MOST_WAITING:
        return UnusableText.WAITED
    hidden = (number(row, "unexplained_share") or 0.0) > MOST_UNACCOUNTED
    return UnusableText.UNACCOUNTED if hidden and not _is_wide(row) else UnusableText.NOISY


def reasons_unusable(rows: Iterable[Row]) -> str:
    """Return the different reasons of the unusable ones among results, joined by "or"."""
    return ", or ".join(dict.fromkeys(reason_unusable(row) for row in rows if not usable(row)))


def explain_unusable(row: Row) -> str:
    """Return why a result's times are unusable, with the calculation of an implausible rate."""
    return add_calculation(reason_unusable(row), row)


def add_calculation(reason: str, row: Row) -> str:
    """Return a reason, followed by the calculation of the row's implausible rate, if any."""
    rate = row.get("implausible_rate")
    calculation = describe_rate(rate) if isinstance(rate, Mapping) else ""
    return f"{reason} ({calculation})" if calculation else reason


def _is_wide(row: Row) -> bool:
    low, high = number(row, "latency_ci_low_ms"), number(row, "latency_ci_high_ms")
    middle = number(row, "latency_p50_ms") or number(row, "latency_mean_ms")
    if low is None or high is None or not middle:
        return False
    return bool((high - low) / 2.0 > UNUSABLE_WIDTH * middle)


def wide_sql(slack: float = 0.0) -> str:
    """Return SQL for whether the interval of a row is too wide; never NULL.

    Args:
        slack: the share by which the limit may be exceeded: a file may be in single precision.
    """
    limit = UNUSABLE_WIDTH * (1.0 + slack)
    return (
        "coalesce((latency_ci_high_ms - latency_ci_low_ms) / 2.0"
        f" > {limit} * coalesce(latency_p50_ms, latency_mean_ms), false)"
    )


#: `reason_unusable` of a row in SQL.
REASON_UNUSABLE_SQL = f"""CASE
    WHEN implausible_rate IS NOT NULL THEN '{UnusableText.IMPLAUSIBLE}'
    WHEN coalesce(cpu_wait_share, 0) > {MOST_WAITING} THEN '{UnusableText.WAITED}'
    WHEN coalesce(unexplained_share, 0) > {MOST_UNACCOUNTED} AND NOT {wide_sql()}
    THEN '{UnusableText.UNACCOUNTED}' ELSE '{UnusableText.NOISY}' END"""


def settled(row: Row) -> bool:
    """Whether its samples bear a result's time out: it converged, or would have been said to.

    Nothing judged whether a fixed number of samples suffices; its interval says it, where enough
    independent ones carry that. Fewer than twenty never do, whatever quality they have.
    """
    quality = row.get("quality")
    if quality != Quality.FIXED:
        return quality in (None, Quality.CONVERGED)
    return _is_within(row, _NARROW)


def is_decisive(row: Row) -> bool:
    """Return whether a launch may show a change together with few others.

    Its interval is within ±5 %, which is less than launches differ by. An interval that spans two
    modes of the samples is wider.
    """
    sampled = (Quality.FIXED, Quality.NOISE_LIMITED, Quality.TIME_LIMITED)
    quality = row.get("quality")
    return settled(row) or (quality in sampled and _is_within(row, _FAIRLY_NARROW))


def _is_within(row: Row, share: float) -> bool:
    """Return whether enough independent samples carry an interval of ± this share."""
    low, middle = number(row, "latency_ci_low_ms"), step_ms(row)
    high = number(row, "latency_ci_high_ms")
    if low is None or high is None or not middle:
        return False
    independent = number(row, "effective_sample_count") or 0.0
    return bool(high - low <= 2.0 * share * middle and independent >= _KNOWN)


#: The same of a row of benchmark_results.
SETTLED_SQL = f"""CASE WHEN quality = '{Quality.FIXED.value}'
    THEN coalesce(latency_ci_high_ms - latency_ci_low_ms
        <= {2.0 * _NARROW} * coalesce({", ".join(STEP_MS)}), false)
        AND coalesce(effective_sample_count, 0) >= {_KNOWN}
    ELSE coalesce(quality, '{Quality.CONVERGED.value}') = '{Quality.CONVERGED.value}' END"""
#: What a row has to have for it to be known whether it is usable and settled.
OF_WORTH = (
    *("quality", "latency_ci_low_ms", "latency_ci_high_ms", "effective_sample_count"),
    *STEP_MS,
)


def answered(row: Row) -> bool:
    """Whether it ran, and its outputs are not known to be wrong.

    A run of ours stores such outputs as failed; files of others may say ok beside them.
    """
    return row.get("status") == Status.OK and row.get("verification") != "failed"


#: The same of a row of benchmark_results.
ANSWERED_SQL = "(status = 'ok' AND coalesce(verification, '') <> 'failed')"


def usable_launches(rows: Iterable[Launch]) -> list[Launch]:
    """The launches whose times count; none where half of them or more do not.

    One launch among many that met a bad moment says little of the others; of more, what is left
    would be chosen by how it came out.
    """
    every = list(rows)
    kept = [row for row in every if usable(row)]
    return kept if 2 * len(kept) > len(every) else []


def counting_launches(rows: Iterable[Launch]) -> list[Launch]:
    """The launches that a figure is of: the usable ones, or all where most are not.

    Of the latter nothing is judged; what shows them marks them.
    """
    every = list(rows)
    return usable_launches(every) or every


def quality_of(rows: Iterable[Row]) -> str | None:
    """Return the quality of a configuration by its launches, or None if no launch has one.

    It is unusable if half of the launches or more are, else the least certain of the usable ones.
    """
    every = [row for row in rows if answered(row)]
    if every and not (kept := usable_launches(every)):
        return Quality.UNUSABLE.value
    known = [str(row["quality"]) for row in (kept if every else ()) if row.get("quality")]
    return max(known, key=_certainty_rank, default=None)


def _certainty_rank(quality: str) -> tuple[int, str]:
    return (_QUALITIES.index(quality) if quality in _QUALITIES else -1), quality


#: `quality_of` of grouped rows of benchmark_results.
QUALITY_OF_SQL = f"""CASE
    WHEN 2 * count(*) FILTER ({ANSWERED_SQL} AND NOT {USABLE_SQL})
        >= greatest(count(*) FILTER ({ANSWERED_SQL}), 1) THEN '{Quality.UNUSABLE.value}'
    ELSE max_by(quality, row(coalesce(list_position({list(_QUALITIES)}, quality), 0), quality))
        FILTER ({ANSWERED_SQL} AND {USABLE_SQL} AND quality IS NOT NULL) END"""


def rough_column(name: str) -> str:
    """The column that says whether a percentile is rough: latency_p99_rough of latency_p99_ms."""
    return name.removesuffix("_ms") + "_rough"


def percentile_text(row: Row, name: str, words: Callable[[float | None], str]) -> str:
    """A percentile as tables show it: ~ before one that is only rough."""
    text = words(number(row, name))
    return f"~{text}" if row.get(rough_column(name)) else text

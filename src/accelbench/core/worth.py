"""What a figure is worth: whether anything is judged or chosen by it, and how its interval is told.

A figure whose quality is `unusable` stays where it is shown, with its interval, and counts nowhere
where one figure is compared with another: not in a verdict, not as the best of several.

Launches of a run that failed, and what they say of the figures of those beside them.

A *configuration* is what a run launches several times: a case on a device. Outputs that were wrong
in one of its launches are wrong in all of the run, which then has no figures of it. Where more than
half of the launches failed, what is left was chosen by how it came out: it is unusable. Nobody
knows which lines of an import of somebody else's are launches of one configuration; each of them
speaks for itself.

Whose figures may be compared with others: the one place that says it.

What compares, warns of regressions, learns or recommends asks here, so that a figure that
nobody measured can never slip into it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

from accelbench.core.columns import ASKED, STEP_MS, step_ms
from accelbench.core.device_facts import describe_rate
from accelbench.core.identity import canonical
from accelbench.core.rows import Json, Row, number
from accelbench.core.vocabulary import Provenance, Quality, Status

#: Measured, here or elsewhere. What was predicted or simulated is nobody's measurement.
COMPARABLE = (Provenance.MEASURED, Provenance.IMPORTED)

#: The same for rows of benchmark_results.
#: The arm of an interleaved run that is measured as a run without arms is; the other may be of
#: another environment, commit or setting, and speaks only in what the two are compared with each
#: other for.
THIS_ARM = "this"

THIS_ARM_SQL = f"coalesce(arm, '') IN ('', '{THIS_ARM}')"

COMPARABLE_SQL = (
    f"provenance IN ({', '.join(repr(source.value) for source in COMPARABLE)}) AND {THIS_ARM_SQL}"
)

#: How the run begins that a table of somebody else's came in. Our own results keep the runs that
#: they are of, on whatever machine those were: who measured is told by the provenance.
IMPORT = "import-"

#: `of_import` of a row of benchmark_results.
OF_IMPORT_SQL = f"starts_with(coalesce(run_id, ''), '{IMPORT}')"

#: Of a side that a file of `compare` refused: what it was not alike in, where no column says it.
REFUSED_THERE = "refused_there"

#: Where a simulated result says, among its conditions, what it was calculated from.
SIMULATION = "simulation"


def comparable(row: Row) -> bool:
    """Whether a result's figures may be compared with others, learned from and recommended by."""
    return row.get("provenance") in COMPARABLE and of_this_arm(row)


def of_import(row: Row) -> bool:
    """Whether a result came in a table of somebody else's, and is of no run of ours.

    Such a table may have figures of years and of many versions, none of which takes another's
    place; results of ours, measured here or brought in by their files, are launches of runs.
    """
    return str(row.get("run_id") or "").startswith(IMPORT)


def of_this_arm(row: Row) -> bool:
    """Whether a result is of a run without arms, or of the arm that is measured as one is."""
    return (row.get("arm") or THIS_ARM) == THIS_ARM


def simulation_of(row: Row) -> Json | None:
    """What a result was calculated from, where `--simulate` made it; else None.

    Provenance alone does not tell: results of the runtime that follows a script are simulated
    as well, and they go the whole way of a measurement.
    """
    conditions = row.get("conditions")
    basis = conditions.get(SIMULATION) if isinstance(conditions, Mapping) else None
    return basis if isinstance(basis, Mapping) else None


def source_of(row: Row) -> str:
    """Whose an imported figure is; empty for what was measured here."""
    conditions = row.get("conditions")
    source = conditions.get("source") if isinstance(conditions, Mapping) else None
    name = source.get("name") if isinstance(source, Mapping) else None
    return str(name or "")


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


Key = tuple[object, ...]

#: In a row that has figures: of how many launches, and how many of them failed.
FAILED, LAUNCHED = "failed_launches", "launches_tried"
_WRONG = "wrong_outputs"
#: `is_wrong` in SQL.
WRONG_SQL = f"(coalesce(verification, '') = 'failed' OR coalesce(reason, '') = '{_WRONG}')"
_CONFIGURATION = ("run_id", "case_id", "device_fingerprint", "arm")
_SEPARATOR = chr(31)
#: What was asked, where a row does not name its case. Who failed does not know its threads.
_ASKED = tuple(name for name in ASKED if name != "threads")


@dataclass(frozen=True)
class Failing:
    """A configuration some of whose launches failed, in one run."""

    launched: int
    failed: int
    wrong: bool  # the outputs of one of them at least

    @property
    def mostly(self) -> bool:
        """Whether what did not fail is of no use."""
        return 2 * self.failed > self.launched

    def of(self, row: Row, *, outputs: bool = True) -> Row:
        """A launch that has figures, as the others have it."""
        if FAILED in row or not answered(row):
            return row
        more: dict[str, object] = {FAILED: self.failed, LAUNCHED: self.launched}
        if self.wrong:
            more |= {"verification": "failed"} if outputs else {}
        elif self.mostly:
            more["quality"] = Quality.UNUSABLE.value
        return {**row, **more}


def of_whole_runs(rows: Iterable[Row]) -> list[Row]:
    """Results as all launches of their configurations have them; those that failed stay.

    Args:
        rows: of any status: without those that failed nothing can be seen.
    """
    every = list(rows)
    return marked(every, failing_of(every))


def times_of_whole_runs(rows: Iterable[Row]) -> list[Row]:
    """The same of times alone, for who tells of each output himself whether it is wrong."""
    every = list(rows)
    known = failing_of(every)
    return [_of(row, known, outputs=False) for row in every] if known else every


def marked(rows: Sequence[Row], known: Mapping[Key, Failing]) -> list[Row]:
    """The same by configurations that are known, as `failing_sql` finds them."""
    return [_of(row, known) for row in rows] if known else list(rows)


def _of(row: Row, known: Mapping[Key, Failing], *, outputs: bool = True) -> Row:
    failing = known.get(_key(row))
    return row if failing is None else failing.of(row, outputs=outputs)


def failing_of(rows: Sequence[Row]) -> dict[Key, Failing]:
    """The configurations of which a launch failed."""
    lost: dict[Key, list[Row]] = {}
    for row in rows:
        if _failed(row):
            lost.setdefault(_key(row), []).append(row)
    if not lost:
        return {}
    launched = Counter(
        key for row in rows if row.get("status") != Status.SKIPPED and (key := _key(row)) in lost
    )
    return {
        key: Failing(launched[key], len(several), any(map(is_wrong, several)))
        for key, several in lost.items()
    }


def is_wrong(row: Row) -> bool:
    """Whether a launch's outputs were seen to be wrong."""
    return row.get("verification") == "failed" or row.get("reason") == _WRONG


def launches_failed(rows: Sequence[Row]) -> str:
    """How many launches of a configuration failed, in words; "" where none did.

    Args:
        rows: its launches with figures, as `of_whole_runs` has them.
    """
    first = rows[0] if rows else {}
    failed = first.get(FAILED)
    return f"{failed} of {first[LAUNCHED]} launches failed" if failed else ""


def why_unusable(rows: Sequence[Row]) -> str:
    """Return why the times of launches are unusable, as the end of a sentence."""
    if mostly_failed(rows):
        return launches_failed(rows)
    return reasons_unusable(rows) or UnusableText.NOISY


def mostly_failed(rows: Sequence[Row]) -> bool:
    """Whether launches with figures are the few that did not fail."""
    first = rows[0] if rows else {}
    return 2 * (number(first, FAILED) or 0) > (number(first, LAUNCHED) or 0)


def _failed(row: Row) -> bool:
    if answered(row) or row.get("status") == Status.SKIPPED:
        return False
    return bool(row.get("run_id")) and not of_import(row)


def _key(row: Row) -> Key:
    case = row.get("case_id") or _SEPARATOR.join(_text(row.get(name)) for name in _ASKED)
    return row.get("run_id"), case, row.get("device_fingerprint") or "", row.get("arm") or ""


def _text(value: object) -> str:
    """A value as SQL writes it."""
    if value is None or isinstance(value, str):
        return value or ""
    return str(value).lower() if isinstance(value, bool) else canonical(value)


def failing_sql(table: str = "benchmark_results") -> str:
    """`failing_of` all results: run, case, device and arm, launches, failed ones, and `is_wrong`.

    Args:
        table: of results.
    """
    failed = (
        f"NOT {ANSWERED_SQL} AND status <> '{Status.SKIPPED}'"
        f" AND coalesce(run_id, '') <> '' AND NOT {OF_IMPORT_SQL}"
    )
    key = ", ".join(_part(name) for name in _CONFIGURATION)
    return f"""
        SELECT {key}, count(*) AS launched, count(*) FILTER ({failed}) AS failed,
            coalesce(bool_or({WRONG_SQL}) FILTER ({failed}), false) AS wrong
        FROM {table} WHERE status <> '{Status.SKIPPED}' AND run_id IN (
            SELECT run_id FROM {table} WHERE {failed})
        GROUP BY ALL HAVING count(*) FILTER ({failed}) > 0"""  # noqa: S608 — our words


def failing_in(rows: Iterable[Sequence[object]]) -> dict[Key, Failing]:
    """What `failing_sql` found, for `marked`."""
    return {
        tuple(key): Failing(launched, failed, bool(wrong))
        for *key, launched, failed, wrong in rows
        if isinstance(launched, int) and isinstance(failed, int)
    }


def whole_runs_sql(table: str = "benchmark_results") -> str:
    """`of_whole_runs` in SQL: what may stand for the table of results in a query.

    Args:
        table: of results.
    """
    replaced = ", ".join(f"{sql} AS {name}" for name, sql in WHOLE_RUNS_COLUMNS.items())
    return f"""(SELECT result.* REPLACE ({replaced}), failing.failed AS {FAILED},
            failing.launched AS {LAUNCHED}
        FROM {table} AS result LEFT JOIN ({failing_sql(table)}) AS failing
        ON {same_configuration_sql("failing")})"""  # noqa: S608


#: What a result has otherwise than it stands in the store, beside the configuration `failing`.
WHOLE_RUNS_COLUMNS = {
    "verification": (
        f"CASE WHEN failing.wrong AND {ANSWERED_SQL} THEN 'failed' ELSE verification END"
    ),
    "quality": (
        "CASE WHEN 2 * failing.failed > failing.launched AND NOT failing.wrong"
        f" AND {ANSWERED_SQL} THEN '{Quality.UNUSABLE}' ELSE quality END"
    ),
}


def same_configuration_sql(failing: str) -> str:
    """That a result is of a configuration that `failing_sql` found.

    Args:
        failing: the name of what it found.
    """
    return " AND ".join(
        f"{_part(name, named=False)} = {failing}.of_{name}" for name in _CONFIGURATION
    )


def _part(name: str, *, named: bool = True) -> str:
    value = f"coalesce({name}, '')"
    if name == "run_id":
        value = name
    elif name == "case_id":
        texts = ", ".join(f"coalesce({column}::VARCHAR, '')" for column in _ASKED)
        value = f"coalesce({name}, concat_ws(chr({ord(_SEPARATOR)}), {texts}))"
    return f"{value} AS of_{name}" if named else value

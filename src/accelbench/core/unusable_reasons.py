"""Reasons why a result is unusable, as codes and texts, with the limits that they use.

An unusable result is shown with its interval, and never compared, learned from or recommended. The
conditions are in `evidence/launches.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import TypeVar

from accelbench.core.device_facts import describe_rate
from accelbench.core.rows import Json, Row, number, text
from accelbench.core.vocabulary import Provenance, Quality

#: Measured results, also imported ones. Predictions and simulations are not measurements.
COMPARABLE = (Provenance.MEASURED, Provenance.IMPORTED)

#: The arm of an interleaved run that is measured like a run without arms. The other arm may have
#: another environment, commit or setting, and is only compared with this one.
THIS_ARM = "this"


#: Prefix of the run of an imported table. Our own results keep their runs, also from other
#: machines.
IMPORT = "import-"


#: Key of a result in a file of `compare`: the difference for which it was refused, if no column has
#: it.
REFUSED_THERE = "refused_there"

#: Key in the conditions of a simulated result: the inputs of its calculation.
SIMULATION = "simulation"


def is_from_table(row: Row) -> bool:
    """Return whether a result is from an imported table, which may span years and versions.

    Our own results are launches of runs, also if their files were imported.
    """
    return str(row.get("run_id") or "").startswith(IMPORT)


def simulation_of(row: Row) -> Json | None:
    """Return the inputs of a result that `--simulate` calculated; None for others.

    Provenance does not distinguish them: results of the scripted engine are simulated too, but are
    measured like others.
    """
    conditions = row.get("conditions")
    basis = conditions.get(SIMULATION) if isinstance(conditions, Mapping) else None
    return basis if isinstance(basis, Mapping) else None


def source_of(row: Row) -> str:
    """Return the source of an imported result; empty for results measured here."""
    conditions = row.get("conditions")
    source = conditions.get("source") if isinstance(conditions, Mapping) else None
    name = source.get("name") if isinstance(source, Mapping) else None
    return str(name or "")


Launch = TypeVar("Launch", bound=Row)


class UnusableReason(StrEnum):
    """Values of the column `unusable_reason` of the view `launches`."""

    SKIPPED = "skipped"
    WRONG_OUTPUTS = "wrong_outputs"
    FAILED = "failed"
    EMULATED = "emulated"
    SIMULATED = "simulated"
    PREDICTED = "predicted"
    IMPLAUSIBLE = "implausible_rate"
    MOST_LAUNCHES_FAILED = "most_launches_failed"
    WAITED = "waited_for_cpus"
    UNACCOUNTED = "time_not_accounted_for"
    TOO_NOISY = "too_noisy"


#: Each reason as the end of a sentence.
REASON_TEXTS = {
    UnusableReason.SKIPPED: "it was skipped",
    UnusableReason.WRONG_OUTPUTS: "its outputs are wrong",
    UnusableReason.FAILED: "it failed",
    UnusableReason.EMULATED: "its device is emulated",
    UnusableReason.SIMULATED: "it is simulated",
    UnusableReason.PREDICTED: "it is predicted",
    UnusableReason.IMPLAUSIBLE: "its rate exceeds three times the documented peak of the device",
    UnusableReason.MOST_LAUNCHES_FAILED: "more than half of the launches failed",
    UnusableReason.WAITED: "its threads waited for other processes longer than they ran",
    UnusableReason.UNACCOUNTED: "more than half of the measured time is in no step",
    UnusableReason.TOO_NOISY: "interval wider than ±25 %",
}
#: Reasons of a launch that succeeded and whose times have the quality `unusable`.
REASONS_OF_TIMES = (
    *(UnusableReason.TOO_NOISY, UnusableReason.WAITED, UnusableReason.UNACCOUNTED),
    UnusableReason.IMPLAUSIBLE,
)


#: Follows the cause in the warning of an unusable launch.
NOT_USED = "Shown, but not used in comparisons or recommendations."
#: Largest half-width of a usable interval, as a share of the value.
UNUSABLE_WIDTH = 0.25
#: Fewest samples of a fixed count whose interval is judged: with fewer, it extends almost from the
#: fastest to the slowest.
FEWEST_JUDGED = 30
#: Largest share of time that the busy threads of a usable launch wait for a CPU.
MAX_WAITING = 0.5
#: Largest share of a usable launch's measured time that is in no step.
MAX_UNACCOUNTED = 0.5
#: Columns that `wide_sql` reads.
WIDTH_COLUMNS = ("latency_ci_low_ms", "latency_ci_high_ms", "latency_p50_ms", "latency_mean_ms")
#: Columns that the reason of unusable times depends on.
REASON_COLUMNS = (
    *("quality", "cpu_wait_share", "unexplained_share", "implausible_rate"),
    *WIDTH_COLUMNS,
)

#: From the most certain quality to the least.
QUALITIES = tuple(
    quality.value
    for quality in (
        *(Quality.CONVERGED, Quality.NOISE_LIMITED, Quality.TIME_LIMITED, Quality.FIXED),
        *(Quality.UNSTEADY, Quality.THROTTLED, Quality.UNUSABLE),
    )
)


#: Columns of the view `launches` that Python reads in addition to those of the results.
UNUSABLE_REASON, REPORTED_VERIFICATION = "unusable_reason", "reported_verification"


def reason_unusable(row: Row) -> str:
    """Return the text of a launch's `unusable_reason`; noise, if its row has none."""
    return REASON_TEXTS[UnusableReason(text(row, UNUSABLE_REASON) or UnusableReason.TOO_NOISY)]


def reason_texts(reasons: object) -> str:
    """Return the texts of a list of different reasons, joined by "or"; "" without a list."""
    known = reasons if isinstance(reasons, list | tuple) else ()
    return ", or ".join(REASON_TEXTS[UnusableReason(one)] for one in known)


def reasons_unusable(rows: Iterable[Row]) -> str:
    """Return the different reasons of the unusable ones among results, joined by "or"."""
    return ", or ".join(
        dict.fromkeys(reason_unusable(row) for row in rows if not row["times_usable"])
    )


def explain_unusable(row: Row) -> str:
    """Return why a result's times are unusable, with the calculation of an implausible rate."""
    return add_calculation(reason_unusable(row), row)


def add_calculation(reason: str, row: Row) -> str:
    """Return a reason, followed by the calculation of the row's implausible rate, if any."""
    rate = row.get("implausible_rate")
    calculation = describe_rate(rate) if isinstance(rate, Mapping) else ""
    return f"{reason} ({calculation})" if calculation else reason


def rough_column(name: str) -> str:
    """Return the column that marks a percentile as rough: latency_p99_rough for latency_p99_ms."""
    return name.removesuffix("_ms") + "_rough"


def percentile_text(row: Row, name: str, format_value: Callable[[float | None], str]) -> str:
    """Return a percentile for tables, with ~ if it is rough."""
    text = format_value(number(row, name))
    return f"~{text}" if row.get(rough_column(name)) else text


#: Columns of a row with results: failed launches, all launches, and whether most failed.
FAILED, LAUNCHED, MOSTLY_FAILED = "failed_launches", "launches_tried", "mostly_failed"


def failed_launches_text(rows: Sequence[Row]) -> str:
    """Return "2 of 5 launches failed" for a configuration; "" if none failed."""
    first = rows[0] if rows else {}
    failed = first.get(FAILED)
    return f"{failed} of {first[LAUNCHED]} launches failed" if failed else ""


def why_unusable(rows: Sequence[Row]) -> str:
    """Return why the times of launches are unusable, as the end of a sentence."""
    if is_mostly_failed(rows):
        return failed_launches_text(rows)
    return reasons_unusable(rows) or REASON_TEXTS[UnusableReason.TOO_NOISY]


def is_mostly_failed(rows: Sequence[Row]) -> bool:
    """Return whether most launches of these results' configuration failed."""
    return bool(rows and rows[0].get(MOSTLY_FAILED))


#: A phrase for each quality; docs/measuring.md has the rules.
QUALITY_TEXTS: Mapping[str, str] = {
    Quality.CONVERGED: "the 95 % interval is within ±1 %",
    Quality.NOISE_LIMITED: "more samples no longer narrowed the interval",
    Quality.TIME_LIMITED: "the time ended before the interval was narrow",
    Quality.UNSTEADY: "the step changed while it was measured",
    Quality.THROTTLED: "the device slowed down",
    Quality.FIXED: "the requested number of samples, sufficient or not",
    Quality.UNUSABLE: ", or ".join(REASON_TEXTS[one] for one in REASONS_OF_TIMES),
}

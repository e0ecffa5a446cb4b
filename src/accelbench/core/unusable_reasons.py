"""Why a result is unusable, in codes and words, and the limits that the conditions read.

An unusable result is shown with its interval, and never compared, learned from or recommended. The
conditions themselves are in `evidence/launches.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import TypeVar

from accelbench.core.device_facts import describe_rate
from accelbench.core.rows import Json, Row, number, text
from accelbench.core.vocabulary import Provenance, Quality

#: Measured here or elsewhere. Predictions and simulations are not measurements.
COMPARABLE = (Provenance.MEASURED, Provenance.IMPORTED)

#: The arm of an interleaved run that is measured like a run without arms. The other arm may have
#: another environment, commit or setting, and is only compared with this one.
THIS_ARM = "this"


#: How the name of an imported table's run begins. Results of our own keep their runs, on whatever
#: machine those were.
IMPORT = "import-"


#: Of a side that a file of `compare` refused: what it was not alike in, where no column says it.
REFUSED_THERE = "refused_there"

#: Where a simulated result says, among its conditions, what it was calculated from.
SIMULATION = "simulation"


def of_import(row: Row) -> bool:
    """Return whether a result is of an imported table, which may span years and many versions.

    Results of our own are launches of runs, also if their files were imported.
    """
    return str(row.get("run_id") or "").startswith(IMPORT)


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
#: The reasons of a launch that ran and whose own times have the quality `unusable`.
REASONS_OF_TIMES = (
    *(UnusableReason.TOO_NOISY, UnusableReason.WAITED, UnusableReason.UNACCOUNTED),
    UnusableReason.IMPLAUSIBLE,
)


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
    """The column that says whether a percentile is rough: latency_p99_rough of latency_p99_ms."""
    return name.removesuffix("_ms") + "_rough"


def percentile_text(row: Row, name: str, words: Callable[[float | None], str]) -> str:
    """A percentile as tables show it: ~ before one that is only rough."""
    text = words(number(row, name))
    return f"~{text}" if row.get(rough_column(name)) else text


#: In a row that has figures: of how many launches, and how many of them failed.
FAILED, LAUNCHED, MOSTLY_FAILED = "failed_launches", "launches_tried", "mostly_failed"


def launches_failed(rows: Sequence[Row]) -> str:
    """Return how many launches with figures of a configuration failed, in words; "" if none did."""
    first = rows[0] if rows else {}
    failed = first.get(FAILED)
    return f"{failed} of {first[LAUNCHED]} launches failed" if failed else ""


def why_unusable(rows: Sequence[Row]) -> str:
    """Return why the times of launches are unusable, as the end of a sentence."""
    if mostly_failed(rows):
        return launches_failed(rows)
    return reasons_unusable(rows) or REASON_TEXTS[UnusableReason.TOO_NOISY]


def mostly_failed(rows: Sequence[Row]) -> bool:
    """Return whether launches with results are the few that did not fail."""
    return bool(rows and rows[0].get(MOSTLY_FAILED))


#: One phrase each; docs/measuring.md has the rules.
QUALITY_SAID: Mapping[str, str] = {
    Quality.CONVERGED: "the 95 % interval is within ±1 %",
    Quality.NOISE_LIMITED: "more samples no longer narrowed the interval",
    Quality.TIME_LIMITED: "the time ended before the interval was narrow",
    Quality.UNSTEADY: "the step changed while it was measured",
    Quality.THROTTLED: "the device slowed down",
    Quality.FIXED: "as many samples as were asked for: nothing judged whether they suffice",
    Quality.UNUSABLE: ", or ".join(REASON_TEXTS[one] for one in REASONS_OF_TIMES),
}

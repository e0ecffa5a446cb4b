"""Rules for possible results: known words, consistent values, and the subject of each reason.

The rules are data. They are applied to a row here, and to a table in `store/plausible_values.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

from accelbench.core.columns import BY_NAME, COLUMNS
from accelbench.core.devices import cards
from accelbench.core.plugins import own_runtimes
from accelbench.core.precision import PRECISIONS
from accelbench.core.safe_text import brief, in_quotes
from accelbench.core.vocabulary import Belongs, Provenance, Status, Verification

_REASONS: Mapping[Belongs, str] = {
    Belongs.CELL: """
        autocast bad_block bad_evidence cached compile_failed conversion_failed crash
        data_dependent exception export_failed fallback generation hardware implausible
        killed_for_memory loss loss_not_finite mode
        no_outputs no_proof not_exported not_real operator out_of_memory
        out_of_memory_estimated precision precision_changed
        precision_upcast run_failed session_failed smaller_batch_out_of_memory
        unlike_the_cpu unsynchronised work_skipped wrong_clock wrong_outputs wrong_steps
    """,
    Belongs.MACHINE: """
        artefact_lost builder_missing cache_unwritable
        device_absent device_lost disk_full
        engine_sees_no_device hardware_absent killed no_artefact no_node no_runtime node_failed
        node_hung node_lost not_isolated not_set_up package_missing
        profile_failed rank_lost ranks_did_not_start ranks_ended runtime_broken surroundings
        weights_unavailable worker_did_not_start
    """,
    Belongs.QUESTION: """
        audio_length batch_split batch_statistics budget code_changed code_failed
        data_mismatch data_unreadable
        distributed dropout file_changed fixed_batch format generation_compiled
        gradient_checkpointing
        image_size inputs_changed no_generation no_profiler
        no_real_inputs no_training not_counted not_verified option prompt_too_short
        remote_code sequence_too_long sequence_too_short size_not_taken timeout
        tensor_parallel tokenizer_mismatch tokenizer_unreadable too_many_classes
        too_many_steps unsafe_weights
        vocabulary_too_small weights_incomplete weights_mismatch weights_unreadable
    """,
}

#: Reasons that several engines give.
SHARED_REASONS: Mapping[str, Belongs] = {
    reason: where for where, text in _REASONS.items() for reason in text.split()
}


@cache
def known_reasons() -> Mapping[str, Belongs]:
    """Return the subject of every reason that a registered engine can give."""
    return {
        **{r: w for card in cards().values() for r, w in card.reasons.items()},
        **SHARED_REASONS,
    }


def reason_subject(reason: str) -> Belongs:
    """Return the subject of a reason; an unknown reason is about its cell."""
    return SHARED_REASONS.get(reason) or known_reasons().get(reason, Belongs.CELL)


#: Columns whose values are above zero: times of steps, and sizes.
ABOVE_ZERO = frozenset(
    column.name for column in COLUMNS if column.range is not None and column.range.excludes_least
)
#: No result is older than this program; an earlier time comes from a clock that was not set.
EARLIEST = datetime(2000, 1, 1, tzinfo=UTC)
#: The largest difference of a time zone from UTC.
EASTMOST = timedelta(hours=14)

#: Columns that must not decrease, and pairs whose first value must not exceed the second.
_RISING = tuple(f"latency_{name}_ms" for name in ("min", "p50", "p90", "p95", "p99", "max"))
_PAIRS = (
    ("latency_min_ms", "latency_mean_ms"),
    ("latency_mean_ms", "latency_max_ms"),
    ("outlier_count", "sample_count"),
    ("effective_sample_count", "sample_count"),
    ("host_memory_avg_mb", "host_memory_peak_mb"),
    ("accuracy_low", "accuracy"),
    ("accuracy", "accuracy_high"),
    ("started_at", "finished_at"),
)
#: Imported values are rounded, and a clock may be set back during a measurement.
ROUNDING_TOLERANCE = 1.001
CLOCK_TOLERANCE = timedelta(hours=1)

#: A device's own time of a step is part of the step. It comes from a short separate pass, in which
#: clocks may be lower or the host busier: the tolerance above the slowest step, or the largest
#: known time of a step, allows for that.
DEVICE_TIME, DEVICE_TIME_TOLERANCE = "device_time_ms", 1.25
STEP_TIMES = ("latency_max_ms", "latency_p50_ms", "latency_mean_ms", "latency_ci_high_ms")

#: A result with the status ok has one of these, or a reason in `nulls`, as if it was only verified.
MEASURED_COLUMNS = (
    *("latency_mean_ms", "latency_p50_ms", "latency_p90_ms", "latency_p95_ms", "latency_p99_ms"),
    *("throughput", "tokens_per_second", "ttft_ms", "tpot_ms"),
)
NO_RESULT = "there is neither a latency nor a rate, and no reason for it"
NO_OBJECT = "it is not a JSON object"
NO_WORD = "it is not a valid reason: a lower-case word was expected"
NO_MOMENT = f"it is in the future, or before {EARLIEST.year}"
NO_SHARE = "a share of the time is not between 0 and 1"
NOT_BY_LATENCY = "it is not the rate that the latency gives"
MORE_THAN_STEP = "it is longer than a whole step"
PASSED = "verification is ok, but this exceeds verification_tolerance"

#: Words of columns in results of this program; imported results have the words of their source.
OWN_WORDS: Mapping[str, tuple[str, ...]] = {"precision": PRECISIONS}
#: Form of a reason. Those of the built-in engines are known; other packages have their own.
REASON_FORM = "[a-z][a-z0-9_]{0,63}"
NO_REASON = "it is not a reason that this version knows; a newer version may have written it"

#: Largest ratio between a rate and the rate that follows from the latency. In our own results they
#: are equal up to rounding; other programs count pauses between steps in only one of them (timm: up
#: to 4 %; tables with overlapping batches: more).
OWN_RATE_TOLERANCE, OTHER_RATE_TOLERANCE = 1.1, 2.0


def describe_misfit(why: str, value: object, other: object = None) -> str:
    """Return the message for a refused value, the same for every import and merge.

    `why` is a clause about "it", which `value` replaces; `other` is the value that it contradicts.
    """
    text = why
    if value is not None and why.startswith("it is "):
        text = f"{_format_value(value)} {why.removeprefix('it ')}"
    return text if other is None else f"{text}, {_format_value(other)}"


def _format_value(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    return brief(value) if isinstance(value, str) else in_quotes(value)


def orders() -> Iterator[tuple[str, str]]:
    """Yield pairs of columns whose first value must not exceed the second."""
    for number, low in enumerate(_RISING):
        yield from ((low, high) for high in _RISING[number + 1 :])
    yield from _PAIRS
    for name in BY_NAME:
        high = name.replace("_low_", "_high_")
        if "_low_" in name and high in BY_NAME:
            yield name, high


ORDERS = tuple(orders())
#: Columns whose product is the number of items of a step, by rate and unit.
ITEM_COLUMNS: Mapping[str, Mapping[str, Sequence[str]]] = {
    "throughput": {
        "tokens/s": ("batch_size", "new_tokens"),
        "audio s/s": ("batch_size", "audio_seconds"),
        "calls/s": (),
        "": ("batch_size",),
    },
    "tokens_per_second": {"": ("batch_size", "new_tokens")},
}


def find_problem(row: Mapping[str, Any]) -> str:
    """Return the column and reason why a row of the store is impossible; "" if it is possible."""
    known = {name: value for name, value in row.items() if value is not None}
    for name, value in known.items():
        if why := explain_impossible(name, value):
            return f"{name}: {why}"
    rates = None if row.get("provenance") == Provenance.IMPORTED else OWN_RATE_TOLERANCE
    problem = find_contradiction(known, rates)
    return f"{problem[0]}: {problem[1]}" if problem else ""


def find_out_of_range(row: Mapping[str, Any]) -> str:
    """Return the column and reason of a number outside its range; "" if there is none."""
    for name, value in row.items():
        allowed = None if value is None else BY_NAME[name].range
        if allowed is not None:
            numbers = value if isinstance(value, list) else [value]
            if why := next(filter(None, map(allowed.explain_misfit, numbers)), ""):
                return f"{name}: {why}"
    return ""


def explain_impossible(name: str, value: Any) -> str:
    """Return why a value of the column's type is impossible; "" if it is possible."""
    column = BY_NAME[name]
    if column.words and value not in column.words:
        return describe_misfit(f"it is not one of {', '.join(column.words)}", value)
    if name == "reason" and not re.fullmatch(REASON_FORM, value):
        return describe_misfit(NO_WORD, value)
    if column.kind == "json" and not isinstance(value, Mapping):
        return NO_OBJECT
    if column.kind == "time":
        return _explain_impossible_time(value)
    if column.range is None:
        return ""
    allowed = column.range
    if isinstance(value, list):
        outside = any(map(allowed.explain_misfit, value))
        why = f"a number in it is not between {allowed.least:g} and {allowed.most:g}"
        return why if outside else ""
    return allowed.explain_misfit(value)


def _explain_impossible_time(value: Any) -> str:
    return (
        ""
        if EARLIEST <= _to_datetime(value) <= latest_time()
        else describe_misfit(NO_MOMENT, str(value))
    )


def latest_time() -> datetime:
    """Return the current local time of the easternmost time zone."""
    return datetime.now(UTC) + EASTMOST


def find_contradiction(row: Mapping[str, Any], rates: float | None) -> tuple[str, str] | None:
    """Return the first column that contradicts another, and why; None if all can be true.

    `rates` is the largest ratio between a rate and the latency; None if they need not agree.
    """
    return next(_find_contradictions(row, rates), None)


def _find_contradictions(row: Mapping[str, Any], rates: float | None) -> Iterator[tuple[str, str]]:
    for low, high in ORDERS:
        if row.get(low) is not None and row.get(high) is not None and _exceeds(low, row, high):
            yield high, describe_misfit(f"it is below {low}", row[high], row[low])
    for rate in ITEM_COLUMNS if rates else ():
        expected = _expected_rate(row, rate)
        if expected is None or rates is None:
            continue
        if not 1 / rates <= row[rate] / expected <= rates:
            yield rate, describe_misfit(NOT_BY_LATENCY, row[rate], expected)
    yield from _check_parts(row)
    if row.get("provenance", Provenance.IMPORTED) != Provenance.IMPORTED:
        yield from _check_words(row)


def _check_parts(row: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    steps = [row[name] for name in STEP_TIMES if row.get(name) is not None]
    device = row.get(DEVICE_TIME)
    if device is not None and steps and device > max(steps) * DEVICE_TIME_TOLERANCE:
        yield DEVICE_TIME, describe_misfit(MORE_THAN_STEP, device, max(steps))
    nulls = row.get("nulls")
    has_reason = isinstance(nulls, Mapping) and MEASURED_COLUMNS[0] in nulls
    if (
        row.get("status") == Status.OK
        and not has_reason
        and not any(map(row.get, MEASURED_COLUMNS))
    ):
        yield "status", NO_RESULT
    error, most = row.get("verification_error"), row.get("verification_tolerance")
    passed = row.get("verification") == Verification.OK
    if passed and error is not None and most is not None and error > most:
        yield "verification_error", PASSED
    evidence = row.get("evidence")
    shares = evidence.get("shares") if isinstance(evidence, Mapping) else None
    for share in shares.values() if isinstance(shares, Mapping) else ():
        if type(share) not in (int, float) or not 0 <= share <= 1:
            yield "evidence", NO_SHARE


def _check_words(row: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, words in OWN_WORDS.items():
        if row.get(name) is not None and row[name] not in words:
            yield name, describe_misfit(f"it is not one of {', '.join(words)}", row[name])
    reason = row.get("reason")
    own = reason is not None and row.get("runtime") in own_runtimes()
    if own and reason not in known_reasons():
        yield "reason", describe_misfit(NO_REASON, reason)


def _exceeds(low: str, row: Mapping[str, Any], high: str) -> bool:
    if BY_NAME[low].kind == "time":
        return _to_datetime(row[low]) > _to_datetime(row[high]) + CLOCK_TOLERANCE
    return bool(row[low] > row[high] * ROUNDING_TOLERANCE)


def _to_datetime(value: Any) -> datetime:
    moment = value if isinstance(value, datetime) else datetime.fromisoformat(value)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _expected_rate(row: Mapping[str, Any], rate: str) -> float | None:
    """Return the rate that follows from the mean; None if it is unknown or steps are shared."""
    mean, counts = row.get("latency_mean_ms"), ITEM_COLUMNS[rate]
    factors = counts.get(str(row.get("throughput_unit") or ""), counts[""])
    known = [row.get(name) for name in factors]
    if not row.get(rate) or not mean or not all(known) or (row.get("world_size") or 1) > 1:
        return None
    expected = 1e3 / float(mean)
    for factor in known:
        expected *= factor or 0
    return expected

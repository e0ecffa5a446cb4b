"""What a result can be: known words, possible values that agree, and the scope of each reason.

The rules are values, applied to a row here; `store/plausible_values.py` applies them to a table.
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

_OF: Mapping[Belongs, str] = {
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

#: Reasons that no one runtime gives alone.
SHARED: Mapping[str, Belongs] = {
    reason: where for where, text in _OF.items() for reason in text.split()
}


@cache
def known_reasons() -> Mapping[str, Belongs]:
    """Every reason that a registered runtime can give; what is shared says the same for all."""
    return {**{r: w for card in cards().values() for r, w in card.reasons.items()}, **SHARED}


def belongs(reason: str) -> Belongs:
    """What a reason is about; one that no card has either is taken for its cell's."""
    return SHARED.get(reason) or known_reasons().get(reason, Belongs.CELL)


#: A step takes time, and what is asked for has a size.
ABOVE_ZERO = frozenset(
    column.name for column in COLUMNS if column.range is not None and column.range.above
)
#: No result is older: nothing here was made then, and a clock that says so was never set.
EARLIEST = datetime(2000, 1, 1, tzinfo=UTC)
#: East of Greenwich a day has begun before it does there.
EASTMOST = timedelta(hours=14)

#: Figures of which none is above a later one, and pairs of which the first is not above the second.
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
#: Others round their figures, and a clock may be set back while something is measured.
ROUNDED = 1.001
SET_BACK = timedelta(hours=1)

#: A device's own time of a step is part of the step's. It comes from a short pass of its own, in
#: which clocks may be lower or the host busier: that explains so much, above the slowest step, or
#: the largest of what is known of it.
DEVICE_TIME, OTHER_PASS = "device_time_ms", 1.25
STEP = ("latency_max_ms", "latency_p50_ms", "latency_mean_ms", "latency_ci_high_ms")

#: A result that is ok has one of these, or says in `nulls` why not: what was only verified does.
MEASURED = (
    *("latency_mean_ms", "latency_p50_ms", "latency_p90_ms", "latency_p95_ms", "latency_p99_ms"),
    *("throughput", "tokens_per_second", "ttft_ms", "tpot_ms"),
)
NO_FIGURE = "there is neither a latency nor a rate, and no reason for it"
NO_OBJECT = "it is no JSON, or no object"
NO_WORD = "it is no reason: a word in small letters was expected"
NO_MOMENT = f"it is in the future, or before {EARLIEST.year}"
NO_SHARE = "a share of the time is not within 0 and 1"
NOT_BY_LATENCY = "it is not what the latency says"
MORE_THAN_STEP = "it is more than a whole step"
PASSED = "verification is ok, and this is more than verification_tolerance"

#: What columns hold in results of this program; what was imported has others' words.
OWN_WORDS: Mapping[str, tuple[str, ...]] = {"precision": PRECISIONS}
#: A reason is a token; those of our own runtimes are known, other packages have their own.
REASON_FORM = "[a-z][a-z0-9_]{0,63}"
NO_REASON = "it is no reason that this program knows; a newer one may have written it"

#: How many times a rate may be off what its latency says. By our own arithmetic it is that very
#: figure, whatever was rounded since; others count pauses between steps in one of the two
#: (timm: up to 4 %; a table of somebody's whose batches overlap: more).
OURS, OTHERS = 1.1, 2.0


def describe_misfit(why: str, value: object, other: object = None) -> str:
    """Return why a value is refused, as every import and every merge words it.

    `why` is a clause about "it", whose place `value` takes; `other` is what it contradicts.
    """
    text = why
    if value is not None and why.startswith("it is "):
        text = f"{_shown(value)} {why.removeprefix('it ')}"
    return text if other is None else f"{text}, {_shown(other)}"


def _shown(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    return brief(value) if isinstance(value, str) else in_quotes(value)


def orders() -> Iterator[tuple[str, str]]:
    """Pairs of columns of which the first holds no more than the second."""
    for number, low in enumerate(_RISING):
        yield from ((low, high) for high in _RISING[number + 1 :])
    yield from _PAIRS
    for name in BY_NAME:
        high = name.replace("_low_", "_high_")
        if "_low_" in name and high in BY_NAME:
            yield name, high


ORDERS = tuple(orders())
#: A rate → what a step counts of it, by the unit where there are several.
ITEMS: Mapping[str, Mapping[str, Sequence[str]]] = {
    "throughput": {
        "tokens/s": ("batch_size", "new_tokens"),
        "audio s/s": ("batch_size", "audio_seconds"),
        "calls/s": (),
        "": ("batch_size",),
    },
    "tokens_per_second": {"": ("batch_size", "new_tokens")},
}


def wrong_with(row: Mapping[str, Any]) -> str:
    """Why a row of the store cannot be, with the column; empty where it can."""
    known = {name: value for name, value in row.items() if value is not None}
    for name, value in known.items():
        if why := impossible(name, value):
            return f"{name}: {why}"
    rates = None if row.get("provenance") == Provenance.IMPORTED else OURS
    problem = contradiction(known, rates)
    return f"{problem[0]}: {problem[1]}" if problem else ""


def out_of_range(row: Mapping[str, Any]) -> str:
    """Return why a number of a row is outside what its column counts; empty if none is."""
    for name, value in row.items():
        within = None if value is None else BY_NAME[name].range
        if within is not None:
            numbers = value if isinstance(value, list) else [value]
            if why := next(filter(None, map(within.wrong, numbers)), ""):
                return f"{name}: {why}"
    return ""


def impossible(name: str, value: Any) -> str:
    """Why a value of the column's type cannot be; empty where it can."""
    column = BY_NAME[name]
    if column.words and value not in column.words:
        return describe_misfit(f"it is none of {', '.join(column.words)}", value)
    if name == "reason" and not re.fullmatch(REASON_FORM, value):
        return describe_misfit(NO_WORD, value)
    if column.kind == "json" and not isinstance(value, Mapping):
        return NO_OBJECT
    if column.kind == "time":
        return _impossible_moment(value)
    if column.range is None:
        return ""
    within = column.range
    if isinstance(value, list):
        outside = any(map(within.wrong, value))
        why = f"a number in it is not within {within.least:g} and {within.most:g}"
        return why if outside else ""
    return within.wrong(value)


def _impossible_moment(value: Any) -> str:
    return "" if EARLIEST <= _moment(value) <= latest() else describe_misfit(NO_MOMENT, str(value))


def latest() -> datetime:
    """The latest moment that it is anywhere."""
    return datetime.now(UTC) + EASTMOST


def contradiction(row: Mapping[str, Any], rates: float | None) -> tuple[str, str] | None:
    """Return the first column that contradicts another, and why; None if all can be true.

    `rates` is how many times off a rate may be; None if it need not follow from the latency.
    """
    return next(_contradictions(row, rates), None)


def _contradictions(row: Mapping[str, Any], rates: float | None) -> Iterator[tuple[str, str]]:
    for low, high in ORDERS:
        if row.get(low) is not None and row.get(high) is not None and _above(low, row, high):
            yield high, describe_misfit(f"it is below {low}", row[high], row[low])
    for rate in ITEMS if rates else ():
        expected = _expected(row, rate)
        if expected is None or rates is None:
            continue
        if not 1 / rates <= row[rate] / expected <= rates:
            yield rate, describe_misfit(NOT_BY_LATENCY, row[rate], expected)
    yield from _of_parts(row)
    if row.get("provenance", Provenance.IMPORTED) != Provenance.IMPORTED:
        yield from _of_words(row)


def _of_parts(row: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    steps = [row[name] for name in STEP if row.get(name) is not None]
    device = row.get(DEVICE_TIME)
    if device is not None and steps and device > max(steps) * OTHER_PASS:
        yield DEVICE_TIME, describe_misfit(MORE_THAN_STEP, device, max(steps))
    nulls = row.get("nulls")
    has_reason = isinstance(nulls, Mapping) and MEASURED[0] in nulls
    if row.get("status") == Status.OK and not has_reason and not any(map(row.get, MEASURED)):
        yield "status", NO_FIGURE
    error, most = row.get("verification_error"), row.get("verification_tolerance")
    passed = row.get("verification") == Verification.OK
    if passed and error is not None and most is not None and error > most:
        yield "verification_error", PASSED
    evidence = row.get("evidence")
    shares = evidence.get("shares") if isinstance(evidence, Mapping) else None
    for share in shares.values() if isinstance(shares, Mapping) else ():
        if type(share) not in (int, float) or not 0 <= share <= 1:
            yield "evidence", NO_SHARE


def _of_words(row: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, words in OWN_WORDS.items():
        if row.get(name) is not None and row[name] not in words:
            yield name, describe_misfit(f"it is none of {', '.join(words)}", row[name])
    reason = row.get("reason")
    own = reason is not None and row.get("runtime") in own_runtimes()
    if own and reason not in known_reasons():
        yield "reason", describe_misfit(NO_REASON, reason)


def _above(low: str, row: Mapping[str, Any], high: str) -> bool:
    if BY_NAME[low].kind == "time":
        return _moment(row[low]) > _moment(row[high]) + SET_BACK
    return bool(row[low] > row[high] * ROUNDED)


def _moment(value: Any) -> datetime:
    moment = value if isinstance(value, datetime) else datetime.fromisoformat(value)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _expected(row: Mapping[str, Any], rate: str) -> float | None:
    """A rate by the mean; None where something of it is not known, or several share a step."""
    mean, counts = row.get("latency_mean_ms"), ITEMS[rate]
    factors = counts.get(str(row.get("throughput_unit") or ""), counts[""])
    known = [row.get(name) for name in factors]
    if not row.get(rate) or not mean or not all(known) or (row.get("world_size") or 1) > 1:
        return None
    expected = 1e3 / float(mean)
    for factor in known:
        expected *= factor or 0
    return expected

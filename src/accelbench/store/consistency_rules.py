"""Rules for results as SQL conditions: identities, rates, qualities and physical bounds.

Results of this program have a protocol version, and their values are exact; other programs round. A
worker removes values beyond a bound (`run/verify/plausibility.py`). A record with such a value was
changed, or comes from a program with a wrong unit: it is refused, and the column is named. Every
bound here is wider than the worker's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from accelbench.core.axes import AXES
from accelbench.core.case import QUESTION
from accelbench.core.columns import AccuracyMetric
from accelbench.core.device_facts import facts_of
from accelbench.core.identity import IDENTITY_VERSION
from accelbench.core.plausible_values import STEP_TIMES
from accelbench.core.ranges import (
    ACCELERATOR_OPERATIONS,
    BYTES_READ,
    LEAST_MEMORY_MB,
    PHASE_TIMES,
    POWER_EACH_W,
)
from accelbench.core.unusable_reasons import (
    FEWEST_JUDGED,
    MAX_WAITING,
    UNUSABLE_WIDTH,
    WIDTH_COLUMNS,
)
from accelbench.core.vocabulary import Check, Family, Quality, Status, Verification
from accelbench.evidence.launches import wide_sql
from accelbench.store.duck import quote_sql

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


HasColumn = Callable[[str], bool]


class Rule(NamedTuple):
    """Condition that must hold for every row; it is never NULL."""

    column: str
    condition: str
    why: str  # why a row that fails it is wrong, for `describe_misfit`
    other: str = ""  # SQL of the value that the column contradicts; empty if there is none


#: Condition of a result of this program.
OWN = "protocol_version IS NOT NULL"
#: Relative error of values that a file may store in single precision.
EXACT = 1e-6
#: Relative error of other programs' rounded summaries.
ROUNDED = 1e-3


_SHARES = ("accuracy", "accuracy_low", "accuracy_high")
_MEMORY = (
    *("memory_peak_mb", "memory_avg_mb", "host_memory_peak_mb", "host_memory_avg_mb"),
    *("device_memory_peak_mb", "device_memory_avg_mb", "device_memory_reserved_mb"),
)
_POWER = ("power_watts", "idle_power_watts")
#: Least duration of a first step, as a share of the fastest step.
_LEAST_FIRST = 0.1
#: Least device time, as a share of the fastest step; the worker removes less than a hundredth.
_LEAST_DEVICE = 0.002
#: Factor by which the energy pass may be slower: clocks may be lower and the host busier.
_OTHER_PASS = 10.0
_PARTS = (
    ("training", ("forward_ms", "loss_ms", "backward_ms", "optimizer_ms")),
    ("inference", ("prefill_ms", "decode_ms")),
    ("inference", ("embed_ms", "retrieve_ms", "generate_ms")),
)

#: Columns that the rules read.
BOUND_COLUMNS = tuple(dict.fromkeys((
    *_SHARES, "accuracy_metric", "accuracy_samples", "accuracy_per_sample", *_MEMORY, *_POWER,
    "energy_joules", "energy_ci_low_joules", "energy_ci_high_joules", "energy_per_item_joules",
    "energy_steps", "energy_window_ms", "world_size", *STEP_TIMES, "latency_min_ms",
    "first_inference_ms", "device_time_ms", *(name for _, names in _PARTS for name in names),
    "mode", "status", "verification", "self_check", "protocol_version",
)))  # fmt: skip


def bound_rules(has: HasColumn) -> Iterator[Rule]:
    """Yield the bounds that apply to a table with these columns."""
    yield from _outcome_bounds(has)
    yield from _accuracy_rules(has)
    yield from _memory_rules(has)
    yield from _power_rules(has)
    yield from _time_rules(has)


def _outcome_bounds(has: HasColumn) -> Iterator[Rule]:
    if not has("status"):
        return
    for column, word in (("verification", Verification.FAILED), ("self_check", Check.FAILED)):
        if has(column):
            both = f"status = {quote_sql(Status.OK.value)} AND {column} = {quote_sql(word.value)}"
            why = "it is failed, and status is ok"
            yield Rule(column, f"NOT coalesce({both}, false)", why)


def _accuracy_rules(has: HasColumn) -> Iterator[Rule]:
    perplexity = quote_sql(AccuracyMetric.PERPLEXITY.value)
    metric = "accuracy_metric" if has("accuracy_metric") else "NULL"
    is_share = f"coalesce({metric} <> {perplexity}, true)"
    for name in filter(has, _SHARES):
        most = f"NOT ({is_share}) OR {name} <= 1"
        yield Rule(name, f"coalesce({most}, true)", "it is a share, and more than 1")
        least = f"{is_share} OR {name} >= {1 - ROUNDED}"
        yield Rule(name, f"coalesce({least}, true)", "it is a perplexity, and less than 1")
    if all(map(has, ("accuracy_per_sample", "accuracy_samples"))):
        same = "len(accuracy_per_sample) = accuracy_samples"
        why = "it is not the number of values in accuracy_per_sample"
        yield Rule("accuracy_samples", f"coalesce({same}, true)", why, "len(accuracy_per_sample)")
        if has("accuracy") and has("accuracy_metric"):
            mean = "list_avg(accuracy_per_sample)"
            counted = f"accuracy_metric IN ({_words(AccuracyMetric.TOP1, AccuracyMetric.TOP5)})"
            holds = f"NOT ({counted}) OR abs(accuracy - {mean}) <= {ROUNDED}"
            why = "it is not the mean of accuracy_per_sample"
            yield Rule("accuracy", f"coalesce({holds}, true)", why, mean)


def _words(*words: AccuracyMetric) -> str:
    return ", ".join(quote_sql(word.value) for word in words)


def _memory_rules(has: HasColumn) -> Iterator[Rule]:
    for name in filter(has, _MEMORY):
        holds = f"coalesce({name} = 0 OR {name} >= {LEAST_MEMORY_MB}, true)"
        yield Rule(name, holds, "it is less than the smallest piece that an allocator gives")


def _power_rules(has: HasColumn) -> Iterator[Rule]:
    world = "greatest(coalesce(world_size, 1), 1)" if has("world_size") else "1"
    most = f"{POWER_EACH_W:g} * {world}"
    for name in filter(has, _POWER):
        why = f"it is more than {POWER_EACH_W:g} W for each process"
        yield Rule(name, f"coalesce({name} <= {most}, true)", why)
    if has("energy_joules") and (longest := _longest_step_sql(has)):
        joules = f"{most} * {_OTHER_PASS} * {longest} / 1e3"
        why = f"it is more than {POWER_EACH_W:g} W for each process in ten times the slowest step"
        yield Rule("energy_joules", f"coalesce(energy_joules <= {joules}, true)", why)
    if all(map(has, ("energy_window_ms", "energy_steps", "latency_min_ms"))):
        each = "energy_window_ms / nullif(energy_steps, 0)"
        holds = f"coalesce({each} >= {_LEAST_FIRST} * latency_min_ms, true)"
        why = "so many steps do not fit into energy_window_ms"
        yield Rule("energy_steps", holds, why, "energy_window_ms")


def _time_rules(has: HasColumn) -> Iterator[Rule]:
    shares = (("first_inference_ms", _LEAST_FIRST), ("device_time_ms", _LEAST_DEVICE))
    for name, share in shares if has("latency_min_ms") else ():
        if has(name):
            holds = f"coalesce({name} >= {share} * latency_min_ms, true)"
            why = f"it is less than {share:g} of the fastest step"
            yield Rule(name, holds, why, "latency_min_ms")
    longest = _longest_step_sql(has)
    for mode, names in _PARTS if longest and has("mode") else ():
        known = [name for name in names if has(name)]
        if not known:
            continue
        whole = " + ".join(f"coalesce({name}, 0)" for name in known)
        largest = f"greatest({', '.join(known)})"
        fits = f"{whole} <= {PHASE_TIMES} * {longest} + 1"
        for name in known:
            # The message names the largest part.
            holds = f"coalesce(mode <> {quote_sql(mode)} OR {fits} OR {name} < {largest}, true)"
            yield Rule(name, holds, "with the other parts it is longer than the step", longest)


def _longest_step_sql(has: HasColumn) -> str:
    """Return SQL of the longest known time of a step; empty if there is no such column."""
    known: Sequence[str] = [name for name in STEP_TIMES if has(name)]
    return f"greatest({', '.join(known)})" if known else ""


#: Operations and bytes per second that a device cannot exceed, by its name.
Limits = Mapping[str, tuple[float, float]]


#: Factor above a documented peak, which is for one kind of dense product. Fp16 sums and sparsity
#: each double it, TF32 is up to 8 times fp32, and boost clocks exceed the documented ones. Ten is
#: beyond all of these together.
_BEYOND_PEAK = 10.0
#: Types of 8 bits run at twice the rate of 16 bits, types of 4 bits at four times that rate.
_NARROW = 8.0
_WIDE = ("fp64", "fp32", "fp16", "bf16", "amp-fp16", "amp-bf16", "float32", "float16", "bfloat16")


def row_rules(has: HasColumn, limits: Limits) -> Iterator[Rule]:
    """Yield the rules of single rows that apply to a table with these columns."""
    if has("protocol_version"):
        yield from _identity_rules(has)
        yield from _outcome_rules(has)
        yield from _quality_rules(has)
        yield from _empty_column_rules(has)
        yield from _loss_rules(has)
        yield from _rate_rules(has)
    yield from _physical_rules(has, limits)
    yield from bound_rules(has)


def read_limits(con: DuckDBPyConnection, source: str) -> Limits:
    """Return the limits of each documented device in a table."""
    rows = con.execute(f"SELECT DISTINCT device_name FROM {source}").fetchall()  # noqa: S608
    return {name: known for (name,) in rows if name and (known := _limit(name))}


def _limit(name: str) -> tuple[float, float] | None:
    count, times, single = name.partition("x ")
    several = bool(times) and count.isdecimal()
    facts = facts_of(single if several else name)
    if facts is None or not facts.bandwidth:
        return None
    units = int(count) if several else 1
    peak = facts.highest_rate * 1e12
    return peak * _BEYOND_PEAK * units, facts.bandwidth * 1e9 * _BEYOND_PEAK * units


def _identity_rules(has: HasColumn) -> Iterator[Rule]:
    """Yield the rules that recompute the hashes of `core/case.py` from the columns."""
    version = str(IDENTITY_VERSION)
    device = (
        "CASE WHEN contains(device, ':') THEN device"
        " ELSE hardware || coalesce(':' || device, '') END"
    )
    if all(map(has, ("result_id", "run_id", "case_id", "device", "hardware", "launch", "arm"))):
        parts = {
            "arm": _text_sql("coalesce(arm, '')"),
            "case": _text_sql("case_id"),
            "device": _text_sql(device),
            "launch": "launch::VARCHAR",
            "run": _text_sql("run_id"),
            "v": quote_sql(version),
        }
        why = "it is not the hash of this run, case, device, launch and arm"
        yield Rule("result_id", _hash_sql("result_id", parts, 24), why)
    if all(map(has, ("series_key", "case_id", "device_fingerprint", "threads"))):
        parts = {
            "case": _text_sql("case_id"),
            "device": _text_sql("coalesce(device_fingerprint, '')"),
            "protocol": "protocol_version::VARCHAR",
            "threads": "coalesce(threads::VARCHAR, 'null')",
            "v": quote_sql(version),
        }
        why = "it is not the hash of this case, device_fingerprint, threads and protocol_version"
        yield Rule("series_key", _hash_sql("series_key", parts, 16), why)
    asked = ("model", "runtime", "hardware", "precision", "mode", "scenario", "world_size")
    if all(map(has, ("case_id", "conditions", "options", "batch_size", *asked))):
        yield Rule(
            "case_id",
            f"({_condition_sql('config')} IS NULL OR {_hash_sql('case_id', _case_parts(has), 16)})",
            "it is not the hash of this model, engine, hardware, precision, sizes and options",
        )


def _case_parts(has: HasColumn) -> dict[str, str | None]:
    """Return the parts of `Case.case_id` in SQL; NULL leaves a part out."""
    sizes = {"batch": "batch_size::VARCHAR"} | {
        axis.field: _text_sql(axis.column) if axis.text else f"{axis.column}::VARCHAR"
        for axis in AXES
        if has(axis.column)
    }
    return {
        "config": _text_sql(_condition_sql("config")),
        "generation": _condition_sql("generation"),
        "hardware": _text_sql("hardware"),
        "mode": _text_sql("mode"),
        "model": _text_sql("model"),
        "options": "coalesce(options::VARCHAR, '{}')",
        "precision": _text_sql("precision"),
        "procedure": _text_sql(_condition_sql("procedure")),
        "runtime": _text_sql("runtime"),
        "sampling_rate": _condition_sql("sampling_rate"),
        "scenario": _text_sql("scenario"),
        "shapes": _object_sql(sizes),
        "training": _condition_sql("training"),
        "unit": f"coalesce({_text_sql(_condition_sql('unit'))}, 'null')",
        "v": quote_sql(str(IDENTITY_VERSION)),
        "world": "world_size::VARCHAR",
    }


def _condition_sql(name: str) -> str:
    """Return SQL for a part of the case that has no column; NULL if there is none."""
    path = quote_sql(f"$.{QUESTION}.{name}")
    return f"(CASE WHEN json_valid(conditions) THEN conditions->>{path} END)"


def _text_sql(sql: str) -> str:
    return f"to_json({sql})::VARCHAR"


def _object_sql(parts: Mapping[str, str | None]) -> str:
    """Return SQL for canonical JSON of an object, without parts that are NULL."""
    each = (f"{quote_sql(json_key(name))} || {parts[name]}" for name in sorted(parts))
    return f"'{{' || concat_ws(',', {', '.join(each)}) || '}}'"


def json_key(name: str) -> str:
    """Return a key with its colon in canonical JSON."""
    return f'"{name}":'


def _hash_sql(column: str, parts: Mapping[str, str | None], length: int) -> str:
    """Return SQL for whether a column is the hash of these parts; true if it is not known."""
    # Python escapes characters other than printable ASCII, so texts with them are not compared.
    text = _object_sql(parts)
    plain = f"regexp_full_match({text}, '[ -~]*')"
    same = f"{column} = substr(sha256({text}), 1, {length})"
    return f"coalesce(NOT ({OWN}) OR NOT {plain} OR {same}, true)"


def _outcome_rules(has: HasColumn) -> Iterator[Rule]:
    if has("status") and has("reason"):
        ok = f"status = {quote_sql(Status.OK.value)}"
        holds = f"coalesce(NOT ({OWN}) OR ({ok}) = (reason IS NULL), true)"
        yield Rule("reason", holds, "an ok result has no reason, and any other result has one")


#: Columns that every measured result of this program has, or has a reason for in `nulls`.
REQUIRED_COLUMNS = (
    *("quality", "latency_mean_ms", "throughput", "sample_count", "first_inference_ms"),
    *("warmup_steps", "sampling_ms", "memory_peak_mb", "memory_avg_mb", "cpu_wait_share"),
    *("unexplained_share", "steps_verified", "precision_proof"),
)
_WAITING = "cpu_wait_share"
#: Condition of a measured result of this program.
_MEASURED = f"coalesce(({OWN}) AND status = {quote_sql(Status.OK.value)}, false)"


def _has_reason_sql(column: str) -> str:
    return f"(CASE WHEN json_valid(nulls) THEN json_exists(nulls, '$.{column}') ELSE false END)"


def _quality_rules(has: HasColumn) -> Iterator[Rule]:
    """Yield the rules for the quality `unusable`."""
    if not all(map(has, ("quality", "status", _WAITING))):
        return
    unusable = f"coalesce(quality = {quote_sql(Quality.UNUSABLE.value)}, false)"
    allowed = f"NOT {_MEASURED} OR {unusable}"
    waited = f"coalesce({_WAITING} > {MAX_WAITING}, false)"
    why = f"a launch with a {_WAITING} above {MAX_WAITING:g} is unusable"
    yield Rule("quality", f"({allowed} OR NOT {waited})", why)
    if all(map(has, ("sample_count", "conditions", *WIDTH_COLUMNS))):
        asked = "json_type(conditions, '$.rules.iterations')"
        asked = f"coalesce((CASE WHEN json_valid(conditions) THEN {asked} END) <> 'NULL', true)"
        few = f"(coalesce(sample_count, 0) < {FEWEST_JUDGED} AND {asked})"
        why = f"a launch with an interval wider than ±{UNUSABLE_WIDTH * 100:.0f} % is unusable"
        yield Rule("quality", f"({allowed} OR {few} OR NOT {wide_sql(EXACT)})", why)


def _empty_column_rules(has: HasColumn) -> Iterator[Rule]:
    """Yield the rules that an empty column has a reason in `nulls`."""
    if not all(map(has, ("nulls", "status"))):
        return
    for name in filter(has, REQUIRED_COLUMNS):
        given = f"{name} IS NOT NULL OR nulls IS NULL OR {_has_reason_sql(name)}"
        yield Rule(name, f"({given} OR NOT {_MEASURED})", "it is empty without a reason")


def _loss_rules(has: HasColumn) -> Iterator[Rule]:
    if not has("loss_per_step"):
        return
    for name, place in (("loss_first", 1), ("loss_last", -1)):
        if has(name):
            value = f"loss_per_step[{place}]"
            holds = f"abs({name} - {value}) <= {EXACT} * abs({value})"
            why = f"it is not the {'first' if place == 1 else 'last'} loss in loss_per_step"
            yield Rule(name, f"coalesce(NOT ({OWN}) OR {holds}, true)", why)


def _rate_rules(has: HasColumn) -> Iterator[Rule]:
    """Yield the rules for rates, which follow from the stored mean."""
    from accelbench.core.plausible_values import ITEM_COLUMNS

    needed = ("latency_mean_ms", "throughput_unit", "world_size", "batch_size", "new_tokens")
    if not all(map(has, (*needed, "audio_seconds"))):
        return
    for rate, counts in ITEM_COLUMNS.items():
        if not has(rate):
            continue
        items = " ".join(
            f"WHEN {quote_sql(unit)} THEN {' * '.join(factors) or '1'}"
            for unit, factors in counts.items()
            if unit
        )
        other = " * ".join(counts[""])
        items = f"CASE throughput_unit {items} ELSE {other} END" if items else other
        ratio = f"({rate} * latency_mean_ms / 1e3 / nullif({items}, 0))"
        holds = f"world_size > 1 OR {ratio} BETWEEN {1 - ROUNDED} AND {1 + ROUNDED}"
        why = "it is not the number of items of a step divided by latency_mean_ms"
        yield Rule(rate, f"coalesce(NOT ({OWN}) OR {holds}, true)", why)


_TIMES = ("latency_p50_ms", "latency_mean_ms", "latency_min_ms")


def step_ms_sql(has: HasColumn) -> str:
    """Return SQL for the milliseconds of a step, from its time or its rate; else NULL."""
    unit = "throughput_unit" if has("throughput_unit") else "''"
    throughput = "throughput" if has("throughput") else "NULL"
    rate = f"CASE WHEN coalesce({unit}, '') NOT IN ('tokens/s', 'audio s/s', 'calls/s')"
    rate = f"{rate} THEN 1e3 * batch_size / {throughput} END"
    return f"coalesce({', '.join([*filter(has, _TIMES), rate])})"


def operations_sql(has: HasColumn) -> str:
    """Return SQL for the least operations of a step; NULL if none are known."""
    operations = ["flops" if has("flops") else "NULL::DOUBLE"]
    if has("extra"):
        operations.append("2e9 * batch_size * extra['gmacs']")
    if has("parameters") and has("family"):
        # Vision models apply each weight to each image, at one position or at many.
        vision = f"family = {quote_sql(Family.VISION.value)}"
        operations.append(f"CASE WHEN {vision} THEN 2.0 * batch_size * parameters END")
    return f"greatest({', '.join(operations)})"


def _physical_rules(has: HasColumn, limits: Limits) -> Iterator[Rule]:
    """Yield the rules for rates of operations and input bytes that no device reaches."""
    if not has("batch_size"):
        return

    def get(name: str, otherwise: str = "NULL") -> str:
        return name if has(name) else otherwise

    known = [name for name in _TIMES if has(name)]
    seconds, reached = f"({step_ms_sql(has)} / 1e3)", operations_sql(has)
    column = f"{known[1] if len(known) > 1 else known[0]}" if known else "throughput"
    world = f"greatest(coalesce({get('world_size')}, 1), 1)"
    narrow = (
        f"CASE WHEN precision IN {_WIDE} THEN 1 ELSE {_NARROW} END" if has("precision") else "8"
    )
    most, most_bytes = (_limit_sql(limits, n, has("device_name")) for n in (0, 1))
    holds = f"{reached} <= {seconds} * {world} * {most} * {narrow}"
    why = "its operations in that time exceed 10 times the peak of the device"
    yield Rule(column, f"coalesce({holds}, true)", why)
    inputs = (
        f"batch_size * (3.0 * coalesce({get('image_size')}, 0) * coalesce({get('image_size')}, 0)"
    )
    inputs = f"{inputs} + coalesce({get('sequence_length')}, 0))"
    why = "no device reads the bytes of its inputs in that time"
    yield Rule(column, f"coalesce({inputs} <= {seconds} * {world} * {most_bytes}, true)", why)


def _limit_sql(limits: Limits, which: int, has_name: bool) -> str:
    """Return SQL for a limit of the row's device; that of any accelerator if it has none."""
    otherwise = (ACCELERATOR_OPERATIONS, BYTES_READ)[which]
    if not limits or not has_name:
        return f"{otherwise:g}"
    cases = " ".join(
        f"WHEN {quote_sql(name)} THEN {both[which]:g}" for name, both in limits.items()
    )
    return f"(CASE device_name {cases} ELSE {otherwise:g} END)"

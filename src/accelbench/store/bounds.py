"""Physical bounds of values other than the time of a step, as conditions in SQL.

A worker removes such values when it measures (`run/verify/plausibility.py`). A record that has one
was changed, or is of a program that mistakes a unit: it is refused, and the column is named.
Every bound is wider than the worker's own, so that no result of this program exceeds one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from accelbench.core.accuracy_columns import AccuracyMetric
from accelbench.core.possible import STEP
from accelbench.core.ranges import LEAST_MEMORY_MB, PHASE_TIMES, POWER_EACH_W
from accelbench.core.vocabulary import Check, Status, Verification
from accelbench.store.duck import quoted
from accelbench.store.rule import ROUNDED, Rule, There

_SHARES = ("accuracy", "accuracy_low", "accuracy_high")
_MEMORY = (
    *("memory_peak_mb", "memory_avg_mb", "host_memory_peak_mb", "host_memory_avg_mb"),
    *("device_memory_peak_mb", "device_memory_avg_mb", "device_memory_reserved_mb"),
)
_POWER = ("power_watts", "idle_power_watts")
#: A first step contains a step, and the worker compares it with the fastest one.
_LEAST_FIRST = 0.1
#: The worker removes less than a hundredth.
_LEAST_DEVICE = 0.002
#: The energy pass may meet lower clocks than the steps that were timed, and a busier host.
_OTHER_PASS = 10.0
_PARTS = (
    ("training", ("forward_ms", "loss_ms", "backward_ms", "optimizer_ms")),
    ("inference", ("prefill_ms", "decode_ms")),
    ("inference", ("embed_ms", "retrieve_ms", "generate_ms")),
)

#: Columns that the rules read.
COLUMNS_OF_BOUNDS = tuple(dict.fromkeys((
    *_SHARES, "accuracy_metric", "accuracy_samples", "accuracy_per_sample", *_MEMORY, *_POWER,
    "energy_joules", "energy_ci_low_joules", "energy_ci_high_joules", "energy_per_item_joules",
    "energy_steps", "energy_window_ms", "world_size", *STEP, "latency_min_ms",
    "first_inference_ms", "device_time_ms", *(name for _, names in _PARTS for name in names),
    "mode", "status", "verification", "self_check", "protocol_version",
)))  # fmt: skip


def bound_rules(has: There) -> Iterator[Rule]:
    """Yield the bounds that apply to a table with these columns."""
    yield from _outcomes(has)
    yield from _accuracy(has)
    yield from _memory(has)
    yield from _power(has)
    yield from _times(has)


def _outcomes(has: There) -> Iterator[Rule]:
    if not has("status"):
        return
    for column, word in (("verification", Verification.FAILED), ("self_check", Check.FAILED)):
        if has(column):
            both = f"status = {quoted(Status.OK.value)} AND {column} = {quoted(word.value)}"
            why = "it is failed, and status is ok"
            yield Rule(column, f"NOT coalesce({both}, false)", why)


def _accuracy(has: There) -> Iterator[Rule]:
    perplexity = quoted(AccuracyMetric.PERPLEXITY.value)
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
    return ", ".join(quoted(word.value) for word in words)


def _memory(has: There) -> Iterator[Rule]:
    for name in filter(has, _MEMORY):
        holds = f"coalesce({name} = 0 OR {name} >= {LEAST_MEMORY_MB}, true)"
        yield Rule(name, holds, "it is less than the smallest piece that an allocator gives")


def _power(has: There) -> Iterator[Rule]:
    world = "greatest(coalesce(world_size, 1), 1)" if has("world_size") else "1"
    most = f"{POWER_EACH_W:g} * {world}"
    for name in filter(has, _POWER):
        why = f"it is more than {POWER_EACH_W:g} W for each process"
        yield Rule(name, f"coalesce({name} <= {most}, true)", why)
    if has("energy_joules") and (longest := _longest(has)):
        joules = f"{most} * {_OTHER_PASS} * {longest} / 1e3"
        why = f"it is more than {POWER_EACH_W:g} W for each process in ten times the slowest step"
        yield Rule("energy_joules", f"coalesce(energy_joules <= {joules}, true)", why)
    if all(map(has, ("energy_window_ms", "energy_steps", "latency_min_ms"))):
        each = "energy_window_ms / nullif(energy_steps, 0)"
        holds = f"coalesce({each} >= {_LEAST_FIRST} * latency_min_ms, true)"
        why = "so many steps do not fit into energy_window_ms"
        yield Rule("energy_steps", holds, why, "energy_window_ms")


def _times(has: There) -> Iterator[Rule]:
    shares = (("first_inference_ms", _LEAST_FIRST), ("device_time_ms", _LEAST_DEVICE))
    for name, share in shares if has("latency_min_ms") else ():
        if has(name):
            holds = f"coalesce({name} >= {share} * latency_min_ms, true)"
            why = f"it is less than {share:g} of the fastest step"
            yield Rule(name, holds, why, "latency_min_ms")
    longest = _longest(has)
    for mode, names in _PARTS if longest and has("mode") else ():
        known = [name for name in names if has(name)]
        if not known:
            continue
        whole = " + ".join(f"coalesce({name}, 0)" for name in known)
        largest = f"greatest({', '.join(known)})"
        fits = f"{whole} <= {PHASE_TIMES} * {longest} + 1"
        for name in known:
            # The largest part is named.
            holds = f"coalesce(mode <> {quoted(mode)} OR {fits} OR {name} < {largest}, true)"
            yield Rule(name, holds, "with the other parts it is longer than the step", longest)


def _longest(has: There) -> str:
    """Return SQL of the longest time that is known of a step; empty if there is no such column."""
    known: Sequence[str] = [name for name in STEP if has(name)]
    return f"greatest({', '.join(known)})" if known else ""

"""Results that contradict themselves, found in a table of any size or in rows of a file.

Summaries are compared with samples that are joined to their results: `step_ns` has the samples of
whole steps, `timing` and `per_sample` their method of timing, `phases` the samples of every phase.

Imported results whose rate exceeds the documented peak of their device are marked: they get the
quality `unusable` and their calculation in `implausible_rate`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from accelbench.core.axes import AXES
from accelbench.core.columns import BY_NAME
from accelbench.core.device_facts import (
    MAX_SHARE_OF_PEAK,
    MILLISECONDS,
    OPERATIONS,
    PEAK,
    RATE,
    documented_peak,
)
from accelbench.core.plausible_values import describe_misfit
from accelbench.core.vocabulary import Provenance, Quality, Timing
from accelbench.store.consistency_rules import (
    BOUND_COLUMNS,
    EXACT,
    OWN,
    REQUIRED_COLUMNS,
    ROUNDED,
    HasColumn,
    Rule,
    operations_sql,
    read_limits,
    row_rules,
    step_ms_sql,
)
from accelbench.store.duck import quote_sql

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


#: Rounding of samples to whole nanoseconds; other programs summarise exact values.
_NANOSECOND_MS = 1.001e-6
#: The interval of a median spans at least this multiple of √n ranks to each side: 0.98 for
#: independent samples, and more for correlated ones.
_LEAST_RANKS = 0.75
PERCENTILES = {"p90": 0.9, "p95": 0.95, "p99": 0.99}
#: A block is accepted if its samples exceed its duration by at most 0.1 %, plus a clock tick for
#: each sample, which is at most another 0.1 %.
_CLOCK_TOLERANCE = 1.01

#: Phases of a step whose samples are kept as `phase:NAME`, with their median in `NAME_ms`.
_PHASES = (
    *("prefill", "decode", "embed", "retrieve", "generate", "forward", "loss", "backward"),
    "optimizer",
)


NOT_BY_SAMPLES = "it is not what its samples give"
_STEP = "step_ns"
#: Samples of single steps: of blocks nothing is known of one step.
_EACH = f"coalesce(timing, {quote_sql(Timing.EACH.value)}) = {quote_sql(Timing.EACH.value)}"


def _ms(figure: str) -> str:
    return f"{figure}({_STEP}) / per_sample / 1e6"


def _rank(rank: str) -> str:
    return f"list_sort({_STEP})[least(len({_STEP}), greatest(1, ({rank})::BIGINT))] / 1e6"


def _stamps(request: str) -> str:
    """Return SQL for the median of a value of each request, from its token times."""
    begins = f"range(0, len({_TOKENS}), greatest(new_tokens, 1))"
    return f"list_median(list_transform({begins}, lambda i: {request})) / 1e6"


#: Token times of all requests, one after another.
_TOKENS = "phases['tokens']"
#: SQL of the values that samples give, by the name of a column that is joined to their result.
SAMPLE_VALUES = {
    "given_count": f"len({_STEP})",
    "given_total": f"list_sum({_STEP}) / 1e6",
    "given_mean": _ms("list_avg"),
    "given_min": _ms("list_min"),
    "given_max": _ms("list_max"),
    "given_p50": _ms("list_median"),
    "given_std": f"list_aggregate({_STEP}, 'stddev_samp') / 1e6",
    "given_std_least": f"list_aggregate({_STEP}, 'stddev_pop') / 1e6",
    **{
        f"given_{name}": f"list_aggregate({_STEP}, 'quantile_cont', {share}) / 1e6"
        for name, share in PERCENTILES.items()
    },
    # Other programs use the sample below or above.
    **{
        f"given_{name}_least": _rank(f"floor((len({_STEP}) - 1) * {share})")
        for name, share in PERCENTILES.items()
    },
    **{
        f"given_{name}_most": _rank(f"ceil(len({_STEP}) * {share}) + 1")
        for name, share in PERCENTILES.items()
    },
    **{f"given_{phase}": f"list_median(phases['phase:{phase}']) / 1e6" for phase in _PHASES},
    "given_ci_low_most": _rank(
        f"floor(len({_STEP}) * 0.5 - {_LEAST_RANKS} * sqrt(len({_STEP})) + 0.5)"
    ),
    "given_ci_high_least": _rank(
        f"ceil(len({_STEP}) * 0.5 + {_LEAST_RANKS} * sqrt(len({_STEP})) + 0.5)"
    ),
    "given_device": "list_median(phases['device']) / 1e6",
    "given_ttft": _stamps(f"{_TOKENS}[i + 1]"),
    "given_tpot": _stamps(
        f"({_TOKENS}[i + new_tokens] - {_TOKENS}[i + 1]) / nullif(new_tokens - 1, 0)"
    ),
}


class _Comparison:
    """Rules that compare columns of a table with the samples that are joined to it."""

    def __init__(self, has: HasColumn) -> None:
        self.has = has
        self.own = f"({OWN})" if has("protocol_version") else "false"
        self.count = "sample_count" if has("sample_count") else "NULL"
        self.tolerance = f"CASE WHEN {self.own} THEN {EXACT} ELSE {ROUNDED} END"

    def holds(self, column: str, condition: str, value: str, when: str = "true") -> Iterator[Rule]:
        """Yield the rule that a condition holds for a column whose samples give a value."""
        if self.has(column):
            compared = f"({self.own} OR {self.count} IS NOT NULL) AND ({when})"
            holds = f"coalesce(NOT ({compared}) OR {condition}, true)"
            yield Rule(column, holds, NOT_BY_SAMPLES, value)

    def near(self, column: str, value: str, when: str = "true") -> Iterator[Rule]:
        """Yield the rule that a column equals a value of its samples."""
        slack = f"{self.tolerance} * abs({value}) + {_NANOSECOND_MS}"
        yield from self.holds(column, f"abs({column} - {value}) <= {slack}", value, when)


def sample_rules(has: HasColumn) -> Iterator[Rule]:
    """Yield the rules for a row together with its samples."""
    yield from _count_rules(_Comparison(has))
    yield from _step_rules(_Comparison(has))
    yield from _phase_rules(_Comparison(has))


def _count_rules(compare: _Comparison) -> Iterator[Rule]:
    yield Rule("samples", f"coalesce(list_min({_STEP}) >= 0, true)", "a sample is below 0")
    if compare.has("latency_mean_ms"):
        empty = "given_count = 0 AND latency_mean_ms IS NOT NULL"
        yield Rule("samples", f"NOT coalesce({empty}, false)", "there is none, and there is a mean")
    same = f"coalesce(given_count = {compare.count}, NOT {compare.own})"
    holds = f"coalesce(given_count IS NULL OR {same}, true)"
    yield Rule("sample_count", holds, NOT_BY_SAMPLES, "given_count")
    fits = f"sampling_ms * {_CLOCK_TOLERANCE} >= given_total"
    yield from compare.holds("sampling_ms", fits, "given_total", compare.own)


def _step_rules(compare: _Comparison) -> Iterator[Rule]:
    yield from compare.near("latency_mean_ms", "given_mean")
    for name in ("min", "max", "p50"):
        yield from compare.near(f"latency_{name}_ms", f"given_{name}", _EACH)
    for name in PERCENTILES:
        yield from _percentile_rules(compare, name)
    ends = ["latency_ci_low_ms", "latency_ci_high_ms"]
    ends += [f"latency_{name}_{end}_ms" for name in PERCENTILES for end in ("low", "high")]
    for column in ends:
        within = f"{column} BETWEEN given_min * (1 - {EXACT}) - {_NANOSECOND_MS}"
        within = f"{within} AND given_max * (1 + {EXACT}) + {_NANOSECOND_MS}"
        nearest = f"CASE WHEN {column} < given_min THEN given_min ELSE given_max END"
        yield from compare.holds(column, within, nearest, f"{compare.own} AND {_EACH}")
    ours = f"{compare.own} AND {_EACH}"
    low = f"latency_ci_low_ms <= given_ci_low_most * (1 + {EXACT}) + {_NANOSECOND_MS}"
    high = f"latency_ci_high_ms >= given_ci_high_least * (1 - {EXACT}) - {_NANOSECOND_MS}"
    yield from compare.holds("latency_ci_low_ms", low, "given_ci_low_most", ours)
    yield from compare.holds("latency_ci_high_ms", high, "given_ci_high_least", ours)
    # Other programs divide by n, and ours divides by n - 1.
    slack = f"({compare.tolerance} * latency_std_ms + {_NANOSECOND_MS})"
    between = f"latency_std_ms BETWEEN given_std_least - {slack} AND given_std + {slack}"
    yield from compare.holds("latency_std_ms", between, "given_std", _EACH)


def _percentile_rules(compare: _Comparison, name: str) -> Iterator[Rule]:
    """Yield the rules of a percentile: interpolated, or for other programs near its rank."""
    column, value = f"latency_{name}_ms", f"given_{name}"
    slack = f"({ROUNDED} * {column} + {_NANOSECOND_MS})"
    exact = f"abs({column} - {value}) <= {EXACT} * {value} + {_NANOSECOND_MS}"
    near = f"{column} BETWEEN {value}_least - {slack} AND {value}_most + {slack}"
    close = f"CASE WHEN {compare.own} THEN {exact} ELSE {near} END"
    yield from compare.holds(column, close, value, _EACH)


def _phase_rules(compare: _Comparison) -> Iterator[Rule]:
    """Yield the rules of phases, of a device's own timers, and of token times."""
    for phase in _PHASES:
        yield from compare.near(f"{phase}_ms", f"given_{phase}")
    yield from compare.near("device_time_ms", "given_device")
    whole = f"len({_TOKENS}) > 0 AND new_tokens > 0 AND len({_TOKENS}) % new_tokens = 0"
    for name in ("ttft", "tpot"):
        yield from compare.near(f"{name}_ms", f"given_{name}", whole)


class Contradiction(NamedTuple):
    """Value that does not follow from the rest of its result."""

    result_id: str | None
    run_id: str | None
    model: str | None
    column: str
    why: str

    @property
    def reason(self) -> str:
        return f"{self.column}: {self.why}"


#: Columns that the rules read.
RULE_COLUMNS = tuple(dict.fromkeys((
    *("result_id", "run_id", "case_id", "series_key", "launch", "arm", "model", "family"),
    *("parameters", "hardware", "runtime", "device", "device_name", "device_fingerprint"),
    *("precision", "batch_size", *(axis.column for axis in AXES), "mode", "scenario", "threads"),
    *("world_size", "options", "status", "reason", "latency_mean_ms", "latency_p50_ms"),
    *(f"latency_{name}_ms" for name in PERCENTILES),
    *(f"latency_{name}_{end}_ms" for name in PERCENTILES for end in ("low", "high")),
    *("latency_min_ms", "latency_max_ms", "latency_std_ms", "latency_ci_low_ms"),
    *("latency_ci_high_ms", "sample_count", "outlier_count", "sampling_ms", "throughput"),
    *("throughput_unit", "tokens_per_second", "device_time_ms", "ttft_ms", "tpot_ms"),
    *("prefill_ms", "decode_ms", "embed_ms", "retrieve_ms", "generate_ms", "forward_ms"),
    *("loss_ms", "backward_ms", "optimizer_ms", "loss_first", "loss_last", "loss_per_step"),
    *("flops", "extra", "conditions", "protocol_version", "nulls"),
    *REQUIRED_COLUMNS, *BOUND_COLUMNS,
)))  # fmt: skip
#: The ones that limits of devices and bounds of other values read.
LIMIT_COLUMNS = tuple(dict.fromkeys((
    *("result_id", "run_id", "model", "family", "parameters", "device_name", "precision"),
    *("batch_size", "sequence_length", "image_size", "world_size", "latency_mean_ms"),
    *("latency_p50_ms", "latency_min_ms", "throughput", "throughput_unit", "flops", "extra"),
    *BOUND_COLUMNS,
)))  # fmt: skip
_BOTH = """(
    SELECT r.*, s.* EXCLUDE (result_id), {values} FROM {results} r JOIN (
        SELECT result_id,
            any_value(samples) FILTER (phase = 'step') AS step_ns,
            any_value(timing) FILTER (phase = 'step') AS timing,
            coalesce(any_value(steps[1]) FILTER (phase = 'step'), 1) AS per_sample,
            map_from_entries(list((phase, samples))) AS phases
        FROM (SELECT DISTINCT ON (result_id, phase) * FROM {samples}) GROUP BY result_id
    ) s ON r.result_id = s.result_id
)"""


def find_contradictions(
    con: DuckDBPyConnection,
    results: str,
    samples: str,
    names: Sequence[str],
    rules: Sequence[Rule] | None = None,
) -> list[Contradiction]:
    """Return contradictions, at most one per result.

    `results` and `samples` are tables or queries in brackets; `samples` may be empty. `rules` are
    rules for rows without samples, by default `row_rules`.
    """
    has = set(names).__contains__
    if rules is None:
        rules = list(row_rules(has, read_limits(con, results) if has("device_name") else {}))
    found = _select(con, results, rules, has)
    if samples:
        values = ", ".join(f"{sql} AS {name}" for name, sql in SAMPLE_VALUES.items())
        both = _BOTH.format(results=results, samples=samples, values=values)
        found += _select(con, both, list(sample_rules(has)), has)
    once: dict[str | None, Contradiction] = {}
    for one in found:
        once.setdefault(one.result_id, one)
    return list(once.values())


def _select(
    con: DuckDBPyConnection, source: str, rules: Sequence[Rule], has: HasColumn
) -> list[Contradiction]:
    if not rules:
        return []
    named = ", ".join(name if has(name) else "NULL" for name in ("result_id", "run_id", "model"))
    whole = " AND ".join(f"({r.condition})" for r in rules)
    # Nearly always nothing is wrong, and planning the rest would triple the time.
    wrong = f"SELECT count(*) FROM {source} WHERE NOT ({whole})"  # noqa: S608 — our conditions
    if con.execute(wrong).fetchall() == [(0,)]:
        return []
    first = " ".join(f"WHEN NOT ({r.condition}) THEN {n}" for n, r in enumerate(rules))
    value = " ".join(f"WHEN {n} THEN {_value(r, has)}" for n, r in enumerate(rules))
    other = " ".join(f"WHEN {n} THEN ({r.other or 'NULL'})::VARCHAR" for n, r in enumerate(rules))
    rows: list[Any] = con.execute(
        f"SELECT {named}, number, CASE number {value} END, CASE number {other} END"  # noqa: S608
        f" FROM (SELECT *, CASE {first} END AS number FROM {source} WHERE NOT ({whole}))"
        " ORDER BY ALL"
    ).fetchall()
    return [_contradiction(ids, rules[n], value, other) for *ids, n, value, other in rows]


def _value(rule: Rule, has: HasColumn) -> str:
    return f'"{rule.column}"::VARCHAR' if has(rule.column) else "NULL"


def _contradiction(
    ids: Sequence[str | None], rule: Rule, value: str | None, other: str | None
) -> Contradiction:
    result_id, run_id, model = ids
    why = describe_misfit(
        rule.why, parse_value(rule.column, value), parse_value(rule.column, other)
    )
    return Contradiction(result_id, run_id, model, rule.column, why)


def parse_value(column: str, text: str | None) -> object:
    """Return a value of a column from DuckDB's text; None if it is not a single value."""
    kind = BY_NAME[column].kind if column in BY_NAME else "float"
    if text is None or kind in ("json", "list", "floats", "map"):
        return None
    if kind not in ("float", "int"):
        return text
    try:
        number = float(text)
    except ValueError:
        return text
    return int(number) if kind == "int" and number.is_integer() else number


#: Column with the calculation.
IMPLAUSIBLE = "implausible_rate"
#: Columns that identify the devices and the precision of a documented peak.
_PEAK_COLUMNS = ("device_name", "hardware", "precision", "world_size")
_IMPORTED = f"provenance = '{Provenance.IMPORTED.value}' AND status = 'ok'"
_KINDS = f"""
SELECT DISTINCT {", ".join(_PEAK_COLUMNS)} FROM fact_result
WHERE {_IMPORTED} AND implausible_rate IS NULL AND device_name IS NOT NULL
"""  # noqa: S608 — our columns
_MARK = """
UPDATE fact_result SET quality = '{unusable}', implausible_rate = MAP {{
    '{operations}': {work}, '{milliseconds}': {step}, '{rate}': {work} / ({step} / 1e3),
    '{peak}': known.peak
}}
FROM (
    SELECT unnest(?::VARCHAR[]) AS name, unnest(?::VARCHAR[]) AS platform,
        unnest(?::VARCHAR[]) AS kind, unnest(?::BIGINT[]) AS devices, unnest(?::DOUBLE[]) AS peak
) AS known
WHERE {imported} AND implausible_rate IS NULL
    AND device_name = known.name AND hardware IS NOT DISTINCT FROM known.platform
    AND precision IS NOT DISTINCT FROM known.kind
    AND world_size IS NOT DISTINCT FROM known.devices
    AND {work} > {most} * known.peak * ({step} / 1e3)
"""


def mark_implausible(con: DuckDBPyConnection) -> None:
    """Mark the imported results of a database, in its transaction."""
    known = [
        (name, hardware, precision, devices, peak)
        for name, hardware, precision, devices in con.execute(_KINDS).fetchall()
        if (peak := documented_peak(name, hardware or "", precision or "", devices or 1))
    ]
    if not known:
        return
    words = {
        "unusable": Quality.UNUSABLE.value,
        "operations": OPERATIONS,
        "milliseconds": MILLISECONDS,
        "rate": RATE,
        "peak": PEAK,
        "work": operations_sql(lambda _: True),
        "step": step_ms_sql(lambda _: True),
        "imported": _IMPORTED,
        "most": MAX_SHARE_OF_PEAK,
    }
    con.execute(_MARK.format(**words), list(map(list, zip(*known, strict=True))))


def find_implausible(con: DuckDBPyConnection) -> list[dict[str, object]]:
    """Return every marked result with its calculation, the largest excess first."""
    names = (
        *("result_id", "model", "device_name", "hardware", "runtime", "precision", "batch_size"),
        IMPLAUSIBLE,
    )
    rows = con.execute(
        f"SELECT {', '.join(names)} FROM benchmark_results WHERE {IMPLAUSIBLE} IS NOT NULL"  # noqa: S608
        f" ORDER BY {IMPLAUSIBLE}['{RATE}'] / {IMPLAUSIBLE}['{PEAK}'] DESC, result_id"
    ).fetchall()
    return [dict(zip(names, row, strict=True)) for row in rows]

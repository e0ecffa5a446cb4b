"""Results that contradict themselves, found in a table of any size or in rows of a file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from accelbench.core.axes import AXES
from accelbench.core.columns import BY_NAME
from accelbench.core.possible import describe_misfit
from accelbench.store.bounds import COLUMNS_OF_BOUNDS
from accelbench.store.derived import ALWAYS_GIVEN, limits_of, row_rules
from accelbench.store.rule import Rule, There
from accelbench.store.summaries import PERCENTILES, VALUES, sample_rules

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


class Contradiction(NamedTuple):
    """A value that does not follow from the rest of its result."""

    result_id: str | None
    run_id: str | None
    model: str | None
    column: str
    why: str

    @property
    def reason(self) -> str:
        """The column and why it is wrong."""
        return f"{self.column}: {self.why}"


#: Columns that the rules read, for whoever makes a table of them.
COLUMNS_READ = tuple(dict.fromkeys((
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
    *ALWAYS_GIVEN, *COLUMNS_OF_BOUNDS,
)))  # fmt: skip
#: Those of them that limits of devices, and bounds of side values, are about.
COLUMNS_OF_LIMITS = tuple(dict.fromkeys((
    *("result_id", "run_id", "model", "family", "parameters", "device_name", "precision"),
    *("batch_size", "sequence_length", "image_size", "world_size", "latency_mean_ms"),
    *("latency_p50_ms", "latency_min_ms", "throughput", "throughput_unit", "flops", "extra"),
    *COLUMNS_OF_BOUNDS,
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
    """Return what contradicts itself, at most one value of a result.

    Args:
        con: a connection that sees both.
        results: a table, or a query in brackets.
        samples: the same of their samples; empty if there are none.
        names: columns of the results.
        rules: of rows alone; `row_rules` by default.
    """
    has = set(names).__contains__
    if rules is None:
        rules = list(row_rules(has, limits_of(con, results) if has("device_name") else {}))
    found = _select(con, results, rules, has)
    if samples:
        values = ", ".join(f"{sql} AS {name}" for name, sql in VALUES.items())
        both = _BOTH.format(results=results, samples=samples, values=values)
        found += _select(con, both, list(sample_rules(has)), has)
    once: dict[str | None, Contradiction] = {}
    for one in found:
        once.setdefault(one.result_id, one)
    return list(once.values())


def _select(
    con: DuckDBPyConnection, source: str, rules: Sequence[Rule], has: There
) -> list[Contradiction]:
    if not rules:
        return []
    named = ", ".join(name if has(name) else "NULL" for name in ("result_id", "run_id", "model"))
    whole = " AND ".join(f"({r.condition})" for r in rules)
    # Nearly always nothing is wrong: to plan the rest would take twice as long again.
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


def _value(rule: Rule, has: There) -> str:
    return f'"{rule.column}"::VARCHAR' if has(rule.column) else "NULL"


def _contradiction(
    ids: Sequence[str | None], rule: Rule, value: str | None, other: str | None
) -> Contradiction:
    result_id, run_id, model = ids
    why = describe_misfit(rule.why, typed(rule.column, value), typed(rule.column, other))
    return Contradiction(result_id, run_id, model, rule.column, why)


def typed(column: str, text: str | None) -> object:
    """Return a value of a column that DuckDB wrote as text; None if it is no single value."""
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

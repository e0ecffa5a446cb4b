"""Rules of `core/plausible_values.py` for a table, as SQL conditions with their messages."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from accelbench.core.columns import BY_NAME, Kind
from accelbench.core.plausible_values import (
    DEVICE_TIME,
    DEVICE_TIME_TOLERANCE,
    EARLIEST,
    ITEM_COLUMNS,
    MEASURED_COLUMNS,
    MORE_THAN_STEP,
    NO_MOMENT,
    NO_OBJECT,
    NO_REASON,
    NO_RESULT,
    NO_SHARE,
    NO_WORD,
    NOT_BY_LATENCY,
    ORDERS,
    OWN_RATE_TOLERANCE,
    OWN_WORDS,
    PASSED,
    REASON_FORM,
    ROUNDING_TOLERANCE,
    STEP_TIMES,
    known_reasons,
    latest_time,
)
from accelbench.core.plugins import own_runtimes
from accelbench.core.ranges import Range
from accelbench.core.vocabulary import Provenance, Status, Verification
from accelbench.store.body_to_row import spell_time
from accelbench.store.consistency_rules import HasColumn, Limits, Rule, row_rules
from accelbench.store.duck import quote_sql

#: DuckDB's types that a column of each kind may have in a file.
TYPES: Mapping[Kind, tuple[str, ...]] = {
    "text": ("VARCHAR",),
    "int": ("BIGINT", "INTEGER", "SMALLINT", "TINYINT", "UINTEGER", "USMALLINT", "UTINYINT"),
    "float": ("DOUBLE", "FLOAT", "BIGINT", "INTEGER"),
    "bool": ("BOOLEAN",),
    "time": ("TIMESTAMP", "TIMESTAMP WITH TIME ZONE", "TIMESTAMP_NS", "TIMESTAMP_MS"),
    "json": ("VARCHAR", "JSON"),
    "list": ("VARCHAR[]",),
    "floats": ("DOUBLE[]", "FLOAT[]"),
    "map": ("MAP(VARCHAR, DOUBLE)",),
}


def rules(
    names: Collection[str], limits: Limits | None = None, rates: float | None = OWN_RATE_TOLERANCE
) -> list[Rule]:
    """Return every rule for a table with these columns.

    `rates` is the largest ratio between a rate and the rate that follows from the latency.
    """
    has = set(names).__contains__
    each = [Rule(name, *pair) for name in names if name in BY_NAME for pair in column_sql(name)]
    given = [Rule(r.column, f'"{r.column}" IS NULL OR {r.condition}', r.why) for r in each]
    return [*given, *agreement_rules(has, rates), *row_rules(has, limits or {})]


def column_sql(column: str, called: str = "") -> Iterator[tuple[str, str]]:
    """Yield conditions for the values of a column, each with the message of a failure.

    `called` is the column's name in the table, if it differs.
    """
    about, name = BY_NAME[column], f'"{called or column}"'
    if about.kind == "json":
        # Only valid JSON is read as JSON: one bad cell would end the whole query.
        kind = f"CASE WHEN json_valid({name}) THEN json_type({name}) = 'OBJECT' ELSE false END"
        yield kind, NO_OBJECT
    if about.kind == "map":
        finite = f"len(list_filter(map_values({name}), lambda x: NOT isfinite(x))) = 0"
        yield finite, "it contains an infinite number"
    if about.words:
        yield _is_one_of_sql(name, about.words), f"it is not one of {', '.join(about.words)}"
    if column == "reason":
        yield f"regexp_full_match({name}, {quote_sql(REASON_FORM)})", NO_WORD
    if about.kind == "time":
        first, last = (
            quote_sql(spell_time(moment).rstrip("Z")) for moment in (EARLIEST, latest_time())
        )
        between = f"{name} BETWEEN TIMESTAMP {first} AND TIMESTAMP {last}"
        yield between, NO_MOMENT
    if about.range is not None:
        yield from _range_sql(name, about.range, about.kind)


def _range_sql(name: str, within: Range, kind: Kind) -> Iterator[tuple[str, str]]:
    below = f">{'' if within.excludes_least else '='} {within.least}"
    why = f"it is {'not above' if within.excludes_least else 'below'} {within.least:g}"
    if kind == "floats":
        inside = f"lambda x: NOT coalesce(x {below} AND x <= {within.most}, false)"
        outside = f"a number in it is not between {within.least:g} and {within.most:g}"
        yield f"len(list_filter({name}, {inside})) = 0", outside
        return
    if kind == "float":
        # DuckDB skips a comparison that a Parquet file's statistics satisfy, and they ignore NaN.
        yield f"isfinite({name}::DOUBLE)", "it is not a finite number"
    yield f"{name}::DOUBLE {below}", why
    if within.floor is not None:
        yield (
            f"{name}::DOUBLE >= {within.floor}",
            f"it is below the smallest possible value, {within.floor:g}",
        )
    yield (
        f"{name}::DOUBLE <= {within.most}",
        f"it is above the largest possible value, {within.most:g}",
    )


def agreement_rules(has: HasColumn, rates: float | None = OWN_RATE_TOLERANCE) -> Iterator[Rule]:
    """Yield the rules of `find_contradiction`; imported rates are not compared again."""
    for low, high in ORDERS:
        if has(low) and has(high):
            more = f"* {ROUNDING_TOLERANCE}" if BY_NAME[low].kind != "time" else "+ INTERVAL 1 HOUR"
            holds = f'coalesce("{low}" <= "{high}" {more}, true)'
            yield Rule(high, holds, f"it is below {low}", f'"{low}"')
    if has("provenance"):
        other = f"coalesce(provenance = {quote_sql(Provenance.IMPORTED.value)}, true)"
        yield from _rate_rules(has, other, rates) if rates else ()
        yield from _word_rules(has, other)
    yield from _part_rules(has)


def _rate_rules(has: HasColumn, other: str, rates: float) -> Iterator[Rule]:
    for rate, counts in ITEM_COLUMNS.items():
        if not has(rate) or not has("latency_mean_ms"):
            continue
        unit = "throughput_unit" if has("throughput_unit") else "''"
        cases = " ".join(
            f"WHEN {quote_sql(word)} THEN {_product(factors, has)}"
            for word, factors in counts.items()
            if word
        )
        items = _product(counts[""], has)
        items = f"CASE {unit} {cases} ELSE {items} END" if cases else items
        world = "coalesce(world_size, 1) > 1" if has("world_size") else "false"
        ratio = f"({rate} * latency_mean_ms / 1e3 / ({items}))"
        holds = f"{ratio} BETWEEN {1 / rates} AND {rates}"
        expected = f"1e3 / latency_mean_ms * ({items})"
        condition = f"coalesce({other} OR {world} OR {holds}, true)"
        yield Rule(rate, condition, NOT_BY_LATENCY, expected)


def _word_rules(has: HasColumn, other: str) -> Iterator[Rule]:
    for name, words in OWN_WORDS.items():
        if has(name):
            holds = f"coalesce({other} OR {_is_one_of_sql(name, words)}, true)"
            yield Rule(name, holds, f"it is not one of {', '.join(words)}")
    if has("reason") and has("runtime"):
        own = f"{other} OR NOT {_is_one_of_sql('runtime', own_runtimes())}"
        known = _is_one_of_sql("reason", tuple(known_reasons()))
        yield Rule("reason", f"coalesce({own} OR {known}, true)", NO_REASON)


def _part_rules(has: HasColumn) -> Iterator[Rule]:
    steps = [name for name in STEP_TIMES if has(name)]
    if has(DEVICE_TIME) and steps:
        most = f"greatest({', '.join(steps)})"  # of those that are not NULL
        holds = f"coalesce({DEVICE_TIME} <= {most} * {DEVICE_TIME_TOLERANCE}, true)"
        yield Rule(DEVICE_TIME, holds, MORE_THAN_STEP, most)
    if has("status"):
        ok = f"status = {quote_sql(Status.OK.value)}"
        figure = " OR ".join([*(f"{n} IS NOT NULL" for n in MEASURED_COLUMNS if has(n)), "false"])
        nulls = (
            _json_sql("nulls", f"json_exists(nulls, '$.{MEASURED_COLUMNS[0]}')")
            if has("nulls")
            else "false"
        )
        holds = f"NOT coalesce({ok}, false) OR {figure} OR coalesce({nulls}, false)"
        yield Rule("status", holds, NO_RESULT)
    if all(map(has, ("verification", "verification_error", "verification_tolerance"))):
        passed = f"verification = {quote_sql(Verification.OK.value)}"
        holds = f"NOT ({passed}) OR verification_error <= verification_tolerance"
        yield Rule("verification_error", f"coalesce({holds}, true)", PASSED)
    if has("evidence"):
        shares = _json_sql("evidence", "evidence->'$.shares'")
        shares = f"map_values(try_cast({shares} AS MAP(VARCHAR, DOUBLE)))"
        outside = f"len(list_filter({shares}, lambda x: NOT (x BETWEEN 0 AND 1)))"
        yield Rule("evidence", f"coalesce({outside} = 0, true)", NO_SHARE)


def _json_sql(name: str, sql: str) -> str:
    """Return SQL for a column of JSON; NULL for other text, which would end the whole query."""
    return f"CASE WHEN json_valid({name}) THEN {sql} END"


def _is_one_of_sql(name: str, words: Sequence[str]) -> str:
    return f"{name} IN ({', '.join(quote_sql(str(word)) for word in words)})"


def _product(factors: Sequence[str], has: HasColumn) -> str:
    return " * ".join(name if has(name) else "NULL" for name in factors) or "1"

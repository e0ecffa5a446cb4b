"""The rules of `core/plausible_values.py` for a table: conditions, and what is wrong otherwise."""

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
from accelbench.store.consistency_rules import Limits, Rule, There, row_rules
from accelbench.store.duck import quoted

#: What DuckDB calls the types that a column of ours may have in a file.
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
    """Return every rule that a table with these columns can be checked by.

    `rates` is the factor by which a rate may differ from the one that the latency gives.
    """
    has = set(names).__contains__
    each = [Rule(name, *pair) for name in names if name in BY_NAME for pair in column_sql(name)]
    given = [Rule(r.column, f'"{r.column}" IS NULL OR {r.condition}', r.why) for r in each]
    return [*given, *agreeing(has, rates), *row_rules(has, limits or {})]


def column_sql(column: str, called: str = "") -> Iterator[tuple[str, str]]:
    """Yield conditions for the values of a column, and what is wrong otherwise.

    `called` is the column's name in the table, if that is another.
    """
    about, name = BY_NAME[column], f'"{called or column}"'
    if about.kind == "json":
        # Read as JSON only where it is some: one bad cell would end the whole query.
        kind = f"CASE WHEN json_valid({name}) THEN json_type({name}) = 'OBJECT' ELSE false END"
        yield kind, NO_OBJECT
    if about.kind == "map":
        finite = f"len(list_filter(map_values({name}), lambda x: NOT isfinite(x))) = 0"
        yield finite, "a number without an end is in it"
    if about.words:
        yield _among(name, about.words), f"it is none of {', '.join(about.words)}"
    if column == "reason":
        yield f"regexp_full_match({name}, {quoted(REASON_FORM)})", NO_WORD
    if about.kind == "time":
        first, last = (
            quoted(spell_time(moment).rstrip("Z")) for moment in (EARLIEST, latest_time())
        )
        between = f"{name} BETWEEN TIMESTAMP {first} AND TIMESTAMP {last}"
        yield between, NO_MOMENT
    if about.range is not None:
        yield from _within(name, about.range, about.kind)


def _within(name: str, within: Range, kind: Kind) -> Iterator[tuple[str, str]]:
    below = f">{'' if within.excludes_least else '='} {within.least}"
    why = f"it is {'not above' if within.excludes_least else 'below'} {within.least:g}"
    if kind == "floats":
        inside = f"lambda x: NOT coalesce(x {below} AND x <= {within.most}, false)"
        outside = f"a number in it is not within {within.least:g} and {within.most:g}"
        yield f"len(list_filter({name}, {inside})) = 0", outside
        return
    if kind == "float":
        # A comparison is not even made where a Parquet file's statistics, which pass NaN over,
        # say that it holds.
        yield f"isfinite({name}::DOUBLE)", "it is no finite number"
    yield f"{name}::DOUBLE {below}", why
    if within.floor is not None:
        yield f"{name}::DOUBLE >= {within.floor}", f"it is less than there can be, {within.floor:g}"
    yield f"{name}::DOUBLE <= {within.most}", f"it is more than there can be, {within.most:g}"


def agreeing(has: There, rates: float | None = OWN_RATE_TOLERANCE) -> Iterator[Rule]:
    """Yield the rules of `contradiction`; imported rates are not compared again."""
    for low, high in ORDERS:
        if has(low) and has(high):
            more = f"* {ROUNDING_TOLERANCE}" if BY_NAME[low].kind != "time" else "+ INTERVAL 1 HOUR"
            holds = f'coalesce("{low}" <= "{high}" {more}, true)'
            yield Rule(high, holds, f"it is below {low}", f'"{low}"')
    if has("provenance"):
        other = f"coalesce(provenance = {quoted(Provenance.IMPORTED.value)}, true)"
        yield from _rates(has, other, rates) if rates else ()
        yield from _words(has, other)
    yield from _parts(has)


def _rates(has: There, other: str, rates: float) -> Iterator[Rule]:
    for rate, counts in ITEM_COLUMNS.items():
        if not has(rate) or not has("latency_mean_ms"):
            continue
        unit = "throughput_unit" if has("throughput_unit") else "''"
        cases = " ".join(
            f"WHEN {quoted(word)} THEN {_product(factors, has)}"
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


def _words(has: There, other: str) -> Iterator[Rule]:
    for name, words in OWN_WORDS.items():
        if has(name):
            holds = f"coalesce({other} OR {_among(name, words)}, true)"
            yield Rule(name, holds, f"it is none of {', '.join(words)}")
    if has("reason") and has("runtime"):
        own = f"{other} OR NOT {_among('runtime', own_runtimes())}"
        known = _among("reason", tuple(known_reasons()))
        yield Rule("reason", f"coalesce({own} OR {known}, true)", NO_REASON)


def _parts(has: There) -> Iterator[Rule]:
    steps = [name for name in STEP_TIMES if has(name)]
    if has(DEVICE_TIME) and steps:
        most = f"greatest({', '.join(steps)})"  # of those that are not NULL
        holds = f"coalesce({DEVICE_TIME} <= {most} * {DEVICE_TIME_TOLERANCE}, true)"
        yield Rule(DEVICE_TIME, holds, MORE_THAN_STEP, most)
    if has("status"):
        ok = f"status = {quoted(Status.OK.value)}"
        figure = " OR ".join([*(f"{n} IS NOT NULL" for n in MEASURED_COLUMNS if has(n)), "false"])
        nulls = (
            _read("nulls", f"json_exists(nulls, '$.{MEASURED_COLUMNS[0]}')")
            if has("nulls")
            else "false"
        )
        holds = f"NOT coalesce({ok}, false) OR {figure} OR coalesce({nulls}, false)"
        yield Rule("status", holds, NO_RESULT)
    if all(map(has, ("verification", "verification_error", "verification_tolerance"))):
        passed = f"verification = {quoted(Verification.OK.value)}"
        holds = f"NOT ({passed}) OR verification_error <= verification_tolerance"
        yield Rule("verification_error", f"coalesce({holds}, true)", PASSED)
    if has("evidence"):
        shares = _read("evidence", "evidence->'$.shares'")
        shares = f"map_values(try_cast({shares} AS MAP(VARCHAR, DOUBLE)))"
        outside = f"len(list_filter({shares}, lambda x: NOT (x BETWEEN 0 AND 1)))"
        yield Rule("evidence", f"coalesce({outside} = 0, true)", NO_SHARE)


def _read(name: str, sql: str) -> str:
    """Return SQL of a column of JSON; NULL for other text, which would end the whole query."""
    return f"CASE WHEN json_valid({name}) THEN {sql} END"


def _among(name: str, words: Sequence[str]) -> str:
    return f"{name} IN ({', '.join(quoted(str(word)) for word in words)})"


def _product(factors: Sequence[str], has: There) -> str:
    return " * ".join(name if has(name) else "NULL" for name in factors) or "1"

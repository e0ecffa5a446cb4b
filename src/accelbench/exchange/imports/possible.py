"""What a result can be at all: words that are known, times above nothing, figures that agree.

Each rule is said once, as values, and asked of a row in Python or of a whole table in SQL.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any

from accelbench.core.columns import BY_NAME, COLUMNS
from accelbench.core.visible import in_quotes
from accelbench.core.words import Mode, Provenance, Quality, Status
from accelbench.store.duck import quoted
from accelbench.store.fit import spell_time

WORDS: dict[str, type[StrEnum]] = {
    "status": Status,
    "provenance": Provenance,
    "mode": Mode,
    "quality": Quality,
}
_SIZES = (
    *("batch_size", "sequence_length", "image_size", "prompt_tokens", "new_tokens"),
    *("audio_seconds", "denoising_steps", "threads", "world_size"),
)
#: A step takes time, and what is asked for has a size.
ABOVE_ZERO = frozenset(
    {
        *_SIZES,
        *(f"latency_{name}_ms" for name in ("mean", "p50", "p90", "p95", "p99", "max")),
        *("throughput", "tokens_per_second"),
    }
)
_COUNTS = frozenset(
    {
        *("launch", "parameters", "sample_count", "effective_sample_count", "outlier_count"),
        *("warmup_steps", "convergence_steps", "protocol_version", "unexplained_share"),
        *("verification_error", "verification_tolerance"),
    }
)
#: Steps may be alike, and a load too short for the clock; power less that of an idle device may
#: come out below nothing, and is not among them.
_AMOUNTS = frozenset({"ms", "MB (2^20 bytes)", "FLOP", "B"})
FROM_ZERO = frozenset(
    column.name
    for column in COLUMNS
    if (column.name in _COUNTS or column.unit in _AMOUNTS) and column.name not in ABOVE_ZERO
)
#: A billion samples of a microsecond are 17 minutes and 8 GB: nobody keeps more.
AT_MOST = {"sample_count": 10**9, "unexplained_share": 1}
#: Clocks of computers begin there; and east of Greenwich a day has begun before it does there.
_EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)
EASTMOST = timedelta(hours=14)

#: Figures of which none is above a later one, and pairs of which the first is not above the second.
_RISING = tuple(f"latency_{name}_ms" for name in ("min", "p50", "p90", "p95", "p99", "max"))
_PAIRS = (
    ("latency_min_ms", "latency_mean_ms"),
    ("latency_mean_ms", "latency_max_ms"),
    ("outlier_count", "sample_count"),
    ("started_at", "finished_at"),
)
#: Others round their figures, and a clock may be set back while something is measured.
_ROUNDED = 1.001
_SET_BACK = timedelta(hours=1)

#: How many times a rate may be off what its latency says. By our own arithmetic it is that very
#: figure, whatever was rounded since; others count pauses between steps in one of the two
#: (timm: up to 4 %; a table of somebody's whose batches overlap: more).
OURS, OTHERS = 1.1, 2.0


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
_ITEMS: Mapping[str, Mapping[str, Sequence[str]]] = {
    "throughput": {
        "tokens/s": ("batch_size", "new_tokens"),
        "audio s/s": ("batch_size", "audio_seconds"),
        "calls/s": (),
        "": ("batch_size",),
    },
    "tokens_per_second": {"": ("batch_size", "new_tokens")},
}


def impossible(column: str, value: Any) -> str:
    """Why a value of the column's type cannot be; empty where it can."""
    if column in WORDS and value not in set(WORDS[column]):
        return f"{in_quotes(value)} is none of {', '.join(WORDS[column])}"
    if column in ABOVE_ZERO and value <= 0:
        return f"{value:g} is not above 0"
    if column in FROM_ZERO and value < 0:
        return f"{value:g} is below 0"
    if column in AT_MOST and value > AT_MOST[column]:
        return f"{value:g} is more than there can be"
    if BY_NAME[column].kind == "time":
        moment = _moment(value)
        if moment > latest():
            return f"{value} is in the future"
        if moment < _EARLIEST:
            return f"{value} is before there were such clocks"
    return ""


def latest() -> datetime:
    """The latest moment that it is anywhere."""
    return datetime.now(UTC) + EASTMOST


def possible_sql(column: str, called: str = "") -> tuple[str, str]:
    """The same of a whole column: a condition that holds, and what is wrong where it does not.

    Args:
        column: ours.
        called: its name in the table, where that is another.
    """
    name = called or column
    if column in WORDS:
        words = ", ".join(quoted(one.value) for one in WORDS[column])
        return f'"{name}" IN ({words})', f"it is none of {', '.join(WORDS[column])}"
    if column in ABOVE_ZERO:
        return f'"{name}" > 0', "it is not above 0"
    if column in AT_MOST:
        between = f'"{name}" BETWEEN 0 AND {AT_MOST[column]}'
        return between, "it is below 0, or more than there can be"
    if column in FROM_ZERO:
        return f'"{name}" >= 0', "it is below 0"
    if BY_NAME[column].kind == "time":
        last, first = (quoted(spell_time(one)) for one in (latest(), _EARLIEST))
        between = f'"{name}" BETWEEN TIMESTAMP {first} AND TIMESTAMP {last}'
        return between.replace("Z'", "'"), "it is in the future, or before there were such clocks"
    return "", ""


def contradiction(row: Mapping[str, Any], rates: float | None) -> tuple[str, str] | None:
    """The first column that contradicts another, and why; None where all can be true.

    Args:
        row: by our columns, each value of its column's kind.
        rates: how many times off a rate may be; None where it need not follow from the latency.
    """
    for low, high in ORDERS:
        if row.get(low) is not None and row.get(high) is not None and _above(low, row, high):
            return high, f"{row[high]} is below {low}, {row[low]}"
    for rate in _ITEMS if rates else ():
        expected = _expected(row, rate)
        if expected is None or rates is None:
            continue
        if not 1 / rates <= row[rate] / expected <= rates:
            return rate, f"{row[rate]:g} is not what the latency says, {expected:g}"
    return None


def _above(low: str, row: Mapping[str, Any], high: str) -> bool:
    if BY_NAME[low].kind == "time":
        return _moment(row[low]) > _moment(row[high]) + _SET_BACK
    return bool(row[low] > row[high] * _ROUNDED)


def _moment(value: Any) -> datetime:
    moment = value if isinstance(value, datetime) else datetime.fromisoformat(value)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _expected(row: Mapping[str, Any], rate: str) -> float | None:
    """A rate by the mean; None where something of it is not known, or several share a step."""
    mean, counts = row.get("latency_mean_ms"), _ITEMS[rate]
    factors = counts.get(str(row.get("throughput_unit") or ""), counts[""])
    known = [row.get(name) for name in factors]
    if not row.get(rate) or not mean or not all(known) or (row.get("world_size") or 1) > 1:
        return None
    expected = 1e3 / float(mean)
    for one in known:
        expected *= one or 0
    return expected


def agreeing_sql(
    there: Callable[[str], bool], rates: float | None = OURS
) -> Iterator[tuple[str, str, str]]:
    """The rules of `contradiction` for a whole table: column, condition, what is wrong.

    Args:
        there: whether the table has a column.
        rates: how many times off a rate may be, of what was not imported already.
    """
    for low, high in ORDERS:
        if there(low) and there(high):
            more = f"* {_ROUNDED}" if BY_NAME[low].kind != "time" else "+ INTERVAL 1 HOUR"
            yield high, f'coalesce("{low}" <= "{high}" {more}, true)', f"it is below {low}"
    for rate, counts in _ITEMS.items() if rates else ():
        if not all(map(there, (rate, "latency_mean_ms", "provenance"))):
            continue
        unit = "throughput_unit" if there("throughput_unit") else "''"
        cases = " ".join(
            f"WHEN {quoted(word)} THEN {_product(factors, there)}"
            for word, factors in counts.items()
            if word
        )
        items = _product(counts[""], there)
        items = f"CASE {unit} {cases} ELSE {items} END" if cases else items
        world = "coalesce(world_size, 1) > 1" if there("world_size") else "false"
        ratio = f"({rate} * latency_mean_ms / 1e3 / ({items}))"
        holds = f"{ratio} BETWEEN {1 / (rates or 1)} AND {rates}"
        other = f"provenance = {quoted(Provenance.IMPORTED.value)}"
        yield (
            rate,
            f"coalesce({other} OR {world} OR {holds}, true)",
            "it is not what the latency says",
        )


def _product(factors: Sequence[str], there: Callable[[str], bool]) -> str:
    return " * ".join(name if there(name) else "NULL" for name in factors) or "1"


def wrong_samples(samples: Any, count: int | None) -> str:
    """Why samples cannot be what they are said to be; empty where they can.

    Args:
        samples: nanoseconds by phase.
        count: how many the result says it has of whole steps.
    """
    if not isinstance(samples, Mapping):
        return "phases with lists were expected"
    for phase, values in samples.items():
        if not isinstance(values, list) or not all(type(one) is int for one in values):
            return f"{in_quotes(phase)} is no list of whole nanoseconds"
        if any(one < 0 for one in values):
            return f"{min(values)} of {in_quotes(phase)} is below 0"
    steps = samples.get("step")
    if steps is not None and count is not None and len(steps) != count:
        return f"{len(steps)} are there, where sample_count says {count}"
    return ""

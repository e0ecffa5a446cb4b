"""What a result's columns can hold at all: closed words are known, and no time is below nothing."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from accelbench.core.columns import COLUMNS
from accelbench.core.words import Mode, Provenance, Quality, Status
from accelbench.store.duck import quoted

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
        *("warmup_steps", "convergence_steps", "protocol_version"),
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


def impossible(column: str, value: Any) -> str:
    """Why a value of the column's type cannot be; empty where it can."""
    if column in WORDS and value not in set(WORDS[column]):
        return f"{value!r} is none of {', '.join(WORDS[column])}"
    if column in ABOVE_ZERO and value <= 0:
        return f"{value:g} is not above 0"
    if column in FROM_ZERO and value < 0:
        return f"{value:g} is below 0"
    return ""


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
    if column in FROM_ZERO:
        return f'"{name}" >= 0', "it is below 0"
    return "", ""

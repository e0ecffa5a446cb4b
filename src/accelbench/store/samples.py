"""Samples of results, as milliseconds of a step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from accelbench.core.rows import Json, ResultRow

if TYPE_CHECKING:
    from accelbench.store.database import Database


class SampledRow(ResultRow, total=False):
    """A result with its samples by phase, if they were asked for."""

    samples: dict[str, list[int]]
    sampling: dict[str, Json]


def step_samples(database: Database, results: Sequence[str]) -> dict[str, list[float]]:
    """Return the samples of each result that kept them, in the order in which they were taken."""
    if not results:
        return {}
    marks = ", ".join("?" * len(results))
    _, rows = database.query(
        "SELECT result_id, samples, steps FROM raw_benchmark_data"  # noqa: S608 — only marks
        f" WHERE phase = 'step' AND result_id IN ({marks})",
        list(results),
    )
    by_id: dict[str, list[float]] = {}
    for key, ns, steps in rows:
        samples = ns if isinstance(ns, list) else []
        by_id[str(key)] = step_ms(samples, steps if isinstance(steps, list) else None)
    return {key: by_id[key] for key in results if key in by_id}


def step_ms(samples: Sequence[int], steps: Sequence[int] | None) -> list[float]:
    """Return nanoseconds of samples as milliseconds of a step; `steps` is how many each sample
    covers."""
    if not steps:
        return [ns / 1e6 for ns in samples]
    return [ns / number / 1e6 for ns, number in zip(samples, steps, strict=True)]

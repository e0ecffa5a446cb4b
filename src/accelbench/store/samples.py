"""The samples of results, as milliseconds of a step: what is drawn and what a page gives away."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from accelbench.store.database import Database


def step_samples(database: Database, results: Sequence[str]) -> dict[str, list[float]]:
    """Of each result that kept them, in the order in which they were taken."""
    if not results:
        return {}
    marks = ", ".join("?" * len(results))
    _, rows = database.query(
        "SELECT result_id, samples, steps FROM raw_benchmark_data"  # noqa: S608 — only marks
        f" WHERE phase = 'step' AND result_id IN ({marks})",
        list(results),
    )
    by_id = {str(key): step_ms(ns or (), steps) for key, ns, steps in rows}
    return {key: by_id[key] for key in results if key in by_id}


def step_ms(samples: Sequence[int], steps: Sequence[int] | None) -> list[float]:
    """Nanoseconds of samples as milliseconds of a step.

    Args:
        samples: nanoseconds.
        steps: how many steps each covers: those too short for a clock are timed several at once,
            and of them only the mean is known; None where each is one.
    """
    if not steps:
        return [ns / 1e6 for ns in samples]
    return [ns / number / 1e6 for ns, number in zip(samples, steps, strict=True)]

"""What the runner returns of a model: its results, and what they say together. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import exp, fsum, log
from typing import Any

from accelbench.core.vocabulary import Status
from accelbench.exchange.aggregate import AggregateRows, aggregate
from accelbench.exchange.rows import row_of

#: What is said once for all results of a model.
_WHERE = ("hardware", "runtime", "device", "device_name")


def outcome_of(bodies: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """One model's results, in plain JSON values.

    Returns:
        Where it ran, its results in the order of their batch sizes, how they ended, and their
        aggregate, which is None where nothing went through.
    """
    rows = sorted(map(row_of, bodies), key=lambda row: (row["batch_size"] or 0, row["launch"] or 0))
    first = rows[0] if rows else {}
    statuses = Counter(str(row["status"]) for row in rows)
    return {
        **{name: first.get(name) for name in _WHERE},
        "status": _whole(statuses),
        "status_counts": dict(sorted(statuses.items())),
        "batch_sizes": sorted({row["batch_size"] for row in rows if row["batch_size"]}),
        "results": rows,
        "aggregate": _aggregate(rows),
    }


def _whole(statuses: Mapping[str, int]) -> str:
    """ok where all went through, partial where some did, else what most came to."""
    if Status.OK in statuses:
        return "ok" if len(statuses) == 1 else "partial"
    return max(
        statuses, key=lambda status: (statuses[status], status), default=Status.SKIPPED.value
    )


def _aggregate(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """The best of the batch sizes and the means over them, as the aggregated file has them.

    A mean over batch sizes is geometric: it says how two platforms compare that were asked about
    the same batches. An arithmetic one would be that of the largest batch, or of the smallest.
    """
    entries = [
        entry for entry in aggregate(AggregateRows(rows))["entries"] if entry["best_throughput"]
    ]
    if not entries:
        return None
    best = max(entries, key=lambda entry: float(entry["best_throughput"]["throughput"]))
    batches = best["batches"]
    return {
        **{
            name: best[name]
            for name in (
                *("best_throughput", "best_latency", "memory_peak"),
                *("batch_scaling_efficiency", "emulated", "flags"),
            )
        },
        "geometric_mean_throughput": _mean([batch["throughput"] for batch in batches]),
        "geometric_mean_latency_ms": _mean([batch["latency_ms"] for batch in batches]),
        "batches": batches,
    }


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value]
    if not known or len(known) < len(values):
        return None
    return exp(fsum(map(log, known)) / len(known))

"""From which batch on a larger one gains little. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypedDict

from accelbench.analysis.comparison import KNEE_SHARE

if TYPE_CHECKING:
    from accelbench.predict.answers import PredictedFigures


class Knee(TypedDict):
    """The batch from which on a larger one gains little, in one configuration."""

    model: str
    hardware: str
    device: str
    runtime: str
    precision: str
    sizes: dict[str, int]
    batch_size: int | None


def knees_of(figures: Sequence[PredictedFigures]) -> list[Knee]:
    """Of each configuration with several batches the smallest that has most of the throughput.

    None where the largest batch still gains: the knee lies beyond it.
    """
    groups: dict[tuple[str, ...], list[PredictedFigures]] = {}
    for entry in figures:
        key = (entry["model"], entry["hardware"], entry["device"], entry["runtime"],
               entry["precision"], entry["mode"], str(entry["compiled"]), str(entry["threads"]),
               str(entry["sizes"]))  # fmt: skip
        groups.setdefault(key, []).append(entry)
    knees: list[Knee] = []
    for entries in groups.values():
        if len(entries) < 3:
            continue
        entries = sorted(entries, key=lambda entry: entry["batch_size"])
        most = max(entry["throughput"] for entry in entries)
        first = next(e for e in entries if e["throughput"] >= KNEE_SHARE * most)
        knees.append({
            "model": first["model"], "hardware": first["hardware"], "device": first["device"],
            "runtime": first["runtime"], "precision": first["precision"], "sizes": first["sizes"],
            "batch_size": None if first is entries[-1] else first["batch_size"],
        })  # fmt: skip
    return knees

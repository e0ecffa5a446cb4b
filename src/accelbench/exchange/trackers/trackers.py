"""Registry of the experiment trackers that results can be exported to."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from accelbench.core.errors import UsageError
from accelbench.core.formatting import suggest
from accelbench.core.safe_text import in_quotes
from accelbench.evidence.launches import launches_of
from accelbench.exchange.trackers.mlflow_tracker import write_mlflow
from accelbench.exchange.trackers.tensorboard_tracker import write_tensorboard
from accelbench.exchange.trackers.tracked_result import TrackedResult, to_tracked_result, was_run
from accelbench.exchange.trackers.wandb_tracker import write_wandb


@dataclass(frozen=True)
class Tracker:
    """An experiment tracker."""

    title: str  # its usual name
    write: Callable[[str, Iterable[TrackedResult]], int]
    explain_viewing: Callable[[str], str]  # returns how to view the results written at a place


def _explain_mlflow(place: str) -> str:
    if place.startswith(("http://", "https://")):
        return f"See it at {place}"
    # MLflow's server refuses a folder unless this variable is set.
    allowed = "" if "://" in place else "MLFLOW_ALLOW_FILE_STORE=true "
    return f"See it with: {allowed}mlflow ui --backend-store-uri {shlex.quote(place)}"


TRACKERS: Mapping[str, Tracker] = {
    "mlflow": Tracker("MLflow", write_mlflow, _explain_mlflow),
    "wandb": Tracker(
        "Weights & Biases",
        write_wandb,
        lambda place: f"Send it with: wandb sync {shlex.quote(place)}/wandb/offline-run-*",
    ),
    "tensorboard": Tracker(
        "TensorBoard",
        write_tensorboard,
        lambda place: f"See it with: tensorboard --logdir {shlex.quote(place)}",
    ),
}


@dataclass(frozen=True)
class TrackedExport:
    """Counts of an export to a tracker: new, known, and never run."""

    written: int
    known: int
    never_run: int


def find_tracker(word: str) -> Tracker:
    """Return a tracker by its name, or raise UsageError."""
    if word not in TRACKERS:
        raise UsageError(f"There is no tracker {in_quotes(word)}.", suggest(word, TRACKERS))
    return TRACKERS[word]


def export_to_tracker(
    tracker: Tracker,
    place: str,
    rows: Sequence[Mapping[str, Any]],
    runs: Mapping[str, Mapping[str, Any]],
) -> TrackedExport:
    """Write each result once into a tracker."""
    results = [
        to_tracked_result(row, runs.get(str(row["run_id"])) or {})
        for row in launches_of(rows)  # wrong outputs in one launch apply to all
        if was_run(row)
    ]
    new = tracker.write(place, results)
    return TrackedExport(new, len(results) - new, len(rows) - len(results))

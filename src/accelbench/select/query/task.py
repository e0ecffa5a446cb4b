"""What a task asks for: its mode, and which figures matter more there than elsewhere. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from accelbench.core.errors import UsageError
from accelbench.core.visible import in_quotes
from accelbench.core.vocabulary import Mode
from accelbench.select.query import validation


@dataclass(frozen=True)
class Task:
    """A task: weights of its mode are multiplied by these."""

    mode: str
    matters: Mapping[str, float] = field(default_factory=dict)
    why: str = ""


TASKS: Mapping[str, Task] = {
    "classification": Task(Mode.INFERENCE.value),
    "generation": Task(
        Mode.INFERENCE.value, {"latency": 2.0}, "each token is waited for: latency counts twice"
    ),
    "embedding": Task(
        Mode.INFERENCE.value, {"throughput": 2.0}, "many items at once: throughput counts twice"
    ),
    "speech_recognition": Task(
        Mode.INFERENCE.value, {"latency": 2.0}, "speech goes on meanwhile: latency counts twice"
    ),
    "fine_tuning": Task(
        Mode.TRAINING.value, {"memory": 2.0}, "it has to fit where it is tuned: memory counts twice"
    ),
    "training": Task(Mode.TRAINING.value),
}  # fmt: skip


def task_named(name: str) -> Task:
    """The task of that name; dashes and case do not matter.

    Raises:
        UsageError: there is none.
    """
    return TASKS[task_key(name)]


def task_key(name: str) -> str:
    """A task's name as it stands in the table.

    Raises:
        UsageError: there is none.
    """
    key = (
        validation.word("task_type", name, TASKS)
        .strip()
        .lower()
        .replace("-", "_")
        .replace(" ", "_")
    )
    if key not in TASKS:
        raise UsageError(f"There is no task {in_quotes(name)}.", f"Tasks: {', '.join(TASKS)}.")
    return key

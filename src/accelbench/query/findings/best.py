"""What is fastest, cheapest and most precise, as sentences. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from accelbench.core.nouns import counted
from accelbench.core.visible import visible
from accelbench.query.findings.finding import FindingKind, StoreFinding, evidence_of
from accelbench.query.findings.phrases import model, question, sizes_of, way, whose
from accelbench.query.findings.tasks import Best, TaskBest

_FASTEST, _CHEAPEST, _PRECISE = 75.0, 65.0, 35.0
#: What is said of what is first by its figure, and not for certain.
_FIRST = {
    FindingKind.FASTEST: "the lowest time",
    FindingKind.CHEAPEST: "the lowest cost",
    FindingKind.PRECISE: "the best figure",
}
#: A task that can't be told is news all the same: either will do.
_UNSURE = 10.0


def best_findings(every: Iterable[TaskBest], several: frozenset[str]) -> Iterator[StoreFinding]:
    """A finding for each answer that something else stands beside; of one alone nothing is best."""
    for task in every:
        best = task.fastest
        if best is not None and best.next is not None:
            yield _finding(FindingKind.FASTEST, "fastest", _FASTEST, task, best, several)
        if task.cheapest is not None and task.cheapest.next is not None:
            cheapest = task.cheapest
            yield _finding(FindingKind.CHEAPEST, "cheapest", _CHEAPEST, task, cheapest, several)
        if task.precise is not None and task.precise.next is not None and task.precise.sure:
            precise = task.precise
            yield _finding(FindingKind.PRECISE, "most precise", _PRECISE, task, precise, several)


def _finding(
    kind: FindingKind,
    word: str,
    importance: float,
    task: TaskBest,
    best: Best,
    several: frozenset[str],
) -> StoreFinding:
    row = best.point.row
    sizes = "" if best.of_one_size else sizes_of(row)
    subject = f"{model(row)}{f' ({sizes})' if sizes else ''} by {way(row, several)}"
    of = visible(task.task.replace("_", " "))
    among = counted(len(best.among), "configuration")
    models = len({point.row.get("model") for point in best.among})
    if models > 1:
        among = f"{among} of {models} models"
    asked = question(row, sizes=best.of_one_size)
    lead = f"For {of} ({asked}), {subject}"
    if task.task == row.get("model"):  # nobody says what it is for
        lead = f"Of {model(row)} ({question(row)}), {way(row, several)}"
    lead += f" is the {word} of {among}" if best.sure else f" has {_FIRST[kind]} of {among}"
    known = best.ratio
    interval = None
    if known is not None and known.low is not None and known.high is not None:
        interval = (known.low, known.high)
    size = math.log(known.value) if known is not None and best.sure else 0.0
    launches = [best.point.rows, *([best.next.rows] if best.next is not None else [])]
    return StoreFinding(
        kind,
        f"{lead}: {best.figure}; {best.beside}{whose(row)}.",
        importance + min(4.0, size) - (0.0 if best.sure else _UNSURE),
        evidence_of(launches),
        {"mode": (task.mode,)},
        known.value if known is not None else None,
        interval,
    )

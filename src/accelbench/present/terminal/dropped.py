"""What a request named and its answer does not show: nothing is left out without a word."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from accelbench.core.formatting import format_count
from accelbench.core.plugins import ENGINES, find_entry_points
from accelbench.core.vocabulary import Status
from accelbench.evidence.launches import launches_of, newest_run
from accelbench.judge.filters import by_word, has_one_of
from accelbench.judge.questions import SHAPES, values
from accelbench.present.texts import phrase

Row = Mapping[str, Any]
#: By what is told apart what was measured, beside its sizes.
_WAY = (
    *("model", "hardware", "device_name", "runtime", "precision", "batch_size", "mode"),
    *SHAPES,
)
#: More of a kind are told by their number.
_MOST = 6
#: Column → what people call it.
_NAMES = {
    "hardware": "hardware",
    "runtime": "framework",
    "precision": "precision",
    "batch_size": "batch size",
    "mode": "mode",
    "model": "model",
    "run_id": "run",
}


def not_shown(
    filters: Mapping[str, Sequence[Any]], rows: Sequence[Row], shown: Sequence[Row]
) -> list[str]:
    """A sentence for each value that was asked for and is in no table, and why."""
    sentences = []
    for column, name in _NAMES.items():
        for value, names in by_word(column, filters.get(column, ())).items():
            if any(has_one_of(row, column, names) for row in shown):
                continue
            matches = [row for row in rows if has_one_of(row, column, names)]
            if column == "runtime" and not matches and value not in find_entry_points(ENGINES):
                continue  # another word for one of ours
            why = _why(column, matches)
            if why:
                sentences.append(phrase("compare.not-shown", name=name, value=value, why=why))
    return sentences


def distrusted(rows: Iterable[Row]) -> list[str]:
    """A sentence for what has no figure as its outputs were wrong when it was last measured."""
    ways: dict[tuple[Any, ...], list[Row]] = {}
    for row in launches_of(rows):
        if row.get("status") != Status.SKIPPED:
            ways.setdefault(values(row, _WAY), []).append(row)
    sentences = []
    for several in ways.values():
        run = newest_run(several)
        wrong = [row for row in run if row.get("status") != Status.OK and row["wrong_outputs"]]
        if wrong and not any(row["answered"] for row in several):
            where = " ".join(str(run[0][name]) for name in _WAY[1:5] if run[0].get(name))
            many = f"{len(wrong)} of {format_count(len(run), 'launch', 'launches')}"
            what = f"{run[0]['model']}, {where}, batch {run[0].get('batch_size')}"
            sentences.append(phrase("compare.not-shown-outputs", what=what, many=many))
    more = phrase("compare.not-shown-more", sentences=len(sentences) - _MOST)
    return sentences if len(sentences) <= _MOST else [*sentences[:_MOST], more]


def not_measured(filters: Mapping[str, Sequence[Any]], rows: Sequence[Row]) -> list[str]:
    """The same of what shows every result that is ok, such as a report."""
    rows = launches_of(rows)
    return not_shown(filters, rows, [row for row in rows if row["answered"]])


def _why(column: str, matches: Sequence[Row]) -> str:
    if not matches:
        return phrase("compare.no-such-result")
    statuses = sorted({str(row.get("status")) for row in matches})
    if "ok" not in statuses:
        return phrase("compare.no-result-ok", statuses=", ".join(statuses))
    if not any(row["answered"] for row in matches):
        return phrase("compare.outputs-failed-verification")
    if column == "runtime":
        return phrase("compare.nothing-alike-or-slower")
    return phrase("compare.nothing-alike")

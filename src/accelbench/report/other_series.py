"""Runs that a history leaves out, and series of the same question with other options. Pure."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from accelbench.analysis.history import OtherSeries, Series
from accelbench.analysis.questions import flat
from accelbench.core.axes import AS_TOLD, columns
from accelbench.core.nouns import counted
from accelbench.core.rows import Row, number
from accelbench.core.visible import visible

#: Columns in which another series of a question is the same.
QUESTION = (
    *("model", "hardware", "device_name", "runtime", "precision", "batch_size"),
    *columns(*AS_TOLD),
    *("mode", "scenario", "world_size"),
)
#: Columns in which it may differ.
VARIED = ("threads", "options")
#: Other series that a line names.
_MOST_NAMED = 3


def with_others(
    all_series: Sequence[Series], candidates: Iterable[Row], same: Sequence[str] = QUESTION
) -> list[Series]:
    """Return the series, each with the other series of its question that are not among them.

    Args:
        all_series: the series that are shown.
        candidates: rows with the columns of QUESTION and VARIED, `series_key` and `runs`.
        same: columns in which other series are the same.
    """
    shown = {series.row.get("series_key") for series in all_series}
    by_question: dict[tuple[str, ...], list[Row]] = {}
    for row in candidates:
        if row.get("series_key") not in shown:
            by_question.setdefault(_values(row, same), []).append(row)
    return [
        replace(series, others=tuple(_others(series.row, by_question.get(question, ()))))
        for series in all_series
        for question in (_values(series.row, same),)
    ]


def left_out_text(series: Series) -> str:
    """Return which runs and series a line does not contain, and how to see them; else ""."""
    parts, commands = [], []
    if series.left_out:
        reasons = Counter(gap.why for gap in series.left_out)
        listed = "; ".join(f"{count} {why}" for why, count in reasons.most_common())
        parts.append(f"{counted(len(series.left_out), 'run')} ({listed})")
        commands.append("run")
    for other in series.others[:_MOST_NAMED]:
        differs = ", ".join(f"{name} {value}" for name, value in other.differs.items())
        parts.append(f"{counted(other.runs, 'run')} of another series ({visible(differs)})")
    if more := len(series.others[_MOST_NAMED:]):
        parts.append(f"{more} more series")
    if any("threads" in other.differs for other in series.others):
        commands.append("threads")
    elif series.others:
        commands.append("run")
    if not parts:
        return ""
    model = visible(str(series.row.get("model")))
    how = " or ".join(
        f"`accelbench compare {model} --by {axis}`" for axis in dict.fromkeys(commands)
    )
    return f"Not in this series: {'; '.join(parts)}. See {how}"


def _others(row: Row, candidates: Iterable[Row]) -> Iterable[OtherSeries]:
    own = _varied(row)
    for other in candidates:
        theirs = _varied(other)
        differs = {
            name: theirs.get(name, "default")
            for name in (*theirs, *(name for name in own if name not in theirs))
            if theirs.get(name) != own.get(name)
        }
        if differs:
            runs = int(number(other, "runs") or 0)
            yield OtherSeries(str(other.get("series_key")), runs, differs)


def _varied(row: Row) -> dict[str, str]:
    threads, options = row.get("threads"), row.get("options") or {}
    known = json.loads(options) if isinstance(options, str) else options
    named = flat(known) if isinstance(known, Mapping) else {}
    return {**({"threads": str(threads)} if threads is not None else {}), **named}


def _values(row: Row, names: Sequence[str]) -> tuple[str, ...]:
    return tuple(str(row.get(name) or "") for name in names)

"""Runs without a result in a history, and series of the same question with other options. Pure."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from accelbench.core import worth
from accelbench.core.axes import AS_TOLD, columns
from accelbench.core.nouns import counted
from accelbench.core.rows import Row, number
from accelbench.core.visible import visible
from accelbench.judge.history import Gap, HistoryPoint, OtherSeries, Series
from accelbench.judge.questions import flat
from accelbench.judge.verdicts import METRICS, Metric
from accelbench.present.texts import phrase

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
    """Return the series, each with the other series of its question that are not among them."""
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
    return phrase("history.left-out", parts="; ".join(parts), how=how)


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


#: Of each run the launches of a series that came to nothing. What failed before it had an engine is
#: of no series, but of a case on a device, or, without one, on all devices.
NOTHING = f"""
SELECT series_key, case_id, coalesce(device_fingerprint, ''), run_id,
    min(started_at)::VARCHAR, max(started_at)::VARCHAR, of_import,
    {{others}}
    max({worth.LAUNCHED}), max({worth.FAILED}), bool_or({worth.MOSTLY_FAILED}),
    bool_or({{wrong}}), bool_or({{answered}}),
    list(DISTINCT unusable_reason ORDER BY unusable_reason) FILTER (NOT {{usable}}),
    bool_or({{emulated}}),
    arg_max(coalesce(reason, status), started_at) FILTER (NOT {{answered}})
FROM {{results}}
WHERE {{where}} AND NOT coalesce({{fine}} AND {{value}} > 0, false)
    AND status <> 'skipped' AND started_at IS NOT NULL AND coalesce(run_id, '') <> ''
GROUP BY series_key, case_id, device_fingerprint, run_id, of_import ORDER BY max(started_at), run_id
"""  # noqa: S608 — our words

#: What a line is of, for runs that are of no series: its case and its device.
Case = tuple[str, str]


@dataclass(frozen=True)
class Unseen:
    """A series of which no run has the figure that is asked for, though something ran."""

    series_key: str
    runs: int  # as far as they are told apart: of an import, its moments
    newest: Gap
    metrics: tuple[str, ...]  # what is known of it instead


@dataclass
class _OfSeries:
    gaps: list[Gap] = field(default_factory=list)
    ran: set[str] = field(default_factory=set)  # moments, of imports, or runs in which it ran
    metrics: dict[str, None] = field(default_factory=dict)
    newest: Gap | None = None


class Nothing:
    """All runs that came to nothing, by series, or by case and device where no series is known."""

    def __init__(self, metric: Metric, rows: Iterable[Sequence[object]]) -> None:
        self._of: dict[tuple[str, ...], _OfSeries] = {}
        others = [other.name for other in METRICS if other.name != metric.name]
        for series, case, device, run, first, last, imported, *rest in rows:
            had = rest[: len(others)]
            launched, failed, mostly, wrong, ran, useless, emulated, reason = rest[len(others) :]
            key = (str(case or ""), str(device)) if series is None else (str(series),)
            entry = self._of.setdefault(key, _OfSeries())
            counts = {worth.FAILED: failed, worth.LAUNCHED: launched, worth.MOSTLY_FAILED: mostly}
            wrong, ran, emulated = map(bool, (wrong, ran, emulated))
            why = _why(metric, counts, reason, wrong, ran, emulated, worth.reason_texts(useless))
            gap = Gap(str(last), str(run), why)
            if not imported:  # of an import, what lacks a figure is no run that came to nothing
                entry.gaps.append(gap)
            if ran:
                entry.ran |= {str(first), str(last)} if imported else {str(run)}
                entry.newest = gap
            entry.metrics |= dict.fromkeys(
                name for name, flag in zip(others, had, strict=True) if flag
            )

    def newest(
        self,
        series: str,
        case: Case,
        points: Sequence[HistoryPoint],
        may_be: Callable[[str], bool] | None = None,
    ) -> Gap | None:
        """The newest run that came to nothing, if no point of a line is as new."""
        if not self._of:
            return None
        last = max(point.moment for point in points)
        every = self.left_out(series, case, points, may_be)
        return max((gap for gap in every if gap.moment > last), default=None)

    def left_out(
        self,
        series: str,
        case: Case,
        points: Sequence[HistoryPoint],
        may_be: Callable[[str], bool] | None = None,
    ) -> list[Gap]:
        """Return every run that may be of a line and has no point in it, in order of time."""
        runs = {point.run_id for point in points}
        keys = dict.fromkeys(((series,), case, (case[0], "")))
        known = (gap for key in keys if key in self._of for gap in self._of[key].gaps)
        kept = (gap for gap in known if gap.run_id not in runs)
        return sorted({gap for gap in kept if may_be is None or may_be(gap.run_id)})

    def unseen(self, lines: Mapping[str, object]) -> list[Unseen]:
        """Series that ran twice and more and have no point, by key."""
        return [
            Unseen(key[0], len(entry.ran), entry.newest, tuple(entry.metrics))
            for key, entry in sorted(self._of.items())
            if len(key) == 1 and key[0] not in lines and len(entry.ran) > 1 and entry.newest
        ]


def _why(
    metric: Metric,
    counts: Row,
    reason: object,
    wrong: bool,
    ran: bool,
    emulated: bool,
    unusable: str,
) -> str:
    if wrong:
        return "wrong outputs"
    cause = str(reason or "").replace("_", " ")
    if not ran:
        return cause
    if unusable:
        why = worth.launches_failed([counts]) if worth.mostly_failed([counts]) else unusable
        return ": ".join(filter(None, (f"unusable, {why}", cause)))
    return "emulated" if emulated else phrase("history.metric-unknown", name=metric.name)

"""All findings of some results, the most important first. Pure.

A configuration is worth measuring by evidence alone: it was faster for certain over other models of
the same device. Nothing is predicted here.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from accelbench.core.formatting import format_count, format_digits
from accelbench.core.result_statistics import changes_text
from accelbench.core.rows import Row
from accelbench.core.safe_text import visible
from accelbench.core.vocabulary import Provenance, Status
from accelbench.evidence.launches import latest_start, launches_of
from accelbench.exchange.titles import format_title
from accelbench.judge.filters import in_catalogue
from accelbench.judge.findings.finding import (
    FindingKind,
    StoreFinding,
    crowded,
    engine_on,
    evidence_of,
    foremost,
    model,
    names,
    place,
    question,
    ranked,
    sizes_of,
    span,
    titled,
    way,
    whose,
)
from accelbench.judge.findings.precisions import (
    FULL,
    MOST_MODELS,
    engine_findings,
    precision_findings,
    steadiness_findings,
)
from accelbench.judge.findings.tasks import Best, TaskBest, best_of_tasks
from accelbench.judge.findings.versus import Versus, every_versus
from accelbench.judge.points import Point
from accelbench.judge.questions import physical
from accelbench.judge.regressions import Check, CheckedQuestion, Outcome
from accelbench.judge.run_noise import Histories
from accelbench.judge.suggestions import command_for
from accelbench.judge.verdicts import Judged, Judgement

_IMPORTANCE = 40.0


def unmeasured_findings(
    rows: Sequence[Row], every: Iterable[tuple[str, Versus]], several: frozenset[str]
) -> Iterator[StoreFinding]:
    """For each place that won in general, the models that it never ran.

    Args:
        rows: of one machine, of every status: what failed was measured.
        every: what was compared with each other, with the axis: runtime or precision.
    """
    for axis, versus in every:
        row = versus.row
        if (
            not versus.decided
            or versus.interval is None
            or row.get("provenance") != Provenance.MEASURED
        ):
            continue
        winner = versus.place if versus.value > 1.0 else versus.base
        absent = _absent(rows, row, axis, winner)
        if absent:
            yield _unmeasured_finding(axis, versus, winner, absent, several)


def _absent(rows: Sequence[Row], there: Row, axis: str, winner: str) -> list[str]:
    """Models of a device that were measured, and never there; only those this program can run."""
    alike = ("mode",) if axis == "runtime" else ("mode", "runtime", "hardware")
    of_device = [
        row
        for row in rows
        if row.get("provenance") == Provenance.MEASURED
        and physical(row) == physical(there)
        and all(row.get(name) == there.get(name) for name in alike)
    ]
    tried = {str(row.get("model")) for row in of_device if row.get(axis) == winner}
    models = dict.fromkeys(str(row.get("model")) for row in of_device if row.get("status") == "ok")
    return [name for name in sorted(models) if name not in tried and in_catalogue(name)]


def _unmeasured_finding(
    axis: str, versus: Versus, winner: str, absent: Sequence[str], several: frozenset[str]
) -> StoreFinding:
    assert versus.interval is not None
    low, high = versus.interval
    value, other = versus.value, versus.base
    if winner == versus.base:
        value, other = 1.0 / value, versus.place
        low, high = 1.0 / high, 1.0 / low
    row = versus.row
    were = "was" if len(absent) == 1 else "were"
    ran = f"with {visible(winner)}" if axis == "runtime" else f"in {visible(winner)}"
    asks: dict[str, list[str | int]] = {
        "model": list(absent[:MOST_MODELS]),
        "hardware": [str(row.get("hardware"))],
        "runtime": [winner if axis == "runtime" else str(row.get("runtime"))],
    }
    if axis == "precision":
        asks["precision"] = [winner]
    if row.get("mode") == "training":
        asks["mode"] = ["training"]
    return StoreFinding(
        FindingKind.UNMEASURED,
        f"{format_count(len(absent), 'model')} {were} never run {ran} on {place(row, several)}"
        f" ({names(absent)}), which is {format_digits(value)}× as fast as {visible(other)} over the"
        f" {versus.models} models that ran both (95 % interval {span(low, high)}); whether it is"
        " for these too is worth a run.",
        _IMPORTANCE + min(4.0, len(absent) / 5.0),
        filters={"runtime": (str(row.get("runtime")),)},
        value=value,
        interval=(low, high),
        command=command_for(asks),
    )


_OUTPUTS, _FAILED, _PARTLY = 85.0, 50.0, 30.0
#: What nobody could have measured, or nobody tried.
_NO_FAILURE = (Status.OK, Status.SKIPPED, Status.UNSUPPORTED)
#: Causes that a sentence tells.
_CAUSES = 3


def failure_findings(rows: Sequence[Row], points: Sequence[Point]) -> Iterator[StoreFinding]:
    """Of configurations that have no figure now; what answered later is mended."""
    rows = launches_of(rows)
    latest: dict[tuple[str, str], str] = {}
    for point in points:
        for where in (_device(point.row), _NOWHERE):
            key = _case(point.row), where
            latest[key] = max(latest.get(key, ""), latest_start(point.rows))
    ran = {
        _launched(row, place)
        for row in rows
        if row["this_arm"] and row["answered"]
        for place in (_device(row), _NOWHERE)
    }
    lost: dict[tuple[str, str], list[Row]] = {}
    some: dict[tuple[str, str], list[Row]] = {}
    for row in sorted(rows, key=lambda row: str(row.get("started_at") or "")):
        if not row["this_arm"] or row["answered"]:
            continue
        key = _case(row), _device(row)
        if str(row.get("started_at") or "") < latest.get(key, ""):
            continue
        known = some if _launched(row, key[1]) in ran and not row["wrong_outputs"] else lost
        known.setdefault(key, []).append(row)
    wrong = [several for several in lost.values() if any(row["wrong_outputs"] for row in several)]
    yield from _wrong(wrong)
    failed = [several for several in lost.values() if several not in wrong]
    yield from _failed([several for several in failed if _is_failure(several[-1])])
    yield from _partly([rows for key, rows in some.items() if key not in lost])


#: Of what failed before it had a device.
_NOWHERE = ""


def _case(row: Row) -> str:
    return str(row.get("case_id") or format_title(row))


def _device(row: Row) -> str:
    """Two cards of a platform answer the same case."""
    return str(row.get("device_name") or _NOWHERE)


def _launched(row: Row, place: str) -> tuple[str, str, str]:
    return str(row.get("run_id") or ""), _case(row), place


def _is_failure(row: Row) -> bool:
    return row.get("status") not in _NO_FAILURE


def _wrong(lost: Sequence[Sequence[Row]]) -> Iterator[StoreFinding]:
    if not lost:
        return
    what = (
        "Outputs of one configuration are"
        if len(lost) == 1
        else (f"Outputs of {format_count(len(lost), 'configuration')} are")
    )
    yield StoreFinding(
        FindingKind.OUTPUTS,
        f"{what} wrong, compared with the reference, and none of their times counts:"
        f" {titled(rows[0] for rows in lost)}.",
        _OUTPUTS + min(5.0, float(len(lost))),
        evidence_of(lost),
        {"status": ("failed",)},
    )


def _failed(lost: Sequence[Sequence[Row]]) -> Iterator[StoreFinding]:
    if not lost:
        return
    causes = Counter(_cause(rows[-1]) for rows in lost)
    told = "; ".join(f"{count} {cause}" for cause, count in causes.most_common(_CAUSES))
    rest = sum(causes.values()) - sum(count for _, count in causes.most_common(_CAUSES))
    yield StoreFinding(
        FindingKind.FAILURES,
        f"{format_count(len(lost), 'configuration')} came to no figure: {told}"
        f"{f'; {rest} for other reasons' if rest else ''}.",
        _FAILED + min(5.0, len(lost) / 10.0),
        evidence_of(lost),
        {"status": tuple(dict.fromkeys(str(rows[-1].get("status")) for rows in lost))},
    )


def _partly(some: Sequence[Sequence[Row]]) -> Iterator[StoreFinding]:
    """Figures that stand although launches beside them failed."""
    failed = [several for several in some if any(map(_is_failure, several))]
    if not failed:
        return
    whys = Counter(_cause(row) for several in failed for row in several if _is_failure(row))
    launches = whys.total()
    has, it = ("has", "it") if len(failed) == 1 else ("have", "them")
    yield StoreFinding(
        FindingKind.FAILURES,
        f"{format_count(len(failed), 'configuration')} {has} a figure although"
        f" {format_count(launches, 'launch', 'launches')} of {it} failed, most of all"
        f" {whys.most_common(1)[0][0]}: {titled(several[0] for several in failed)}.",
        _PARTLY + min(5.0, len(failed) / 10.0),
        evidence_of(failed),
    )


def _cause(row: Row) -> str:
    reason = str(row.get("reason") or row.get("status")).replace("_", " ")
    return f"with {engine_on(row)} ({visible(reason)})"


_BROKEN, _WORSE, _MENDED, _BETTER, _STEADY = 95.0, 90.0, 58.0, 57.0, 18.0
#: By so much less is what rests on a single figure a side: below the fastest that is sure.
_SINGLE = 20.0


def change_findings(check: Check | None) -> Iterator[StoreFinding]:
    """A finding for each outcome that there is; None where nothing was measured before."""
    if check is None or not check.questions:
        return
    by_outcome = {outcome: _of(check, outcome) for outcome in Outcome}
    many = format_count(len(check.questions), "configuration that was measured before", _MANY)
    if worse := by_outcome[Outcome.WORSE]:
        yield _moved(
            FindingKind.CHANGE, worse, Judgement.WORSE, "became worse", many, _WORSE, check
        )
    if broken := by_outcome[Outcome.BROKEN]:
        yield _listed(broken, f"no longer {_run(broken)}", many, _BROKEN)
    if better := by_outcome[Outcome.BETTER]:
        moved = _moved(
            FindingKind.CHANGE, better, Judgement.BETTER, "became better", many, _BETTER, check
        )
        yield moved
    if mended := by_outcome[Outcome.MENDED]:
        yield _listed(mended, f"{_run(mended)} now and did not before", many, _MENDED)
    moved_any = any(
        by_outcome[o] for o in (Outcome.WORSE, Outcome.BROKEN, Outcome.BETTER, Outcome.MENDED)
    )
    if not moved_any:
        yield _nothing(by_outcome[Outcome.STEADY], by_outcome[Outcome.CANNOT_TELL], many)


_MANY = "configurations that were measured before"


def _run(questions: Sequence[CheckedQuestion]) -> str:
    return "runs" if len(questions) == 1 else "run"


def _of(check: Check, outcome: Outcome) -> list[CheckedQuestion]:
    return [question for question in check.questions if question.outcome is outcome]


def _moved(
    kind: FindingKind,
    questions: Sequence[CheckedQuestion],
    answer: Judgement,
    verb: str,
    many: str,
    importance: float,
    check: Check,
) -> StoreFinding:
    """What moved, the most first, with the figure that moved: those with an interval come first."""
    moves = [(question, _figure(question, answer)) for question in questions]
    moves.sort(
        key=lambda move: (move[1].low is None, -abs(move[1].worse_by), format_title(move[0].row))
    )
    first = moves[0][1]
    told = "; ".join(
        f"{format_title(question.row)}, {_change(figure)}" for question, figure in moves[:2]
    )
    more = f"; and {len(moves) - 2} more" if len(moves) > 2 else ""
    together = ""
    if check.together is not None:
        together = (
            f" (all times moved together, by {check.together:+.1%}: rather the machine than each)"
        )
    interval = None if first.low is None or first.high is None else (first.low, first.high)
    importance -= _SINGLE if interval is None else 0.0
    return StoreFinding(
        kind,
        f"{len(moves):,} of {many} {verb}: {told}{more}{together}.",
        importance
        - (_SINGLE if interval is None else 0.0)
        + 4.0 * len(moves) / max(1, len(check.questions)),
        evidence_of([question.row] for question, _ in moves),
        value=first.worse_by,
        interval=interval,
        command="accelbench check --rerun",
    )


def _figure(question: CheckedQuestion, answer: Judgement) -> Judged:
    return next(figure for figure in question.figures if figure.answer is answer)


def _change(figure: Judged) -> str:
    """Return the change of a value, with the interval that verdicts are made by."""
    name = figure.metric.title
    before, now, unit = figure.before, figure.now, figure.metric.header
    text = f"{name} {before:.4g} → {now:.4g} {unit} ({now / before - 1.0:+.1%}"
    if figure.low is None or figure.high is None:
        return f"{text}, no interval: a single figure a side)"
    worse = changes_text(figure.low, figure.high, "{:+.1%}".format, " to ")
    return f"{text}; worse by {worse}, {100 * figure.level:.0f} % interval)"


def _listed(
    questions: Sequence[CheckedQuestion], verb: str, many: str, importance: float
) -> StoreFinding:
    reasons = {id(question.row): visible(question.why) for question in questions if question.why}
    told = titled(
        (question.row for question in questions), why=lambda row: reasons.get(id(row), "")
    )
    return StoreFinding(
        FindingKind.CHANGE,
        f"{len(questions):,} of {many} {verb}: {told}.",
        importance,
        evidence_of([question.row] for question in questions),
        command="accelbench check",
    )


def _nothing(
    steady: Sequence[CheckedQuestion], unsure: Sequence[CheckedQuestion], many: str
) -> StoreFinding:
    parts = [
        f"in {len(steady):,} no change is shown" if steady else "",
        f"in {len(unsure):,} it can't be told whether anything changed" if unsure else "",
    ]
    told = " and ".join(part for part in parts if part) or "none has figures on both sides"
    return StoreFinding(
        FindingKind.CHANGE,
        f"Of {many}, {told}.",
        _STEADY,
        evidence_of([question.row] for question in (*unsure, *steady)),
        command="accelbench check",
    )


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
    among = format_count(len(best.among), "configuration")
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


#: What is said where there is nothing to say.
NOTHING = "Nothing here says enough for a finding: nothing stands beside anything else."


@dataclass(frozen=True)
class Findings:
    """What some results say.

    Attributes:
        every: all findings, the most important first.
        tasks: what is best of each task.
        check: what became of it since the runs before; None where nobody asked or nothing was.
    """

    every: Sequence[StoreFinding] = ()
    tasks: Sequence[TaskBest] = ()
    check: Check | None = None

    @property
    def foremost(self) -> list[StoreFinding]:
        """Those that stand at the top."""
        return foremost(self.every)


def findings_of(
    rows: Sequence[Row],
    points: Sequence[Point],
    known: Histories,
    check: Check | None = None,
    sign: str = "$",
) -> Findings:
    """What results of one machine say."""
    several = crowded(rows)
    tasks = best_of_tasks(points, known, several, sign)
    engines = every_versus(rows, "runtime", known)
    precisions = every_versus(rows, "precision", known, FULL)
    won = [*(("runtime", versus) for versus in engines)]
    won += [("precision", versus) for versus in precisions]
    every = [
        *change_findings(check),
        *failure_findings(rows, points),
        *best_findings(tasks, several),
        *engine_findings(engines, several),
        *precision_findings(precisions, several),
        *steadiness_findings(points),
        *unmeasured_findings(rows, won, several),
    ]
    return Findings(ranked(every), tasks, check)

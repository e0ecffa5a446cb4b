"""What changed since the runs before, by the verdicts of `check`. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from accelbench.analysis.checking import Check, CheckedQuestion, Outcome
from accelbench.analysis.judging import Judged, Judgement
from accelbench.core.nouns import counted
from accelbench.core.spreads import changes_text
from accelbench.core.visible import visible
from accelbench.exchange.titles import title
from accelbench.query.findings.finding import FindingKind, StoreFinding, evidence_of
from accelbench.query.findings.phrases import titled

_BROKEN, _WORSE, _MENDED, _BETTER, _STEADY = 95.0, 90.0, 58.0, 57.0, 18.0
#: By so much less is what rests on a single figure a side: below the fastest that is sure.
_SINGLE = 20.0


def change_findings(check: Check | None) -> Iterator[StoreFinding]:
    """A finding for each outcome that there is; None where nothing was measured before."""
    if check is None or not check.questions:
        return
    by_outcome = {outcome: _of(check, outcome) for outcome in Outcome}
    many = counted(len(check.questions), "configuration that was measured before", _MANY)
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
    moves.sort(key=lambda move: (move[1].low is None, -abs(move[1].worse_by), title(move[0].row)))
    first = moves[0][1]
    told = "; ".join(f"{title(question.row)}, {_change(figure)}" for question, figure in moves[:2])
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

"""What was measured now beside a baseline: question by question, each figure judged apart. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from statistics import median

from accelbench.analysis.comparability import changed_code, rates_of_others, refused_there, unlike
from accelbench.analysis.conditions import differences
from accelbench.analysis.judging import (
    METRICS,
    Judged,
    Judgement,
    Metric,
    NoisePrior,
    judged,
    runs_differ,
)
from accelbench.analysis.outputs import outputs_differ, outputs_of, why_no_gain, why_other_outputs
from accelbench.analysis.pairing import Launches, Pair, paired
from accelbench.analysis.questions import plain
from accelbench.analysis.republished import published_again
from accelbench.analysis.run_noise import Histories, of_one_run
from accelbench.analysis.sets import JudgedSet, judge_set
from accelbench.core.columns import ASKED
from accelbench.core.launch_failures import is_wrong, of_whole_runs, why_unusable
from accelbench.core.rows import Row, number
from accelbench.core.spreads import FEWEST_LAUNCHES
from accelbench.core.vocabulary import Status
from accelbench.core.worth import answered, is_decisive, usable_launches
from accelbench.measure.launches import (
    LEAST_EFFECT,
    MOST_LAUNCHES,
    pooled,
    pooled_noise,
)

#: Of so many questions that moved one way together, each says less of itself than of the machine.
_TOGETHER = 3
#: What may be missing now of a baseline, where somebody allows it.
MISSING = "missing"


class Outcome(StrEnum):
    """What became of a question."""

    WORSE = "worse"
    BROKEN = "no longer runs"
    CANNOT_TELL = "can't tell"
    BETTER = "better"
    MENDED = "runs now"
    STEADY = "no change shown"
    FAILS_STILL = "ran in neither"


#: The answer "no".
BAD = (Outcome.WORSE, Outcome.BROKEN)


@dataclass(frozen=True)
class CheckedQuestion:
    """One question, then and now."""

    row: Row  # of now
    outcome: Outcome
    figures: tuple[Judged, ...] = ()
    why: str = ""  # it cannot be told, or does not run, or not always
    differs: tuple[str, ...] = ()  # conditions that are not alike
    before: Row | None = None
    unusable: str = ""  # which side's times are unusable, and why


@dataclass(frozen=True)
class Check:
    """All questions of now, and those of the baseline that now has none of."""

    questions: tuple[CheckedQuestion, ...]
    not_measured: tuple[Row, ...] = ()  # one row of each
    not_before: tuple[Row, ...] = ()
    may_miss: bool = False  # somebody allowed that not all of the baseline was measured
    threshold: float | None = None  # the share that a change has to exceed at least

    @property
    def outcome(self) -> Outcome:
        """The answer to the whole: the worst that is known, else what is not."""
        outcomes = {question.outcome for question in self.questions}
        if outcomes & set(BAD) or self.is_set_worse:
            return Outcome.WORSE
        unseen = self.not_measured and not self.may_miss
        judged_any = any(question.figures for question in self.questions)
        if Outcome.CANNOT_TELL in outcomes or unseen or not judged_any:
            return Outcome.CANNOT_TELL
        return Outcome.STEADY

    @cached_property
    def whole(self) -> JudgedSet | None:
        """All configurations judged together; None if they are few."""
        return judge_set(((q.row, q.figures) for q in self.questions), self.threshold)

    @property
    def is_set_worse(self) -> bool:
        """Whether all configurations together became worse."""
        return self.whole is not None and self.whole.answer is Judgement.WORSE

    @property
    def together(self) -> float | None:
        """By how much all times changed alike, where they did: the machine, rather than each."""
        moved = [
            math.log1p(figure.worse_by)
            for question in self.questions
            for figure in question.figures
            if figure.metric.name == "latency"
        ]
        least = min((abs(change) for change in moved), default=0.0)
        alike = len({change > 0 for change in moved}) == 1
        if len(moved) < _TOGETHER or not alike or least < math.log1p(LEAST_EFFECT):
            return None
        return math.expm1(median(moved))


@dataclass(frozen=True)
class Rules:
    """What a check goes by.

    Attributes:
        told: what the baseline says of how it was asked and ran; a file may lack columns.
        untold: of `comparison.REFUSED`, what the baseline does not say, so that nobody can see it.
        threshold: what a change has to exceed at least, as a share.
        allow: of `comparison.REFUSED`, what is compared with each other although not alike.
        known: of other runs of these series and of their neighbours: their noise.
    """

    told: Collection[str] = ASKED
    untold: Collection[str] = ()
    threshold: float | None = None
    allow: Collection[str] = ()
    known: Histories = field(default_factory=Histories)


#: A median says nothing of what a mean was.
_OTHER_FIGURE = "of one side a median latency is known, of the other a mean"


def _other_figure(then: Launches, good: Launches) -> str:
    """Why a figure that both sides have is not compared with the other's."""
    return rates_of_others(then, good) or _OTHER_FIGURE


def differing(then: Launches, good: Launches) -> tuple[str, ...]:
    """Conditions that are not alike, and what is otherwise of the outputs."""
    outputs = outputs_differ(outputs_of(then), outputs_of(good))
    return (*changed_code(then, good), *differences(then[0], good[0]), *outputs)


def as_outputs_are(
    figures: tuple[Judged, ...], outcome: Outcome, why: str, sides: tuple[Launches, Launches]
) -> tuple[tuple[Judged, ...], Outcome, str]:
    """Figures, their outcome and why, where outputs are no longer what they were known to be.

    Args:
        figures: as they were judged by themselves.
        outcome: what they come to together.
        why: it cannot be told.
        sides: the launches of before and of now.
    """
    before, now = map(outputs_of, sides)
    other, unverified = why_other_outputs(before, now), why_no_gain(before, now)
    if not (other or unverified):
        return figures, outcome, why
    figures = tuple(
        replace(figure, answer=Judgement.CANNOT_TELL)
        if figure.answer is Judgement.BETTER
        else figure
        for figure in figures
    )
    if outcome in BAD:
        return figures, outcome, why or other or unverified
    if other or outcome is Outcome.BETTER:
        outcome = Outcome.CANNOT_TELL
    return figures, outcome, "; ".join(filter(None, (why, other or unverified)))


def checked(now: Iterable[Row], before: Iterable[Row], rules: Rules | None = None) -> Check:
    """Hold what was measured now, on one machine, against a baseline."""
    rules = rules or Rules()
    tried = [row for row in of_whole_runs(before) if row.get("status") != Status.SKIPPED]
    pairs = list(paired(of_whole_runs(now), tried, rules.told))
    both = [pair for pair in pairs if pair.now and pair.before]
    few = sum(min(len(pair.now), len(pair.before)) < FEWEST_LAUNCHES for pair in both)
    return Check(
        tuple(_checked(pair, rules, max(few, 1)) for pair in both),
        tuple(pair.before[0] for pair in pairs if not pair.now),
        tuple(pair.now[0] for pair in pairs if not pair.before),
        MISSING in rules.allow,
        rules.threshold,
    )


def _checked(pair: Pair, rules: Rules, few: int) -> CheckedQuestion:
    good, then = _in_order(_good(pair.now)), _in_order(_good(pair.before))
    if not good or not then:
        return _not_run(pair, good, then)
    differs = differing(then, good)
    why = _unlike(pair, then, good, rules)
    if why:
        return CheckedQuestion(good[0], Outcome.CANNOT_TELL, (), why, differs, then[0])
    if job := published_again(then, good):
        why = f"both sides are one measurement, of job {job}, that was published again"
        return CheckedQuestion(good[0], Outcome.CANNOT_TELL, (), why, differs, then[0])
    values = {m.name: (_values(m, then), _values(m, good)) for m in METRICS}
    both = [m for m in METRICS if all(values[m.name])]
    alike = [metric for m in both if (metric := _common(m, then, good)) is not None]
    figures = tuple(
        _figure(m, _values(m, then), _values(m, good), (then, good), rules, few) for m in alike
    )
    outcome, why = outcome_of(figures, _why_open)
    useless = _useless(then, good)
    if useless and outcome not in BAD:
        outcome, why = Outcome.CANNOT_TELL, useless
    gone = [name for name, (before, now) in values.items() if before and not now]
    if gone and not useless and outcome not in BAD:
        outcome, why = Outcome.CANNOT_TELL, f"there is no {' and no '.join(gone)} any more"
    if len(alike) < len(both) and outcome not in BAD:
        outcome, why = Outcome.CANNOT_TELL, _other_figure(then, good)
    figures, outcome, why = as_outputs_are(figures, outcome, why, (then, good))
    lost = [row for row in pair.now if row not in good]
    if lost and outcome not in BAD:
        why = f"{len(lost)} of {len(pair.now)} launches: {reason_of(lost[0])}"
        if len(then) == len(pair.before):  # none was lost then
            outcome = Outcome.BROKEN
    return CheckedQuestion(good[0], outcome, figures, why, differs, then[0], useless)


def _unlike(pair: Pair, then: Launches, good: Launches, rules: Rules) -> str:
    """Why these cannot be compared with each other; empty where they can."""
    if pair.among:
        apart = [n for n in ASKED if len({str(plain(row.get(n))) for row in pair.among}) > 1]
        return f"the baseline does not say which {' and '.join(apart)} it is of"
    if pair.unlike:
        return f"not alike: {', '.join(pair.unlike)}"
    if refused := refused_there(then, rules.allow):
        return f"the baseline's file says of it: {refused}"
    return unlike(then, good, {*rules.allow, *rules.untold})


def _not_run(pair: Pair, good: Launches, then: Launches) -> CheckedQuestion:
    now, before = map(first_bad, (pair.now, pair.before))
    if then:
        skipped = all(row.get("status") == Status.SKIPPED for row in pair.now)
        outcome = Outcome.CANNOT_TELL if skipped else Outcome.BROKEN
        return CheckedQuestion(now, outcome, why=reason_of(now), before=then[0])
    if good:
        return CheckedQuestion(
            good[0], Outcome.MENDED, why=f"was {reason_of(before)}", before=before
        )
    return CheckedQuestion(now, Outcome.FAILS_STILL, why=reason_of(now), before=before)


def _figure(
    metric: Metric,
    then: Sequence[float],
    here: Sequence[float],
    rows: tuple[Launches, Launches],
    rules: Rules,
    few: int,
) -> Judged:
    before, now = rows[0][0], rows[1][0]
    parts = [pooled_noise([then, here]), rules.known.launches(now, metric)]
    noise = pooled([part for part in parts if part is not None])
    apart = None if of_one_run(before, now) else rules.known.for_gate(now, metric, here)
    sure = all(is_decisive(row) for side in rows for row in side)
    known = NoisePrior(noise, apart, few)
    return judged(metric, then, here, known, rules.threshold, settled=sure)


def _useless(then: Launches, now: Launches) -> str:
    """Where the times of a side are of no use, which; what is left of it is not judged."""
    both = (("before", then), ("now", now))
    sides = {word: rows for word, rows in both if not usable_launches(rows)}
    why = ", ".join(dict.fromkeys(map(why_unusable, sides.values())))
    return f"times of {' and of '.join(sides)} are unusable: {why}" if sides else ""


def _values(metric: Metric, rows: Sequence[Row]) -> list[float]:
    """One value a launch; nothing of time, rate or memory is ever 0."""
    counted = usable_launches(rows) if metric.timed else rows
    figures = [metric.of(row) for row in counted]
    return [value for value in figures if value is not None and 0 < value < math.inf]


def _common(metric: Metric, then: Sequence[Row], now: Sequence[Row]) -> Metric | None:
    """A figure as both sides have it."""
    rows = [
        row for side in (then, now) for row in (usable_launches(side) if metric.timed else side)
    ]
    return metric.common([row for row in rows if metric.of(row)])


def _in_order(rows: Sequence[Row]) -> list[Row]:
    """In order of time: neighbours are what may be alike."""
    return sorted(rows, key=_moment)


def _moment(row: Row) -> tuple[str, int]:
    return str(row.get("started_at") or ""), int(number(row, "launch") or 0)


def outcome_of(figures: Sequence[Judged], why_open: Callable[[Judged], str]) -> tuple[Outcome, str]:
    """Return what figures come to together, and why it is open.

    Args:
        figures: the metrics of one question.
        why_open: returns why a figure is inconclusive.
    """
    answers = [figure.answer for figure in figures]
    if not answers:
        return Outcome.CANNOT_TELL, "there is no figure on both sides"
    if Judgement.WORSE in answers:
        return Outcome.WORSE, ""
    if Judgement.CANNOT_TELL in answers:
        metrics_by_reason: dict[str, list[str]] = {}
        for figure in figures:
            if figure.answer is Judgement.CANNOT_TELL:
                metrics_by_reason.setdefault(why_open(figure), []).append(figure.metric.name)
        if len(metrics_by_reason) == 1:
            return Outcome.CANNOT_TELL, next(iter(metrics_by_reason))
        reasons = [f"{' and '.join(names)}: {why}" for why, names in metrics_by_reason.items()]
        return Outcome.CANNOT_TELL, "; ".join(reasons)
    return (Outcome.BETTER if Judgement.BETTER in answers else Outcome.STEADY), ""


def _why_open(figure: Judged) -> str:
    """Return how many launches would decide a figure, or which change they would show."""
    both = figure.required_both
    if figure.plain:
        if figure.most_shown is not None:
            return runs_differ(figure.most_shown)
        launches = "five" if both is None or both <= FEWEST_LAUNCHES else str(both)
        return (
            "one launch a side cannot tell a slow launch from a slow program:"
            f" measure {launches} a side"
        )
    before, now = figure.launches
    few = f"{before} launches before and {now} now are too few"
    by_runs = _of_runs(figure)
    if min(before, now) < FEWEST_LAUNCHES and both is None and (by_runs or _is_seen(figure)):
        return f"{few}: five a side are the least"
    few += " at this noise"
    if figure.required is not None:
        return f"{few}: {figure.required} now would be enough"
    if both is not None:
        return f"{few}: {both} a side would be enough"
    most = figure.most_shown or 0.0
    if by_runs:
        return runs_differ(most)
    return f"{few}: {MOST_LAUNCHES} a side would show only a change of {most:.1%} or more"


def _is_seen(figure: Judged) -> bool:
    """Whether a change is larger than what the most launches would show: few are all that lacks."""
    return figure.most_shown is not None and abs(figure.worse_by) > figure.most_shown


def _of_runs(figure: Judged) -> bool:
    """Whether what leaves it open is that runs differ, which more launches do not change."""
    if figure.runs is None or figure.noise is None:
        return False
    return figure.runs.value > figure.noise.value / math.sqrt(min(figure.launches))


def _good(rows: Sequence[Row]) -> list[Row]:
    return [row for row in rows if answered(row)]


def first_bad(rows: Sequence[Row]) -> Row:
    """Of launches the first that has no figures; of none such, the first."""
    return next((row for row in rows if row.get("status") != Status.OK), rows[0])


def reason_of(row: Row) -> str:
    """Why a result has no figures."""
    status = "wrong_outputs" if is_wrong(row) else row.get("status")
    reason = str(row.get("reason") or status or "unknown")
    return f"{reason}: {row['message']}" if row.get("message") else reason

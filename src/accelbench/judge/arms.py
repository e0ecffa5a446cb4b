"""Two arms of a run compared with each other: question by question, launch by launch. Pure.

Two arms of one run, whose launches were interleaved: each launch beside its neighbour. Pure.

The i-th launch of one arm and the i-th of the other were measured one after the other, A B B A.
Whatever the machine did meanwhile, and whatever this run differs from another by, is in both and
falls out of their ratio: what is left is the noise of pairs, and Student's t over the logarithms of
the ratios decides. No variance between runs has to be known, since there is one run.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence

from accelbench.core.columns import CONFIGURATION_COLUMNS
from accelbench.core.formatting import format_count
from accelbench.core.result_statistics import FEWEST_LAUNCHES
from accelbench.core.rows import Row, number
from accelbench.core.unusable_reasons import THIS_ARM, reasons_unusable
from accelbench.core.vocabulary import Status
from accelbench.evidence.launches import launches_of
from accelbench.judge.comparability import rates_of_others, unlike
from accelbench.judge.questions import Key, values
from accelbench.judge.regressions import (
    BAD,
    Check,
    CheckedQuestion,
    Outcome,
    as_outputs_are,
    differing,
    first_bad,
    outcome_of,
    reason_of,
)
from accelbench.judge.verdicts import METRICS, Judged, Judgement, Metric, as_times
from accelbench.measure.launch_verdicts import (
    LEAST_EFFECT,
    MAX_LOG,
    MOST_LAUNCHES,
    POWER,
    Noise,
    geometric_mean,
    logs_of,
    minimum_detectable_effect,
    paired_interval,
    required_launches,
    standard_deviation,
)
from accelbench.measure.student import t_quantile

_LEVEL = 0.99


def judged_pairs(
    metric: Metric,
    against: Sequence[float],
    this: Sequence[float],
    threshold: float | None = None,
) -> Judged:
    """Whether launches of this arm are worse than those of the other.

    Args:
        metric: which figure.
        against: of the arm that is compared with, one value a launch; at least one.
        this: of the other, each beside the launch that it was measured next to.
        threshold: what a change has to exceed at least, as a share.
    """
    then, here = as_times(metric, against, this)
    pairs = len(then)
    floor = max(threshold or 0.0, LEAST_EFFECT)
    interval = paired_interval(then, here, _LEVEL)
    if interval is None:
        return _alone(metric, against, this, floor)
    logs = [b - a for a, b in zip(logs_of(then), logs_of(here), strict=True)]
    apart = standard_deviation(logs)
    error = apart / math.sqrt(pairs)
    limit = max(floor, math.expm1(min(3.0 * error, MAX_LOG)))
    effect = math.log(interval.ratio)
    answer = Judgement.CANNOT_TELL
    if pairs >= FEWEST_LAUNCHES:
        if interval.p_value < 1.0 - _LEVEL and abs(effect) > math.log1p(limit):
            answer = Judgement.WORSE if effect > 0 else Judgement.BETTER
        elif abs(effect) + t_quantile(POWER, pairs - 1) * error <= math.log1p(floor):
            answer = Judgement.STEADY
    # Noise is of one launch throughout; a pair has that of two.
    noise = apart / math.sqrt(2.0)
    required = required_launches(noise, floor)
    most = minimum_detectable_effect(MOST_LAUNCHES, noise) or 0.0
    return Judged(
        metric,
        geometric_mean(against),
        geometric_mean(this),
        interval.ratio - 1.0,
        answer,
        limit,
        (pairs, pairs),
        math.expm1(max(math.log(interval.low), -MAX_LOG)),
        math.expm1(min(math.log(interval.high), MAX_LOG)),
        Noise(noise, pairs - 1),
        least_shown=max(minimum_detectable_effect(pairs, noise) or 0.0, floor),
        required=required,
        required_both=required,
        most_shown=max(most, floor),
        paired=True,
    )


def _alone(metric: Metric, against: Sequence[float], this: Sequence[float], floor: float) -> Judged:
    """One pair says nothing of its own noise."""
    before, now = geometric_mean(against), geometric_mean(this)
    by = now / before if metric.lower_is_better else before / now
    return Judged(
        metric, before, now, by - 1.0, Judgement.CANNOT_TELL, floor,
        (len(against), len(this)), required=FEWEST_LAUNCHES, required_both=FEWEST_LAUNCHES,
        paired=True,
    )  # fmt: skip


#: What arms may differ in on purpose: everything else that was asked is alike.
_ON_PURPOSE = frozenset({"options", "threads", "compiled", "device_name"})
_ALIKE = tuple(name for name in CONFIGURATION_COLUMNS if name not in _ON_PURPOSE)


def names_of_arms(rows: Iterable[Row]) -> tuple[str, ...]:
    """What the rows of a run are compared with; nothing where it has no arms."""
    arms = dict.fromkeys(str(row.get("arm") or "") for row in rows)
    return tuple(arm for arm in arms if arm not in ("", THIS_ARM))


def checked_arms(
    rows: Iterable[Row], threshold: float | None = None, allow: Collection[str] = ()
) -> Check:
    """What this arm is worse or better in than the other.

    Args:
        rows: of one run, both arms.
        threshold: what a change has to exceed at least, as a share.
        allow: of `comparison.REFUSED`, what is compared with each other although not alike.
    """
    sides_by_question: dict[Key, tuple[list[Row], list[Row]]] = {}
    for row in launches_of(rows):
        sides = sides_by_question.setdefault(values(row, _ALIKE), ([], []))
        sides[(row.get("arm") or THIS_ARM) == THIS_ARM].append(row)
    # A launch that another arm has not had yet stands beside nothing.
    both = [(this, other) for other, this in sides_by_question.values() if this and other]
    return Check(
        tuple(_checked(this, other, threshold, allow) for this, other in both),
        tuple(other[0] for other, this in sides_by_question.values() if not this),
        tuple(this[0] for other, this in sides_by_question.values() if not other),
        threshold=threshold,
    )


def _checked(
    this: Sequence[Row], other: Sequence[Row], threshold: float | None, allow: Collection[str]
) -> CheckedQuestion:
    here, there = _by_launch(this), _by_launch(other)
    if not here or not there:
        return _not_run(first_bad(this), first_bad(other), bool(here), bool(there))
    pairs = [(there[n], here[n]) for n in sorted(here.keys() & there.keys())]
    first, against = next(iter(here.values())), next(iter(there.values()))
    differs = differing(list(there.values()), list(here.values()))
    why = unlike(list(there.values()), list(here.values()), allow)
    if why or not pairs:
        why = why or "no launch of either arm has one of the other beside it"
        return CheckedQuestion(first, Outcome.CANNOT_TELL, (), why, differs, against)
    every = [row for pair in pairs for row in pair]
    other_rates = rates_of_others([launch for launch, _ in pairs], [here for _, here in pairs])
    figures = tuple(
        judged_pairs(metric.in_unit_of(every), *both, threshold)
        for metric in METRICS
        if all(both := _of(metric, pairs)) and not (metric.rated and other_rates)
    )
    outcome, why = outcome_of(figures, _why_open)
    judged = {figure.metric.name for figure in figures}
    missing = [m.name for m in METRICS if m.name not in judged and _known(m, [*this, *other])]
    if other_rates and outcome not in BAD:
        outcome, why = Outcome.CANNOT_TELL, other_rates
    elif missing and outcome not in BAD:
        cause = f"no pair has a {' or a '.join(missing)} on both sides"
        outcome = Outcome.CANNOT_TELL
        reasons = reasons_unusable([*here.values(), *there.values()])
        why = f"{cause}; launches are unusable: {reasons}" if reasons else cause
    sides = (list(there.values()), list(here.values()))
    figures, outcome, why = as_outputs_are(figures, outcome, why, sides)
    lost = [row for row in this if not row["answered"]]
    if lost and outcome not in BAD:
        why = f"{len(lost)} of {len(this)} launches: {reason_of(lost[0])}"
        if len(there) == len(other):  # the other arm lost none
            outcome = Outcome.BROKEN
    return CheckedQuestion(first, outcome, figures, why, differs, against)


def _by_launch(rows: Iterable[Row]) -> dict[int, Row]:
    return {int(number(row, "launch") or 0): row for row in rows if row["answered"]}


def _not_run(this: Row, other: Row, runs: bool, ran: bool) -> CheckedQuestion:
    if ran:
        skipped = this.get("status") == Status.SKIPPED
        outcome = Outcome.CANNOT_TELL if skipped else Outcome.BROKEN
        return CheckedQuestion(this, outcome, why=reason_of(this), before=other)
    if runs:
        return CheckedQuestion(this, Outcome.MENDED, why=f"was {reason_of(other)}", before=other)
    return CheckedQuestion(this, Outcome.FAILS_STILL, why=reason_of(this), before=other)


def _of(metric: Metric, pairs: Sequence[tuple[Row, Row]]) -> tuple[list[float], list[float]]:
    """The values of launches that have one on both sides: against, and this."""
    counted = [
        pair for pair in pairs if not metric.timed or all(row["times_usable"] for row in pair)
    ]
    if 2 * len(counted) <= len(pairs):  # of which more would be chosen by how they came out
        return [], []
    known = [(metric.of(other), metric.of(this)) for other, this in counted]
    against, here = [], []
    for a, b in known:
        if a is not None and b is not None and 0 < a < math.inf and 0 < b < math.inf:
            against.append(a)
            here.append(b)
    return against, here


def _known(metric: Metric, rows: Iterable[Row]) -> bool:
    return any(row.get("status") == Status.OK and metric.of(row) is not None for row in rows)


def _why_open(figure: Judged) -> str:
    """Return how many pairs of launches would decide a figure, or which change they would show."""
    pairs, wanted = figure.launches[0], figure.required or 0
    had = format_count(pairs, "pair of launches", "pairs of launches")
    if pairs < FEWEST_LAUNCHES:
        return f"only {had}, and {FEWEST_LAUNCHES} are the least: use --launches {wanted}"
    if pairs < wanted:
        return f"{had} are too few at this noise: use --launches {wanted}"
    most = figure.most_shown or 0.0
    return f"{had} leave it open at this noise; {MOST_LAUNCHES} would show a change of {most:.1%}"

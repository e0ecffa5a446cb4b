"""What was measured now beside a baseline: question by question, each figure judged apart. Pure.

Which launches of now stand beside which of a baseline. Pure.

A *case* is what was asked. How it ran — on which device by name, with how many threads, compiled or
not — is known only once an engine has it open, and tells several *variants* of a case apart.
A launch that never got that far is of every variant that its run has of the case; where the run
has none it is all that there is of the case, unless a newer run has more.

Judge all configurations of a check together: the geometric mean of their ratios. Pure.

A single configuration with one launch a side decides nothing below 33 %. A thousand of them decide:
what each launch deviates by averages out. Three errors are left. Configurations of one family
change alike, so that families are clusters. Configurations of one cluster differ from each other.
All of them share by how much one run differs from another (`measure.runs`), and no number of
configurations makes that smaller.

The variance of the mean is b·sum((n/N)²) + w/N + 2·r, for clusters of n of N configurations. The
variances w within clusters and b between them are those of an analysis of variance, and r is the
variance between runs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from itertools import chain
from statistics import fmean, median

from accelbench.core.columns import CONFIGURATION_COLUMNS
from accelbench.core.result_statistics import FEWEST_LAUNCHES
from accelbench.core.rows import Row, number
from accelbench.core.unusable_reasons import UnusableReason, why_unusable
from accelbench.core.vocabulary import Family, Status
from accelbench.evidence.launches import launches_of, newest_run
from accelbench.evidence.measurements import RunMeasurement, merge_groups
from accelbench.judge.accuracies import (
    outputs_differ,
    outputs_of,
    why_no_gain,
    why_other_outputs,
)
from accelbench.judge.comparability import changed_code, rates_of_others, refused_there, unlike
from accelbench.judge.conditions import differences
from accelbench.judge.questions import Key, plain, values
from accelbench.judge.run_noise import Histories, of_one_run
from accelbench.judge.verdicts import (
    METRICS,
    Judged,
    Judgement,
    Metric,
    NoisePrior,
    judged,
    runs_differ,
)
from accelbench.judge.versions import published_again
from accelbench.measure.launch_verdicts import (
    ALPHA,
    LEAST_EFFECT,
    MOST_LAUNCHES,
    Noise,
    p_value,
    pool_noise,
    pool_runs,
)
from accelbench.measure.run_to_run_noise import combine_errors
from accelbench.measure.student import t_quantile

#: Fewer configurations are judged only one by one.
FEWEST_CONFIGURATIONS = 5
#: The metrics of time, by which a set is judged: the first that a configuration has.
_TIMES = ("latency", "throughput")

Logs = Sequence[float]


@dataclass(frozen=True)
class JudgedSet:
    """The judgement of all configurations together. Shares are of becoming worse."""

    configurations: int
    clusters: int
    by_family: bool  # clusters are families, else models
    worse_by: float
    low: float  # the interval: 98 % between runs, 99 % in one run
    high: float
    limit: float  # the share that a change has to exceed
    answer: Judgement
    runs: Noise | None  # the deviation from run to run that all share; None in one run


def judge_set(
    judged: Iterable[tuple[Row, Sequence[Judged]]], threshold: float | None
) -> JudgedSet | None:
    """Judge the times of all configurations together; None below five configurations.

    Args:
        judged: a row and the judged metrics of each configuration.
        threshold: the share that a change has to exceed at least.
    """
    timed = [
        (row, figure)
        for row, figures in judged
        if (figure := next((f for f in figures if f.metric.name in _TIMES), None)) is not None
    ]
    if len(timed) < FEWEST_CONFIGURATIONS:
        return None
    by_family, clusters = _clusters(timed)
    runs = sorted((f.runs for _, f in timed if f.runs is not None), key=lambda noise: noise.value)
    shared = runs[len(runs) // 2] if runs else None
    center = fmean(chain.from_iterable(clusters))
    error, freedom = combine_errors(variances_of_mean(clusters), shared)
    tail = ALPHA / 2.0 if shared is None else ALPHA
    reach = t_quantile(1.0 - tail, freedom) * error
    limit = max(threshold or 0.0, LEAST_EFFECT)
    answer = Judgement.CANNOT_TELL
    if p_value(center, error, freedom) < 2.0 * tail and abs(center) > math.log1p(limit):
        answer = Judgement.WORSE if center > 0 else Judgement.BETTER
    low, high = math.expm1(center - reach), math.expm1(center + reach)
    count = len(timed)
    return JudgedSet(
        count, len(clusters), by_family, math.expm1(center), low, high, limit, answer, shared
    )


def variances_of_mean(clusters: Sequence[Logs]) -> list[tuple[float, float]]:
    """Return the variances of the mean of all values, each with its degrees of freedom.

    The first is that between clusters, the second that within them. A part without degrees of
    freedom is left out.
    """
    count = sum(map(len, clusters))
    means = [fmean(cluster) for cluster in clusters]
    inside = count - len(clusters)
    squares = math.fsum(
        (value - mean) ** 2
        for cluster, mean in zip(clusters, means, strict=True)
        for value in cluster
    )
    within = squares / inside if inside else 0.0
    parts = []
    if len(clusters) > 1:
        middle = fmean(means)
        between = math.fsum((mean - middle) ** 2 for mean in means) / (len(means) - 1)
        explained = within * fmean(1.0 / len(cluster) for cluster in clusters)
        shares = math.fsum((len(cluster) / count) ** 2 for cluster in clusters)
        parts.append((max(between - explained, 0.0) * shares, len(clusters) - 1.0))
    if inside:
        parts.append((within / count, float(inside)))
    return parts


def _clusters(timed: Sequence[tuple[Row, Judged]]) -> tuple[bool, list[Logs]]:
    """Return the logarithms of the changes by family; of one family by model."""
    by_family = _grouped(timed, _family)
    if len(by_family) > 1:
        return True, by_family
    return False, _grouped(timed, lambda row: str(row.get("model")))


def _grouped(timed: Sequence[tuple[Row, Judged]], key: Callable[[Row], str]) -> list[Logs]:
    groups: dict[str, list[float]] = {}
    for row, figure in timed:
        groups.setdefault(key(row), []).append(math.log1p(figure.worse_by))
    return list(groups.values())


def _family(row: Row) -> str:
    """Return the family; a model whose family is unknown is a family of its own."""
    family = row.get("family")
    return str(row.get("model") if family in (None, "", Family.UNKNOWN) else family)


#: What a case's variants are told apart by.
RAN_AS = ("device_name", "threads", "compiled")

Launches = Sequence[Row]
Variants = dict[Key, Launches]


@dataclass(frozen=True)
class Pair:
    """Launches of now and of before, of one question; either may be missing."""

    now: Launches = ()
    before: Launches = ()
    unlike: tuple[str, ...] = ()  # how they did not run alike
    among: tuple[Row, ...] = ()  # of several of now, which the baseline does not tell apart


def paired(now: Iterable[Row], before: Iterable[Row], columns: Collection[str]) -> Iterator[Pair]:
    """Every question of either side, with its partner where there is one.

    Args:
        now: rows of one machine.
        before: rows of the baseline: of each question its newest run counts.
        columns: what the baseline says of how it was asked and ran.
    """
    case_columns = [
        name for name in CONFIGURATION_COLUMNS if name in columns and name not in RAN_AS
    ]
    ran_as = [name for name in RAN_AS if name in columns]
    ours, theirs = _cases(now, case_columns), _cases(before, case_columns)
    for key in dict.fromkeys([*ours, *theirs]):
        mine, other = ours.get(key, []), theirs.get(key, [])
        yield from _of_case(_full(mine), _variants(other, ran_as), ran_as)


def _cases(rows: Iterable[Row], names: Sequence[str]) -> dict[Key, list[Row]]:
    cases: dict[Key, list[Row]] = {}
    for row in rows:
        cases.setdefault(values(row, names), []).append(row)
    return cases


def _full(rows: Sequence[Row]) -> Variants:
    """Questions of now, told apart by everything that there is to tell them apart by."""
    return _variants(rows, CONFIGURATION_COLUMNS) if rows else {}


def _variants(rows: Sequence[Row], by: Sequence[str]) -> Variants:
    """A case's variants, each by its newest run, with the launches that never opened."""
    opened: dict[Key, list[Row]] = {}
    never = []
    for row in rows:
        if _opened(row):
            opened.setdefault(values(row, by), []).append(row)
        else:
            never.append(row)
    variants: Variants = {key: newest_run(several) for key, several in opened.items()}
    if not never:
        return variants
    lost = newest_run(never)
    run, moment = lost[0].get("run_id"), _pairing_moment(lost)
    beside = {key: s for key, s in variants.items() if s[0].get("run_id") == run}
    if beside:
        return {**variants, **{key: [*launches, *lost] for key, launches in beside.items()}}
    newer = {
        key: launches for key, launches in variants.items() if _pairing_moment(launches) > moment
    }
    return newer or {(None,): lost}


def _of_case(ours: Variants, theirs: Variants, ran_as: Sequence[str]) -> Iterator[Pair]:
    answers: dict[Key, list[Launches]] = {}
    for launches in ours.values():
        key = values(launches[0], ran_as) if _opened(launches[0]) else (None,)
        answers.setdefault(key, []).append(launches)
    left = dict(theirs)
    alone: list[Launches] = []
    for key, several in answers.items():
        then = left.pop(key, None)
        if then is None:
            alone += several
        elif len(several) > 1:
            yield from (
                Pair(launches, then, among=tuple(o[0] for o in several)) for launches in several
            )
        else:
            yield Pair(several[0], then)
    # One variant on either side is the same case, which did not run alike, or not at all.
    if len(alone) == 1 and len(left) == 1:
        (then,) = left.values()
        yield Pair(alone[0], then, unlike=_apart(alone[0][0], then[0], ran_as))
        return
    yield from (Pair(now=launches) for launches in alone)
    yield from (Pair(before=then) for then in left.values())


def _apart(a: Row, b: Row, names: Sequence[str]) -> tuple[str, ...]:
    if not (_opened(a) and _opened(b)):
        return ()
    return tuple(
        f"{name} {b.get(name)} → {a.get(name)}" for name in names if a.get(name) != b.get(name)
    )


def _opened(row: Row) -> bool:
    return row.get("status") == Status.OK or row.get("threads") is not None


def _pairing_moment(rows: Launches) -> str:
    return max(str(row.get("started_at") or "") for row in rows)


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

    told: Collection[str] = CONFIGURATION_COLUMNS
    untold: Collection[str] = ()
    threshold: float | None = None
    allow: Collection[str] = ()
    known: Histories = field(default_factory=Histories)


#: A median says nothing of what a mean was.
_OTHER_FIGURE = "of one side a median latency is known, of the other a mean"


def _other_figure(then: RunMeasurement, good: RunMeasurement) -> str:
    """Why a figure that both sides have is not compared with the other's."""
    return rates_of_others(then.usable_rows, good.usable_rows) or _OTHER_FIGURE


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
    tried = [row for row in launches_of(before) if row["unusable_reason"] != UnusableReason.SKIPPED]
    pairs = list(paired(launches_of(now), tried, rules.told))
    both = [pair for pair in pairs if pair.now and pair.before]
    few = max(sum(min(len(pair.now), len(pair.before)) < FEWEST_LAUNCHES for pair in both), 1)
    sides = [_in_order(_good(side)) for pair in both for side in (pair.now, pair.before)]
    found = iter(merge_groups(sides))
    return Check(
        tuple(_checked(pair, next(found), next(found), rules, few) for pair in both),
        tuple(pair.before[0] for pair in pairs if not pair.now),
        tuple(pair.now[0] for pair in pairs if not pair.before),
        MISSING in rules.allow,
        rules.threshold,
    )


def _checked(
    pair: Pair, here: RunMeasurement, there: RunMeasurement, rules: Rules, few: int
) -> CheckedQuestion:
    good, then = here.launches, there.launches
    if not good or not then:
        return _not_run(pair, good, then)
    differs = differing(then, good)
    why = _unlike(pair, then, good, rules)
    if why:
        return CheckedQuestion(good[0], Outcome.CANNOT_TELL, (), why, differs, then[0])
    if job := published_again(then, good):
        why = f"both sides are one measurement, of job {job}, that was published again"
        return CheckedQuestion(good[0], Outcome.CANNOT_TELL, (), why, differs, then[0])
    values = {m.name: (_values(m, there), _values(m, here)) for m in METRICS}
    both = [m for m in METRICS if all(values[m.name])]
    alike = [metric for m in both if (metric := _common(m, there, here)) is not None]
    figures = tuple(
        _figure(m, _values(m, there), _values(m, here), (then, good), rules, few) for m in alike
    )
    outcome, why = outcome_of(figures, _why_open)
    useless = _useless(there, here)
    if useless and outcome not in BAD:
        outcome, why = Outcome.CANNOT_TELL, useless
    gone = [name for name, (before, now) in values.items() if before and not now]
    if gone and not useless and outcome not in BAD:
        outcome, why = Outcome.CANNOT_TELL, f"there is no {' and no '.join(gone)} any more"
    if len(alike) < len(both) and outcome not in BAD:
        outcome, why = Outcome.CANNOT_TELL, _other_figure(there, here)
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
        apart = [
            n
            for n in CONFIGURATION_COLUMNS
            if len({str(plain(row.get(n))) for row in pair.among}) > 1
        ]
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
    parts = [pool_runs([then, here]), rules.known.launches(now, metric)]
    noise = pool_noise([part for part in parts if part is not None])
    apart = None if of_one_run(before, now) else rules.known.for_gate(now, metric, here)
    sure = all(row["decisive"] for side in rows for row in side)
    known = NoisePrior(noise, apart, few)
    return judged(metric, then, here, known, rules.threshold, settled=sure)


def _useless(then: RunMeasurement, now: RunMeasurement) -> str:
    """Where the times of a side are of no use, which; what is left of it is not judged."""
    both = (("before", then), ("now", now))
    sides = {word: side.launches for word, side in both if not side.is_usable}
    why = ", ".join(dict.fromkeys(map(why_unusable, sides.values())))
    return f"times of {' and of '.join(sides)} are unusable: {why}" if sides else ""


def _counted(metric: Metric, side: RunMeasurement) -> Sequence[Row]:
    return side.usable_rows if metric.timed else side.launches


def _values(metric: Metric, side: RunMeasurement) -> list[float]:
    """One value a launch; nothing of time, rate or memory is ever 0."""
    figures = [metric.of(row) for row in _counted(metric, side)]
    return [value for value in figures if value is not None and 0 < value < math.inf]


def _common(metric: Metric, then: RunMeasurement, now: RunMeasurement) -> Metric | None:
    """A figure as both sides have it."""
    rows = [row for side in (then, now) for row in _counted(metric, side)]
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
    return [row for row in rows if row["answered"]]


def first_bad(rows: Sequence[Row]) -> Row:
    """Of launches the first that has no figures; of none such, the first."""
    return next((row for row in rows if row.get("status") != Status.OK), rows[0])


def reason_of(row: Row) -> str:
    """Why a result has no figures."""
    status = "wrong_outputs" if row["wrong_outputs"] else row.get("status")
    reason = str(row.get("reason") or status or "unknown")
    return f"{reason}: {row['message']}" if row.get("message") else reason

"""What was measured now beside a baseline: question by question, each figure judged apart. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import median

from accelbench.analysis.comparison import differences, refusals
from accelbench.analysis.judging import METRICS, Answer, Judged, Metric, Row, judged
from accelbench.analysis.questions import Key, plain
from accelbench.analysis.sides import newest
from accelbench.core.columns import ASKED
from accelbench.core.words import Status
from accelbench.measure.launches import LEAST_EFFECT, Noise, pooled, pooled_noise

#: What a question is told apart by once an engine has it open.
_SEEN_WHEN_OPEN = frozenset({"device_name", "threads", "compiled"})
#: Of so many questions that moved one way together, each says less of itself than of the machine.
_TOGETHER = 3


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
class Checked:
    """One question, then and now."""

    row: Row  # of now
    outcome: Outcome
    figures: tuple[Judged, ...] = ()
    why: str = ""  # it cannot be told, or does not run
    differs: tuple[str, ...] = ()  # conditions that are not alike
    before: Row | None = None


@dataclass(frozen=True)
class Check:
    """All questions of now, and those of the baseline that now has none of."""

    questions: tuple[Checked, ...]
    not_measured: tuple[Row, ...] = ()  # one row of each
    not_before: tuple[Row, ...] = ()

    @property
    def outcome(self) -> Outcome:
        """The answer to the whole: the worst that is known, else what is not."""
        found = {one.outcome for one in self.questions}
        if found & set(BAD):
            return Outcome.WORSE
        if Outcome.CANNOT_TELL in found or not found:
            return Outcome.CANNOT_TELL
        return Outcome.STEADY

    @property
    def together(self) -> float | None:
        """By how much all times changed alike, where they did: the machine, rather than each."""
        moved = [
            math.log1p(figure.worse_by)
            for one in self.questions
            for figure in one.figures
            if figure.metric.name == "latency"
        ]
        least = min((abs(one) for one in moved), default=0.0)
        alike = len({one > 0 for one in moved}) == 1
        if len(moved) < _TOGETHER or not alike or least < math.log1p(LEAST_EFFECT):
            return None
        return math.expm1(median(moved))


#: Noise of a question's metric, from what else is known of it: older runs of the same series.
KnownNoise = Callable[[Row, Metric], Noise | None]


def checked(
    now: Iterable[Row],
    before: Iterable[Row],
    *,
    told: Collection[str] = ASKED,
    threshold: float | None = None,
    allow: Collection[str] = (),
    known: KnownNoise | None = None,
) -> Check:
    """Hold what was measured now against a baseline.

    Args:
        now: rows of one machine.
        before: rows of the baseline: of each question its newest run counts.
        told: what the baseline says of how it was asked; a file may lack columns.
        threshold: what a change has to exceed at least, as a share.
        allow: of `comparison.REFUSED`, what is held against each other all the same.
        known: noise of launches, from what else is known.
    """
    ours, theirs = _questions(now, ASKED), _questions(before, told)
    answers: dict[Key, list[Sequence[Row]]] = {}
    for rows in ours.values():
        answers.setdefault(_key(rows[0], told), []).append(rows)
    found, fresh, left = [], [], dict(theirs)
    for key, several in answers.items():
        known_as = key if key in left else _twin(several[0], left, told)
        then = None if known_as is None else left.pop(known_as)
        if then is None:
            fresh += [rows[0] for rows in several]
        elif len(several) > 1:
            found += [_ambiguous(rows, several) for rows in several]
        else:
            found.append(_checked(several[0], then, threshold, allow, known))
    return Check(tuple(found), tuple(rows[0] for rows in left.values()), tuple(fresh))


def _questions(rows: Iterable[Row], told: Collection[str]) -> dict[Key, Sequence[Row]]:
    """The launches of each question's newest run; what was skipped was never asked."""
    found: dict[Key, list[Row]] = {}
    for row in rows:
        if row.get("status") != Status.SKIPPED:
            found.setdefault(_key(row, told), []).append(row)
    return {key: newest(several) for key, several in found.items()}


def _key(row: Row, told: Collection[str]) -> Key:
    return tuple(plain(row.get(name)) for name in ASKED if name in told)


def _twin(
    rows: Sequence[Row], others: Mapping[Key, Sequence[Row]], told: Collection[str]
) -> Key | None:
    """The same question of another fate: what never opened does not know how it would have run."""
    asked = [name for name in told if name not in _SEEN_WHEN_OPEN]
    return next(
        (
            key
            for key, several in others.items()
            if bool(_good(several)) != bool(_good(rows))
            and _key(several[0], asked) == _key(rows[0], asked)
        ),
        None,
    )


def _ambiguous(rows: Sequence[Row], several: Sequence[Sequence[Row]]) -> Checked:
    """The baseline has one figure for what are several questions now."""
    first = [one[0] for one in several]
    apart = [name for name in ASKED if len({str(plain(row.get(name))) for row in first}) > 1]
    why = f"the baseline does not say which {' and '.join(apart)} it is of"
    return Checked(rows[0], Outcome.CANNOT_TELL, why=why)


def _checked(
    now: Sequence[Row],
    before: Sequence[Row],
    threshold: float | None,
    allow: Collection[str],
    known: KnownNoise | None,
) -> Checked:
    good, then = _good(now), _good(before)
    if not good or not then:
        return _not_run(now, before, good, then)
    differs = tuple(differences(then[0], good[0]))
    unlike = [one for one in refusals(then[0], good[0]) if one not in allow]
    if unlike:
        why = f"not alike: {', '.join(unlike)}"
        return Checked(good[0], Outcome.CANNOT_TELL, (), why, differs, then[0])
    figures = tuple(
        figure
        for metric in METRICS
        if (figure := _figure(metric, then, good, threshold, known)) is not None
    )
    lost = len(now) - len(good)
    outcome, why = _of(figures)
    if lost and outcome not in BAD:
        reason = next(_reason(row) for row in now if row not in good)
        outcome, why = Outcome.BROKEN, f"{lost} of {len(now)} launches: {reason}"
    return Checked(good[0], outcome, figures, why, differs, then[0])


def _not_run(
    now: Sequence[Row], before: Sequence[Row], good: Sequence[Row], then: Sequence[Row]
) -> Checked:
    if then:
        return Checked(now[0], Outcome.BROKEN, why=_reason(now[0]), before=then[0])
    if good:
        return Checked(good[0], Outcome.MENDED, why=f"was {_reason(before[0])}", before=before[0])
    return Checked(now[0], Outcome.FAILS_STILL, why=_reason(now[0]), before=before[0])


def _figure(
    metric: Metric,
    before: Sequence[Row],
    now: Sequence[Row],
    threshold: float | None,
    known: KnownNoise | None,
) -> Judged | None:
    then, here = _values(metric, before), _values(metric, now)
    if not then or not here:
        return None
    parts = [pooled_noise([then, here]), known(now[0], metric) if known else None]
    noise = pooled([part for part in parts if part is not None])
    return judged(metric, then, here, noise, threshold)


def _values(metric: Metric, rows: Sequence[Row]) -> list[float]:
    """One value a launch, in order of time; nothing of time, rate or memory is ever 0."""
    found = (metric.of(row) for row in sorted(rows, key=_moment))
    return [value for value in found if value is not None and 0 < value < math.inf]


def _moment(row: Row) -> tuple[str, int]:
    return str(row.get("started_at") or ""), int(row.get("launch") or 0)


def _of(figures: Sequence[Judged]) -> tuple[Outcome, str]:
    answers = [figure.answer for figure in figures]
    if not answers:
        return Outcome.CANNOT_TELL, "there is no figure on both sides"
    if Answer.WORSE in answers:
        return Outcome.WORSE, ""
    if Answer.CANNOT_TELL in answers:
        few = next(one for one in figures if one.answer is Answer.CANNOT_TELL)
        why = f"{min(few.launches)} launches a side are too few at this noise"
        return Outcome.CANNOT_TELL, f"{why}: {few.required} would do"
    return (Outcome.BETTER if Answer.BETTER in answers else Outcome.STEADY), ""


def _good(rows: Sequence[Row]) -> list[Row]:
    return [row for row in rows if row.get("status") == Status.OK]


def _reason(row: Row) -> str:
    said = str(row.get("reason") or row.get("status") or "unknown")
    return f"{said}: {row['message']}" if row.get("message") else said

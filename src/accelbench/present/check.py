"""A check as a document, and as plain JSON values."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from accelbench.core.columns import CONFIGURATION_COLUMNS
from accelbench.core.formatting import format_count, join_first
from accelbench.core.result_statistics import changes_text
from accelbench.core.rows import Json, record, texts
from accelbench.exchange.titles import format_title
from accelbench.judge.regressions import BAD, Check, CheckedQuestion, JudgedSet, Outcome
from accelbench.judge.verdicts import Judged, Judgement
from accelbench.present.document import Document, GroupedTable, Notes, TableColumn, TableGroup, Tone
from accelbench.present.texts import phrase

_ORDER = list(Outcome)
_MUCH = 10.0
#: What is said of a change that is shown and does not count.
WITHIN_LIMIT = phrase("check.changed-within-limit")
#: Configurations of one reason that are named.
_MOST_NAMED = 8


def document(check: Check, about: Json) -> dict[str, object]:
    """All of it."""
    return {
        "outcome": check.outcome.value,
        **about,
        "moved_together_by": check.together,
        "all_configurations": _set(check.whole),
        "questions": [_question(question) for question in ordered(check)],
        "not_measured": [format_title(row) for row in check.not_measured],
        "not_in_baseline": [format_title(row) for row in check.not_before],
    }


def ordered(check: Check) -> list[CheckedQuestion]:
    """What is bad first, of one answer that which became worse by the most."""
    return sorted(
        check.questions,
        key=lambda question: (_place(question), -_worse_by(question), format_title(question.row)),
    )


def _worse_by(question: CheckedQuestion) -> float:
    every = question.figures
    of_it = [one.worse_by for one in every if one.answer.value == question.outcome.value]
    return round(
        max(of_it or [one.worse_by for one in every], default=0.0), 3
    )  # as it is shown: alike are in order of names


def sides(about: Json) -> str:
    """What is compared with what, and where."""
    labels = record(about, "labels")
    runs = [f"{run} ({labels[run]})" if run in labels else run for run in texts(about, "runs")]
    return phrase(
        "check.sides", runs=", ".join(runs), baseline=about["baseline"], machine=about["machine"]
    )


def headline(check: Check) -> str:
    """The answer in a line."""
    counts = Counter(question.outcome for question in check.questions)
    named = Counter(map(outcome_text, sorted(check.questions, key=_place)))
    summary = ", ".join(f"{count} {name}" for name, count in named.items())
    if not check.questions:
        return phrase("check.nothing-measured")
    if check.outcome is Outcome.WORSE:
        whole = f"{set_text(check.whole)}; " if check.is_set_worse else ""
        return phrase("check.worse-baseline", whole=whole, summary=summary)
    if check.outcome is Outcome.CANNOT_TELL:
        return _open(check, counts)
    return phrase("check.nothing-became-worse", summary=summary)


def outcome_text(question: CheckedQuestion) -> str:
    """Return the outcome, or that a change was shown which is within the limit."""
    if question.outcome is Outcome.STEADY and any(map(_is_within, question.figures)):
        return WITHIN_LIMIT
    return question.outcome.value


def _place(question: CheckedQuestion) -> int:
    return _ORDER.index(question.outcome)


def _is_within(figure: Judged) -> bool:
    if figure.answer is not Judgement.STEADY or figure.low is None or figure.high is None:
        return False
    return not figure.low <= 0.0 <= figure.high


def set_text(judged: JudgedSet | None) -> str:
    """Return what all configurations came to together: "all 1,143 configurations: 20 % slower"."""
    if judged is None:
        return ""
    slower = judged.worse_by >= 0.0
    ends = [judged.worse_by, judged.low, judged.high]
    middle, low, high = (100.0 * (end if slower else -end) for end in ends)
    near, far = sorted((low, high))
    word = "slower" if slower else "faster"
    return phrase(
        "check.all-configurations",
        configurations=judged.configurations,
        middle=middle,
        word=word,
        near=near,
        far=far,
    )


def _open(check: Check, counts: Mapping[Outcome, int]) -> str:
    many, left = len(check.questions), counts[Outcome.CANNOT_TELL]
    answered = [one for one in check.questions if one.outcome is not Outcome.CANNOT_TELL]
    named = Counter(map(outcome_text, sorted(answered, key=_place)))
    parts = (
        [phrase("check.not-answered", left=left, many=format_count(many, "question"))]
        if left and many > 1
        else []
    )
    parts += [f"{count} {name}" for name, count in named.items()]
    parts += [f"{len(check.not_measured)} not measured"] if check.not_measured else []
    which = "anything" if many > 1 or check.not_measured else "it"
    sentence = phrase("check.inconclusive", which=which)
    return f"{sentence}: {', '.join(parts)}" if parts else sentence


def shown(question: CheckedQuestion) -> list[Judged]:
    """The figures worth a line: all where something is to be seen, else the time alone."""
    if question.outcome in BAD or question.outcome in (Outcome.CANNOT_TELL, Outcome.BETTER):
        return list(question.figures)
    return [figure for n, figure in enumerate(question.figures) if n == 0 or _is_within(figure)]


def interval_levels(check: Check) -> str:
    """Return the probability of the intervals of a check, such as "98 %"; "" without any."""
    levels = {
        figure.level
        for question in check.questions
        for figure in question.figures
        if figure.low is not None
    }
    return " or ".join(f"{100 * level:.0f} %" for level in sorted(levels))


def change(figure: Judged) -> str:
    """How the figure itself changed, by its own sign, with the interval of it."""
    percent = f"{figure.now / figure.before - 1.0:+.1%}"
    if figure.low is None or figure.high is None:
        return percent
    ends = [figure.low, figure.high]
    if not figure.metric.lower_is_better:
        ends = [-end / (1.0 + end) if end > -1.0 else math.inf for end in reversed(ends)]
    return f"{percent} ({changes_text(ends[0], ends[1], _share)})"


def unusable_times(check: Check) -> list[str]:
    """Return a sentence for each reason for which times are not judged; it precedes all tables."""
    titles_by_reason = _titles_by(ordered(check), lambda question: question.unusable)
    return [
        f"Not judged: {join_first(titles, _MOST_NAMED, '; ')}. Their {why}."
        for why, titles in titles_by_reason.items()
    ]


def sentences(check: Check, about: Json) -> Iterable[str]:
    """What has to be said of it below any table."""
    figures = [figure for question in check.questions for figure in question.figures]
    yield from _reasons(check)
    yield from _of_the_set(check.whole)
    if plain := [figure for figure in figures if figure.plain]:
        before, now = (min(figure.launches[side] for figure in plain) for side in (0, 1))
        where = "on each side"
        if max(before, now) > 1:
            where = "in the baseline" if before < now else phrase("check.side-candidate")
        limits = [figure.limit for figure in plain if figure.metric.timed]
        shows = phrase("check.shows-from", limits=_span(limits)) if limits else "it shows"
        yield phrase("check.single-launch", where=where, shows=shows)
    if pairs := [figure for figure in figures if figure.paired]:
        yield phrase("check.judged-pairs-launches", limits=_limits(pairs, "pairs"))
    launched = [figure for figure in figures if not figure.plain and not figure.paired]
    if launched:
        sided = ", one-sided" if any(figure.runs is not None for figure in launched) else ""
        yield f"Judged by launches (Welch's t at 1 %{sided}): {_limits(launched, 'launches')}."
        runs = [figure.runs for figure in launched if figure.runs and figure.metric.timed]
        if runs:
            learned = any(math.isfinite(run.freedom) for run in runs)
            yield (
                phrase("check.noise-of-runs", runs=_span(run.value for run in runs))
                + (phrase("check.noise-stored") if learned else phrase("check.noise-assumed"))
            )
    if check.together is not None:
        yield phrase("check.all-times-moved", together=check.together)
    differs = sorted({text for question in check.questions for text in question.differs})
    if differs:
        more = (
            phrase("check.more-differences", differs=len(differs) - 8) if len(differs) > 8 else ""
        )
        yield f"Not alike: {'; '.join(differs[:8])}{more}."
    allow = "" if check.may_miss else phrase("check.allow-missing-lets")
    of_baseline = (phrase("check.baseline-was"), phrase("check.baseline-were"))
    for rows, verbs, words in (
        (check.not_measured, of_baseline, f"measured now{allow}"),
        (check.not_before, ("is", "are"), "in the baseline"),
    ):
        if rows:
            names = "; ".join(format_title(row) for row in rows[:4])
            more = "; …" if len(rows) > 4 else ""
            yield f"{len(rows)} {verbs[len(rows) > 1]} not {words}: {names}{more}."
    yield from texts(about, "notes")


def _reasons(check: Check) -> Iterable[str]:
    open_questions = [one for one in ordered(check) if one.why != one.unusable]
    for why, titles in _titles_by(open_questions, lambda question: question.why).items():
        many = len(titles) > _MOST_NAMED
        for name in [f"{len(titles):,} configurations"] if many else titles:
            yield f"{name}: {why}."


def _titles_by(
    questions: Iterable[CheckedQuestion], reason: Callable[[CheckedQuestion], str]
) -> dict[str, list[str]]:
    titles: dict[str, list[str]] = {}
    for question in questions:
        if why := reason(question):
            titles.setdefault(why, []).append(format_title(question.row))
    return titles


def _of_the_set(judged: JudgedSet | None) -> Iterable[str]:
    if judged is None:
        return
    groups = "families" if judged.by_family else "models"
    yield phrase(
        "check.judged-together",
        set_text=set_text(judged),
        clusters=judged.clusters,
        groups=groups,
        limit=_percent(judged.limit),
    )


def _set(judged: JudgedSet | None) -> dict[str, object] | None:
    if judged is None:
        return None
    return {
        "configurations": judged.configurations,
        "clusters": judged.clusters,
        "worse_by": judged.worse_by,
        "worse_by_low": judged.low,
        "worse_by_high": judged.high,
        "limit": judged.limit,
        "answer": judged.answer.value,
        "noise_of_runs": None if judged.runs is None else judged.runs.value,
    }


def answer(figure: Judged) -> str:
    """Return the answer to a figure: "within" the limit if it changed by too little to count."""
    return f"within {_percent(figure.limit)}" if _is_within(figure) else figure.answer.value


def _percent(value: float) -> str:
    return f"{100 * value:.2g}%"


def _share(value: float) -> str:
    return f"{value:+.1%}" if value < _MUCH else f"> +{_MUCH:.0%}"


def _limits(figures: Sequence[Judged], what: str) -> str:
    metrics_by_limits: dict[str, list[str]] = {}
    for name in dict.fromkeys(figure.metric.name for figure in figures):
        own = [figure for figure in figures if figure.metric.name == name]
        known = [figure.least_shown for figure in own if figure.least_shown is not None]
        limits = f"from {_span(figure.limit for figure in own)} on"
        limits += phrase("check.detectable-change", what=what, known=_span(known)) if known else ""
        metrics_by_limits.setdefault(limits, []).append(name)
    if len(metrics_by_limits) == 1:
        return phrase("check.limits-of-all", metrics_by_limits=next(iter(metrics_by_limits)))
    each = [f"{' and '.join(names)} {limits}" for limits, names in metrics_by_limits.items()]
    return phrase("check.limits-by-metric", each="; for ".join(each))


def _span(values: Iterable[float]) -> str:
    known = sorted(values)
    low, high = (
        f"{v:.1%}" if v < _MUCH else f"more than {_MUCH:.0%}" for v in (known[0], known[-1])
    )
    return low if low == high else f"{low} – {high}"


def _question(question: CheckedQuestion) -> dict[str, object]:
    return {
        "what": format_title(question.row),
        **{name: question.row.get(name) for name in CONFIGURATION_COLUMNS},
        "run_id": question.row.get("run_id"),
        "baseline_run_id": None if question.before is None else question.before.get("run_id"),
        "outcome": question.outcome.value,
        "why": question.why,
        "unusable_times": question.unusable or None,
        "differs": list(question.differs),
        "figures": [_figure(figure) for figure in question.figures],
    }


def _figure(figure: Judged) -> dict[str, object]:
    return {
        "metric": figure.metric.name,
        "figure": figure.metric.statistic and figure.metric.statistic.value,
        "unit": figure.metric.header,
        "before": figure.before,
        "now": figure.now,
        "worse_by": figure.worse_by,
        "worse_by_low": figure.low,
        "worse_by_high": figure.high,
        "interval_level": figure.level,
        "answer": figure.answer.value,
        "limit": figure.limit,
        "launches_before": figure.launches[0],
        "launches_now": figure.launches[1],
        "launches_required_now": figure.required,
        "launches_required_a_side": figure.required_both,
        "noise": None if figure.noise is None else figure.noise.value,
        "noise_of_runs": None if figure.runs is None else figure.runs.value,
        # None too if the deviation is taken as known.
        "noise_of_runs_freedom": None
        if figure.runs is None or math.isinf(figure.runs.freedom)
        else figure.runs.freedom,
        "least_shown": figure.least_shown,
        "by_plain_threshold": figure.plain,
        "by_pairs": figure.paired,
        **_times_as_fast(figure),
    }


def _times_as_fast(figure: Judged) -> dict[str, float | None]:
    if not figure.metric.timed:
        return {}
    low, high = (None if end is None else 1.0 / (1.0 + end) for end in (figure.high, figure.low))
    return {
        "times_as_fast": 1.0 / (1.0 + figure.worse_by),
        "times_as_fast_low": low,
        "times_as_fast_high": high,
    }


_MARKS = {
    **dict.fromkeys(BAD, Tone.BAD),
    Outcome.CANNOT_TELL: Tone.OPEN,
    Outcome.BETTER: Tone.GOOD,
}
_COLUMNS = (
    TableColumn("figure"),
    TableColumn("before → now", is_number=True),
    TableColumn("change"),
    TableColumn("answer", is_whole=True),
)


def presented(check: Check, about: Json) -> Document:
    """Return a check as a document: its configurations, the worst first, and the verdict."""
    return Document(
        sides(about),
        (
            Notes(unusable_times(check)),
            GroupedTable("what", _COLUMNS, [_group(question) for question in ordered(check)]),
            Notes(list(sentences(check, about)), is_list=True),
        ),
        data=lambda: document(check, about),
        verdict=headline(check),
        tone=_MARKS.get(check.outcome, Tone.GOOD),
    )


def _group(question: CheckedQuestion) -> TableGroup:
    rows = [
        (
            f"{figure.metric.title}, {figure.metric.header}",
            f"{figure.before:.4g} → {figure.now:.4g}",
            change(figure),
            answer(figure),
        )
        for figure in shown(question)
    ]
    return TableGroup(
        format_title(question.row),
        rows,
        outcome_text(question),
        _MARKS.get(question.outcome, Tone.PLAIN),
        is_minor=question.outcome not in (*BAD, Outcome.CANNOT_TELL),
    )

"""A check as Markdown: what a pull request shows of it."""

from __future__ import annotations

from collections.abc import Iterable

from accelbench.analysis.checking import BAD, Check, CheckedQuestion, Outcome
from accelbench.core.rows import Json
from accelbench.core.visible import markdown
from accelbench.exchange.markdown_export import table
from accelbench.exchange.titles import title
from accelbench.report.check import (
    answer,
    change,
    headline,
    ordered,
    sentences,
    shown,
    sides,
    unusable_times,
)

_HEADINGS = ("what", "figure", "before", "now", "change", "answer")
_RIGHT = frozenset({"before", "now", "change"})
_MARKS = {Outcome.WORSE: "❌", Outcome.CANNOT_TELL: "❔"}


def summary(check: Check, about: Json) -> str:
    """The whole: what is bad or unknown in sight, the rest folded away."""
    lines = [f"### {_MARKS.get(check.outcome, '✅')} {markdown(headline(check))}", ""]
    lines += [f"{markdown(sides(about), begins=True)}.", ""]
    for sentence in unusable_times(check):
        lines += [markdown(sentence, begins=True), ""]
    seen = [
        question for question in ordered(check) if question.outcome in (*BAD, Outcome.CANNOT_TELL)
    ]
    rest = [question for question in ordered(check) if question not in seen]
    if seen:
        lines += [*table(_HEADINGS, _rows(seen), _RIGHT), ""]
    if rest:
        lines += [
            f"<details><summary>{len(rest)} {'other' if len(rest) == 1 else 'others'}</summary>",
            "",
        ]
        lines += [*table(_HEADINGS, _rows(rest), _RIGHT), "", "</details>", ""]
    lines += [f"- {markdown(sentence, begins=True)}" for sentence in sentences(check, about)]
    return "\n".join(lines) + "\n\n"


def _rows(questions: Iterable[CheckedQuestion]) -> Iterable[list[str]]:
    for question in questions:
        figures = shown(question)
        if not figures:
            yield [title(question.row), "", "", "", "", question.outcome.value]
        for number, figure in enumerate(figures):
            yield [
                "" if number else title(question.row),
                f"{figure.metric.title}, {figure.metric.header}",
                f"{figure.before:.4g}",
                f"{figure.now:.4g}",
                change(figure),
                answer(figure),
            ]

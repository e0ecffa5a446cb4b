"""What a test's limits and baseline come to together: passed, failed, or can't tell."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import pytest

from accelbench.core.errors import AccelbenchError, UsageError
from accelbench.core.formatting import NO_DATA, format_count, format_value
from accelbench.core.result_statistics import read_spread
from accelbench.core.rows import Row
from accelbench.core.safe_text import in_quotes, visible
from accelbench.evidence.launches import launches_of
from accelbench.exchange.titles import format_title
from accelbench.judge.baselines import (
    ALLOWED,
    BaselineQuery,
    OtherMachineError,
    baseline_for,
    names_a_file,
)
from accelbench.judge.filters import marks
from accelbench.judge.regressions import Outcome
from accelbench.judge.run_names import UnknownRunError, labels_of, runs_meant
from accelbench.judge.suggestions import NothingMeasuredError
from accelbench.present.check import headline
from accelbench.pytest_plugin import NEW_BASELINE
from accelbench.pytest_plugin.limits import CaseFigures, figures_of, missed
from accelbench.recommend.constraints.limits import Limits, spelled
from accelbench.store.opening import open_store

if TYPE_CHECKING:
    from accelbench.judge.regressions import Check

_UNITS = {"max_latency_ms": "ms", "memory_mb": "MB", "min_throughput": ""}


class GateAnswer(StrEnum):
    """Of a limit or a baseline, by the exit codes of `check`: 0, 1 and 4."""

    PASSED = "passed"
    FAILED = "failed"
    CANNOT_TELL = "can't tell"


@dataclass(frozen=True)
class GateVerdict:
    """One answer: in a word or two for a table, and why for whoever reads the failure."""

    answer: GateAnswer
    words: str
    why: str = ""


def worst(verdicts: Iterable[GateVerdict]) -> GateAnswer:
    """The answer to all of them: what failed, else what cannot be told."""
    answers = {verdict.answer for verdict in verdicts}
    order = (GateAnswer.FAILED, GateAnswer.CANNOT_TELL)
    return next((answer for answer in order if answer in answers), GateAnswer.PASSED)


def cases_of(rows: Sequence[Row]) -> list[list[Row]]:
    """The launches of each case, in the order of the first."""
    cases: dict[tuple[object, object], list[Row]] = {}
    for row in launches_of(rows):
        cases.setdefault((row.get("case_id"), row.get("device")), []).append(row)
    return list(cases.values())


def figures_or_why(rows: Sequence[Row]) -> CaseFigures | str:
    """The figures of a case, or why it has none: each launch has to answer."""
    lost = [row for row in rows if not row["answered"]]
    if not lost:
        return figures_of(rows)
    first = lost[0]
    why = first.get("message") or first.get("reason") or first.get("verification")
    many = f", in {len(lost)} of {len(rows)} launches" if len(lost) < len(rows) else ""
    return f"{format_title(first)}: {first.get('status')}{many}: {why}"


def of_limits(figures: CaseFigures, limits: Limits) -> list[GateVerdict]:
    """A verdict for each limit."""
    reasons = {reason.limit: reason for reason in missed(figures, limits)}
    verdicts = []
    for name, limit in limits.given.items():
        amount = f"{spelled(limit)} {_UNITS[name] or f'{figures.unit}/s'}"
        reason = reasons.get(name)
        if reason is None:
            least = name.startswith("min")
            words = f"at least {amount}" if least else f"within {amount}"
            verdicts.append(GateVerdict(GateAnswer.PASSED, words))
            continue
        why = f"{format_title(figures.rows[0])}: {reason.text}"
        answer = GateAnswer.CANNOT_TELL if reason.open else GateAnswer.FAILED
        beyond = "below" if name.startswith("min") else "above"
        words = f"{answer}: {amount}" if reason.open else f"{beyond} {amount}"
        verdicts.append(GateVerdict(answer, words, why))
    return verdicts


@dataclass(frozen=True)
class BaselineQuestion:
    """What a test asks about a baseline.

    Attributes:
        word: as `check --baseline` takes it; None for what was measured before.
        threshold: what a change has to exceed, as a share.
        allow: what is compared although it is not alike.
    """

    word: str | None
    threshold: float | None = None
    allow: tuple[str, ...] = ("weights",)

    def __post_init__(self) -> None:
        from accelbench.cli.arguments.shared_options import refuse_threshold

        threshold: object = self.threshold
        plain = isinstance(threshold, (int, float)) and not isinstance(threshold, bool)
        if threshold is not None and not plain:
            raise UsageError(
                f"threshold takes a number, not {in_quotes(threshold)}.", "0.1 stands for 10 %."
            )
        refuse_threshold(self.threshold)
        unknown = [name for name in self.allow if name not in ALLOWED]
        if unknown:
            raise UsageError(
                f"There is nothing {in_quotes(unknown[0])} to allow.",
                f"Known: {', '.join(ALLOWED)}.",
            )


def checked_against(
    question: BaselineQuestion, database: str, models: Sequence[str], runs: Sequence[str]
) -> tuple[Check, Mapping[str, Any]] | str:
    """What `accelbench check` says of these runs, or why it cannot say anything.

    Raises:
        UnknownRunError: the baseline does not exist.
        AccelbenchError: a word is off, or the database cannot be read.
    """
    sought = BaselineQuery({"model": tuple(models)}, tuple(runs), None, question.allow)
    try:
        reference = baseline_for(open_store(database), question.word, sought)
    except (NothingMeasuredError, OtherMachineError) as error:
        return error.message
    return reference.check(question.threshold), reference.about(question.threshold)


def of_baseline(
    question: BaselineQuestion, database: str, models: Sequence[str], runs: Sequence[str]
) -> GateVerdict:
    """Return the verdict of `accelbench check` on what was just measured.

    A baseline that does not exist fails: a misspelt one would let every change pass.
    """
    against = f"against {question.word}"
    try:
        checked = checked_against(question, database, models, runs)
    except UnknownRunError as error:
        why = f"{error}\n{NEW_BASELINE} makes what is measured now the baseline."
        return GateVerdict(GateAnswer.FAILED, f"no baseline {question.word}", why)
    if isinstance(checked, str):
        words = f"{GateAnswer.CANNOT_TELL} {against}"
        return GateVerdict(GateAnswer.CANNOT_TELL, words, checked)
    check, about = checked
    outcomes = list(dict.fromkeys(one.outcome.value for one in check.questions))
    words = f"{', '.join(outcomes) or GateAnswer.CANNOT_TELL} {against}"
    if check.outcome is Outcome.WORSE:
        # The first line is what a summary of failures shows.
        return GateVerdict(GateAnswer.FAILED, words, f"{headline(check)}.\n{told(check, about)}")
    if check.outcome is Outcome.CANNOT_TELL:
        why = "; ".join(dict.fromkeys(one.why for one in check.questions if one.why))
        if check.not_measured:
            missing = "; ".join(format_title(row) for row in check.not_measured)
            why = "; ".join(filter(None, (why, f"not measured now: {missing}")))
        return GateVerdict(GateAnswer.CANNOT_TELL, words, f"{against}: {why}")
    return GateVerdict(GateAnswer.PASSED, words)


def can_create(word: str, database: str, model: str) -> bool:
    """Return whether a run that gets this label becomes the baseline of a model.

    It does if nothing has that name, or only labelled runs have it, without the model. The runs of
    a branch would be hidden by a label of its name.
    """
    if names_a_file(word):
        return False
    stored = open_store(database)
    if not stored.exists:
        return True
    stored.fill()
    with stored.keep_open():
        try:
            runs = runs_meant(stored, word)
        except UnknownRunError:
            return True
        if word not in labels_of(stored, runs).values():
            return False
        _, rows = stored.query(
            "SELECT 1 FROM benchmark_results"  # noqa: S608 — as many marks as runs
            f" WHERE model = ? AND run_id IN ({marks(runs)}) LIMIT 1",
            [model, *runs],
        )
        return not rows


def told(check: Check, about: Mapping[str, Any]) -> str:
    """Return a check as `accelbench check` shows it, as plain text."""
    from accelbench.present.check import presented
    from accelbench.present.terminal.documents import show

    stream = io.StringIO()
    show(presented(check, about), stream)
    return "\n".join(line.rstrip() for line in stream.getvalue().splitlines())


Line = Mapping[str, Any]

_COLOURS = {GateAnswer.FAILED: "red", GateAnswer.CANNOT_TELL: "yellow"}


def show(
    terminal: pytest.TerminalReporter, lines: Sequence[Line], baseline: str | None = None
) -> None:
    """Write both.

    Args:
        terminal: where to.
        lines: what was measured, as the fixture leaves it.
        baseline: what all of it is compared with; "" for what was measured before, None for
            nothing.
    """
    lines = sorted(lines, key=lambda line: (line["started_at"], line["what"]))
    terminal.section("accelbench", sep="=")
    heading, *rows = _table(lines)
    terminal.write_line(heading, bold=True)
    for line, row in zip(lines, rows, strict=True):
        colour = _COLOURS.get(GateAnswer(line["answer"]))
        terminal.write_line(row, **({colour: True} if colour else {}))
    databases = list(dict.fromkeys(line["database"] for line in lines if line["database"]))
    runs = len({line["run_id"] for line in lines if line["database"]})
    if runs:
        terminal.write_line(f"{format_count(runs, 'run')} in {', '.join(map(visible, databases))}")
    if baseline is not None:
        for database in databases:
            own = [line for line in lines if line["database"] == database]
            _compare(terminal, own, database, baseline or None)


def _compare(
    terminal: pytest.TerminalReporter, lines: Sequence[Line], database: str, baseline: str | None
) -> None:
    """Every test against a baseline, as `accelbench check` says it; no test's outcome changes."""
    terminal.section(
        f"accelbench: against {visible(baseline or 'what was measured before')}", sep="-"
    )
    models = sorted({line["model"] for line in lines})
    runs = list(dict.fromkeys(line["run_id"] for line in lines))
    try:
        checked = checked_against(BaselineQuestion(baseline), database, models, runs)
    except AccelbenchError as error:
        checked = str(error)
    if isinstance(checked, str):
        terminal.write_line(f"Can't tell: {checked}", yellow=True)
        return
    for text in told(*checked).splitlines():
        terminal.write_line(text)


def _table(lines: Sequence[Line]) -> list[str]:
    """Its lines, the heading first; figures stand to the right."""
    times = {f"{line['statistic']} ms" for line in lines if line.get("statistic")}
    heading = times.pop() if len(times) == 1 else "ms"
    rows = [
        ("measured", heading, "95 %", "rate", "peak MB", "launches", "answer"),
        *(_cells(line) for line in lines),
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    last = len(widths) - 1
    return [
        "  ".join(
            cell.ljust(width) if place in (0, last) else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def _cells(line: Line) -> tuple[str, ...]:
    latency, rate, memory = (line.get(name) for name in ("latency", "rate", "memory"))
    return (
        line["what"],
        format_value(latency[1]) if latency else NO_DATA,
        _interval(line),
        f"{format_value(rate[1])} {line['unit']}" if rate else NO_DATA,
        format_value(memory[1]) if memory else NO_DATA,
        str(line["launches"]),
        "; ".join(map(visible, line["verdicts"])),
    )


def _interval(line: Line) -> str:
    """Return the interval of launches, or of the samples of one; "no data" without any."""
    spread = read_spread(line.get("latency_spread"))
    return spread.text(line["latency"][1], format_value) if spread else NO_DATA

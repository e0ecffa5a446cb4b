"""The cells of a comparison's tables: a row is a side. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from accelbench.core.figures import Statistic, unit_beside, unit_of_all
from accelbench.core.nouns import NO_DATA, NOT_KNOWN
from accelbench.core.rows import record, text
from accelbench.judge.accuracies import accuracy_among, accuracy_heading
from accelbench.judge.comparison import Compared, doubtful
from accelbench.judge.questions import ComparisonAxis
from accelbench.judge.ratios import Ratio
from accelbench.judge.versions import engine_version, versions_apart
from accelbench.present.terminal.words import figure, mean_note

#: Behind a ratio of two that did not run alike, and of one of which no interval is known; behind a
#: figure of which nothing is judged.
UNLIKE, NO_INTERVAL, UNUSABLE = "≠", "single", "?"
_LONG = 30

Lines = Sequence[Compared]


def place(line: Compared, axis: ComparisonAxis, labels: Mapping[str, str] | None = None) -> str:
    """Where a side stands on the axis; `labels` are of runs, by their ids."""
    if axis.name == "date":
        return str(axis.value(line.side.row)[0] or NO_DATA)
    known = [str(value) for value in line.side.value if value is not None]
    if axis.name == "run" and labels:
        known += [f"({labels[run]})" for run in known if run in labels]
    return " ".join(known) or NO_DATA


def accuracy_title(lines: Lines) -> str:
    """What the column of accuracies is called."""
    return accuracy_heading([row for line in lines for row in line.side.rows])


def accuracies(lines: Lines) -> list[str]:
    """What each side's outputs are worth against labels."""
    known = [accuracy_among(line.side.rows) for line in lines]
    return [NO_DATA if accuracy is None else accuracy.shown for accuracy in known]


def places(lines: Lines, axis: ComparisonAxis, labels: Mapping[str, str]) -> list[str]:
    """The places of a table, with the versions of their engines where these differ."""
    names = [place(line, axis, labels) for line in lines]
    if "runtime" in axis.along:
        return names
    return [
        f"{name} ({version})" if version else name
        for name, version in zip(names, _versions(lines), strict=True)
    ]


def engines(lines: Lines) -> list[str]:
    """What ran each side: the engine, with its version where these differ."""
    known = [str(line.side.row.get("runtime") or "") for line in lines]
    return [
        version if version.startswith(engine) or not engine else version or engine
        for engine, version in zip(known, _versions(lines), strict=True)
    ]


def _versions(lines: Lines) -> list[str]:
    rows = [line.side.row for line in lines]
    apart = versions_apart(rows)
    return [in_short(engine_version(row)) if apart else "" for row in rows]


def threads(lines: Lines, axis: ComparisonAxis) -> list[str]:
    """Threads of each side, where they went along with the axis and are not the same."""
    known = [line.side.row.get("threads") for line in lines]
    if "threads" not in axis.along or len({number for number in known if number}) < 2:
        return [NO_DATA] * len(lines)
    return [str(number) if number else NO_DATA for number in known]


def submissions(lines: Lines) -> list[str]:
    """Who submitted a figure, and of how many alike it is the fastest."""
    return [_submission(line) for line in lines]


def _submission(line: Compared) -> str:
    by = text(record(line.side.row, "conditions"), "Submitter")
    parts = [by] if by else []
    if span := line.side.range_alike:
        low, high, kind = span
        unit = "" if kind is Statistic.RATE else " ms an item"
        parts.append(f"fastest of {line.side.fastest_of}: {figure(low)} … {figure(high)}{unit}")
    return ", ".join(parts) or NO_DATA


def time_heading(lines: Lines) -> str:
    """The figure that all times are, where they are one."""
    statistics = {line.side.step[1] for line in lines if line.side.step is not None}
    return f"{statistics.pop()} ms" if len(statistics) == 1 else "latency ms"


def times(lines: Lines) -> list[str]:
    """Latencies, each with the figure that it is where they are not all of one."""
    known = [line.side.step for line in lines]
    mixed = len({step[1] for step in known if step is not None}) > 1
    return [
        NO_DATA
        if step is None
        else figure(step[0])
        + (f" {step[1]}" if mixed else "")
        + _of_no_use(line)
        + mean_note(line.side.rows)
        for line, step in zip(lines, known, strict=True)
    ]


def rate_unit(lines: Lines) -> str:
    """What is counted, where all count the same."""
    return unit_of_all(line.side.row for line in lines)


def rate(line: Compared, heading: str) -> str:
    """A throughput, with its unit where the heading says another."""
    mark = _of_no_use(line) if line.side.throughput is not None else ""
    return f"{figure(line.side.throughput)}{mark} {unit_beside(line.side.row, heading)}".rstrip()


def _of_no_use(line: Compared) -> str:
    return "" if line.side.usable else UNUSABLE


def speed(line: Compared, axis: ComparisonAxis) -> str:
    """How many times as fast, with all that has to be known of it."""
    if line.refused:
        return "refused" if line.baseline else NO_DATA
    if line.is_baseline or line.ratio is None:
        return "baseline knee" if line.knee else "baseline"
    ratio = line.ratio
    known = ratio.low is not None and ratio.high is not None
    ends = f" ({_ends(ratio)})" if known else ""
    cell = f"{figure(ratio.value)}×{ends}" if ratio.told else f"{ratio.direction}{ends}"
    if unlike(line):
        cell += f" {UNLIKE}"
    if axis.name == "batch" and line.efficiency is not None:
        cell += f", {line.efficiency:.0%}"
    if not known:
        cell += f", {NO_INTERVAL}"
    return f"{cell} knee" if line.knee else cell


def unlike(line: Compared) -> list[str]:
    """What is not alike of how it ran: a submission's words about itself are told by --json."""
    return doubtful(line.differs)


def in_short(value: str) -> str:
    """A value that leaves room for others."""
    return value if len(value) <= _LONG else f"{value[: _LONG - 1]}…"


def _ends(ratio: Ratio) -> str:
    ends = ratio.ends_text(figure, " … ")
    return f"interval {ends}" if ends == NOT_KNOWN else ends

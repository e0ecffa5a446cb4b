"""A comparison for people: a table a question, and below all of them what was not alike."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import IO, TYPE_CHECKING

from accelbench.analysis.comparison import Compared
from accelbench.analysis.cost_words import cost_notes, money
from accelbench.analysis.costs import items_of
from accelbench.analysis.questions import DESCRIBING, Axis
from accelbench.analysis.ratios import CANNOT_TELL, SAMPLES
from accelbench.analysis.sides import PER_MILLION
from accelbench.cli.display.headings import headings
from accelbench.cli.display.words import MISSING, figure, other_machines
from accelbench.core.failing import launches_failed
from accelbench.core.figures import MEANS, Statistic
from accelbench.core.rates import unit_beside, unit_of_all
from accelbench.core.words import Provenance
from accelbench.core.worth import WHY_UNUSABLE
from accelbench.exchange.prices import USUAL_CURRENCY, Prices, sign_of

if TYPE_CHECKING:
    from rich.table import Table

_ONE_LAUNCH = (
    "One launch says nothing of how far another would differ: for intervals measure with"
    " --launches 5 or more."
)
_WITHIN = (
    "Intervals of single launches are of their samples: how far another launch would differ they do"
    " not say; --launches 5 or more does."
)
_ONE_FIGURE = (
    "Single imported results have no interval: small differences between them cannot be judged."
)
#: Between two columns, and at both edges together; and what a name gets however little room it has.
_BETWEEN, _NARROWEST = 3, 8
#: Longer units would take the room that devices need.
_LONGEST_UNIT = 9
_NAMES, _PAIRS, _LONG = 8, 3, 30
#: What tells most of how far two figures are alike.
_FIRST = ("figure ", "unit ")

#: Behind a ratio of two that did not run alike.
_UNLIKE = "≠"

Lines = Sequence[Compared]


def show(
    found: Sequence[Lines],
    axis: Axis,
    machine: str = "",
    others: Sequence[str] = (),
    stream: IO[str] | None = None,
    labels: Mapping[str, str] | None = None,
    prices: Prices | None = None,
) -> None:
    """Print it; `labels` are of runs, by their ids; costs are in the currency of `prices`."""
    from rich.text import Text

    from accelbench.cli.display.console import console as made_for

    console = made_for(stream)
    console.print(Text(f"By {axis.name}" + (f", on {machine}" if machine else "")))
    sign = sign_of(USUAL_CURRENCY) if prices is None else prices.sign
    said = headings([[line.side.row for line in lines] for lines in found], axis)
    for heading, lines in zip(said, found, strict=True):
        console.print()
        console.print(Text(heading, style="bold"))
        console.print(_table(lines, axis, labels or {}, console.width, sign))
        for sentence in _unlike(lines, axis, labels or {}):
            console.print(Text(sentence))
    for sentence in (*_below(found, axis, others), *_costs(found, prices)):
        console.print(Text(sentence))


def _table(
    lines: Lines, axis: Axis, labels: Mapping[str, str], width: int, sign: str = "$"
) -> Table:
    """The columns in which anything is known."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    from accelbench.cli.display.console import in_lines

    every = (
        (_time_heading(lines), _times(lines)),
        (_in_lines(unit := _rate_unit(lines)), [_rate(one, unit) for one in lines]),
        ("MB", [figure(one.side.memory_mb) for one in lines]),
        (f"{sign}/M", [money(one.side.cost) for one in lines]),
        (f"{sign}/step", [money(one.side.step_cost) for one in lines]),
        ("times as fast", [_speed(one, axis) for one in lines]),
    )
    figures = [(name, cells) for name, cells in every if any(cell != MISSING for cell in cells)]
    columns = [[_place(one, axis, labels) for one in lines]]
    heads = [axis.name]
    if "runtime" in axis.along:
        columns.append([str(one.side.row.get("runtime") or "") for one in lines])
        heads.append("by")
    taken = sum(_BETWEEN + max(map(len, (*name.split("\n"), *cells))) for name, cells in figures)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name, wide in zip(heads, _widths(columns, width - taken), strict=True):
        table.add_column(name, overflow="fold", max_width=wide)
    for name, cells in figures:
        table.add_column(in_lines(*name.split("\n")), justify="right", no_wrap=True)
        columns.append(cells)
    for row in zip(*columns, strict=True):
        table.add_row(*map(Text, row))
    return table


def _widths(columns: Sequence[Sequence[str]], room: int) -> list[int]:
    """What places, and perhaps runtimes, get of the room that figures leave.

    Names of devices have spaces to be broken at, and those of runtimes have none: they are whole as
    long as no word of a place has to be broken for it.
    """
    places, *runtimes = columns
    widths = []
    for cells in runtimes:
        word = max(len(word) for place in places for word in place.split())
        left = room - 2 * _BETWEEN - word
        widths.append(max(_NARROWEST, min(left, max(map(len, cells)))))
    return [max(_NARROWEST, room - sum(widths) - _BETWEEN * len(columns)), *widths]


def _time_heading(lines: Lines) -> str:
    """The figure that all times are, where they are one."""
    found = {one.side.step[1] for one in lines if one.side.step is not None}
    return f"{found.pop()} ms" if len(found) == 1 else "latency ms"


def _times(lines: Lines) -> list[str]:
    """Latencies, each with the figure that it is where they are not all of one."""
    known = [one.side.step for one in lines]
    mixed = len({one[1] for one in known if one is not None}) > 1
    return [
        MISSING if one is None else figure(one[0]) + (f" {one[1]}" if mixed else "")
        for one in known
    ]


def _in_lines(unit: str) -> str:
    """A heading of a rate; a long unit in two lines, since devices need the room."""
    return unit if len(unit) <= _LONGEST_UNIT else unit.replace("/s", "\n/s")


def _rate_unit(lines: Lines) -> str:
    """What is counted, where all count the same."""
    return unit_of_all(one.side.row for one in lines)


def _rate(one: Compared, heading: str) -> str:
    """A throughput, with its unit where the heading says another."""
    return f"{figure(one.side.throughput)} {unit_beside(one.side.row, heading)}".rstrip()


def _place(one: Compared, axis: Axis, labels: Mapping[str, str]) -> str:
    if axis.name == "date":
        return axis.value(one.side.row)[0] or MISSING
    known = [str(value) for value in one.side.value if value is not None]
    if axis.name == "run":
        known += [f"({labels[run]})" for run in known if run in labels]
    return " ".join(known) or MISSING


def _speed(one: Compared, axis: Axis) -> str:
    if one.refused:
        return "refused" if one.baseline else MISSING
    if one.is_baseline or one.ratio is None:
        return "baseline knee" if one.knee else "baseline"
    ratio = one.ratio
    ends = ""
    if ratio.low is not None and ratio.high is not None:
        ends = f" ({figure(ratio.low)} – {figure(ratio.high)})"
    said = f"{figure(ratio.value)}×{ends}" if ratio.told else f"can't tell{ends}"
    if _differs(one):
        said += f" {_UNLIKE}"
    if axis.name == "batch" and one.efficiency is not None:
        said += f", {one.efficiency:.0%}"
    return f"{said} knee" if one.knee else said


def _unlike(lines: Lines, axis: Axis, labels: Mapping[str, str]) -> Iterable[str]:
    """Of each row that could not be matched, what is not alike with its baseline."""
    for one in lines:
        if one.ratio is not None and (unlike := _differs(one)):
            yield f"{_UNLIKE} {_place(one, axis, labels)}: {differences_in_short(unlike)}."


def _differs(one: Compared) -> list[str]:
    """What is not alike of how it ran: a submission's words about itself are told by --json."""
    return [text for text in one.differs if text.partition(" ")[0] not in DESCRIBING]


def _below(found: Sequence[Lines], axis: Axis, others: Sequence[str]) -> Iterable[str]:
    every = [one for lines in found for one in lines]
    if axis.name == "batch":
        yield (
            "Percent: of a rate that grows as the batch does. The knee is the smallest batch within"
            " a tenth of the best."
        )
    held = [(one, one.ratio) for one in every if one.ratio is not None]
    if held:
        yield _by_what({str(ratio.statistic) for _, ratio in held})
    yield from _otherwise(every, axis)
    if wide := sum(not ratio.told for _, ratio in held):
        yield (
            f"{wide} cannot be told: {CANNOT_TELL}. Measure again on a quiet machine with"
            " --launches 5 or more."
        )
    if any(ratio.of == SAMPLES for _, ratio in held):
        yield _WITHIN
    alone = [one for one, ratio in held if ratio.low is None]
    if alone:
        ours = any(one.side.row.get("provenance") == Provenance.MEASURED for one in alone)
        yield _ONE_LAUNCH if ours else _ONE_FIGURE
    for refused in sorted({one.refused for one in every if one.refused}):
        count = sum(one.refused == refused for one in every)
        allow = " --allow compares what is not alike." if "not alike" in refused else ""
        yield f"{count} not compared, {refused}.{allow}"
    yield from _failed_launches(every, axis)
    yield from _failed_since(every, axis)
    yield from _set_aside(every)
    slower = sorted(
        {f"{name} at {_place(one, axis, {})}" for one in every for name in one.side.others}
    )
    if slower:
        more = f" and {len(slower) - _PAIRS} more" if len(slower) > _PAIRS else ""
        yield f"The fastest runtime stands for a place; slower: {', '.join(slower[:_PAIRS])}{more}."
    yield from other_machines(others)


def _by_what(found: set[str]) -> str:
    """The figure that ratios are of."""
    means = {str(one) for one in MEANS}
    if found == {str(Statistic.RATE)}:
        return "Times as fast: by the rate of items, which is the inverse of their mean time."
    if found <= means:
        return "Times as fast: by the mean time of an item."
    named = sorted({"mean" if one in means else one for one in found})
    return f"Times as fast: by the time of an item, {', '.join(named)}."


def _otherwise(every: Sequence[Compared], axis: Axis) -> Iterable[str]:
    """Where medians point to the other side."""
    for one in every:
        if one.ratio is not None and one.ratio.told and one.ratio.otherwise:
            yield f"{one.side.row.get('model')}, {_place(one, axis, {})}: {one.ratio.otherwise}."


def _failed_launches(every: Sequence[Compared], axis: Axis) -> Iterable[str]:
    """Where launches of the run whose figures are shown came to nothing."""
    said = [
        f"{one.side.row.get('model')}, {_place(one, axis, {})} ({failed})"
        for one in every
        if (failed := launches_failed(one.side.rows))
    ]
    if said:
        more = f" and {len(said) - _PAIRS} more" if len(said) > _PAIRS else ""
        yield f"Not all launches came to a figure: {'; '.join(said[:_PAIRS])}{more}."


def _failed_since(every: Sequence[Compared], axis: Axis) -> Iterable[str]:
    """Where a newer run came to nothing, whose figures are of an older one."""
    said = [
        f"{one.side.row.get('model')}, {_place(one, axis, {})} ({', '.join(one.failed_since)})"
        for one in every
        if one.failed_since
    ]
    if said:
        more = f" and {len(said) - _PAIRS} more" if len(said) > _PAIRS else ""
        yield f"Failed in a newer run, and shown by an older one: {'; '.join(said[:_PAIRS])}{more}."


def _set_aside(every: Sequence[Compared]) -> Iterable[str]:
    """What was measured and does not stand."""
    faster = {(one.side.value, text) for one in every for text in one.side.faster}
    if faster:
        said = [f"{' '.join(str(v) for v in value if v)} ({text})" for value, text in faster]
        shown = ", ".join(sorted(said)[:_PAIRS])
        more = f" and {len(said) - _PAIRS} more" if len(said) > _PAIRS else ""
        yield f"Faster, and not alike with its baseline: {shown}{more}."
    newer = sum(one.side.newer for one in every)
    if newer:
        launches = "1 newer launch" if newer == 1 else f"{newer} newer launches"
        yield (
            f"{launches} set aside: older ones of the same software say more, or are of the run"
            " that measured both sides."
        )
    if unusable := sum(one.side.unusable for one in every):
        launches = "1 launch" if unusable == 1 else f"{unusable} launches"
        yield f"{launches} left out of what others of the same run show: {WHY_UNUSABLE}."


def _costs(found: Sequence[Lines], prices: Prices | None) -> Iterable[str]:
    """What a million is of, and by which prices."""
    rows = [row for lines in found for one in lines for row in one.side.rows]
    counted = sorted({items_of(row) for row in rows if row.get(PER_MILLION)})
    if counted:
        sign = sign_of(USUAL_CURRENCY) if prices is None else prices.sign
        yield f"{sign}/M: for a million {' or '.join(counted)}."
    yield from cost_notes(rows, prices)


def differences_in_short(differs: Iterable[str]) -> str:
    """Conditions by name with a few pairs of values each: a figure may differ in every result."""
    pairs: dict[str, list[str]] = {}
    for text in sorted(set(differs), key=lambda text: (not text.startswith(_FIRST), text)):
        name, _, values = text.partition(" ")
        pairs.setdefault(name, []).append(" → ".join(map(_short, values.split(" → "))))
    shown = []
    for name, several in list(pairs.items())[:_NAMES]:
        more = f" and {len(several) - _PAIRS} more" if len(several) > _PAIRS else ""
        shown.append(f"{name} {', '.join(several[:_PAIRS])}{more}")
    if len(pairs) > _NAMES:
        shown.append(f"and {', '.join(list(pairs)[_NAMES:])}, see --json")
    return "; ".join(shown)


def _short(value: str) -> str:
    return value if len(value) <= _LONG else f"{value[: _LONG - 1]}…"

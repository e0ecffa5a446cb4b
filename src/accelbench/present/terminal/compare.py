"""A comparison as a document: a table for each question with its heading, and its notes. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from accelbench.core.axes import AXES
from accelbench.core.devices import sharing_unit
from accelbench.core.formatting import NO_DATA, NOT_KNOWN, format_value, join_first
from accelbench.core.precision import summarise_inexact
from accelbench.core.result_statistics import Statistic, common_unit, differing_unit
from accelbench.core.rows import Row, number, record, text
from accelbench.core.unusable_reasons import failed_launches_text, is_mostly_failed, why_unusable
from accelbench.core.vocabulary import SINGLE_STREAM, Provenance
from accelbench.exchange.prices import Prices, price_sign
from accelbench.judge.accuracies import (
    accuracy_against,
    accuracy_among,
    accuracy_heading,
    cost_sentence,
)
from accelbench.judge.comparison import Compared, doubtful
from accelbench.judge.costs import cost_notes, items_of, money
from accelbench.judge.questions import ComparisonAxis, physical, plain
from accelbench.judge.ratios import CANNOT_TELL, SAMPLES, Ratio
from accelbench.judge.sides import PER_MILLION
from accelbench.judge.versions import engine_version, versions_apart
from accelbench.present.comparison import document
from accelbench.present.document import (
    Document,
    DocumentSection,
    Notes,
    Table,
    TableColumn,
    TonedText,
)
from accelbench.present.terminal.words import mean_note, other_machines, shapes
from accelbench.present.texts import phrase

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
        for name, version in zip(names, _differing_versions(lines), strict=True)
    ]


def engines(lines: Lines) -> list[str]:
    """What ran each side: the engine, with its version where these differ."""
    known = [str(line.side.row.get("runtime") or "") for line in lines]
    return [
        version if version.startswith(engine) or not engine else version or engine
        for engine, version in zip(known, _differing_versions(lines), strict=True)
    ]


def _differing_versions(lines: Lines) -> list[str]:
    rows = [line.side.row for line in lines]
    apart = versions_apart(rows)
    return [in_short(engine_version(row)) if apart else "" for row in rows]


def threads(lines: Lines, axis: ComparisonAxis) -> list[str]:
    """Threads of each side, where they went along with the axis and are not the same."""
    known = [line.side.row.get("threads") for line in lines]
    if "threads" not in axis.along or len({number for number in known if number}) < 2:
        return [NO_DATA] * len(lines)
    return [str(number) if number else NO_DATA for number in known]


def submission(line: Compared) -> str:
    """Return who submitted a figure, and of how many alike it is the fastest."""
    by = text(record(line.side.row, "conditions"), "Submitter")
    parts = [by] if by else []
    if span := line.side.range_alike:
        low, high, kind = span
        unit = "" if kind is Statistic.RATE else " ms an item"
        parts.append(
            f"fastest of {line.side.fastest_of}: {format_value(low)} … {format_value(high)}{unit}"
        )
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
        else format_value(step[0])
        + (f" {step[1]}" if mixed else "")
        + _of_no_use(line)
        + mean_note(line.side.rows)
        for line, step in zip(lines, known, strict=True)
    ]


def rate(line: Compared, heading: str) -> str:
    """A throughput, with its unit where the heading says another."""
    mark = _of_no_use(line) if line.side.throughput is not None else ""
    return (
        f"{format_value(line.side.throughput)}{mark}"
        f" {differing_unit(line.side.row, heading)}".rstrip()
    )


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
    cell = f"{format_value(ratio.value)}×{ends}" if ratio.told else f"{ratio.direction}{ends}"
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
    ends = ratio.ends_text(format_value, " … ")
    return f"interval {ends}" if ends == NOT_KNOWN else ends


_ONE_LAUNCH = phrase("compare.one-launch", no_interval=NO_INTERVAL)
#: Why times are of no use of which most launches failed.
_MOST_FAILED = phrase("compare.most-launches-failed")
_WITHIN = phrase("compare.intervals-single-launches")
_ONE_FIGURE = phrase("compare.one-imported-result", no_interval=NO_INTERVAL)
_NAMES, _PAIRS = 8, 3
#: What tells most of how far two figures are alike.
_FIRST = ("figure ", "unit ")


def under_table(
    lines: Lines, axis: ComparisonAxis, labels: Mapping[str, str], *, alone: bool
) -> list[str]:
    """Return the notes on one table; `alone` if all tables are by one figure, said below them."""
    held = [line.ratio for line in lines if line.ratio is not None]
    return [
        *_unlike(lines, axis, labels),
        *([] if alone or not held else [by_what(_figures([lines]))]),
        *_otherwise(lines, axis),
        *_accuracies(lines, axis, labels),
        *_not_exact(lines, axis, labels),
        *_failed_launches(lines, axis),
        *_failed_since(lines, axis),
        *_set_aside(lines, axis),
    ]


def _accuracies(lines: Lines, axis: ComparisonAxis, labels: Mapping[str, str]) -> Iterable[str]:
    for line in lines:
        if line.baseline is None or line.side is line.baseline:
            continue
        cost = accuracy_against(line.side.rows, line.baseline.rows)
        if cost is not None:
            base = Compared(line.baseline, line.baseline)
            yield cost_sentence(place(line, axis, labels), place(base, axis, labels), cost)


def below(
    tables: Sequence[Lines], axis: ComparisonAxis, others: Sequence[str], prices: Prices | None
) -> Iterable[str]:
    """What is of all tables."""
    every = [line for lines in tables for line in lines]
    held = [(line, line.ratio) for line in every if line.ratio is not None]
    if axis.name == "batch" and held:
        yield phrase("compare.knee-legend")
    if held and of_one_figure(tables):
        yield by_what(_figures(tables))
    yield from _not_told([line for line, ratio in held if not ratio.told])
    if any(ratio.of == SAMPLES for _, ratio in held):
        yield _WITHIN
    single = [line for line, ratio in held if ratio.low is None]
    if single:
        yield _ONE_LAUNCH if any(map(_ours, single)) else _ONE_FIGURE
    useless = [line.side.rows for line in every if not line.side.usable]
    for why in sorted(
        {_MOST_FAILED if is_mostly_failed(rows) else why_unusable(rows) for rows in useless}
    ):
        yield phrase("compare.unusable-because", unusable=UNUSABLE, why=why)
    for refused in sorted({line.refused for line in every if line.refused}):
        count = sum(line.refused == refused for line in every)
        allow = phrase("compare.use-allow") if "not alike" in refused else ""
        yield f"{count} not compared, {refused}.{allow}"
    yield from other_machines(others)
    yield from _costs(tables, prices)


def of_one_figure(tables: Sequence[Lines]) -> bool:
    """Whether the ratios of all tables are by the same figure, or means all of them."""
    return len({by_what(figures) for lines in tables if (figures := _figures([lines]))}) < 2


def _figures(tables: Sequence[Lines]) -> set[str]:
    return {
        str(line.ratio.statistic) for lines in tables for line in lines if line.ratio is not None
    }


def _ours(line: Compared) -> bool:
    return line.side.row.get("provenance") == Provenance.MEASURED


def _not_told(wide: Sequence[Compared]) -> Iterable[str]:
    if not wide:
        return
    claim = phrase("compare.without-factor", wide=len(wide), cannot_tell=CANNOT_TELL)
    if any(map(_ours, wide)):
        yield phrase("compare.measure-again-quiet", claim=claim)
    else:
        yield phrase("compare.published-too-few", claim=claim)


def _unlike(lines: Lines, axis: ComparisonAxis, labels: Mapping[str, str]) -> Iterable[str]:
    in_column = any(cell != NO_DATA for cell in threads(lines, axis))
    by_threads = False
    for line in lines:
        if line.ratio is None or not (differs := unlike(line)):
            continue
        texts = [text for text in differs if not (in_column and text.startswith("threads "))]
        by_threads = by_threads or len(texts) < len(differs)
        if texts:
            yield f"{UNLIKE} {place(line, axis, labels)}: {differences_in_short(texts)}."
    if by_threads:
        yield phrase("compare.threads-differ", unlike=UNLIKE)


#: Statistics of which a ratio is, where their names are not words.
_WORDS = {str(Statistic.MEDIAN): "median", str(Statistic.RATE): "mean"}


def by_what(figures: set[str]) -> str:
    """The figure that ratios are of."""
    return phrase("compare.ratio-statistic", by_figure=by_figure(figures))


def by_figure(figures: Collection[str]) -> str:
    """Name the figure by which things are compared."""
    if set(figures) == {str(Statistic.RATE)}:
        return phrase("compare.by-rate")
    named = sorted({_WORDS.get(name, name) for name in figures})
    if len(named) == 1:
        return phrase("compare.by-time", named=named[0])
    return phrase("compare.by-times", named=", ".join(named))


def _otherwise(every: Sequence[Compared], axis: ComparisonAxis) -> Iterable[str]:
    for compared in every:
        if compared.ratio is not None and compared.ratio.told and compared.ratio.otherwise:
            model = compared.side.row.get("model")
            yield f"{model}, {place(compared, axis)}: {compared.ratio.otherwise}."


def _not_exact(lines: Lines, axis: ComparisonAxis, labels: Mapping[str, str]) -> Iterable[str]:
    places: dict[str, list[str]] = {}
    for line in lines:
        if why := summarise_inexact(line.side.rows):
            places.setdefault(why, []).append(place(line, axis, labels))
    if places:
        listing = "; ".join(f"{', '.join(names)} ({why})" for why, names in places.items())
        yield phrase("compare.not-known-exact", listing=listing)


def _failed_launches(every: Sequence[Compared], axis: ComparisonAxis) -> Iterable[str]:
    failing = [
        f"{compared.side.row.get('model')}, {place(compared, axis)} ({failed})"
        for compared in every
        if (failed := failed_launches_text(compared.side.rows))
    ]
    if failing:
        yield phrase("compare.launches-failed", some=_some(failing))


def _failed_since(every: Sequence[Compared], axis: ComparisonAxis) -> Iterable[str]:
    ways = [
        f"{compared.side.row.get('model')}, {place(compared, axis)}"
        f" ({', '.join(compared.failed_since)})"
        for compared in every
        if compared.failed_since
    ]
    if ways:
        shown = join_first(ways, _PAIRS, "; ")
        yield phrase("compare.failed-since", shown=shown)


def _set_aside(lines: Sequence[Compared], axis: ComparisonAxis) -> Iterable[str]:
    faster = {(place(compared, axis), text) for compared in lines for text in compared.side.faster}
    if faster:
        yield phrase("compare.faster-not-alike", some=_some((f"{v} ({t})" for v, t in faster)))
    if newer := sum(compared.side.newer for compared in lines):
        yield phrase("compare.set-aside-older", count=newer)
    if unusable := sum(compared.side.unusable for compared in lines):
        why = ", or ".join(sorted({c.side.why_unusable for c in lines if c.side.unusable}))
        yield phrase("compare.launches-left-out", count=unusable, why=why)
    slower = {
        f"{name} at {place(compared, axis)}" for compared in lines for name in compared.side.others
    }
    if slower:
        yield phrase("compare.slower-engines", some=_some(slower))


def _some(texts: Iterable[str]) -> str:
    return join_first(sorted(texts), _PAIRS)


def _costs(tables: Sequence[Lines], prices: Prices | None) -> Iterable[str]:
    rows = [row for lines in tables for line in lines for row in line.side.rows]
    counted = sorted({items_of(row) for row in rows if row.get(PER_MILLION)})
    if counted:
        yield phrase("compare.cost-unit", sign=price_sign(prices), counted=" or ".join(counted))
    yield from cost_notes(rows, prices)


def differences_in_short(differs: Iterable[str]) -> str:
    """Conditions by name with a few pairs of values each: a figure may differ in every result."""
    pairs: dict[str, list[str]] = {}
    for said in sorted(set(differs), key=lambda said: (not said.startswith(_FIRST), said)):
        name, _, values = said.partition(" ")
        pairs.setdefault(name, []).append(" → ".join(map(in_short, values.split(" → "))))
    shown = []
    for name, several in list(pairs.items())[:_NAMES]:
        shown.append(f"{name} {join_first(several, _PAIRS)}")
    if len(pairs) > _NAMES:
        shown.append(f"and {', '.join(list(pairs)[_NAMES:])}, see --json")
    return "; ".join(shown)


#: What stands before and after a value; what is not here is said with its name.
_AROUND: Mapping[str, tuple[str, str]] = {
    "model": ("", ""),
    "mode": ("", ""),
    "hardware": ("", ""),
    "device_name": ("", ""),
    "runtime": ("", ""),
    "precision": ("", ""),
    "scenario": ("", ""),
    "batch_size": ("batch ", ""),
    **{axis.column: axis.label_ends for axis in AXES},
    "world_size": ("", " devices"),
    "threads": ("", " threads"),
}


#: What is said of each question where the questions differ in it.
_APART = ("device_name", "compiled", "threads")


def headings(questions: Sequence[Sequence[Row]], axis: ComparisonAxis) -> list[str]:
    """A heading for each question, by a row of each of its sides.

    The usual things are always said, and the CPU, the threads, the compiler and the engine's
    version where there are several; of what others published, threads and version wherever all
    sides have them in common, for they are nobody's default. Of questions that are alike in these,
    whatever else they differ in is said as well.
    """
    rows = [sides[0] for sides in questions]
    varied = [name for name in _APART if len({plain(row.get(name)) for row in rows}) > 1]
    usual_names = {"device_name"} if "hardware" in axis.along else set()  # as a thing, always
    several = [name for name in varied if name in axis.alike and name not in usual_names]
    versions = _versions(questions, axis)
    titles = [
        " · ".join(
            part
            for part in (
                _usual(row, axis),
                *(_word(n, row.get(n)) for n in several if not _usually_said(n, row)),
                _threads(sides) if "threads" not in several else "",
                version,
            )
            if part
        )
        for row, sides, version in zip(rows, questions, versions, strict=True)
    ]
    alike: dict[str, list[int]] = {}
    for index, heading in enumerate(titles):
        alike.setdefault(heading, []).append(index)
    for numbers in alike.values():
        among = [rows[index] for index in numbers]
        apart = [name for name in axis.alike if len({plain(row.get(name)) for row in among}) > 1]
        for index in numbers:
            words = [_word(name, rows[index].get(name)) for name in apart]
            titles[index] = " · ".join(part for part in (titles[index], *words) if part)
    return titles


def _versions(questions: Sequence[Sequence[Row]], axis: ComparisonAxis) -> list[str]:
    known = []
    for sides in questions:
        every = {engine_version(row) for row in sides}
        known.append(every.pop() if len(every) == 1 else "")
    several = "runtime" in axis.alike and len({version for version in known if version}) > 1
    return [
        version if several or _published(sides) else ""
        for version, sides in zip(known, questions, strict=True)
    ]


def _threads(sides: Sequence[Row]) -> str:
    known = {row.get("threads") for row in sides}
    number = known.pop() if len(known) == 1 else None
    if number is None or not _published(sides):
        return ""
    return "1 thread" if number == 1 else f"{number} threads"


def _published(sides: Sequence[Row]) -> bool:
    return all(row.get("provenance") == Provenance.IMPORTED for row in sides)


def _usual(row: Row, axis: ComparisonAxis) -> str:
    common = {name: row.get(name) for name in axis.alike}
    options = record(common, "options")
    world = int(number(common, "world_size") or 1)
    scenario = common.get("scenario")
    parts = [
        str(common.get("model") or ""),
        str(common.get("precision") or ""),
        f"batch {common['batch_size']}" if common.get("batch_size") else "",
        shapes(common),
        "training" if common.get("mode") == "training" else "",
        str(scenario) if scenario not in (None, SINGLE_STREAM) else "",
        f"{world} {sharing_unit(row)}" if world > 1 else "",
        *(f"{name}={options[name]}" for name in sorted(options)),
        "/".join(str(common[name]) for name in ("runtime", "hardware") if common.get(name)),
        str(physical(row)) if "hardware" in axis.along else "",
        *(
            _word(name, common[name])
            for name in ("device_name", "compiled")
            if "hardware" not in axis.along and name in axis.alike and _usually_said(name, row)
        ),
    ]
    return " · ".join(part for part in parts if part)


def _usually_said(name: str, row: Row) -> bool:
    if name == "device_name":
        return bool(row.get(name)) and row.get("hardware") != "cpu"
    return name == "compiled" and row.get(name) is True


def _word(name: str, value: Any) -> str:
    if name == "compiled" and value is not None:
        return "compiled" if value else "not compiled"
    before, after = _AROUND.get(name, (f"{name} ", ""))
    if value is None or value == {}:
        return f"{name}: {NO_DATA}" if value is None else f"no {name}"
    return f"{before}{plain(value)}{after}"


#: Longer units would take the room that devices need.
_LONGEST_UNIT = 9


def comparison(
    tables: Sequence[Lines],
    axis: ComparisonAxis,
    about: Mapping[str, Any],
    prices: Prices | None = None,
) -> Document:
    """Return a comparison as a document; `about` has the machine, other machines, labels, notes."""
    labels = about.get("labels", {})
    of_one = of_one_figure(tables)
    titles = headings([[line.side.row for line in lines] for lines in tables], axis)
    sections = [
        DocumentSection(
            heading,
            (
                _table(lines, axis, labels, price_sign(prices)),
                Notes(under_table(lines, axis, labels, alone=of_one)),
            ),
        )
        for heading, lines in zip(titles, tables, strict=True)
    ]
    notes = [*below(tables, axis, about.get("other_machines", ()), prices)]
    notes += about.get("not_shown", ())
    machine = about.get("machine")
    return Document(
        f"By {axis.name}" + (f", on {machine}" if machine else ""),
        (*sections, Notes(notes)),
        data=lambda: {**about, "comparisons": document(tables, axis, prices)},
        records=lambda: document(tables, axis, prices),
    )


def _table(lines: Lines, axis: ComparisonAxis, labels: Mapping[str, str], sign: str) -> Table:
    rows = [row for line in lines for row in line.side.rows]
    unit = common_unit(line.side.row for line in lines)
    every = (
        ("threads", threads(lines, axis)),
        (time_heading(lines), times(lines)),
        (_in_lines(unit), [rate(line, unit) for line in lines]),
        (accuracy_heading(rows), accuracies(lines)),
        ("MB", [format_value(line.side.memory_mb) for line in lines]),
        ("J/item", [format_value(line.side.energy_per_item) for line in lines]),
        ("W", [format_value(line.side.power_watts) for line in lines]),
        (f"{sign}/M", [money(line.side.cost) for line in lines]),
        (f"{sign}/step", [money(line.side.step_cost) for line in lines]),
        ("times as fast", [speed(line, axis) for line in lines]),
    )
    columns = [(TableColumn(axis.name), places(lines, axis, labels))]
    if "runtime" in axis.along:
        columns.append((TableColumn("by"), engines(lines)))
    columns.append((TableColumn("submission"), [submission(line) for line in lines]))
    columns += [(TableColumn(name, is_number=True), cells) for name, cells in every]
    known = [
        (column, cells)
        for number, (column, cells) in enumerate(columns)
        if not number or column.label == "by" or any(cell != NO_DATA for cell in cells)
    ]
    return Table.of_columns(known)


def _in_lines(unit: str) -> str:
    if len(unit) <= _LONGEST_UNIT or not unit.endswith("/s"):
        return unit
    return TonedText(unit.removesuffix("/s"), further=("/s",))

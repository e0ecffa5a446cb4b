"""A comparison as a document: a table a question, with a heading that no other table has. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from accelbench.core.axes import AXES
from accelbench.core.devices import sharing
from accelbench.core.nouns import NO_DATA
from accelbench.core.rows import Row, number, record
from accelbench.core.vocabulary import SINGLE_STREAM, Provenance
from accelbench.exchange.prices import USUAL_CURRENCY, Prices, sign_of
from accelbench.judge.costs import money
from accelbench.judge.questions import ComparisonAxis, physical, plain
from accelbench.judge.versions import engine_version
from accelbench.present.comparison import document
from accelbench.present.document import (
    Document,
    DocumentSection,
    Notes,
    Table,
    TableColumn,
    TonedText,
)
from accelbench.present.terminal.compare_cells import (
    Lines,
    accuracies,
    accuracy_title,
    engines,
    places,
    rate,
    rate_unit,
    speed,
    submissions,
    threads,
    time_heading,
    times,
)
from accelbench.present.terminal.compare_notes import below, of_one_figure, under_table
from accelbench.present.terminal.words import figure, shapes

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
    **{axis.column: axis.around for axis in AXES},
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
        f"{world} {sharing(row)}" if world > 1 else "",
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
    """Return a comparison as a document.

    Args:
        about: the machine, other machines, the labels of runs by their ids, and further notes.
    """
    labels = about.get("labels", {})
    of_one = of_one_figure(tables)
    titles = headings([[line.side.row for line in lines] for lines in tables], axis)
    sections = [
        DocumentSection(
            heading,
            (
                _table(lines, axis, labels, _sign(prices)),
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


def _sign(prices: Prices | None) -> str:
    return sign_of(USUAL_CURRENCY) if prices is None else prices.sign


def _table(lines: Lines, axis: ComparisonAxis, labels: Mapping[str, str], sign: str) -> Table:
    every = (
        ("threads", threads(lines, axis)),
        (time_heading(lines), times(lines)),
        (_in_lines(unit := rate_unit(lines)), [rate(line, unit) for line in lines]),
        (accuracy_title(lines), accuracies(lines)),
        ("MB", [figure(line.side.memory_mb) for line in lines]),
        ("J/item", [figure(line.side.energy_per_item) for line in lines]),
        ("W", [figure(line.side.power_watts) for line in lines]),
        (f"{sign}/M", [money(line.side.cost) for line in lines]),
        (f"{sign}/step", [money(line.side.step_cost) for line in lines]),
        ("times as fast", [speed(line, axis) for line in lines]),
    )
    columns = [(TableColumn(axis.name), places(lines, axis, labels))]
    if "runtime" in axis.along:
        columns.append((TableColumn("by"), engines(lines)))
    columns.append((TableColumn("submission"), submissions(lines)))
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

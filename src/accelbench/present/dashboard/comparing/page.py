"""The comparison of chosen configurations: a sentence, a picture of intervals, and a table.

The axis of the picture is logarithmic. Places are per cent of its width, so that it fits a phone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from math import log

from starlette.requests import Request
from starlette.responses import Response

from accelbench.core.columns import ASKED
from accelbench.core.figures import statistic_of
from accelbench.core.precision import not_exact
from accelbench.core.rows import Row
from accelbench.core.worth import COMPARABLE, why_unusable
from accelbench.evidence.launches import launches_of
from accelbench.evidence.measurements import measurement_of
from accelbench.judge.accuracies import TaskAccuracy, accuracy_among
from accelbench.judge.comparison import (
    compared_side,
    doubtful,
    nearest_axis,
    refused_along,
)
from accelbench.judge.histories import histories_of
from accelbench.judge.ratios import Ratio
from accelbench.judge.run_noise import Histories
from accelbench.judge.sides import Side, side_of
from accelbench.present.charts import CHARTS
from accelbench.present.charts.axes import decades
from accelbench.present.comparison_sentence import SideOfRatio, covers_one, names_of, sentence
from accelbench.present.dashboard.page_base import SitePages
from accelbench.present.dashboard.page_query import (
    COLUMNS,
    MODEL,
    PageQuery,
    ResultColumn,
    address_of_pairs,
)
from accelbench.present.dashboard.results import table_query
from accelbench.present.dashboard.snapshots import cells, details
from accelbench.present.dashboard.snapshots.cells import Cell
from accelbench.present.dashboard.snapshots.snapshot import Snapshot

#: An interval is drawn up to this ratio, unless a ratio itself is beyond.
_FURTHEST = 64.0
#: Room next to the outermost mark, as a part of the axis.
_ROOM = 0.06
_FEWEST, _MOST = 3, 7
#: Ticks nearer to each other than this part of the axis would touch on a phone.
_APART = 0.065
#: Steps of ticks on an axis that is too short for 1, 2 and 5.
_STEPS = (0.5, 0.2, 0.1, 0.05, 0.02, 0.01)


@dataclass(frozen=True)
class IntervalMark:
    """A ratio on the axis, in per cent of its width."""

    at: float | None  # None if there is no ratio
    low: float | None = None  # the ends of its interval
    high: float | None = None


@dataclass(frozen=True)
class IntervalPicture:
    """The marks in their order, and the axis."""

    marks: Sequence[IntervalMark]
    ticks: Sequence[tuple[float, str]]  # places and labels
    one: float  # the place of the ratio 1


def picture_of(
    ratios: Sequence[tuple[float, float | None, float | None] | None],
) -> IntervalPicture | None:
    """Return the picture of ratios and their intervals, or None if no ratio is known."""
    told = [ratio[0] for ratio in ratios if ratio]
    least, most = min(told, default=1.0), max(told, default=1.0)
    bounds = min(1.0 / _FURTHEST, least), max(_FURTHEST, most)
    clipped = [
        ratio and tuple(end and min(max(end, bounds[0]), bounds[1]) for end in ratio)
        for ratio in ratios
    ]
    ends = [end for ratio in clipped if ratio for end in ratio if end is not None]
    if not ends:
        return None
    low, high = min(1.0, *ends), max(1.0, *ends)
    reach = max(log(high / low), log(1.02))
    start, span = log(low) - _ROOM * reach, reach * (1.0 + 2.0 * _ROOM)

    def place(ratio: float | None) -> float | None:
        return None if ratio is None else round(100.0 * (log(ratio) - start) / span, 2)

    marks = [
        IntervalMark(None) if ratio is None else IntervalMark(*(place(end) for end in ratio))
        for ratio in clipped
    ]
    ticks = [(place(tick) or 0.0, f"{tick:g}×") for tick in _ticks(low, high)]
    return IntervalPicture(marks, ticks, place(1.0) or 0.0)


def _ticks(low: float, high: float) -> list[float]:
    known = [tick for tick in decades(low, high) if low <= tick <= high]
    if len(known) < _FEWEST:
        for step in _STEPS:
            first, last = int(low / step + 0.999999), int(high / step + 1e-6)
            known = [round(n * step, 4) for n in range(first, last + 1)]
            if len(known) >= _FEWEST:
                break
    while len(known) > _MOST:
        known = [tick for n, tick in enumerate(known) if tick == 1.0 or n % 2 == 0]
    known = sorted({*known, 1.0})
    return sorted({*known, *_beyond(known, low, high)})


def _beyond(known: Sequence[float], low: float, high: float) -> Iterator[float]:
    # A round ratio towards an end that a mark reaches but no tick: 1.3× for a mark at 1.33.
    apart = _APART * log(high / low)
    above = (round(int(high / step + 1e-6) * step, 4) for step in _STEPS)
    below = (round(int(low / step + 0.999999) * step, 4) for step in _STEPS)
    yield from islice((tick for tick in above if log(tick / known[-1]) >= apart), 1)
    yield from islice((tick for tick in below if log(known[0] / tick) >= apart), 1)


@dataclass(frozen=True)
class ComparedCell:
    """A configuration compared with the base."""

    cell: Cell
    ratio: Ratio | None = None  # of items in the same time
    memory: float | None = None
    refused: str = ""
    #: what was asked for differently: name, here, at the base
    asked: Sequence[tuple[str, object, object]] = ()
    differs: Sequence[str] = ()
    doubts: Sequence[str] = ()  # the differences that make a ratio doubtful
    first: bool = False  # whether it is the base
    of_other_runs: bool = False  # whether no launch is of a run of the base
    not_exact: str = ""  # why its outputs may differ from those of a float precision
    accuracy: TaskAccuracy | None = None


def beside(
    chosen: Sequence[tuple[Cell, Sequence[Row]]], known: Histories, at: int = 0
) -> list[ComparedCell]:
    """Compare configurations with one of them."""
    if not chosen:
        return []
    first, base = chosen[at][0], _side(chosen[at][1])
    return [
        replace(
            ComparedCell(cell, refused=_why_not(cell, base), first=True)
            if n == at
            else _compared(cell, _side(rows), first, base, known),
            not_exact=not_exact(rows),
            accuracy=accuracy_among(rows),
        )
        for n, (cell, rows) in enumerate(chosen)
    ]


def _side(rows: Sequence[Row]) -> Side | None:
    """Return the launches of a cell with a result, or None if there are none."""
    every = launches_of(rows)
    known = [row for row in every if row["answered"] and statistic_of(row) is not None]
    return side_of((), measurement_of(known)) if known else None


def _compared(
    cell: Cell, side: Side | None, first: Cell, base: Side | None, known: Histories
) -> ComparedCell:
    asked = [
        (name, cell.get(name), first.get(name))
        for name in ASKED
        if str(cell.get(name)) != str(first.get(name))
    ]
    why = _why_not(cell, side) or _why_not(first, base)
    if why or side is None or base is None:
        return ComparedCell(cell, refused=why, asked=asked)
    axis, otherwise = nearest_axis(base.row, side.row)
    # Weights may differ along these axes only.
    work = next((name for name in ("model", "mode") if cell.get(name) != first.get(name)), "")
    line = compared_side(side, base, replace(axis, name=work), (), known)
    refused = line.refused or refused_along(otherwise)
    if refused:
        return ComparedCell(cell, refused=refused, asked=asked, differs=line.differs)
    return ComparedCell(
        cell,
        line.ratio,
        line.memory_ratio,
        asked=asked,
        differs=line.differs,
        doubts=[*(name.replace("_", " ") for name in otherwise), *doubtful(line.differs)],
        of_other_runs={str(row.get("run_id")) for row in side.rows}.isdisjoint(
            str(row.get("run_id")) for row in base.rows
        ),
    )


def _why_not(cell: Cell, side: Side | None) -> str:
    if cell["kind"] == "emulated":
        return "emulated: such times mean nothing"
    if cell["kind"] not in COMPARABLE:
        return f"{cell['kind']}: not measured"
    if side is None:
        return "no results"
    return "" if side.usable else f"unusable: {why_unusable(side.rows)}"


#: The charts of a comparison.
_BESIDE = ("latency-distribution", "hardware-latency", "throughput-by-batch", "pareto")
#: Columns that tell configurations apart; model and options have their own places.
_TOLD = frozenset((*ASKED, "machine")) - {"model", "options"}


class ComparedPage(SitePages):
    """The page of /compare."""

    def page(self, request: Request) -> Response:
        """Compare the chosen configurations with one of them."""
        snapshot, query = self._requested(request)
        chosen = cells.named(snapshot, query.cells)
        named = request.query_params.get("base", "")
        base = next((n for n, cell in enumerate(chosen) if cell["key"] == named), 0)
        sides = self._sides(snapshot, chosen, base)
        names = names_of(chosen, {key: held.name for key, held in snapshot.machines.items()})
        columns = _differing(chosen)
        cells.told_apart(chosen, table_query.told_by([MODEL, *columns]))
        drawn = picture_of([_ends(side) for side in sides])
        return self.site.page(
            request,
            "compare.html",
            PageQuery(cells=query.cells),  # the form of the table sends its filters along
            snapshot=snapshot,
            sides=list(zip(sides, names, strict=True)),
            base=base,
            says=_says(sides, names, base),
            columns=columns,
            alike=_alike(chosen, columns, snapshot),
            drawn=drawn,
            lanes=list(zip(sides, names, drawn.marks, strict=True)) if drawn else [],
            accurate=any(side.accuracy for side in sides),
            covers_one=covers_one,
            gone=len(query.cells) - len(chosen),
            left_out=len(set(request.query_params.getlist("cell"))) - len(query.cells),
            charts=[CHARTS[name] for name in _BESIDE if name in CHARTS] if chosen else [],
            of_these=PageQuery(cells=query.cells).query(),
            against=lambda key: _address(query.cells, key),
            without=lambda key: _address(
                [other for other in query.cells if other != key],
                sides[base].cell["key"] if base and key != sides[base].cell["key"] else "",
            ),
        )

    def _sides(self, snapshot: Snapshot, chosen: Sequence[Cell], base: int) -> list[ComparedCell]:
        database = self.site.database
        with database.asking():
            # In order of time: on a machine that drifts, neighbours are alike.
            rows = details.launches_in(
                database, [key for cell in chosen for key in cell["results"]]
            )
            of_each = [frozenset(cell["results"]) for cell in chosen]
            sides = [
                (cell, [row for row in rows if row["result_id"] in ids])
                for cell, ids in zip(chosen, of_each, strict=True)
            ]
            machines = [(snapshot.machines.get(str(cell["machine"])), rows) for cell, rows in sides]
            older = histories_of(database, machines)
        return beside(sides, older, base)


def _address(keys: Sequence[str], base: str) -> str:
    return address_of_pairs(
        [*(("cell", key) for key in keys), *([("base", base)] if base else [])], "?"
    )


def _differing(chosen: Sequence[Cell]) -> list[ResultColumn]:
    return [
        column
        for column in COLUMNS.values()
        if column.column in _TOLD
        and len({str(table_query.value_of(cell, column)) for cell in chosen}) > 1
    ]


def _alike(
    chosen: Sequence[Cell], columns: Sequence[ResultColumn], snapshot: Snapshot
) -> list[str]:
    model = [str(chosen[0]["model"])] if len({cell["model"] for cell in chosen}) == 1 else []
    return [*model, *table_query.in_common(chosen, columns, snapshot.machines)]


def _says(sides: Sequence[ComparedCell], names: Sequence[str], base: int) -> str:
    if len(sides) < 2:
        return ""
    refused = sides[base].refused
    others = [
        SideOfRatio(name, side.ratio, side.memory, side.refused or refused, side.doubts)
        for n, (side, name) in enumerate(zip(sides, names, strict=True))
        if n != base
    ]
    return sentence(names[base], others)


def _ends(side: ComparedCell) -> tuple[float, float | None, float | None] | None:
    if side.first:
        return None if side.refused else (1.0, None, None)
    return None if side.ratio is None else (side.ratio.value, *side.ratio.shown)

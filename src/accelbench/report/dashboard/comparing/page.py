"""The comparison of chosen configurations: a sentence, a picture of intervals, and one table.

As in `accelbench compare`, what was not measured alike is listed, and predictions are not compared.
Steps of the picture multiply; places are per cent of its width, so that it fits a phone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from math import log
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response

from accelbench.analysis.accuracies import TaskAccuracy, accuracy_among
from accelbench.analysis.comparison import (
    NO_FIGURE,
    differing,
    doubtful,
    nearest_axis,
    refused_along,
    unlike,
)
from accelbench.analysis.ratios import Ratio, ratio
from accelbench.analysis.run_noise import Histories
from accelbench.analysis.sides import Side, side_of
from accelbench.core.columns import ASKED
from accelbench.core.figures import statistic_of
from accelbench.core.precision import not_exact
from accelbench.core.rows import Row
from accelbench.core.worth import COMPARABLE, why_unusable
from accelbench.evidence.launches import launches_of
from accelbench.evidence.measurements import measurement_of
from accelbench.query.histories import histories_of
from accelbench.report.charts import CHARTS
from accelbench.report.charts.axes import decades
from accelbench.report.comparison_sentence import SideOfRatio, covers_one, names_of, sentence
from accelbench.report.dashboard.asked import COLUMNS, MODEL, PageQuery, ResultColumn
from accelbench.report.dashboard.results import table_query
from accelbench.report.dashboard.site import SitePages
from accelbench.report.dashboard.snapshots import cells, details
from accelbench.report.dashboard.snapshots.cells import Cell
from accelbench.report.dashboard.snapshots.snapshot import Snapshot

#: Of an interval of which one end is nearly nothing so much is drawn, unless a ratio is beyond.
_FURTHEST = 64.0
#: Room beside the outermost mark, as a part of the axis.
_ROOM = 0.06
_FEWEST, _MOST = 3, 7
#: Ticks nearer to each other than this part of the axis would touch on a phone.
_APART = 0.065
#: Round ratios for an axis that goes not as far as 1, 2 and 5 are apart.
_STEPS = (0.5, 0.2, 0.1, 0.05, 0.02, 0.01)


@dataclass(frozen=True)
class IntervalMark:
    """One ratio on the axis, in per cent of its width."""

    at: float | None  # where the ratio is; None where none is told
    low: float | None = None  # where its interval begins, and `high` where it ends
    high: float | None = None


@dataclass(frozen=True)
class IntervalPicture:
    """The marks in their order, and the axis."""

    marks: Sequence[IntervalMark]
    ticks: Sequence[tuple[float, str]]  # places and what stands there
    one: float  # where once as fast is


def picture_of(
    ratios: Sequence[tuple[float, float | None, float | None] | None],
) -> IntervalPicture | None:
    """Ratios with their intervals as a picture; None if none is known beside the base."""
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
    """A round ratio towards an end that a mark reaches and no tick does: 1.3× of one at 1.33."""
    apart = _APART * log(high / low)
    above = (round(int(high / step + 1e-6) * step, 4) for step in _STEPS)
    below = (round(int(low / step + 0.999999) * step, 4) for step in _STEPS)
    yield from islice((tick for tick in above if log(tick / known[-1]) >= apart), 1)
    yield from islice((tick for tick in below if log(known[0] / tick) >= apart), 1)


@dataclass(frozen=True)
class ComparedCell:
    """One cell beside the base."""

    cell: Cell
    ratio: Ratio | None = None  # items in the same time
    memory: float | None = None
    refused: str = ""
    #: What was asked otherwise: here, and of the base.
    asked: Sequence[tuple[str, object, object]] = ()
    differs: Sequence[str] = ()
    doubts: Sequence[str] = ()  # of both, what makes a ratio doubtful: it has a mark
    first: bool = False  # what the others are compared with
    of_other_runs: bool = False  # than the base's launches, all of them
    not_exact: str = ""  # why its outputs are not known to be those of a float precision
    accuracy: TaskAccuracy | None = None  # of its outputs against labels

    @property
    def speedup(self) -> float | None:
        """Items in the same time; None where nothing can be told."""
        if self.ratio is not None:
            return self.ratio.value if self.ratio.told else None
        return 1.0 if self.first and not self.refused else None


def beside(
    chosen: Sequence[tuple[Cell, Sequence[Row]]], known: Histories, at: int = 0
) -> list[ComparedCell]:
    """Each of the cells beside one of them; that itself is once as fast."""
    if not chosen:
        return []
    first = chosen[at]
    base = _side(first[1])
    alone = ComparedCell(first[0], refused=_why_not(first[0], base), first=True)
    sides = [
        alone if n == at else _beside(cell, _side(rows), first[0], base, known)
        for n, (cell, rows) in enumerate(chosen)
    ]
    return [
        replace(side, not_exact=not_exact(rows), accuracy=accuracy_among(rows))
        for side, (_, rows) in zip(sides, chosen, strict=True)
    ]


def _side(rows: Sequence[Row]) -> Side | None:
    """Return the launches of a cell with a result, or None if there are none."""
    every = launches_of(rows)
    known = [row for row in every if row["answered"] and statistic_of(row) is not None]
    return side_of((), measurement_of(known)) if known else None


def _beside(
    cell: Cell, side: Side | None, first: Cell, base: Side | None, known: Histories
) -> ComparedCell:
    questions = [
        (name, cell.get(name), first.get(name))
        for name in ASKED
        if str(cell.get(name)) != str(first.get(name))
    ]
    why = _why_not(cell, side) or _why_not(first, base)
    if why or side is None or base is None:
        return ComparedCell(cell, refused=why, asked=questions)
    axis, otherwise = nearest_axis(base.row, side.row)
    differs = differing(base, side, axis)
    other_work = next((name for name in ("model", "mode") if cell.get(name) != first.get(name)), "")
    why_not = unlike(base.rows, side.rows, other_work)
    why = f"not alike: {', '.join(why_not)}" if why_not else refused_along(otherwise)
    if why:
        return ComparedCell(cell, refused=why, asked=questions, differs=differs)
    speedup = ratio(side.rows, base.rows, known)
    if speedup is None:
        return ComparedCell(cell, refused=NO_FIGURE, asked=questions, differs=differs)
    return ComparedCell(
        cell,
        speedup,
        side.memory_mb / base.memory_mb if side.memory_mb and base.memory_mb else None,
        asked=questions,
        differs=differs,
        doubts=[*(name.replace("_", " ") for name in otherwise), *doubtful(differs)],
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
        return "there are no figures"
    return "" if side.usable else f"unusable: {why_unusable(side.rows)}"


#: What is drawn of a comparison, when somebody asks for it.
_BESIDE = ("latency-distribution", "hardware-latency", "throughput-by-batch", "pareto")
#: What tells configurations apart beside their model and options, which stand in its place.
_TOLD = frozenset((*ASKED, "machine")) - {"model", "options"}


class ComparedPage(SitePages):
    """The answer of /compare."""

    def page(self, request: Request) -> Response:
        """Chosen cells beside one of them."""
        snapshot, query = self._requested(request)
        chosen = cells.named(snapshot, query.cells)
        named = request.query_params.get("base", "")
        # The first, if none is named.
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
            # All launches, in order of time: neighbours on a machine that drifts are alike.
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
    """This page of other cells, or against another; the first is what others are compared with."""
    pairs = [*(("cell", key) for key in keys), *([("base", base)] if base else [])]
    return f"?{urlencode(pairs)}"


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
    ratio = side.ratio
    return None if ratio is None or side.refused else (ratio.value, *ratio.shown)

"""The comparison of chosen configurations: a sentence, a picture of intervals, and a table.

The axis of the picture is logarithmic. Places are per cent of its width, so that it fits a phone.
In the sentence the faster one comes first, so that a factor is above 1. The ends of its interval
are rounded outwards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from math import ceil, floor, log

from starlette.requests import Request
from starlette.responses import Response

from accelbench.core.axes import TITLE_ORDER, axes_of
from accelbench.core.columns import CONFIGURATION_COLUMNS
from accelbench.core.devices import title_of
from accelbench.core.formatting import NOT_KNOWN, format_count, format_digits
from accelbench.core.precision import summarise_inexact
from accelbench.core.result_statistics import best_statistic, is_too_wide
from accelbench.core.rows import Row, text
from accelbench.core.unusable_reasons import COMPARABLE, why_unusable
from accelbench.evidence.launches import launches_of
from accelbench.evidence.measurements import merge_launches
from accelbench.judge import comparison
from accelbench.judge.accuracies import TaskAccuracy, accuracy_among
from accelbench.judge.older_runs import histories_of
from accelbench.judge.ratios import SAMPLES, Faster, Ratio
from accelbench.judge.run_noise import Histories
from accelbench.judge.sides import Side, side_of
from accelbench.present.charts import CHARTS
from accelbench.present.charts.axes import decades
from accelbench.present.charts.words import short_device
from accelbench.present.dashboard import cells, details, page_query, table_query
from accelbench.present.dashboard.cells import Cell
from accelbench.present.dashboard.page_base import SitePages
from accelbench.present.dashboard.snapshot import Snapshot
from accelbench.present.texts import phrase

#: Rounding may make an interval so many times as wide, before more digits are written.
_WIDER = 1.5
_MOST_DIGITS = 3
#: Memory that differs by less is said to be alike.
_AS_MUCH = 0.02
_LISTED = 3
#: Words of ours that the name of a side may begin with; models, engines and precisions have names.
_OURS = frozenset(("batch", "compiled", "not", "training", "inference", "measured", "imported"))
_TEN = 9.95


@dataclass(frozen=True)
class SideOfRatio:
    """What is compared with the base."""

    name: str  # what it is called
    ratio: Ratio | None = None  # items in the same time
    memory: float | None = None  # how many times as much
    refused: str = ""  # why nothing is told of it
    doubts: Sequence[str] = ()  # what else is not alike


def sentence(base: str, others: Sequence[SideOfRatio]) -> str:
    """What a comparison comes to."""
    compared = [side for side in others if side.ratio is not None and not side.refused]
    if not others:
        return ""
    refused = [side for side in others if side not in compared]
    alone = len(refused) == 1
    if not compared:
        what = f"{refused[0].name} is not" if len(others) == 1 else "Nothing is"
        return _begun(
            phrase("compare.not-compared", what=what, base=base, reasons=_reasons(others))
        )
    if len(others) == 1:
        return _begun(_pair(base, compared[0]))
    which = f"{refused[0].name} is" if alone else f"{len(refused)} are"
    more = f" {_begun(f'{which} not compared: {_reasons(refused)}.')}" if refused else ""
    return _begun(_several(base, compared)) + more


def _begun(text: str) -> str:
    first = text.partition(" ")[0]
    return text[:1].upper() + text[1:] if first in _OURS else text


def times(low: float, high: float) -> str:
    """A factor and its interval: 1.1–1.3×."""
    narrow = high - low
    for many in range(1, _MOST_DIGITS + 1):
        down, up = _rounded(low, many, floor, 1e-9), _rounded(high, many, ceil, -1e-9)
        crosses = (low > 1.0 >= down) or (high < 1.0 <= up) or down <= 0.0
        if not crosses and up - down <= _WIDER * narrow:
            break
    first, last = (f"{end:,.{_places(end, many)}f}" for end in (down, up))
    return f"{first}×" if first == last else f"{first}–{last}×"


def _rounded(end: float, digits: int, way: Callable[[float], int], little: float) -> float:
    step = 10.0 ** -_places(end, digits)
    return way(end / step + little) * step


def _places(end: float, digits: int) -> int:
    return max(0, digits - (end >= _TEN))


def names_of(rows: Sequence[Row], machines: Mapping[str, str]) -> list[str]:
    """Name each of several configurations by what tells it from the others."""
    several = [_parts(row, machines) for row in rows]
    differ = [n for n in several[0] if len({parts[n] for parts in several}) > 1] if several else []
    usuals = [_name([parts[n] for n in differ if parts[n]]) for parts in several]
    names = list(usuals)
    for n, row in enumerate(rows):
        apart = text(row, "apart")
        if usuals.count(usuals[n]) > 1 or not usuals[n]:
            usual = usuals[n] or " ".join(part for part in several[n].values() if part)
            names[n] = f"{usual} ({apart})" if apart else usual
    counts: dict[str, int] = {}
    for n, name in enumerate(names):
        counts[name] = counts.get(name, 0) + 1
        if counts[name] > 1:
            names[n] = f"{name} ({counts[name]})"
    return names


def _name(parts: Sequence[str]) -> str:
    name = " ".join(parts)
    return name.removeprefix("on ").removeprefix("(").removesuffix(")") if len(parts) == 1 else name


def _parts(row: Row, machines: Mapping[str, str]) -> dict[str, str]:
    sizes = ((axis.column, axis.page_label) for axis in axes_of(*TITLE_ORDER))
    places = [short_device(str(row["device_name"]))] if row.get("device_name") else []
    machine = machines.get(text(row, "machine"), "")
    number = row.get("threads")
    return {
        "model": text(row, "model"),
        "runtime": title_of(text(row, "runtime")),
        "hardware": f"on {text(row, 'hardware')}",
        "device": f"({places[0]})" if places else "",
        "machine": f"on {machine}" if machine else "",
        "precision": text(row, "precision"),
        "batch": f"batch {row['batch_size']}" if row.get("batch_size") else "",
        "size": " ".join(label.format(row[name]) for name, label in sizes if row.get(name)),
        "mode": text(row, "mode"),
        "compiled": {True: "compiled", False: "not compiled"}.get(row.get("compiled"), ""),  # type: ignore[call-overload]
        "threads": format_count(int(str(number)), "thread") if number else "",
        "processes": f"{row['world_size']} processes" if row.get("world_size") else "",
        "kind": text(row, "kind"),
    }


def _pair(base: str, side: SideOfRatio) -> str:
    ratio = side.ratio
    if ratio is None:
        return ""
    if covers_one(ratio):
        return phrase(
            "compare.pair-inconclusive",
            name=side.name,
            base=base,
            factor=_factor(ratio),
            single=_single(ratio),
            memory=_memory(side.memory),
            doubts=_doubts(side),
        )
    slower = ratio.value < 1.0
    first, second = (base, side.name) if slower else (side.name, base)
    factor, memory = _factor(_turned(ratio) if slower else ratio), side.memory
    if not ratio.told:
        told = phrase("compare.faster-without-factor", first=first, second=second, factor=factor)
        return f"{told}{_single(ratio)}{_doubts(side)}."
    if slower:
        memory = 1.0 / memory if memory else None
    told = phrase("compare.times-as-fast", first=first, factor=factor, second=second)
    return f"{told}{_single(ratio)}{_memory(memory)}{_doubts(side)}."


def _several(base: str, compared: Sequence[SideOfRatio]) -> str:
    itself = SideOfRatio(base)
    values = {id(side): side.ratio.value for side in compared if side.ratio}
    every = sorted([itself, *compared], key=lambda one: values.get(id(one), 1.0), reverse=True)
    best = every[0]
    rivals = [
        side for side in every if side is best or _ratio_ends(side)[1] >= _ratio_ends(best)[0]
    ]
    unknown = [side for side in compared if side.ratio is not None and not side.ratio.told]
    alone = _resting_on(compared)
    if len(rivals) > 1:
        told = phrase("compare.fastest-inconclusive", named=_named(rivals))
        if best is not itself and best.ratio is not None and best.ratio.told:
            told += phrase(
                "compare.best-times-as-fast", name=best.name, factor=_factor(best.ratio), base=base
            )
    elif best is itself:
        next_one = every[1]
        turned = _factor(_turned(next_one.ratio)) if next_one.ratio else ""
        told = phrase(
            "compare.base-is-fastest",
            base=base,
            every=len(every),
            turned=turned,
            name=next_one.name,
        )
        told += _doubts(next_one)
    else:
        factor = _factor(best.ratio) if best.ratio else ""
        told = phrase(
            "compare.other-is-fastest", name=best.name, every=len(every), factor=factor, base=base
        )
        told += _memory(best.memory) + _doubts(best)
    last = every[-1]
    slowest = all(_ratio_ends(last)[1] < _ratio_ends(side)[0] for side in every[:-1])
    if slowest and last not in rivals and last not in unknown and last.ratio:
        told += phrase("compare.slowest", name=last.name, factor=_factor(last.ratio), base=base)
    return f"{told}{alone}."


def _resting_on(compared: Sequence[SideOfRatio]) -> str:
    single = sum(bool(side.ratio and side.ratio.no_interval) for side in compared)
    within = sum(bool(side.ratio and side.ratio.of == SAMPLES) for side in compared)
    many = len(compared)
    parts = [
        f"{'all' if count == many else f'{count} of {many} ratios'} {what}"
        for count, what in (
            (single, phrase("compare.ratios-of-single-figures")),
            (within, "within single launches"),
        )
        if count
    ]
    return f" ({'; '.join(parts)})" if parts else ""


def _reasons(sides: Sequence[SideOfRatio]) -> str:
    return "; ".join(dict.fromkeys(side.refused for side in sides))


def _named(sides: Sequence[SideOfRatio]) -> str:
    names = [side.name for side in sides]
    if len(names) > _LISTED + 1:
        return f"{', '.join(names[:_LISTED])} and {format_count(len(names) - _LISTED, 'other')}"
    return f"{', '.join(names[:-1])} and {names[-1]}"


def _ratio_ends(side: SideOfRatio) -> tuple[float, float]:
    ratio = side.ratio
    if ratio is None:
        return 1.0, 1.0
    # By single figures something is the fastest all the same, and the sentence says what they are.
    return ratio.ends if ratio.low and ratio.high else (ratio.value, ratio.value)


def covers_one(ratio: Ratio) -> bool:
    """Whether the interval leaves open which is faster."""
    return ratio.low is not None and ratio.direction is Faster.UNSURE


def _turned(ratio: Ratio) -> Ratio:
    low, high = (None if end is None else 1.0 / end for end in (ratio.high, ratio.low))
    return Ratio(1.0 / ratio.value, ratio.statistic, ratio.launches[::-1], low, high, ratio.of)


def _factor(ratio: Ratio) -> str:
    if ratio.low is None or ratio.high is None:
        return f"{format_digits(ratio.value)}×"
    if is_too_wide(ratio.low, ratio.high):
        return f"{format_digits(ratio.value)}× (interval {NOT_KNOWN})"
    return times(ratio.low, ratio.high)


def _single(ratio: Ratio) -> str:
    what = "within single launches" if ratio.of == SAMPLES else ratio.no_interval
    return f" ({what})" if what else ""


def _memory(factor: float | None) -> str:
    if factor is None:
        return ""
    return (
        "; memory alike" if abs(factor - 1.0) < _AS_MUCH else f"; memory {format_digits(factor)}×"
    )


def _doubts(side: SideOfRatio) -> str:
    return f"; not alike: {', '.join(side.doubts[:_LISTED])}" if side.doubts else ""


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
            not_exact=summarise_inexact(rows),
            accuracy=accuracy_among(rows),
        )
        for n, (cell, rows) in enumerate(chosen)
    ]


def _side(rows: Sequence[Row]) -> Side | None:
    """Return the launches of a cell with a result, or None if there are none."""
    every = launches_of(rows)
    known = [row for row in every if row["answered"] and best_statistic(row) is not None]
    return side_of((), merge_launches(known)) if known else None


def _compared(
    cell: Cell, side: Side | None, first: Cell, base: Side | None, known: Histories
) -> ComparedCell:
    asked = [
        (name, cell.get(name), first.get(name))
        for name in CONFIGURATION_COLUMNS
        if str(cell.get(name)) != str(first.get(name))
    ]
    why = _why_not(cell, side) or _why_not(first, base)
    if why or side is None or base is None:
        return ComparedCell(cell, refused=why, asked=asked)
    axis, otherwise = comparison.nearest_axis(base.row, side.row)
    # Weights may differ along these axes only.
    work = next((name for name in ("model", "mode") if cell.get(name) != first.get(name)), "")
    line = comparison.compared_side(side, base, replace(axis, name=work), (), known)
    refused = line.refused or comparison.refused_along(otherwise)
    if refused:
        return ComparedCell(cell, refused=refused, asked=asked, differs=line.differs)
    return ComparedCell(
        cell,
        line.ratio,
        line.memory_ratio,
        asked=asked,
        differs=line.differs,
        doubts=[
            *(name.replace("_", " ") for name in otherwise),
            *comparison.doubtful(line.differs),
        ],
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
_TOLD = frozenset((*CONFIGURATION_COLUMNS, "machine")) - {"model", "options"}


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
        cells.told_apart(chosen, table_query.told_by([page_query.MODEL, *columns]))
        drawn = picture_of([_ends(side) for side in sides])
        return self.site.page(
            request,
            "compare.html",
            page_query.PageQuery(
                cells=query.cells
            ),  # the form of the table sends its filters along
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
            of_these=page_query.PageQuery(cells=query.cells).query(),
            against=lambda key: _address(query.cells, key),
            without=lambda key: _address(
                [other for other in query.cells if other != key],
                sides[base].cell["key"] if base and key != sides[base].cell["key"] else "",
            ),
        )

    def _sides(self, snapshot: Snapshot, chosen: Sequence[Cell], base: int) -> list[ComparedCell]:
        database = self.site.database
        with database.keep_open():
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
    return page_query.address_of_pairs(
        [*(("cell", key) for key in keys), *([("base", base)] if base else [])], "?"
    )


def _differing(chosen: Sequence[Cell]) -> list[page_query.ResultColumn]:
    return [
        column
        for column in page_query.COLUMNS.values()
        if column.column in _TOLD
        and len({str(table_query.value_of(cell, column)) for cell in chosen}) > 1
    ]


def _alike(
    chosen: Sequence[Cell], columns: Sequence[page_query.ResultColumn], snapshot: Snapshot
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

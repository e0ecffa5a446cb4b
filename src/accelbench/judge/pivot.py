"""Engines × precisions × batches of a model on one device, with the best marked. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from accelbench.core.columns import CONFIGURATION_COLUMNS
from accelbench.core.result_statistics import best_statistic, common_times
from accelbench.core.rows import Row, number
from accelbench.evidence.launches import launches_of
from accelbench.judge.comparison import unlike
from accelbench.judge.questions import AXES, Key, physical, plain, values
from accelbench.judge.ratios import Ratio, quickest, ratio
from accelbench.judge.run_noise import Histories
from accelbench.judge.sides import MatchedConfiguration, Side, matched, side_of, ways_of
from accelbench.measure.launch_verdicts import geometric_mean

#: What a line is of: how it ran.
_LINE = ("runtime", "hardware", "precision", "compiled", "threads", "options")
#: What a table is of: the work, and where.
_TABLE = tuple(
    name for name in CONFIGURATION_COLUMNS if name not in (*_LINE, "device_name", "batch_size")
)
#: What lines can be put in order by.
SORTS = ("speed", "engine", "precision", "error")


@dataclass(frozen=True)
class PivotLine:
    """One way of running, at every batch that it was measured at."""

    row: Row
    cells: Mapping[int, Side]
    best: frozenset[int] = frozenset()  # batches at which no other line is faster
    near: frozenset[int] = frozenset()  # at which it cannot be told whether it is the best
    differs: Mapping[int, Sequence[str]] = field(default_factory=dict)  # from the first batch
    item_ms: Mapping[int, float] = field(default_factory=dict)  # by a figure that all lines have

    @property
    def error(self) -> float | None:
        """How far its outputs are from the reference's, at the batch where it is most."""
        rows = [row for side in self.cells.values() for row in side.rows]
        known = [number(row, "verification_error") for row in rows]
        errors = [float(error) for error in known if error is not None]
        return max(errors) if errors else None

    @property
    def verification(self) -> str:
        """What was found of its outputs, in one word."""
        words = {
            str(row.get("verification") or "not_done")
            for side in self.cells.values()
            for row in side.rows
        }
        return next((word for word in ("not_done", "ok", "reference") if word in words), "not_done")

    @property
    def fastest(self) -> float:
        """Items a second at its best batch."""
        return max((1.0 / taken for taken in self.item_ms.values()), default=0.0)


@dataclass(frozen=True)
class Pivot:
    """A model's lines on one device."""

    row: Row
    batches: Sequence[int]
    lines: Sequence[PivotLine] = field(default_factory=list)


def pivots(rows: Iterable[Row], known: Histories, sort: str = "speed") -> list[Pivot]:
    """Tables of what was asked alike but for engine, precision and batch; single cells are none.

    Args:
        rows: of one machine.
        known: the older runs of what is compared.
        sort: one of SORTS.
    """
    tables: dict[Key, dict[Key, dict[int, list[Row]]]] = {}
    for row in launches_of(rows):
        if not row["answered"] or best_statistic(row) is None or row.get("emulated"):
            continue
        lines = tables.setdefault((physical(row), *values(row, _TABLE)), {})
        batches = lines.setdefault(values(row, _LINE), {})
        batches.setdefault(int(number(row, "batch_size") or 0), []).append(row)
    grids = []
    for lines in tables.values():
        ways = iter(
            ways_of([rows for batches in lines.values() for rows in batches.values()], _BATCH)
        )
        every_way = [{(batch,): next(ways) for batch in batches} for batches in lines.values()]
        made = _timed([_line(places) for places in every_way])
        every = sorted({batch for line in made for batch in line.cells})
        if len(made) * len(every) > 1:
            grids.append(Pivot(made[0].row, every, _sorted(_marked(made, every, known), sort)))
    return grids


_BATCH = AXES["batch"]


def _line(ways: Mapping[tuple[int], Sequence[MatchedConfiguration]]) -> PivotLine:
    """Along a line only the batch is another, where that can be: what ran otherwise is told."""
    alike = matched(ways, min(ways), _BATCH)
    cells = {batch: side_of((batch,), way.current) for (batch,), way in alike.items()}
    first = alike[min(ways)]
    differs = {
        batch: [f"{name} {first.traits[name]} → {way.traits[name]}" for name in unlike_first]
        for (batch,), way in alike.items()
        if (unlike_first := way.unlike(first))
    }
    return PivotLine(next(iter(cells.values())).row, cells, differs=differs)


def _timed(lines: Sequence[PivotLine]) -> list[PivotLine]:
    """Lines with what an item takes in each cell, by the one figure that all cells have.

    A token of one engine and an image of another are no items of one column.
    """
    every = [row for line in lines for side in line.cells.values() for row in side.rows]
    return [
        replace(
            line,
            item_ms={
                batch: side.time_ms if known is None else geometric_mean(known[1])
                for batch, side in line.cells.items()
                for known in [common_times(side.rows, every)]
            },
        )
        for line in lines
    ]


def _marked(
    lines: Sequence[PivotLine], batches: Sequence[int], known: Histories
) -> list[PivotLine]:
    best: dict[int, set[int]] = {}
    near: dict[int, set[int]] = {}
    for batch in batches:
        sides = [(n, line.cells[batch]) for n, line in enumerate(lines) if batch in line.cells]
        usable = [(n, side) for n, side in sides if side.usable]
        if len(usable) < 2:
            continue
        if any(unlike(side.rows, other.rows) for (_, side), (_, other) in pairwise(usable)):
            continue  # of other weights, or by other workarounds: `compare` refuses such
        first, best_side = usable[quickest([side.rows for _, side in usable])]
        held = {n: ratio(side.rows, best_side.rows, known) for n, side in usable if n != first}
        if None in held.values():  # they have no figure in common: a rate, and a time of no batch
            continue
        best[batch] = {first}
        near[batch] = {n for n, speedup in held.items() if speedup and _may_be_as_fast(speedup)}
    return [
        replace(
            line,
            best=frozenset(batch for batch, numbers in best.items() if n in numbers),
            near=frozenset(batch for batch, numbers in near.items() if n in numbers),
        )
        for n, line in enumerate(lines)
    ]


def _may_be_as_fast(speedup: Ratio) -> bool:
    """Whether what is known does not tell it from the best; of no interval nothing is said.

    One that ends below 1 says who is faster, however little it says of how much.
    """
    return speedup.high is not None and speedup.high >= 1.0


def _sorted(lines: Sequence[PivotLine], sort: str) -> list[PivotLine]:
    def name(line: PivotLine) -> tuple[str, ...]:
        return tuple(str(plain(line.row.get(column))) for column in _LINE)

    if sort == "engine":
        return sorted(lines, key=name)
    if sort == "precision":
        return sorted(
            lines, key=lambda pivot_line: (str(pivot_line.row.get("precision")), name(pivot_line))
        )
    if sort == "error":
        return sorted(
            lines,
            key=lambda pivot_line: (
                pivot_line.error is None,
                pivot_line.error or 0.0,
                name(pivot_line),
            ),
        )
    return sorted(lines, key=lambda pivot_line: (-pivot_line.fastest, name(pivot_line)))

"""The comparison of chosen configurations: a sentence, a picture of intervals, and one table."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response

from accelbench.core.columns import ASKED
from accelbench.query.histories import histories_of
from accelbench.report.charts import CHARTS
from accelbench.report.comparison_sentence import SideOfRatio, covers_one, names_of, sentence
from accelbench.report.dashboard.asked import PageQuery
from accelbench.report.dashboard.comparing.beside import ComparedCell, beside
from accelbench.report.dashboard.comparing.interval_picture import picture_of
from accelbench.report.dashboard.results import rows as result_rows
from accelbench.report.dashboard.results.columns import COLUMNS, MODEL, ResultColumn
from accelbench.report.dashboard.site import Site
from accelbench.report.dashboard.snapshots import cells, details
from accelbench.report.dashboard.snapshots.cells import Cell
from accelbench.report.dashboard.snapshots.snapshot import Snapshot

#: What is drawn of a comparison, when somebody asks for it.
_BESIDE = ("latency-distribution", "hardware-latency", "throughput-by-batch", "pareto")
#: What tells configurations apart beside their model and options, which stand in its place.
_TOLD = frozenset((*ASKED, "machine")) - {"model", "options"}


class ComparedPage:
    """Answers the address of the comparison."""

    def __init__(self, site: Site) -> None:
        self.site = site

    def page(self, request: Request) -> Response:
        """Chosen cells beside one of them."""
        snapshot = self.site.snapshot()
        query = self.site.asked(request, snapshot)
        chosen = cells.named(snapshot, query.cells)
        base = _base(chosen, request.query_params.get("base", ""))
        sides = self._sides(snapshot, chosen, base)
        names = names_of(chosen, {key: held.name for key, held in snapshot.machines.items()})
        columns = _differing(chosen)
        cells.told_apart(chosen, result_rows.told_by([MODEL, *columns]))
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
            rows = details.rows_of(database, [key for cell in chosen for key in cell["results"]])
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


def _base(chosen: Sequence[Cell], key: str) -> int:
    """Which of the cells the others are compared with: the first, where none is named."""
    return next((n for n, cell in enumerate(chosen) if cell["key"] == key), 0)


def _differing(chosen: Sequence[Cell]) -> list[ResultColumn]:
    """The columns of what was asked for in which the cells differ."""
    return [
        column
        for column in COLUMNS.values()
        if column.column in _TOLD
        and len({str(result_rows.value_of(cell, column)) for cell in chosen}) > 1
    ]


def _alike(
    chosen: Sequence[Cell], columns: Sequence[ResultColumn], snapshot: Snapshot
) -> list[str]:
    model = [str(chosen[0]["model"])] if len({cell["model"] for cell in chosen}) == 1 else []
    return [*model, *result_rows.in_common(chosen, columns, snapshot.machines)]


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

"""The pages that look at cells: all of them, one, several, and what became of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from starlette.requests import Request
from starlette.responses import Response

from accelbench.analysis.matrix import RULE, Matrix
from accelbench.analysis.matrix import MatrixCell as Rated
from accelbench.analysis.ranks import ranks_of
from accelbench.core.rows import number
from accelbench.evidence.launches import with_reported_outputs
from accelbench.query.matrices import matrix_on
from accelbench.report.charts.distribution import MOST_LAUNCHES
from accelbench.report.dashboard.asked import PageQuery, exactly_named
from accelbench.report.dashboard.site import NotThereError, Site
from accelbench.report.dashboard.snapshots import cells, details
from accelbench.report.dashboard.snapshots.cells import Cell, cell_accuracy
from accelbench.report.dashboard.snapshots.snapshot import Snapshot, spent_of
from accelbench.report.history import document
from accelbench.report.matrix import mark, tells

#: Launches that a matrix rests on at most.
_MOST_OF_MATRIX = 1500


class Pages:
    """Each method answers one address."""

    def __init__(self, site: Site) -> None:
        self.site = site

    def cell(self, request: Request) -> Response:
        """One cell, with everything behind it."""
        snapshot = self.site.snapshot()
        cell = self.named(snapshot, request.path_params["key"])
        database = self.site.database
        with database.asking():
            ids = cell["results"][: details.MOST_LAUNCHES]
            rows = with_reported_outputs(details.launches_in(database, ids))
            run = details.run_of(database, str(cell["run_id"]))
            accuracy = cell_accuracy(database, snapshot, cell, rows)
            metric = details.BY_METRIC["latency"]
            series = details.history_of(database, snapshot, [cell], metric, fewest=2)
        machine = snapshot.machines.get(str(cell["machine"]))
        return self.site.page(
            request,
            "cell.html",
            snapshot=snapshot,
            cell=cell,
            rows=rows,
            run=run,
            accuracy=accuracy,
            machine=machine,
            spent=spent_of(rows, snapshot.prices, machine),
            empty=details.why_empty(rows),
            warned=details.warned(rows),
            drawn=min(MOST_LAUNCHES, sum((number(row, "sample_count") or 0) > 1 for row in rows)),
            ranked=any(sum(rank.known for rank in ranks_of(row)) > 1 for row in rows),
            beside=cells.beside(snapshot, cell),
            series=[document(history) for history in series],
            of_it=PageQuery(cells=(cell["key"],)),
            of_model=PageQuery(model=exactly_named(str(cell["model"]))),
        )

    def matrix(self, request: Request) -> Response:
        """What each platform is worth for each model, on one machine."""
        snapshot, query = self._asked(request)
        query = self._of_one(snapshot, query)
        chosen = cells.of_matrix(snapshot, query, _MOST_OF_MATRIX)
        ids = [key for cell in chosen for key in cell["results"]]
        rows = details.launches_in(self.site.database, ids[:_MOST_OF_MATRIX])
        machine = snapshot.machines.get(next(iter(query.chosen.get("machine", ())), ""))
        best = not query.chosen.get("precision")
        made = matrix_on(rows, machine, self.site.local, best_precision=best)
        return self.site.filtered(
            request,
            "matrix.html",
            query,
            snapshot,
            matrix=made,
            looked_at=_tried(made),
            rule=RULE,
            plain_mark=_plain_mark,
            tells=tells,
            found=cells.found(snapshot, replace(query, page=1)),
            left_out=max(0, len(ids) - _MOST_OF_MATRIX),
        )

    def named(self, snapshot: Snapshot, key: str) -> Cell:
        """A cell by its key.

        Raises:
            NotThereError: There is none, or it is no more.
        """
        matches = cells.named(snapshot, [key])
        if not matches:
            raise NotThereError(
                "There is no such configuration, or a later run has taken its place."
            )
        return matches[0]

    def _asked(self, request: Request) -> tuple[Snapshot, PageQuery]:
        snapshot = self.site.snapshot()
        return snapshot, self.site.asked(request, snapshot)

    def _of_one(self, snapshot: Snapshot, query: PageQuery) -> PageQuery:
        """One machine and mode: what is not said is as `accelbench matrix` has it."""
        choices = snapshot.known
        wanted = {
            "machine": query.chosen.get("machine") or cells.newest_machine(snapshot),
            "mode": query.chosen.get("mode") or _first(choices["mode"], "inference"),
        }
        picks = {name: values[:1] for name, values in wanted.items() if values}
        return replace(query, chosen={**query.chosen, **picks})


#: The documents' marks as signs of ordinary fonts; U+FE0E asks for the plain form.
_SIGNS = {"✅": "✓", "⚠️": "⚠\ufe0e", "❌": "✗"}


def _tried(made: Matrix) -> list[str]:
    """Platforms on which any model was tried; all, where none was."""
    tried = [
        name for name in made.hardware if any(one.cells[name].has_result for one in made.models)
    ]
    return tried or list(made.hardware)


def _plain_mark(cell: Rated) -> str:
    marked = mark(cell)
    for emoji, sign in _SIGNS.items():
        marked = marked.replace(emoji, sign)
    return marked


def _first(values: Sequence[str], usual: str) -> tuple[str, ...]:
    return (usual,) if usual in values else tuple(values[:1])

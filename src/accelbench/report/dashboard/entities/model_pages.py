"""The pages of models: a list, one with all that is known of it, and its predictions."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response

from accelbench.analysis.summary import fastest_lines
from accelbench.core.errors import UsageError
from accelbench.core.nouns import reference_words
from accelbench.core.precision import error_of
from accelbench.core.rows import Row, number, text
from accelbench.core.visible import in_quotes
from accelbench.query.histories import histories_of
from accelbench.report.charts import CHARTS
from accelbench.report.charts.chart import Chart, Picture, Subject
from accelbench.report.charts.words import safe
from accelbench.report.dashboard.asked import NEWEST_FIRST, PageQuery, exactly_named, page_of
from accelbench.report.dashboard.entities import lists as entities
from accelbench.report.dashboard.entities.lists import CONFIGURATIONS, MOST_CELLS, MOST_LAUNCHES
from accelbench.report.dashboard.pictures.pictures import chart_of
from accelbench.report.dashboard.site import NotThereError, Site, SitePages
from accelbench.report.dashboard.snapshots.cells import Cell
from accelbench.report.dashboard.snapshots.snapshot import Snapshot
from accelbench.report.prediction_evidence import BATCH_SCALING, scaling_of

#: What is drawn of a model below its panels: of charts of one thing the first that has something.
_DRAWN = (("pareto",), ("memory-by-batch", "hardware-memory"), ("cold-warm",))
_FIRST = "model-panels"


@dataclass(frozen=True)
class VerifiedWay:
    """What was found of the outputs of an engine in a precision on a device."""

    row: Row  # a result of it
    found: str  # in a word: ok, failed, reference, not done
    reference: str  # what outputs were compared with; "" where they were not
    error: float | None  # the largest error of all its launches
    tolerance: float | None  # what is allowed there
    launches: int  # how many are looked at


class ModelPages(SitePages):
    """Models."""

    def __init__(self, site: Site) -> None:
        super().__init__(site)
        #: One at a time: whoever asks meanwhile has the same.
        self._predicting = threading.Lock()

    def all(self, request: Request) -> Response:
        """Every model of what was asked for."""
        snapshot, query = self._requested(request, NEWEST_FIRST)
        return self.site.page(
            request,
            "models.html",
            query,
            snapshot=snapshot,
            listed=entities.listed(snapshot, query, "model"),
        )

    def model(self, request: Request) -> Response:
        """One model: the answer first, then all devices, engines, precisions and batches.

        Its answers, pictures and outputs are of the same configurations on each page of its table.
        """
        snapshot = self.site.snapshot()
        name = name_of(request)
        about = entities.about(snapshot, "model", name)
        if about is None:
            raise NotThereError(f"Nothing here is of a model {in_quotes(safe(name))}.")
        modes = entities.modes_of_model(snapshot, name)
        mode = _mode(request, modes)
        told, _ = _shown(entities.of_model(snapshot, name, mode))
        page = page_of(request.query_params.get("page"))
        cells, count = entities.page_of_model(snapshot, name, mode, page)
        query = PageQuery(cells=tuple(cell["key"] for cell in told))
        subject = self.site.pictures.subject(snapshot, query)
        return self.site.page(
            request,
            "model.html",
            snapshot=snapshot,
            entity=name,
            about=about,
            modes=modes,
            mode=mode,
            answers=self._answers(snapshot, subject),
            cells=cells,
            count=count,
            page=page,
            last=max(1, -(-count // CONFIGURATIONS)),
            told=len(told),
            implausible=entities.implausible(snapshot, "model", name),
            drawn=self._drawn(snapshot, query),
            verified=verified_ways(subject.rows),
            of_it=f"?{urlencode({'name': name, 'mode': mode})}",
            of_model=PageQuery(model=exactly_named(name)),
        )

    def picture(self, request: Request) -> Response:
        """One of its pictures as a file."""
        snapshot, name = self.site.snapshot(), name_of(request)
        chart = chart_of(str(request.path_params["chart"]))
        modes = entities.modes_of_model(snapshot, name)
        cells, _ = _shown(entities.of_model(snapshot, name, _mode(request, modes)))
        query = PageQuery(cells=tuple(cell["key"] for cell in cells))
        return self._chart_file(request, snapshot, chart, query)

    def _answers(self, snapshot: Snapshot, subject: Subject) -> list[str]:
        machines = {str(machine): machine for machine in snapshot.machines.values()}
        alone = machines.get(subject.machine)
        sides = [(machines.get(p.machine, alone), p.rows) for p in subject.points]
        with self.site.database.asking():
            known = histories_of(self.site.database, sides)
        return fastest_lines(subject.points, known)

    def _drawn(self, snapshot: Snapshot, query: PageQuery) -> list[Picture]:
        if not query.cells:
            return []
        pictures = self.site.pictures

        def first(charts: Sequence[Chart]) -> Picture | None:
            made = (pictures.of(snapshot, chart, query) for chart in charts)
            return next((picture for picture in made if picture is not None), None)

        several = [[CHARTS[name] for name in names] for names in ((_FIRST,), *_DRAWN)]
        return [picture for charts in several if (picture := first(charts)) is not None]

    def predictions(self, request: Request) -> Response:
        """Latency and throughput over batches with bands, or why there are none."""
        snapshot = self.site.snapshot()
        name = name_of(request)
        if entities.about(snapshot, "model", name) is None:
            raise NotThereError(f"Nothing here is of a model {in_quotes(safe(name))}.")
        picture, why = self._scaling(snapshot, name)
        return self.site.page(
            request,
            "model_predictions.html",
            snapshot=snapshot,
            entity=name,
            drawn=picture,
            why=why,
        )

    def predictions_file(self, request: Request) -> Response:
        """The same as a file."""
        snapshot, name = self.site.snapshot(), name_of(request)
        made, why = self._scaling(snapshot, name)
        return self._picture_file(request, snapshot, BATCH_SCALING.name, (name,), made, why)

    def _scaling(self, snapshot: Snapshot, name: str) -> tuple[Picture | None, str]:
        def made() -> tuple[Picture | None, str]:
            with self.site.database.asking():
                return scaling_of(self.site.database, name)

        with self._predicting:
            return self._once(snapshot, ("model predictions", name), made)


def name_of(request: Request) -> str:
    """What an address is of: the rest of its path, or its `name`."""
    named = request.path_params.get("name")
    return str(request.query_params.get("name", "") if named is None else named)


def verified_ways(rows: Sequence[Row]) -> list[VerifiedWay]:
    """Of each engine and precision on a device what was found of its outputs: the worst first."""
    ways: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        if row.get("status") == "ok" or row.get("reason") == "wrong_outputs":
            place = ("device_name", "hardware", "runtime", "precision")
            ways.setdefault(tuple(text(row, column) for column in place), []).append(row)
    every = (_verified(several) for several in ways.values())
    return sorted(every, key=lambda way: (_WORDS.index(way.found), -(way.error or 0.0)))


_WORDS = ("failed", "not_done", "ok", "reference")


def _verified(rows: Sequence[Row]) -> VerifiedWay:
    words = {
        "failed" if row.get("reason") == "wrong_outputs" else str(row.get("verification"))
        for row in rows
    }
    found = next((word for word in _WORDS if word in words), "not_done")
    worst = max(rows, key=lambda row: error_of(row) or 0.0)
    held = [row for row in rows if row.get("verification") in ("ok", "failed")]
    tolerance = number(worst, "verification_tolerance")
    return VerifiedWay(
        worst,
        found,
        reference_words(held) if held else "",
        error_of(worst),
        None if tolerance is None else float(tolerance),
        len(rows),
    )


def _shown(cells: Sequence[Cell]) -> tuple[list[Cell], bool]:
    """As many as a page has room for, by cells and by launches, and whether there are more."""
    kept: list[Cell] = []
    launches = 0
    for cell in cells[:MOST_CELLS]:
        launches += len(cell["results"])
        if kept and launches > MOST_LAUNCHES:
            break
        kept.append(cell)
    return kept, len(kept) < len(cells)


def _mode(request: Request, modes: Sequence[str]) -> str:
    mode = request.query_params.get("mode") or (modes[0] if modes else "")
    if modes and mode not in modes:
        raise UsageError(
            f"It was not measured in a mode {in_quotes(safe(mode))}.", f"There are: {modes}."
        )
    return mode

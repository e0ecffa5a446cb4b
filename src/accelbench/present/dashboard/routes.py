"""The application: its addresses, and errors as pages of one sentence."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from accelbench.core.errors import AccelbenchError, UsageError
from accelbench.present.dashboard.comparing import ComparedPage
from accelbench.present.dashboard.entity_pages import DevicePages, ModelPages
from accelbench.present.dashboard.explore_pages import ExplorePages
from accelbench.present.dashboard.guard import AccessRule, Guard
from accelbench.present.dashboard.history_page import HistoryPage
from accelbench.present.dashboard.overview import OverviewPage
from accelbench.present.dashboard.page_base import HERE, BeingReadError, NotThereError, Site
from accelbench.present.dashboard.picture_pages import ChartPages
from accelbench.present.dashboard.questions import QuestionPages
from accelbench.present.dashboard.results_page import ResultPages
from accelbench.present.dashboard.run_pages import RunPages
from accelbench.present.dashboard.snapshot import SnapshotKeeper
from accelbench.store.database import Database

#: The package with the style of all pages.
_SHARED: list[str | tuple[str, str]] = [("accelbench.present.pages", "styles")]


def application(
    database: Database,
    door: AccessRule | None = None,
    keeper: SnapshotKeeper | None = None,
    instead: Callable[[Site], Sequence[Route]] | None = None,
) -> ASGIApp:
    """Return the dashboard of a store; the routes of `instead` come first."""
    keeper = keeper or SnapshotKeeper(database)
    keeper.begin()
    site = Site(database, keeper)
    return Guard(_pages(site, instead(site) if instead else ()), door or AccessRule())


def _pages(site: Site, instead: Sequence[Route]) -> Starlette:
    results, charts, explore = ResultPages(site), ChartPages(site), ExplorePages(site)
    models, devices = ModelPages(site), DevicePages(site)
    questions, runs = QuestionPages(site), RunPages(site)

    def failed(request: Request, error: Exception) -> Response:
        if isinstance(error, BeingReadError):
            # The header reloads the page without scripts too.
            more = {"snapshot": None, "progress": site.keeper.progress}
            return site.page(request, "waiting.html", None, 202, {"refresh": "1"}, **more)
        status, message, headers = _said(error)
        return site.page(
            request, "sentence.html", status=status, headers=headers, said=message, snapshot=None
        )

    made = Starlette(
        routes=[
            *instead,
            Route("/", OverviewPage(site).page),
            Route("/results", results.page),
            Route("/cells.csv", charts.csv),
            Route("/cell/{key}.json", charts.cell),
            Route("/cell/{key}", results.cell),
            Route("/compare", ComparedPage(site).page),
            Route("/charts", charts.all),
            Route("/chart/{name}.{form}", charts.chart),
            Route("/chart/{name}", charts.alone),
            Route("/explore", explore.points),
            Route("/explore/points.json", explore.data),
            Route("/colours.css", explore.colours),
            Route("/explore/distribution", explore.distribution),
            Route("/explore/distribution.{form}", explore.distribution_file),
            Route("/history", HistoryPage(site).page),
            Route("/matrix", results.matrix),
            Route("/predictions", questions.predictions),
            Route("/predictions/model", models.predictions),
            Route("/model-predictions/batch-scaling.{form}", models.predictions_file),
            Route("/predictions/{name}.{form}", questions.picture),
            Route("/models", models.all),
            Route("/model", models.model),
            Route("/model/{name:path}", models.model),
            Route("/model-chart/{chart}.{form}", models.picture),
            Route("/devices", devices.all),
            Route("/device", devices.device),
            Route("/device/{name:path}", devices.device),
            Route("/device-chart/roofline.{form}", devices.picture),
            Route("/engines", devices.engines),
            Route("/beside/{of}/speed-ups.{form}", devices.speed_ups),
            Route("/runs/compare", runs.compared),
            Route("/recommend", questions.recommend),
            Route("/predict", questions.predict),
            Route("/recommend.json", questions.document),
            Route("/predict.json", questions.document),
            Route("/runs", runs.all),
            Route("/run/{run}", runs.one),
            Mount("/static", StaticFiles(directory=HERE / "static", packages=_SHARED)),
        ],
        exception_handlers=dict.fromkeys(
            (AccelbenchError, NotThereError, BeingReadError, HTTPException, Exception), failed
        ),
    )
    made.router.redirect_slashes = False
    return made


def _said(error: Exception) -> tuple[int, str, dict[str, str]]:
    if isinstance(error, NotThereError):
        return 404, str(error), {}
    if isinstance(error, UsageError):
        return 400, str(error), {}
    if isinstance(error, AccelbenchError):
        return 503, str(error), {}
    if isinstance(error, HTTPException):
        messages = {404: "There is no such page."}
        return error.status_code, messages.get(error.status_code, str(error.detail)), {}
    return 500, f"Something unexpected happened: {type(error).__name__}.", {}

"""What is predicted of a model where it was not measured: a page of its own, made when opened."""

from __future__ import annotations

import threading

from starlette.requests import Request
from starlette.responses import Response

from accelbench.core.visible import in_quotes
from accelbench.report.charts.chart import Picture
from accelbench.report.charts.phrases import safe
from accelbench.report.dashboard.entities import lists as entities
from accelbench.report.dashboard.entities.model_pages import name_of
from accelbench.report.dashboard.pictures.downloads import form_of, look_of, picture_file
from accelbench.report.dashboard.site import NotThereError, Site
from accelbench.report.dashboard.snapshots.snapshot import Snapshot
from accelbench.report.prediction_evidence import BATCH_SCALING, scaling_of


class ModelPredictions:
    """Each method answers one address."""

    def __init__(self, site: Site) -> None:
        self.site = site
        #: One at a time: whoever asks meanwhile has the same.
        self._predicting = threading.Lock()

    def page(self, request: Request) -> Response:
        """Latency and throughput over batches with bands, or why there are none."""
        snapshot = self.site.snapshot()
        name = name_of(request)
        if entities.about_model(snapshot, name) is None:
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

    def picture(self, request: Request) -> Response:
        """The same as a file."""
        snapshot, name = self.site.snapshot(), name_of(request)
        form, look = form_of(request), look_of(request)
        made, why = self._scaling(snapshot, name)
        if made is None:
            raise NotThereError(why)
        key = ("model prediction file", snapshot.at, name, form, look)
        pictures = self.site.pictures
        body = pictures.once(key, lambda: pictures.drawn(made, form, look) or b"")
        return picture_file(request, BATCH_SCALING.name, form, body)

    def _scaling(self, snapshot: Snapshot, name: str) -> tuple[Picture | None, str]:
        def made() -> tuple[Picture | None, str]:
            with self.site.database.asking():
                return scaling_of(self.site.database, name)

        with self._predicting:
            return self.site.pictures.once(("model predictions", snapshot.at, name), made)

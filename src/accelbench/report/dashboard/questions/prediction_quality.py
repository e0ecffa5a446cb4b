"""How good predictions are of what the store has measured: a page of its own.

It is calculated when somebody opens it, once for each snapshot: no other page waits for it.
"""

from __future__ import annotations

import threading

from starlette.requests import Request
from starlette.responses import Response

from accelbench.report.charts.chart import Picture
from accelbench.report.charts.predicted_measured import PREDICTED_MEASURED
from accelbench.report.dashboard.pictures.downloads import form_of, look_of, picture_file
from accelbench.report.dashboard.site import NotThereError, Site
from accelbench.report.dashboard.snapshots.snapshot import Snapshot
from accelbench.report.full_report.predictions import CAPTION, HEADERS, score_rows
from accelbench.report.prediction_evidence import (
    BATCH_SCALING,
    PredictionEvidence,
    evidence_in,
)


class PredictionPages:
    """Each method answers one address."""

    def __init__(self, site: Site) -> None:
        self.site = site
        #: One at a time: whoever asks meanwhile has the same.
        self._judging = threading.Lock()

    def page(self, request: Request) -> Response:
        """Predicted against measured, and batch scaling, or why there is neither."""
        snapshot = self.site.snapshot()
        evidence = self._evidence(snapshot)
        drawn = self._pictures(snapshot)
        return self.site.page(
            request,
            "predictions.html",
            snapshot=snapshot,
            evidence=evidence,
            drawn=[(name, picture) for name, picture in drawn.items() if picture is not None],
            headers_of_scores=HEADERS,
            scores=score_rows(evidence.cases),
            caption=CAPTION,
        )

    def picture(self, request: Request) -> Response:
        """One of its pictures as a file."""
        snapshot, form = self.site.snapshot(), form_of(request)
        name = str(request.path_params["name"])
        made = self._pictures(snapshot).get(name)
        if made is None:
            raise NotThereError("There is no such picture of predictions.")
        look = look_of(request)
        key = ("prediction file", snapshot.at, name, form, look)
        body = self.site.pictures.once(
            key, lambda: self.site.pictures.drawn(made, form, look) or b""
        )
        return picture_file(request, name, form, body)

    def _evidence(self, snapshot: Snapshot) -> PredictionEvidence:
        def judged() -> PredictionEvidence:
            with self.site.database.asking():
                return evidence_in(self.site.database)

        with self._judging:
            return self.site.pictures.once(("evidence", snapshot.at), judged)

    def _pictures(self, snapshot: Snapshot) -> dict[str, Picture | None]:
        evidence = self._evidence(snapshot)
        return self.site.pictures.once(
            ("prediction pictures", snapshot.at),
            lambda: {
                PREDICTED_MEASURED.name: evidence.picture,
                BATCH_SCALING.name: evidence.scaling_picture,
            },
        )

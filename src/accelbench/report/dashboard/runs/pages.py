"""The pages that look at runs: all of them, and one, which may still go on."""

from __future__ import annotations

from collections import Counter

from starlette.requests import Request
from starlette.responses import Response

from accelbench.core.rows import record
from accelbench.report.dashboard.site import NotThereError, Site
from accelbench.report.dashboard.snapshots import details

#: Results of a run that a page lists, the newest first.
_MOST = 300
_MOST_RUNS = 300


class Runs:
    """Each method answers one address."""

    def __init__(self, site: Site) -> None:
        self.site = site

    def all(self, request: Request) -> Response:
        """Every run, those that go on first."""
        snapshot = self.site.snapshot()
        runs = snapshot.ask(
            "SELECT run.* EXCLUDE (environment), ran.machine, cells, failed FROM run"
            " LEFT JOIN ran USING (run_id) LEFT JOIN (SELECT run_id, count(*) AS cells,"
            " count(*) FILTER (status <> 'ok') AS failed FROM cell GROUP BY 1) USING (run_id)"
            " ORDER BY started_at DESC NULLS LAST, run_id DESC LIMIT ?",
            [_MOST_RUNS],
        )
        ended = [str(row["run_id"]) for row in runs if row["status"] != "unfinished"]
        count = snapshot.ask("SELECT count(*) AS runs FROM run")[0]["runs"]
        live = self.site.journals.unfinished(ended)
        going = {run.run_id for run in live}
        return self.site.page(
            request,
            "runs.html",
            snapshot=snapshot,
            runs=[row for row in runs if row["run_id"] not in going],
            live=live,
            count=count,
        )

    def one(self, request: Request) -> Response:
        """One run: by its journal while it goes on, by the store when it has ended."""
        run_id = request.path_params["run"]
        followed = self.site.journals.of(run_id)
        live = followed is not None and followed.state == "running"
        snapshot = self.site.snapshot()
        summary = details.run_of(self.site.database, run_id)
        if followed is None and summary is None:
            raise NotThereError("There is no such run.")
        if followed is not None and (summary is None or live):
            started = followed.started
            summary = details.RunSummary(
                run_id,
                str(started.get("label") or ""),
                str(started.get("command") or ""),
                followed.state,
                str(started.get("started_at") or ""),
                str(started.get("git_commit") or ""),
                record(started, "environment"),
            )
            rows, counts = list(reversed(followed.results)), followed.counts
        else:
            rows = details.results_of(self.site.database, run_id)
            counts = dict(Counter(str(row["status"]) for row in rows))
        cells = snapshot.ask("SELECT count(*) AS cells FROM cell WHERE run_id = ?", [run_id])
        return self.site.page(
            request,
            "run.html",
            snapshot=snapshot,
            run=summary,
            live=live,
            planned=followed.planned if followed is not None else 0,
            done=sum(counts.values()),
            counts=counts,
            rows=rows[:_MOST],
            more=max(0, len(rows) - _MOST),
            cells=cells[0]["cells"],
        )

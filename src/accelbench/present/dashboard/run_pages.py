"""The pages of runs: a list, one run, and two compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from statistics import fmean
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import Response

from accelbench.core.errors import AccelbenchError, UsageError
from accelbench.core.formatting import format_count
from accelbench.core.rows import Json, Row, record
from accelbench.core.safe_text import in_quotes
from accelbench.exchange.titles import format_title
from accelbench.judge.baselines import ALLOWED, BaselineQuery, baseline_of_run
from accelbench.judge.regressions import Check, Outcome
from accelbench.judge.run_names import harmless
from accelbench.present.charts.words import safe
from accelbench.present.check import (
    answer,
    change,
    headline,
    interval_levels,
    ordered,
    sentences,
    sides,
    unusable_times,
)
from accelbench.present.dashboard import details
from accelbench.present.dashboard.page_base import NotThereError, SitePages
from accelbench.present.dashboard.page_query import one_of

if TYPE_CHECKING:
    from accelbench.judge.regressions import CheckedQuestion
    from accelbench.present.dashboard.live_runs import LiveRun
    from accelbench.present.dashboard.snapshot import Snapshot


#: Results of a run, and runs, that a page lists, the newest first.
_MOST, _MOST_RUNS = 300, 300
#: Results of two runs that a page judges; `accelbench check` has no limit.
MOST_RESULTS = 4000
#: Configurations that a comparison lists.
MOST_QUESTIONS = 400
_MOODS = {Outcome.WORSE: "bad", Outcome.CANNOT_TELL: "busy"}


class RunPages(SitePages):
    """Pages of runs."""

    def all(self, request: Request) -> Response:
        """List the runs, those that go on first."""
        snapshot = self.site.snapshot()
        runs = snapshot.ask(
            "SELECT run.* EXCLUDE (environment), ran.machine, cells, failed FROM run"
            " LEFT JOIN ran USING (run_id) LEFT JOIN (SELECT run_id, count(*) AS cells,"
            " count(*) FILTER (status <> 'ok') AS failed FROM cell GROUP BY 1) USING (run_id)"
            " ORDER BY started_at DESC NULLS LAST, run_id DESC LIMIT ?",
            [_MOST_RUNS],
        )
        ended = [str(row["run_id"]) for row in runs if row["status"] != "unfinished"]
        live = self.site.journals.unfinished(ended)
        going = {run.run_id for run in live}
        return self.site.page(
            request,
            "runs.html",
            snapshot=snapshot,
            runs=[row for row in runs if row["run_id"] not in going],
            live=live,
            count=snapshot.count("SELECT count(*) FROM run"),
        )

    def one(self, request: Request) -> Response:
        """Show a run, from its journal while it goes on, else from the store."""
        run_id = request.path_params["run"]
        followed = self.site.journals.of(run_id)
        live = followed is not None and followed.state == "running"
        snapshot = self.site.snapshot()
        summary = details.run_of(self.site.database, run_id)
        if followed is None and summary is None:
            raise NotThereError("There is no such run.")
        if followed is not None and (summary is None or live):
            started = followed.started
            names = ("label", "command", "started_at", "git_commit")
            summary = {name: str(started.get(name) or "") for name in names}
            summary |= {"run_id": run_id, "status": followed.state}
            summary["environment"] = record(started, "environment")
            rows, counts = list(reversed(followed.results)), followed.counts
        else:
            rows = details.results_of(self.site.database, run_id)
            counts = dict(Counter(str(row["status"]) for row in rows))
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
            cells=snapshot.count("SELECT count(*) FROM cell WHERE run_id = ?", [run_id]),
        )

    def compared(self, request: Request) -> Response:
        """Compare two runs: the verdict, its notes and all results."""
        snapshot = self.site.snapshot()
        base, other = (request.query_params.get(name, "") for name in ("a", "b"))
        words = dict.fromkeys(request.query_params.getlist("allow"))
        allow = tuple(one_of("difference to allow", word, ALLOWED) for word in words)
        for run in (base, other):
            if run and not snapshot.ask("SELECT 1 AS it FROM run WHERE run_id = ?", [run]):
                raise NotThereError(f"There is no run {in_quotes(safe(run))}.")
        about: Json = {}
        check, refused = None, ""
        if base and other:
            try:
                check, about = self._checked(snapshot, base, other, allow)
            except AccelbenchError as error:
                refused = str(error)
        return self.site.page(
            request,
            "runs_compare.html",
            snapshot=snapshot,
            runs=_runs(snapshot),
            base=base,
            other=other,
            allow=allow,
            allowed=ALLOWED,
            refused=refused,
            check=check,
            headline=headline(check) if check else "",
            sides=sides(about) if check else "",
            mood=_MOODS.get(check.outcome, "good") if check else "",
            sentences=[*unusable_times(check), *sentences(check, about)] if check else [],
            questions=[(format_title(q.row), q) for q in ordered(check)[:MOST_QUESTIONS]]
            if check
            else [],
            more=max(0, len(check.questions) - MOST_QUESTIONS) if check else 0,
            cells=_cells(snapshot, check.questions) if check else {},
            answer=answer,
            change=change,
            levels=interval_levels(check) if check else "",
        )

    def _checked(
        self, snapshot: Snapshot, base: str, other: str, allow: tuple[str, ...]
    ) -> tuple[Check, Json]:
        if base == other:
            raise UsageError("Both runs are the same.", "Choose another one.")
        self._refuse_many(base, other)

        def made() -> tuple[Check, Json]:
            sought = BaselineQuery({}, (other,), None, allow)
            baseline = baseline_of_run(self.site.database, base, sought)
            return baseline.check(None), baseline.about(None)

        return self._once(snapshot, ("run against run", base, other, allow), made)

    def _refuse_many(self, base: str, other: str) -> None:
        _, ((count,),) = self.site.database.query(
            "SELECT count(*) FROM benchmark_results WHERE run_id IN (?, ?)", [base, other]
        )
        if int(str(count)) > MOST_RESULTS:
            run, beside = harmless(other), harmless(base)
            raise UsageError(
                f"These runs have {int(str(count)):,} results, and a page judges"
                f" {MOST_RESULTS:,} at most.",
                f"accelbench check --run {run} --baseline {beside} judges them all.",
            )


def _runs(snapshot: Snapshot) -> list[tuple[str, str]]:
    rows = snapshot.ask(
        "SELECT run_id, label, started_at FROM run"
        " ORDER BY started_at DESC NULLS LAST, run_id DESC LIMIT ?",
        [_MOST_RUNS],
    )
    return [(str(row["run_id"]), _called(row)) for row in rows]


def _called(row: Row) -> str:
    label = harmless(str(row["label"])) if row.get("label") else ""
    moment = str(row.get("started_at") or "")[:16].replace("T", " ")
    parts = [harmless(str(row["run_id"])), f"({safe(label, 60)})" if label else "", moment]
    return " ".join(filter(None, parts))


def _cells(snapshot: Snapshot, questions: Sequence[CheckedQuestion]) -> Mapping[str, str]:
    keys = sorted({str(q.row["series_key"]) for q in questions if q.row.get("series_key")})
    if not keys:
        return {}
    rows = snapshot.ask(
        "SELECT series_key, min(key) AS key FROM cell"
        " WHERE series_key IN (SELECT unnest(?::VARCHAR[])) GROUP BY 1",
        [keys],
    )
    return {str(row["series_key"]): str(row["key"]) for row in rows}


#: The newest launches, and the fewest, whose mean time estimates the rest.
_PROGRESS_MOST, _FEWEST = 200, 2
_MINUTE, _HOUR = 60.0, 3600.0


@dataclass(frozen=True)
class RunProgress:
    """The progress of a run that goes on."""

    run_id: str
    done: int
    planned: int
    last: str  # the configuration that was measured last
    remaining: str  # the remaining time in words, if it is known


def progress_of(run: LiveRun) -> RunProgress:
    """Return the progress of a run by its journal."""
    results = run.results
    left = max(0, run.planned - len(results))
    seconds = _mean_seconds([str(row.get("finished_at") or "") for row in results])
    known = bool(left) and seconds is not None
    return RunProgress(
        run.run_id,
        len(results),
        run.planned,
        format_title(results[-1]) if results else "",
        f"about {duration(left * (seconds or 0.0))} left" if known else "",
    )


def _mean_seconds(moments: Sequence[str]) -> float | None:
    known = sorted(moment for moment in moments if moment)[-_PROGRESS_MOST:]
    if len(known) < _FEWEST:
        return None
    times = [datetime.fromisoformat(moment) for moment in known]
    return fmean((after - before).total_seconds() for before, after in pairwise(times))


def duration(seconds: float) -> str:
    """Return a duration in words: 40 seconds, 12 minutes, 3 hours."""
    if seconds < 2 * _MINUTE:
        return format_count(max(1, round(seconds)), "second")
    if seconds < 2 * _HOUR:
        return format_count(round(seconds / _MINUTE), "minute")
    return format_count(round(seconds / _HOUR), "hour")

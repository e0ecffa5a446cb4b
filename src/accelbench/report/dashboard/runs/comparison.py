"""Run against run: what `accelbench check` answers, as a page, worst first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import Response

from accelbench.analysis.checking import Check, Outcome
from accelbench.core.errors import AccelbenchError, UsageError
from accelbench.core.rows import Json, Row
from accelbench.core.visible import in_quotes
from accelbench.exchange.titles import title
from accelbench.query.baselines import ALLOWED, BaselineQuery, baseline_of_run
from accelbench.query.run_names import harmless
from accelbench.report.charts.phrases import safe
from accelbench.report.check import (
    answer,
    change,
    headline,
    interval_levels,
    ordered,
    sentences,
    sides,
    unusable_times,
)
from accelbench.report.dashboard.site import NotThereError, Site

if TYPE_CHECKING:
    from accelbench.analysis.checking import CheckedQuestion
    from accelbench.report.dashboard.snapshots.snapshot import Snapshot

#: Results of both runs that a page judges: `accelbench check` takes more time, and more of them.
MOST_RESULTS = 4000
#: Questions that a page lists.
MOST_QUESTIONS = 400
#: Runs that a list to choose from has.
_MOST_RUNS = 300
_EXITS = {Outcome.WORSE: "bad", Outcome.CANNOT_TELL: "busy"}


class RunComparison:
    """Two runs beside each other."""

    def __init__(self, site: Site) -> None:
        self.site = site

    def page(self, request: Request) -> Response:
        """The verdict, what has to be said of it, and every figure."""
        snapshot = self.site.snapshot()
        base, other = (request.query_params.get(name, "") for name in ("a", "b"))
        allow = tuple(dict.fromkeys(request.query_params.getlist("allow")))
        for word in allow:
            if word not in ALLOWED:
                raise UsageError(
                    f"Nothing to allow is named {in_quotes(safe(word))}.",
                    f"Known: {', '.join(ALLOWED)}.",
                )
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
            mood=_EXITS.get(check.outcome, "good") if check else "",
            sentences=[*unusable_times(check), *sentences(check, about)] if check else [],
            questions=[(title(q.row), q) for q in ordered(check)[:MOST_QUESTIONS]] if check else [],
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
            raise UsageError("A run is not compared with itself.", "Choose another run beside it.")
        self._refuse_many(base, other)
        key = ("run against run", snapshot.at, base, other, allow)

        def made() -> tuple[Check, Json]:
            sought = BaselineQuery({}, (other,), None, allow)
            baseline = baseline_of_run(self.site.database, base, sought)
            return baseline.check(None), baseline.about(None)

        return self.site.pictures.once(key, made)

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
    """Runs to choose from, the newest first, each with what it is called."""
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
    """The cell of each question's series that is shown today, to lead to it."""
    keys = sorted({str(q.row["series_key"]) for q in questions if q.row.get("series_key")})
    if not keys:
        return {}
    rows = snapshot.ask(
        "SELECT series_key, min(key) AS key FROM cell"
        " WHERE series_key IN (SELECT unnest(?::VARCHAR[])) GROUP BY 1",
        [keys],
    )
    return {str(row["series_key"]): str(row["key"]) for row in rows}

"""The first page: what the store says, what changed, what is unsteady, what runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from accelbench.analysis.points import Point
from accelbench.core.nouns import counted
from accelbench.core.rows import Row
from accelbench.core.vocabulary import Provenance, Quality
from accelbench.exchange.titles import title
from accelbench.query.findings.collected import NOTHING
from accelbench.query.findings.finding import FindingKind, StoreFinding
from accelbench.query.findings.phrases import crowded, model, question, way
from accelbench.query.findings.steadiness import WHY, describe_unsteady, why_unsteady
from accelbench.query.findings.tasks import Best, TaskBest
from accelbench.report.check import headline
from accelbench.report.dashboard.asked import FACETS
from accelbench.report.dashboard.overview.findings import FindingsKeeper, OverviewFindings
from accelbench.report.dashboard.runs.progress import progress_of
from accelbench.report.dashboard.site import Site
from accelbench.report.dashboard.snapshots.cells import named, newest_machine
from accelbench.report.dashboard.snapshots.snapshot import Snapshot

#: Configurations that a finding leads to one by one, or beside each other.
_LINKED, _COMPARED = 3, 12
#: Lines of what is unsteady, and tasks of the table.
_MOST_UNSTEADY, _MOST_TASKS = 6, 16
#: Other machines and sources of the store that are named.
_MOST_MACHINES = 6
#: What stands below under a heading of its own.
_ELSEWHERE = (FindingKind.UNMEASURED, FindingKind.LAUNCHES)


@dataclass(frozen=True)
class ToldFinding:
    """A finding as the page has it: its links are names and addresses."""

    finding: StoreFinding
    links: Sequence[tuple[str, str]]


@dataclass(frozen=True)
class ToldBest:
    """The best of a task in one respect, with the address of its configuration."""

    name: str
    address: str
    kind: str
    figure: str
    beside: str


class OverviewPage:
    """The answer of /."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self._findings = FindingsKeeper(site.database)

    def page(self, request: Request) -> Response:
        """What is worth knowing first; of an address that asks for results, those."""
        if request.url.query:
            return RedirectResponse(f"/results?{request.url.query}", status_code=307)
        snapshot = self.site.snapshot()
        known = self._findings.of(snapshot, self.site.patience)
        ended = [
            str(row["run_id"])
            for row in snapshot.ask("SELECT run_id FROM run WHERE status <> 'unfinished'")
        ]
        live = [run for run in self.site.journals.unfinished(ended) if run.written]
        return self.site.page(
            request,
            "start.html",
            None,
            200,
            None,
            snapshot=snapshot,
            running=[progress_of(run) for run in live],
            known=known,
            why_none=self._findings.trouble,
            nothing=NOTHING,
            others=_other_machines(snapshot),
            **({} if known is None else _contents(known, snapshot)),
        )


def _other_machines(snapshot: Snapshot) -> list[dict[str, object]]:
    """What else the store has: findings are of one machine, and this is the way to the others."""
    newest = newest_machine(snapshot)
    rows = snapshot.ask(
        "SELECT machine, count(*) AS cells, count(DISTINCT model) AS models FROM cell"  # noqa: S608
        " WHERE machine IS NOT NULL AND machine <> ? GROUP BY 1 ORDER BY cells DESC, machine"
        f" LIMIT {_MOST_MACHINES}",
        newest or ("",),
    )
    return [
        {**row, "name": str(snapshot.machines[str(row["machine"])])}
        for row in rows
        if str(row["machine"]) in snapshot.machines
    ]


def _contents(known: OverviewFindings, snapshot: Snapshot) -> dict[str, Any]:
    findings, looked_at = known.findings, known.looked_at
    foremost = findings.foremost
    reasons = [(why, point) for point in known.points if (why := _why(point)) is not None]
    reasons.sort(key=lambda pair: (list(WHY).index(pair[0]), title(pair[1].row)))
    shown = reasons[:_MOST_UNSTEADY]
    apart = _apart(known, snapshot, [point.row for _, point in shown])
    unsteady = [
        (_name(known, point.row, words), describe_unsteady(why, point))
        for (why, point), words in zip(shown, apart, strict=True)
    ]
    return {
        "foremost": [_told(finding, known, snapshot) for finding in foremost],
        "worth": [
            _told(finding, known, snapshot)
            for finding in findings.every
            if finding.kind in _ELSEWHERE and finding not in foremost
        ],
        "tasks": [_task(task, known) for task in findings.tasks[:_MOST_TASKS]],
        "more_tasks": max(0, len(findings.tasks) - _MOST_TASKS),
        "headline": headline(findings.check) if findings.check is not None else "",
        "unjudged": known.unjudged,
        "unsteady": unsteady,
        "more_unsteady": len(reasons) - len(unsteady),
        "partly": looked_at if looked_at[0] < looked_at[1] else None,
    }


def _told(finding: StoreFinding, known: OverviewFindings, snapshot: Snapshot) -> ToldFinding:
    cells = known.cells_of(each.results for each in finding.evidence)
    links = [
        (each.name, f"/cell/{known.keys[each.results[0]]}")
        for each in finding.evidence[:_LINKED]
        if each.results and each.results[0] in known.keys
    ]
    if 1 < len(cells) <= _COMPARED:
        beside = urlencode([("cell", key) for key in cells])
        links.append(("beside each other", f"/compare?{beside}"))
    elif len(cells) > _COMPARED:
        narrowed = urlencode(
            [
                (name, value)
                for name, values in finding.filters.items()
                if name in FACETS
                for value in values
                if value in snapshot.known.get(name, ())
            ]
        )
        where = f"/results?{narrowed}" if narrowed else "/results"
        links = [(counted(len(cells), "configuration"), where)]
    return ToldFinding(finding, links)


def _why(point: Point) -> Quality | None:
    return why_unsteady(point) if point.kind == Provenance.MEASURED else None


def _apart(known: OverviewFindings, snapshot: Snapshot, rows: Sequence[Row]) -> list[str]:
    """Of configurations with the same name what sets each apart: threads, an option."""
    keys = [known.keys.get(str(row.get("result_id")), "") for row in rows]
    apart = {str(cell["key"]): str(cell.get("apart") or "") for cell in named(snapshot, keys)}
    return [apart.get(key, "") for key in keys]


def _name(known: OverviewFindings, row: Row, apart: str) -> tuple[str, str]:
    address = f"/cell/{known.keys.get(str(row.get('result_id')), '')}"
    return f"{title(row)} {apart}".rstrip(), address


def _task(task: TaskBest, known: OverviewFindings) -> dict[str, object]:
    several = crowded(point.row for point in task.points)
    return {
        "task": task.task.replace("_", " "),
        "mode": task.mode,
        "among": f"{counted(len(task.points), 'configuration')} of {counted(task.models, 'model')}",
        "fastest": _best(task.fastest, known, several),
        "cheapest": _best(task.cheapest, known, several),
        "precise": _best(task.precise, known, several),
    }


def _best(best: Best | None, known: OverviewFindings, several: frozenset[str]) -> ToldBest | None:
    if best is None:
        return None
    row = best.point.row
    key = known.keys.get(str(row.get("result_id")), "")
    name = f"{model(row)} · {way(row, several)} · {question(row)}"
    return ToldBest(name, f"/cell/{key}", best.point.kind, best.figure, best.beside)

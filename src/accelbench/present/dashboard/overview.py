"""The first page: findings, changes, unsteady configurations and runs that go on.

Of a hundred thousand configurations only the fastest of each task, failures and the newest are
looked at; the page shows how many.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from accelbench.core.devices import disambiguate_devices
from accelbench.core.formatting import format_count
from accelbench.core.rows import Row, texts
from accelbench.core.vocabulary import Provenance
from accelbench.exchange.titles import format_title
from accelbench.judge.costs import with_costs
from accelbench.judge.findings.collected import NOTHING, Findings, findings_of
from accelbench.judge.findings.finding import FindingKind, StoreFinding, check_or_why
from accelbench.judge.findings.precisions import WHY, describe_unsteady, why_unsteady
from accelbench.judge.older_runs import histories_on
from accelbench.judge.points import Point, points
from accelbench.judge.stored_results import rows_of
from accelbench.present.chart_data import CHART_COLUMNS
from accelbench.present.check import headline
from accelbench.present.dashboard.cells import named, newest_machine
from accelbench.present.dashboard.common_ground import DEVICE
from accelbench.present.dashboard.page_base import SitePages
from accelbench.present.dashboard.page_query import FACETS, address_of_pairs
from accelbench.present.dashboard.run_pages import progress_of
from accelbench.present.dashboard.snapshot import Snapshot

if TYPE_CHECKING:
    from accelbench.store.database import Database


#: Launches that are looked at, and configurations of each task that may be the fastest.
MOST_LAUNCHES = 4000
_OF_A_TASK = 24
_CHOSEN = f"""
WITH here AS (
    SELECT *, coalesce(latency / greatest(coalesce(batch_size, 1), 1), 1e3 / nullif(throughput, 0))
        AS item, coalesce(task, family) AS of_task
    FROM cell WHERE machine = ? AND kind IN ('measured', 'imported')
), ran AS (
    SELECT of_task, mode, kind, batch_size, count(DISTINCT {DEVICE}) AS devices
    FROM here WHERE status = 'ok' GROUP BY ALL
), fastest AS (
    SELECT key FROM (
        SELECT here.*, devices FROM here JOIN ran ON here.of_task = ran.of_task
            AND here.mode IS NOT DISTINCT FROM ran.mode AND here.kind = ran.kind
            AND here.batch_size IS NOT DISTINCT FROM ran.batch_size
    ) WHERE status = 'ok' AND item IS NOT NULL AND of_task IS NOT NULL
        AND coalesce(quality, '') <> 'unusable'
    QUALIFY row_number() OVER (PARTITION BY of_task, mode, kind
        ORDER BY batch_size IS NULL, devices DESC, batch_size, item, key) <= {_OF_A_TASK}
), placed AS (
    SELECT key, results, count(*) OVER () AS many, row_number() OVER (
        ORDER BY key NOT IN (FROM fastest), moment DESC NULLS LAST, key) AS place FROM here
), counted AS (SELECT *, sum(len(results)) OVER (ORDER BY place) AS launches FROM placed)
SELECT key, results, many FROM counted WHERE launches <= {MOST_LAUNCHES} ORDER BY place
"""  # noqa: S608 — our numbers


@dataclass(frozen=True)
class OverviewFindings:
    """The findings of a snapshot."""

    machine: str = ""  # the machine that was measured last; "" of an empty store
    findings: Findings = field(default_factory=Findings)
    points: Sequence[Point] = ()  # the configurations that have results
    keys: dict[str, str] = field(default_factory=dict)  # cells by the ids of their results
    looked_at: tuple[int, int] = (0, 0)  # configurations looked at, and all of the machine
    unjudged: str = ""  # why the newest run is not compared with older ones
    trouble: str = ""  # why there are no findings

    def address(self, row: Row) -> str:
        """Return the address of a launch's configuration."""
        return f"/cell/{self.keys.get(str(row.get('result_id')), '')}"

    def cells_of(self, results: Iterable[Sequence[str]]) -> list[str]:
        """Return the cells of configurations, each once."""
        cells = (next((self.keys[r] for r in each if r in self.keys), "") for each in results)
        return [key for key in dict.fromkeys(cells) if key]


def find(database: Database, snapshot: Snapshot) -> OverviewFindings:
    """Return the findings of the machine that was measured last."""
    machine = next(iter(newest_machine(snapshot)), "")
    if not machine:
        return OverviewFindings()
    chosen = snapshot.ask(_CHOSEN, [machine])
    keys = {result: str(row["key"]) for row in chosen for result in texts(row, "results")}
    here = snapshot.machines[machine]
    ids = list(keys)
    with database.keep_open():
        of_them = "result_id IN (SELECT unnest(?::VARCHAR[]))"
        stored = rows_of(database, CHART_COLUMNS, of_them, [ids], launches=True)
        priced = with_costs(
            stored,
            snapshot.prices,
            {str(row.get("run_id")): here for row in stored},
        )
        rows: list[Row] = [*disambiguate_devices(priced)]
        older = histories_on(database, rows, here)
        check, unjudged = check_or_why(database, {}, here.id)
    every = points(rows)
    made = findings_of(rows, every, older, check, snapshot.sign)
    many = chosen[0]["many"] if chosen else 0
    return OverviewFindings(str(here), made, every, keys, (len(chosen), many), unjudged)


#: Configurations that a finding links one by one, or in a comparison.
_LINKED, _COMPARED = 3, 12
_MOST_UNSTEADY, _MOST_MACHINES = 6, 6
#: Findings with a section of their own.
_ELSEWHERE = (FindingKind.UNMEASURED, FindingKind.LAUNCHES)


@dataclass(frozen=True)
class ToldFinding:
    """A finding with its links: names and addresses."""

    finding: StoreFinding
    links: Sequence[tuple[str, str]]


class OverviewPage(SitePages):
    """The answer of /."""

    def page(self, request: Request) -> Response:
        """Findings; an address that asks for results leads to them."""
        if request.url.query:
            return RedirectResponse(f"/results?{request.url.query}", status_code=307)
        snapshot = self.site.snapshot()
        known = self.site.kept.soon(
            (snapshot.at, "findings"), lambda: self._findings(snapshot), self.site.patience
        )
        runs = snapshot.ask("SELECT run_id FROM run WHERE status <> 'unfinished'")
        ended = [str(row["run_id"]) for row in runs]
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
            nothing=NOTHING,
            others=_other_machines(snapshot),
            **({} if known is None else _contents(known, snapshot)),
        )

    def _findings(self, snapshot: Snapshot) -> OverviewFindings:
        try:
            return find(self.site.database, snapshot)
        except Exception as error:  # the page shows it
            return OverviewFindings(trouble=str(error))


def _other_machines(snapshot: Snapshot) -> list[dict[str, object]]:
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
    measured = (point for point in known.points if point.kind == Provenance.MEASURED)
    reasons = [(why, point) for point in measured if (why := why_unsteady(point)) is not None]
    reasons.sort(key=lambda pair: (list(WHY).index(pair[0]), format_title(pair[1].row)))
    shown = reasons[:_MOST_UNSTEADY]
    apart = _apart(known, snapshot, [point.row for _, point in shown])
    unsteady = [
        (
            (f"{format_title(point.row)} {words}".rstrip(), known.address(point.row)),
            describe_unsteady(why, point),
        )
        for (why, point), words in zip(shown, apart, strict=True)
    ]
    return {
        "foremost": [_told(finding, known, snapshot) for finding in foremost],
        "worth": [
            _told(finding, known, snapshot)
            for finding in findings.every
            if finding.kind in _ELSEWHERE and finding not in foremost
        ],
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
        beside = address_of_pairs([("cell", key) for key in cells])
        links.append(("in comparison", f"/compare{beside}"))
    elif len(cells) > _COMPARED:
        filters = {name: values for name, values in finding.filters.items() if name in FACETS}
        narrowed = [
            (name, value)
            for name, values in filters.items()
            for value in values
            if value in snapshot.known.get(name, ())
        ]
        where = f"/results{address_of_pairs(narrowed)}"
        links = [(format_count(len(cells), "configuration"), where)]
    return ToldFinding(finding, links)


def _apart(known: OverviewFindings, snapshot: Snapshot, rows: Sequence[Row]) -> list[str]:
    """Return what sets configurations of the same name apart: threads, an option."""
    keys = [known.keys.get(str(row.get("result_id")), "") for row in rows]
    apart = {str(cell["key"]): str(cell.get("apart") or "") for cell in named(snapshot, keys)}
    return [apart.get(key, "") for key in keys]

"""What the overview says of a snapshot: worked out once for each, and kept with it.

Cells say what is fastest without the store; whether anything may be compared with anything is asked
of their launches, by the code that every ratio is made with. Of a store of a hundred thousand
configurations those are looked at that may matter: what is fastest of each task, what failed, and
what was measured last; how many are not is told.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from accelbench.analysis.costs import with_costs
from accelbench.analysis.points import Point, points
from accelbench.core.columns import BY_NAME
from accelbench.core.devices import named_apart
from accelbench.core.launch_failures import failing_in, failing_sql, marked
from accelbench.query.findings.collected import Findings, findings_of
from accelbench.query.findings.stored import check_or_why
from accelbench.query.histories import histories_on
from accelbench.query.stored_results import rows_of
from accelbench.report.dashboard.entities.lists import DEVICE
from accelbench.report.dashboard.snapshots.cells import newest_machine

if TYPE_CHECKING:
    from accelbench.core.rows import Row
    from accelbench.report.dashboard.snapshots.snapshot import Snapshot
    from accelbench.store.database import Database

#: Launches that are looked at, whole configurations of them, and of each task how many
#: configurations may be the fastest.
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
#: What findings are made of: no samples, and nothing of what a page of one configuration shows.
_COLUMNS = (
    *(
        name
        for name, column in BY_NAME.items()
        if column.role != "other" and name not in ("evidence", "nulls", "environment")
    ),
    "accuracy_per_sample",
)


@dataclass(frozen=True)
class OverviewFindings:
    """What a snapshot says.

    Attributes:
        machine: of which; "" of an empty store.
        points: the configurations that have figures.
        keys: the cell of each result that was looked at.
        looked_at: how many configurations were looked at, of how many on the machine.
        unjudged: why the newest run is not compared with what was measured before it; "" where it
            is, and where nothing was.
    """

    machine: str = ""
    findings: Findings = field(default_factory=Findings)
    points: Sequence[Point] = ()
    keys: dict[str, str] = field(default_factory=dict)
    looked_at: tuple[int, int] = (0, 0)
    unjudged: str = ""

    def cells_of(self, results: Iterable[Sequence[str]]) -> list[str]:
        """The cells of some configurations, each once."""
        cells = (next((self.keys[r] for r in each if r in self.keys), "") for each in results)
        return [key for key in dict.fromkeys(cells) if key]


def worked_out(database: Database, snapshot: Snapshot) -> OverviewFindings:
    """The findings of the machine that was measured on last."""
    machine = next(iter(newest_machine(snapshot)), "")
    if not machine:
        return OverviewFindings()
    chosen = snapshot.ask(_CHOSEN, [machine])
    keys = {str(result): str(row["key"]) for row in chosen for result in _listed(row["results"])}
    here = snapshot.machines[machine]
    ids = list(keys)
    with database.asking():
        of_them = "result_id IN (SELECT unnest(?::VARCHAR[]))"
        stored = rows_of(database, [*_COLUMNS], of_them, [ids])
        failing = failing_in(database.query(failing_sql())[1])
        priced = with_costs(
            marked(stored, failing),
            snapshot.prices,
            {str(row.get("run_id")): here for row in stored},
        )
        rows: list[Row] = [*named_apart(priced)]
        older = histories_on(database, rows, here)
        check, unjudged = check_or_why(database, {}, here.id)
    every = points(rows)
    made = findings_of(rows, every, older, check, snapshot.sign)
    many = int(str(chosen[0]["many"])) if chosen else 0
    return OverviewFindings(str(here), made, every, keys, (len(chosen), many), unjudged)


def _listed(value: object) -> list[str]:
    return [str(each) for each in value] if isinstance(value, (list, tuple)) else []


class FindingsKeeper:
    """The findings of the newest snapshot, worked out beside the pages."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lock = threading.Lock()
        self._at = ""
        self._made: OverviewFindings | None = None
        self._trouble = ""
        self._there = threading.Event()

    def of(self, snapshot: Snapshot, patience: float) -> OverviewFindings | None:
        """Those of a snapshot; None as long as they are worked out.

        Args:
            snapshot: which.
            patience: how many seconds to wait for them.
        """
        with self._lock:
            if self._at != snapshot.at:
                self._at, self._made, self._trouble = snapshot.at, None, ""
                self._there = threading.Event()
                # No daemon: an interpreter that ends under a reader of DuckDB aborts.
                work = threading.Thread(target=self._work, args=(snapshot, self._there))
                work.start()
            there = self._there
        there.wait(patience)
        return self._made if there.is_set() else None

    @property
    def trouble(self) -> str:
        """Why there are none; "" where there are."""
        return self._trouble

    def _work(self, snapshot: Snapshot, there: threading.Event) -> None:
        made, trouble = OverviewFindings(), ""
        try:
            made = worked_out(self._database, snapshot)
        except Exception as error:  # a page says so, as of any other trouble
            trouble = str(error)
        with self._lock:
            if self._at == snapshot.at:
                self._made, self._trouble = made, trouble
        there.set()

"""Every cell of the store in memory: what pages are filtered, ordered and counted from.

A *cell* is one question on one machine, by the launches of the run that says most of it. A million
results are some thousand cells, so the store is read once, for a moment, and asked again only when
it has changed: a run that goes on wants to write into it, and a page wants to be there at once.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from accelbench.analysis.machines import Machine, machine_of
from accelbench.analysis.standing import SOFTWARE
from accelbench.core.identity import canonical
from accelbench.core.rows import Json
from accelbench.exchange.prices import USUAL_CURRENCY, Prices, sign_of
from accelbench.query.histories import is_of_a_check
from accelbench.report.dashboard.asked import AS_THEY_LIE, FACETS
from accelbench.report.dashboard.snapshots.gathering import gathered
from accelbench.report.dashboard.snapshots.priced import add_costs, without_a_place
from accelbench.store.duck import connect

if TYPE_CHECKING:
    import pyarrow as pa
    from duckdb import DuckDBPyConnection

    from accelbench.store.database import Database

#: What failed before it had a device was overtaken by what answered the same later.
_OVERTAKEN = """
DELETE FROM cell WHERE status <> 'ok' AND series_key IS NULL AND EXISTS (
    FROM cell AS other WHERE other.case_id = cell.case_id AND other.machine = cell.machine
    AND other.status = 'ok' AND other.moment >= cell.moment)
"""
_RUNS = """
SELECT run_id, label, command, status, started_at, finished_at, git_commit, git_branch,
    environment::VARCHAR AS environment, json_array_length(plan) AS planned
FROM benchmark_runs
"""


_RAN = """
CREATE TEMP TABLE ran AS SELECT unnest(?::VARCHAR[]) AS run_id, unnest(?::VARCHAR[]) AS machine,
    unnest(?::VARCHAR[]) AS software, unnest(?::BOOLEAN[]) AS of_check
"""


class SnapshotStep(Enum):
    """What is done for a snapshot, in this order, in words for who waits for the first."""

    RUNS = "finding the runs and their machines"
    RESULTS = "reading the results and finding which stand for each configuration"
    CONFIGURATIONS = "counting configurations and what they cost"


#: Hears which step begins, and how many results the store has; None before that is known.
Told = Callable[[SnapshotStep, int | None], None]


@dataclass(frozen=True)
class Snapshot:
    """The cells and runs of one moment.

    Attributes:
        known: of each facet, every value there is.
        machines: what each machine is, by its id.
        ran: the id of the machine that each run was on.
        results: how many there are in the store.
        at: when it was taken.
        prices: by which cells were told what they cost.
        costed: whether any has a cost.
        unmatched_prices: which prices are of nothing here, in a sentence.
    """

    memory: DuckDBPyConnection
    known: Mapping[str, Sequence[str]]
    machines: Mapping[str, Machine]
    ran: Mapping[str, str]
    results: int
    cells: int
    at: str
    prices: Prices | None = None
    costed: bool = False
    unmatched_prices: str = ""

    @property
    def sign(self) -> str:
        """What stands before an amount of money."""
        return sign_of(USUAL_CURRENCY) if self.prices is None else self.prices.sign

    def ask(self, sql: str, values: Sequence[object] = ()) -> list[dict[str, object]]:
        """Rows by column name; each question has a connection of its own."""
        with self.memory.cursor() as cursor:
            done = cursor.execute(sql, list(values) or None)
            names = [str(about[0]) for about in done.description or ()]
            rows = [dict(zip(names, row, strict=True)) for row in done.fetchall()]
        if "options" in names:
            for row in rows:
                row["options"] = json.loads(str(row["options"] or "{}"))
        return rows

    def whole(
        self,
        sql: str,
        values: Sequence[object] = (),
        columns: str = "*",
    ) -> list[dict[str, object]]:
        """The cells that a question names by where they lie (`rowid AS place`), in its order.

        A question over few columns finds a page of two hundred thousand cells in a quarter of the
        time that it takes over all ninety, and the rows of a page are read by where they lie.
        """
        return self.lying([int(str(row["place"])) for row in self.ask(sql, values)], columns)

    def lying(self, places: Sequence[int], columns: str = "*") -> list[dict[str, object]]:
        """The cells at some places, in their order."""
        if not places:
            return []
        rows = self.ask(
            f"SELECT {columns}, rowid AS place FROM cell"  # noqa: S608 — our columns
            " WHERE rowid BETWEEN ? AND ? AND rowid IN (SELECT unnest(?::BIGINT[]))",
            [min(places), max(places), list(places)],
        )
        by_place = {row.pop("place"): row for row in rows}
        return [by_place[place] for place in places]


def taken(
    database: Database, at: str, prices: Prices | None = None, tell: Told = lambda _, __: None
) -> Snapshot:
    """A snapshot of a store; the store is open only while it is read.

    Args:
        database: the store.
        at: the moment it is of.
        prices: by which cells are told what they cost.
        tell: hears which step begins, and how many results there are once that is known.
    """
    import duckdb

    tell(SnapshotStep.RUNS, None)
    with connect(database.path, retry_seconds=database.retry_seconds) as con:
        ((results,),) = con.execute("SELECT count(*) FROM benchmark_results").fetchall()
        runs = con.sql(_RUNS).to_arrow_table()
        machines, ran_with = _machines(runs)
        ids = {machine: machine.id for machine in set(machines.values())}
        # Not as an Arrow table: to make one of a list, pyarrow imports pandas, a quarter second.
        labels = [str(label or "") for label in runs.column("label").to_pylist()]
        of_checks = list(map(is_of_a_check, labels))
        of_runs = [
            list(machines),
            [ids[machine] for machine in machines.values()],
            ran_with,
            of_checks,
        ]
        con.execute(_RAN, of_runs)
        ran = con.sql("FROM ran").to_arrow_table()
        tell(SnapshotStep.RESULTS, int(results))
        cells = gathered(con).to_arrow_table()
    tell(SnapshotStep.CONFIGURATIONS, int(results))
    memory = duckdb.connect(
        config={
            "threads": 2,
            "enable_external_access": "false",
            "autoload_known_extensions": "false",
        }
    )
    for name, table in (("cell", cells), ("run", runs), ("ran", ran)):
        memory.register(f"{name}_read", table)
        order = f"ORDER BY {AS_THEY_LIE}" if name == "cell" else ""
        memory.execute(f"CREATE TABLE {name} AS FROM {name}_read {order}")
        memory.unregister(f"{name}_read")
    memory.execute(_OVERTAKEN)
    by_id = {key: machine for machine, key in ids.items()}
    costed = add_costs(memory, by_id, prices)
    unmatched = without_a_place(memory, by_id, prices)
    memory.execute("SET lock_configuration = true")
    ((count,),) = memory.execute("SELECT count(*) FROM cell").fetchall()
    ran_on = {run: ids[machine] for run, machine in machines.items()}
    known = _known(memory)
    counts = int(results), int(count)
    return Snapshot(memory, known, by_id, ran_on, *counts, at, prices, costed, unmatched)


def _machines(runs: pa.Table) -> tuple[dict[str, Machine], list[str]]:
    """Of each run, and what software it ran; most say the same, so each text is understood once."""
    environments: dict[str | None, Json | None] = {None: None}
    ran: dict[str | None, str] = {None: ""}
    machines, software = {}, []
    for run, text in zip(
        runs.column("run_id").to_pylist(), runs.column("environment").to_pylist(), strict=True
    ):
        if text not in environments:
            facts = environments[text] = json.loads(text)
            ran[text] = canonical({name: facts.get(name) for name in SOFTWARE})
        machines[str(run)] = machine_of(str(run), environments[text])
        software.append(ran[text])
    return machines, software


def _known(memory: DuckDBPyConnection) -> dict[str, list[str]]:
    choices = {}
    for name, column in FACETS.items():
        rows = memory.execute(
            f"SELECT DISTINCT {column} FROM cell WHERE {column} IS NOT NULL ORDER BY 1"  # noqa: S608
        ).fetchall()
        choices[name] = [str(value) for (value,) in rows]
    return choices

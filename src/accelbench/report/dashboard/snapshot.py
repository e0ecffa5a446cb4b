"""Every cell of the store in memory: what pages are filtered, ordered and counted from.

A *cell* is one question on one machine, by the launches of the run that says most of it. A million
results are some thousand cells, so the store is read once, for a moment, and asked again only when
it has changed: a run that goes on wants to write into it, and a page wants to be there at once.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from accelbench.analysis.judging import METRICS, typical_sql
from accelbench.analysis.machines import Machine, machine_of
from accelbench.analysis.standing import SOFTWARE, worth_sql
from accelbench.core.columns import ASKED
from accelbench.core.figures import OF_A_STEP, STEP_OF_SQL, STEP_SQL, TAIL_OF_SQL, TAIL_SQL
from accelbench.core.identity import canonical
from accelbench.core.provenance import THIS_ARM_SQL
from accelbench.core.words import Quality
from accelbench.core.worth import ANSWERED_SQL, OF_WORTH, USABLE_SQL
from accelbench.exchange.prices import USUAL_CURRENCY, Prices, sign_of
from accelbench.measure.launches import FEWEST_LAUNCHES
from accelbench.query.histories import NOISE, RERUN_OF
from accelbench.report.dashboard.asked import FACETS
from accelbench.report.dashboard.priced import add_costs
from accelbench.store.duck import connect, quoted
from accelbench.store.schema import columns_of

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from accelbench.store.database import Database

_FIGURES = {metric.name: metric.sql for metric in METRICS}
#: What a cell is told by: alike in all of its launches, so any of them says it.
_SAID = tuple(
    dict.fromkeys(
        (
            *("family", "architecture", "model_size", "parameters", "device", "device_fingerprint"),
            *(name for name in ASKED if name != "options"),
        )
    )
)
#: What only those of its launches say that came so far.
_SAID_BY_SOME = ("throughput_unit", "verification", "reason")
#: Of no use where half of the launches or more are, as `usable_launches` has it; else the worst of
#: those that count: one that converged does not speak for four that did not.
_QUALITY = f"""
CASE WHEN 2 * count(*) FILTER ({ANSWERED_SQL} AND NOT {USABLE_SQL})
        >= greatest(count(*) FILTER ({ANSWERED_SQL}), 1) THEN '{Quality.UNUSABLE.value}'
    ELSE coalesce(any_value(quality) FILTER ({ANSWERED_SQL} AND {USABLE_SQL}
        AND quality <> '{Quality.CONVERGED.value}'),
        any_value(quality) FILTER ({USABLE_SQL})) END AS quality
"""
_NEEDED = (
    *("result_id", "run_id", "series_key", "status", "provenance", "emulated", "started_at"),
    *(*_SAID_BY_SOME, *OF_A_STEP, "memory_peak_mb", "quality"),
    *("batch_size", "sample_count", "warnings", "workarounds", "cost_usd"),
)
#: One question on one machine. What has no series — it failed before it had a device, or somebody
#: else measured it — is told apart by all that was asked. An import brings figures of many versions
#: at once: each is a cell of its own, as in every chart. Of a run's two arms one is shown, and
#: nothing of what a check measured for itself, as no command shows it.
_ROWS = f"""
SELECT {{columns}}, fact_result.rowid AS place, machine, software,
    coalesce(series_key, concat_ws(chr(31), {{asked}})) AS series,
    CASE WHEN provenance = 'imported' THEN conditions::VARCHAR END AS versions,
    CASE WHEN run_id LIKE 'import-%' THEN started_at::DATE END AS brought
FROM fact_result LEFT JOIN ran USING (run_id)
WHERE model IS NOT NULL AND status IS NOT NULL AND NOT coalesce(of_check, false)
    AND {THIS_ARM_SQL} {{of_runs}}
"""  # noqa: S608 — our words
#: The newest run of each cell. By few columns, as all results are looked through for it.
_NEWEST = """
CREATE TEMP TABLE newest AS
WITH one AS (
    SELECT {identity}, run_id, brought, max(started_at) AS moment
    FROM ({rows}) GROUP BY ALL
)
SELECT {identity_new}, arg_max(run_id, place) AS new_run_id, arg_max(brought, place) AS new_brought,
    count(*) AS runs, 0 AS set_aside
FROM (SELECT *, row(coalesce(moment, 'epoch'::TIMESTAMP), run_id) AS place FROM one) GROUP BY ALL
"""
#: Cells of several runs of which the newest says less than a run can: another may stand for them.
#: Where the newest came to nothing, that is what is to be seen.
_OPEN = """
CREATE TEMP TABLE other AS SELECT {identity_new} FROM ({rows}) JOIN newest ON {same}
WHERE runs > 1 GROUP BY {identity} HAVING count(*) FILTER ({answered}) > 0 AND {worth} <> {most}
"""
#: Of those the run that stands, as `analysis.standing` has it: of the newest software the one that
#: says most.
_STANDING = """
CREATE TEMP TABLE standing AS
WITH one AS (
    SELECT {identity}, run_id, brought, any_value(software) AS software,
        coalesce(max(started_at), 'epoch'::TIMESTAMP) AS moment,
        count(*) FILTER ({answered}) AS answered, {worth} AS worth
    FROM ({rows}) JOIN other ON {same} GROUP BY {identity}, run_id, brought
), ranked AS (
    SELECT *, row(software IS NOT DISTINCT FROM first_value(software) OVER (
        PARTITION BY {identity} ORDER BY moment DESC, run_id DESC), worth, moment, run_id) AS rank
    FROM one
), best AS (
    SELECT {identity_new}, arg_max(run_id, rank) AS new_run_id,
        arg_max(brought, rank) AS new_brought, count(*) AS runs, arg_max(moment, rank) AS stood,
        list({{'moment': moment, 'answered': answered}}) AS every
    FROM ranked GROUP BY {identity}
)
SELECT * EXCLUDE (stood, every),
    coalesce(list_sum([one.answered for one in every if one.moment > stood]), 0)::INTEGER
        AS set_aside
FROM best
"""
_REPLACED = """
DELETE FROM newest WHERE EXISTS (FROM standing WHERE {alike});
INSERT INTO newest BY NAME FROM standing
"""
#: Launches whose times do not count, as most others of their run and cell do.
_SPOILED = """
CREATE TEMP TABLE spoiled AS
WITH whole AS (
    SELECT {identity}, list(result_id) FILTER ({answered} AND NOT {usable}) AS useless,
        count(*) FILTER ({answered}) AS answered
    FROM ({rows}) JOIN newest ON {same}
    WHERE concat_ws(chr(31), {identity_text}) IN (
        SELECT concat_ws(chr(31), {identity_text}) FROM ({rows})
        WHERE {answered} AND NOT {usable})
    GROUP BY {identity}
)
SELECT unnest(useless) AS result_id FROM whole WHERE 2 * len(useless) < answered
"""
#: First by what tells launches apart, then what they have in common from the first of them: to take
#: forty columns along through the grouping costs as much again.
_CELLS = """
WITH cell AS (
    SELECT
        {identity}, series_key, run_id, first(runs) AS runs, min(place) AS place,
        first(set_aside) AS set_aside, count(*) FILTER (spoilt) AS left_out,
        {said_by_some},
        CASE WHEN bool_or(status = 'ok') THEN 'ok' ELSE arg_max(status, started_at) END AS status,
        count(*) AS launches, count(*) FILTER (status = 'ok') AS answered,
        sum(sample_count) AS samples,
        {typical_latency} AS latency, max(latency_of) FILTER ({timed}) AS latency_of,
        min(latency) FILTER ({timed}) AS latency_low,
        max(latency) FILTER ({timed}) AS latency_high,
        {typical_rate} AS throughput,
        {typical_tail} AS tail, any_value(tail_of) FILTER ({timed}) AS tail_of,
        {typical_memory} AS memory,
        {typical_cost} AS own_cost,
        max(len(warnings)) AS warnings, max(len(workarounds)) AS workarounds,
        max(started_at) AS moment,
        list(result_id) AS results
    FROM (
        SELECT *, {latency} AS latency, {latency_of} AS latency_of, {rate} AS rate,
            {tail} AS tail, {tail_of} AS tail_of, {spoilt} AS spoilt
        FROM ({rows})
    ) JOIN newest ON {same}
    GROUP BY series_key, {identity}, run_id
)
SELECT
    substr(md5(concat_ws(chr(31), {identity_text})), 1, 16) AS key,
    cell.* EXCLUDE (place), {said}, case_id, options::VARCHAR AS options,
    CASE WHEN cell.provenance = 'measured' AND cell.emulated THEN 'emulated'
        ELSE cell.provenance END AS kind
FROM cell JOIN (SELECT rowid AS place, {there} FROM fact_result) USING (place)
"""
#: Times of a stand-in for a device mean nothing, and are no cell's figures.
_ANSWERED = ANSWERED_SQL
_COUNTED = f"{ANSWERED_SQL} AND NOT spoilt"
_TIMED = f"{_COUNTED} AND NOT coalesce(emulated, false)"
#: Beyond so many runs, to name them costs more than to look at all.
_FEW_RUNS = 500
_IDENTITY = ("series", "machine", "provenance", "emulated", "versions")
_IDENTITIES = {
    "identity": ", ".join(_IDENTITY),
    "identity_text": ", ".join(f"coalesce({name}::VARCHAR, '')" for name in _IDENTITY),
}
#: What every question to the store needs of a row.
_LIGHT = ("run_id", "provenance", "emulated", "started_at")
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

    @property
    def sign(self) -> str:
        """What stands before an amount of money."""
        return sign_of(USUAL_CURRENCY) if self.prices is None else self.prices.sign

    def ask(self, sql: str, values: Sequence[Any] = ()) -> list[dict[str, Any]]:
        """Rows by column name; each question has a connection of its own."""
        with self.memory.cursor() as one:
            done = one.execute(sql, list(values) or None)
            names = [str(about[0]) for about in done.description or ()]
            rows = [dict(zip(names, row, strict=True)) for row in done.fetchall()]
        if "options" in names:
            for row in rows:
                row["options"] = json.loads(row["options"] or "{}")
        return rows


def taken(database: Database, at: str, prices: Prices | None = None) -> Snapshot:
    """A snapshot of a store; the store is open only while it is read."""
    import duckdb

    with connect(database.path, retry_seconds=database.retry_seconds) as con:
        runs = con.sql(_RUNS).to_arrow_table()
        machines, ran_with = _machines(runs)
        ids = {one: one.id for one in set(machines.values())}
        # Not as an Arrow table: to make one of a list, pyarrow imports pandas, a quarter second.
        labels = [str(label or "") for label in runs.column("label").to_pylist()]
        of_checks = [label == NOISE or label.startswith(RERUN_OF) for label in labels]
        of_runs = [list(machines), [ids[one] for one in machines.values()], ran_with, of_checks]
        con.execute(_RAN, of_runs)
        ran = con.sql("FROM ran").to_arrow_table()
        there = set(columns_of(con, "fact_result"))
        _choose_runs(con, there)
        runs_of_cells = con.execute("SELECT DISTINCT new_run_id FROM newest").fetchall()
        chosen = [run for (run,) in runs_of_cells]
        cells = con.sql(_cells(there, chosen, _spoilt(con, there, chosen))).to_arrow_table()
        ((results,),) = con.execute("SELECT count(*) FROM benchmark_results").fetchall()
    memory = duckdb.connect(
        config={
            "threads": 2,
            "enable_external_access": "false",
            "autoload_known_extensions": "false",
        }
    )
    for name, table in (("cell", cells), ("run", runs), ("ran", ran)):
        memory.register(f"{name}_read", table)
        memory.execute(f"CREATE TABLE {name} AS FROM {name}_read")
        memory.unregister(f"{name}_read")
    memory.execute(_OVERTAKEN)
    by_id = {key: one for one, key in ids.items()}
    costed = add_costs(memory, by_id, prices)
    memory.execute("SET lock_configuration = true")
    ((count,),) = memory.execute("SELECT count(*) FROM cell").fetchall()
    ran_on = {run: ids[one] for run, one in machines.items()}
    known = _known(memory)
    return Snapshot(memory, known, by_id, ran_on, int(results), int(count), at, prices, costed)


def _choose_runs(con: DuckDBPyConnection, there: set[str]) -> None:
    """Which run of each cell stands for it: mostly the newest."""
    whole = (*_LIGHT, "status", "verification", *OF_WORTH)
    words = {
        "answered": _ANSWERED,
        "worth": worth_sql(_ANSWERED),
        "most": f"(true, {FEWEST_LAUNCHES}, true)",
        **_IDENTITIES,
        "identity_new": ", ".join(f"{name} AS new_{name}" for name in _IDENTITY),
    }
    con.execute(_NEWEST.format(rows=_rows(_LIGHT, there), **words))
    runs = con.execute("SELECT DISTINCT new_run_id FROM newest").fetchall()
    of_runs = _of_runs([run for (run,) in runs])
    same = _same((*_IDENTITY, "run_id", "brought"))
    con.execute(_OPEN.format(rows=_rows(whole, there, of_runs), same=same, **words))
    if con.execute("SELECT 1 FROM other LIMIT 1").fetchone() is None:
        return
    con.execute(_STANDING.format(rows=_rows(whole, there), same=_same(_IDENTITY), **words))
    alike = " AND ".join(
        f"newest.new_{name} IS NOT DISTINCT FROM standing.new_{name}" for name in _IDENTITY
    )
    con.execute(_REPLACED.format(alike=alike))


def _same(names: Sequence[str]) -> str:
    return " AND ".join(f"{name} IS NOT DISTINCT FROM new_{name}" for name in names)


def _of_runs(runs: Sequence[str | None]) -> str:
    """Of a long history a small part, where it is of few runs."""
    if not 0 < len(runs) <= _FEW_RUNS or None in runs:
        return ""
    return f"AND run_id IN ({', '.join(quoted(str(run)) for run in runs)})"


def _spoilt(con: DuckDBPyConnection, there: set[str], runs: Sequence[str | None]) -> str:
    """That a launch is left out of its cell's figures, in SQL: `counting_launches` of each cell."""
    rows = _rows((*_LIGHT, "result_id", "status", "verification", "quality"), there, _of_runs(runs))
    useless = f"SELECT 1 FROM ({rows}) WHERE {_ANSWERED} AND NOT {USABLE_SQL} LIMIT 1"  # noqa: S608
    if con.execute(useless).fetchone() is None:
        return "false"
    words = {"answered": _ANSWERED, "usable": USABLE_SQL, **_IDENTITIES}
    con.execute(_SPOILED.format(rows=rows, same=_same((*_IDENTITY, "run_id", "brought")), **words))
    return "result_id IN (SELECT result_id FROM spoiled)"


def _cells(there: set[str], runs: Sequence[str | None], spoilt: str) -> str:
    """The cells, from the rows of those runs: of a long history a small part."""
    return _CELLS.format(
        rows=_rows(_NEEDED, there, _of_runs(runs)),
        latency=STEP_SQL,
        latency_of=STEP_OF_SQL,
        tail=TAIL_SQL,
        tail_of=TAIL_OF_SQL,
        typical_tail=typical_sql("tail", _TIMED),
        rate=_FIGURES["throughput"],
        timed=_TIMED,
        typical_latency=typical_sql("latency", _TIMED),
        typical_rate=typical_sql("rate", _TIMED),
        typical_memory=typical_sql("memory_peak_mb", _COUNTED),
        typical_cost=typical_sql("cost_usd", _TIMED),
        spoilt=spoilt,
        **_IDENTITIES,
        said_by_some=", ".join(
            [_QUALITY, *(f'any_value("{name}") AS "{name}"' for name in _SAID_BY_SOME)]
        ),
        said=", ".join(f'"{name}"' for name in _SAID),
        there=", ".join(_or_null(name, there) for name in (*_SAID, "case_id", "options")),
        same=_same((*_IDENTITY, "run_id", "brought")),
    )


def _or_null(name: str, there: set[str]) -> str:
    """A column; an older version's store lacks the newest."""
    return f'"{name}"' if name in there else f'NULL AS "{name}"'


def _rows(columns: Sequence[str], there: set[str], of_runs: str = "") -> str:
    """Results with what tells cells apart."""
    return _ROWS.format(
        columns=", ".join(_or_null(name, there) for name in dict.fromkeys(columns)),
        asked=", ".join(f"coalesce({n}::VARCHAR, '')" for n in ASKED if n in there),
        of_runs=of_runs,
    )


def _machines(runs: Any) -> tuple[dict[str, Machine], list[str]]:
    """Of each run, and what software it ran; most say the same, so each text is understood once."""
    said: dict[str | None, Any] = {None: None}
    ran: dict[str | None, str] = {None: ""}
    found, software = {}, []
    for run, text in zip(
        runs.column("run_id").to_pylist(), runs.column("environment").to_pylist(), strict=True
    ):
        if text not in said:
            said[text] = json.loads(text)
            ran[text] = canonical({name: said[text].get(name) for name in SOFTWARE})
        found[str(run)] = machine_of(str(run), said[text])
        software.append(ran[text])
    return found, software


def _known(memory: DuckDBPyConnection) -> dict[str, list[str]]:
    found = {}
    for name, column in FACETS.items():
        rows = memory.execute(
            f"SELECT DISTINCT {column} FROM cell WHERE {column} IS NOT NULL ORDER BY 1"  # noqa: S608
        ).fetchall()
        found[name] = [str(value) for (value,) in rows]
    return found

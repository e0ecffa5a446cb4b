"""Every cell of the store in memory, from which pages are filtered, ordered and counted.

A million results are some thousand cells, so the store is read once, and again in the background
after it has changed. A page only waits for the first snapshot.

A cell is the current measurement of a configuration on one machine, with the values of its launches
as tables show them. Each version of an import is a cell of its own, as in every chart. Results that
a check measured for itself and the other arm of interleaved runs are left out, as in every command.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Self

from accelbench.core.columns import CONFIGURATION_COLUMNS
from accelbench.core.errors import AccelbenchError, SurroundingsError
from accelbench.core.facts import utc_now
from accelbench.core.result_statistics import STEP_COLUMNS, TAILS_SQL
from accelbench.core.rows import Json, Row
from accelbench.core.unusable_reasons import COMPARABLE, FAILED, LAUNCHED, UNUSABLE_REASON
from accelbench.evidence.launches import QUALITY_COLUMNS, THIS_ARM_SQL, VERSION_SQL
from accelbench.evidence.measurements import MEASUREMENT_COLUMNS, configurations_sql, quality_sql
from accelbench.exchange.prices import DEFAULT_CURRENCY, Prices, price_sign
from accelbench.judge import costs
from accelbench.judge.costs import unmatched_prices
from accelbench.judge.machines import Machine, machine_of
from accelbench.judge.older_runs import is_of_a_check
from accelbench.judge.ratios import COLUMNS as OF_AN_INTERVAL
from accelbench.judge.sides import PER_MILLION, Side
from accelbench.judge.verdicts import METRICS
from accelbench.measure.launch_verdicts import geometric_mean_sql
from accelbench.present.dashboard.page_query import AS_THEY_LIE, FACETS
from accelbench.store.duck import column_list, connect, quote_sql

if TYPE_CHECKING:
    import pyarrow as pa
    from duckdb import DuckDBPyConnection, DuckDBPyRelation

    from accelbench.exchange.prices import Prices
    from accelbench.store.database import Database


#: Columns that all launches of a cell share.
_SHARED = (
    *("family", "architecture", "task", "model_size", "parameters", "device", "device_fingerprint"),
    *(name for name in CONFIGURATION_COLUMNS if name != "options"),
)
#: Columns that are read for the launches of a cell, in addition to those of its identity.
_OF_A_CELL = (
    *(
        "result_id",
        "series_key",
        "launch",
        "status",
        "reason",
        "throughput_unit",
        *STEP_COLUMNS,
        LAUNCHED,
    ),
    *("memory_peak_mb", "batch_size", "sample_count", "warnings", "workarounds", "cost_usd"),
    *(
        "energy_per_item_joules",
        "verification_error",
        "ttft_ms",
        "tpot_ms",
        "flops",
        FAILED,
    ),
    *("implausible_rate", UNUSABLE_REASON),
)
_IDENTITY = ("series", "machine", "provenance", "emulated", "versions")
_IDENTITY_TEXT = column_list(_IDENTITY, "coalesce({0}::VARCHAR, '')")
#: An unusable launch among usable ones is left out. Times of an emulated device mean nothing.
_LEFT_OUT = "answered AND NOT times_usable AND usable_times"
_COUNTED = f"answered AND NOT ({_LEFT_OUT})"
_TIMED = f"{_COUNTED} AND NOT coalesce(emulated, false)"
#: The statistics of a step that all launches of a cell must have: the median, else the mean.
_STEPS = {"p50": "latency_p50_ms", "mean": "latency_mean_ms"}
#: Beyond so many runs, naming them costs more than reading all.
_FEW_RUNS = 500


def gathered(con: DuckDBPyConnection) -> DuckDBPyRelation:
    """Return every cell of a store that has a table `ran` of each run's machine."""
    needed = (*MEASUREMENT_COLUMNS, "status", "verification", *QUALITY_COLUMNS)
    current = configurations_sql(_IDENTITY, f"({_launches(needed)})")
    con.execute(
        f"CREATE TEMP TABLE newest AS SELECT {column_list(_IDENTITY, '{0} AS new_{0}')},"  # noqa: S608
        " run_id AS new_run_id, run AS new_run_key, runs, usable_times,"
        f" newer::INTEGER AS set_aside FROM ({current})"
    )
    runs = [run for (run,) in con.execute("SELECT DISTINCT new_run_id FROM newest").fetchall()]
    return con.sql(_cells(runs))


def _launches(columns: Iterable[str], where: str = "") -> str:
    """Return a query for launches with what identifies their cells."""
    read = dict.fromkeys((
        *columns, "run_id", "provenance", "emulated", "started_at", "verification", "quality",
        "answered", "times_usable", "settled", "run_key", "software_id", "owned_version",
        "wrong_outputs", "of_import",
    ))  # fmt: skip
    asked = column_list(CONFIGURATION_COLUMNS, "coalesce({0}::VARCHAR, '')")
    return f"""SELECT {column_list(read)}, machine, {VERSION_SQL} AS versions,
        coalesce(series_key, concat_ws(chr(31), {asked})) AS series
    FROM launches LEFT JOIN ran USING (run_id)
    WHERE model IS NOT NULL AND status IS NOT NULL AND NOT coalesce(of_check, false)
        AND {THIS_ARM_SQL} {where}"""  # noqa: S608 — our words


def _of_runs(runs: Sequence[str | None]) -> str:
    """Return a condition that reads a small part of a long history."""
    if not 0 < len(runs) <= _FEW_RUNS or None in runs:
        return ""
    return f"AND run_id IN ({', '.join(quote_sql(str(run)) for run in runs)})"


def _cells(runs: Sequence[str | None]) -> str:
    """Return the query for the cells of some runs.

    It groups by what identifies cells, then adds the shared columns of one launch: forty columns in
    the grouping would cost as much again.
    """
    rate = next(metric.sql for metric in METRICS if metric.name == "throughput")
    tails = ", ".join(f"{sql} AS tail_{tail}" for tail, sql in TAILS_SQL.items())
    same = " AND ".join(
        f"{name} IS NOT DISTINCT FROM new_{name}" for name in (*_IDENTITY, "run_key")
    )
    kinds = ", ".join(repr(kind.value) for kind in COMPARABLE)
    shared = (*_SHARED, *OF_AN_INTERVAL, "case_id")
    return f"""
WITH cell AS (
    SELECT {", ".join(_IDENTITY)}, series_key, run_id, first(runs) AS runs,
        arg_min(result_id, row(started_at, launch, result_id)) AS of_result,
        first(set_aside) AS set_aside, count(*) FILTER ({_LEFT_OUT}) AS left_out,
        {quality_sql()} AS quality,
        list(DISTINCT {UNUSABLE_REASON} ORDER BY {UNUSABLE_REASON})
            FILTER (answered AND NOT times_usable) AS why_unusable,
        coalesce(any_value(throughput_unit) FILTER ({_TIMED} AND throughput > 0),
            any_value(throughput_unit)) AS throughput_unit,
        CASE WHEN bool_or(wrong) THEN 'failed' ELSE any_value(verification) END AS verification,
        CASE WHEN bool_or(wrong) THEN 'wrong_outputs' ELSE any_value(reason) END AS reason,
        CASE WHEN bool_or(wrong) THEN 'failed' WHEN bool_or(status = 'ok') THEN 'ok'
            ELSE arg_max(status, started_at) END AS status,
        bool_or(wrong) AS wrong, greatest(count(*), coalesce(max({LAUNCHED}), 0)) AS launches,
        coalesce(max({FAILED}), 0) AS failed, count(*) FILTER (status = 'ok') AS answered,
        sum(sample_count)::BIGINT AS samples, {_steps()},
        {_in_order("latency_mean_ms")} AS means, {_in_order("rate")} AS rates,
        {geometric_mean_sql("rate", _TIMED)} AS throughput,
        {_of_tails(lambda tail: geometric_mean_sql(f"tail_{tail}", _TIMED))} AS tail,
        {_of_tails(lambda tail: f"'{tail}'")} AS tail_of,
        {geometric_mean_sql("memory_peak_mb", _COUNTED)} AS memory,
        {geometric_mean_sql("cost_usd", _TIMED)} AS own_cost,
        {geometric_mean_sql("energy_per_item_joules", _TIMED)} AS energy_per_item,
        {geometric_mean_sql("ttft_ms", _TIMED)} AS ttft,
        {geometric_mean_sql("1e3 / nullif(tpot_ms, 0)", _TIMED)} AS token_rate,
        {geometric_mean_sql("flops", _COUNTED)} AS flops,
        max(verification_error) FILTER ({_COUNTED}) AS error,
        any_value(implausible_rate) AS implausible_rate,
        max(len(warnings)) AS warnings, max(len(workarounds)) AS workarounds,
        max(started_at) AS moment, list(result_id) AS results
    FROM (SELECT *, wrong_outputs AND NOT of_import AS wrong, {rate} AS rate, {tails}
        FROM ({_launches(_OF_A_CELL, _of_runs(runs))})) JOIN newest ON {same}
    GROUP BY series_key, {", ".join(_IDENTITY)}, run_id
)
SELECT substr(md5(concat_ws(chr(31), {_IDENTITY_TEXT})), 1, 16) AS key,
    cell.* EXCLUDE (of_result), result.* EXCLUDE (result_id),
    CASE WHEN cell.provenance IN ({kinds}) AND cell.emulated THEN 'emulated'
        ELSE cell.provenance END AS kind
FROM cell JOIN (SELECT result_id, {column_list(shared)}, options::VARCHAR AS options
    FROM fact_result) AS result ON result.result_id = of_result
"""  # noqa: S608 — our words


def _steps() -> str:
    """Return the columns of a step by the statistic that all launches have."""
    having = {
        stat: f"bool_and(coalesce({name}, 0) > 0) FILTER ({_TIMED})"
        for stat, name in _STEPS.items()
    }

    def of_all(value: Callable[[str], str]) -> str:
        cases = (f"WHEN {having[stat]} THEN {value(stat)}" for stat in _STEPS)
        return f"CASE {' '.join(cases)} END"

    columns = {
        "times": of_all(lambda stat: _in_order(_STEPS[stat])),
        "latency_of": of_all(lambda stat: f"'{stat}'"),
        "latency": of_all(lambda stat: geometric_mean_sql(_STEPS[stat], _TIMED)),
        "latency_low": of_all(lambda stat: f"min({_STEPS[stat]}) FILTER ({_TIMED})"),
        "latency_high": of_all(lambda stat: f"max({_STEPS[stat]}) FILTER ({_TIMED})"),
    }
    return ", ".join(f"{sql} AS {name}" for name, sql in columns.items())


def _in_order(value: str) -> str:
    return f"list({value} ORDER BY started_at) FILTER ({_TIMED} AND {value} > 0)"


def _of_tails(value: Callable[[str], str]) -> str:
    """Return SQL for the lowest percentile that all launches have."""
    all_have = "count(tail_{0}) FILTER ({1}) = nullif(count(*) FILTER ({1}), 0)"
    cases = (f"WHEN {all_have.format(tail, _TIMED)} THEN {value(tail)}" for tail in TAILS_SQL)
    return f"CASE {' '.join(cases)} END"


#: What identifies places for `price_of`.
_PLACE = ("machine", "hardware", "device_name", "device_fingerprint", "world_size")
#: Cells that have a price: measured ones, without emulated devices.
_PRICEABLE = "status = 'ok' AND kind IN ('measured', 'imported')"
_COLUMNS = """
ALTER TABLE cell ADD COLUMN cost_per_million DOUBLE;
ALTER TABLE cell ADD COLUMN currency VARCHAR;
ALTER TABLE cell ADD COLUMN price_per_hour DOUBLE;
ALTER TABLE cell ADD COLUMN priced_by VARCHAR;
"""
_COSTS = f"""
UPDATE cell SET cost_per_million = hour.each_million / throughput, currency = ?,
    price_per_hour = hour.per_hour, priced_by = hour.name
FROM (
    SELECT unnest(?::VARCHAR[]) AS place, unnest(?::VARCHAR[]) AS name,
        unnest(?::DOUBLE[]) AS per_hour, unnest(?::DOUBLE[]) AS each_million
) AS hour
WHERE {_PRICEABLE} AND throughput > 0 AND {{place}} = hour.place
"""  # noqa: S608 — our columns
#: A cell with a cost of its own keeps it.
_OWN = f"""
UPDATE cell SET cost_per_million = own_cost, currency = ?, price_per_hour = NULL, priced_by = NULL
WHERE {_PRICEABLE} AND own_cost IS NOT NULL
"""  # noqa: S608 — our columns


def add_costs(
    memory: DuckDBPyConnection, machines: Mapping[str, Machine], prices: Prices | None
) -> bool:
    """Add the costs of cells, and return whether any has one."""
    memory.execute(_COLUMNS)
    place = f"concat_ws(chr(31), {', '.join(f'coalesce({n}::VARCHAR, chr(0))' for n in _PLACE)})"
    if prices is not None:
        by_place = _found(memory, machines, prices, place)
        lists: tuple[Sequence[object], ...] = (
            list(by_place),
            [price.name for price in by_place.values()],
            [price.per_hour for price in by_place.values()],
            [costs.per_million(price.per_hour, 1.0) for price in by_place.values()],
        )
        memory.execute(_COSTS.format(place=place), [prices.currency, *lists])
    if prices is None or prices.currency == DEFAULT_CURRENCY:
        memory.execute(_OWN, [DEFAULT_CURRENCY])
    memory.execute("ALTER TABLE cell DROP COLUMN own_cost")
    ((count,),) = memory.execute("SELECT count(cost_per_million) FROM cell").fetchall()
    return bool(count)


def without_a_place(
    memory: DuckDBPyConnection, machines: Mapping[str, Machine], prices: Prices | None
) -> str:
    """Return the note on prices that match nothing in a snapshot, or ""."""
    if prices is None:
        return ""
    known, devices = set[str](), set[str]()
    for values in memory.execute(f"SELECT DISTINCT {', '.join(_PLACE)} FROM cell").fetchall():  # noqa: S608
        row = dict(zip(_PLACE, values, strict=True))
        known |= costs.names_of_place(row, machines.get(str(row["machine"])))
        devices |= {str(row["device_name"])} if row["device_name"] else set()
    return unmatched_prices(prices, known, sorted(devices))


@dataclass(frozen=True)
class StepCost:
    """Costs that a cell's page shows next to that of a million items."""

    items: str  # what a million is of
    per_step: float | None  # what a training step costs
    price: str  # what an hour costs, in words


def spent_of(
    rows: Sequence[Row], prices: Prices | None, machine: Machine | None
) -> StepCost | None:
    """Return the costs of a cell's launches, or None if they have none."""
    machines = {} if machine is None else {str(row.get("run_id") or ""): machine for row in rows}
    cost_rows = [row for row in costs.with_costs(rows, prices, machines) if row.get(PER_MILLION)]
    if not cost_rows:
        return None
    side, price = Side((), cost_rows), costs.known_price(cost_rows[0])
    words = costs.told_of(price, prices) if price is not None and prices is not None else ""
    return StepCost(costs.items_of(cost_rows[0]), side.step_cost, words)


def _found(
    memory: DuckDBPyConnection, machines: Mapping[str, Machine], prices: Prices, place: str
) -> dict[str, costs.Price]:
    places = memory.execute(
        f"SELECT DISTINCT {place}, {', '.join(_PLACE)} FROM cell WHERE {_PRICEABLE}"  # noqa: S608
    ).fetchall()
    by_place = {}
    for key, *values in places:
        row = dict(zip(_PLACE, values, strict=True))
        price = costs.price_of(row, prices, machines.get(str(row["machine"])))
        if price is not None:
            by_place[str(key)] = price
    return by_place


#: Failures before there was a device are overtaken by later results of the same case.
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
    unnest(?::BOOLEAN[]) AS of_check
"""


class SnapshotStep(Enum):
    """The steps of a snapshot in their order, as texts for whoever waits."""

    RUNS = "finding the runs and their machines"
    RESULTS = "reading the results and finding which stand for each configuration"
    CONFIGURATIONS = "counting configurations and what they cost"


#: Is called with the step that begins and the number of results, or None before it is known.
Told = Callable[[SnapshotStep, int | None], None]


@dataclass(frozen=True)
class Snapshot:
    """The cells and runs of one moment."""

    memory: DuckDBPyConnection
    known: Mapping[str, Sequence[str]]  # of each facet, every value there is
    machines: Mapping[str, Machine]  # what each machine is, by its id
    ran: Mapping[str, str]  # the id of the machine that each run was on
    results: int  # how many there are in the store
    cells: int
    at: str  # when it was taken
    prices: Prices | None = None  # by which cells were told what they cost
    costed: bool = False  # whether any has a cost
    unmatched_prices: str = ""  # which prices are of nothing here, in a sentence

    @property
    def sign(self) -> str:
        """What stands before an amount of money."""
        return price_sign(self.prices)

    def ask(self, sql: str, values: Sequence[object] = ()) -> list[dict[str, Any]]:
        """Rows by column name; each question has a connection of its own."""
        with self.memory.cursor() as cursor:
            done = cursor.execute(sql, list(values) or None)
            names = [str(about[0]) for about in done.description or ()]
            rows = [dict(zip(names, row, strict=True)) for row in done.fetchall()]
        if "options" in names:
            for row in rows:
                row["options"] = json.loads(str(row["options"] or "{}"))
        return rows

    def count(self, sql: str, values: Sequence[object] = ()) -> int:
        """The number that is the only answer to a question."""
        ((number,),) = (row.values() for row in self.ask(sql, values))
        return int(number or 0)

    def whole(
        self, sql: str, values: Sequence[object] = (), columns: str = "*"
    ) -> list[dict[str, Any]]:
        """The cells that a question names by where they lie (`rowid AS place`), in its order.

        A question over few columns finds a page of two hundred thousand cells in a quarter of the
        time that it takes over all ninety, and the rows of a page are read by where they lie.
        """
        return self.lying([row["place"] for row in self.ask(sql, values)], columns)

    def lying(self, places: Sequence[int], columns: str = "*") -> list[dict[str, Any]]:
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
    """Take a snapshot of a store, which is only open while it is read."""
    import duckdb

    tell(SnapshotStep.RUNS, None)
    with connect(database.path, retry_seconds=database.retry_seconds) as con:
        ((results,),) = con.execute("SELECT count(*) FROM benchmark_results").fetchall()
        runs = con.sql(_RUNS).to_arrow_table()
        machines = _machines(runs)
        ids = {machine: machine.id for machine in set(machines.values())}
        # Not as an Arrow table: to make one of a list, pyarrow imports pandas, a quarter second.
        labels = [str(label or "") for label in runs.column("label").to_pylist()]
        of_checks = list(map(is_of_a_check, labels))
        ran_on = {run: ids[machine] for run, machine in machines.items()}
        con.execute(_RAN, [list(ran_on), list(ran_on.values()), of_checks])
        ran = con.sql("FROM ran").to_arrow_table()
        tell(SnapshotStep.RESULTS, int(results))
        cells = gathered(con).to_arrow_table()
    tell(SnapshotStep.CONFIGURATIONS, int(results))
    closed = dict.fromkeys(("enable_external_access", "autoload_known_extensions"), "false")
    memory = duckdb.connect(config={"threads": 2, **closed})
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
    known = _known(memory)
    counts = int(results), int(count)
    return Snapshot(memory, known, by_id, ran_on, *counts, at, prices, costed, unmatched)


def _machines(runs: pa.Table) -> dict[str, Machine]:
    """Return the machine of each run; most have the same text, so each is parsed once."""
    environments: dict[str | None, Json | None] = {None: None}
    machines = {}
    for run, text in zip(
        runs.column("run_id").to_pylist(), runs.column("environment").to_pylist(), strict=True
    ):
        if text not in environments:
            environments[text] = json.loads(text)
        machines[str(run)] = machine_of(str(run), environments[text])
    return machines


def _known(memory: DuckDBPyConnection) -> dict[str, list[str]]:
    choices = {}
    for name, column in FACETS.items():
        rows = memory.execute(
            f"SELECT DISTINCT {column} FROM cell WHERE {column} IS NOT NULL ORDER BY 1"  # noqa: S608
        ).fetchall()
        choices[name] = [str(value) for (value,) in rows]
    return choices


Mark = tuple[tuple[int, int], ...]

#: The first page waits so many seconds before it shows that the store is being read.
PATIENCE = 5.0
#: The file is checked at most once in so many seconds.
_LOOK_SECONDS = 1.0


@dataclass(frozen=True)
class SnapshotProgress:
    """The progress of a snapshot."""

    step: int  # from 1, of `steps`
    steps: int
    words: str  # the step as a text
    results: int | None  # in the store; None before they are counted
    seconds: int  # since it began


class SnapshotKeeper:
    """The newest snapshot of a store."""

    def __init__(
        self,
        database: Database,
        refill: Callable[[], object] | None = None,
        refill_seconds: float = 60.0,
        prices: Prices | None = None,
        at: str = "",
    ) -> None:
        """Keep snapshots of a database; `refill` copies new results of a lake into it."""
        self.database = database
        self.prices = prices
        self._at = at
        self._refill, self._refill_seconds = refill, refill_seconds
        self._lock = threading.Lock()
        self._there = threading.Event()
        self._newest: Snapshot | None = None
        self._mark: Mark | None = None
        self._trouble: AccelbenchError | None = None
        self._working: threading.Thread | None = None
        self._looked = self._refilled = float("-inf")
        self._begun = 0.0
        self._step: tuple[int, str, int | None] = (0, "looking at the store", None)

    def begin(self) -> None:
        """Start to take a snapshot if the store has changed since the last one."""
        now = time.monotonic()
        with self._lock:
            if self._working is not None and self._working.is_alive():
                return
            if now - self._looked < _LOOK_SECONDS:
                return
            self._looked = now
            due = self._refill is not None and now - self._refilled > self._refill_seconds
            if not due and self._mark is not None and self._mark == self._looks():
                return
            self._begun = now
            # No daemon: an interpreter that exits while a thread reads DuckDB aborts.
            self._working = threading.Thread(target=self._take, args=(due,))
            self._working.start()

    def newest(self, patience: float = PATIENCE) -> Snapshot | None:
        """Return the newest snapshot, or None while the first is being taken.

        Raises:
            AccelbenchError: The store could never be read.
        """
        self.begin()
        self._there.wait(patience)
        if self._newest is None and self._trouble is not None:
            raise self._trouble
        return self._newest

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Wait for the reader: an interpreter that exits while a thread reads DuckDB aborts."""
        if self._working is not None:
            self._working.join()

    @property
    def trouble(self) -> str:
        """Why the last snapshot is not the newest; empty if it is."""
        return "" if self._trouble is None else str(self._trouble)

    @property
    def progress(self) -> SnapshotProgress:
        """The progress of the snapshot that is being taken."""
        step, words, results = self._step
        seconds = int(time.monotonic() - self._begun)
        return SnapshotProgress(step, len(SnapshotStep), words, results, seconds)

    def _looks(self) -> Mark:
        path = self.database.path
        marks = []
        for file in (path, path.with_name(f"{path.name}.wal")):
            try:
                seen = file.stat()
            except OSError:
                marks.append((0, 0))
            else:
                marks.append((seen.st_size, seen.st_mtime_ns))
        return tuple(marks)

    def _take(self, refill: bool) -> None:

        def tell(step: SnapshotStep, results: int | None) -> None:
            self._step = list(SnapshotStep).index(step) + 1, step.value, results

        try:
            if refill and self._refill is not None:
                self._refilled = time.monotonic()
                self._refill()
            mark = self._looks()  # before reading, so that later changes are seen
            if mark != self._mark or self._newest is None:
                self._newest = taken(self.database, self._at or utc_now(), self.prices, tell)
                self._mark = mark
            self._trouble = None
        except AccelbenchError as error:
            self._trouble = error
        except Exception as error:
            self._trouble = SurroundingsError(f"The store cannot be read: {error}.")
        finally:
            self._there.set()

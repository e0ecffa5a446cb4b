"""Relations `measurements` and `configurations`: evidence of runs, and the current run.

Among runs with the same software the best evidence represents a configuration: usable launches
before unusable ones, five before one, converged ones before noisy ones, and only among equals the
newer. A single noisy launch does not replace five. Other software is another configuration: the
newest software counts. So does the newest version of a user's file or code.

It is not known whether two days of an import without software had the same software: its newest day
counts.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property

from accelbench.core.result_statistics import FEWEST_LAUNCHES
from accelbench.core.rows import Row
from accelbench.core.unusable_reasons import IMPORT, QUALITIES
from accelbench.core.vocabulary import Quality
from accelbench.evidence.launches import LAUNCH_COLUMNS, RUN_SQL, launches_of, query_in_memory

#: Columns of results that the relations are computed from, next to those of the configuration.
MEASUREMENT_COLUMNS = ("run_id", "started_at", "conditions", "weights", "weights_digest")
#: The launches of a measurement count if more than half of the successful ones are usable: one
#: disturbed launch shows little about the others. If more are unusable, the remaining launches were
#: selected by their outcome.
_USABLE_SQL = "2 * count(*) FILTER ({answered} AND {times_usable}) > count(*) FILTER ({answered})"
#: Evidence of the launches of a run, regardless of its age: whether its times are usable, how many
#: launches up to five, and whether most of them converged.
_WORTH_SQL = (
    f"({_USABLE_SQL}, least(count(*) FILTER ({{answered}}), {FEWEST_LAUNCHES}),"
    " 2 * count(*) FILTER ({answered} AND {settled}) > count(*) FILTER ({answered}))"
)
#: The quality of a measurement: `unusable_rows` if its launches do not count, else the least
#: certain of its usable ones; NULL if no launch has one.
_QUALITY_SQL = (
    f"CASE WHEN count(*) FILTER ({{answered}}) > 0 AND NOT {_USABLE_SQL} THEN '{Quality.UNUSABLE}'"
    f" ELSE max_by(quality, row(coalesce(list_position({list(QUALITIES)}, quality), 0), quality))"
    " FILTER ({answered} AND {times_usable} AND quality IS NOT NULL) END"
)
#: Columns of `launches` that rows in memory need.
_NEEDED = (
    *("run_id", "started_at", "quality", "run_key", "software_id", "owned_version", "of_import"),
    *("answered", "times_usable", "settled"),
)


def quality_sql(names: Mapping[str, str] = LAUNCH_COLUMNS) -> str:
    """Return SQL for the quality of grouped rows; `names` has expressions of their columns."""
    return _QUALITY_SQL.format(**names)


def measurements_sql(
    cell: Sequence[str], rows: str, names: Mapping[str, str] = LAUNCH_COLUMNS
) -> str:
    """Return a query with a row for each configuration and run.

    Its columns are those of the configuration, `run`, `run_id`, `day` (of an import), `moment`,
    `answered` (successful launches), `usable_times` (whether more than half of those are usable),
    `newer` (newer launches), and `rank`, which is greatest for the current measurement. A run
    without results is current if it is the newest, so that it is shown.

    `cell` are the columns that identify a configuration. `rows` follows FROM, with these columns,
    MEASUREMENT_COLUMNS and those of launches. `names` has expressions of the columns of launches.
    Software is read from the conditions of one launch per run unless it is a column, because
    parsing JSON takes most of the time.
    """
    cells = ", ".join(cell)
    has_column = names["software_id"] == "software_id"
    said = "any_value(software_id)" if has_column else "any_value(conditions)"
    software = "conditions" if has_column else names["software_id"]
    return f"""
        SELECT *, row(
            answered = 0 AND moment = max(moment) OVER (PARTITION BY {cells}),
            software = first_value(software) OVER newest
                AND (owned = '' OR owned = first_value(owned) OVER owner)
                AND (NOT (starts_with(run, '{IMPORT}') AND software = '')
                    OR run = first_value(run) OVER newest),
            worth, moment, run) AS rank, struct_extract_at(worth, 1) AS usable_times,
            coalesce(sum(answered) OVER (PARTITION BY {cells} ORDER BY moment DESC
                RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW EXCLUDE GROUP), 0)::BIGINT
                AS newer
        FROM (
            SELECT * EXCLUDE (conditions), coalesce({software}, '') AS software FROM (
                SELECT {cells}, {names["run_key"]} AS run, any_value(run_id) AS run_id,
                    any_value(CASE WHEN {names["of_import"]} THEN started_at::DATE END) AS day,
                    {said} AS conditions, max({names["owned_version"]}) AS owned,
                    coalesce(max(started_at), 'epoch'::TIMESTAMP) AS moment,
                    count(*) FILTER ({names["answered"]}) AS answered,
                    {_WORTH_SQL.format(**names)} AS worth, {quality_sql(names)} AS quality
                FROM {rows} GROUP BY {cells}, {len(cell) + 1}))
        WINDOW newest AS (PARTITION BY {cells} ORDER BY moment DESC, run DESC),
            owner AS (PARTITION BY {cells} ORDER BY owned = '', moment DESC, run DESC)
    """  # noqa: S608 — our words


def configurations_sql(cell: Sequence[str], rows: str) -> str:
    """Return a query with a row for each configuration: its current measurement.

    Its columns are those of the measurement, `timed_run` (the best run with results, the same
    unless the newest run has none), `runs` (their number), and `newer` (newer launches that show
    less). The arguments are those of `measurements_sql`.
    """
    cells = ", ".join(cell)
    current = ("run", "run_id", "day", "moment", "usable_times", "newer")
    chosen = ", ".join(f"arg_max_null({name}, rank) AS {name}" for name in current)
    return f"""
        SELECT {cells}, {chosen}, arg_max(run, rank) FILTER (answered > 0) AS timed_run,
            count(*) AS runs
        FROM ({measurements_sql(cell, rows)}) GROUP BY {cells}
    """  # noqa: S608 — our words


def current_sql(cell: Sequence[str], where: str) -> str:
    """Return the condition that a row of benchmark_results belongs to its current measurement.

    If the newest run has no results, the best run with results is current too. `cell` are the
    columns that identify a configuration. `where` selects the rows, and its parameters are needed
    once more.
    """
    chosen = _configurations(cell, where)
    return f"""({_key(cell)}, {RUN_SQL}) IN (
        SELECT cell, unnest([run, timed_run]) FROM ({chosen}))"""  # noqa: S608 — our words


def newer_sql(cell: Sequence[str], where: str) -> str:
    """Return a query for configurations with newer launches that show less, and their number.

    `cell` are the columns that identify a configuration; `cell_of` gives the first column for a
    row. `where` selects the rows, and its parameters are needed once.
    """
    chosen = _configurations(cell, where)
    return f"SELECT cell, newer FROM ({chosen}) WHERE newer > 0"  # noqa: S608 — our words


def cell_of(row: Row, cell: Sequence[str]) -> str:
    """Return the first column of `newer_sql` for a row."""
    return chr(31).join("" if row.get(name) is None else str(row[name]) for name in cell)


def _configurations(cell: Sequence[str], where: str) -> str:
    rows = f"(SELECT *, {_key(cell)} AS cell FROM launches WHERE {where})"  # noqa: S608
    return configurations_sql(("cell",), rows)


def _key(cell: Sequence[str]) -> str:
    texts = ", ".join(f"coalesce({name}::VARCHAR, '')" for name in cell)
    return f"concat_ws(chr(31), {texts})"


@dataclass(frozen=True)
class RunMeasurement:
    """Successful launches of a configuration in one run.

    Attributes:
        launches: all of them.
        is_usable: whether its times may decide anything.
        quality: of its samples.
        weight: number of launches, up to five.
        is_current: whether it represents its configuration.
        older: launches of older runs of the configuration.
        newer: launches of newer runs, which show less if this one is current.
    """

    launches: Sequence[Row]
    is_usable: bool
    quality: str | None = None
    weight: int = 1
    is_current: bool = True
    older: int = 0
    newer: int = 0

    @property
    def run(self) -> object:
        """Key of its run."""
        return self.launches[0]["run_key"]

    @property
    def evidence(self) -> tuple[bool, int]:
        """Whether it is usable, and its number of launches up to five."""
        return self.is_usable, self.weight

    @cached_property
    def rows(self) -> Sequence[Row]:
        """Launches that a value is calculated from: the usable ones, or all if none count."""
        if not self.is_usable:
            return self.launches
        kept = [row for row in self.launches if row["times_usable"]]
        return self.launches if len(kept) == len(self.launches) else kept

    @cached_property
    def usable_rows(self) -> Sequence[Row]:
        """Launches that may decide anything."""
        return self.rows if self.is_usable else ()

    @cached_property
    def unusable_rows(self) -> Sequence[Row]:
        """Launches that `rows` leaves out."""
        if len(self.rows) == len(self.launches):
            return ()
        return [row for row in self.launches if not row["times_usable"]]


def group_measurements(groups: Sequence[Sequence[Row]]) -> list[list[RunMeasurement]]:
    """Return the measurements of each configuration, from its successful launches."""
    return _build_measurements(groups, by_run=True)


def current_measurements(groups: Sequence[Sequence[Row]]) -> list[RunMeasurement]:
    """Return the current measurement of each configuration."""
    return [
        next(one for one in several if one.is_current) for several in group_measurements(groups)
    ]


def merge_launches(launches: Sequence[Row]) -> RunMeasurement:
    """Return some launches as one measurement."""
    return merge_groups([launches])[0]


def merge_groups(groups: Sequence[Sequence[Row]]) -> list[RunMeasurement]:
    """Return each group of launches as one measurement, even if they are of several runs."""
    return [one for (one,) in _build_measurements(groups, by_run=False)]


def _build_measurements(
    groups: Sequence[Sequence[Row]], *, by_run: bool
) -> list[list[RunMeasurement]]:
    launches = iter(launches_of(row for group in groups for row in group))
    every = [[next(launches) for _ in group] for group in groups]
    # In an import of thousands nearly every launch is the only one of its configuration.
    found = [[_single_measurement(*group)] if len(group) == 1 else [] for group in every]
    several = [at for at, group in enumerate(every) if len(group) != 1]
    rows = [(at, row) for at in several for row in every[at]]
    if not rows:
        return [entry or [RunMeasurement((), is_usable=False)] for entry in found]
    given: dict[str, list[object]] = {"cell": [at for at, _ in rows]}
    given |= {name: [row.get(name) for _, row in rows] for name in _NEEDED}
    if not by_run:
        given["run_key"] = [""] * len(rows)
    by_run_key: dict[tuple[int, object], list[Row]] = {}
    for (at, row), run in zip(rows, given["run_key"], strict=True):
        by_run_key.setdefault((at, run), []).append(row)
    known = {(cell, run): about for cell, run, *about in query_in_memory(_in_memory_sql(), given)}
    for (at, run), group in by_run_key.items():
        usable, quality, weight, is_current, older, newer = known[at, run]
        found[at].append(RunMeasurement(group, usable, quality, weight, is_current, older, newer))
    return [entry or [RunMeasurement((), is_usable=False)] for entry in found]


def _single_measurement(row: Row) -> RunMeasurement:
    quality = row.get("quality") if row["answered"] else None
    usable = bool(row["answered"] and row["times_usable"])
    return RunMeasurement((row,), usable, None if quality is None else str(quality))


@cache
def _in_memory_sql() -> str:
    types = dict.fromkeys(_NEEDED, "VARCHAR") | {"cell": "BIGINT"}
    types |= dict.fromkeys(("of_import", "answered", "times_usable", "settled"), "BOOLEAN")
    whole = json.dumps({name: [kind] for name, kind in types.items()})
    each = ", ".join(f"unnest(whole.{name}) AS {name}" for name in types)
    names = {name: name for name in LAUNCH_COLUMNS}
    return f"""
        WITH given AS (
            SELECT * REPLACE (try_cast(started_at AS TIMESTAMP) AS started_at)
            FROM (SELECT {each} FROM (SELECT from_json(?::JSON, '{whole}') AS whole))
        )
        SELECT cell, run, usable_times, quality, struct_extract_at(worth, 2),
            rank = max(rank) OVER (PARTITION BY cell),
            sum(answered) OVER (PARTITION BY cell)::BIGINT - answered - newer, newer
        FROM ({measurements_sql(("cell",), "given", names)})
    """  # noqa: S608 — our words

"""The relations `measurements` and `configurations`: how much runs show, and which one is current.

Of runs with the same software the best evidence represents a configuration: usable launches before
others, five before one, converged ones before noisy ones, and only of equals the newer. A lone
noisy launch is no reason to forget five. Other software is another question: the newest software
counts. So does the newest version of an owner's file or code.

Nobody knows whether two days of an import without software had the same: its newest day counts.
"""

from __future__ import annotations

from collections.abc import Sequence

from accelbench.core.figures import FEWEST_LAUNCHES
from accelbench.core.rows import Row
from accelbench.core.worth import ANSWERED_SQL, IMPORT, OF_IMPORT_SQL, SETTLED_SQL, USABLE_SQL
from accelbench.evidence.launches import OWNED_SQL, RUN_SQL, SOFTWARE_SQL

#: Columns of results that the relations are computed from, next to those of the configuration.
MEASUREMENT_COLUMNS = ("run_id", "started_at", "conditions", "weights", "weights_digest")
#: How much the launches of a run show, whenever they were: whether its times are usable, how many
#: launches up to five, and whether most of them converged.
_WORTH_SQL = f"""(
    2 * count(*) FILTER ({ANSWERED_SQL} AND {USABLE_SQL}) > count(*) FILTER ({ANSWERED_SQL}),
    least(count(*) FILTER ({ANSWERED_SQL}), {FEWEST_LAUNCHES}),
    2 * count(*) FILTER ({ANSWERED_SQL} AND {SETTLED_SQL}) > count(*) FILTER ({ANSWERED_SQL}))"""


def measurements_sql(cell: Sequence[str], rows: str) -> str:
    """Return a query with a row for each configuration and run.

    Its columns are those of the configuration, `run`, `run_id`, `day` (of an import), `moment`,
    `answered` (how many launches succeeded), `usable_times` (whether more than half of those are
    usable), and `rank`, which is greatest for the current measurement. A run without results is
    current if it is the newest: that is to be seen.

    Args:
        cell: columns that identify a configuration.
        rows: what follows FROM, with these columns, MEASUREMENT_COLUMNS and those of _WORTH_SQL.
    """
    cells = ", ".join(cell)
    return f"""
        SELECT *, row(
            answered = 0 AND moment = max(moment) OVER (PARTITION BY {cells}),
            software = first_value(software) OVER newest
                AND (owned = '' OR owned = first_value(owned) OVER owner)
                AND (NOT (starts_with(run, '{IMPORT}') AND software = '')
                    OR run = first_value(run) OVER newest),
            worth, moment, run) AS rank, struct_extract_at(worth, 1) AS usable_times
        FROM (
            SELECT * EXCLUDE (conditions), coalesce({SOFTWARE_SQL}, '') AS software FROM (
                SELECT {cells}, {RUN_SQL} AS run, any_value(run_id) AS run_id,
                    any_value(CASE WHEN {OF_IMPORT_SQL} THEN started_at::DATE END) AS day,
                    any_value(conditions) AS conditions, max({OWNED_SQL}) AS owned,
                    coalesce(max(started_at), 'epoch'::TIMESTAMP) AS moment,
                    count(*) FILTER ({ANSWERED_SQL}) AS answered, {_WORTH_SQL} AS worth
                FROM {rows} GROUP BY {cells}, {len(cell) + 1}))
        WINDOW newest AS (PARTITION BY {cells} ORDER BY moment DESC, run DESC),
            owner AS (PARTITION BY {cells} ORDER BY owned = '', moment DESC, run DESC)
    """  # noqa: S608 — our words


def configurations_sql(cell: Sequence[str], rows: str) -> str:
    """Return a query with a row for each configuration: its current measurement.

    Its columns are those of the measurement, `timed_run` (the best run with results, the same
    unless the newest run came to nothing), `runs` (how many there are), and `newer`: how many
    launches are newer and show less.

    Args:
        cell, rows: as for `measurements_sql`.
    """
    cells = ", ".join(cell)
    current = ("run", "run_id", "day", "moment", "usable_times")
    chosen = ", ".join(f"arg_max_null({name}, rank) AS {name}" for name in current)
    return f"""
        SELECT * EXCLUDE (every),
            coalesce(list_sum([one.answered for one in every if one.moment > moment]), 0)::BIGINT
                AS newer
        FROM (
            SELECT {cells}, {chosen}, arg_max(run, rank) FILTER (answered > 0) AS timed_run,
                count(*) AS runs, list({{'moment': moment, 'answered': answered}}) AS every
            FROM ({measurements_sql(cell, rows)}) GROUP BY {cells})
    """  # noqa: S608 — our words


def current_sql(cell: Sequence[str], where: str) -> str:
    """Return the condition that a row of benchmark_results is of its current measurement.

    If the newest run came to nothing, the best run with results is current next to it.

    Args:
        cell: columns that identify a configuration.
        where: the rows that count; its parameters are needed once more.
    """
    chosen = _configurations(cell, where)
    return f"""({_key(cell)}, {RUN_SQL}) IN (
        SELECT cell, unnest([run, timed_run]) FROM ({chosen}))"""  # noqa: S608 — our words


def newer_sql(cell: Sequence[str], where: str) -> str:
    """Return a query for configurations with newer launches that show less, and their number.

    Args:
        cell: columns that identify a configuration; `cell_of` gives the first column for a row.
        where: the rows that count; its parameters are needed once.
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

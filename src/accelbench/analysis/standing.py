"""Which launches stand for a question at one place, where it was measured more than once. Pure.

Of runs with the same software the best evidence stands: launches whose times count before such as
do not, five before one, settled ones before noisy ones, and only of equals the newer. A lone noisy
launch is no reason to forget five. Other software is another question: there the newest stands.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from accelbench.analysis.questions import flat
from accelbench.core.worth import OF_WORTH, SETTLED_SQL, USABLE_SQL, settled, usable_launches
from accelbench.measure.launches import FEWEST_LAUNCHES

Row = Mapping[str, Any]
#: An import's run is everything that came with it, perhaps of years.
_IMPORT = "import-"
#: Of conditions, what a run was asked, and what the machine lent it: no software.
_NO_SOFTWARE = ("rules.", "effective_", "variables.")


@dataclass(frozen=True)
class Standing:
    """The launches that stand, and those that were set aside for them."""

    rows: Sequence[Row]
    older: int = 0  # launches of older runs
    newer: int = 0  # of newer ones, which say less


def standing(rows: Sequence[Row]) -> Standing:
    """The launches of the run that says most, of the software of the newest.

    Of what names no run, as a table of somebody else's, and of an import a day is a run.
    """
    runs = by_run(rows)
    if len(runs) == 1:
        return Standing(runs[0])
    last = max(runs, key=last_moment)
    now = software(last[0])
    best = max((run for run in runs if software(run[0]) == now), key=evidence)
    return stands(best, runs)


def stands(best: Sequence[Row], runs: Sequence[Sequence[Row]]) -> Standing:
    """A run's launches before those of all others."""
    aside = [run for run in runs if run is not best]
    newer = sum(len(run) for run in aside if last_moment(run) > last_moment(best))
    return Standing(best, sum(map(len, aside)) - newer, newer)


def by_run(rows: Sequence[Row]) -> list[list[Row]]:
    """Launches of each run together."""
    found: dict[tuple[Any, str], list[Row]] = {}
    for row in rows:
        found.setdefault(_run(row), []).append(row)
    return list(found.values())


def evidence(run: Sequence[Row]) -> tuple[bool, int, bool, str]:
    """How much a run's launches say, and when they were: what says more is greater."""
    return (*worth(run), last_moment(run))


def worth(run: Sequence[Row]) -> tuple[bool, int, bool]:
    """How much a run's launches say, whenever they were."""
    kept = usable_launches(run)
    known = 2 * sum(map(settled, run)) > len(run)
    return bool(kept), min(len(run), FEWEST_LAUNCHES), known


def worth_sql(answered: str) -> str:
    """`worth` of a run's rows in SQL, in a query that groups by runs.

    Args:
        answered: which rows have figures.
    """
    return (
        f"(2 * count(*) FILTER ({answered} AND {USABLE_SQL}) > count(*) FILTER ({answered}),"
        f" least(count(*) FILTER ({answered}), {FEWEST_LAUNCHES}),"
        f" 2 * count(*) FILTER ({answered} AND {SETTLED_SQL}) > count(*) FILTER ({answered}))"
    )


def standing_sql(cell: Sequence[str], where: str, there: Container[str]) -> str:
    """That a row of benchmark_results is of the run that stands for its cell, in SQL.

    A run that came to nothing stands where it is the newest: that is what is to be seen.

    Args:
        cell: the columns of a cell.
        where: the rows that count; its parameters are needed once more.
        there: columns that the store has: one that an older version made lacks the newest.
    """
    key = f"concat_ws(chr(31), {', '.join(_text(name) for name in cell)})"
    known = all(name in there for name in OF_WORTH)
    worth = worth_sql("status = 'ok'") if known else "(true, 0, true)"
    return f"""({key}, coalesce(run_id, '')) IN (
        SELECT cell, arg_max(run, rank) FROM (
            SELECT cell, run, row(
                answered = 0 AND moment = max(moment) OVER (PARTITION BY cell),
                {same_software_sql("cell")}, worth, moment) AS rank
            FROM (
                SELECT {key} AS cell, coalesce(run_id, '') AS run,
                    any_value(conditions) AS conditions,
                    coalesce(max(started_at), 'epoch'::TIMESTAMP) AS moment,
                    count(*) FILTER (status = 'ok') AS answered, {worth} AS worth
                FROM benchmark_results WHERE {where} GROUP BY 1, 2)
        ) GROUP BY cell)"""  # noqa: S608 — our words


def same_software_sql(cell: str) -> str:
    """That a run, with its `conditions` and its `moment`, ran what the newest of its cell did."""
    ran = ", ".join(f"coalesce((conditions->'{name}')::VARCHAR, '')" for name in SOFTWARE)
    software = f"concat_ws(chr(31), {ran})"
    return (
        f"{software} = first_value({software}) OVER"
        f" (PARTITION BY {cell} ORDER BY moment DESC, run DESC)"
    )


def _text(name: str) -> str:
    return f"coalesce({name}::VARCHAR, '')"


def newest(rows: Sequence[Row]) -> list[Row]:
    """The launches of the newest run alone: what is judged now, whatever came before."""
    return max(by_run(rows), key=last_moment)


#: Of a run's environment what its results' conditions have of it, and is software.
SOFTWARE = ("packages", "python", "kernel")
Software = tuple[tuple[str, str], ...]
#: Thousands of results share a few objects of conditions, which stay as they are.
_KNOWN: dict[int, tuple[Mapping[str, Any], Software]] = {}
_MOST_KNOWN = 4096


def software(row: Row) -> Software:
    """What ran, by name and version."""
    conditions = row.get("conditions") or {}
    known = _KNOWN.get(id(conditions))
    if known is not None and known[0] is conditions:
        return known[1]
    told = tuple(
        sorted((k, v) for k, v in flat(conditions).items() if not k.startswith(_NO_SOFTWARE))
    )
    if len(_KNOWN) >= _MOST_KNOWN:
        _KNOWN.clear()
    _KNOWN[id(conditions)] = (conditions, told)
    return told


def _run(row: Row) -> tuple[Any, str]:
    run = row.get("run_id")
    one = run and not str(run).startswith(_IMPORT)
    return run, "" if one else str(row.get("started_at") or "")[:10]


def last_moment(run: Sequence[Row]) -> str:
    """When the newest of some launches began."""
    return max(str(row.get("started_at") or "") for row in run)

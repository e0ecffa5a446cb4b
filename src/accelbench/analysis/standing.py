"""Which launches stand for a question at one place, where it was measured more than once. Pure.

Of runs with the same software the best evidence stands: launches whose times count before such as
do not, five before one, settled ones before noisy ones, and only of equals the newer. A lone noisy
launch is no reason to forget five. Other software is another question: there the newest stands. So
is a file or code of an owner's that was changed since.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from accelbench.analysis.questions import PASSED_OVER, flat
from accelbench.core.figures import FEWEST_LAUNCHES
from accelbench.core.identity import canonical
from accelbench.core.rows import Json, Row, record
from accelbench.core.worth import (
    ANSWERED_SQL,
    IMPORT,
    OF_IMPORT_SQL,
    SETTLED_SQL,
    USABLE_SQL,
    counting_launches,
    of_import,
    settled,
    usable,
    usable_launches,
)

#: In a row that was read without those that do not stand: how many of them are newer.
NEWER = "newer_launches_set_aside"
#: Of conditions, what a run was asked, what the machine lent it, and what was measured: a commit is
#: what a history is of.
_NO_SOFTWARE = ("rules.", "effective_", "variables.", "allocator", "commit")
#: The same of conditions as a whole, where SQL leaves them out.
_LEFT_OUT = (
    *(*PASSED_OVER, "rules", "variables", "allocator"),
    *("commit", "effective_cpus", "effective_memory"),
)


@dataclass(frozen=True)
class Standing:
    """The launches that stand, and those that were set aside for them."""

    rows: Sequence[Row]
    older: int = 0  # launches of older runs
    newer: int = 0  # of newer ones, which say less
    unusable: Sequence[Row] = ()  # launches of the same run, whose times do not count

    @property
    def run(self) -> Sequence[Row]:
        """All launches of the run."""
        return [*self.rows, *self.unusable]


def standing(rows: Sequence[Row]) -> Standing:
    """The launches of the run that says most, of the software of the newest.

    Of what names no run, as a table of somebody else's, and of an import a day is a run. Where an
    import names no software, nobody knows that two of its days had the same, and the newest stands.
    """
    if len(rows) == 1:  # of thousands of an import nearly each is the only launch of its question
        return Standing(rows)
    runs = by_run(rows)
    if len(runs) == 1:
        return stands(runs[0], runs)
    newest = max(runs, key=when)
    now = installed(newest[0])
    if of_import(newest[0]) and now == _UNSAID:
        return stands(newest, runs)
    best = max((run for run in runs if installed(run[0]) == now), key=evidence)
    return stands(best, runs)


def stands(best: Sequence[Row], runs: Sequence[Sequence[Row]]) -> Standing:
    """A run's launches before those of all others; of its own, those whose times count."""
    aside = [run for run in runs if run is not best]
    newer = sum(len(run) for run in aside if last_moment(run) > last_moment(best))
    kept = counting_launches(best)
    out = [] if len(kept) == len(best) else [row for row in best if not usable(row)]
    return Standing(kept, sum(map(len, aside)) - newer, newer, out)


def by_run(rows: Sequence[Row]) -> list[list[Row]]:
    """Launches of each run together."""
    rows_by_run: dict[tuple[object, str], list[Row]] = {}
    for row in rows:
        rows_by_run.setdefault(run_of(row), []).append(row)
    return list(rows_by_run.values())


def evidence(run: Sequence[Row]) -> tuple[object, ...]:
    """How much a run's launches say, and when they were: what says more is greater."""
    return (*worth(run), *when(run))


def when(run: Sequence[Row]) -> tuple[str, str]:
    """When a run was; of two at one moment the greater name is the later one, here and in SQL."""
    return last_moment(run), str(run[0].get("run_id") or "")


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


def standing_sql(cell: Sequence[str], where: str) -> str:
    """That a row of benchmark_results is of the run that stands for its cell, in SQL.

    A run that came to nothing stands where it is the newest: that is to be seen, and beside it the
    figures of the one that stood before.

    Args:
        cell: the columns of a cell.
        where: the rows that count; its parameters are needed once more.
    """
    return f"""({_key(cell)}, {_RUN_SQL}) IN (
        SELECT cell, unnest([arg_max(run, rank), arg_max(run, rank) FILTER (answered > 0)])
        FROM ({_ranked(cell, where)}) GROUP BY cell)"""  # noqa: S608 — our words


def newer_sql(cell: Sequence[str], where: str) -> str:
    """A query for the launches that are newer than those that stand and say less, a row a cell.

    Args:
        cell: the columns of a cell; the query's first column holds them as `cell_of` does.
        where: the rows that count; its parameters are needed once.
    """
    return f"""SELECT cell, sum(answered)::BIGINT FROM (
            SELECT *, arg_max(moment, rank) OVER (PARTITION BY cell) AS stands
            FROM ({_ranked(cell, where)}))
        WHERE moment > stands AND answered > 0 GROUP BY cell"""  # noqa: S608 — our words


def cell_of(row: Row, cell: Sequence[str]) -> str:
    """The cell of a row, as `newer_sql` writes it."""
    return chr(31).join("" if row.get(name) is None else str(row[name]) for name in cell)


def _key(cell: Sequence[str]) -> str:
    return f"concat_ws(chr(31), {', '.join(_text(name) for name in cell)})"


def _ranked(cell: Sequence[str], where: str) -> str:
    """The runs of each cell with how much each says, in SQL."""
    return f"""SELECT cell, run, moment, answered, row(
            answered = 0 AND moment = max(moment) OVER (PARTITION BY cell),
            {same_software_sql("cell")}, worth, moment, run) AS rank
        FROM (
            SELECT {_key(cell)} AS cell, {_RUN_SQL} AS run,
                any_value(conditions) AS conditions, max({OWNED_SQL}) AS owned,
                coalesce(max(started_at), 'epoch'::TIMESTAMP) AS moment,
                count(*) FILTER ({ANSWERED_SQL}) AS answered, {worth_sql(ANSWERED_SQL)} AS worth
            FROM launches WHERE {where} GROUP BY 1, 2)"""  # noqa: S608 — our words


#: `by_run` in SQL: of what names no run, and of an import, a day is a run.
_RUN_SQL = (
    f"CASE WHEN coalesce(run_id, '') = '' OR {OF_IMPORT_SQL}"
    " THEN concat_ws(chr(31), coalesce(run_id, ''), coalesce(started_at::DATE::VARCHAR, ''))"
    " ELSE run_id END"
)


def same_software_sql(cell: str) -> str:
    """That a run, with its `conditions`, `owned` and `moment`, ran what the newest of its cell did.

    Args:
        cell: columns of a cell, in a query whose rows are runs that begin with their names.
    """
    ran = ", ".join(f"coalesce((conditions->'{name}')::VARCHAR, '')" for name in SOFTWARE)
    software = f"concat_ws(chr(31), {ran})"
    newest = f"OVER (PARTITION BY {cell} ORDER BY moment DESC, run DESC)"
    # Of an import that names none only the newest day: nobody knows that others had the same.
    unsaid = f"(starts_with(run, '{IMPORT}') AND {software} = '{chr(31) * (len(SOFTWARE) - 1)}')"
    return (
        f"{software} = first_value({software}) {newest} AND {same_owned_sql(cell, 'run')}"
        f" AND (NOT {unsaid} OR run = first_value(run) {newest})"
    )


#: What an owner's file or code is told apart by; nothing of what a config builds.
OWNED_SQL = "CASE WHEN weights IN ('file', 'code') THEN coalesce(weights_digest, '') ELSE '' END"
#: The columns of that.
OWNED = ("weights", "weights_digest")


def same_owned_sql(cell: str, run: str) -> str:
    """That a run, with its `owned` and `moment`, was of the file or code that the newest had.

    A run that failed before it had read it may have been of any.

    Args:
        cell: columns of a cell.
        run: the column of its name.
    """
    order = f"ORDER BY owned = '', moment DESC, {run} DESC"
    return f"(owned = '' OR owned = first_value(owned) OVER (PARTITION BY {cell} {order}))"


def _text(name: str) -> str:
    return f"coalesce({name}::VARCHAR, '')"


def newest(rows: Sequence[Row]) -> list[Row]:
    """The launches of the newest run alone: what is judged now, whatever came before."""
    return max(by_run(rows), key=last_moment)


#: Of a run's environment what its results' conditions have of it, and is software.
SOFTWARE = ("packages", "python", "kernel")
Software = tuple[tuple[str, str], ...]


#: What `installed` is of a row that names no software.
_UNSAID = (*(canonical(None) for _ in SOFTWARE), "")


def installed(row: Row) -> tuple[str, ...]:
    """What software a run had, and whose file or code: what its evidence is compared by."""
    conditions = record(row, "conditions")
    own = row.get("weights") in ("file", "code")
    owned = str(row.get("weights_digest") or "") if own else ""
    return (*(canonical(conditions.get(name)) for name in SOFTWARE), owned)


#: Thousands of results share a few objects of conditions, which stay as they are.
_KNOWN: dict[int, tuple[Json, Software]] = {}
_MOST_KNOWN = 4096


def software(row: Row) -> Software:
    """All conditions that tell one way of running from another, by name: versions, and more."""
    conditions = record(row, "conditions")
    known = _KNOWN.get(id(conditions))
    if known is not None and known[0] is conditions:
        return known[1]
    versions = tuple(
        sorted((k, v) for k, v in flat(conditions).items() if not k.startswith(_NO_SOFTWARE))
    )
    if len(_KNOWN) >= _MOST_KNOWN:
        _KNOWN.clear()
    _KNOWN[id(conditions)] = (conditions, versions)
    return versions


def version(row: Row) -> Software:
    """What tells a result apart from others of its question: of an import its software.

    An import brings figures of many versions of an engine at once, of which each stands beside the
    others. What is of a run of ours has a moment in a line of runs, and the newest software stands.
    """
    return software(row) if of_import(row) else ()


def version_sql() -> str:
    """`version` in SQL, as JSON; NULL of what is of no import."""
    none = canonical(dict.fromkeys(_LEFT_OUT))
    return (
        f"CASE WHEN {OF_IMPORT_SQL} THEN json_merge_patch("
        f"json_merge_patch('{{}}', coalesce(conditions, '{{}}')), '{none}')::VARCHAR END"
    )


def run_of(row: Row) -> tuple[object, str]:
    """Which run a row is of: of an import, and of what names no run, a day is one."""
    run = row.get("run_id")
    is_run = run and not of_import(row)
    return run, "" if is_run else str(row.get("started_at") or "")[:10]


def last_moment(run: Sequence[Row]) -> str:
    """When the newest of some launches began."""
    return max(str(row.get("started_at") or "") for row in run)

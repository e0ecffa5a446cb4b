"""The runs that a word of a command line means."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from accelbench.core.errors import UsageError
from accelbench.core.facts import PART_SEPARATOR, fleet_run_id
from accelbench.core.formatting import join_first
from accelbench.core.safe_text import in_quotes, visible
from accelbench.judge.filters import Filters, marks, misplaced
from accelbench.judge.older_runs import NOISE, NOT_OF_A_CHECK, RERUN_OF
from accelbench.judge.suggestions import nothing

if TYPE_CHECKING:
    from accelbench.store.database import Database

#: The id of a run that was measured, as `new_run_id` makes it.
_OWN_ID = re.compile(r"\d{8}-\d{6}-[0-9a-f]{10}")
#: The word for the newest run, unless a run is called so.
LAST = "last"
#: Runs that are named where a word means none.
_NAMED = 6
_LIST_RUNS = "accelbench db sql 'SELECT run_id, label FROM benchmark_runs' lists runs."


class UnknownRunError(UsageError):
    """No run is called by a word, or none is yet."""


def labels_of(database: Database, runs: Sequence[str]) -> dict[str, str]:
    """The labels of runs that have one."""
    _, rows = database.query(
        "SELECT run_id, label FROM benchmark_runs"  # noqa: S608 — as many marks as runs
        f" WHERE label IS NOT NULL AND run_id IN ({marks(runs)})",
        runs,
    )
    return {str(run): harmless(str(label)) for run, label in rows}


def harmless(label: str) -> str:
    """A name in one line, as a heading has it: whoever labels a run may put anything there."""
    return " ".join(visible(label).split())


def runs_named(database: Database, word: str) -> list[str]:
    """Runs by id, else by label, else by branch; of a fleet's run its nodes' parts as well."""
    # Ids that others gave may have a dot as well, and are parts of nothing.
    own = f"split_part(run_id, '{PART_SEPARATOR}', 1)" if _OWN_ID.fullmatch(word) else "run_id"
    for column in (own, "label", "git_branch"):
        _, rows = database.query(
            f"SELECT run_id FROM benchmark_runs WHERE {column} = ? ORDER BY started_at",  # noqa: S608
            [word],
        )
        if rows:
            return [str(run) for (run,) in rows]
    return []


def runs_meant(database: Database, word: str, what: str = "run, label or branch") -> list[str]:
    """Runs by id, label or branch, else the newest by `last`, else the one whose id begins so.

    The newest comes first.

    Raises:
        UnknownRunError: there is none.
        UsageError: several ids begin so.
    """
    named = runs_named(database, word)
    if not named and word == LAST:
        named = _newest(database)
    if named:
        return named[::-1]
    begun = _runs_begun(database, word, "benchmark_runs") or _runs_begun(
        # Of what came without its run, results alone say whose they are.
        database,
        word,
        "benchmark_results",
    )
    if not begun:
        advice = misplaced(word) or _there_are(database)
        raise UnknownRunError(f"There is no {what} {in_quotes(word)}.", advice)
    if word not in begun and len(begun) > 1 and len({fleet_run_id(run) for run in begun}) == 1:
        return begun
    if word not in begun and len(begun) > 1:
        listing = _named(begun, labels_of(database, begun))
        raise UsageError(
            f"{in_quotes(word)} begins the ids of {len(begun)} runs.", f"There are: {listing}."
        )
    return [word] if word in begun else begun


def only_runs(database: Database, words: Sequence[str]) -> Filters:
    """The filter of results to the runs that words mean; of no word none.

    Raises:
        UsageError: as `runs_meant` does.
    """
    with database.keep_open():
        return only_ids([run for word in words for run in runs_meant(database, word)])


def only_ids(ids: Sequence[str]) -> Filters:
    """The filter of results to runs by their ids, as files say them."""
    return {"run_id": tuple(dict.fromkeys(ids))} if ids else {}


def measured_series(database: Database, ids: Sequence[str]) -> Filters:
    """Return the filter of results to the series of these runs.

    Raises:
        NothingMeasuredError: The runs have no result with a series.
    """
    with database.keep_open():
        _, rows = database.query(
            "SELECT DISTINCT series_key FROM benchmark_results"  # noqa: S608 — as many marks as runs
            f" WHERE series_key IS NOT NULL AND run_id IN ({marks(ids)}) ORDER BY 1",
            ids,
        )
    if not rows:
        raise nothing(f"Run {', '.join(ids)} has no results of a series", {"run_id": ids}, database)
    return {"series_key": tuple(str(key) for (key,) in rows)}


def labels_in(database: Database, runs: Iterable[str]) -> dict[str, str]:
    """Labels of those of these runs that have one."""
    known = list(dict.fromkeys(runs))
    return labels_of(database, known) if known else {}


def _newest(database: Database) -> list[str]:
    """Return the newest run with its parts, but no run that a check made for itself."""
    _, rows = database.query(
        "SELECT run_id FROM (SELECT run_id, max(started_at) AS started_at FROM benchmark_results"  # noqa: S608
        " GROUP BY 1) LEFT JOIN (SELECT run_id, label FROM benchmark_runs) b USING (run_id)"
        f" WHERE {NOT_OF_A_CHECK} ORDER BY started_at DESC NULLS LAST, run_id DESC LIMIT 1",
        [NOISE, RERUN_OF],
    )
    return runs_named(database, fleet_run_id(str(rows[0][0]))) if rows else []


def _runs_begun(database: Database, word: str, table: str) -> list[str]:
    _, rows = database.query(
        f"SELECT DISTINCT run_id FROM {table} WHERE starts_with(run_id, ?) ORDER BY 1 DESC",  # noqa: S608
        [word],
    )
    return [str(run) for (run,) in rows]


def _there_are(database: Database) -> str:
    _, rows = database.query(
        "SELECT run_id, label FROM benchmark_runs ORDER BY started_at DESC NULLS LAST, run_id DESC"
    )
    labels = {str(run): harmless(str(label)) for run, label in rows if label is not None}
    runs = [str(run) for run, _ in rows]
    return f"There are: {_named(runs, labels)}. {_LIST_RUNS}" if runs else _LIST_RUNS


def _named(runs: list[str], labels: Mapping[str, str]) -> str:
    names = [f"{run} ({labels[run]})" if run in labels else run for run in runs]
    return join_first(names, _NAMED)

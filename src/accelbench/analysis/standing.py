"""The current launches of a question that was measured more than once. Pure.

The rule is that of `evidence.measurements`, for rows in memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from accelbench.analysis.questions import PASSED_OVER, flat
from accelbench.core.figures import FEWEST_LAUNCHES
from accelbench.core.identity import canonical
from accelbench.core.rows import Json, Row, record
from accelbench.core.worth import (
    OF_IMPORT_SQL,
    counting_launches,
    of_import,
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
    if newest[0]["of_import"] and newest[0]["software_id"] is None:
        return stands(newest, runs)
    now = _software(newest[0])
    best = max((run for run in runs if _software(run[0]) == now), key=evidence)
    return stands(best, runs)


def stands(best: Sequence[Row], runs: Sequence[Sequence[Row]]) -> Standing:
    """A run's launches before those of all others; of its own, those whose times count."""
    aside = [run for run in runs if run is not best]
    newer = sum(len(run) for run in aside if last_moment(run) > last_moment(best))
    kept = counting_launches(best)
    out = [] if len(kept) == len(best) else [row for row in best if not usable(row)]
    return Standing(kept, sum(map(len, aside)) - newer, newer, out)


def by_run(rows: Sequence[Row]) -> list[list[Row]]:
    """Return the launches of each run."""
    rows_by_run: dict[object, list[Row]] = {}
    for row in rows:
        rows_by_run.setdefault(row["run_key"], []).append(row)
    return list(rows_by_run.values())


def _software(row: Row) -> tuple[object, object]:
    return row["software_id"], row["owned_version"]


def evidence(run: Sequence[Row]) -> tuple[object, ...]:
    """How much a run's launches say, and when they were: what says more is greater."""
    return (*worth(run), *when(run))


def when(run: Sequence[Row]) -> tuple[str, str]:
    """When a run was; of two at one moment the greater name is the later one, here and in SQL."""
    return last_moment(run), str(run[0].get("run_id") or "")


def worth(run: Sequence[Row]) -> tuple[bool, int, bool]:
    """How much a run's launches say, whenever they were."""
    kept = usable_launches(run)
    known = 2 * sum(bool(row["settled"]) for row in run) > len(run)
    return bool(kept), min(len(run), FEWEST_LAUNCHES), known


def newest(rows: Sequence[Row]) -> list[Row]:
    """The launches of the newest run alone: what is judged now, whatever came before."""
    return max(by_run(rows), key=last_moment)


Software = tuple[tuple[str, str], ...]


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


def last_moment(run: Sequence[Row]) -> str:
    """When the newest of some launches began."""
    return max(str(row.get("started_at") or "") for row in run)

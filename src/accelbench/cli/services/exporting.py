"""What `accelbench db export` writes beside files: results in an experiment tracker."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from accelbench.cli.display.tables import jsonable
from accelbench.core.nouns import counted
from accelbench.core.word_lists import words
from accelbench.exchange.run_facts import told as run_told
from accelbench.exchange.trackers.trackers import TRACKERS, export_tracked, tracker_named
from accelbench.query.conditions import where_of
from accelbench.query.filters import Filters, filters_of
from accelbench.query.run_names import only_runs
from accelbench.query.suggestions import none_found, refuse_unknown
from accelbench.store.database import Database

TRACKER_NAMES = tuple(TRACKERS)


def to_tracker(
    place: str,
    word: str,
    database: Database,
    filters: Filters,
    samples: bool,
) -> tuple[dict[str, Any], list[str]]:
    """Write results into a tracker: what came of it, as a document and as lines.

    Args:
        place: a folder, or an address where the tracker takes one.
        word: the tracker.
        database: where the results are.
        filters: column → the values that count; of all results if empty.
        samples: whether each is to have its samples, too.
    """
    tracker = tracker_named(word)
    where, params = stored(filters)
    rows = database.results(where, params, samples=samples)
    done = export_tracked(tracker, place, rows, told_runs(database))
    document = {
        "tracker": word,
        "place": place,
        "results": len(rows),
        "written": done.written,
        "there_already": done.there_already,
        "never_run": done.never_run,
    }
    lines = [f"Wrote {counted(done.written, 'result')} into {tracker.title} at {place}"]
    if done.there_already:
        lines.append(f"{counted(done.there_already, 'result')} there already.")
    if done.never_run:
        lines.append(f"Left out: {done.never_run} that never ran, unsupported or skipped.")
    if done.written:
        lines.append(tracker.look(place))
    return document, lines


def selected(database: Database, models: Sequence[str], runs: Sequence[str]) -> Filters:
    """Return the filter of the results to export; empty if all are.

    Raises:
        UsageError: A model or a run is not known.
        NothingMeasuredError: There are no such results.
    """
    filters = filters_of(models) | only_runs(database, words(list(runs)))
    where, params = stored(filters)
    if (
        where
        and not database.query(
            f"SELECT 1 FROM benchmark_results WHERE {where} LIMIT 1",  # noqa: S608 — our columns
            params,
        )[1]
    ):
        raise none_found(database, filters)
    refuse_unknown(database, filters, has_results=True)
    return filters


def stored(filters: Filters) -> tuple[str, list[object]]:
    """Return the condition in SQL of every such result, and its parameters; "" if all are."""
    return where_of(filters, "true") if filters else ("", [])


def told_runs(database: Database) -> dict[str, dict[str, Any]]:
    """What an export says of each run."""
    names, rows = database.query(
        "SELECT run_id, label, git_commit, git_branch, started_at, environment::VARCHAR"
        " AS environment FROM benchmark_runs ORDER BY run_id"
    )
    by_run = {}
    for row in rows:
        about = {name: jsonable(value) for name, value in zip(names, row, strict=True)}
        about["environment"] = json.loads(about["environment"] or "{}")
        by_run[str(about["run_id"])] = run_told(about)
    return by_run


def of_interest(
    rows: Sequence[Mapping[str, Any]], runs: Mapping[str, Mapping[str, Any]]
) -> list[Mapping[str, Any]]:
    """Results but those of runs that a check made for itself: they are no news of a series."""
    from accelbench.query.histories import is_of_a_check

    labels = {run: str(about.get("label") or "") for run, about in runs.items()}
    own = {run for run, label in labels.items() if is_of_a_check(label)}
    return [row for row in rows if row["run_id"] not in own]

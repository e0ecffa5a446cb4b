"""What a report is of: pictures, with the results and the runs behind them."""

from __future__ import annotations

import os
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from accelbench.core.facts import utc_now
from accelbench.core.formatting import format_count, join_first
from accelbench.core.rows import Row
from accelbench.judge.filters import marks
from accelbench.judge.findings.finding import changed_in
from accelbench.judge.stored_results import of_machine, runs_to_judge
from accelbench.present.chart_data import Filters, pictured_where, subject_in, subject_of

if TYPE_CHECKING:
    from accelbench.exchange.prices import Prices
    from accelbench.judge.machines import Machine
    from accelbench.present.report_parts import ReportData
    from accelbench.store.database import Database

#: Other machines and sources that are named, those with most results.
MOST_OTHERS = 8
_RUN = (
    "run_id, label, command, status, started_at::VARCHAR AS started_at, git_commit,"
    " environment::VARCHAR AS environment"
)


def known_in(
    database: Database, filters: Filters, machine: str | None, prices: Prices | None = None
) -> ReportData:
    """What a database has of one machine."""
    from accelbench.present.prediction_evidence import among_rows, evidence_in
    from accelbench.present.report_parts import ReportData

    with database.keep_open():
        subject = subject_in(database, filters, machine, prices)
        ids = list(dict.fromkeys(str(row["run_id"]) for row in subject.rows if row.get("run_id")))
        evidence = evidence_in(database, among_rows(subject.rows))
        runs = _runs(database, ids)
        check = changed_in(database, filters, machine)
        others = _others(database, filters, machine)
    return ReportData(subject, runs, _named(database), utc_now(), evidence, check, others)


def _others(database: Database, filters: Filters, machine: str | None) -> list[str]:
    where, values = pictured_where(filters)
    runs = runs_to_judge(database, filters, where, values)
    _, _, others = of_machine(runs, machine)
    if not others:
        return []
    _, rows = database.query(
        "SELECT coalesce(run_id, ''), model, count(*) FROM benchmark_results"  # noqa: S608 — ours
        f" WHERE {where} GROUP BY ALL",
        values,
    )
    results: Counter[Machine] = Counter()
    models: dict[Machine, set[str]] = {}
    for run, model, count in rows:
        if str(run) in runs:
            owner, _ = runs[str(run)]
            results[owner] += int(str(count))
            models.setdefault(owner, set()).add(str(model))
    named = Counter(one.word for one in {owner for owner, _ in runs.values()})
    more = len(others) - MOST_OTHERS
    return [
        f"{one} ({format_count(results[one], 'result')} of"
        f" {format_count(len(models[one]), 'model')}):"
        f" accelbench report --machine {shlex.quote(one.word if named[one.word] < 2 else one.id)}"
        for one in sorted(others, key=lambda one: (-results[one], one))[:MOST_OTHERS]
    ] + (
        [f"{format_count(more, 'machine or source', 'machines and sources')} more"]
        if more > 0
        else []
    )


def known_of(files: Sequence[Path], filters: Filters, prices: Prices | None = None) -> ReportData:
    """What result files say."""
    from accelbench.exchange.imports.ours import read_runs
    from accelbench.exchange.imports.records import read_object
    from accelbench.present.report_parts import ReportData

    subject = subject_of(files, filters, prices)
    run_ids = {str(row.get("run_id")) for row in subject.rows}
    runs = {
        key or str(run.get("run_id")): {"run_id": key, **run}
        for file in files
        for key, run in read_runs(read_object(file)).items()
        if isinstance(run, Mapping)
    }
    source = join_first([file.name for file in files])
    return ReportData(
        subject, [runs[run] for run in sorted(run_ids & runs.keys())], source, utc_now()
    )


def _named(database: Database) -> str:
    """Return the database as it was typed, or without the home folder."""
    name, home = database.typed_path or database.name, str(Path.home())
    within = len(home) > 1 and name.startswith(f"{home}{os.sep}")
    return f"~{name[len(home) :]}" if within else name


def _runs(database: Database, ids: Sequence[str]) -> list[Row]:
    if not ids:
        return []
    names, rows = database.query(
        f"SELECT {_RUN} FROM benchmark_runs WHERE run_id IN ({marks(ids)})"  # noqa: S608 — ours
        " ORDER BY started_at",
        ids,
    )
    return [dict(zip(names, row, strict=True)) for row in rows]

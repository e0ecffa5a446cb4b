"""The summaries of a database and of an import, and a store at a glance."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from accelbench.core.columns import step_ms
from accelbench.core.device_facts import MAX_SHARE_OF_PEAK, describe_rate
from accelbench.core.devices import short_of
from accelbench.core.formatting import format_batch, format_count, format_value, join_first
from accelbench.core.result_statistics import common_unit, differing_unit
from accelbench.core.rows import ResultRow
from accelbench.core.vocabulary import Status
from accelbench.evidence.launches import COMPARABLE_SQL
from accelbench.present.document import Table, columns
from accelbench.present.terminal.words import case_name, shapes, spread, where
from accelbench.present.texts import phrase

if TYPE_CHECKING:
    from accelbench.exchange.imports.reading import ImportedResults
    from accelbench.judge.overview import StoreOverview
    from accelbench.store.database import Database


#: Machines that are named; exports of a lake may be of hundreds.
_MOST = 8


@dataclass(frozen=True)
class ImportSummary:
    """What results of an import are stored as."""

    machines: tuple[str, ...] = ()
    undated: int = 0  # would be compared, and have no place in a history


def brought(database: Database, content: ImportedResults) -> ImportSummary:
    """What is in the database of the runs that an import brought."""
    of_runs, runs = "run_id IN (SELECT unnest(?))", [[run.id for run in content.runs]]
    _, ((undated,),) = database.query(
        f"SELECT count(*) FROM benchmark_results WHERE {of_runs}"  # noqa: S608 — our condition
        f" AND started_at IS NULL AND status = '{Status.OK.value}' AND {COMPARABLE_SQL}",
        runs,
    )
    return ImportSummary(
        tuple(machines_of(database, of_runs, runs)), undated if isinstance(undated, int) else 0
    )


def machines_of(
    database: Database, where: str = "true", values: Sequence[object] = ()
) -> list[str]:
    """The machines of results, as people know them."""
    from accelbench.judge.stored_results import runs_of

    machines = {machine for machine, _ in runs_of(database, where, values).values()}
    return [str(machine) for machine in sorted(machines)]


def named(machines: Sequence[str]) -> str:
    """Return the first of many machines."""
    return join_first(machines, _MOST, "; ") or "none"


def told(summary: ImportSummary) -> Iterator[str]:
    """Sentences for people."""
    if summary.machines:
        word = "Machine" if len(summary.machines) == 1 else "Machines"
        yield f"{word}, by --machine: {named(summary.machines)}"
    if summary.undated:
        yield phrase("store.undated", count=summary.undated)


def samples_left(files: Sequence[Path]) -> str:
    """The sentence about tables that have samples, which only a result file brings along."""
    named = str(files[0]) if len(files) == 1 else f"{len(files)} files"
    return phrase("store.samples-not-read", named=named)


#: As many as a few lines hold: somebody else's tables have thousands of models.
_MOST_NAMES = 24
#: Results that were refused, of which each is a line.
_MOST_REFUSED = 5


def status_lines(summary: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the lines of `db status`, each a name and a text."""
    tables, journals = summary["tables"], summary["journals"]
    lines = [
        ("database", summary["database"]),
        ("size", f"{summary['size_bytes'] / 2**20:.1f} MiB, schema {summary['schema_version']}"),
        *((name, str(count)) for name, count in tables.items()),
        ("results by status", _counted(summary["results_by_status"])),
        ("by provenance", _counted(summary["results_by_provenance"])),
        ("unusable results", _counted(summary["unusable_by_reason"])),
        ("runs by status", _counted(summary["runs_by_status"])),
        ("models", join_first(summary["models"], _MOST_NAMES) or "none"),
        ("hardware", ", ".join(summary["hardware"]) or "none"),
        ("machines", named(summary["machines"])),
    ]
    if summary["first_result_at"]:
        lines.append(("measured", f"{summary['first_result_at']} to {summary['last_result_at']}"))
    lines.append(("journals", f"{journals['known']} in {journals['folder']}"))
    if journals["orphans"]:
        lines.append(("not filled in", ", ".join(journals["orphans"])))
    refused = [
        f"result {a['result_id']} of run {a['run_id']}: {a['why']}" for a in summary["refused"]
    ]
    more = len(refused[_MOST_REFUSED:])
    messages = [*refused[:_MOST_REFUSED], *([f"and {more} more; --json has all"] if more else [])]
    lines += [("not stored", message) for message in messages]
    lines += [("implausible", text) for text in _implausible(summary["implausible"])]
    for name, numbers in journals["corrupt_lines"].items():
        lines.append(("damaged", f"{name}, line(s) {', '.join(map(str, numbers))}"))
    return lines


def _implausible(results: Sequence[dict[str, Any]]) -> Iterator[str]:
    if results:
        count = format_count(len(results), "imported result")
        yield phrase("store.implausible", count=count, most_of_peak=MAX_SHARE_OF_PEAK)
    for one in results[:_MOST_REFUSED]:
        where = " ".join(str(one[name]) for name in ("runtime", "precision") if one[name])
        place = f"{where} on {one['device_name']}"
        batch = format_batch(one["batch_size"])
        yield f"{one['model']}, {batch}, {place}: {describe_rate(one['implausible_rate'])}"
    if more := len(results[_MOST_REFUSED:]):
        yield f"and {more} more; --json has all"


def _counted(counts: dict[str, int]) -> str:
    return ", ".join(f"{count} {word}" for word, count in counts.items()) or "none"


def fastest_by_task(rows: Sequence[ResultRow]) -> Table:
    """Return a row a model, those of a task together, the fastest first."""
    unit = common_unit(rows)
    told = (row.get("task") or row.get("family") or "task unknown" for row in rows)
    tasks = [str(task).replace("_", " ") for task in told]
    changes = [task != before for before, task in pairwise(["", *tasks])]
    cells = [
        (
            task if is_first else "",
            str(row["model"]),
            f"{short_of(str(row['runtime']))}/{where(row)} {row['precision']}",
            str(row["batch_size"]),
            shapes(row),
            format_value(step_ms(row)),
            spread(row),
            f"{format_value(row.get('throughput'))} {differing_unit(row, unit)}".rstrip(),
        )
        for row, task, is_first in zip(rows, tasks, changes, strict=True)
    ]
    heads = ("task", "model", "by", "batch", "size", "p50 ms", "95 %", unit)
    ends = [at - 1 for at, is_first in enumerate(changes) if is_first and at]
    return Table(columns(heads, (3, 4, 5, 6, 7)), cells, ends, intervals={6: 5})


def unsteady_lines(found: StoreOverview) -> Iterator[str]:
    """How much of what was measured last is of no use, and the newest of it."""
    if not found.unsteady_count:
        return
    yield phrase(
        "run.unsteady",
        unsteady_count=found.unsteady_count,
        series_count=format_count(found.series_count, "figure"),
    )
    for row in found.unsteady:
        quality = str(row.get("quality")).replace("_", " ")
        interval = spread(row, " ms")
        yield (
            f"  {case_name(row)} batch {row['batch_size']}: {format_value(step_ms(row))} ms"
            f"{f' {interval}' if interval else ''}, {quality}"
        )
    if (more := found.unsteady_count - len(found.unsteady)) > 0:
        yield phrase("run.more-unsteady", more=more)

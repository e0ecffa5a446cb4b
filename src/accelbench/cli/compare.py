"""`accelbench compare`: how many times as fast, along any axis, and what was not alike."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from accelbench.analysis.comparison import REFUSED
from accelbench.analysis.questions import AXES, Axis
from accelbench.cli.documents import print_document
from accelbench.cli.filters import filters_of
from accelbench.cli.lists import SpacedLists, words
from accelbench.cli.stored import NothingMeasuredError, filled, on_one_machine, rows_of
from accelbench.core.columns import ASKED
from accelbench.core.errors import UsageError

if TYPE_CHECKING:
    from accelbench.analysis.comparison import Compared
    from accelbench.analysis.machines import Machine

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)

_COLUMNS = (
    *ASKED,
    *("family", "run_id", "launch", "status", "provenance", "emulated", "started_at"),
    *("latency_p50_ms", "latency_mean_ms", "throughput", "throughput_unit", "memory_peak_mb"),
    *("weights_digest", "workarounds", "conditions"),
)


@app.command(cls=SpacedLists)
def compare(
    models: list[str] = typer.Argument(None, help="Only these models.", show_default=False),
    by: str = typer.Option("hardware", "--by", help=f"The axis: {', '.join(AXES)}."),
    baseline: str | None = typer.Option(
        None, "--baseline", help="What others are held against; of hardware else the CPU."
    ),
    hardware: list[str] = typer.Option([], "--hardware", help="Only these platforms."),
    framework: list[str] = typer.Option([], "--framework", "--runtime", help="Only these."),
    precision: list[str] = typer.Option([], "--precision", help="Only these precisions."),
    batch_sizes: list[str] = typer.Option([], "--batch-sizes", "--batch-size", help="Only these."),
    mode: list[str] = typer.Option([], "--mode", help="inference, training; else both."),
    run: list[str] = typer.Option([], "--run", help="Only these runs."),
    machine: str | None = typer.Option(
        None, "--machine", help="A host name, id or source; else that of the newest result."
    ),
    allow: list[str] = typer.Option(
        [], "--allow", help=f"Compare although not alike: {', '.join(REFUSED)}."
    ),
    output: Path | None = typer.Option(
        None, "--output", help="Write it as CSV to this file; one that exists is refused."
    ),
    as_json: bool = typer.Option(False, "--json", help="Print one JSON document."),
    db: Path | None = typer.Option(
        None, "--db", help="The database; else $ACCELBENCH_DB, else ./accelbench.duckdb."
    ),
    db_path: Path | None = typer.Option(None, "--db-path", hidden=True),
) -> None:
    """Compare stored results along an axis: times as fast as a baseline, memory, batch scaling.

    Compared is what was asked alike, on one machine; what differs is listed.
    """
    from accelbench.analysis.comparison import along_every_axis, compared

    axis = _axis(by)
    filters = filters_of(models, hardware, framework, precision, batch_sizes, mode)
    if run:
        filters["run_id"] = tuple(words(run))
    database = filled(db or db_path)
    where, values, chosen, others = on_one_machine(database, filters, machine)
    rows = rows_of(database, _COLUMNS, where, values)
    found = compared(rows, axis, baseline, _allowed(words(allow)))
    if not found:
        there = ", ".join(along_every_axis(rows)) or "none"
        raise NothingMeasuredError(
            f"Nothing on {chosen} was asked alike at two places of the axis {axis.name}.",
            f"Axes along which something was: {there}. Choose one with --by.",
        )
    if baseline is not None and all(one.baseline is None for lines in found for one in lines):
        places = {one.side.value for lines in found for one in lines}
        names = sorted(" ".join(str(part) for part in place if part) for place in places)
        raise UsageError(f"Nothing was measured at {baseline!r}.", f"There is: {', '.join(names)}.")
    _say(found, axis, chosen, others, output, as_json)


def _say(
    found: Sequence[Sequence[Compared]],
    axis: Axis,
    machine: Machine,
    others: Sequence[Machine],
    output: Path | None,
    as_json: bool,
) -> None:
    from accelbench.report.comparison import document, write_csv

    if output is not None:
        from accelbench.exchange.writing import write_exactly

        path = output.expanduser()
        write_exactly(path, lambda place: write_csv(place, found, axis))
        sys.stderr.write(f"Wrote {path}\n")
        if not as_json:
            return
    if as_json:
        said: dict[str, Any] = {
            "axis": axis.name,
            "machine": str(machine),
            "other_machines": [str(one) for one in others],
            "comparisons": document(found, axis),
        }
        print_document(said)
        return
    from accelbench.cli.display.compare import show

    show(found, axis, str(machine), [str(one) for one in others])


def _axis(name: str) -> Axis:
    if name not in AXES:
        raise UsageError(f"There is no axis named {name!r}.", f"Axes: {', '.join(AXES)}.")
    return AXES[name]


def _allowed(names: Sequence[str]) -> tuple[str, ...]:
    for name in names:
        if name not in REFUSED:
            raise UsageError(
                f"Nothing to allow is named {name!r}.", f"Known: {', '.join(REFUSED)}."
            )
    return tuple(names)

"""`accelbench compare`: how many times as fast, along any axis, and what was not alike."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from accelbench.analysis.comparison import REFUSED
from accelbench.analysis.pivot import SORTS
from accelbench.analysis.questions import AXES, ComparisonAxis, meant_by_column
from accelbench.cli.arguments.lists import SpacedLists
from accelbench.cli.display.dropped import distrusted, not_shown
from accelbench.cli.display.terminal import (
    complain,
    deliver,
    json_text,
    print_document,
    print_line,
    print_lines,
)
from accelbench.cli.display.words import other_machines
from accelbench.cli.services.opening import filled
from accelbench.core.columns import ASKED, OF_ACCURACY
from accelbench.core.devices import named_apart
from accelbench.core.errors import EXIT_CANNOT_TELL, UsageError
from accelbench.core.figures import TIMES
from accelbench.core.nouns import listed, meant, words
from accelbench.core.rows import Row
from accelbench.core.visible import in_quotes
from accelbench.exchange.prices import PRICES_HELP, prices_at
from accelbench.exchange.writing import refuse_suffix, refuse_taken, write_exactly
from accelbench.query.filters import filters_of
from accelbench.query.histories import histories_on
from accelbench.query.stored_results import on_one_machine, rows_of
from accelbench.query.suggestions import NothingMeasuredError, command_along

if TYPE_CHECKING:
    from accelbench.analysis.comparison import Compared
    from accelbench.analysis.run_noise import Histories
    from accelbench.exchange.prices import Prices
    from accelbench.store.database import Database

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)

_COLUMNS = (
    *ASKED,
    *(
        "family",
        "case_id",
        "arm",
        "series_key",
        "run_id",
        "launch",
        "status",
        "reason",
        "provenance",
        "emulated",
        "started_at",
    ),
    *TIMES,
    *("throughput_unit", "memory_peak_mb", "weights_digest", "workarounds", "conditions"),
    *("verification", "verification_error"),
    *OF_ACCURACY,
    *("device_fingerprint", "cost_usd", "energy_per_item_joules", "power_watts"),
)
#: The formats of files.
_FORMS = (".csv", ".json", ".md")
#: Places that are named where a baseline is none of them.
_NAMED = 20


@app.command(cls=SpacedLists)
def compare(
    models: list[str] = typer.Argument(None, help="Only these models.", show_default=False),
    by: str = typer.Option("hardware", "--by", help=f"The axis: {', '.join(AXES)}."),
    baseline: str | None = typer.Option(
        None, "--baseline", help="What others are compared with; of hardware else the CPU."
    ),
    hardware: list[str] = typer.Option([], "--hardware", help="Only these platforms."),
    framework: list[str] = typer.Option([], "--framework", "--runtime", help="Only these."),
    precision: list[str] = typer.Option([], "--precision", help="Only these precisions."),
    batch_sizes: list[str] = typer.Option([], "--batch-sizes", "--batch-size", help="Only these."),
    mode: list[str] = typer.Option([], "--mode", help="inference, training; else both."),
    run: list[str] = typer.Option([], "--run", help="Only these runs, by id or label, or `last`."),
    machine: str | None = typer.Option(
        None, "--machine", help="A host name, id or source; else that of the newest result."
    ),
    prices: Path | None = typer.Option(None, "--prices", help=PRICES_HELP),
    pivot: bool = typer.Option(
        False, "--pivot", help="One table of engine, precision and batch, the best marked."
    ),
    sort: str | None = typer.Option(
        None, "--sort", help=f"The lines of --pivot by: {', '.join(SORTS)}.", show_default="speed"
    ),
    allow: list[str] = typer.Option(
        [], "--allow", help=f"Compare although not alike: {', '.join(REFUSED)}."
    ),
    output: Path | None = typer.Option(
        None,
        "--output",
        "-o",
        help="Write it to this file, as CSV, JSON or Markdown by its suffix; one that exists is"
        " refused.",
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
    from accelbench.analysis.comparison import compared
    from accelbench.analysis.costs import with_costs

    refuse_suffix(output, _FORMS)
    refuse_taken(output)
    axis, given = _axis(by), prices_at(prices)
    _pivot_alone(pivot, sort, output)
    allowed = _allowed(words(allow))
    filters = filters_of(models, hardware, framework, precision, batch_sizes, mode)
    database = filled(db or db_path)
    with database.asking():
        if run:
            filters["run_id"] = _runs(database, words(run))
        held = _baseline(database, axis, baseline)
        where, values, chosen, others = on_one_machine(
            database, filters, machine, held if axis.name == "run" else ()
        )
        rows: Sequence[Row] = rows_of(database, _COLUMNS, where, values, launches=True)
        labels = _labels(database, rows, axis)
        known = histories_on(database, rows, chosen)
    names = [str(other) for other in others]
    if not pivot:  # prices go by a device's own name
        rows = with_costs(rows, given, dict.fromkeys((str(row["run_id"]) for row in rows), chosen))
    rows = named_apart(rows)
    if pivot:
        _say_pivot(rows, known, sort or SORTS[0], str(chosen), names, filters, as_json)
        return
    tables = compared(rows, axis, held, allowed, known=known)
    if not tables:
        nothing = _nothing_alike(database, rows, axis, str(chosen), names, filters)
        tables = _without_a_side(rows, axis, nothing, output)
    elif held and all(line.baseline is None for lines in tables for line in lines):
        places = {line.side.value for lines in tables for line in lines}
        names = sorted(" ".join(str(part) for part in place if part) for place in places)
        raise UsageError(
            f"Nothing was measured at {in_quotes(baseline)}.",
            f"There is: {listed(names, _NAMED)}.",
        )
    shown = [line.side.row for lines in tables for line in lines]
    dropped = [*not_shown(filters, rows, shown), *distrusted(rows)]
    about = {"axis": axis.name, "machine": str(chosen), "other_machines": names, "labels": labels}
    about["not_shown"] = dropped
    _say(tables, axis, about, given, output, as_json)
    _end_without_ratios(tables, written=output is not None)


def _end_without_ratios(tables: Sequence[Sequence[Compared]], *, written: bool) -> None:
    """Exit as inconclusive if no side was compared with its baseline.

    Args:
        tables: what is shown.
        written: to a file, which is of use to `check` even if it has one side alone.
    """
    every = [line for lines in tables for line in lines]
    if any(line.ratio is not None for line in every):
        return
    reasons = list(dict.fromkeys(line.refused for line in every if line.refused))
    if reasons:
        complain(f"Nothing was compared: {listed(reasons, between='; ')}.")
    if reasons or not written:
        raise typer.Exit(EXIT_CANNOT_TELL)


def _nothing_alike(
    database: Database,
    rows: Sequence[Mapping[str, Any]],
    axis: ComparisonAxis,
    machine: str,
    others: Sequence[str],
    filters: Mapping[str, Sequence[Any]],
) -> NothingMeasuredError:
    from accelbench.analysis.comparison import axes_with_answers

    axes = ", ".join(axes_with_answers(rows))
    along = f"Axes along which something was: {axes}. Choose one with --by."
    advice = [along if axes else "Nor was anything along another axis."]
    if command := command_along(database, axis.name, rows, filters):
        advice.append(f"To measure it: `{command}`.")
    advice += [*distrusted(rows), *other_machines(others)]
    return NothingMeasuredError(
        f"Nothing on {machine} was measured alike at two values of the axis {axis.name}.",
        " ".join(advice),
    )


def _without_a_side(
    rows: Sequence[Mapping[str, Any]],
    axis: ComparisonAxis,
    nothing: NothingMeasuredError,
    output: Path | None,
) -> list[list[Compared]]:
    """What a file holds all the same where there is nothing to compare figures with."""
    from accelbench.analysis.summary import single

    tables = [] if output is None else single(rows, axis)
    if not tables:
        raise nothing
    complain(f"{nothing.message} The figures are written without a baseline.")
    return tables


def _runs(database: Database, named: Sequence[str]) -> tuple[str, ...]:
    from accelbench.query.run_names import runs_meant

    return tuple(dict.fromkeys(run for word in named for run in runs_meant(database, word)))


def _baseline(database: Database, axis: ComparisonAxis, word: str | None) -> tuple[str, ...]:
    """The words for a place; of runs the ids that one stands for, of which the newest counts."""
    if word is None:
        return ()
    return _runs(database, [word]) if axis.name == "run" else (word,)


def _labels(
    database: Database, rows: Sequence[Mapping[str, Any]], axis: ComparisonAxis
) -> dict[str, str]:
    """What the runs are called that stand side by side."""
    if axis.name != "run":
        return {}
    from accelbench.query.run_names import labels_in

    return labels_in(database, (str(row["run_id"]) for row in rows if row["run_id"]))


def _say(
    tables: Sequence[Sequence[Compared]],
    axis: ComparisonAxis,
    about: Mapping[str, Any],
    prices: Prices | None,
    output: Path | None,
    as_json: bool,
) -> None:
    from accelbench.cli.display.compare import markdown_text, show
    from accelbench.report.comparison import document, write_csv

    names, others, labels = about["machine"], about["other_machines"], about["labels"]
    if output is not None:
        path, form = output.expanduser(), output.suffix.lower()
        if form == ".csv":
            write_exactly(path, lambda place: write_csv(place, tables, axis, prices))
            print_line(f"Wrote {path}", sys.stderr)
        elif form == ".json":
            deliver(json_text({**about, "comparisons": document(tables, axis, prices)}), path)
        else:
            notes = about["not_shown"]
            deliver(markdown_text(tables, axis, names, others, labels, prices, notes), path)
        if not as_json:
            return
    if as_json:
        print_document({**about, "comparisons": document(tables, axis, prices)})
        return
    show(tables, axis, names, others, labels=labels, prices=prices)
    print_lines(about["not_shown"])


def _pivot_alone(pivot: bool, sort: str | None, output: Path | None) -> None:
    """Refuse what does not go together."""
    if sort is not None and not pivot:
        raise UsageError("--sort orders the lines of --pivot.", "Add --pivot, or leave it out.")
    if sort is not None and sort not in SORTS:
        raise UsageError(
            f"Nothing to sort by is named {in_quotes(sort)}.", f"Known: {', '.join(SORTS)}."
        )
    if pivot and output is not None:
        raise UsageError("--pivot is not written to a file.", "Use --json, or leave out --output.")


def _say_pivot(
    rows: Sequence[Mapping[str, Any]],
    known: Histories,
    sort: str,
    machine: str,
    others: Sequence[str],
    filters: Mapping[str, Sequence[Any]],
    as_json: bool,
) -> None:
    from accelbench.analysis.pivot import pivots

    tables = pivots(rows, known, sort)
    if not tables:
        raise NothingMeasuredError(
            f"Nothing on {machine} was measured by two engines, precisions or batches.",
            " ".join([*distrusted(rows), *other_machines(others)]),
        )
    sides = (side for pivot in tables for line in pivot.lines for side in line.cells.values())
    shown = [row for side in sides for row in side.rows]
    dropped = [*not_shown(filters, rows, shown), *distrusted(rows)]
    if as_json:
        from accelbench.report.pivot import document

        about = {"machine": machine, "other_machines": others, "not_shown": dropped}
        print_document({**about, "pivots": document(tables)})
        return
    from accelbench.cli.display.pivot import show

    show(tables, machine, others)
    print_lines(dropped)


def _axis(name: str) -> ComparisonAxis:
    if name not in AXES:
        advice = meant_by_column(name) or meant(name, AXES, "Axes")
        raise UsageError(f"There is no axis named {in_quotes(name)}.", advice)
    return AXES[name]


def _allowed(names: Sequence[str]) -> tuple[str, ...]:
    for name in names:
        if name not in REFUSED:
            raise UsageError(
                f"Nothing to allow is named {in_quotes(name)}.", f"Known: {', '.join(REFUSED)}."
            )
    return tuple(names)

"""`accelbench compare`: how many times as fast, along any axis, and what was not alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from accelbench.cli.arguments.shared_options import (
    AS_JSON,
    DB,
    FILTERS,
    MACHINE,
    RUN,
    SpacedLists,
    allowed,
    parameters_of,
    with_filters,
)
from accelbench.cli.services.opening import filled
from accelbench.core.columns import ACCURACY_COLUMN_NAMES, CONFIGURATION_COLUMNS
from accelbench.core.devices import disambiguate_devices
from accelbench.core.errors import EXIT_INCONCLUSIVE, UsageError
from accelbench.core.formatting import join_first, split_words, suggest
from accelbench.core.result_statistics import TIME_COLUMNS
from accelbench.core.safe_text import in_quotes
from accelbench.exchange.prices import PRICES_HELP, load_prices
from accelbench.exchange.writing import refuse_suffix, refuse_taken
from accelbench.judge.compared_rows import rows_to_compare
from accelbench.judge.comparison import REFUSED
from accelbench.judge.filters import Filters
from accelbench.judge.pivot import SORTS
from accelbench.judge.questions import AXES, ComparisonAxis, meant_by_column
from accelbench.judge.suggestions import NothingMeasuredError, command_along
from accelbench.present.terminal.documents import SUFFIXES, present
from accelbench.present.terminal.dropped import distrusted, not_shown
from accelbench.present.terminal.terminal import complain
from accelbench.present.terminal.words import other_machines

if TYPE_CHECKING:
    from accelbench.judge.comparison import Compared
    from accelbench.judge.run_noise import Histories
    from accelbench.present.document import Document
    from accelbench.store.database import Database

_, option = parameters_of("compare")
app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)

_COLUMNS = (
    *CONFIGURATION_COLUMNS,
    *("family", "case_id", "arm", "series_key", "run_id", "launch", "status", "reason"),
    *("provenance", "emulated", "started_at"),
    *TIME_COLUMNS,
    *("throughput_unit", "memory_peak_mb", "weights_digest", "workarounds", "conditions"),
    *("verification", "verification_error"),
    *ACCURACY_COLUMN_NAMES,
    *("device_fingerprint", "cost_usd", "energy_per_item_joules", "power_watts"),
)
#: Places that are named where a baseline is none of them.
_NAMED = 20


@app.command(cls=SpacedLists)
@with_filters
def compare(
    filters: Filters = FILTERS,
    by: str = typer.Option("hardware", "--by", help=f"The axis: {', '.join(AXES)}."),
    baseline: str | None = option(None, "--baseline"),
    run: list[str] = RUN,
    machine: str | None = MACHINE,
    prices: Path | None = typer.Option(None, "--prices", help=PRICES_HELP),
    pivot: bool = option(False, "--pivot"),
    sort: str | None = typer.Option(
        None, "--sort", help=f"The lines of --pivot by: {', '.join(SORTS)}.", show_default="speed"
    ),
    allow: list[str] = typer.Option(
        [], "--allow", help=f"Compare although not alike: {', '.join(REFUSED)}."
    ),
    output: Path | None = option(None, "--output", "-o"),
    as_json: bool = AS_JSON,
    db: Path | None = DB,
) -> None:
    """Compare stored results along an axis: times as fast as a baseline, memory, batch scaling.

    Compared is what was asked alike, on one machine; what differs is listed.
    """
    from accelbench.judge.comparison import compared
    from accelbench.judge.costs import with_costs
    from accelbench.present.terminal.compare import comparison

    refuse_suffix(output, SUFFIXES)
    refuse_taken(output)
    axis, given = _axis(by), load_prices(prices)
    _refuse_sort(sort, pivot)
    allowing = allowed(split_words(allow), REFUSED)
    database = filled(db)
    with database.keep_open():
        found = rows_to_compare(
            database,
            filters,
            columns=_COLUMNS,
            axis=axis.name,
            baseline=baseline,
            runs=split_words(run),
            machine=machine,
        )
        rows, held, chosen, known = found.rows, found.baseline, found.machine, found.known
        labels = _labels(database, rows, axis)
    filters = found.filters
    names = [str(other) for other in found.others]
    if not pivot:  # prices go by a device's own name
        rows = with_costs(rows, given, dict.fromkeys((str(row["run_id"]) for row in rows), chosen))
    rows = disambiguate_devices(rows)
    if pivot:
        document = _pivoted(rows, known, sort or SORTS[0], str(chosen), names, filters)
        present(document, output, as_json)
        return
    tables = compared(rows, axis, held, allowing, known=known)
    if not tables:
        nothing = _nothing_alike(database, rows, axis, str(chosen), names, filters)
        tables = _without_a_side(rows, axis, nothing, output)
    elif held and all(line.baseline is None for lines in tables for line in lines):
        places = {line.side.value for lines in tables for line in lines}
        names = sorted(" ".join(str(part) for part in place if part) for place in places)
        raise UsageError(
            f"Nothing was measured at {in_quotes(baseline)}.",
            f"There is: {join_first(names, _NAMED)}.",
        )
    shown = [line.side.row for lines in tables for line in lines]
    dropped = [*not_shown(filters, rows, shown), *distrusted(rows)]
    about = {"axis": axis.name, "machine": str(chosen), "other_machines": names, "labels": labels}
    about["not_shown"] = dropped
    present(comparison(tables, axis, about, given), output, as_json)
    _end_without_ratios(tables, written=output is not None)


def _end_without_ratios(tables: Sequence[Sequence[Compared]], *, written: bool) -> None:
    """Exit as inconclusive if no side was compared with its baseline."""
    every = [line for lines in tables for line in lines]
    if any(line.ratio is not None for line in every):
        return
    reasons = list(dict.fromkeys(line.refused for line in every if line.refused))
    if reasons:
        complain(f"Nothing was compared: {join_first(reasons, separator='; ')}.")
    if reasons or not written:
        raise typer.Exit(EXIT_INCONCLUSIVE)


def _nothing_alike(
    database: Database,
    rows: Sequence[Mapping[str, Any]],
    axis: ComparisonAxis,
    machine: str,
    others: Sequence[str],
    filters: Mapping[str, Sequence[Any]],
) -> NothingMeasuredError:
    from accelbench.judge.comparison import axes_with_answers

    axes = axes_with_answers(rows)
    along = f"They differ in {', '.join(axes)}: name one with --by." if axes else ""
    advice = [along] if along else []
    if command := command_along(database, axis.name, rows, filters):
        advice.append(f"To measure it: `{command}`.")
    advice += [*distrusted(rows), *other_machines(others)]
    return NothingMeasuredError(
        f"No configuration on {machine} has results at two values of {axis.name}.", " ".join(advice)
    )


def _without_a_side(
    rows: Sequence[Mapping[str, Any]],
    axis: ComparisonAxis,
    nothing: NothingMeasuredError,
    output: Path | None,
) -> list[list[Compared]]:
    """What a file holds all the same where there is nothing to compare figures with."""
    from accelbench.judge.summary import single

    tables = [] if output is None else single(rows, axis)
    if not tables:
        raise nothing
    complain(f"{nothing.message} The figures are written without a baseline.")
    return tables


def _labels(
    database: Database, rows: Sequence[Mapping[str, Any]], axis: ComparisonAxis
) -> dict[str, str]:
    if axis.name != "run":
        return {}
    from accelbench.judge.run_names import labels_in

    return labels_in(database, (str(row["run_id"]) for row in rows if row["run_id"]))


def _refuse_sort(sort: str | None, pivot: bool) -> None:
    if sort is not None and not pivot:
        raise UsageError("--sort orders the lines of --pivot.", "Add --pivot, or leave it out.")
    if sort is not None and sort not in SORTS:
        raise UsageError(
            f"Nothing to sort by is named {in_quotes(sort)}.", f"Known: {', '.join(SORTS)}."
        )


def _pivoted(
    rows: Sequence[Mapping[str, Any]],
    known: Histories,
    sort: str,
    machine: str,
    others: Sequence[str],
    filters: Mapping[str, Sequence[Any]],
) -> Document:
    from accelbench.judge.pivot import pivots
    from accelbench.present.terminal.pivot import pivoted

    tables = pivots(rows, known, sort)
    if not tables:
        raise NothingMeasuredError(
            f"Nothing on {machine} was measured by two engines, precisions or batches.",
            " ".join([*distrusted(rows), *other_machines(others)]),
        )
    sides = (side for pivot in tables for line in pivot.lines for side in line.cells.values())
    shown = [row for side in sides for row in side.rows]
    dropped = [*not_shown(filters, rows, shown), *distrusted(rows)]
    return pivoted(tables, {"machine": machine, "other_machines": others, "not_shown": dropped})


def _axis(name: str) -> ComparisonAxis:
    if name not in AXES:
        advice = meant_by_column(name) or suggest(name, AXES, "Axes")
        raise UsageError(f"There is no axis named {in_quotes(name)}.", advice)
    return AXES[name]

"""`accelbench report`: everything that is known of some results in one file."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from accelbench.cli.arguments.shared_options import (
    DB,
    FILTERS,
    MACHINE,
    RUN,
    SpacedLists,
    parameters_of,
    with_filters,
)
from accelbench.cli.services.opening import collected_later
from accelbench.cli.services.report_files import write
from accelbench.core.errors import UsageError
from accelbench.core.safe_text import in_quotes
from accelbench.exchange.prices import PRICES_HELP, load_prices
from accelbench.judge.filters import Filters
from accelbench.present.terminal.dropped import not_measured
from accelbench.present.terminal.terminal import complain, print_line, print_lines

if TYPE_CHECKING:
    from accelbench.present.report_parts import ReportData

_, option = parameters_of("report")
app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)

_SUFFIXES = {"html": ".html", "markdown": ".md"}


@app.command(cls=SpacedLists)
@with_filters
def report(
    filters: Filters = FILTERS,
    output: Path | None = option(None, "--output", "-o"),
    form: str | None = option(None, "--format"),
    title: str = typer.Option("accelbench report", "--title", help="Its heading."),
    json_path: list[Path] = option([], "--json-path"),
    input_dir: Path | None = option(None, "--input-dir"),
    run: list[str] = RUN,
    machine: str | None = MACHINE,
    prices: Path | None = typer.Option(None, "--prices", help=PRICES_HELP),
    db: Path | None = DB,
) -> None:
    """Write a report: summary, tables, charts, matrix, verification, environment, methods."""
    from accelbench.cli.commands.plot import files_in
    from accelbench.cli.services.opening import filled
    from accelbench.core.formatting import split_words
    from accelbench.exchange.writing import refuse_taken
    from accelbench.judge.costs import nothing_priced
    from accelbench.judge.run_names import only_ids, only_runs
    from accelbench.present.report_data import known_in, known_of
    from accelbench.present.report_parts import report as made

    if (json_path or input_dir) and db:
        raise UsageError("A report is of files or of a database.", "Leave out one of them.")
    form = _form(form, output)
    path = (output or Path(f"report{_SUFFIXES[form]}")).expanduser()
    refuse_taken(path)
    files = [*json_path, *files_in(input_dir)]
    given = load_prices(prices)
    with collected_later():
        if files:
            known: ReportData = known_of(files, filters | only_ids(split_words(run)), given)
        else:
            database = filled(db)
            known = known_in(
                database, filters | only_runs(database, split_words(run)), machine, given
            )
        for sentence in nothing_priced(known.subject.rows, given):
            complain(sentence)
        written = write(path, made(known, title), form)
    print_lines(map(str, written))
    for sentence in not_measured(filters, known.subject.rows):
        print_line(sentence, sys.stderr)


def _form(option: str | None, output: Path | None) -> str:
    by_suffix = {".html": "html", ".htm": "html", ".md": "markdown"}
    suffix = output.suffix.lower() if output else ".html"
    if output and (not output.name.strip("-") or (suffix not in by_suffix and not option)):
        raise UsageError(f"{output} is no name of a report.", "Reports end with .html or .md.")
    form = (option or by_suffix[suffix]).lower()
    form = {"md": "markdown"}.get(form, form)
    if form not in _SUFFIXES:
        raise UsageError(
            f"There is no format {in_quotes(option)}.", f"Formats: {', '.join(_SUFFIXES)}."
        )
    return form

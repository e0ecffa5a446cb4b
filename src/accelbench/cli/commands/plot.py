"""`accelbench plot`: charts of stored results or of result files, as files."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
from accelbench.cli.services.report_files import FORMATS, drawn_into
from accelbench.core.errors import UsageError
from accelbench.core.formatting import split_words, suggest
from accelbench.core.safe_text import in_quotes
from accelbench.exchange.prices import PRICES_HELP, load_prices
from accelbench.exchange.writing import refuse_taken
from accelbench.judge.filters import Filters, filters_of
from accelbench.present.terminal.dropped import not_measured
from accelbench.present.terminal.terminal import complain, print_document, print_line, print_lines

if TYPE_CHECKING:
    from accelbench.exchange.prices import Prices
    from accelbench.present.charts.chart import Chart, Subject

_, option = parameters_of("plot")
app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)

_FOLDER = Path("visualizations")
#: Of more charts it is not said in one line what they need.
_MOST_NEEDS = 3


@app.command(cls=SpacedLists)
@with_filters
def plot(
    filters: Filters = FILTERS,
    chart: list[str] = option([], "--chart"),
    architecture_comparison: bool = option(False, "--architecture-comparison"),
    form: list[str] = option([], "--format"),
    output: Path | None = option(None, "--output", "-o"),
    output_dir: Path | None = typer.Option(
        None, "--output-dir", help=f"The folder for the files; else {_FOLDER}."
    ),
    json_path: list[Path] = option([], "--json-path"),
    input_dir: Path | None = option(None, "--input-dir"),
    model_id: list[str] = typer.Option([], "--model-id", "--model", hidden=True),
    run: list[str] = RUN,
    machine: str | None = MACHINE,
    prices: Path | None = typer.Option(None, "--prices", help=PRICES_HELP),
    as_json: bool = typer.Option(False, "--json", help="Print the files' names as JSON."),
    db: Path | None = DB,
) -> None:
    """Draw charts: platforms, batches, precisions, engines, distributions, trends and more."""
    from accelbench.judge.costs import nothing_priced

    names = split_words(chart)
    if names == ("list",):
        _list()
        return
    chosen = _charts([*names, *(["architecture"] if architecture_comparison else [])])
    wanted = _wanted(output, output_dir, _forms(split_words(form)), chosen)
    if model_id:
        filters |= {"model": (*filters.get("model", ()), *filters_of(model_id)["model"])}
    if (json_path or input_dir) and db:
        raise UsageError("Charts are of files or of a database.", "Leave out one of them.")
    files = [*json_path, *files_in(input_dir)]
    subject = _subject(files, split_words(run), filters, machine, load_prices(prices), db)
    for sentence in nothing_priced(subject.rows, subject.prices):
        complain(sentence)
    dropped = not_measured(filters, subject.rows)
    written, empty = drawn_into(wanted.folder, subject, chosen, wanted.forms, wanted.name)
    if as_json:
        left_out = {"nothing_to_show": empty, "not_shown": dropped}
        print_document({"files": [str(path) for path in written], **left_out})
        return
    if not written:
        raise _nothing(subject, empty, chosen)
    print_lines(map(str, written))
    for sentence in dropped:
        print_line(sentence, sys.stderr)
    if empty:
        few = _needs(empty, chosen) if len(empty) <= _MOST_NEEDS else f"{', '.join(empty)}."
        print_line(f"Nothing to show: {few}", sys.stderr)


@dataclass(frozen=True)
class _Wanted:
    """Where files go and in which forms; of a single file its name."""

    folder: Path
    forms: Sequence[str]
    name: str | None = None


def _wanted(
    output: Path | None, folder: Path | None, forms: Sequence[str], charts: Mapping[str, Chart]
) -> _Wanted:
    """What is asked for: the suffix of --output says its format, and without one it is a folder."""
    if output is not None and folder is not None:
        raise UsageError("--output and --output-dir both say where.", "Leave out one of them.")
    place = (output or folder or _FOLDER).expanduser()
    form = place.suffix.lower().removeprefix(".")
    if output is None or form not in FORMATS or place.is_dir():
        return _Wanted(place, forms or FORMATS[:1])
    if len(charts) != 1:
        raise UsageError(
            f"{output} is one file, and {len(charts)} charts are asked for.",
            "Name one with --chart, or a folder.",
        )
    if set(forms) - {form}:
        raise UsageError(f"{output} is no {forms[0]}.", "Leave out --format.")
    refuse_taken(place)
    return _Wanted(place.parent, (form,), place.name)


def _nothing(subject: Subject, names: Sequence[str], charts: Mapping[str, Chart]) -> Exception:
    from accelbench.judge.suggestions import NothingMeasuredError

    if not subject.points:
        return NothingMeasuredError(
            "There is nothing to draw: no result of what was asked for has a figure."
        )
    few = _needs(names, charts) if len(names) <= _MOST_NEEDS else ""
    advice = f"{few} accelbench plot --chart list says what each chart needs."
    return UsageError("There is nothing to draw.", advice.strip())


def _subject(
    files: Sequence[Path],
    runs: Sequence[str],
    filters: Filters,
    machine: str | None,
    prices: Prices | None,
    db: Path | None,
) -> Subject:
    from accelbench.cli.services.opening import filled_if_any
    from accelbench.judge.run_names import only_ids, only_runs
    from accelbench.judge.suggestions import NothingMeasuredError
    from accelbench.present.chart_data import calibrations_alone, subject_in, subject_of

    if files:
        return subject_of(files, filters | only_ids(runs), prices)
    database = filled_if_any(db, filters)
    asked = filters | only_runs(database, runs)
    try:
        return subject_in(database, asked, machine, prices)
    except NothingMeasuredError:
        if asked or machine or (alone := calibrations_alone(database)) is None:
            raise
        return alone


def files_in(folder: Path | None) -> list[Path]:
    """Result files of a folder and below."""
    if folder is None:
        return []
    place = folder.expanduser()
    # What `run --output-dir` derives from results is of the same results again.
    files = [
        path
        for path in sorted(place.rglob("*.json"))
        if not {"processed_results", "profiles"} & set(path.relative_to(place).parts)
    ]
    if not files:
        raise UsageError(f"There are no result files in {folder}.")
    return files


def _charts(names: Sequence[str]) -> Mapping[str, Chart]:
    from accelbench.present.charts import CHARTS

    for name in names:
        if name not in CHARTS:
            raise UsageError(
                f"There is no chart {in_quotes(name)}.",
                suggest(name, CHARTS, "Charts", similarity=0.6),
            )
    return {name: CHARTS[name] for name in dict.fromkeys(names)} or CHARTS


def _forms(names: Sequence[str]) -> Sequence[str]:
    for name in names:
        if name not in FORMATS:
            raise UsageError(
                f"There is no format {in_quotes(name)}.", f"Formats: {', '.join(FORMATS)}."
            )
    return list(dict.fromkeys(names))


def _needs(names: Sequence[str], charts: Mapping[str, Chart]) -> str:
    return "; ".join(f"{name} needs {charts[name].needs}" for name in names) + "."


def _list() -> None:
    from accelbench.present.charts import CHARTS

    for name, chart in CHARTS.items():
        print_line(f"{name:22} {chart.answers}; needs {chart.needs}")

"""`accelbench matrix`: what each platform of a machine is worth for each model, and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from accelbench.cli.arguments.shared_options import (
    AS_JSON,
    DB,
    HARDWARE,
    SpacedLists,
    parameters_of,
)
from accelbench.cli.services.opening import filled_if_any
from accelbench.core.errors import UsageError
from accelbench.core.facts import utc_now
from accelbench.core.formatting import split_words
from accelbench.core.result_statistics import STEP_COLUMNS
from accelbench.core.safe_text import in_quotes
from accelbench.core.unusable_reasons import REASON_COLUMNS
from accelbench.exchange.writing import refuse_suffix, refuse_taken
from accelbench.hardware.detect import stored_platforms
from accelbench.judge.attempts import QUESTION
from accelbench.judge.filters import Filters, by_word, filters_of, marks, where_of, words_of
from accelbench.judge.stored_results import of_machine, rows_of, runs_to_judge
from accelbench.judge.suggestions import refuse_unknown
from accelbench.present.terminal.terminal import deliver, json_text

if TYPE_CHECKING:
    from accelbench.judge.matrix import Matrix
    from accelbench.present.matrix import MatrixHeader
    from accelbench.store.database import Database

argument, option = parameters_of("matrix")
app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)

#: What a matrix is made of: reading all columns of a hundred thousand results takes 20 s.
_COLUMNS = tuple(dict.fromkeys((
    *QUESTION, "family", "hardware", "runtime", "device", "options", "status", "reason", "message",
    "device_fingerprint",
    "advice", "verification", "verification_error", "nulls", "workarounds", "throughput",
    "emulated", "provenance", "arm", "run_id", "launch", "result_id", "started_at", "sample_count",
    "effective_sample_count", *REASON_COLUMNS, "throughput_unit", "latency_std_ms", *STEP_COLUMNS,
)))  # fmt: skip
_EMPTY = dict.fromkeys(_COLUMNS)
#: Results of one machine that a matrix is made of.
_MOST = 500_000
_FORMATS = ("table", "json", "markdown", "html")
_SUFFIXES = {".json": "json", ".md": "markdown", ".markdown": "markdown", ".html": "html"}
_SUFFIXES[".txt"] = "table"


@app.command(cls=SpacedLists)
def matrix(
    models: list[str] = argument(None, metavar="MODEL", show_default=False),
    family: list[str] = typer.Option([], "--family", help="Only these families."),
    hardware: list[str] = HARDWARE,
    precision: str | None = option(None, "--precision"),
    mode: str = typer.Option("inference", "--mode", help="Of inference or training."),
    machine: str | None = option(None, "--machine"),
    explain: bool = typer.Option(False, "--explain", help="The rule and every cell's reason."),
    page: int | None = option(None, "--page", min=1),
    as_json: bool = AS_JSON,
    form: str | None = option(None, "--format"),
    output: Path | None = option(None, "--output", "-o"),
    db: Path | None = DB,
    named: list[str] = typer.Option([], "--models", "--model", "--model-id", hidden=True),
) -> None:
    """Show High, Medium, Low or N/A for each model and family on each platform, and why.

    Ratings come from stored results: verification, and speed against that machine's CPU.
    """
    form = _form(form, output, as_json)
    refuse_taken(output)
    if page is not None and (form != "table" or output is not None):
        raise UsageError("--page is of the table in a terminal.", "Leave it out: the rest has all.")
    filters = _filters([*(models or []), *named], split_words(family), precision, mode)
    platforms = (platform for name in split_words(hardware) for platform in stored_platforms(name))
    only = tuple(dict.fromkeys(platforms))
    made, about = _made(filled_if_any(db, filters), filters, machine, only)
    if output is None and form == "table":
        from accelbench.present.matrix import presented
        from accelbench.present.terminal.documents import show

        _refuse_beyond(page or 1, len(made.models))
        show(presented(made, about, explain=explain, page=page or 1))
        return
    deliver(_spelled(made, about, form, explain), output)


def _spelt(moment: str | None) -> str | None:
    if not moment:
        return None
    whole, _, part = moment.partition(".")
    return f"{whole.replace(' ', 'T')}.{part:0<6}Z"


def _form(option: str | None, output: Path | None, as_json: bool) -> str:
    """The form: what is named, else what the file's suffix says, else a table."""
    if as_json and option not in (None, "json"):
        raise UsageError(f"--json and --format {option} contradict each other.", "Leave one out.")
    if output is not None and output.suffix and option is None and not as_json:
        refuse_suffix(output, tuple(_SUFFIXES))
    by_suffix = None if output is None else _SUFFIXES.get(output.suffix.lower())
    form = "json" if as_json else (option or by_suffix or "table").lower()
    if form not in _FORMATS:
        raise UsageError(
            f"There is no format {in_quotes(option)}.", f"Formats: {', '.join(_FORMATS)}."
        )
    return form


def _refuse_beyond(page: int, models: int) -> None:
    from accelbench.present.matrix import PAGE

    pages = max(-(-models // PAGE), 1)
    if page > pages:
        raise UsageError(f"There is no page {page}: there are {pages}.", f"Use 1 to {pages}.")


def _filters(
    models: Sequence[str], families: Sequence[str], precision: str | None, mode: str
) -> Filters:
    from accelbench.cli.arguments.resolved_values import modes

    of_mode = tuple(kind.value for kind in modes([mode], training=False))
    if len(of_mode) > 1:
        raise UsageError("A matrix is of one mode.", "Use --mode inference or --mode training.")
    filters = filters_of(models, precisions=[precision] if precision else (), modes=of_mode)
    if len(by_word("precision", filters.get("precision", ()))) > 1:
        raise UsageError("A matrix is of one precision.", "Name one with --precision.")
    if families:
        filters["family"] = tuple(name.replace("-", "_").lower() for name in families)
    return filters


def _made(
    database: Database, filters: Filters, machine_name: str | None, only: Sequence[str]
) -> tuple[Matrix, MatrixHeader]:
    from accelbench.judge.machine_matrix import LocalPlatforms, matrix_on
    from accelbench.present.matrix import MatrixHeader

    refuse_unknown(database, {"hardware": only})
    where, values = where_of(filters)
    runs = runs_to_judge(database, filters, where, values)
    machine, ours, others = of_machine(runs, machine_name)
    where += f" AND coalesce(run_id, '') IN ({marks(ours)})"
    given = [*values, *ours]
    columns = _columns(database, where, given)
    raw_rows = rows_of(database, columns, where, given, most=_MOST, launches=True)
    rows = [{**_EMPTY, **row, "started_at": _spelt(row["started_at"])} for row in raw_rows]
    made = matrix_on(
        rows, machine, LocalPlatforms(), only, best_precision="precision" not in filters
    )
    precision = _spelt_there(rows, filters) if "precision" in filters else None
    return made, MatrixHeader(utc_now(), machine, precision, words_of(filters, "mode")[0], others)


def _spelt_there(rows: Sequence[Mapping[str, Any]], filters: Filters) -> str:
    precisions = sorted({str(row["precision"]) for row in rows})
    return " and ".join(precisions) or next(
        iter(by_word("precision", words_of(filters, "precision")))
    )


def _columns(database: Database, where: str, values: Sequence[Any]) -> Sequence[str]:
    """Software tells runs of ours apart; of imports each result has its own, which nothing asks."""
    ours = f"SELECT 1 FROM benchmark_results WHERE {where} AND provenance = 'measured' LIMIT 1"  # noqa: S608
    return [*_COLUMNS, "conditions"] if database.query(ours, values)[1] else _COLUMNS


def _spelled(made: Matrix, about: MatrixHeader, form: str, explain: bool) -> str:
    from accelbench.present import matrix as pages

    if form == "html":
        from accelbench.present.pages.document_page import as_html

        return as_html(pages.presented(made, about, opens=True))
    if form == "json":
        return json_text(pages.document(made, about))
    if form == "markdown":
        from accelbench.present.markdown import as_markdown

        return as_markdown(pages.presented(made, about, explain=True))
    import io

    from accelbench.present.terminal.documents import show

    text = io.StringIO()
    show(pages.presented(made, about, explain=explain), text, width=80)
    return text.getvalue()

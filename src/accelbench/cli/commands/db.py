"""`accelbench db`: make, look into, query, export and merge databases."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from accelbench.cli.arguments.shared_options import NamedCommands, SpacedLists
from accelbench.cli.services.opening import advised, refuse_but_one
from accelbench.cli.services.report_files import (
    TRACKER_NAMES,
    of_interest,
    selected,
    stored,
    to_tracker,
    told_runs,
)
from accelbench.core.errors import EXIT_NO, UsageError
from accelbench.core.formatting import format_count
from accelbench.exchange.imports.reading import IMPORT_FORMATS, locate_conflict, read_import
from accelbench.exchange.writing import refuse_taken
from accelbench.present.document import Document, Facts
from accelbench.present.table_export import (
    ENTRIES,
    FORMATS,
    TABLES,
    Entries,
    export_report,
    export_table,
    format_for,
    write_lines,
    wrote,
)
from accelbench.present.terminal.documents import show
from accelbench.present.terminal.store_status import (
    ImportSummary,
    brought,
    machines_of,
    samples_left,
    status_lines,
    told,
)
from accelbench.present.terminal.tables import answer_document, apart, jsonable
from accelbench.present.terminal.terminal import complain, print_json, print_line, print_lines
from accelbench.present.texts import phrase
from accelbench.store.database import Database
from accelbench.store.files import NotWritableError
from accelbench.store.lake import Lake
from accelbench.store.merge_validation import ConflictError
from accelbench.store.opening import open_store
from accelbench.store.places import parse_place

app = typer.Typer(
    cls=NamedCommands,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    help="Make, look into, export and merge databases.",
    context_settings={"help_option_names": ["-h", "--help"]},
)

_DB_HELP = "The database; else $ACCELBENCH_DB, else ./accelbench.duckdb."
DbOption = Annotated[Path | None, typer.Option("--db", help=_DB_HELP)]
JsonOption = Annotated[bool, typer.Option("--json", help="One JSON document on standard output.")]


@app.command()
def init(
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Start anew; the old database is kept as a backup.")
    ] = False,
    db: DbOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make an empty database. One of ours that is there already stays."""
    database = open_store(db)
    exists = database.is_created
    backup = database.init(overwrite=overwrite)
    made = backup is not None or not exists
    if as_json:
        print_json(
            {"database": database.name, "made": made, "backup": str(backup) if backup else None}
        )
        return
    print_line(f"Made {database.name}" if made else f"{database.name} is there already; it stays.")
    if backup:
        print_line(f"The old one is kept as {backup}")


@app.command()
def status(db: DbOption = None, as_json: JsonOption = False) -> None:
    """Show what the database holds."""
    database = open_store(db)
    _fill(database)
    summary = {**database.status(), "machines": machines_of(database)}
    if as_json:
        print_json(summary)
        return
    show(Document("", [Facts(status_lines(summary))]))


@app.command()
def sql(
    query: Annotated[str, typer.Argument(help="SQL that reads; e.g. FROM benchmark_results.")],
    db: DbOption = None,
    as_json: JsonOption = False,
    as_csv: Annotated[
        bool, typer.Option("--csv", help="CSV on standard output, empty where nothing is known.")
    ] = False,
) -> None:
    """Ask the database in SQL. It reads this database and nothing else.

    As JSON, rows are records: objects with a value by each column's name.
    """
    if as_json and as_csv:
        raise UsageError("--json and --csv contradict each other.", "Leave one out.")
    refuse_but_one(query)
    database = open_store(db)
    _fill(database)
    try:
        columns, rows = database.query(query, sealed=True)
    except UsageError as error:
        raise advised(error, query, database) from error
    columns = apart(columns)
    if as_json:
        plain = (map(jsonable, row) for row in rows)
        records = [dict(zip(columns, row, strict=True)) for row in plain]
        print_json({"columns": columns, "rows": records})
    elif as_csv:
        write_lines(sys.stdout, columns, (map(jsonable, row) for row in rows))
    else:
        from accelbench.present.terminal.documents import show

        show(answer_document(columns, rows))


@app.command(cls=SpacedLists)
def export(
    place: Annotated[
        str,
        typer.Argument(
            metavar="PATH",
            help="The file to write; one that exists is refused. With --to a folder, which is"
            " added to, or MLflow's address.",
        ),
    ],
    models: Annotated[
        list[str], typer.Argument(help="Export these models only.", show_default=False)
    ] = [],  # noqa: B006 — typer copies it
    form: Annotated[
        str | None,
        typer.Option("--format", help=f"{', '.join(FORMATS)}; else what the suffix says."),
    ] = None,
    to: Annotated[
        str | None,
        typer.Option("--to", help=f"An experiment tracker instead: {', '.join(TRACKER_NAMES)}."),
    ] = None,
    run: Annotated[
        list[str], typer.Option("--run", help="Export these runs only, by id or label, or `last`.")
    ] = [],  # noqa: B006 — typer copies it
    samples: Annotated[bool, typer.Option("--samples", help="Raw samples too.")] = False,
    db: DbOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write results into a file, or into an experiment tracker."""
    if to is not None:
        if form is not None:
            raise UsageError("--to and --format contradict each other.", "Leave one out.")
        database = open_store(db)
        _fill(database)
        filters = selected(database, models, run)
        document, lines = to_tracker(place, to, database, filters, samples)
        if as_json:
            print_json(document)
        else:
            print_lines(lines)
        return
    path = Path(place)
    form = format_for(path, form)
    refuse_taken(path)
    database = open_store(db)
    _fill(database)
    where, params = stored(selected(database, models, run))
    runs = told_runs(database)
    if form in TABLES:
        results = export_table(path, database, form, where, params, samples=samples, runs=runs)
        made = Entries(results)
    else:
        rows = database.results(where, params)
        selection = of_interest(rows, runs) if form in ENTRIES else rows
        results, made = len(rows), export_report(path, selection, form, runs)
    if as_json:
        counts = {"results": results, "entries": made.written, "left_out": dict(made.left_out)}
        print_json({"path": str(path.absolute()), "format": form, **counts})
    else:
        print_line(f"Wrote {wrote(form, made.written, results)} to {path}")
        if made.left_out:
            print_line(made.told())


@app.command()
def merge(
    others: Annotated[list[Path], typer.Argument(help="Databases, lakes; they stay as is.")],
    db: DbOption = None,
    as_json: JsonOption = False,
) -> None:
    """Bring in other databases. Doing it twice changes nothing.

    Ends with 1 if a result was refused; the others come in.
    """
    database = open_store(db)
    if database.exists:
        _fill(database)
    merged = []
    for other in others:
        name, path = _other(other, database)
        report = database.merge(path)
        _warn(report.problems)
        merged.append(
            {
                "from": name,
                "results": report.results,
                "facts": report.facts,
                "refused": report.refused,
                "imported_copies_kept": report.copies,
                "refused_results": [
                    {"result_id": one.result_id, "field": one.column, "reason": one.why}
                    for one in report.refusals
                ],
            }
        )
        if not as_json:
            results, facts = (
                format_count(report.results, "result"),
                format_count(report.facts, "other fact"),
            )
            refused = (
                f"; {format_count(report.refused, 'result')} refused" if report.refused else ""
            )
            print_line(f"{results} and {facts} from {name}{refused}")
            if report.copies:
                print_line(phrase("store.copies-kept", count=report.copies))
    if as_json:
        print_json({"database": database.name, "merged": merged})
    if any(one["refused"] for one in merged):
        raise typer.Exit(EXIT_NO)


@app.command("import")
def import_(
    kind: Annotated[str, typer.Argument(help=f"What it is: {', '.join(IMPORT_FORMATS)}.")],
    path: Annotated[Path, typer.Argument(help="A file, or a folder with files of that kind.")],
    source: Annotated[
        str | None, typer.Option(help="Whose figures they are, and what --machine then calls them.")
    ] = None,
    commit: Annotated[str, typer.Option(help="The version of the source.")] = "",
    licence: Annotated[
        str | None, typer.Option("--licence", "--license", help="Its licence.")
    ] = None,
    measured_at: Annotated[
        str, typer.Option("--measured-at", help="When, for files that do not say it themselves.")
    ] = "",
    db: DbOption = None,
    as_json: JsonOption = False,
) -> None:
    """Bring in what others measured: whole files or nothing. Doing it twice changes nothing."""
    content = read_import(kind, path.expanduser(), source, commit, licence, measured_at)
    database = open_store(db)
    if database.exists:
        _fill(database)
    try:
        filled = database.bring_in(content.run_id, content.facts, content.bodies, content.queries)
    except ConflictError as conflict:
        raise locate_conflict(kind, content.files, conflict) from conflict
    new = brought(database, content) if filled.results else ImportSummary()
    known_count = content.results - filled.results - filled.repeated
    if as_json:
        print_json(
            {
                "database": database.name,
                "files": [str(file) for file in content.files],
                "source": content.source.to_dict(),
                "machines": list(new.machines),
                "results": filled.results,
                "there_already": known_count,
                "without_figures": content.empty,
                "equal_lines": filled.repeated,
                "without_moment": new.undated,
                "keep_their_source": content.kept_sources,
                "samples_not_read": [str(file) for file in content.unread_samples],
            }
        )
        return
    print_line(f"{format_count(filled.results, 'result')} from {_files(content.files)}")
    if filled.repeated:
        print_line(phrase("store.repeated-lines", count=filled.repeated))
    if known_count:
        sentence = phrase("store.already-stored", count=known_count)
        print_line(phrase("store.moment-kept", sentence=sentence) if measured_at else sentence)
    if content.empty:
        print_line(phrase("store.lines-without-result", count=content.empty))
    if content.kept_sources:
        print_line(phrase("store.source-kept", count=content.kept_sources))
    if content.unread_samples:
        print_line(samples_left(content.unread_samples))
    for line in told(new):
        print_line(line)


@app.command()
def compact(db: DbOption = None, as_json: JsonOption = False) -> None:
    """Make one file of the many of a lake; those that an earlier one replaced go."""
    lake = open_store(db)
    if not lake.exists:
        raise UsageError(
            f"There is no lake at {lake.name}.", "Name one with --db, a folder or a URL."
        )
    if not isinstance(lake, Lake):
        raise UsageError(
            f"{lake.name} is a database: it is one file already.", "Only a lake is compacted."
        )
    files, removed = lake.compact()
    if as_json:
        print_json({"database": lake.name, "files": files, "removed": removed})
        return
    print_line(f"{files} files are one now" if files else "There is nothing to put together")
    if removed:
        print_line(f"{removed} that had been replaced before are removed")


def _files(files: Sequence[Path]) -> str:
    return str(files[0]) if len(files) == 1 else f"{len(files)} files"


def _other(word: Path, database: Database) -> tuple[str, Path]:
    place = parse_place(word)
    if place is None:
        return str(word), word.expanduser()
    lake = Lake.from_place(place)
    if isinstance(database, Lake) and database.name == lake.name:
        raise UsageError(f"{lake.name} is the lake itself.", "Name another one to merge.")
    if not lake.exists:
        raise UsageError(f"{lake.name} is no lake.", "Name a database or a lake to merge.")
    _fill(lake)
    return lake.name, lake.path


def _fill(database: Database) -> None:
    """Bring in what runs left in the journals; where that cannot be written, say so and go on."""
    try:
        filled = database.fill()
    except NotWritableError as error:
        _warn([f"{error.message} What waits in {database.journals} is not shown."])
        return
    if filled.results and isinstance(database, Lake):
        are = "is" if filled.results == 1 else "are"
        _warn([f"{format_count(filled.results, 'result')} {are} new here."])
    elif filled.results:
        singular = filled.results == 1
        was, now = ("was", "is") if singular else ("were", "are")
        results = format_count(filled.results, "result")
        _warn([f"{results} {was} waiting in journals and {now} now in the database."])
    _warn(filled.problems)


def _warn(sentences: Sequence[str]) -> None:
    for sentence in sentences:
        complain(sentence)

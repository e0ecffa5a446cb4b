"""`accelbench db`: make, look into, query, export and merge databases."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any

import typer

from accelbench.core.errors import UsageError
from accelbench.exchange.imports.kinds import KINDS
from accelbench.exchange.imports.reading import read_import
from accelbench.exchange.table_export import FORMATS, format_for
from accelbench.exchange.table_export import export as export_table
from accelbench.store.database import Database
from accelbench.store.files import ReadOnlyPlaceError
from accelbench.store.fit import spell_time
from accelbench.store.lake import Lake, store_at

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    help="Make, look into, export and merge databases.",
    context_settings={"help_option_names": ["-h", "--help"]},
)

_DB_HELP = "The database; else $ACCELBENCH_DB, else ./accelbench.duckdb."
DbOption = Annotated[Path | None, typer.Option("--db", help=_DB_HELP)]
DbPathOption = Annotated[Path | None, typer.Option("--db-path", hidden=True)]
JsonOption = Annotated[bool, typer.Option("--json", help="One JSON document on standard output.")]

#: A table with more columns than this does not fit 80 characters: shown a value a line instead.
_MOST_COLUMNS = 8
#: As many as a few lines hold: somebody else's tables have thousands of models.
_MOST_NAMES = 24


@app.command()
def init(
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Start anew; the old database is kept as a backup.")
    ] = False,
    db: DbOption = None,
    db_path: DbPathOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make an empty database. One of ours that is there already stays."""
    database = _database(db, db_path)
    there = database.begun
    backup = database.init(overwrite=overwrite)
    made = backup is not None or not there
    if as_json:
        _print_json(
            {
                "database": database.name,
                "made": made,
                "backup": str(backup) if backup else None,
            }
        )
        return
    print_line(f"Made {database.name}" if made else f"{database.name} is there already; it stays.")
    if backup:
        print_line(f"The old one is kept as {backup}")


@app.command()
def status(db: DbOption = None, db_path: DbPathOption = None, as_json: JsonOption = False) -> None:
    """Show what the database holds."""
    database = _database(db, db_path)
    _fill(database)
    found = database.status()
    if as_json:
        _print_json(found)
        return
    _print_pairs(_status_lines(found))


@app.command()
def sql(
    query: Annotated[str, typer.Argument(help="SQL that reads; e.g. FROM benchmark_results.")],
    db: DbOption = None,
    db_path: DbPathOption = None,
    as_json: JsonOption = False,
) -> None:
    """Ask the database in SQL. It reads this database and nothing else."""
    database = _database(db, db_path)
    _fill(database)
    columns, rows = database.query(query)
    if as_json:
        plain_rows = [[_jsonable(value) for value in row] for row in rows]
        _print_json({"columns": columns, "rows": plain_rows})
    elif len(columns) > _MOST_COLUMNS:
        _print_records(columns, rows)
    else:
        _print_table(columns, rows)


@app.command()
def export(
    path: Annotated[Path, typer.Argument(help="The file to write; one that exists is refused.")],
    form: Annotated[
        str | None,
        typer.Option("--format", help=f"{', '.join(FORMATS)}; else what the suffix says."),
    ] = None,
    samples: Annotated[bool, typer.Option("--samples", help="Raw samples too.")] = False,
    db: DbOption = None,
    db_path: DbPathOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write all results into a file."""
    form = format_for(path, form)
    database = _database(db, db_path)
    _fill(database)
    rows = database.results(samples=samples)
    export_table(path, rows, form, samples=samples)
    if as_json:
        _print_json({"path": str(path.absolute()), "format": form, "results": len(rows)})
    else:
        print_line(f"Wrote {len(rows)} results to {path}")


@app.command()
def merge(
    others: Annotated[list[Path], typer.Argument(help="Databases to bring in; they stay as is.")],
    db: DbOption = None,
    db_path: DbPathOption = None,
    as_json: JsonOption = False,
) -> None:
    """Bring in other databases. Doing it twice changes nothing."""
    database = _database(db, db_path)
    if database.there:
        _fill(database)
    merged = []
    for other in others:
        found = database.merge(other.expanduser())
        _warn(found.problems)
        merged.append({"from": str(other), "results": found.results, "facts": found.facts})
        if not as_json:
            print_line(f"{found.results} results and {found.facts} other facts from {other}")
    if as_json:
        _print_json({"database": database.name, "merged": merged})


@app.command("import")
def import_(
    kind: Annotated[str, typer.Argument(help=f"What it is: {', '.join(KINDS)}.")],
    path: Annotated[Path, typer.Argument(help="A file, or a folder with files of that kind.")],
    source: Annotated[str | None, typer.Option(help="Whose figures they are.")] = None,
    commit: Annotated[str, typer.Option(help="The version of the source.")] = "",
    licence: Annotated[
        str | None, typer.Option("--licence", "--license", help="Its licence.")
    ] = None,
    measured_at: Annotated[
        str, typer.Option("--measured-at", help="When, for files that do not say it themselves.")
    ] = "",
    db: DbOption = None,
    db_path: DbPathOption = None,
    as_json: JsonOption = False,
) -> None:
    """Bring in what others measured: whole files or nothing. Doing it twice changes nothing."""
    found = read_import(kind, path.expanduser(), source, commit, licence, measured_at)
    database = _database(db, db_path)
    if database.there:
        _fill(database)
    filled = database.bring_in(found.run_id, found.facts, found.bodies, found.queries)
    there = len(found.bodies) - filled.results if found.bodies else None
    if as_json:
        _print_json(
            {
                "database": database.name,
                "files": [str(file) for file in found.files],
                "source": found.source.told(),
                "results": filled.results,
                "there_already": there,
            }
        )
        return
    print_line(f"{filled.results} results from {_files(found.files)}")
    if there:
        print_line(f"{there} more were there already, or stand there twice")


@app.command()
def compact(db: DbOption = None, db_path: DbPathOption = None, as_json: JsonOption = False) -> None:
    """Make one file of the many of a lake; those that an earlier one replaced go."""
    lake = _database(db, db_path)
    if not isinstance(lake, Lake):
        raise UsageError(
            f"{lake.name} is a database: it is one file already.", "Only a lake is compacted."
        )
    files, removed = lake.compact()
    if as_json:
        _print_json({"database": lake.name, "files": files, "removed": removed})
        return
    print_line(f"{files} files are one now" if files else "There is nothing to put together")
    if removed:
        print_line(f"{removed} that had been replaced before are removed")


def _files(files: Sequence[Path]) -> str:
    return str(files[0]) if len(files) == 1 else f"{len(files)} files"


def _database(db: Path | None, alias: Path | None) -> Database:
    return store_at(db or alias)


def _fill(database: Database) -> None:
    """Bring in what runs left in the journals; where that cannot be written, say so and go on."""
    try:
        filled = database.fill()
    except ReadOnlyPlaceError as error:
        _warn([f"{error.message} What waits in {database.journals} is not shown."])
        return
    if filled.results and isinstance(database, Lake):
        _warn([f"{filled.results} results are new here."])
    elif filled.results:
        _warn([f"{filled.results} results were waiting in journals and are now in the database."])
    _warn(filled.problems)


def _warn(sentences: Sequence[str]) -> None:
    for sentence in sentences:
        sys.stderr.write(f"accelbench: {sentence}\n")


def _status_lines(found: dict[str, Any]) -> list[tuple[str, str]]:
    tables, journals = found["tables"], found["journals"]
    lines = [
        ("database", found["database"]),
        ("size", f"{found['size_bytes'] / 2**20:.1f} MB, schema {found['schema_version']}"),
        *((name, str(count)) for name, count in tables.items()),
        ("results by status", _counted(found["results_by_status"])),
        ("by provenance", _counted(found["results_by_provenance"])),
        ("runs by status", _counted(found["runs_by_status"])),
        ("models", _named(found["models"])),
        ("hardware", ", ".join(found["hardware"]) or "none"),
    ]
    if found["first_result_at"]:
        lines.append(("measured", f"{found['first_result_at']} to {found['last_result_at']}"))
    lines.append(("journals", f"{journals['known']} in {journals['folder']}"))
    if journals["orphans"]:
        lines.append(("not filled in", ", ".join(journals["orphans"])))
    for name, numbers in journals["corrupt_lines"].items():
        lines.append(("damaged", f"{name}, line(s) {', '.join(map(str, numbers))}"))
    return lines


def _named(names: Sequence[str]) -> str:
    """The first of many names; all of them are in --json."""
    more = len(names) - _MOST_NAMES
    shown = ", ".join(names[:_MOST_NAMES]) or "none"
    return f"{shown} and {more} more" if more > 0 else shown


def _counted(counts: dict[str, int]) -> str:
    return ", ".join(f"{count} {word}" for word, count in counts.items()) or "none"


def print_line(text: str) -> None:
    """A line for people: what a terminal would obey instead of showing is shown as a dot."""
    sys.stdout.write(f"{_shown(text)}\n")


def _print_json(content: Any) -> None:
    sys.stdout.write(json.dumps(content, indent=2, allow_nan=False) + "\n")


def _print_pairs(pairs: Sequence[tuple[str, str]]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE, show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in pairs:
        table.add_row(Text(name, style="bold"), Text(_shown(value)))
    Console().print(table)


def _print_table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE)
    for column in columns:
        table.add_column(Text(_shown(column)), overflow="fold")
    for row in rows:
        table.add_row(*(Text(_spell(value)) for value in row))
    Console().print(table)


def _print_records(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """A value a line, for rows too wide for a terminal; what is not known is left out."""
    width = max(map(len, columns))
    for number, row in enumerate(rows, 1):
        print_line(f"-- {number} of {len(rows)}")
        for name, value in zip(columns, row, strict=True):
            if value is not None:
                print_line(f"{name:<{width}}  {_spell(value)}")


def _spell(value: Any) -> str:
    if value is None:
        return "n/a"
    if isinstance(value, float):
        return f"{value:.6g}"
    return _shown(str(_jsonable(value)))


def _shown(text: str) -> str:
    return "".join(c if c.isprintable() else "·" for c in text)


def _jsonable(value: Any) -> Any:
    """A value from SQL as JSON holds it; infinities and NaN, which it cannot hold, as null."""
    if isinstance(value, datetime):
        return spell_time(value)
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Decimal):
        value = float(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(k): _jsonable(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_jsonable(v) for v in value]
    return value if isinstance(value, (str, int, bool, type(None))) else str(value)

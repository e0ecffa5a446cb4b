"""Files of a lake into a machine's mirror: each result once, and none that cannot be."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from accelbench.core.errors import StoreError
from accelbench.store.conflicts import ConflictError
from accelbench.store.duck import file_errors, quoted_path
from accelbench.store.implausible import mark_implausible
from accelbench.store.insert import FilledRows, insert_many
from accelbench.store.merge_validation import UnlikeError, columns_in, hold
from accelbench.store.schema import columns_of

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

#: Folder → table, what its rows are told apart by, the keys that say whether they are there, and in
#: which table. Samples come first: what is asked of them is whether their results are there.
TABLES: Mapping[str, tuple[str, str, str, str]] = {
    "samples": ("fact_samples", "result_id, phase", "result_id", "fact_result"),
    "facts": ("fact", "kind, id", "kind, id", "fact"),
    "results": ("fact_result", "result_id", "result_id", "fact_result"),
}


def bring_files(
    con: DuckDBPyConnection,
    files: Mapping[str, Mapping[str, Path]],
    lake: str,
    mirror: Path,
) -> FilledRows:
    """Insert what files of a lake hold and the mirror has not.

    Args:
        con: the mirror, in a transaction.
        files: of each folder of the lake, names there and where they can be read.
        lake: what it is called.
        mirror: where this machine's is.

    Raises:
        StoreError: a file is damaged or no lake's, or has another figure than the result of its id.
    """
    sources = {folder: _source(names.values()) for folder, names in files.items()}
    with _readable(con, files, lake, mirror):
        held = hold(con, sources["results"], sources["samples"], lake)
        sources |= {"results": held.results, "samples": held.samples}
        # In the order of the tables: samples come first.
        counts = {folder: _read(con, folder, sources[folder], lake) for folder in TABLES}
        if counts["results"]:
            mark_implausible(con)
    return FilledRows(
        results=counts["results"],
        facts=counts["facts"],
        problems=held.problems,
        refused=len(held.refused),
        refusals=held.refused,
    )


def _source(paths: Iterable[Path]) -> str:
    files = ", ".join(map(quoted_path, paths))
    return f"read_parquet([{files}], union_by_name = true)" if files else ""


def _read(con: DuckDBPyConnection, folder: str, source: str, lake: str) -> int:
    if not source:
        return 0
    table, apart, keys, against = TABLES[folder]
    known = set(columns_of(con, table))
    names = columns_in(con, source, keys.split(", "), lake)
    columns = ", ".join(f'i."{name}"' for name in names if name in known)
    return insert_many(con, table, source, keys, against=against, columns=columns, apart=apart)


@contextmanager
def _readable(
    con: DuckDBPyConnection, files: Mapping[str, Mapping[str, Path]], lake: str, mirror: Path
) -> Iterator[None]:
    """What speaks against files of a lake, with their names."""
    import duckdb

    try:
        yield
    except ConflictError as error:
        query = "SELECT 1 FROM {} WHERE result_id = ? LIMIT 1"
        paths = [
            f"{lake}/{name}"
            for name, path in files["results"].items()
            if con.execute(query.format(_source([path])), [error.result_id]).fetchall()
        ]
        raise StoreError(
            f"Result {error.result_id} in {' and '.join(paths)} has {error.said} in"
            f" {error.column}, where that id has {error.known} elsewhere: one of the two is"
            " not true.",
            "Take the wrong file away from there; if this machine has read it already, remove"
            f" {mirror} too, which is made again.",
        ) from error
    except UnlikeError:
        for names in files.values():  # together they have the types of one of them
            for name, path in names.items():
                columns_in(con, _source([path]), (), f"{lake}/{name}")
        raise
    except duckdb.Error as error:
        own = [str(path) for names in files.values() for path in names.values()]
        if isinstance(error, file_errors()) and not any(path in str(error) for path in own):
            raise  # it is the mirror's
        raise StoreError(
            f"A file of {lake} is damaged ({str(error).splitlines()[0]}).",
            "Put back what it was, or take it away from there.",
        ) from error

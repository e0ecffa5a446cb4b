"""Bad surroundings: one clear sentence, and nothing lost or changed."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from bodies import result

from accelbench.core.errors import EXIT_ENVIRONMENT, StoreError, UsageError
from accelbench.store import duck
from accelbench.store.database import Database
from accelbench.store.files import NotWritableError
from accelbench.store.journal import encode


def foreign(path: Path) -> None:
    with duckdb.connect(str(path)) as con:
        con.execute("CREATE TABLE customers AS SELECT 1 AS id")


def foreign_with_our_table(path: Path) -> None:
    with duckdb.connect(str(path)) as con:
        con.execute("CREATE TABLE store_meta (application VARCHAR, schema_version INTEGER)")
        con.execute("INSERT INTO store_meta VALUES ('shop', 1)")


def foreign_with_another_table(path: Path) -> None:
    with duckdb.connect(str(path)) as con:
        con.execute("CREATE TABLE store_meta (branch VARCHAR)")


def newer(path: Path) -> None:
    Database(path).ensure()
    with duckdb.connect(str(path)) as con:
        con.execute("UPDATE store_meta SET schema_version = 99")


def no_database(path: Path) -> None:
    path.write_bytes(b"these are my notes\n" * 1000)


def cut_short(path: Path) -> None:
    Database(path).ensure()
    path.write_bytes(path.read_bytes()[:5000])


def newer_duckdb(path: Path) -> None:
    Database(path).ensure()
    data = bytearray(path.read_bytes())
    for header in range(0, 3 * 4096, 4096):  # the file's header and both database headers
        data[header + 8 : header + 20] = os.urandom(12)
    path.write_bytes(bytes(data))


BAD: list[tuple[Callable[[Path], None], str]] = [
    (foreign, "another program's DuckDB database; it was left as it is"),
    (foreign_with_our_table, "another program's DuckDB database"),
    (foreign_with_another_table, "another program's DuckDB database"),
    (newer, r"has schema version 99, and this accelbench reads \d"),
    (no_database, "is not a DuckDB database; it was left as it is"),
    (cut_short, "cannot be read; it may be damaged"),
    (newer_duckdb, "not a DuckDB database|damaged|another version"),
    (Path.mkdir, "is a folder, not a database"),
]

USES: list[Callable[[Database], object]] = [
    Database.ensure,
    Database.init,
    lambda database: database.init(overwrite=True),
    Database.fill,
    Database.status,
    Database.results,
    lambda database: database.query("SELECT 1"),
    lambda database: database.merge(database.path.with_name("good.duckdb")),
    lambda database: Database(database.path.with_name("good.duckdb")).merge(database.path),
]


def test_a_table_of_another_format_is_no_damaged_database(tmp_path):
    """DuckDB opens it as a view; the advice was to move it away."""
    path = tmp_path / "mine.csv"
    path.write_text("model,latency\nbert,2\n")
    with pytest.raises(StoreError, match="is not a DuckDB database; it was left as it is"):
        Database(path).results()


@pytest.mark.parametrize(("spoil", "says"), BAD, ids=[bad[0].__name__ for bad in BAD])
def test_what_is_not_ours_is_refused_by_every_use_and_left_alone(tmp_path, spoil, says):
    path = tmp_path / "bad.duckdb"
    spoil(path)
    good = Database(tmp_path / "good.duckdb")
    good.ensure()
    before = path.read_bytes() if path.is_file() else None
    database = Database(path)
    database.journals.mkdir()
    (database.journals / "r.jsonl").write_bytes(encode(result(0)))
    for use in USES:
        with pytest.raises(StoreError, match=says) as caught:
            use(database)
        assert caught.value.exit_code == EXIT_ENVIRONMENT
        assert str(path) in str(caught.value)
        assert "\n" not in str(caught.value)
    assert (path.read_bytes() if path.is_file() else None) == before
    assert not path.with_name("bad.duckdb.wal").exists()
    assert not list(tmp_path.glob("*backup*"))
    assert good.status()["tables"]["benchmark_results"] == 0
    assert (database.journals / "r.jsonl").read_bytes() == encode(result(0))


def test_a_foreign_log_is_not_worked_into_its_file(tmp_path):
    """A file that its program left with a log keeps both, byte for byte."""
    path = tmp_path / "theirs.duckdb"
    foreign(path)
    log = path.with_name("theirs.duckdb.wal")
    with duckdb.connect(str(path)) as con:
        con.execute("SET checkpoint_threshold='1GB'")
        con.execute("INSERT INTO customers VALUES (2)")
        kept, database = log.read_bytes(), path.read_bytes()
    path.write_bytes(database)
    log.write_bytes(kept)
    for use in (Database.ensure, Database.status, Database.init):
        with pytest.raises(StoreError, match="another program's"):
            use(Database(path))
    with pytest.raises(StoreError, match="another program's"), duck.connect(path, write=True):
        pass
    assert (path.read_bytes(), log.read_bytes()) == (database, kept)


def test_no_database_names_what_makes_one(tmp_path):
    database = Database(tmp_path / "a.duckdb")
    for use in (Database.status, Database.results, lambda d: d.query("SELECT 1")):
        with pytest.raises(StoreError, match=r"There is no database at .* `accelbench db init`"):
            use(database)
    assert database.fill().results == 0
    assert list(tmp_path.iterdir()) == []  # looking made nothing


def test_an_empty_file_counts_as_no_database(tmp_path):
    path = tmp_path / "a.duckdb"
    path.touch()
    Database(path).ensure()
    assert Database(path).status()["tables"]["benchmark_results"] == 0


def test_places_that_cannot_be_written_say_so(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StoreError, match="something else exists"):
        Database(tmp_path / "file" / "a.duckdb").ensure()
    with pytest.raises(StoreError, match="Making the database failed"):
        Database(Path("/proc/accelbench/a.duckdb")).ensure()


def test_a_read_only_place_can_be_read_and_is_told_apart(tmp_path, monkeypatch):
    """Root may write anywhere, so the system's answer is stood in for."""
    database = Database(tmp_path / "a.duckdb")
    database.ensure()
    database.journals.mkdir()
    (database.journals / "r.jsonl").write_bytes(encode(result(0)))
    real = os.open

    def refuse(path: object, flags: int, *rest: int) -> int:
        if flags & (os.O_RDWR | os.O_WRONLY):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))
        return real(path, flags, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(NotWritableError, match="cannot be written"):
        database.fill()
    assert database.results() == []
    assert database.query("SELECT count(*) FROM benchmark_results")[1] == [(0,)]
    assert database.status()["journals"]["orphans"] == ["r.jsonl"]


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ('Cannot open file "x": Read-only file system', NotWritableError),
        ('Cannot open file "x": Permission denied', NotWritableError),
        ('Could not write file "x": No space left on device', StoreError),
    ],
)
def test_duckdb_words_become_ours(words, kind):
    error = duck.explain_duck(duckdb.IOException(words), Path("x"))
    assert type(error) is kind


def test_a_held_database_is_named_after_a_while(tmp_path):
    path = tmp_path / "a.duckdb"
    Database(path).ensure()
    with (
        duck.connect(path, write=True),
        pytest.raises(StoreError, match=r"Another process has held .*a.duckdb for 0.05 seconds"),
    ):
        Database(path, retry_seconds=0.05).status()
    with duck.exclusive_guard(path), pytest.raises(StoreError, match="being replaced"):
        Database(path, retry_seconds=0.05).status()
    Database(path, retry_seconds=0.05).status()


WRITES = [
    "DELETE FROM fact_result",
    "INSERT INTO fact_result (result_id) VALUES ('x')",
    "DROP VIEW benchmark_results",
    "CREATE TABLE t (i INTEGER)",
    "UPDATE store_meta SET schema_version = 0",
]
ELSEWHERE = [
    "COPY (SELECT 1) TO '{0}/out.csv'",
    "COPY (SELECT 1) TO '{0}/out.parquet' (FORMAT parquet)",
    "EXPORT DATABASE '{0}/out'",
    "ATTACH '{0}/other.duckdb'",
    "SELECT * FROM read_csv('{0}/secret.csv')",
    "SELECT * FROM '{0}/secret.csv'",
    "SELECT * FROM read_text('{0}/secret.csv')",
    "SELECT * FROM glob('{0}/*')",
    "SET enable_external_access = true",
    "SET lock_configuration = false",
    "INSTALL httpfs",
    "LOAD httpfs",
    "nonsense",
    "SELECT no_such FROM benchmark_results",
]


@pytest.mark.parametrize("sql", [*WRITES, *ELSEWHERE])
def test_sql_reads_this_database_and_nothing_else(tmp_path, sql):
    database = Database(tmp_path / "a.duckdb")
    database.ensure()
    (tmp_path / "secret.csv").write_text("a,b\n1,2\n")
    before = (database.path.read_bytes(), sorted(tmp_path.iterdir()))
    with pytest.raises(UsageError) as caught:
        database.query(sql.format(tmp_path), sealed=True)
    assert "\n" not in str(caught.value)
    assert (database.path.read_bytes(), sorted(tmp_path.iterdir())) == before


def test_sql_does_not_reach_into_the_program(tmp_path):
    secret = pa.table({"a": [1]})  # DuckDB would find it by its name in the caller's frame
    database = Database(tmp_path / "a.duckdb")
    database.ensure()
    with pytest.raises(UsageError, match="secret does not exist"):
        database.query("SELECT * FROM secret", sealed=True)
    assert secret.num_rows == 1


def test_a_time_with_a_zone_says_how_to_see_it(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pytz", None)  # which DuckDB needs for these
    database = Database(tmp_path / "a.duckdb")
    database.ensure()
    with pytest.raises(UsageError, match="Cast it: ::TIMESTAMP"):
        database.query("SELECT now()")
    assert len(database.query("SELECT now()::TIMESTAMP")[1]) == 1


def test_sql_takes_parameters(tmp_path):
    database = Database(tmp_path / "a.duckdb")
    database.ensure()
    assert database.query("SELECT ? AS a, ? AS b", ["'; --", 2]) == (["a", "b"], [("'; --", 2)])
    assert database.query("") == ([], [])


def test_a_file_that_is_being_written_is_looked_at_again(tmp_path, monkeypatch):
    """What a reader met on a loaded machine: the header is there before the blocks are."""
    path, looks = tmp_path / "a.duckdb", []
    Database(path).ensure()
    whole, real = path.read_bytes(), duck.open_file

    def met(*args: Any, **kwargs: Any) -> Any:
        looks.append(args)
        path.write_bytes(whole[:5000] if len(looks) < 3 else whole)
        return real(*args, **kwargs)

    monkeypatch.setattr(duck, "open_file", met)
    assert Database(path).results() == []
    assert len(looks) == 3

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest
from bodies import result, started
from power import cut_when_done, every_cut

from accelbench.core.errors import StoreError
from accelbench.store import database as store
from accelbench.store.database import Database
from accelbench.store.journal import encode
from accelbench.store.schema import SCHEMA_VERSION, statements

#: Of the statements that make a database of each version. A change of the schema is a new version.
DIGESTS = {5: "0f4bdaef297260f1"}


def rows(path: Path, sql: str) -> list[Any]:
    with duckdb.connect(str(path), read_only=True) as con:
        return con.execute(sql).fetchall()


@pytest.fixture
def filled(tmp_path: Path) -> Path:
    """A database with two results and a table of its user."""
    folder = tmp_path / "filled"
    database = Database(folder / "a.duckdb")
    database.journals.mkdir(parents=True)
    lines = b"".join(map(encode, [started(), result(0), result(1)]))
    (database.journals / "r.jsonl").write_bytes(lines)
    database.fill()
    with duckdb.connect(str(database.path)) as con:
        con.execute("CREATE TABLE mine AS SELECT 42 AS answer")  # what a user added
    return folder


@pytest.fixture
def fresh(tmp_path: Path, filled: Path) -> Callable[[], Path]:
    numbers = iter(range(10**6))

    def make() -> Path:
        root = tmp_path / f"copy{next(numbers)}"
        shutil.copytree(filled, root)
        return root

    return make


def test_a_changed_schema_has_another_version():
    found = hashlib.sha256("\n".join(statements()).encode()).hexdigest()[:16]
    assert found == DIGESTS[SCHEMA_VERSION]
    assert list(DIGESTS) == [SCHEMA_VERSION]


@pytest.mark.parametrize("version", [SCHEMA_VERSION - 1, SCHEMA_VERSION + 1])
def test_another_version_is_refused_and_left_as_it_is(filled, version):
    database = Database(filled / "a.duckdb")
    with duckdb.connect(str(database.path)) as con:
        con.execute("UPDATE store_meta SET schema_version = ?", [version])
    before = database.path.read_bytes()
    said = rf"schema version {version}, and this accelbench reads {SCHEMA_VERSION}\b"
    for ask in (database.results, database.status, database.fill, database.init, database.ensure):
        with pytest.raises(StoreError, match=said):
            ask()
    other = Database(filled / "b.duckdb")
    with pytest.raises(StoreError, match=said):
        other.merge(database.path)
    assert not other.is_created
    assert database.path.read_bytes() == before


def test_a_database_moved_away_is_filled_again_from_its_journals(filled):
    database = Database(filled / "a.duckdb")
    database.path.rename(filled / "kept.duckdb")
    assert database.fill().results == 2


def test_power_cuts_while_making(tmp_path):
    numbers = iter(range(10**6))

    def make() -> Path:
        root = tmp_path / f"new{next(numbers)}"
        root.mkdir()
        return root

    def act(root: Path, files: Any) -> None:
        Database(root / "a.duckdb", files).ensure()

    for root, where in every_cut(make, act, after=False):
        database = Database(root / "a.duckdb")
        database.ensure()
        assert database.status()["tables"]["benchmark_results"] == 0, where
    assert (cut_when_done(make, act) / "a.duckdb").exists()


def test_power_cuts_while_overwriting(filled, fresh):
    """Every result stays in the database, or in the backup, and never twice in one."""
    Database(filled / "a.duckdb").ensure()

    def act(root: Path, files: Any) -> None:
        with (root / "a.duckdb.journal" / "r.jsonl").open("ab") as stream:
            stream.write(encode(result(2)))
        Database(root / "a.duckdb", files).init(overwrite=True)

    def held(path: Path) -> list[str]:
        database = Database(path)
        database.fill()
        return [row["result_id"] for row in database.results()]

    ends = set()
    for root, where in every_cut(fresh, act, after=False):
        now = held(root / "a.duckdb")
        kept = [held(path) for path in root.glob("a.backup-*.duckdb")]
        everything = ["r-0", "r-1", "r-2"]
        assert now in (everything, []), where
        assert all(ids == everything for ids in kept), where
        assert now or kept, where
        ends.add((bool(now), len(kept)))
    assert ends == {(True, 0), (True, 1), (False, 1)}
    assert held(cut_when_done(fresh, act) / "a.duckdb") == []


def test_an_overwrite_keeps_the_old_one_with_its_journals(filled):
    database = Database(filled / "a.duckdb")
    backup = database.init(overwrite=True)
    assert backup is not None
    assert database.status()["tables"]["benchmark_results"] == 0
    assert database.fill().results == 0  # its journals went with it
    assert len(Database(backup).results()) == 2
    assert (store.journal_dir_for(backup) / "r.jsonl").is_file()
    again = database.init(overwrite=True)
    assert again not in {None, backup}


def test_a_database_that_a_run_writes_to_is_not_overwritten(filled):
    from accelbench.store.journal import Journal

    database = Database(filled / "a.duckdb")
    with (
        Journal.create(database.journals, "live"),
        pytest.raises(StoreError, match="Run live is being measured"),
    ):
        database.init(overwrite=True)
    assert len(database.results()) == 2
    assert not list(filled.glob("*backup*"))

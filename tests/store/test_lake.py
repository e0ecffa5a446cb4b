"""A lake: many machines fill it, each result is there once, and a lost mirror is no loss."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from bodies import finished, result, started

from accelbench.core.errors import MissingExtraError, StoreError, UsageError
from accelbench.core.facts import Fact
from accelbench.store import lake as lakes
from accelbench.store.database import Database
from accelbench.store.journal import encode
from accelbench.store.lake import MARKER, Lake
from accelbench.store.opening import open_store
from accelbench.store.places import FolderPlace, RemotePlace, parse_place, parse_url

Machine = Callable[[str], Lake]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """The lake as a machine sees it, with a mirror of its own."""
    (tmp_path / "lake").mkdir()

    def of(name: str) -> Lake:
        return Lake(tmp_path / name / "mirror.duckdb", place=FolderPlace(tmp_path / "lake"))

    return of


def measured(lake: Database, run: str, *facts: Fact) -> None:
    """What a run leaves: a journal, which is filled in when it ends."""
    lake.ensure()
    lake.journals.mkdir(parents=True, exist_ok=True)
    (lake.journals / f"{run}.jsonl").write_bytes(b"".join(map(encode, facts)))
    lake.fill()


def ids(lake: Database) -> list[str]:
    lake.fill()
    return sorted(str(row["result_id"]) for row in lake.results())


def files(lake: Lake, folder: str = "results") -> list[str]:
    return lake.place.names(folder)


def test_what_one_machine_measures_the_others_see_with_every_sample(machine):
    one, other = machine("one"), machine("other")
    measured(one, "r", started(), result(0), result(1), finished())
    measured(other, "s", started("s"), result(2, "s"), finished("s"))
    assert len(ids(one)) == 3
    assert ids(one) == ids(other)
    assert one.results(samples=True) == other.results(samples=True)
    assert other.results(samples=True)[0]["samples"]
    assert [len(files(one, folder)) for folder in ("results", "facts", "samples")] == [2, 2, 2]
    runs = other.query("SELECT run_id FROM benchmark_runs ORDER BY 1")[1]
    assert [run for (run,) in runs] == ["r", "s"]


def test_looking_again_changes_nothing(machine):
    one = machine("one")
    measured(one, "r", started(), result(0), finished())
    before = files(one)
    for _ in range(3):
        assert one.fill().results == 0
    assert files(one) == before


def test_a_run_that_goes_on_adds_what_is_new(machine):
    one, other = machine("one"), machine("other")
    measured(one, "r", started(), result(0))
    assert len(ids(other)) == 1
    measured(one, "r", started(), result(0), result(1), finished())
    assert len(ids(other)) == 2
    assert len(files(one)) == 2


def test_a_mirror_that_is_lost_is_made_again(machine):
    one = machine("one")
    measured(one, "r", started(), result(0), finished())
    kept = ids(one)
    one.path.unlink()
    for journal in one.journals.iterdir():
        journal.unlink()
    assert ids(one) == kept
    assert len(files(one)) == 1  # what came from the lake does not go there again


def test_what_is_given_twice_is_there_once(machine, monkeypatch):
    """The power goes between giving the lake a file and noting that it has it."""
    one, other = machine("one"), machine("other")

    def lost(*_: object) -> None:
        raise RuntimeError("no power")

    with monkeypatch.context() as patched:
        patched.setattr(lakes, "_record_sent", lost)
        with pytest.raises(RuntimeError):
            measured(one, "r", started(), result(0), finished())
    assert len(files(one)) == 1
    one.fill()
    assert len(files(one)) == 2
    assert len(ids(one)) == len(ids(other)) == 1
    assert len(other.query("SELECT * FROM raw_benchmark_data")[1]) == len(
        one.query("SELECT * FROM raw_benchmark_data")[1]
    )


def test_many_files_become_one_and_nothing_changes(machine):
    one, other, late = machine("one"), machine("other"), machine("late")
    for number in range(4):
        measured(one, f"r{number}", started(f"r{number}"), result(number, f"r{number}"))
    kept = ids(one)
    assert ids(other) == kept
    assert one.compact() == (4, 0)
    assert len(files(one)) == 5  # who reads at this moment finds what he is reading
    assert ids(other) == ids(late) == ids(one) == kept
    assert one.compact() == (0, 4)
    assert len(files(one)) == 1
    assert ids(machine("later")) == kept
    assert other.results(samples=True) == late.results(samples=True)
    measured(other, "s", started("s"), result(9, "s"))
    assert len(ids(late)) == 5


def test_what_only_puts_together_what_is_known_is_not_read_again(machine, monkeypatch):
    one, other = machine("one"), machine("other")
    for number in range(2):
        measured(one, f"r{number}", started(f"r{number}"), result(number, f"r{number}"))
    other.fill()
    one.compact()
    monkeypatch.setattr(lakes, "insert_many", None)
    assert other.fill().results == 0


def test_two_that_compact_at_once_lose_nothing(machine):
    one, other = machine("one"), machine("other")
    for number in range(3):
        measured(one, f"r{number}", started(f"r{number}"), result(number, f"r{number}"))
    other.fill()
    stems = files(one)
    one.compact()
    for name in one.place.names("manifest"):  # the other has not seen it
        (Path(one.place.name) / "manifest" / name).rename(Path(one.place.name) / name)
    other.compact()
    for name in one.place.names(""):
        if name.startswith("compact-"):
            (Path(one.place.name) / name).rename(Path(one.place.name) / "manifest" / name)
    assert len(files(one)) == len(stems) + 2
    assert len(ids(machine("late"))) == 3
    one.compact()
    one.compact()
    assert len(files(one)) == 1
    assert len(ids(machine("later"))) == 3


def test_imports_and_other_databases_go_into_the_lake(machine, tmp_path):
    one, other = machine("one"), machine("other")
    body = dict(result(0).body)
    about = Fact("run_started", "import-x", {"run_id": "import-x"})
    assert one.bring_in("import-x", [about], [{**body, "result_id": "i"}]).results == 1
    assert one.bring_in("import-x", [about], [{**body, "result_id": "i"}]).results == 0
    database = Database(tmp_path / "a.duckdb")
    measured(database, "q", started("q"), result(5, "q"))
    assert one.merge(database.path).results == 1
    assert len(ids(other)) == 2


def test_what_the_lake_cannot_take_now_it_gets_later(machine, monkeypatch):
    one = machine("one")
    one.ensure()
    body = {**dict(result(0).body), "result_id": "i"}
    about = Fact("run_started", "import-x", {"run_id": "import-x"})

    def refuse(self: FolderPlace, written: Path, name: str) -> None:
        raise StoreError("It cannot be written.", "Choose another one.")

    with monkeypatch.context() as patched:
        patched.setattr(FolderPlace, "put", refuse)
        with pytest.raises(StoreError, match="the next command that can write") as error:
            one.bring_in("import-x", [about], [body])
        assert "Choose another" not in str(error.value)
    assert files(one) == []
    one.fill()
    assert len(ids(machine("other"))) == 1


def test_a_mirror_as_it_was_left_is_not_opened(machine, monkeypatch):
    one, other = machine("one"), machine("other")
    measured(one, "r", started(), result(0), finished())
    with monkeypatch.context() as patched:
        patched.setattr(lakes, "connect", None)  # whoever opened it would fail
        assert one.fill().results == 0
    measured(other, "s", started("s"), result(2, "s"), finished("s"))
    assert one.fill().results == 1
    with one.keep_open():
        assert one.query("SELECT count(*) FROM benchmark_results")[1] == [(2,)]
    one.path.unlink()  # and one that is gone is made again
    assert one.fill().results == 2


def test_a_lake_may_begin_with_another_database(machine, tmp_path):
    database = Database(tmp_path / "a.duckdb")
    measured(database, "q", started("q"), result(5, "q"))
    assert machine("one").merge(database.path).results == 1
    assert len(ids(machine("other"))) == 1


def test_a_damaged_file_is_named(machine):
    one = machine("one")
    measured(one, "r", started(), result(0), finished())
    (name,) = files(one)
    file = Path(one.place.name) / "results" / name
    file.write_bytes(file.read_bytes()[:100])
    late = machine("late")
    late.ensure()
    with pytest.raises(StoreError, match=f"damaged.*{name}"):
        late.fill()


@pytest.mark.parametrize(
    ("url", "package"), [("gs://b/x", "gcsfs"), ("abfs://b/x", "adlfs"), ("sftp://h/x", "paramiko")]
)
def test_the_package_of_a_protocol_is_named(url, package, monkeypatch):
    import fsspec

    def lacking(_: str) -> None:
        raise ImportError("Please install it")

    monkeypatch.setattr(fsspec.core, "url_to_fs", lacking)
    with pytest.raises(StoreError) as caught:
        RemotePlace(url).names("")
    assert caught.value.advice == f"Install it: pip install {package}"


def test_a_folder_with_other_things_is_no_lake(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    lake = open_store(tmp_path)
    assert isinstance(lake, Lake)
    assert not lake.exists
    with pytest.raises(StoreError, match="other contents"):
        lake.ensure()
    with pytest.raises(StoreError, match="no lake at"):
        lake.fill()
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"application": "other"}, "another program's"),
        ({"application": "accelbench", "schema_version": 99}, "has schema version 99"),
    ],
)
def test_what_is_not_ours_is_left_alone(tmp_path, said, words):
    (tmp_path / MARKER).write_text(json.dumps(said))
    with pytest.raises(StoreError, match=words):
        open_store(tmp_path).ensure()
    assert len(list(tmp_path.iterdir())) == 1


def test_a_lake_is_never_overwritten(machine):
    machine("one").ensure()
    with pytest.raises(UsageError, match="never overwritten"):
        machine("one").init(overwrite=True)


def test_what_names_a_lake_and_what_a_database(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert parse_url(Path("s3://bucket/runs")) == "s3://bucket/runs"  # a path loses a slash
    assert parse_url("gs://b/x/") == "gs://b/x/"
    assert parse_url(Path("file:///data/lake")) == "file:///data/lake"
    assert parse_url(Path("C:/data")) is None
    assert parse_url(Path("a.duckdb")) is None
    assert parse_place("s3://b/x/") == RemotePlace("s3://b/x")
    assert parse_place(tmp_path) == FolderPlace(tmp_path)
    assert parse_place("file:///new/lake") == FolderPlace(Path("/new/lake"))
    assert parse_place("new") is None
    monkeypatch.setenv("ACCELBENCH_DB", str(tmp_path))
    assert isinstance(open_store(), Lake)
    assert not isinstance(open_store("a.duckdb"), Lake)


def test_a_prefix_of_an_object_store_is_a_lake(tmp_path, monkeypatch):
    place = RemotePlace("memory://bucket/runs")
    one, other = (Lake(tmp_path / n / "m.duckdb", place=place) for n in ("one", "other"))
    measured(one, "r", started(), result(0), finished())
    measured(other, "s", started("s"), result(1, "s"))
    assert ids(one) == ids(other)
    assert len(ids(one)) == 2
    assert one.results(samples=True) == other.results(samples=True)
    one.compact()
    assert one.compact() == (0, 2)
    assert ids(Lake(tmp_path / "late" / "m.duckdb", place=place)) == ids(one)


def test_half_a_file_of_another_file_system_is_not_seen(tmp_path, monkeypatch):
    from fsspec.implementations.memory import MemoryFileSystem

    place, file = RemotePlace("memory://bucket/half"), tmp_path / "x"
    file.write_text("whole")
    put = MemoryFileSystem.put_file

    def half(self: MemoryFileSystem, local: str, remote: str) -> None:
        put(self, local, remote)
        raise OSError("the line is cut")

    with monkeypatch.context() as patched:
        patched.setattr(MemoryFileSystem, "put_file", half)
        with pytest.raises(StoreError, match="the line is cut"):
            place.put(file, "results/x.parquet")
    assert place.names("results") == []
    place.put(file, "results/x.parquet")
    assert place.names("results") == ["x.parquet"]
    assert place.fetch("results/x.parquet", tmp_path).read_text() == "whole"


def test_a_place_that_cannot_be_reached_is_said(tmp_path):
    with pytest.raises(StoreError, match="not a valid address"):
        Lake(tmp_path / "m.duckdb", place=RemotePlace("nosuch://x")).ensure()
    with pytest.raises((MissingExtraError, StoreError)):
        Lake(tmp_path / "m.duckdb", place=RemotePlace("gs://x/y")).ensure()


WRITE = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[4])
from bodies import result, started
from test_lake import measured
from accelbench.store.lake import Lake
from accelbench.store.places import FolderPlace
lake = Lake(Path(sys.argv[1]) / sys.argv[3] / "m.duckdb", place=FolderPlace(Path(sys.argv[2])))
for number in range(3):
    run = f"{sys.argv[3]}-{number}"
    measured(lake, run, started(run), *(result(n, run) for n in range(5)))
"""


def test_a_lake_that_another_writer_has_just_begun_is_joined(machine, tmp_path):
    """Both have looked for it and found none; the other was the quicker one."""
    one, other = machine("one"), machine("other")
    measured(one, "r", started(), result(0), finished())
    mark = (tmp_path / "lake" / MARKER).read_bytes()
    other._create_marker()
    assert (tmp_path / "lake" / MARKER).read_bytes() == mark
    assert ids(other) == ids(one)


@pytest.mark.parametrize("machines", [4, 1])
def test_four_that_write_at_once_lose_and_double_nothing(tmp_path, machines):
    """On four machines, and as four processes of one."""
    (tmp_path / "lake").mkdir()
    here = Path(__file__).parent
    started_all = [
        subprocess.Popen(
            [sys.executable, "-c", WRITE, tmp_path / f"m{number % machines}", tmp_path / "lake",
             f"w{number}" if machines == 4 else "one", here],
        )
        for number in range(4)
    ]  # fmt: skip
    assert [process.wait(timeout=200) for process in started_all] == [0] * 4
    found = ids(Lake(tmp_path / "late" / "m.duckdb", place=FolderPlace(tmp_path / "lake")))
    assert len(found) == len(set(found)) == (4 * 15 if machines == 4 else 15)

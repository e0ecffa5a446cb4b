from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from bodies import NASTY, body, finished, result, started
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from accelbench.core.columns import COLUMNS
from accelbench.core.facts import FACT_VERSION, HARDWARE_MEASURED, RESULT, RUN_RESUMED, Fact
from accelbench.store import ingest as filling
from accelbench.store import insert
from accelbench.store.body_to_row import fit_result
from accelbench.store.database import Database
from accelbench.store.files import Files
from accelbench.store.insert import BATCH
from accelbench.store.journal import FilledRows, Journal, encode


def write(folder: Path, run: str, *facts: Fact) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{run}.jsonl"
    with path.open("ab") as stream:
        stream.writelines(encode(fact) for fact in facts)
    return path


@pytest.fixture
def database(tmp_path: Path) -> Database:
    return Database(tmp_path / "a.duckdb")


def ids(database: Database) -> list[str]:
    _, rows = database.query("SELECT result_id FROM benchmark_results ORDER BY result_id")
    return [row[0] for row in rows]


def test_every_column_comes_back_exactly(database):
    values: dict[str, Any] = {
        "text": "x", "int": 2**63 - 1, "float": 0.1 + 0.2, "bool": False,
        "time": "2026-02-03T04:05:06.000007Z", "json": {"deep": [1, {"x": None}], "empty": {}},
        "list": ["", "a,b"], "floats": [0.1 + 0.2, -0.0, 1e-300], "map": {"metric": 1e-300},
    }  # fmt: skip
    whole = {column.name: values[column.kind] for column in COLUMNS}
    whole |= {"result_id": "i", "run_id": "r"}
    database.bring_in("r", [], [whole, {"result_id": "j"}])  # a journal's values are checked
    full, empty = sorted(database.results(), key=lambda row: row["result_id"])
    assert full == whole
    assert list(full) == [column.name for column in COLUMNS]
    assert {k: v for k, v in empty.items() if v is not None} == {"result_id": "j", "run_id": "r"}


def test_nasty_words_come_back_exactly(database):
    facts = [
        result(i, model=text, warnings=[text], options={text: text}, extra={text: float(i)})
        for i, text in enumerate(NASTY)
    ]
    write(database.journals, "r", *facts)
    database.fill()
    rows = {row["result_id"]: row for row in database.results(samples=True)}
    assert len(rows) == len(NASTY)
    for fact in facts:
        row = rows[fact.id]
        assert row.pop("samples") == fact.body["samples"]
        assert row.pop("sampling") == {}
        assert row == fit_result({**fact.body, "result_id": fact.id}).row
        assert row["model"] == fact.body["model"]


texts = st.text(st.characters(codec=None), max_size=20)  # half surrogates too
numbers = st.floats(allow_nan=False, allow_infinity=False)
jsons = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | numbers | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
any_body = st.dictionaries(
    st.sampled_from([column.name for column in COLUMNS]) | texts | st.just("samples"),
    jsons,
    max_size=12,
)


@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(st.lists(any_body, min_size=1, max_size=15))
def test_whatever_a_body_holds_the_store_shows_what_row_of_shows(tmp_path_factory, bodies):
    database = Database(tmp_path_factory.mktemp("any") / "a.duckdb")
    facts = [Fact(RESULT, f"i{number}", one) for number, one in enumerate(bodies)]
    given = [{"run_id": "r", **fact.body, "result_id": fact.id} for fact in facts]
    assert database.bring_in("r", [], given).results == len(facts)
    rows = {row["result_id"]: row for row in database.results()}
    for fact in facts:
        expected = fit_result({"run_id": "r", **fact.body, "result_id": fact.id}).row
        assert rows[fact.id] == expected


def test_a_value_of_the_wrong_type_is_set_aside_and_said(database):
    odd = result(
        0,
        batch_size="eight",
        latency_mean_ms="fast",
        started_at="yesterday",
        mystery={},
        latency_p50_ms=1.0,
    )
    write(database.journals, "r", odd)
    database.fill()
    (row,) = database.results()
    assert (row["batch_size"], row["latency_mean_ms"], row["started_at"]) == (None, None, None)
    assert [w.split(" was not stored")[0] for w in row["warnings"]] == [
        "batch_size",
        "latency_mean_ms",
        "started_at",
    ]
    assert database.query("SELECT rest->>'batch_size', rest->>'mystery' FROM fact_result")[1] == [
        ("eight", "{}")
    ]


def test_plugin_metrics_land_in_extra(database):
    write(database.journals, "r", result(0, extra={"a": 1}, tokens_per_joule=2.5, flag=True))
    database.fill()
    assert database.results()[0]["extra"] == {"a": 1.0, "tokens_per_joule": 2.5}


def test_samples_lie_apart_with_their_timing(database):
    sampling = {"step": {"timing": "whole", "steps": [10, 10, 20]}}
    write(database.journals, "r", result(0, sampling=sampling))
    database.fill()
    columns, rows = database.query("FROM raw_benchmark_data ORDER BY phase")
    assert columns == ["result_id", "run_id", "phase", "timing", "sample_count", "steps", "samples"]
    assert rows == [
        ("r-0", "r", "forward", None, 1, None, [7]),
        ("r-0", "r", "step", "whole", 3, [10, 10, 20], [1000, 2000, 3000]),
    ]


def test_filling_again_changes_nothing_and_opens_nothing_for_writing(database, monkeypatch):
    write(database.journals, "r", started(), result(0), result(1), finished())
    first = database.fill()
    assert (first.results, first.facts, first.journals) == (2, 2, 1)
    before = database.path.read_bytes()
    opened: list[bool] = []
    real = filling.connect

    def spy(path: Path, **how: Any) -> Any:
        opened.append(how.get("write", False))
        return real(path, **how)

    monkeypatch.setattr(filling, "connect", spy)
    assert database.fill() == FilledRows()
    assert opened == [False]
    assert database.path.read_bytes() == before


def test_a_torn_tail_is_nothing_new(database):
    path = write(database.journals, "r", result(0))
    database.fill()
    with path.open("ab") as stream:
        stream.write(encode(result(1))[:-1])
    assert filling.pending_journals(database.path, database.journals) == []
    assert database.fill() == FilledRows()
    with path.open("ab") as stream:
        stream.write(b"\n")
    assert database.fill().results == 1
    assert ids(database) == ["r-0", "r-1"]


def test_only_what_is_new_is_read_again(database, monkeypatch):
    path = write(database.journals, "r", result(0), result(1))
    database.fill()
    size = path.stat().st_size
    write(database.journals, "r", result(2))
    asked: list[int] = []
    real = filling.scan

    def spy(path: Path, offset: int = 0, lines_before: int = 0) -> Any:
        asked.append(offset)
        return real(path, offset, lines_before)

    monkeypatch.setattr(filling, "scan", spy)
    assert database.fill().results == 1
    assert asked == [size]


def test_a_journal_that_was_rewritten_is_read_from_its_start(database):
    path = write(database.journals, "r", result(0), result(1))
    database.fill()
    size = path.stat().st_size
    path.unlink()
    write(database.journals, "r", result(0), result(5))
    assert path.stat().st_size == size
    assert database.fill().results == 1
    assert ids(database) == ["r-0", "r-1", "r-5"]


def test_the_first_of_two_with_one_id_counts(database):
    write(database.journals, "r", result(0, model="first"), result(0, model="second"))
    write(database.journals, "s", result(0, model="third"))
    assert database.fill().results == 1
    assert [row["model"] for row in database.results()] == ["first"]
    assert database.query("SELECT count(*) FROM fact_samples")[1] == [(2,)]


def test_samples_join_only_the_result_they_came_with(database):
    write(database.journals, "r", result(0, samples={}))
    database.fill()
    write(database.journals, "s", result(0))
    database.fill()
    assert database.results(samples=True)[0]["samples"] == {}


def test_damage_in_a_journal_is_said_every_time_and_the_rest_arrives(database):
    damaged = encode(result(1)).replace(b"bert", b"tref")
    database.journals.mkdir()
    path = database.journals / "r.jsonl"
    path.write_bytes(encode(result(0)) + damaged + encode(result(2)))
    for _ in range(2):
        (problem,) = database.fill().problems
        assert str(path) in problem
        assert "line(s) 2" in problem
    assert ids(database) == ["r-0", "r-2"]
    write(database.journals, "r", result(3))
    assert "line(s) 2" in database.fill().problems[0]
    assert "line(s) 2" in database.fill().problems[0]
    assert ids(database) == ["r-0", "r-2", "r-3"]
    assert database.status()["journals"]["corrupt_lines"] == {"r.jsonl": [2]}


def test_a_newer_journal_is_left_for_a_newer_program(database):
    newer = Fact(RESULT, "n", body(9), FACT_VERSION + 1)
    write(database.journals, "new", result(1, "new"), newer)
    write(database.journals, "old", result(0, "old"))
    filled = database.fill()
    assert "newer accelbench" in filled.problems[0]
    assert ids(database) == ["old-0"]
    assert [p.name for p in filling.pending_journals(database.path, database.journals)] == [
        "new.jsonl"
    ]


def test_runs_are_seen_with_their_state(database):
    write(database.journals, "a", started("a", label="x", git_commit="c0ffee"), finished("a"))
    write(database.journals, "b", started("b"))
    resumed = Fact(RUN_RESUMED, "c/1", {"resumed_at": "2026-01-02T04:00:00.000000Z"})
    write(database.journals, "c", started("c"), finished("c"), resumed)
    database.fill()
    _, rows = database.query(
        "SELECT run_id, label, git_commit, status, times_resumed, finished_at IS NULL"
        " FROM benchmark_runs ORDER BY run_id"
    )
    assert rows == [
        ("a", "x", "c0ffee", "complete", 0, False),
        ("b", None, None, "unfinished", 0, True),
        ("c", None, None, "unfinished", 1, True),
    ]


def test_hardware_is_one_row_a_device_with_the_latest_word(database):
    cpu = {"fingerprint": "f", "hardware": "cpu", "name": "EPYC", "memory_bytes": 2**30}
    first = Fact(HARDWARE_MEASURED, "1", {**cpu, "driver": "old", "peak_compute_flops": 1e12})
    second = Fact(HARDWARE_MEASURED, "2", {**cpu, "driver": "new"})
    write(database.journals, "20260101-a", first)
    write(database.journals, "20260102-b", second)
    database.fill()
    _, rows = database.query(
        "SELECT device_fingerprint, device_name, memory_mb, driver, peak_compute_flops,"
        " peak_bandwidth_bytes_per_s FROM hardware_info"
    )
    assert rows == [("f", "EPYC", 1024.0, "new", 1e12, None)]


def test_twenty_thousand_results_take_a_few_statements_a_batch(database, monkeypatch):
    count = 20_000
    facts = (result(i, samples={"step": [i, i + 1, i + 2]}) for i in range(count))
    write(database.journals, "r", *facts)
    statements: list[str] = []
    monkeypatch.setattr(filling, "connect", counting(filling.connect, statements))
    assert database.fill().results == count
    inserts = [text for text in statements if text.startswith("INSERT INTO fact")]
    assert len(inserts) == 2 * count / BATCH
    checks = 3 * count / BATCH
    assert len(statements) < len(inserts) + checks + 20
    assert database.query("SELECT count(*), count(DISTINCT result_id) FROM fact_result")[1] == [
        (count, count)
    ]
    assert database.query("SELECT sum(len(samples)) FROM fact_samples")[1] == [(3 * count,)]


def counting(real: Any, statements: list[str]) -> Any:
    @contextmanager
    def connect(path: Path, **how: Any) -> Iterator[Any]:
        with real(path, **how) as con:
            yield Watched(con, statements.append)

    return connect


class Watched:
    """A connection that tells of every statement before and after it."""

    def __init__(self, con: Any, tell: Any, after: Any = None) -> None:
        self._con, self._tell, self._after = con, tell, after

    def execute(self, sql: str, *rest: Any) -> Any:
        self._tell(sql)
        done = self._con.execute(sql, *rest)
        if self._after:
            rows = done.fetchall()
            self._after(sql)
            return Done(rows)
        return done

    def __getattr__(self, name: str) -> Any:
        return getattr(self._con, name)


class Done:
    def __init__(self, rows: list[Any]) -> None:
        self._rows = rows

    def fetchall(self) -> list[Any]:
        return self._rows


def test_a_kill_between_any_two_statements_loses_and_doubles_nothing(tmp_path, monkeypatch):
    """The files are copied around every statement, as a kill would leave them."""
    home, pictures = tmp_path / "home", tmp_path / "pictures"
    home.mkdir()
    database = Database(home / "a.duckdb")
    write(database.journals, "r", started(), *(result(i) for i in range(4)))
    database.fill()
    write(database.journals, "r", *(result(i) for i in range(4, 9)), finished())
    write(database.journals, "s", started("s"), *(result(i, "s") for i in range(3)))
    taken: list[str] = []

    def picture(sql: str) -> None:
        shutil.copytree(home, pictures / str(len(taken)))
        taken.append(sql)

    real = filling.connect

    @contextmanager
    def connect(path: Path, **how: Any) -> Iterator[Any]:
        with real(path, **how) as con:
            yield Watched(con, picture, picture) if how.get("write") else con
        picture("closed")

    monkeypatch.setattr(filling, "connect", connect)
    monkeypatch.setattr(insert, "BATCH", 2)
    assert database.fill().results == 8
    monkeypatch.undo()
    assert len(taken) > 30
    wanted = sorted([f"r-{i}" for i in range(9)] + [f"s-{i}" for i in range(3)])
    seen = set()
    for number, sql in enumerate(taken):
        left = Database(pictures / str(number) / "a.duckdb")
        before = len(ids(left))
        assert before in {4, 12}, (number, sql)  # all of the transaction or none of it
        left.fill()
        assert ids(left) == wanted, (number, sql)
        assert left.query("SELECT count(*) FROM fact_samples")[1] == [(24,)], (number, sql)
        assert left.query("SELECT count(*) FROM fact")[1] == [(3,)], (number, sql)
        seen.add(before)
    assert seen == {4, 12}


def test_what_was_read_is_durable_before_it_is_committed(database, monkeypatch):
    """Else a power cut could keep a result here that its journal never had."""
    for run in ("r", "s"):
        write(database.journals, run, result(0, run))
    database.ensure()
    log: list[str] = []

    class Telling(Files):
        def open_append(self, path: Path) -> int:
            self.name = path.name
            return super().open_append(path)

        def sync(self, fd: int) -> None:
            super().sync(fd)
            log.append(f"sync {self.name}")

    real_scan = filling.scan

    def scan(path: Path, *where: int) -> Any:
        log.append(f"read {path.name}")
        return real_scan(path, *where)

    monkeypatch.setattr(filling, "scan", scan)
    monkeypatch.setattr(filling, "connect", counting(filling.connect, log))
    Database(database.path, Telling()).fill()
    steps = [one for one in log if one.endswith("jsonl") or one == "COMMIT"]
    assert steps == ["read r.jsonl", "sync r.jsonl", "read s.jsonl", "sync s.jsonl", "COMMIT"]


FULL = """
import resource, signal, sys
from pathlib import Path
from accelbench.core.errors import StoreError
from accelbench.store.database import Database
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
database = Database(Path(sys.argv[1]))
hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), hard))
try:
    database.fill()
except StoreError as error:
    print(error)
"""


def test_a_full_disk_is_one_sentence_and_loses_nothing(database):
    database.ensure()
    samples = {"step": [i * 7919**3 % 10**9 for i in range(2000)]}
    write(database.journals, "r", *(result(i, samples=samples) for i in range(40)))
    room = str(4096)  # no file may grow beyond this
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(database.path), room],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == f"No room left for {database.path}. Free some space there.\n"
    assert ids(database) == []
    assert database.fill().results == 40


def test_a_running_journal_is_filled_as_far_as_it_is(database):
    with Journal.create(database.journals, "r") as journal:
        for number in range(3):
            journal.append(result(number))
            assert database.fill().results == 1
    assert ids(database) == ["r-0", "r-1", "r-2"]


def test_a_result_with_other_samples_than_it_says_is_refused_alone(tmp_path):
    """Of an old journal the rest comes in; what did not is said, and stays to be asked for."""
    database = Database(tmp_path / "a.duckdb")
    database.ensure()
    with Journal.create(database.journals, "r") as journal:
        mean = {"latency_mean_ms": 0.002}
        journal.append(result(0, sample_count=3, **mean))
        journal.append(result(1, sample_count=4, **mean))
        odd = {"step": [1000, 2000.5, 3000]}
        journal.append(result(2, sample_count=3, samples=odd, **mean))
    filled = database.fill()
    assert filled.results == 1
    assert filled.problems == (
        "Result r-1 of run r is not stored: it has 3 samples, and 4 are recorded.",
        "Result r-2 of run r is not stored: it has 0 samples, and 3 are recorded.",
    )
    assert [row["result_id"] for row in database.results()] == ["r-0"]
    _, rows = database.query("SELECT id, body->>'why' FROM fact WHERE kind = 'result_refused'")
    assert len(rows) == 2
    assert database.fill().results == 0
    refused = database.status()["refused"]
    assert [one["result_id"] for one in refused] == ["r-1", "r-2"]
    assert refused[0]["why"] == "it has 3 samples, and 4 are recorded"

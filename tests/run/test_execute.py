"""One service from what is here to rows of a database."""

import ast
from pathlib import Path
from typing import Any

import pytest
from scripted_runs import Watcher

from accelbench.core.errors import StoreError
from accelbench.run import execute as service
from accelbench.run.conduct import lifecycle
from accelbench.run.execute import StoredResults, execute, go_on
from accelbench.store.database import Database

SOURCES = Path(__file__).parents[2] / "src" / "accelbench"
HERE = {"packages": {}}


@pytest.fixture(autouse=True)
def machine(monkeypatch):
    monkeypatch.setattr(service, "describe_environment", lambda: HERE)


@pytest.fixture
def database(tmp_path):
    return Database(tmp_path / "results.duckdb")


def test_results_are_in_the_database_when_it_returns(scripted, database):
    planned, watched = scripted.journey(batches=(1, 4), iterations=2), list[Any]()

    def observe(spec, found, surroundings):
        del found
        watched.append((spec, surroundings))
        return Watcher()

    (made,) = execute(lambda *_: [planned], StoredResults(database), observe)
    assert watched == [(planned, HERE)]
    assert made.spec is planned
    assert [row["batch_size"] for row in made.result.rows] == [1, 4]
    assert {row["run_id"] for row in database.results()} == {planned.settings.run_id}


def test_a_planner_is_told_what_is_here(scripted, database):
    asked = []
    scripted.journey()

    def planner(found, runtimes):
        asked.append((list(found), sorted(runtimes)))
        return []

    assert not execute(planner, StoredResults(database), lambda *_: Watcher())
    ((platforms, runtimes),) = asked
    assert "cpu" in platforms
    assert "scripted" in runtimes


def test_where_nothing_is_planned_nothing_is_written(database):
    assert not execute(lambda *_: [], StoredResults(database), lambda *_: Watcher())
    assert not database.exists


def test_several_runs_are_planned_as_they_come(scripted, tmp_path):
    ended = []

    def planner(*_):
        for _number in range(2):
            yield scripted.journey(batches=(1,), iterations=2)
            ended.append("over")

    places = StoredResults(None, tmp_path / "journals")
    made = execute(planner, places, lambda *_: Watcher())
    assert len({one.result.run_id for one in made}) == 2
    assert ended == ["over", "over"]
    assert len(list((tmp_path / "journals").glob("*.jsonl"))) == 2


def test_a_run_that_an_error_ended_says_how_to_go_on(scripted, tmp_path, monkeypatch):
    class Hinting(StoredResults):
        def resume_hint(self, run_id):
            return f"Go on with {run_id}."

    begin, planned = lifecycle.start, scripted.journey(batches=(1,), iterations=2)

    def full(*given):
        begin(*given)
        raise StoreError("The disk is full.", "Make room.")

    monkeypatch.setattr(lifecycle, "start", full)
    places = Hinting(None, tmp_path / "journals")
    with pytest.raises(StoreError) as error:
        execute(lambda *_: [planned], places, lambda *_: Watcher())
    assert error.value.advice == f"Make room. Go on with {planned.settings.run_id}."


def test_what_was_cut_off_is_gone_on_with_and_stored(scripted, database, monkeypatch):
    class Leaving(Watcher):
        def case_finished(self, row):
            super().case_finished(row)
            raise KeyboardInterrupt

    planned, places = scripted.journey(batches=(1, 4), iterations=2), StoredResults(database)
    (cut,) = execute(lambda *_: [planned], places, lambda *_: Leaving())
    assert cut.result.interrupted
    assert len(list(database.results())) == 1
    monkeypatch.setattr(lifecycle, "_refuse_other_machine", lambda *_: None)
    ended = go_on(planned.settings.run_id, places, lambda _: Watcher())
    assert not ended.interrupted
    assert len(list(database.results())) == 2


def test_nobody_else_starts_a_run():
    """By the functions that do: whoever else called them would repeat the service.

    A node of a fleet does, which leaves plan and rows to the fleet's own driver.
    """
    starting = {
        str(path.relative_to(SOURCES))
        for path in SOURCES.rglob("*.py")
        if "lifecycle." in (text := path.read_text(encoding="utf-8"))
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Attribute)
        and node.attr in ("start", "resume")
        and isinstance(node.value, ast.Name)
        and node.value.id == "lifecycle"
    }
    assert starting == {"run/execute.py", "fleet/unit_runner.py"}

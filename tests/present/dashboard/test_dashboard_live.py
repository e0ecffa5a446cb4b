from __future__ import annotations

from pathlib import Path

import pytest
from dashboard_world import begin, result, store, stored_in, visitor

from accelbench.core.facts import RESULT, RUN_FINISHED, RUN_RESUMED, Fact
from accelbench.present.dashboard.live_runs import Journals
from accelbench.store.database import Database
from accelbench.store.journal import Journal

PLAN = {"plan": [{}, {}], "settings": {"launches": 3}}


@pytest.fixture
def database(tmp_path: Path) -> Database:
    return stored_in(tmp_path)


def test_a_run_is_followed_while_it_is_written(database):
    site = visitor(database)
    with Journal.create(database.journals, "now") as journal:
        begin(journal, "now", **PLAN)
        page = site.get("/run/now").text
        assert "0 of 6 launches" in page
        assert 'data-live="2"' in page
        assert "Nothing yet." in page
        journal.append(Fact(RESULT, "now-0", result(model="first-model")))
        assert "1 of 6 launches" in (page := site.get("/run/now").text)
        assert "first-model" in page
        journal.append(Fact(RESULT, "now-1", result(status="failed", reason="fallback")))
        page = site.get("/run/now").text
        assert "2 of 6 launches" in page
        assert page.index("fallback") < page.index("first-model")  # the newest first
        assert "running" in (page := site.get("/runs").text)
        assert 'data-live="2"' in page
        journal.append(Fact(RUN_FINISHED, "end", {"status": "finished"}))
        assert "data-live" not in site.get("/run/now").text


def test_only_what_was_added_is_read(database, monkeypatch):
    with Journal.create(database.journals, "now") as journal:
        begin(journal, "now", **PLAN)
        journals = Journals(database.journals)
        first = journals.of("now")
        assert first is not None
        end = first.end
        journal.append(Fact(RESULT, "now-0", result()))
        again = journals.of("now")
        assert again is first
        assert again.end > end
        assert [one["model"] for one in again.results] == ["bert-tiny"]
        assert "samples" not in again.results[0]


def test_a_torn_end_is_just_not_there_yet(database):
    with Journal.create(database.journals, "now") as journal:
        begin(journal, "now")
        path = journal.path
        with path.open("ab") as file:
            file.write(b'12345678 {"body":{"mod')
        found = Journals(database.journals).of("now")
    assert found is not None
    assert found.results == []


def test_a_run_that_was_killed_is_cut_off_and_not_running(database):
    with Journal.create(database.journals, "killed") as journal:
        begin(journal, "killed", **PLAN)
        journal.append(Fact(RESULT, "killed-0", result()))
    site = visitor(database)
    page = site.get("/run/killed").text
    assert "cut off" in page
    assert "data-live" not in page
    assert "cut off" in site.get("/runs").text


def test_one_that_is_resumed_runs_again(database):
    with Journal.create(database.journals, "r") as journal:
        begin(journal, "r")
        journal.append(Fact(RUN_FINISHED, "end", {"status": "interrupted"}))
        journals = Journals(database.journals)
        ended = journals.of("r")
        assert ended is not None
        assert ended.state == "interrupted"
        journal.append(Fact(RUN_RESUMED, "again", {}))
        again = journals.of("r")
        assert again is not None
        assert again.state == "running"


def test_looking_at_a_run_does_not_stop_it_from_being_written(database):
    with Journal.create(database.journals, "r") as journal:
        begin(journal, "r")
        journals = Journals(database.journals)
        for number in range(20):
            journals.of("r")
            journal.append(Fact(RESULT, f"r-{number}", result(launch=number)))
    with Journal.resume(database.journals, "r") as journal:
        assert len([one for one in journal.facts() if one.kind == RESULT]) == 20


@pytest.mark.parametrize("name", ["..", "../a", "a/b", "a\\b", "", ".hidden", "a:b", "x" * 4000])
def test_a_name_that_is_no_runs_leads_to_no_file(database, name):
    (database.path.parent / "a.jsonl").write_text("secret")
    assert Journals(database.journals).of(name) is None


def test_a_run_that_has_ended_is_told_by_the_store(database):
    store(database, "done", result(), result(launch=1), command="accelbench run a <b>")
    page = visitor(database).get("/run/done").text
    assert "accelbench run a &lt;b&gt;" in page
    assert page.count('<th scope="row">') == 2
    (database.journals / "done.jsonl").unlink()
    assert visitor(database).get("/run/done").status_code == 200

"""The first page: findings of the store, the best of each task, what runs."""

from __future__ import annotations

import re
import time
from functools import partial
from pathlib import Path
from typing import Any

from dashboard_world import begin, result, store, stored_in, visitor
from starlette.testclient import TestClient

from accelbench.core.facts import RESULT, Fact
from accelbench.judge import baselines
from accelbench.present.dashboard.run_pages import duration
from accelbench.store.database import Database
from accelbench.store.journal import Journal


def overview(site: TestClient) -> str:
    """The page when its findings are there."""
    for _ in range(600):
        answer = site.get("/")
        if answer.status_code == 200 and "The findings are being worked out" not in answer.text:
            return answer.text
        time.sleep(0.05)  # as a browser comes again
    raise AssertionError("the findings were never there")


def plain(page: str) -> str:
    """A page's words."""
    return " ".join(re.sub(r"<[^>]+>", " ", page).split())


def launches(**changes: Any) -> list[dict[str, Any]]:
    ms = changes.pop("ms")
    return [
        result(launch=n, latency_p50_ms=ms * factor, task="feature-extraction", **changes)
        for n, factor in enumerate((0.99, 1.0, 1.01))
    ]


def two_engines(path: Path) -> Database:
    return stored_in(path, *launches(ms=8.0), *launches(ms=4.0, runtime="onnxruntime"), run="both")


def test_the_first_page_answers_in_sentences_with_links_to_what_they_rest_on(tmp_path):
    database = two_engines(tmp_path / "two.duckdb")
    site = visitor(database)
    page = overview(site)
    assert "bert-tiny by onnxruntime on cpu in fp32 is the fastest of 2 configurations" in page
    links = re.findall(r'href="(/(?:cell|compare)[^"]+)"', page)
    assert links
    assert {site.get(link.replace("&amp;", "&")).status_code for link in links} == {200}


def test_a_figure_of_the_page_is_sqls(tmp_path):
    database = two_engines(tmp_path / "two.duckdb")
    ((fastest, ratio),) = database.query(
        "SELECT exp(avg(ln(latency_mean_ms)) FILTER (runtime = 'onnxruntime')),"
        " exp(avg(ln(latency_mean_ms)) FILTER (runtime = 'pytorch')"
        " - avg(ln(latency_mean_ms)) FILTER (runtime = 'onnxruntime')) FROM benchmark_results"
    )[1]
    page = plain(overview(visitor(database)))
    assert f"{fastest:.2f} ms a step (range of 3 launches" in page
    assert f"{ratio:.2f}× as fast as pytorch on cpu in fp32 (95 % interval" in page


def test_what_changed_is_told_by_the_verdicts_of_check(tmp_path):
    database = two_engines(tmp_path / "two.duckdb")
    later = {"started_at": "2026-01-05T03:04:05.000000Z"}
    store(database, "later", *launches(ms=24.0, **later))
    page = overview(visitor(database))
    assert re.search(r"became worse.*?href=\"/cell/.*?accelbench check --rerun", page, re.DOTALL)
    page = plain(page)
    assert "Worse than the baseline: 1 worse" in page


def test_a_newest_run_that_is_not_judged_is_not_said_to_be_the_first(tmp_path, monkeypatch):
    """Of more results than are compared with each other at once there is no check."""
    database = stored_in(
        tmp_path / "many.duckdb", *launches(ms=8.0, started_at="2026-01-01T00:00:00Z"), run="then"
    )
    store(database, "now", *launches(ms=8.0, started_at="2026-02-01T00:00:00Z"))
    assert "not compared with" not in overview(visitor(database))
    monkeypatch.setattr(baselines, "rows_of", partial(baselines.rows_of, most=2))
    page = plain(overview(visitor(database)))
    assert "Nothing of the newest run was measured before" not in page
    assert "is not compared with what was measured before it: More than 2 results" in page


def test_what_is_unsteady_is_told_apart_by_more_than_its_name(tmp_path):
    database = stored_in(tmp_path / "threads.duckdb")
    rows = [
        row
        for threads in (1, 2)
        for row in launches(ms=8.0, threads=threads, quality="unsteady", series_key=f"s{threads}")
    ]
    store(database, "r", *rows)
    page = plain(overview(visitor(database)))
    section = page[page.index(" Unsteady ") :]
    assert "batch 1 seq 128 threads 1 unsteady" in section
    assert "batch 1 seq 128 threads 2 unsteady" in section


def test_a_store_with_nothing_to_say_says_so(tmp_path, empty):
    database = stored_in(tmp_path / "one.duckdb", *launches(ms=8.0), run="one")
    assert "Nothing here says enough for a finding" in overview(visitor(database))
    page = overview(empty)
    assert "Nothing is measured here yet" in page
    assert "accelbench run --set small" in page


def test_other_machines_of_the_store_have_a_way_in(site):
    page = overview(site)
    ((address, name, cells),) = re.findall(
        r'<a href="(/results\?machine=[^"]+)"><bdi>([^<]+)</bdi></a> \((\d+) configuration', page
    )
    assert name.startswith("office")
    assert f"{cells} configuration" in plain(site.get(address).text)


def test_an_old_address_with_filters_leads_to_the_results(tmp_path):
    site = visitor(two_engines(tmp_path / "two.duckdb"))
    answer = site.get("/?runtime=pytorch", follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (307, "/results?runtime=pytorch")


def test_a_run_that_goes_on_is_there_with_its_last_case_and_about_how_long(tmp_path):
    database = two_engines(tmp_path / "two.duckdb")
    site = visitor(database)
    with Journal.create(database.journals, "now") as journal:
        begin(journal, "now", plan=[{}] * 10, settings={"launches": 2})
        for n in range(4):
            row = result(launch=n, finished_at=f"2026-01-02T03:{4 + 3 * n:02}:00.000000Z")
            journal.append(Fact(RESULT, f"now-{n}", row))
        page = plain(overview(site))
        assert "now 4 of 20 launches · about 48 minutes left last: bert-tiny pytorch/cpu" in page
    assert "minutes left" not in plain(overview(site))


def test_durations_are_told_as_people_do():
    assert [duration(s) for s in (0.2, 40, 130, 7300)] == [
        "1 second",
        "40 seconds",
        "2 minutes",
        "2 hours",
    ]

"""The page of histories: what changed comes first, and each line is found by any of its names."""

from __future__ import annotations

import json
import re
import time
from html import unescape
from pathlib import Path
from urllib.parse import urlencode

import pytest
from dashboard_world import result, store, stored_in, visitor
from starlette.testclient import TestClient
from typer.testing import CliRunner

from accelbench.api.comparing import HistoryTable
from accelbench.cli.main import app
from accelbench.judge.verdicts import METRICS
from accelbench.present.dashboard import history_changes
from accelbench.present.dashboard.history_changes import ChangesKeeper, judged_lines
from accelbench.present.dashboard.snapshot import taken
from accelbench.present.dashboard.words import change
from accelbench.present.series import series_in
from accelbench.present.terminal.documents import show
from accelbench.present.terminal.history import document, history_document
from accelbench.store.database import Database

#: Of each line its factor from the fourth run on, and how many days later than others it ends.
LINES = {
    "alike": (1.0, 0),
    "better": (0.5, 0),
    "much": (3.0, 0),
    "new": (1.0, 1),
    "worse": (1.5, 0),
}
NIGHTS = 6


def nightly(path: Path) -> Database:
    """Lines whose names say what became of them."""
    database = stored_in(path)
    for night in range(NIGHTS):
        store(
            database,
            f"night-{night}",
            *(
                result(
                    model=name,
                    launch=launch,
                    latency_p50_ms=(factor if night > 2 else 1.0) * (8.0 + 0.01 * launch),
                    device_name=f"Board {name}",
                    device_fingerprint=name,
                    started_at=f"2026-01-{night + 2 + later:02}T03:04:05.000000Z",
                )
                for name, (factor, later) in LINES.items()
                for launch in range(3)
            ),
        )
    return database


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Database:
    return nightly(tmp_path_factory.mktemp("history") / "results.duckdb")


@pytest.mark.parametrize(
    ("levels", "said"),
    [
        # A newest run that is off: worse, as a check has it, and not known to stay.
        ((*[1.0] * 8, 4.2), "worse by the newest run alone, +320.0% beside those before it; one"),
        # The first was faster by far, and the last step took back a part of what was lost.
        ((0.6, *[1.07] * 8, *[1.0] * 8), "better; but the newest run is +66.7% beside the first"),
    ],
)
def test_one_line_has_one_answer_on_the_page_in_a_notebook_and_in_a_terminal(
    tmp_path, levels, said, capsys
):
    database = stored_in(tmp_path / "one.duckdb")
    for night, level in enumerate(levels):
        moment = f"2026-01-{night + 2:02}T03:04:05.000000Z"
        launches = [
            result(launch=n, latency_p50_ms=level * (8.0 + 0.001 * n), started_at=moment)
            for n in range(5)
        ]
        store(database, f"night-{night}", *launches)
    ((series,), _) = series_in(database, METRICS[0], "true", [], 0.03)
    show(history_document([series], {}, 0, "here"))
    table = HistoryTable([document(series)])
    page = visitor(database).get("/history").text
    assert series.said.startswith(said)
    for shown in (page, capsys.readouterr().out, repr(table), table._repr_html_()):
        assert said[1:] in " ".join(unescape(re.sub("<[^>]+>", "", shown)).split())
        assert "came back" not in shown
    assert f'class="worse">{said[:5].capitalize()}' in page or said.startswith("better")


@pytest.fixture(scope="module")
def site(database: Database) -> TestClient:
    made = visitor(database)
    for _ in range(600):
        if "being worked out" not in made.get("/history").text:
            break
        time.sleep(0.05)
    return made


def models(site: TestClient, **asked: str) -> list[str]:
    """The models of the page's lines, in their order."""
    table = site.get(f"/history?{urlencode(asked)}").text.partition("<tbody>")[2]
    return re.findall(r'<th scope="row"><a [^>]*><bdi>([^<]+)<', table.partition("</tbody>")[0])


def test_the_page_of_histories(site, database):
    assert models(site) == ["much", "worse", "better", "new", "alike"]
    # The page counts series as the command does.
    done = CliRunner().invoke(app, ["history", "--json", "--db", str(database.path)])
    counts = json.loads(done.stdout)["answers"]
    said = ", ".join(f"{count} {answer}" for answer, count in counts.items())
    page = " ".join(re.sub("<[^>]+>", " ", site.get("/history").text).split())
    assert f"measured in more than one run: {said}" in page
    # The newest and the names are orders too.
    assert models(site, order="newest")[0] == "new"
    assert models(site, order="name") == sorted(LINES)
    assert site.get("/history?order=beauty").status_code == 400
    # A line is found by its model its device and its engine.
    assert models(site, search="Board worse") == ["worse"]
    assert models(site, search="PYTORCH much") == ["much"]
    assert models(site, search="openvino") == []
    assert models(site, search="%") == []
    # Links keep the figure the order and the search.
    page = site.get("/history?metric=throughput&order=name&search=board&hardware=cpu").text
    links = re.findall(
        r'href="(/history[^"]*)"', page.partition('aria-label="Figure and order"')[2]
    )
    assert "/history?hardware=cpu&amp;order=name&amp;search=board" in links  # the usual figure
    assert "/history?hardware=cpu&amp;metric=throughput&amp;search=board" in links
    form = page.partition('role="search"')[2].partition("</form>")[0]
    for name, value in (("hardware", "cpu"), ("metric", "throughput"), ("order", "name")):
        assert f'<input type="hidden" name="{name}" value="{value}">' in form
    page = site.get("/history").text
    assert "`" not in page


def test_a_store_that_changes_is_judged_a_tenth_of_the_time(database, monkeypatch):
    judged: list[str] = []

    def slow(*arguments: object) -> history_changes.JudgedLines:
        judged.append("once")
        time.sleep(0.05)
        return judged_lines(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(history_changes, "judged_lines", slow)
    keeper = ChangesKeeper(database)
    first, second = (taken(database, moment) for moment in ("1", "2"))
    known = keeper.of(first, "latency", 30.0)
    assert known is not None
    assert (known.at, len(known.changed)) == ("1", 3)
    # The next is not judged at once; what is known of the one before is told meanwhile.
    assert keeper.of(second, "latency", 30.0) is known
    assert judged == ["once"]


def test_lines_that_cannot_be_judged_are_shown_with_the_reason(database, monkeypatch):
    def broken(*_: object) -> None:
        raise OSError("the disk is gone")

    monkeypatch.setattr(history_changes, "judged_lines", broken)
    site = visitor(database)
    page = site.get("/history").text
    for _ in range(200):
        if "being worked out" not in page:
            break
        time.sleep(0.02)
        page = site.get("/history").text
    assert "What changed cannot be said: <bdi>the disk is gone</bdi>" in page
    assert models(site)[0] == "new"


def test_what_all_lines_are_is_said_once(tmp_path):
    """A badge stood on each of twelve rows, and in each field of a pivot."""
    database = stored_in(tmp_path / "theirs.duckdb")
    theirs = {"provenance": "imported", "conditions": {"source": {"name": "s"}}}
    for night in range(2):
        moment = f"2026-01-{night + 2:02}T03:04:05.000000Z"
        models_ = [result(model=name, started_at=moment, **theirs) for name in ("a", "b")]
        store(database, f"night-{night}", *models_)
    site = visitor(database)
    for address in (
        "/history?order=name",
        "/results?group=model&group=runtime&as=pivot",
        "/results?group=model",
        "/engines",
        "/devices",
    ):
        table = site.get(address).text.partition("<table")[2].partition("</table>")[0]
        assert "badge kind" not in table, address
        assert "all imported" in table or "all of the best imported" in table, address
    page = site.get("/history?order=name").text
    assert page.count("Not judged: 2 of the 4 runs that this needs") == 2
    assert page.count("judged from its fourth run on") == 1
    # Of most it is said once too, and what is none of them says so in its field.
    store(database, "own", result(model="a", device_name="Mine", device_fingerprint="mine"))
    mixed = visitor(database).get("/results?group=model&group=device&as=pivot").text
    table = mixed.partition("<table")[2].partition("</table>")[0]
    assert "all imported but those that say something else" in table
    assert re.findall(r"badge kind (\w+)", table) == ["measured"]


def test_a_change_of_many_times_is_no_percentage():
    assert [change(share) for share in (0.0501, -0.92, 9.5, 58.459)] == [
        "+5.0 %",
        "-92.0 %",
        "+950.0 %",
        "59×",
    ]


def test_runs_and_series_that_are_not_in_a_line_are_named(tmp_path):
    database = stored_in(tmp_path / "left.duckdb")
    for day in range(5):
        moment = f"2026-03-{day + 1:02d}T03:04:05+00:00"
        more = {"quality": "unusable", "unexplained_share": 0.7} if day == 2 else {}
        store(database, f"r{day}", result(series_key="s", threads=2, started_at=moment, **more))
    alone = result(series_key="t1", case_id="t1", threads=1, started_at="2026-03-06T03:04:05+00:00")
    store(database, "alone", alone)
    page = visitor(database).get("/history?order=name").text
    assert page.count('class="left-out"') == 1
    assert 'href="/run/r2"' in page
    assert "more than half of the measured time is in no step" in page
    assert "threads 1" in page

"""One interval: whatever sets two figures beside each other knows of the same older runs."""

from __future__ import annotations

import html
import json
import re
from typing import Any

import pytest
from asked_store import keys_of, said
from dashboard_world import MACHINE, result, store, visitor

from accelbench.judge.run_noise import Histories
from accelbench.judge.summary import summary
from accelbench.present.chart_data import subject_in
from accelbench.store.database import Database

GPU = {"hardware": "cuda", "device_name": "A card", "device_fingerprint": "f2"}
#: From run to run the processor takes from half to twice the time.
RUNS = (6.0, 12.0, 5.0, 11.0, 6.5, 13.0, 5.5, 8.0)


def launches(middle: float, day: int, **changes: Any) -> list[dict[str, Any]]:
    found = []
    for n in range(5):
        step = middle * (1 + 0.002 * (n - 2))
        figures = {"latency_p50_ms": step, "latency_mean_ms": step, "throughput": 1e3 / step}
        when = f"2026-02-{day:02} 00:00:0{n}"
        found.append(result(launch=n, started_at=when, **figures, **changes))
    return found


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Database:
    made = Database(tmp_path_factory.mktemp("interval") / "interval.duckdb")
    made.ensure()
    for day, middle in enumerate(RUNS, 1):
        series = {"series_key": "of the cpu", "model": "bert-tiny"}
        store(made, f"r{day}", *launches(middle, day, **series), machine=MACHINE)
    other = launches(6.0, 20, series_key="of the card", **GPU)
    neighbour = launches(6.0, 20, series_key="a neighbour", model="vit-tiny", **GPU)
    store(made, "card", *other, *neighbour, machine=MACHINE)
    return made


def of_the_card(database: Database, *words: str) -> dict[str, Any]:
    """The line of the one model that was measured on both."""
    lines = json.loads(said(database, "compare", *words, "--json"))["comparisons"]
    (line,) = [one for one in lines if one["hardware"] == "cuda" and one["model"] == "bert-tiny"]
    return dict(line)


def test_one_interval_everywhere(database):
    # Runs that differ leave little to be told.
    line = of_the_card(database)
    assert line["speedup"] is None
    assert line["cannot_tell"]
    assert of_the_card(database) == of_the_card(database, "bert-tiny")
    assert of_the_card(database) == of_the_card(database, "--precision", "fp32")
    # A page has the interval of the table.
    line = of_the_card(database)
    page = visitor(database)
    text = page.get("/results?model=bert-tiny&sort=hardware").text
    first, second = dict.fromkeys(re.findall(r'href="/cell/([0-9a-f]{16})"', text))
    told = page.get(f"/compare?cell={first}&cell={second}").text
    assert f"{line['speedup_low']:.3g}" in told
    assert f"{line['speedup_high']:.3g}" in told
    assert line["direction"] in html.unescape(told)
    # A report does not tell it.
    subject = subject_in(database, {}, None)
    (line,) = [
        one
        for one in summary(subject.rows, subject.points, subject.known)
        if one.startswith("bert-tiny")
    ]
    assert "cannot be told" in line
    alone = summary(subject.rows, subject.points, Histories())
    assert not any("cannot be told" in one for one in alone)


@pytest.mark.parametrize(("step", "direction"), [(0.2, "faster"), (400.0, "slower")])
def test_terminal_page_and_json_agree_on_a_side_without_a_factor(tmp_path, step, direction):
    """The interval spans more than a factor of two, and 1 is not within it."""
    made = Database(tmp_path / "wide.duckdb")
    made.ensure()
    for day, middle in enumerate(RUNS, 1):
        series = {"series_key": "of the cpu", "model": "bert-tiny"}
        store(made, f"r{day}", *launches(middle, day, **series), machine=MACHINE)
    store(made, "card", *launches(step, 20, series_key="of the card", **GPU), machine=MACHINE)
    line = of_the_card(made)
    assert line["speedup"] is None
    assert line["direction"] == direction
    page = visitor(made)
    first, second = keys_of(made)
    told = page.get(f"/compare?cell={first}&cell={second}").text
    assert re.search(rf'data-label="Speed">\s*{direction}', told)
    terminal = said(made, "compare")
    assert f"{direction} (" in terminal
    assert "can't tell (" not in terminal


def test_a_table_of_engines_marks_what_may_be_as_fast(tmp_path):
    made = Database(tmp_path / "engines.duckdb")
    made.ensure()
    for day, middle in enumerate(RUNS, 1):
        store(made, f"r{day}", *launches(middle, day, series_key="torch"), machine=MACHINE)
    ort = launches(6.0, 20, series_key="ort", runtime="onnxruntime")
    store(made, "ort", *ort, machine=MACHINE)
    (pivot,) = json.loads(said(made, "compare", "--pivot", "--json"))["pivots"]
    marks = {line["runtime"]: json.dumps(line) for line in pivot["lines"]}
    assert '"best": true' in marks["onnxruntime"]
    assert '"may_be_as_fast": true' in marks["pytorch"]


def test_a_recommendation_knows_of_runs_that_differ(database, tmp_path):
    words = ("recommend", "bert-tiny", "--hardware", "cpu,cuda", "--json")
    (found,) = json.loads(said(database, *words))["recommendations"]
    assert set(found["no_clear_winner_between"]) == {"cpu", "cuda"}
    alone = Database(tmp_path / "alone.duckdb")
    alone.ensure()
    store(alone, "r1", *launches(8.0, 8, series_key="of the cpu"), machine=MACHINE)
    store(alone, "card", *launches(6.0, 20, series_key="of the card", **GPU), machine=MACHINE)
    (found,) = json.loads(said(alone, *words))["recommendations"]
    assert found["no_clear_winner_between"] == []

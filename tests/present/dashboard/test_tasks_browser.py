"""Twelve tasks of a visitor, each from the first page to a figure that is SQL's.

Everything is looked for by its role and label alone, as somebody does who cannot see the page; each
task is done with a mouse, and again by keyboard alone.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from dashboard_world import result, served, store, stored_in
from entity_store import FAST, FIVE, SLOW, card, launches
from playwright.sync_api import Locator, Page, expect

from accelbench.core.formatting import format_digits, format_value
from accelbench.store.database import Database

#: Milliseconds of a step on the slow card, the fast card, and the fast card by another engine.
TIMES = {"bert-tiny": (8.0, 2.0, 1.6), "vit-tiny": (6.0, 3.0, 2.0), "resnet-tiny": (4.0, 5.0, 4.5)}
#: More models than a page of the table has.
_MANY = 110
_MOST_TABS = 400
#: A machine that is busy draws a page in more than the five seconds that are usual.
expect.set_options(timeout=20_000)
_FOCUSED = "element => element === document.activeElement"


class Mouse:
    """A hand on a mouse, and letters where a field wants them."""

    def __init__(self, page: Page) -> None:
        self.page = page

    def press(self, at: Locator) -> None:
        """A link, a button, a box."""
        at.click()

    def write(self, at: Locator, text: str) -> None:
        """Into a field."""
        at.click()
        self.page.keyboard.type(text)

    def choose(self, at: Locator, value: str) -> None:
        """One of a list."""
        at.select_option(value)


class Keyboard(Mouse):
    """No mouse: Tab to a thing, then Enter, Space, arrows or letters."""

    def reach(self, at: Locator) -> None:
        """Go to it as far as Tab goes."""
        at.wait_for(state="attached")
        for _ in range(_MOST_TABS):
            if at.evaluate(_FOCUSED):
                return
            self.page.keyboard.press("Tab")
        raise AssertionError(f"the keyboard does not come to {at}")

    def press(self, at: Locator) -> None:
        self.reach(at)
        is_box = at.evaluate("element => element.type === 'checkbox'")
        self.page.keyboard.press("Space" if is_box else "Enter")

    def write(self, at: Locator, text: str) -> None:
        self.reach(at)
        self.page.keyboard.type(text)

    def choose(self, at: Locator, value: str) -> None:
        self.reach(at)
        self.page.keyboard.press("Home")
        for _ in range(at.locator("option").count()):
            if at.input_value() == value:
                return
            self.page.keyboard.press("ArrowDown")
        assert at.input_value() == value


def filled(path: Path) -> Database:
    """Two cards and two engines, a series that became slower, many models, a failure."""
    database = stored_in(path)
    rows: list[dict[str, Any]] = []
    for model, (slow, fast, other) in TIMES.items():
        rows += launches(slow, model=model, **card(SLOW))
        rows += launches(fast, model=model, **card(FAST))
        rows += launches(other, model=model, runtime="onnxruntime", **card(FAST))
    rows += [
        result(model=f"net-{n:03}", latency_p50_ms=10.0 + n, throughput=1e3 / (10.0 + n))
        for n in range(_MANY)
    ]
    rows.append(
        result(
            model="broken-tiny",
            status="failed",
            reason="fallback",
            message="It ran somewhere else.",
            advice="Look at the device.",
        )
    )
    rows += launches(3.0, model="shaky-tiny", quality="unsteady", task="feature-extraction")
    store(database, "first", *rows)
    for night in range(6):
        ms = 8.0 if night < 3 else 12.0
        moment = f"2026-01-{night + 2:02}T03:04:05.000000Z"
        night_rows = launches(ms, FIVE, model="nightly-tiny", started_at=moment)
        store(database, f"night-{night}", *night_rows, started_at=moment)
    return database


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Database:
    return filled(tmp_path_factory.mktemp("tasks") / "results.duckdb")


@pytest.fixture(scope="module")
def address(database: Database) -> Iterator[str]:
    with served(database) as one:
        yield one


class Visit:
    """Somebody at the dashboard with a task."""

    def __init__(self, page: Page, hand: Mouse, database: Database, folder: Path) -> None:
        self.page, self.hand, self.database, self.folder = page, hand, database, folder

    def role(self, name: Any, label: str | re.Pattern[str], whole: bool = True) -> Locator:
        """What has this role and label, the first of several."""
        exact = whole and isinstance(label, str)
        return self.page.get_by_role(name, name=label, exact=exact).first

    def field(self, label: str) -> Locator:
        """A field by its label."""
        return self.page.get_by_label(label, exact=True).first

    def labelled(self, label: str) -> Locator:
        """A field whose label has it within."""
        return self.page.get_by_label(label).first

    def to(self, name: str) -> None:
        """A page of the menu."""
        menu = self.page.get_by_role("navigation", name="Pages")
        self.hand.press(menu.get_by_role("link", name=name, exact=True))
        expect(self.role("heading", name)).to_be_visible()

    def says(self, text: str) -> None:
        """Wait until the page says so."""
        expect(self.page.get_by_role("main")).to_contain_text(text)

    def cells(self, region: str, row: str) -> list[str]:
        """The texts of the first row of a table that has this in it."""
        found = self.role("region", region).get_by_role("row").filter(has_text=row).first
        expect(found).to_be_visible()
        texts = found.locator("th, td").all_inner_texts()
        return [" ".join(text.split()) for text in texts]

    def ask(self, sql: str, *values: object) -> Any:
        """SQL's answer: its only value."""
        ((value,),) = self.database.query(sql, list(values))[1]
        return value

    def saved(self, link: Locator) -> Path:
        """What a link has the browser save."""
        with self.page.expect_download() as begun:
            self.hand.press(link)
        path = self.folder / "saved"
        begun.value.save_as(path)
        return path


_TIME = (
    "SELECT exp(avg(ln(latency_mean_ms))) FROM benchmark_results"
    " WHERE model = ? AND device_name = ? AND runtime = ?"
)


def the_fastest_configuration_of_a_model(visit: Visit) -> None:
    visit.to("Models")
    visit.hand.write(visit.field("Name contains"), "vit-tiny")
    visit.hand.press(visit.role("button", "Search"))
    visit.says("1 model")
    visit.hand.press(visit.role("link", "vit-tiny"))
    expect(visit.role("heading", "vit-tiny")).to_be_visible()
    engine = visit.ask(
        "SELECT runtime FROM benchmark_results WHERE model = 'vit-tiny'"
        " GROUP BY runtime, device_name ORDER BY avg(latency_mean_ms) LIMIT 1"
    )
    ms = visit.ask(_TIME, "vit-tiny", FAST, engine)
    visit.says(f"{engine} on {FAST} in fp32, {format_digits(ms)} ms a step")


def two_engines_over_all_common_models(visit: Visit) -> None:
    visit.to("Engines")
    engines = (
        visit.page.get_by_role("main")
        .locator("form")
        .filter(has=visit.page.get_by_role("button", name="Compare engines"))
    )
    visit.hand.choose(engines.get_by_label("Compare"), "onnxruntime")
    visit.hand.choose(engines.get_by_label("with"), "pytorch")
    visit.hand.press(visit.role("button", "Compare engines"))
    expect(visit.role("heading", "Engine against engine")).to_be_visible()
    ratio = visit.ask(
        "SELECT median(ratio) FROM (SELECT avg(latency_mean_ms) FILTER (runtime = 'pytorch')"
        " / avg(latency_mean_ms) FILTER (runtime = 'onnxruntime') AS ratio"
        " FROM benchmark_results WHERE device_name = ? GROUP BY model)",
        FAST,
    )
    visit.says(
        f"onnxruntime is {format_digits(ratio)}× as fast as pytorch in the median of 3 common"
    )


def whether_the_last_run_became_slower(visit: Visit) -> None:
    visit.to("Runs")
    visit.hand.press(visit.role("link", "Run against run"))
    visit.hand.choose(visit.page.get_by_label("Check"), "night-3")
    visit.hand.choose(visit.page.get_by_label("against"), "night-2")
    visit.hand.press(visit.role("button", "Compare runs"))
    visit.says("1 worse")
    cells = visit.cells("Table of figures", "nightly-tiny")
    figures = "SELECT exp(avg(ln(latency_p50_ms))) FROM benchmark_results WHERE run_id = ?"
    assert cells[1].startswith("worse")
    assert cells[3:5] == [format_value(visit.ask(figures, run)) for run in ("night-2", "night-3")]


def the_samples_of_a_configuration_and_where_it_ran(visit: Visit) -> None:
    visit.to("Results")
    visit.hand.write(visit.field("Model"), "net-007")
    expect(visit.role("status", re.compile(""))).to_contain_text("1 configuration")
    rows = list(csv.DictReader(visit.saved(visit.role("link", "CSV")).open(encoding="utf-8")))
    assert [row["model"] for row in rows] == ["net-007"]
    visit.hand.press(visit.role("link", "net-007"))
    expect(visit.role("heading", "Where it ran")).to_be_visible()
    expect(visit.role("region", "Where it ran")).to_contain_text("cpu:0")
    document = json.loads(visit.saved(visit.role("link", "JSON with every sample")).read_text())
    (launch,) = document["launches"]
    kept = visit.ask(
        "SELECT count(*) FROM raw_benchmark_data JOIN benchmark_results USING (result_id)"
        " WHERE model = 'net-007'"
    )
    assert kept
    assert launch["samples_ms"] == [7.9, 8.0, 8.1]


def hardware_for_a_model_under_a_limit(visit: Visit) -> None:
    visit.to("Recommend")
    visit.hand.write(visit.field("Model"), "resnet-tiny")
    visit.hand.write(visit.field("Latency of a step, ms, at most"), "4.25")
    visit.hand.press(visit.role("button", "Recommend"))
    expect(visit.role("heading", "Answer")).to_be_visible(timeout=60_000)
    cells = visit.cells("Figures of the answer", "resnet-tiny")
    assert cells[2:4] == [SLOW, "pytorch"]
    assert format_value(visit.ask(_TIME, "resnet-tiny", SLOW, "pytorch")) in cells
    answer = visit.role("region", "Figures of the answer")
    fits = visit.ask(
        "SELECT count(*) FROM (SELECT max(latency_mean_ms) AS ms FROM benchmark_results"
        " WHERE model = 'resnet-tiny' GROUP BY series_key, device_name, runtime) WHERE ms <= 4.25"
    )
    expect(answer.get_by_role("row")).to_have_count(1 + fits)


def a_prediction_of_a_batch_that_was_never_measured(visit: Visit) -> None:
    visit.to("Predict")
    visit.hand.write(visit.field("Model"), "bert-tiny")
    visit.hand.write(visit.field("Hardware"), "cuda")
    visit.hand.write(visit.field("Batch sizes"), "2")
    visit.hand.press(visit.role("button", "Predict"))
    expect(visit.role("heading", "Answer")).to_be_visible(timeout=60_000)
    assert visit.ask("SELECT count(*) FROM benchmark_results WHERE batch_size = 2") == 0
    cells = visit.cells("Figures of the answer", "bert-tiny")
    visit.hand.press(visit.role("link", "As JSON"))
    expect(visit.page.locator("body")).to_contain_text("predictions")
    told = json.loads(visit.page.locator("body").inner_text())["predictions"][0]
    assert told["batch_size"] == 2
    assert format_value(told["latency_ms"]) in cells
    assert format_value(told["latency_low_ms"]) in cells


def the_history_of_a_series(visit: Visit) -> None:
    visit.to("History")
    cells = visit.cells("What changed", "nightly-tiny")
    ends = [
        visit.ask("SELECT median(latency_mean_ms) FROM benchmark_results WHERE run_id = ?", run)
        for run in ("night-0", "night-5")
    ]
    assert cells[1:3] == ["6", format_value(ends[0])]
    assert cells[3].startswith(format_value(ends[1]))
    assert f"Worse: {(ends[1] / ends[0] - 1.0) * 100:+.1f} % since 2026-01-05" in cells[4]


def what_is_unsteady_or_failed_and_why(visit: Visit) -> None:
    expect(visit.role("region", "Unsteady")).to_contain_text("shaky-tiny")
    expect(visit.role("region", "Unsteady")).to_contain_text("changed while it was measured")
    visit.to("Results")
    visit.hand.press(visit.page.get_by_role("checkbox", name=re.compile("^failed")))
    expect(visit.role("status", re.compile(""))).to_contain_text("1 configuration")
    assert visit.ask("SELECT count(*) FROM benchmark_results WHERE status = 'failed'") == 1
    visit.hand.press(visit.role("link", "broken-tiny"))
    visit.says("It ran somewhere else.")
    visit.says("Look at the device.")


def models_by_engines_as_a_view_that_is_kept(visit: Visit) -> None:
    visit.to("Results")
    visit.hand.press(visit.page.get_by_text("Groups: none"))
    visit.hand.choose(visit.labelled("Group by"), "model")
    expect(visit.role("region", "Groups")).to_be_visible()
    visit.hand.choose(visit.labelled("and by"), "runtime")
    visit.says("Groups: model, then runtime")
    visit.hand.choose(visit.labelled("Layout"), "pivot")
    expect(visit.role("region", "Pivot")).to_be_visible()
    visit.hand.press(visit.page.get_by_text("Save this view"))
    visit.hand.write(visit.field("Name"), "by engine")
    visit.hand.press(visit.role("button", "Save"))
    expect(visit.role("heading", "Results: by engine")).to_be_visible()
    kept = visit.page.url
    visit.page.goto("about:blank")
    visit.page.goto(kept)
    expect(visit.role("heading", "Results: by engine")).to_be_visible()
    cells = visit.cells("Pivot", "bert-tiny")
    for engine in ("onnxruntime", "pytorch"):
        best = format_value(visit.ask(_TIME, "bert-tiny", FAST, engine))
        assert sum(cell.split()[0] == best for cell in cells[1:]) == 1, engine


def three_of_two_pages_beside_each_other(visit: Visit) -> None:
    visit.to("Results")
    chosen = ["net-000", "net-105", "net-030"]
    by_model = "Choose {}, "
    visit.hand.press(visit.role("link", re.compile("^Median latency")))
    expect(visit.role("columnheader", re.compile("^Median latency"))).to_have_attribute(
        "aria-sort", "ascending"
    )
    visit.hand.press(visit.role("checkbox", by_model.format(chosen[0]), whole=False))
    expect(visit.role("heading", re.compile("^Chosen: 1"))).to_be_visible()
    visit.hand.press(visit.role("link", re.compile("^Next")))
    visit.hand.press(visit.role("checkbox", by_model.format(chosen[1]), whole=False))
    expect(visit.role("heading", re.compile("^Chosen: 2"))).to_be_visible()
    # A choice does not turn the page back.
    expect(visit.role("checkbox", by_model.format(chosen[1]), whole=False)).to_be_visible()
    assert "page=2" in visit.page.url
    visit.hand.write(visit.field("Model"), chosen[2])
    expect(visit.role("status", re.compile(""))).to_contain_text("1 configuration ")
    visit.hand.press(visit.role("checkbox", by_model.format(chosen[2]), whole=False))
    expect(visit.role("heading", re.compile("^Chosen: 3"))).to_be_visible()
    visit.hand.press(visit.role("button", "Compare"))
    expect(visit.role("heading", "Comparison")).to_be_visible()
    for model in chosen:
        ms = visit.ask("SELECT latency_mean_ms FROM benchmark_results WHERE model = ?", model)
        assert any(
            cell.split()[:1] == [format_value(ms)] for cell in visit.cells("Comparison", model)
        )


def a_point_of_the_front(visit: Visit) -> None:
    visit.to("Explore")
    cells = visit.cells("The front as a table", "bert-tiny")
    fastest = visit.ask(
        "SELECT min(ms) FROM (SELECT exp(avg(ln(latency_mean_ms))) AS ms FROM benchmark_results"
        " WHERE status = 'ok' GROUP BY series_key)"
    )
    assert format_value(fastest) in cells
    front = visit.role("region", "The front as a table")
    visit.hand.press(front.get_by_role("link", name="bert-tiny").first)
    expect(visit.role("heading", "Its launches")).to_be_visible()
    visit.says("onnxruntime on cuda")


def a_device_against_another_with_the_losers(visit: Visit) -> None:
    visit.to("Devices")
    devices = (
        visit.page.get_by_role("main")
        .locator("form")
        .filter(has=visit.page.get_by_role("button", name="Compare devices"))
    )
    visit.hand.choose(devices.get_by_label("Compare"), FAST)
    visit.hand.choose(devices.get_by_label("with"), SLOW)
    visit.hand.press(visit.role("button", "Compare devices"))
    expect(visit.role("heading", "Device against device")).to_be_visible()
    ratio = visit.ask(
        "SELECT median(slow / fast) FROM (SELECT min(ms) FILTER (device_name = ?) AS slow,"
        " min(ms) FILTER (device_name = ?) AS fast FROM (SELECT model, device_name,"
        " avg(latency_mean_ms) AS ms FROM benchmark_results GROUP BY model, device_name, runtime)"
        " GROUP BY model)",
        SLOW,
        FAST,
    )
    visit.says(f"{FAST} is {format_digits(ratio)}× as fast as {SLOW} in the median of 3 common")
    visit.says("Slower in resnet-tiny (fp32, batch 1) 0.")


TASKS: tuple[Callable[[Visit], None], ...] = (
    the_fastest_configuration_of_a_model,
    two_engines_over_all_common_models,
    whether_the_last_run_became_slower,
    the_samples_of_a_configuration_and_where_it_ran,
    hardware_for_a_model_under_a_limit,
    a_prediction_of_a_batch_that_was_never_measured,
    the_history_of_a_series,
    what_is_unsteady_or_failed_and_why,
    models_by_engines_as_a_view_that_is_kept,
    three_of_two_pages_beside_each_other,
    a_point_of_the_front,
    a_device_against_another_with_the_losers,
)


@pytest.mark.parametrize("hand", [Mouse, Keyboard], ids=["mouse", "keyboard alone"])
@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.__name__.replace("_", " "))
def test_a_visitor_comes_to(tab, address, database, tmp_path, task, hand):
    tab.look()
    tab.go(address)
    expect(tab.page.get_by_role("heading", name="Overview")).to_be_visible()
    task(Visit(tab.page, hand(tab.page), database, tmp_path))
    assert tab.complaints() == []

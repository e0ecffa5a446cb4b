from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from dashboard_world import MACHINE, OTHER, result, store, stored_in, visitor
from starlette.testclient import TestClient
from typer.testing import CliRunner

from accelbench.cli.main import app
from accelbench.core.protocols import Absent
from accelbench.core.unusable_reasons import REASON_TEXTS, UnusableReason
from accelbench.judge import machine_matrix
from accelbench.judge.machines import machine_of
from accelbench.present.charts import CHARTS
from accelbench.store.database import Database


def keys(page: str) -> list[str]:
    """Cells that a page leads to, in their order."""
    return list(dict.fromkeys(re.findall(r"/cell/([0-9a-f]{16})\"", page)))


def text(page: str) -> str:
    """What a page says, without its tags."""
    return " ".join(re.sub(r"<[^>]+>", " ", page).replace("&#39;", "'").split())


def count(page: str) -> str:
    return text(page.split('id="count"')[1].split("</p>")[0].partition(">")[2])


@pytest.mark.parametrize(
    ("address", "says"),
    [
        ("/", "configurations"),
        ("/results", "8 configurations"),
        ("/charts", "8 configurations"),
        ("/chart/pareto?model=bert", "Latency against throughput"),
        ("/chart/trend?hardware=webgpu", "There is nothing to show: it needs a question"),
        ("/history", "1 configuration was measured in more than one run"),
        ("/matrix", "1 model on lab"),
        ("/predictions", "Predictions are judged by 10 measured cases"),
        ("/runs", "8 runs"),
        ("/run/night-3", "Run night-3"),
        ("/compare", "Choose configurations first"),
    ],
)
def test_every_page_is_there(site, address, says):
    answer = site.get(address)
    assert answer.status_code == 200
    assert says in text(answer.text)
    assert answer.headers["content-type"] == "text/html; charset=utf-8"


def test_results_and_cells(site):
    # The results say what there is.
    page = site.get("/results").text
    assert count(page) == (
        "8 configurations · 2 models on 3 platforms · 4 measured, 1 emulated, 1 imported,"
        " 1 predicted, 1 simulated · 1 without figures"
    )
    assert len(keys(page)) == 8
    # A cell is the newest run by the middle of its launches.
    (found,) = [
        row
        for row in csv.DictReader(io.StringIO(site.get("/cells.csv").text))
        if row["runs"] == "6"
    ]
    assert (found["run_id"], found["launches"], found["answered"]) == ("night-5", "3", "3")
    assert float(found["latency"]) == pytest.approx(1.5 * 8.02)
    assert float(found["latency_low"]) == pytest.approx(1.5 * 8.01)
    # A machine is chosen by its id.
    page = site.get("/results").text
    ids = re.findall(r'name="machine" value="([0-9a-f]{8})"', page)
    sizes = [len(keys(site.get(f"/results?machine={one}").text)) for one in ids]
    assert sorted(sizes) == [1, 7]


@pytest.mark.parametrize(("bad", "said"), [(0, False), (1, False), (2, True), (3, True)])
def test_a_cell_that_is_unusable_says_so_beside_its_figure(tmp_path, bad, said):
    """As verdicts have it: where half of its launches or more are."""
    database = stored_in(tmp_path)
    words = ["unusable"] * bad + ["converged"] * (4 - bad)
    store(database, "r", *(result(launch=n, quality=word) for n, word in enumerate(words)))
    page = visitor(database).get("/results").text
    assert ('class="badge unusable"' in page) is said


@pytest.mark.parametrize(("unusable", "of"), [(1, 3), (3, 3)])
@pytest.mark.parametrize(
    ("column", "reason"),
    [
        ("latency_ci_high_ms", REASON_TEXTS[UnusableReason.TOO_NOISY]),
        ("cpu_wait_share", REASON_TEXTS[UnusableReason.WAITED]),
        ("unexplained_share", REASON_TEXTS[UnusableReason.UNACCOUNTED]),
    ],
)
def test_a_cell_names_the_reason_of_its_unusable_launches(tmp_path, column, reason, unusable, of):
    database = stored_in(tmp_path)
    bad = {"quality": "unusable", column: 0.7}
    launches = (result(launch=n, **(bad if n < unusable else {})) for n in range(of))
    store(database, "r", *launches)
    web = visitor(database)
    page = web.get("/results").text
    if unusable < of:
        page = web.get(f"/cell/{keys(page)[0]}").text
    assert reason in page


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("model=VIT", 1),
        ("model=%25", 0),
        ("hardware=cuda&hardware=webgpu", 4),
        ("status=failed", 1),
        ("from=2026-01-07", 1),
        ("to=2026-01-02", 7),
        ("from=2026-01-03&to=2026-01-06", 0),
        ("nothing=of-ours&hardware=", 8),
    ],
)
def test_filters_leave_what_was_asked_for(site, query, expected):
    page = site.get(f"/results?{query}").text
    assert len(keys(page)) == expected
    assert count(page).startswith(
        f"{expected} configuration" if expected else "No configuration matches"
    )
    rows = list(csv.DictReader(io.StringIO(site.get(f"/cells.csv?{query}").text)))
    assert len(rows) == expected


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ("hardware=abacus", "There is no hardware 'abacus'. Known: cpu, cuda, webgpu."),
        ("from=yesterday", "'yesterday' is not a day. Write one as 2026-01-31."),
        ("from=2026-02-01&to=2026-01-01", "2026-02-01 is after 2026-01-01."),
        ("sort=beauty", "There is no order 'beauty'. Known: model, hardware,"),
        ("page=0", "'0' is not a page. Pages are counted from 1."),
        ("page=%EF%BC%91", "is not a page."),
    ],
)
def test_a_wrong_value_is_told_with_those_there_are(site, query, sentence):
    for address in ("/results", "/charts", "/cells.csv"):
        answer = site.get(f"{address}?{query}")
        assert answer.status_code == 400
        assert sentence in text(answer.text)


def test_pages_of_the_site(site):
    # Order is what was asked for and said to whoever cannot see it.
    def latencies(query: str) -> list[float]:
        rows = csv.DictReader(io.StringIO(site.get(f"/cells.csv?{query}").text))
        return [float(row["latency"]) for row in rows if row["latency"]]

    rising, falling = latencies("sort=latency"), latencies("sort=-latency")
    assert rising == sorted(rising)
    assert falling == sorted(rising, reverse=True)
    page = site.get("/results?sort=-latency").text
    assert page.count("aria-sort=") == 1
    sorted_by = r'aria-sort="descending"><a href="/results\?sort=latency">Median latency'
    assert re.search(sorted_by, page)
    # What is no measurement is marked and emulated times are not told.
    page = site.get("/results").text
    for kind in ("imported", "simulated", "predicted", "emulated"):
        assert f'class="badge kind {kind}"' in page
    assert "no times: emulated" in page
    assert "no times" in page.split("webgpu")[-1]
    rows = csv.DictReader(io.StringIO(site.get("/cells.csv?provenance=emulated").text))
    assert [(row["latency"], row["throughput"], row["memory"]) for row in rows] == [
        ("", "", "100.0")
    ]
    assert "99" not in re.findall(r'class="figure[^>]*>([\d.,]+)', page)
    # A cell tells everything behind it.
    (key,) = keys(site.get("/results?from=2026-01-07").text)
    said = text(site.get(f"/cell/{key}").text)
    for words in (
        "12.0 ms",
        "pytorch on cpu · fp32 · batch 1 · seq 128",
        "devices cpu:0",
        "engine pytorch 2.13",
        "graph 1, 2",
        "latency_p99_ms needs an effective n of 1000",
        "accelbench run bert-tiny",
        "lab (A processor, 2 CPUs, 16 GiB)",
        "0123456789ab",
        "torch 2.13",
        "Worse: +50",
        "since 2026-01-05 03:04, commit 0123456789",
    ):
        assert words in said
    # A failed cell says why and what to do.
    (key,) = keys(site.get("/results?status=failed").text)
    said = text(site.get(f"/cell/{key}").text)
    assert "It ran somewhere else. Look at the device." in said
    # A cell as json has every sample.
    (key,) = keys(site.get("/results?from=2026-01-07").text)
    found = json.loads(site.get(f"/cell/{key}.json").text)
    assert [one["samples_ms"] for one in found["launches"]] == [[7.9, 8.0, 8.1]] * 3
    assert found["run"]["run_id"] == "night-5"
    # Cells are held against the first.
    (now,) = keys(site.get("/results?from=2026-01-07").text)
    (office,) = [k for k in keys(site.get("/results?hardware=cpu&to=2026-01-02").text) if k != now][
        -1:
    ]
    by_kind = {
        kind: keys(site.get(f"/results?provenance={kind}").text)[0]
        for kind in ("imported", "simulated", "emulated")
    }
    chosen = [now, office, *by_kind.values(), "0" * 16]
    said = text(site.get("/compare?" + "&".join(f"cell={one}" for one in chosen)).text)
    assert re.search("5 configurations, each compared with .*lab", said)
    assert "not compared: not alike: source" in said
    assert "not compared: simulated: not measured" in said
    assert "not compared: emulated: such times mean nothing" in said
    assert "1 configuration of this address is not there any more" in said
    assert "of different runs" not in said  # what is not compared has no ratio of any
    (now,) = keys(site.get("/results?from=2026-01-07").text)
    measured = keys(site.get("/results?hardware=cpu&provenance=measured").text)
    said = text(site.get("/compare?" + "&".join(f"cell={one}" for one in [now, *measured])).text)
    assert "of different runs" in said
    assert "accelbench compare prefers launches of one run" in said
    # History tells the step.
    said = text(site.get("/history").text)
    assert re.search(r"Worse: \+50\.\d % since 2026-01-05", said)
    assert "Better: " not in said
    throughput = text(site.get("/history?metric=throughput").text)
    assert re.search(r"Worse: -33\.\d % since 2026-01-05", throughput)
    assert site.get("/history?metric=beauty").status_code == 400
    # The matrix gives its reasons.
    ids = re.findall(r'name="machine" value="([0-9a-f]{8})"', site.get("/results").text)
    pages = [text(site.get(f"/matrix?machine={one}").text) for one in ids]
    assert any("compatible (emulated)" in page for page in pages)
    assert all("reason" in page for page in pages)
    # Every chart is shown and its figures are a table.
    page = site.get("/charts?model=bert").text
    needs = page.partition("Not drawn, and what each needs")[2]
    for name, chart in CHARTS.items():
        offered = f'src="/chart/{name}.svg?model=bert"' in page
        assert offered is (f'href="/chart/{name}?model=bert"' in page)
        assert offered is not (f"<dt>{chart.title}</dt>" in needs)
    figures = site.get("/chart/hardware-latency?model=bert").text
    assert "<caption>How fast each platform is</caption>" in figures
    assert "imported" in text(figures.split("<tbody>")[1])
    # Filters go from page to page.
    page = site.get("/results?hardware=cuda&model=bert").text
    for address in ("/charts", "/history", "/matrix"):
        assert f'href="{address}?model=bert&amp;hardware=cuda"' in page


def test_what_all_launches_were_warned_of_is_said_once(tmp_path):
    database = stored_in(tmp_path / "w.duckdb")
    words = ["few iterations", "slower by {} %"]
    several = [[one.format(n) for one in words] for n in range(5)]
    store(database, "r", *(result(launch=n, warnings=one) for n, one in enumerate(several)))
    site = visitor(database)
    (key,) = keys(site.get("/results").text)
    page = text(site.get(f"/cell/{key}").text)
    assert page.count("few iterations") == page.count("slower by 0 to 4 %") == 1


def history(tmp_path: Path, *runs: Mapping[str, Any]) -> TestClient:
    """The dashboard of a series with a run a day, each with its own columns."""
    database = stored_in(tmp_path)
    usual = {"series_key": "s", "case_id": "c", "latency_p50_ms": 10.0}
    for day, changes in enumerate(runs, 1):
        moment = f"2026-01-{day:02}T00:00:00.000000Z"
        store(database, f"run-{day}", result(**{**usual, "started_at": moment, **changes}))
    return visitor(database)


@pytest.mark.parametrize("form", ["svg", "png", "html"])
@pytest.mark.parametrize("name", ["hardware-latency", "latency-distribution", "trend"])
def test_charts_are_files(site, name, form):
    answer = site.get(f"/chart/{name}.{form}?model=bert")
    assert answer.status_code == 200
    starts = {"svg": b"<svg", "png": b"\x89PNG", "html": b"<!doctype html>"}
    assert answer.content.startswith(starts[form])
    assert b"nothing to show" not in answer.content
    kept = answer.headers.get("content-disposition", "")
    assert kept == (f'attachment; filename="{name}.html"' if form == "html" else "")


def test_a_chart_without_anything_to_show_says_so(site):
    answer = site.get("/chart/trend.svg?hardware=webgpu")
    assert (answer.status_code, "nothing to show" in answer.text) == (200, True)
    assert site.get("/chart/trend.png?hardware=webgpu").status_code == 404


@pytest.mark.parametrize(
    "address",
    ["/nothing", "/cell/0123456789abcdef", "/run/none", "/chart/trend.exe", "/cell/x.json"],
)
def test_what_is_not_there_is_said_in_a_sentence(site, address):
    answer = site.get(address)
    assert answer.status_code == 404
    assert re.search(r"(There is no such|A chart is an)[^<]*\.", answer.text)


def test_an_empty_database_says_what_to_run(empty):
    for address in ("/results", "/runs"):
        assert "accelbench run --set small" in empty.get(address).text
    for address in ("/charts", "/history", "/matrix", "/compare", "/cells.csv"):
        assert empty.get(address).status_code == 200


def test_a_page_says_of_how_many_launches_steps_are_drawn(tmp_path):
    database = stored_in(tmp_path / "many.duckdb", *(result(launch=n) for n in range(15)))
    store(database, "few", *(result(launch=n, model="gpt2") for n in range(3)))
    with visitor(database) as site:
        pages = {
            text(page): page
            for page in (site.get(f"/cell/{key}").text for key in keys(site.get("/results").text))
        }
    many, few = sorted(pages, key=lambda page: "of 15 launches" not in page)
    assert "Every step of 12 of 15 launches" in many
    assert "Every step of each launch ·" in few


def test_the_matrix_is_of_the_machine_that_the_command_chooses(tmp_path):
    """Newest measured first, of two measured at one moment the last by name."""
    database = stored_in(tmp_path / "two.duckdb", result(), run="lab")
    store(database, "office", result(batch_size=2), machine=OTHER)
    later = {"started_at": "2026-03-01T00:00:00.000000Z", "provenance": "simulated"}
    elsewhere = {**MACHINE, "machine": "a laptop"}
    store(database, "laptop", result(batch_size=4, **later), machine=elsewhere)
    assert "1 model on office" in text(visitor(database).get("/matrix").text)
    done = CliRunner().invoke(app, ["matrix", "--db", str(database.path)])
    assert "on office" in done.output, done.output


def test_a_platform_that_is_not_here_is_not_said_to_be_unmeasured(tmp_path, monkeypatch):
    """As `accelbench matrix` says it, in the page and in the chart; of another machine neither."""
    absent = {"cuda": [Absent("cuda", "no NVIDIA driver is loaded", "x")]}
    monkeypatch.setattr(machine_matrix, "LazyInventory", lambda: absent)
    monkeypatch.setattr(machine_matrix, "describe_environment", lambda: MACHINE)
    database = stored_in(tmp_path / "two.duckdb", result(), run="lab")
    store(database, "office", result(), machine=OTHER)
    site = visitor(database)
    here, there = (machine_of("", one).id for one in (MACHINE, OTHER))
    page = text(site.get(f"/matrix?machine={here}").text)
    assert "not here: no NVIDIA driver is loaded" in page
    assert "--hardware cuda" not in page
    chart = site.get(f"/chart/compatibility.html?machine={here}").text
    assert "not here: no NVIDIA driver is loaded" in chart
    assert "not here" not in text(site.get(f"/matrix?machine={there}").text)


LATER = {"started_at": "2026-02-02T03:04:05.000000Z", "finished_at": "2026-02-02T03:04:06.000000Z"}


def accuracy(right: int) -> dict[str, Any]:
    return {
        "accuracy": right / 200, "accuracy_low": right / 200 - 0.04,
        "accuracy_high": right / 200 + 0.03, "accuracy_samples": 200, "accuracy_metric": "top1",
        "accuracy_per_sample": [1.0] * right + [0.0] * (200 - right), "accuracy_digest": "d",
    }  # fmt: skip


def page_of(database: Database, precision: str) -> str:
    """The page of the cell of bert-tiny on the lab's processor in a precision, as its text."""
    site = visitor(database)
    for key in re.findall(r"/cell/([0-9a-f]{16})\"", site.get("/results").text):
        page = site.get(f"/cell/{key}").text
        row = site.get(f"/cell/{key}.json").text
        if f'"{precision}"' in row and '"lab"' in row:
            return " ".join(re.sub(r"<[^>]+>", " ", page).split())
    raise AssertionError(precision)


def test_a_cell_has_its_accuracy_with_its_interval_and_what_its_precision_costs(tmp_path):
    database = Database(tmp_path / "results.duckdb")
    int8 = result(precision="int8", **accuracy(160))
    store(database, "run-1", result(**accuracy(180)), int8)
    fp32_page, int8_page = page_of(database, "fp32"), page_of(database, "int8")
    assert "Accuracy, top-1 90.0 % 86.0 % to 93.0 %, of 200 samples" in fp32_page
    assert "against fp32" not in fp32_page
    assert "Accuracy, top-1 80.0 % 76.0 % to 83.0 %, of 200 samples" in int8_page
    assert "on the same 200 samples: 20 lost, 0 gained." in int8_page
    assert "another run" not in int8_page


def test_a_later_run_without_labelled_data_leaves_the_accuracy_of_an_earlier_one(tmp_path):
    database = stored_in(tmp_path / "results.duckdb", result(**accuracy(180)), run="run-1")
    store(database, "run-2", result(weights_digest="v2", **LATER))
    store(database, "run-3", result(**accuracy(20), **LATER), machine=OTHER)
    page = page_of(database, "fp32")
    assert "Accuracy, top-1 90.0 %" in page
    assert "Accuracy was measured by another run , of other weights than these launches." in page


def test_a_cell_without_accuracy_says_nothing_of_it(tmp_path):
    database = stored_in(tmp_path / "results.duckdb", result(), run="run-1", machine=MACHINE)
    assert "Accuracy" not in page_of(database, "fp32")


def test_versions_do_not_split_a_history(tmp_path):
    database = stored_in(tmp_path / "versions.duckdb")
    for month in range(1, 7):
        one = result(
            series_key="s",
            provenance="imported",
            conditions={"engine": f"torch 2.{month} eager", "source": {"name": "somebody"}},
            latency_p50_ms=10.0 if month < 4 else 15.0,
            started_at=f"2026-0{month}-08T00:00:00.000000Z",
        )
        machine = {"source": {"name": "somebody"}}
        store(database, f"import-{month}", one, machine=machine)
    page = visitor(database).get("/history").text
    said = text(page)
    assert "1 configuration was measured in more than one run" in said
    assert re.search(r"Worse: \+50\.\d % since 2026-04-08", said)
    assert "torch 2.5 eager → torch 2.6 eager on 2026-06-08" in said
    assert "torch 2.5 eager → torch 2.6 eager" in visitor(database).get("/chart/trend.svg").text


FAILED = {
    "status": "failed",
    "reason": "driver_too_old",
    "quality": None,
    "verification": "not_done",
    "latency_p50_ms": None,
    "latency_mean_ms": None,
    "throughput": None,
}


#: What failed before it had an engine, with its device and, where none was found, without.
UNOPENED = ({"series_key": None}, {"series_key": None, "device_fingerprint": None})


@pytest.mark.parametrize("late", [{}, *UNOPENED])
def test_a_history_says_that_the_newest_run_failed(tmp_path, late):
    said = text(history(tmp_path, *[{}] * 6, {**FAILED, **late}).get("/history").text)
    assert "the newest run, of 2026-01-07 00:00, has no figure: driver too old" in said


def test_two_runs_are_drawn_and_not_judged(tmp_path):
    site = history(tmp_path, {}, {"latency_p50_ms": 20.0})
    for address in ("/history", "/chart/trend.svg"):
        assert "Not judged: 2 of the 4 runs that this needs" in text(site.get(address).text)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"latency_p50_ms": 2.0, "workarounds": ["static shapes"]},
            "Not alike: workarounds, since 2026-01-05",
        ),
        (
            {"latency_p50_ms": 5.0, "verification": "not_done"},
            "Outputs are no longer verified: -50",
        ),
    ],
)
def test_a_history_calls_nothing_better_that_is_not_alike(tmp_path, changes, said):
    site = history(tmp_path, *[{}] * 4, *[changes] * 4)
    page = text(site.get("/history").text)
    assert said in page
    assert "Better" not in page
    if "workarounds" in changes:
        assert "not alike: workarounds" in site.get("/chart/trend.svg").text

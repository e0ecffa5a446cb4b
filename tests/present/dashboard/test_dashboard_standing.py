"""Which launches stand for a cell: the SQL of pages has the same rule as charts and comparisons."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import pytest
from dashboard_world import MACHINE, result, store, stored_in, visitor

from accelbench.core.unusable_reasons import FAILED, LAUNCHED
from accelbench.judge.points import points
from accelbench.present.chart_data import subject_in
from accelbench.present.dashboard import cells, details
from accelbench.present.dashboard.page_query import PageQuery
from accelbench.present.dashboard.snapshot import taken
from accelbench.store.database import Database

QUALITIES = ("converged", "noise_limited", "unsteady", "unusable", "fixed", None)
MODELS = ("bert-tiny", "vit-tiny", "resnet-tiny", OWN := "net.py:make")


def a_history(by: random.Random) -> list[tuple[Mapping[str, Any], list[dict[str, Any]]]]:
    """Some runs, each with a few launches of some models, by one of two versions of an engine.

    One of them is code that is changed now and then.
    """
    runs = []
    for number in range(1, 9):
        packages = {"torch": by.choice(("2.12", "2.13"))}
        code = {"weights": "code", "weights_digest": by.choice(("one", "other"))}
        launches = [
            result(
                model=model,
                **(code if model == OWN else {}),
                series_key=model,
                launch=n,
                status=by.choice(("ok",) * 5 + ("failed",)),
                verification=by.choice(("ok",) * 30 + ("failed",)),
                started_at=f"2026-02-{number:02} 00:00:0{n}",
                quality=by.choice(QUALITIES),
                effective_sample_count=by.choice((5.0, 50.0)),
                latency_ci_high_ms=by.choice((8.0, 9.0)),
                latency_p50_ms=by.uniform(7.0, 9.0),
                latency_mean_ms=by.uniform(7.0, 9.0),
                conditions={"packages": packages, "rules": {"iterations": number}},
            )
            for model in MODELS
            if by.random() < 0.7
            for n in range(by.choice((1, 2, 5, 7)))
        ]
        for one in launches:
            if one["status"] == "failed":  # before its code was read
                one["weights_digest"] = None
        runs.append(({**MACHINE, "packages": packages}, launches))
    return runs


def test_the_page_and_the_charts_choose_the_same_launches(tmp_path):
    different = spoilt = failed = wrong = 0
    for seed in range(4):
        database = stored_in(tmp_path / f"{seed}.duckdb")
        for number, (machine, launches) in enumerate(a_history(random.Random(seed))):
            store(database, f"r{number}", *launches, machine=machine)
        snapshot = taken(database, "now")
        found = cells.every(snapshot, PageQuery())
        every = [str(key) for key in _all(database)]
        there = {one.row["model"]: one for one in points(details.launches_in(database, every))}
        figures = [one for one in found if one["latency"] is not None]
        wrong += sum(one["wrong"] for one in found)
        for one in figures:
            point = there[one["model"]]
            launches = [*point.rows, *point.measurement.unusable_rows]
            assert one["run_id"] == point.row["run_id"]
            assert {row["result_id"] for row in launches} <= set(one["results"])
            assert one["failed"] == (point.row.get(FAILED) or 0)
            assert one["launches"] == (point.row.get(LAUNCHED) or len(launches))
            assert (one["quality"] == "unusable") == (not point.usable)
            failed += bool(one["failed"])
            assert one["set_aside"] == point.measurement.newer
            assert one["left_out"] == len(launches) - len(point.rows)
            assert point.latency is not None
            assert point.throughput is not None
            assert one["latency"] == pytest.approx(point.latency.value)
            assert one["throughput"] == pytest.approx(point.throughput.value)
            different += bool(one["set_aside"])
            spoilt += bool(one["left_out"])
        drawn = {
            one.row["model"]: one.row["run_id"] for one in subject_in(database, {}, None).points
        }
        shown = {one["model"]: one["run_id"] for one in figures}
        # Where the newest run came to nothing, charts have the figures that stood before it.
        lost = {one["model"] for one in found if one["status"] != "ok"}
        assert shown == {model: run for model, run in drawn.items() if model not in lost}
    assert different > 2
    assert failed > 2
    assert wrong > 0
    assert spoilt > 2


def _all(database: Database) -> list[str]:
    _, rows = database.query("SELECT result_id FROM benchmark_results")
    return [key for (key,) in rows]


def test_what_would_read_alike_is_told_apart(tmp_path):
    theirs = {"provenance": "imported", "series_key": None}
    cards = [
        result(**theirs, conditions={"torch": version}, compiled=compiled, options={"layout": how})
        for version, compiled, how in (
            ("2.4", False, "nchw"),
            ("2.9", False, "nchw"),
            ("2.9", True, "nchw"),
        )
    ]
    database = stored_in(tmp_path, *cards, result(model="vit-tiny"), run="import-1")
    site = visitor(database)
    text = site.get("/results").text
    assert "<bdi>torch 2.4</bdi>" in text
    # Whether it was compiled has a column; of the two that are not, the version tells.
    assert "<bdi>torch 2.9</bdi>" in text
    assert "layout" not in text


def test_a_cells_step_is_by_the_figure_that_all_of_its_launches_have(tmp_path):
    """A mean of one launch beside the median of another is the middle of nothing."""
    database = stored_in(
        tmp_path,
        result(launch=0, latency_p50_ms=4.0, latency_mean_ms=9.0),
        result(launch=1, latency_p50_ms=4.0, latency_mean_ms=None),
        result(model="vit-tiny", latency_p50_ms=4.0, latency_mean_ms=9.0),
        result(model="vit-tiny", launch=1, latency_p50_ms=None, latency_mean_ms=None),
    )
    found = {one["model"]: one for one in cells.every(taken(database, "now"), PageQuery())}
    bert, vit = found["bert-tiny"], found["vit-tiny"]
    assert (bert["latency"], bert["latency_of"], bert["latency_high"]) == (4.0, "p50", 4.0)
    assert (vit["latency"], vit["latency_of"]) == (None, None)
    charts = {
        one.row["model"]: one for one in points(details.launches_in(database, _all(database)))
    }
    assert {name: one.latency and one.latency.value for name, one in charts.items()} == {
        "bert-tiny": 4.0,
        "vit-tiny": None,
    }


def test_the_launches_of_a_figure_are_counted_without_those_left_out(tmp_path):
    """A page read “geometric mean of 3 launches” over two."""
    database = stored_in(tmp_path)
    last = result(launch=2, latency_p50_ms=99.0, quality="unusable")
    store(database, "r", result(launch=0), result(launch=1, latency_p50_ms=8.2), last)
    site = visitor(database)
    page = site.get("/results").text
    assert "2 of 3</td>" in page
    key = page.partition('href="/cell/')[2].partition('"')[0]
    assert "geometric mean of 2 launches" in site.get(f"/cell/{key}").text
    assert "2 of 3</td>" in site.get(f"/compare?cell={key}").text


def test_what_says_nothing_of_how_it_ran_makes_no_other_cell_of_an_import(tmp_path):
    """Four rows of one card read alike, which the charts below them had as one of four launches."""
    theirs = {"provenance": "imported", "series_key": None}
    database = stored_in(tmp_path)
    rows = [
        result(
            **theirs,
            latency_p50_ms=4.0 + n,
            conditions={
                "engine": engine,
                "said": {"file": f"{n}.csv"},
                "source": {"name": "theirs", "commit": f"{n}"},
                "job_id": f"j{n}",
            },
        )
        for n, engine in enumerate(("torch 2.4", "torch 2.4", "torch 2.9"))
    ]
    store(database, "import-1", *rows, result(**theirs, model="vit-tiny"))
    found = cells.every(taken(database, "now"), PageQuery())
    charts = points(details.launches_in(database, _all(database)))
    assert len(found) == len(charts) == 3
    assert sorted(one["launches"] for one in found) == [1, 1, 2]
    assert sorted(one["latency"] for one in found) == pytest.approx(
        sorted(one.latency.value for one in charts if one.latency is not None)
    )


TAIL_ALONE = dict.fromkeys(
    ("latency_p50_ms", "latency_mean_ms", "throughput", "latency_ci_low_ms", "latency_ci_high_ms")
)


def test_a_tail_is_of_the_percentile_that_all_launches_have(tmp_path):
    """The p90 of one launch and the p99 of another, whose p90 is rough, stood there as a p90."""
    database = stored_in(tmp_path)
    both = {"latency_p90_ms": 4.0, "latency_p99_ms": 9.0}
    store(
        database,
        "r",
        result(**TAIL_ALONE, **both),
        result(**TAIL_ALONE, **both, launch=1, latency_p90_rough=True),
    )
    (cell,) = cells.every(taken(database, "now"), PageQuery())
    (point,) = points(details.launches_in(database, _all(database)))
    assert (cell["tail"], cell["tail_of"]) == point.percentile == (9.0, "p99")


def test_a_unit_is_that_of_the_rate_and_not_of_a_launch_that_failed(tmp_path):
    database = stored_in(tmp_path)
    failed = result(status="failed", reason="crash", series_key=result()["series_key"])
    tokens = result(launch=1, throughput_unit="tokens/s")
    store(database, "r", failed, tokens, {**tokens, "launch": 2})
    (cell,) = cells.every(taken(database, "now"), PageQuery())
    assert cell["throughput_unit"] == "tokens/s"


def test_a_file_of_cells_has_numbers_as_numbers_and_what_tells_versions_apart(tmp_path):
    database = stored_in(tmp_path)
    theirs = {"provenance": "imported", "series_key": None}
    versions = [{"engine": f"torch {version}"} for version in ("2.4", "2.9")]
    store(database, "import-1", *(result(**theirs, conditions=each) for each in versions))
    site = visitor(database)
    lines = site.get("/cells.csv").text
    assert "torch 2.4" in lines
    assert "torch 2.9" in lines
    key = lines.splitlines()[1].partition(",")[0]
    assert site.get(f"/cell/{key}.json").json()["cell"]["samples"] == 3


def test_of_an_import_that_names_no_software_the_newest_day_stands(tmp_path):
    """Nobody knows that its other days had the same software, whatever they say more."""
    theirs = {"provenance": "imported", "series_key": "theirs", "conditions": {}}
    settled = {"quality": "converged", "effective_sample_count": 50.0}
    days = [
        result(
            **theirs,
            **settled,
            launch=n,
            started_at=f"2026-02-0{day} 00:00:0{n}",
            latency_p50_ms=ms,
            latency_mean_ms=ms,
        )
        for day, many, ms in ((1, 5, 8.0), (2, 1, 9.0))
        for n in range(many)
    ]
    database = stored_in(tmp_path, *days, run="import-1", machine={})
    (cell,) = cells.every(taken(database, "now"), PageQuery())
    (point,) = points(details.launches_in(database, [str(key) for key in _all(database)]))
    assert point.latency is not None
    assert (point.latency.value, cell["latency"]) == (9.0, 9.0)
    (drawn,) = subject_in(database, {}, None).points
    assert drawn.latency is not None
    assert drawn.latency.value == 9.0

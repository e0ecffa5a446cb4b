"""Views of one database: each case was shown otherwise by one of them than by the others."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from asked_store import keys_of, said
from dashboard_world import MACHINE, result, store, visitor

from accelbench.core.errors import EXIT_INCONCLUSIVE
from accelbench.judge.findings.precisions import why_unsteady
from accelbench.judge.summary import summary
from accelbench.present.chart_data import subject_in
from accelbench.present.dashboard import cells
from accelbench.present.dashboard.page_query import PageQuery
from accelbench.present.dashboard.snapshot import taken
from accelbench.store.database import Database

GPU = {"hardware": "cuda", "device_name": "A card", "device_fingerprint": "f2"}
Run = Callable[..., None]


@pytest.fixture
def database(tmp_path: Path) -> Database:
    made = Database(tmp_path / "views.duckdb")
    made.ensure()
    return made


@pytest.fixture
def run(database: Database) -> Run:
    """Stores a run of some launches of one cell, each with a mean and a rate that goes with it."""

    def stored(name: str, day: int, ms: float, launches: int = 5, **changes: Any) -> None:
        about, each = changes.pop("about", {}), changes.pop("each", {})
        place = changes.get("hardware", "cpu")
        rows = []
        for n in range(launches):
            step = ms * (1 + 0.001 * (n - launches // 2))
            rows.append(
                result(
                    **{
                        "launch": n,
                        "series_key": f"s {place}",
                        "started_at": f"2026-02-{day:02} 00:{n // 60:02}:{n % 60:02}",
                        "latency_p50_ms": step,
                        "latency_mean_ms": step,
                        "throughput": 1e3 / step,
                        **changes,
                        **each.get(n, {}),
                    }
                )
            )
        store(database, name, *rows, machine=MACHINE, **about)

    return stored


def comparison(database: Database, *words: str) -> dict[str, Any]:
    """The last line of a comparison."""
    found: list[dict[str, Any]] = json.loads(
        said(database, "compare", *words, "--json", codes=(0, EXIT_INCONCLUSIVE))
    )["comparisons"]
    return found[-1]


def on_the_page(database: Database) -> dict[str, dict[str, Any]]:
    return {one["hardware"]: one for one in cells.every(taken(database, "now"), PageQuery())}


def sentence(database: Database) -> str:
    """What a report says is fastest."""
    subject = subject_in(database, {}, None)
    every = summary(subject.rows, subject.points, subject.known)
    return next(one for one in every if one.startswith("bert-tiny"))


def test_what_a_check_measured_for_itself_is_on_no_page(database, run):
    run("a", 1, 10.0)
    run("b", 1, 5.0, **GPU)
    run("noise", 3, 20.0, launches=20, about={"label": "check --noise"}, **GPU)
    assert comparison(database)["speedup"] == pytest.approx(2.0)
    assert on_the_page(database)["cuda"]["latency"] == pytest.approx(5.0, rel=1e-3)
    (one,) = json.loads(
        said(
            database,
            "recommend",
            "bert-tiny",
            "--hardware",
            "cpu,cuda",
            "--json",
            codes=(0, EXIT_INCONCLUSIVE),
        )
    )["recommendations"]
    assert one["primary_recommendation"] == "cuda"


def test_a_commit_is_no_other_software(database, run):
    installed = {"packages": {"torch": "2.13"}, "python": "3.11", "kernel": "6"}
    run("a", 1, 10.0, conditions=installed)
    run("b", 1, 5.0, conditions=installed, **GPU)
    run("c", 2, 2.0, launches=1, conditions={**installed, "commit": "abc"}, **GPU)
    assert comparison(database)["run_id"] == "b"
    assert on_the_page(database)["cuda"]["run_id"] == "b"


def test_a_crash_since_is_said_beside_older_figures(database, run):
    run("a", 1, 10.0)
    run("b", 1, 5.0, **GPU)
    nothing = {"latency_p50_ms": None, "latency_mean_ms": None, "throughput": None}
    run("c", 9, 1.0, status="failed", reason="crash", message="it crashed", **nothing, **GPU)
    assert comparison(database)["failed_since"] == ["crash"]
    told = " ".join(said(database, "compare", codes=(0, EXIT_INCONCLUSIVE)).split())
    assert (
        "Failed in a newer run, and shown by an older one: bert-tiny, cuda A card (crash)." in told
    )


def test_the_fastest_is_by_the_figure_that_both_have(database, run):
    """A median of 5.0 beside a mean of 6.0, whose median is 4.5."""
    run("a", 1, 5.0, latency_mean_ms=None, throughput=None)
    run("b", 1, 6.0, latency_p50_ms=4.5, throughput=None, **GPU)
    line = comparison(database)
    assert line["speedup_by"] == "p50"
    assert line["speedup"] == pytest.approx(5.0 / 4.5, rel=0.01)
    assert sentence(database).split(":")[1].startswith(" pytorch on cuda")


def test_a_matrix_divides_no_tokens_by_sequences(database, run):
    run("a", 1, 10.0, throughput=1000.0, throughput_unit="tokens/s")
    run("b", 1, 8.0, throughput=125.0, throughput_unit="sequences/s", **GPU)
    told = said(database, "matrix", "--json", codes=(0, EXIT_INCONCLUSIVE))
    assert set(re.findall(r'"speed_vs_cpu": (\S+?),?\n', told)) == {"null", "1.0"}  # of the CPU


def test_a_page_takes_every_launch_in_order_of_time(database, run):
    run("a", 1, 10.0, launches=60)
    run("b", 1, 5.0, launches=60, **GPU)
    line = comparison(database)
    page = visitor(database)
    first, second = keys_of(database)
    text = page.get(f"/compare?cell={first}&cell={second}").text
    assert f"{line['speedup_low']:.3g}" in text
    assert f"{line['speedup_high']:.3g}" in text


def test_wrong_outputs_have_no_figures_on_a_page(database, run):
    run("a", 1, 10.0)
    run("b", 1, 5.0, **GPU)
    run("c", 2, 2.0, verification="failed", **GPU)
    shown = on_the_page(database)["cuda"]
    assert (shown["latency"], shown["throughput"]) == (None, None)


def test_pages_and_commands_take_the_same_precision_for_a_matrix(database, run):
    run("a", 1, 10.0, verification="ok", verification_error=0.0)
    int8 = {"precision": "int8", "verification": "ok", "verification_error": 0.01}
    run("b", 1, 4.0, **int8, **GPU)
    assert re.search(
        r'"speed[a-z_]*": 2\.[45]', said(database, "matrix", "--json", codes=(0, EXIT_INCONCLUSIVE))
    )
    assert "2.50" in visitor(database).get("/matrix").text


def test_a_model_that_is_in_no_table_is_said(database, run):
    run("a", 1, 10.0)
    run("b", 1, 5.0, **GPU)
    run("c", 1, 5.0, model="vit-tiny", series_key="v")
    document = json.loads(
        said(database, "compare", "bert-tiny", "vit-tiny", "--json", codes=(0, EXIT_INCONCLUSIVE))
    )
    assert document["not_shown"] == [
        "Not shown: model vit-tiny: there is nothing beside it that was asked alike."
    ]


def test_one_launch_that_is_not_alike_is_enough_to_refuse(database, run):
    run("a", 1, 10.0)
    run("b", 1, 5.0, each={4: {"workarounds": ["cut"]}}, **GPU)
    assert "workarounds" in comparison(database)["refused"]


def test_one_settled_launch_does_not_speak_for_four_that_are_not(database, run):
    run("a", 1, 10.0, quality="noise_limited", each={0: {"quality": "converged"}})
    assert on_the_page(database)["cpu"]["quality"] == "noise_limited"


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_every_view_has_the_least_certain_quality(database, run, order):
    words = ("time_limited", "throttled", "unsteady")
    each = {n: {"quality": words[at]} for n, at in enumerate(order)}
    run("a", 1, 10.0, each={**each, 3: {"quality": "unusable"}})
    run("b", 1, 5.0, **GPU)
    assert on_the_page(database)["cpu"]["quality"] == "throttled"
    lines = json.loads(said(database, "compare", "--json", codes=(0, EXIT_INCONCLUSIVE)))[
        "comparisons"
    ]
    (line,) = [each for each in lines if each["hardware"] == "cpu"]
    assert line["quality"] == "throttled"
    (found,) = subject_in(database, {"hardware": ("cpu",)}, None).points
    assert why_unsteady(found) == "throttled"


def test_half_of_the_launches_of_no_use_make_a_cell_unusable(database, run):
    wide = {"quality": "unusable"}
    run("a", 1, 10.0, launches=4, quality="converged", each={0: wide, 1: wide})
    assert on_the_page(database)["cpu"]["quality"] == "unusable"

"""Charts of several processes: what is compared with what, and who is seen to be slow."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from copy import deepcopy
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from dashboard_world import result as stored
from dashboard_world import store, visitor
from made_up_charts import LAB, result, values
from made_up_ranks import OF_RANKS, distributed, one_process

from accelbench.judge.points import points
from accelbench.present.chart_data import subject_in
from accelbench.present.charts import CHARTS
from accelbench.present.charts.chart import Picture, Subject, picture
from accelbench.present.charts.scaling import scaling_lines
from accelbench.store.database import Database

WORK = {"mode": "training", "batch_size": 16}


def pictured(name: str, *rows: dict[str, Any]) -> Picture | None:
    numbered = [{**row, "result_id": f"r{number}"} for number, row in enumerate(rows)]
    return picture(CHARTS[name], Subject(points(numbered), machine=LAB, rows=numbered))


def drawn(name: str, *rows: dict[str, Any]) -> Picture:
    made = pictured(name, *rows)
    assert made is not None
    return made


def shown(name: str, *rows: dict[str, Any]) -> Sequence[Mapping[str, Any]]:
    return drawn(name, *rows).records


def together(strategy: str = "ddp", ranks: int = 2, ms: float = 60.0, **more: Any) -> Any:
    shared = {n: more.pop(n) for n in ("threads", "work", "device", "hosts") if n in more}
    return result(**WORK, ms=ms, **distributed(strategy, ranks, 0.8, **shared), **more)


def alone(threads: int = 1, ms: float = 100.0, **more: Any) -> Any:
    return result(**WORK, ms=ms, **one_process(threads), **more)


@pytest.mark.parametrize("name", OF_RANKS)
def test_one_process_alone_is_no_picture(name):
    assert pictured(name, alone(), result()) is None


def test_ideals():
    # The ideal is one process as often as there are processes.
    rows = [alone(ms=100.0), together(ranks=2, ms=60.0), together(ranks=4, ms=40.0)]
    lines = shown("scaling", *rows)
    assert [(line["processes"], line["ideal"], line["value"]) for line in lines] == [
        (1, 160.0, pytest.approx(160.0)),
        (2, 320.0, pytest.approx(16e3 / 60)),
        (4, 640.0, pytest.approx(400.0)),
    ]
    # With the threads of both together it would be compared with another machine's half.
    assert pictured("scaling", alone(threads=2), together()) is None
    (line,) = scaling_lines(points([alone(threads=2, ms=50.0), alone(threads=1), together()]))
    assert line.alone.row["threads"] == 1
    # Checkpointing is held against checkpointing.
    saving = together()
    saving["options"] = {**saving["options"], "gradient_checkpointing": True}
    assert pictured("scaling", alone(), saving) is None


@pytest.mark.parametrize(
    "other",
    [{"batch_size": 8}, {"precision": "bf16"}, {"model": "bert-tiny"}, {"hardware": "cuda"}],
)
def test_other_work_is_no_ideal(other):
    of_other = {**alone(), **other}
    assert pictured("scaling", of_other, together()) is None


def test_efficiencies_and_communication():
    # Each strategy is a line and says its efficiency at its end.
    rows = [alone(), together("ddp"), together("fsdp2"), together("ddp", 4, 50.0)]
    made = drawn("scaling", *rows)
    texts = [value["said"] for value in values(made.spec) if set(value) >= {"said", "label"}]
    assert sorted({*texts}) == ["ddp 80 %", "fsdp2 80 %"]
    # It would be of another one process than the line begins with.
    rows = [alone(run_id="two"), together("ddp", run_id="two"), together("fsdp2", run_id="one")]
    assert names_of_lines(*rows) == ["ddp 80 %", "fsdp2"]
    made = drawn("scaling", *rows)
    assert any("in another run than the one process drawn" in note for note in made.about)
    # An efficiency below a percent is not none.
    slow = together("tp", ms=6000.0)
    slow["scaling_efficiency"] = 0.0042
    assert names_of_lines(alone(), slow) == ["tp 0.4 %"]
    made = drawn("scaling", alone(), slow)
    (label,) = {value["label"] for value in values(made.spec) if "label" in value}
    assert label > 2 * slow["throughput"]  # above the axis, which would strike it through
    # A bar of communication is named in full.
    rows = [together(ranks=ranks) for ranks in (2, 4)]
    rows.append(result(**{**WORK, "mode": "inference"}, ms=60.0, **distributed("fsdp2", 2, 0.8)))
    rows.append(result(**{**WORK, "batch_size": 8}, ms=60.0, **distributed("ddp", 2, 0.8)))
    made = drawn("communication", *rows)
    names = {value["bar"] for value in values(made.spec) if "bar" in value}
    assert len(names) == 4
    assert not [name for name in names if "…" in name]
    # Names of lines that end together do not lie on each other.
    made = drawn("scaling", alone(), together("ddp"), together("fsdp2"), together("tp"))
    places = sorted({value["label"] for value in values(made.spec) if "label" in value})
    reach = made.spec["concat"][0]["layer"][0]["encoding"]["y"]["scale"]["domain"][1]
    gaps = [after - before for before, after in pairwise(places)]
    assert len(gaps) == 2
    assert min(gaps) * 300 / reach > 13


def names_of_lines(*rows: dict[str, Any]) -> list[str]:
    made = drawn("scaling", *rows)
    texts = [value["said"] for value in values(made.spec) if set(value) >= {"said", "label"}]
    return sorted({*texts})


def test_parts_of_a_step():
    # Parts of a step add up to it.
    parts = shown("communication", together(work=(60.0, 80.0)))
    assert {part["part"]: pytest.approx(part["value"]) for part in parts} == {
        "computation": 60.0,
        "overlapped communication": 10.0,
        "exposed communication": 30.0,
    }
    # Two launches of a step are their mean.
    rows = [
        {**together(work=work), "launch": launch, "ms": 60.0}
        for launch, work in enumerate(((60.0, 60.0), (80.0, 80.0)))
    ]
    parts = shown("communication", *rows)
    assert [pytest.approx(part["value"]) for part in parts] == [60.0, 10.0, 30.0]
    # The rank that others wait for is marked and named.
    made = drawn("ranks", together(ranks=4, work=(50.0, 75.0, 50.0, 50.0)))
    (panel,) = made.spec["concat"]
    assert panel["title"]["subtitle"] == ["slowest: rank 1 · straggler ratio 1.50"]
    lines = dict.fromkeys(value["line"] for value in values(made.spec))
    assert list(lines) == ["rank 0", "► rank 1", "rank 2", "rank 3"]
    of_it = {value["figure"]: value["ratio"] for value in made.records if value["rank"] == 1}
    assert of_it["own work, ms"] == pytest.approx(1.5)
    assert of_it["exposed, ms"] == pytest.approx(0.5)
    # Ranks alike are not marked.
    figures = shown("ranks", together(ranks=2, work=(60.0, 61.0)))
    assert {figure["rank"] for figure in figures} == {0, 1}
    made = drawn("ranks", together(ranks=2, work=(60.0, 61.0)))
    assert "►" not in " ".join(value["line"] for value in values(made.spec))


def test_ranks_of_hosts_and_devices():
    figures = shown("ranks", together(ranks=2, device="cuda:0", hosts=("north", "south")))
    assert {figure["where"] for figure in figures} == {"north cuda:0", "south cuda:0"}
    # The slowest of many ranks are kept.
    made = drawn("ranks", together(ranks=40, work=(*(60.0,) * 39, 90.0)))
    assert {figure["rank"] for figure in made.records} >= {39}
    assert "8 more ranks not drawn" in " ".join(made.about)
    # Of devices of one process there is what a profiler tells of each.
    heads = {figure["figure"] for figure in shown("ranks", of_devices())}
    assert heads == {"own work, ms", "exposed, ms", "communication, ms"}
    assert pictured("ranks", of_devices(profiled=False)) is None
    # Their threads are one process's: its share for each is what one device alone has.
    rows = [alone(runtime="jax"), of_devices()]
    (line,) = scaling_lines(points([{**row, "result_id": str(n)} for n, row in enumerate(rows)]))
    assert len(line.together) == 1
    # Evidence of other forms is no picture.
    odd: dict[str, Any] = together()
    for evidence in (None, [], {"details": {"distributed": {"ranks": 3}}}, {"details": "x"}):
        assert pictured("ranks", alone(), {**odd, "evidence": evidence}) is None


def of_devices(*, profiled: bool = True) -> dict[str, Any]:
    """What devices of one process have: nothing is timed of each but what a profiler notes."""
    shared = together(runtime="jax")
    evidence = deepcopy(shared["evidence"])
    facts = evidence["details"]["distributed"]
    for rank in facts["ranks"]:
        rank |= dict.fromkeys(("threads", "step_ms", "host_memory_peak_mb"))
    facts["communication"] *= profiled
    return {**shared, "evidence": evidence}


@pytest.fixture
def database(tmp_path: Path) -> Database:
    database = Database(tmp_path / "ranks.duckdb")
    database.ensure()
    about = {"mode": "training", "batch_size": 16}
    shared = {**distributed("ddp", 2, 0.7), "case_id": "shared"}
    several = stored(**about, latency_p50_ms=6.0, throughput=2600.0, **shared)
    store(database, "r1", stored(**about, **one_process(1)), several)
    return database


def test_a_store_has_what_each_rank_took(database):
    made = picture(CHARTS["ranks"], subject_in(database, {}, None))
    assert made is not None
    peaks = [r["value"] for r in made.records if r["figure"] == "peak memory, MB"]
    assert peaks == [150.0, 151.0]


def test_a_page_of_several_processes_shows_its_ranks_and_no_other_does(database):
    site = visitor(database)
    keys = {}
    for key in set(_keys(site.get("/results").text)):
        page = site.get(f"/cell/{key}").text
        keys["2 processes" in page.split("</h1>")[1].split("</p>")[0]] = page
    assert "/chart/ranks.svg" in keys[True]
    assert "/chart/ranks.svg" not in keys[False]


def _keys(text: str) -> list[str]:
    return re.findall(r'href="/cell/([0-9a-f]{16})"', text)

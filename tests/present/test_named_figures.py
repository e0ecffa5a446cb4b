"""Trials that read wrong, with the figures that they had: docs/named-cases.md lists them all."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from asked_store import said
from dashboard_world import result, store, visitor

from accelbench.judge.points import points
from accelbench.judge.run_noise import Histories
from accelbench.judge.summary import summary
from accelbench.present.charts import CHARTS
from accelbench.present.charts.chart import Subject, picture
from accelbench.store.database import Database

GPU = {"hardware": "cuda", "device_name": "A card", "device_fingerprint": "f2"}
THEIRS = {
    "provenance": "imported", "series_key": None, "samples": {}, "quality": None,
    "verification": "not_done", "sample_count": None, "memory_peak_mb": None,
    "latency_p50_ms": None, "latency_ci_low_ms": None, "latency_ci_high_ms": None,
    "weights_digest": None, "throughput_unit": "samples/s", "sequence_length": None,
}  # fmt: skip


def timed(mean: float, batch: int = 1, **changes: Any) -> dict[str, Any]:
    """A result whose rate is that of its mean."""
    return result(latency_mean_ms=mean, throughput=1e3 * batch / mean, batch_size=batch, **changes)


def theirs(mean: float, batch: int, torch: str, **changes: Any) -> dict[str, Any]:
    """Of an import of timm: one figure, and the software that it was of."""
    about = {"conditions": {"source": {"name": "timm"}, "torch": torch}, "model": "cspresnet50"}
    card = {**GPU, "device_name": "NVIDIA GeForce RTX 4090", "precision": "amp-fp16"}
    return timed(mean, batch, **{**THEIRS, **card, **about, "image_size": 256, **changes})


@pytest.fixture
def database(tmp_path: Path) -> Database:
    made = Database(tmp_path / "a.duckdb")
    made.ensure()
    return made


def test_a_page_and_its_chart_say_1_13_where_means_say_0_891(database):
    calm = timed(8.91, latency_p50_ms=9.04)
    wild = timed(10.0, latency_p50_ms=8.0, **GPU)
    store(database, "r", calm, wild)
    page = visitor(database)
    keys = dict.fromkeys(
        re.findall(r'href="/cell/([0-9a-f]{16})"', page.get("/results?sort=hardware").text)
    )
    text = page.get("/compare?" + "&".join(f"cell={key}" for key in keys)).text
    assert "<strong>1.13×</strong>" in text
    assert "(0.89×)" in text
    for chart, ratio in (("hardware-throughput", 0.891), ("hardware-latency", 8.0 / 9.04)):
        made = picture(CHARTS[chart], Subject(points([calm, wild])))
        assert made is not None
        values = {one["hardware"]: one["value"] for one in made.records}
        assert values["cuda"] / values["cpu"] == pytest.approx(ratio)


def test_rates_and_changes_of_software():
    # Twice the throughput is told beside a median of half.
    slow_tail = timed(20.0, latency_p50_ms=5.0)
    steady = timed(10.0, latency_p50_ms=10.1, **GPU)  # twice the throughput
    rows = [slow_tail, steady]
    (line,) = [
        one for one in summary(rows, points(rows), Histories()) if one.startswith("bert-tiny")
    ]
    assert "pytorch on cpu in fp32" in line.partition(";")[0]
    assert "pytorch on cuda in fp32 takes 2.02× as long" in line
    assert "(0.50×)" in line
    # No line falls from 866 to 562 ms where the software changes.
    rows = [
        *(theirs(ms, batch, "2.4.0") for batch, ms in ((256, 289.0), (512, 577.0), (768, 866.0))),
        theirs(562.0, 1024, "2.9.1"),
    ]
    made = picture(CHARTS["latency-by-batch"], Subject(points(rows)))
    assert made is not None
    assert [one["value"] for one in made.records] == [289.0, 577.0, 866.0]


def test_a_card_is_1_36_times_as_fast_like_for_like_not_2_00(database):
    older = {"device_name": "NVIDIA GeForce RTX 3090", "device_fingerprint": "f3"}
    store(
        database,
        "import-1",
        theirs(272.0, 256, "2.4.0", **older),
        theirs(200.0, 256, "2.4.0"),
        theirs(136.0, 256, "2.9.1", compiled=True),
        machine={},
    )
    whole = json.loads(said(database, "compare", "--json"))
    _, card = whole["comparisons"]
    assert card["speedup"] == pytest.approx(1.36)
    assert card["differs"] == []
    assert "torch 2.9.1" in card["faster_unlike"][0]


def test_three_cells_of_162_239_and_238_ms_say_what_tells_them_apart(database):
    cells = (
        theirs(162.0, 1024, "2.9.1", compiled=True, options={"layout": "nchw"}),
        theirs(239.0, 1024, "2.9.1", compiled=False, options={"layout": "nchw"}),
        theirs(238.0, 1024, "2.4.0", compiled=False, options={"layout": "nchw"}),
    )
    store(database, "import-1", *cells, machine={})
    page = visitor(database).get("/results").text
    rows = re.findall(r"<tr>(.*?)</tr>", page.partition("<tbody>")[2], re.DOTALL)
    # Whether it was compiled is a column; what that does not tell apart has it in words.
    names = [
        (
            re.findall(r"<bdi>(yes|no)</bdi>", row),
            re.search(r"<small><bdi>(.*?)</bdi></small>", row),
        )
        for row in rows
    ]
    told = {(*compiled, name[1] if name else "") for compiled, name in names}
    assert len(told) == len(cells)
    assert any("torch 2.4.0" in name for _, name in told)


def test_an_interval_of_1_05_to_504_is_no_ratio(database):
    """Between these ends lies any answer: the runs of all its figures had warned."""
    rough = {"quality": "noise_limited", "runtime": "onnxruntime"}
    ends = {"latency_ci_low_ms": 0.4, "latency_ci_high_ms": 180.0}
    base = timed(200.0, latency_ci_low_ms=190.0, latency_ci_high_ms=210.0)
    store(database, "r", base, timed(9.0, **rough, **ends))
    (_, engine) = json.loads(said(database, "compare", "--by", "engine", "--json"))["comparisons"]
    assert engine["speedup"] is None
    assert engine["cannot_tell"]
    assert (engine["speedup_low"], engine["speedup_high"]) == (None, None)
    assert "can't tell (" in said(database, "compare", "--by", "engine")

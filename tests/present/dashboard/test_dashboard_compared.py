"""The comparison page: a sentence, a picture, one table of what differs, a base that is chosen."""

from __future__ import annotations

import re
from html import unescape
from itertools import pairwise
from math import log
from typing import Any

import pytest
from dashboard_world import result, store, stored_in, visitor
from starlette.testclient import TestClient

from accelbench.judge.run_noise import Histories
from accelbench.present.dashboard import cells
from accelbench.present.dashboard.comparing import ComparedCell, beside, picture_of
from accelbench.present.dashboard.page_query import PageQuery
from accelbench.present.dashboard.snapshot import taken
from accelbench.store.database import Database

TIMES = {
    "pytorch": (8.0, 8.1, 8.05),
    "onnxruntime": (4.0, 4.04, 4.02),
    "openvino": (4.0, 4.06, 4.1),
}


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Database:
    made = stored_in(tmp_path_factory.mktemp("compared") / "a.duckdb")
    rows = [
        result(
            runtime=runtime,
            launch=launch,
            latency_p50_ms=ms,
            throughput=1e3 / ms,
            memory_peak_mb=200.0 if runtime == "pytorch" else 100.0,
        )
        for runtime, times in TIMES.items()
        for launch, ms in enumerate(times)
    ]
    store(made, "run", *rows, result(batch_size=2, weights_digest="other"))
    return made


@pytest.fixture(scope="module")
def keys(database: Database) -> dict[tuple[str, int], str]:
    found = cells.every(taken(database, "now"), PageQuery())
    return {(str(one["runtime"]), int(one["batch_size"] or 0)): one["key"] for one in found}


@pytest.fixture(scope="module")
def site(database: Database) -> TestClient:
    return visitor(database)


def address(*keys: str, base: str = "") -> str:
    chosen = "&".join(f"cell={key}" for key in keys)
    return f"/compare?{chosen}" + (f"&base={base}" if base else "")


def said(page: str) -> str:
    (text,) = re.findall(r'<p class="says">(.*?)</p>', page)
    return unescape(text)


def headings(page: str) -> list[str]:
    return re.findall(r'<th scope="col"[^>]*>([^<]+)', page)


def test_a_comparison(site, keys):
    # A comparison begins with a sentence.
    page = site.get(address(keys["pytorch", 1], keys["onnxruntime", 1])).text
    told = re.fullmatch(
        r"ONNX Runtime is (1\.\d+)–(2\.\d+)× as fast as PyTorch; memory 0\.500×\.", said(page)
    )
    assert told
    # Rounded outwards: what the table has lies within.
    (low, high) = re.findall(r"<td[^>]*>([\d.]+)× to ([\d.]+)×", page)[0]
    assert float(told[1]) <= float(low)
    assert float(high) <= float(told[2])
    # The base is chosen by the address.
    both = (keys["pytorch", 1], keys["onnxruntime", 1])
    first = site.get(address(*both)).text
    turned = site.get(address(*both, base=both[1])).text
    assert "each compared with <bdi>PyTorch</bdi>" in first
    assert "each compared with <bdi>ONNX Runtime</bdi>" in turned
    assert said(first) == said(turned)  # the faster one comes first
    assert f'href="?cell={both[0]}&amp;cell={both[1]}&amp;base={both[1]}"' in first
    assert re.search(r"<strong>0\.49\d×", turned)
    assert "each compared with <bdi>PyTorch</bdi>" in site.get(address(*both, base="0" * 16)).text
    # Columns are those in which they differ.
    page = site.get(address(keys["pytorch", 1], keys["onnxruntime", 1])).text
    assert headings(page)[:3] == ["Model", "Runtime", "Speed"]
    assert "Batch" not in headings(page)
    (alike,) = re.findall(r'<p class="alike">(.*?)</p>', page)
    assert "bert-tiny" in alike
    assert "batch 1" in alike
    wider = site.get(address(keys["pytorch", 1], keys["pytorch", 2])).text
    assert headings(wider)[:2] == ["Model", "Batch"]
    # What cannot be told and what is refused say so.
    page = site.get(address(keys["onnxruntime", 1], keys["openvino", 1])).text
    assert said(page).startswith("Can't tell whether OpenVINO or ONNX Runtime is faster")
    assert "can't tell which is faster" in page
    refused = site.get(address(keys["pytorch", 1], keys["pytorch", 2])).text
    assert "is not compared with batch 1: not alike: weights." in said(refused)
    assert "not compared: not alike: weights" in refused
    # What is not alike is one folded line each.
    page = site.get(address(*keys.values())).text
    (folded,) = re.findall(r'<details class="unlike">.*?</details>', page, re.DOTALL)
    assert folded.count("<li>") == len(keys) - 1
    assert "open" not in folded.partition(">")[0]
    assert "weights" not in re.sub("<[^>]*>", "", page.partition("<h1>")[0])
    # The picture has a lane for each and marks what nobody can tell.
    page = site.get(address(*keys.values())).text
    assert page.count('<div class="lane">') == len(keys)
    assert page.count('class="reach"') == 2
    assert "not compared</text>" in page
    close = site.get(address(keys["onnxruntime", 1], keys["openvino", 1])).text
    assert re.search(r'<svg [^>]*class=" open"', close)
    # One alone is compared with nothing.
    page = site.get(address(keys["pytorch", 1])).text
    assert "Choose a second configuration" in page
    assert 'class="says"' not in page


def test_hostile_names_are_text(bad_site):
    found = re.findall(r'id="pick-([0-9a-f]{16})"', bad_site.get("/results?status=ok").text)
    page = bad_site.get(address(*found[:12])).text
    assert "<script>" not in page
    assert "\u202e" not in page


def test_places_of_a_picture():
    # Places of a picture are in order and within it.
    drawn = picture_of([(1.0, None, None), (1.2, 1.1, 1.3), (0.001, 1e-9, 0.9), None])
    assert drawn is not None
    base, close, far, nothing = drawn.marks
    assert base.at == drawn.one
    places = [far.low, far.at, far.high, drawn.one, close.low, close.at, close.high]
    known = [place for place in places if place is not None]
    assert known == sorted(known)
    assert all(0.0 <= place <= 100.0 for place in known)
    assert nothing.at is None
    assert "1×" in [text for _, text in drawn.ticks]
    assert picture_of([None, None]) is None
    # A ratio stands where the axis says however large it is.
    drawn = picture_of([(1.0, None, None), (64.0, None, None), (1000.0, None, None)])
    assert drawn is not None
    once, less, more = (mark.at for mark in drawn.marks)
    assert once is not None
    assert less is not None
    assert more is not None
    assert (more - once) / (less - once) == pytest.approx(log(1000.0) / log(64.0), rel=1e-3)


@pytest.mark.parametrize("ends", [(0.98, 1.02), (0.5, 2.0), (1.0, 1.0), (0.02, 50.0), (1.1, 1.3)])
def test_an_axis_has_few_round_ticks(ends):
    drawn = picture_of([(1.0, None, None), (ends[1], *ends)])
    assert drawn is not None
    texts = [text for _, text in drawn.ticks]
    assert "1×" in texts
    assert len(texts) <= 8
    assert all(len(text) <= 6 and "e" not in text for text in texts)


def test_a_browsers_names_wrap_whatever_they_are(tmp_path):
    made = stored_in(tmp_path)
    long = "a" * 300
    store(made, "r", result(model=long), result(model=long, runtime="onnxruntime"))
    found = re.findall(r'id="pick-([0-9a-f]{16})"', visitor(made).get("/results").text)
    page = visitor(made).get(address(*found)).text
    assert f"<bdi>{long}</bdi>" in page


@pytest.mark.parametrize(
    ("ratios", "beyond"),
    [((0.1, 1.33), lambda ticks: max(ticks) > 1.0), ((0.8, 20.0), lambda ticks: min(ticks) < 1.0)],
)
def test_an_axis_has_a_tick_towards_each_end_that_a_mark_reaches(ratios, beyond):
    """A mark at 1.33× stood beyond the last tick, which was 1×."""
    drawn = picture_of([(1.0, None, None), *((ratio, None, None) for ratio in ratios)])
    assert drawn is not None
    assert beyond([float(text.rstrip("×")) for _, text in drawn.ticks])
    places = sorted(place for place, _ in drawn.ticks)
    assert all(after - before > 4.0 for before, after in pairwise(places))


def test_intervals_are_named_where_there_are_some(tmp_path):
    made = stored_in(tmp_path / "single.duckdb")
    ends = dict.fromkeys(("latency_ci_low_ms", "latency_ci_high_ms"))
    theirs = {"provenance": "imported", "samples": {}, **ends}
    store(made, "r", result(**theirs), result(runtime="onnxruntime", **theirs))
    found = re.findall(r'id="pick-([0-9a-f]{16})"', visitor(made).get("/results").text)
    page = visitor(made).get(address(*found)).text
    assert "Times as fast as" in page
    assert "with 95 % intervals" not in page
    assert "badge kind" not in page.partition("<table")[2]


_FIRST = {"precision": "fp8", "hardware": "cuda", "device_name": "8x B200"}


def held(**other: Any) -> ComparedCell:
    """A cell beside the first, which differs from it in these columns."""
    rows = [result(**_FIRST), result(**{**_FIRST, **other}, latency_p50_ms=4.0)]
    chosen = [({**row, "kind": "measured"}, [row]) for row in rows]
    return beside(chosen, Histories())[1]


@pytest.mark.parametrize(
    ("other", "doubts"),
    [
        ({"batch_size": 4}, []),
        ({"precision": "fp4"}, []),
        ({"device_name": "8x H200"}, []),
        ({"hardware": "rocm", "device_name": "8x MI300X", "runtime": "vllm"}, []),
        ({"device_name": "16x H200", "precision": "fp4"}, ["precision", "devices 8 → 16"]),
        ({"batch_size": 4, "world_size": 8}, ["world size"]),
        ({"conditions": {"versions": {"torch": "2.9"}}}, ["versions.torch 2.13 → 2.9"]),
        ({"conditions": {"versions": {"torch": "2.13"}, "Notes": "ours"}}, []),
        ({"throughput_unit": "tokens/s"}, ["figure p50 → mean", "unit sequences/s → tokens/s"]),
    ],
)
def test_what_is_beside_one_axis_makes_a_ratio_doubtful(other, doubts):
    """A row said “0.678×” of fp4 on eight cards and fp8 on sixteen, and no more."""
    found = held(**other)
    assert found.ratio is not None
    assert found.doubts == doubts


def test_scenarios_are_not_held_against_each_other():
    """A server was “1.01×” of what was offline."""
    found = held(scenario="server")
    assert (found.ratio, found.refused) == (None, "not alike: scenario")
    assert not held(scenario=None).refused


def test_the_mark_is_in_the_row(tmp_path):
    database = stored_in(tmp_path)
    unlike = result(precision="fp16", batch_size=4)
    store(database, "r", result(), result(batch_size=2), unlike)
    found = cells.every(taken(database, "now"), PageQuery())
    keys = {one["batch_size"]: one["key"] for one in found}
    site = visitor(database)
    plain = site.get(f"/compare?cell={keys[1]}&cell={keys[2]}").text
    marked = site.get(f"/compare?cell={keys[1]}&cell={keys[4]}").text
    assert "≠" not in plain
    assert '<abbr title="not alike: ' in marked
    assert "≠: beside what is compared" in marked


def test_quantised_outputs_are_said_in_the_row(tmp_path):
    """int8 stood beside fp32 as twice as fast, and nothing said that its outputs were unknown."""
    database = stored_in(tmp_path)
    unverified = {"verification": "not_done", "verification_error": None}
    store(
        database,
        "r",
        result(),
        result(precision="int8", **unverified),
        result(precision="int8", batch_size=2, verification="ok", verification_error=0.01),
    )
    found = cells.every(taken(database, "now"), PageQuery())
    keys = {(one["precision"], one["batch_size"]): one["key"] for one in found}
    site = visitor(database)
    first = f"/compare?cell={keys['fp32', 1]}"
    said = "not known to be exact: outputs not verified"
    assert site.get(f"{first}&cell={keys['int8', 1]}").text.count(said) == 1
    assert said not in site.get(f"{first}&cell={keys['int8', 2]}").text

"""Pages of models, devices and of two things beside each other: their figures are the store's."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any
from urllib.parse import urlencode

import pytest
from dashboard_world import HOSTILE, OTHER, result, store, visitor
from starlette.testclient import TestClient
from test_dashboard_names import read

from accelbench.analysis.ratios import ratio
from accelbench.analysis.run_noise import Histories
from accelbench.core.nouns import digits
from accelbench.query.baselines import BaselineQuery, baseline_of_run
from accelbench.query.run_names import UnknownRunError
from accelbench.report.dashboard.entities import common_ground, device_pages
from accelbench.report.dashboard.entities import lists as entities
from accelbench.report.dashboard.entities.lists import address_of
from accelbench.report.dashboard.words import seen
from accelbench.store.database import Database

SLOW, FAST = "Slow card", "Fast card"
#: Milliseconds of a step: of each model on either device; the third is slower on the fast one.
TIMES = {"bert-tiny": (8.0, 2.0), "vit-tiny": (6.0, 3.0), "resnet-tiny": (4.0, 5.0)}
LAUNCHES = (0.99, 1.0, 1.02)
FIVE = (0.99, 1.0, 1.01, 1.0, 1.02)


def launches(ms: float, shares: Sequence[float] = LAUNCHES, **changes: Any) -> list[dict[str, Any]]:
    return [
        result(launch=number, latency_p50_ms=ms * share, throughput=1e3 / (ms * share), **changes)
        for number, share in enumerate(shares)
    ]


def card(name: str) -> dict[str, str]:
    return {"hardware": "cuda", "device_name": name, "device_fingerprint": name}


def filled(path: Path) -> Database:
    """Three models on two devices, one of them by two engines as well, and a lonely device."""
    database = Database(path)
    database.ensure()
    rows = [
        row
        for model, times in TIMES.items()
        for name, ms in zip((SLOW, FAST), times, strict=True)
        for row in launches(ms, model=model, **card(name))
    ]
    rows += launches(2.5, runtime="onnxruntime", **card(FAST))
    rows += launches(2.0, batch_size=4, **card(FAST))
    rows += [result(model="lonely", **card("Lonely card"), batch_size=3)]
    store(database, "r", *rows)
    return database


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Database:
    return filled(tmp_path_factory.mktemp("entities") / "results.duckdb")


@pytest.fixture(scope="module")
def visited(database: Database) -> TestClient:
    return visitor(database)


def text(page: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", page)).split())


def rows_of(page: str, region: str) -> list[list[str]]:
    """The cells of a table's lines, as text."""
    table = page.partition(f'aria-label="{region}"')[2].partition("</table>")[0]
    lines = table.partition("<tbody>")[2].split("<tr>")[1:]
    return [
        [text(cell) for cell in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", line, re.DOTALL)]
        for line in lines
    ]


def answers(page: str) -> str:
    return " ".join(text(part) for part in re.findall(r'<p class="answer.*?</p>', page, re.DOTALL))


def asked(database: Database, sql: str, *values: object) -> list[Sequence[Any]]:
    return [*database.query(sql, list(values))[1]]


MIDDLE = "exp(avg(ln(latency_mean_ms)))"


def test_the_list_of_models_says_what_sql_says(visited: TestClient, database: Database) -> None:
    lines = {line[0]: line for line in rows_of(visited.get("/models").text, "Table of models")}
    counted = asked(
        database,
        "SELECT model, count(DISTINCT case_id || device_name), count(DISTINCT device_name)"
        " FROM benchmark_results GROUP BY 1",
    )
    assert set(lines) == {str(model) for model, _, _ in counted}
    for model, cells, devices in counted:
        assert lines[model][3:5] == [str(cells), str(devices)]
    ((quickest,),) = asked(
        database,
        f"SELECT {MIDDLE} FROM benchmark_results WHERE model = 'bert-tiny' AND batch_size = 1"
        " AND device_name = ? AND runtime = 'pytorch'",
        FAST,
    )
    assert lines["bert-tiny"][6] == f"{digits(quickest)} ms"
    assert lines["bert-tiny"][7].endswith("pytorch · fp32 · batch 1")


def test_the_list_of_devices_says_what_sql_says(visited: TestClient, database: Database) -> None:
    lines = {line[0]: line for line in rows_of(visited.get("/devices").text, "Table of devices")}
    counted = asked(
        database,
        "SELECT device_name, count(DISTINCT (model, batch_size, runtime)), count(DISTINCT model)"
        " FROM benchmark_results GROUP BY 1",
    )
    assert {name: line[2:4] for name, line in lines.items()} == {
        name: [str(cells), str(models)] for name, cells, models in counted
    }


def test_a_list_is_filtered_ordered_and_searched_by_its_address(visited: TestClient) -> None:
    page = visited.get("/models?model=vit&sort=-date").text
    assert [line[0] for line in rows_of(page, "Table of models")] == ["vit-tiny"]
    assert "No model matches." in visited.get("/models?model=zzz").text
    ordered = rows_of(visited.get("/models?sort=-launches").text, "Table of models")
    assert ordered[0][0] == "bert-tiny"


def test_lists_begin_with_what_is_newest_and_the_alphabet_is_a_choice(tmp_path: Path) -> None:
    database = Database(tmp_path / "a.duckdb")
    database.ensure()
    early, late = "2026-01-01T00:00:00+00:00", "2026-05-01T00:00:00+00:00"
    both = {**card(FAST), "device_name": "Anything"}
    store(database, "old", result(model="a-model", started_at=early, **card(SLOW)))
    store(
        database,
        "new",
        result(model="b-model", started_at=late, **both),
        result(model="c-model", started_at=late, **both),
        result(model="c-model", started_at=late, **{**both, "hardware": "openvino"}),
    )
    site = visitor(database)
    page = site.get("/models").text
    # Of one moment what has more comes first.
    assert [line[0] for line in rows_of(page, "Table of models")] == [
        "c-model",
        "b-model",
        "a-model",
    ]
    assert 'aria-sort="descending"' in page
    (named,) = re.findall(r'<a href="([^"]+)">Model<', page)
    ordered = rows_of(site.get(html.unescape(named)).text, "Table of models")
    assert [line[0] for line in ordered] == ["a-model", "b-model", "c-model"]
    devices = rows_of(site.get("/devices").text, "Table of devices")
    assert [line[:2] for line in devices] == [["Anything", "cuda, openvino"], [SLOW, "cuda"]]


def test_every_figure_of_a_model_is_the_stores(visited: TestClient, database: Database) -> None:
    page = visited.get("/model/bert-tiny").text
    lines = rows_of(page, "Table of configurations")
    for device, runtime, batch, middle in asked(
        database,
        f"SELECT device_name, runtime, batch_size, {MIDDLE} FROM benchmark_results"
        " WHERE model = 'bert-tiny' GROUP BY 1, 2, 3",
    ):
        (line,) = [one for one in lines if one[1:5] == [device, runtime, "fp32", str(batch)]]
        assert line[5].startswith(f"{digits(middle)} ")
    assert len(lines) == 4


def test_a_model_begins_with_what_is_fastest_and_by_how_much(visited: TestClient) -> None:
    said = answers(visited.get("/model/bert-tiny").text)
    assert said.startswith("bert-tiny, inference, batch 1: pytorch on Fast card in fp32, 2.01 ms")
    assert "pytorch on Slow card in fp32 takes 4.00× as long (95 % interval" in said


def test_what_overlaps_is_said_to_be_untold(tmp_path: Path) -> None:
    database = Database(tmp_path / "a.duckdb")
    database.ensure()
    noisy = [
        result(launch=n, latency_p50_ms=ms, **card(name))
        for name, times in ((SLOW, (1.0, 4.0)), (FAST, (1.1, 3.0)))
        for n, ms in enumerate(times)
    ]
    store(database, "r", *noisy)
    site = visitor(database)
    assert "cannot be told" in answers(site.get("/model/bert-tiny").text)
    page = site.get(f"/devices?{urlencode({'a': SLOW, 'b': FAST})}").text
    assert answers(page).startswith("Can't tell how Fast card compares with Slow card")


def test_outputs_are_listed_with_error_and_reference(tmp_path: Path) -> None:
    database = Database(tmp_path / "a.duckdb")
    database.ensure()
    found = {"verification_error": 0.003, "verification_tolerance": 0.02}
    near = {**found, "verification_error": 0.001, "launch": 1}
    store(
        database,
        "r",
        result(verification="reference"),
        result(runtime="onnxruntime", verification="ok", **found),
        result(runtime="onnxruntime", verification="ok", **near),
        result(runtime="openvino", verification="not_done"),
        result(runtime="ncnn", status="failed", reason="wrong_outputs", verification="failed"),
    )
    page = visitor(database).get("/model/bert-tiny").text
    lines = rows_of(page, "Table of verification")
    assert [line[1] for line in lines] == ["ncnn", "onnxruntime", "pytorch"]
    assert lines[0][3] == "wrong"
    assert lines[1][3:7] == ["within tolerance", "PyTorch in fp32 on the CPU", "0.00300", "0.0200"]
    assert lines[2][3] == "the reference itself"
    assert "Of 1 way to run it (engine and precision on a device) outputs were not" in text(page)


def test_the_fastest_is_that_of_all_where_a_page_has_no_room_for_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = Database(tmp_path / "a.duckdb")
    database.ensure()
    devices = {"A card": 9.0, "B card": 8.0, "C card": 2.0}
    rows = [
        result(hardware="cuda", device_name=name, case_id=name, series_key=name,
               launch=launch, latency_mean_ms=ms * factor,
               latency_p50_ms=ms * factor, throughput_items_per_s=1000.0 / ms / factor)
        for name, ms in devices.items()
        for launch, factor in enumerate(FIVE)
    ]  # fmt: skip
    store(database, "r", *rows)
    monkeypatch.setattr("accelbench.report.dashboard.entities.lists.MOST_CELLS", 2)
    monkeypatch.setattr("accelbench.report.dashboard.entities.model_pages.MOST_CELLS", 2)
    page = visitor(database).get("/model/bert-tiny").text
    assert "C card" in answers(page)
    assert "are of 2 of 3 configurations, the quickest of each device" in text(page)


def test_a_models_pictures_are_files_and_what_is_not_there_is_said(visited: TestClient) -> None:
    page = visited.get("/model/bert-tiny").text
    sources = [html.unescape(one) for one in re.findall(r'<img src="([^"]+)"', page)]
    assert sources[0].startswith("/model-chart/model-panels.svg?name=bert-tiny")
    for source in sources:
        assert visited.get(source).headers["content-type"] == "image/svg+xml"
    assert visited.get("/model-chart/pareto.svg?name=nobody").status_code == 404
    gone = visited.get("/model/nobody")
    assert gone.status_code == 404
    assert "Nothing here is of a model" in text(gone.text)
    assert visited.get("/model/bert-tiny?mode=training").status_code == 400
    said = text(visited.get("/predictions/model?name=bert-tiny").text)
    assert "Predictions are judged by 10 measured cases of 3 models or more" in said


def test_the_table_of_a_model_turns_its_pages_and_leaves_answers_and_pictures_whole(
    visited: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(entities, "CONFIGURATIONS", 2)
    monkeypatch.setattr("accelbench.report.dashboard.entities.model_pages.CONFIGURATIONS", 2)
    first = visited.get("/model/bert-tiny").text
    assert "4 configurations" in text(first)
    assert "Page 1 of 2" in text(first)
    (onward,) = re.findall(r'<a rel="next" href="([^"]+)"', first)
    second = visited.get(html.unescape(onward)).text
    pages = [rows_of(page, "Table of configurations") for page in (first, second)]
    # The quickest item of all is of a batch of four: half a millisecond.
    assert [[line[1:5] for line in lines] for lines in pages] == [
        [[FAST, "pytorch", "fp32", "4"], [FAST, "pytorch", "fp32", "1"]],
        [[FAST, "onnxruntime", "fp32", "1"], [SLOW, "pytorch", "fp32", "1"]],
    ]
    assert answers(first) == answers(second)
    pictures = [re.findall(r'<img src="([^"]+)"', page) for page in (first, second)]
    assert pictures[0]
    assert pictures[0] == pictures[1]


def test_what_counts_nowhere_stands_behind_what_does_and_failures_last(tmp_path: Path) -> None:
    database = Database(tmp_path / "a.duckdb")
    database.ensure()
    rough = {"quality": "unusable", "latency_p50_ms": 0.1, "throughput": 1e4}
    store(
        database,
        "r",
        result(batch_size=2, **rough, **card(SLOW)),
        *launches(8.0, **card(SLOW)),
        *launches(9.0, **card(FAST)),
        result(batch_size=3, status="failed", reason="out_of_memory", **card(FAST)),
    )
    page = visitor(database).get("/model/bert-tiny").text
    lines = rows_of(page, "Table of configurations")
    assert [(line[1], line[4]) for line in lines] == [
        *((SLOW, "1"), (FAST, "1"), (SLOW, "2"), (FAST, "3")),
    ]


def test_what_pictures_and_answers_leave_out_is_said_and_stands_in_the_table(
    visited: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(entities, "MOST_CELLS", 2)
    monkeypatch.setattr("accelbench.report.dashboard.entities.model_pages.MOST_CELLS", 2)
    page = visited.get("/model/bert-tiny").text
    assert len(rows_of(page, "Table of configurations")) == 4
    assert "pictures and outputs are of 2 of 4 configurations" in text(page)


def test_ratios_of_devices_are_those_of_their_launches(
    visited: TestClient, database: Database
) -> None:
    page = visited.get(f"/devices?{urlencode({'a': SLOW, 'b': FAST})}").text
    lines = rows_of(page, "Table of ratios")
    assert [line[0] for line in lines] == ["resnet-tiny", "vit-tiny", "bert-tiny"]
    found = []
    for line in lines:
        slow, fast = (
            [ms for (ms,) in asked(database, _LAUNCHES, line[0], name)] for name in (SLOW, FAST)
        )
        made = ratio(*(_rows(times) for times in (fast, slow)), Histories())
        assert made is not None
        assert made.low is not None
        assert made.high is not None
        assert line[3] == f"{digits(made.value)}×"
        assert line[4] == f"{digits(made.low)}× to {digits(made.high)}×"
        found.append(made.value)
    said = answers(page)
    assert f"Fast card is {digits(median(found))}× as fast as Slow card in the median" in said
    assert "of 3 common configurations of 3 models: faster in 2; slower in 1." in said
    assert f"Slower in resnet-tiny (fp32, batch 1) {digits(min(found))}×" in said
    (source,) = [html.unescape(one) for one in re.findall(r'<img src="([^"]+)"', page)]
    assert visited.get(source).headers["content-type"] == "image/svg+xml"


_LAUNCHES = (
    "SELECT latency_mean_ms FROM benchmark_results WHERE model = ? AND device_name = ?"
    " AND batch_size = 1 AND runtime = 'pytorch' ORDER BY launch"
)


def _rows(times: Sequence[float]) -> list[dict[str, Any]]:
    return [{**result(latency_p50_ms=ms), "run_id": "r"} for ms in times]


def test_the_other_way_round_is_the_inverse(visited: TestClient) -> None:
    page = visited.get(f"/devices?{urlencode({'a': FAST, 'b': SLOW})}").text
    assert "Slow card is 0.500× as fast as Fast card" in answers(page)
    assert "Slower in bert-tiny (fp32, batch 1) 0.250×; vit-tiny" in answers(page)


def test_a_page_of_engines_begins_with_two_different_ones(visited: TestClient) -> None:
    page = visited.get("/engines").text
    assert "<title>Engines" in page
    chosen = re.findall(r'<option value="([^"]+)" selected>', page)
    assert sorted(chosen) == ["onnxruntime", "pytorch"]


def test_engines_are_in_the_menu_and_each_is_told_what_it_ran(visited: TestClient) -> None:
    page = visited.get("/engines").text
    assert '<a href="/engines" aria-current="page">Engines</a>' in page
    # Engine, configurations, those without figures, models, devices.
    assert [line[:5] for line in rows_of(page, "Table of engines")] == [
        ["pytorch", "8", "0", "4", "3"],
        ["onnxruntime", "1", "0", "1", "1"],
    ]


def test_ratios_turn_their_pages(visited: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page of two engines was 10,800 pixels long."""
    monkeypatch.setattr(device_pages, "RATIOS", 2)
    address = f"/devices?{urlencode({'a': SLOW, 'b': FAST})}"
    first, second = (visited.get(f"{address}&page={n}").text for n in (1, 2))
    assert "Page 1 of 2" in first
    assert '&amp;page=2#ratios">Next' in first
    models = [[line[0] for line in rows_of(one, "Table of ratios")] for one in (first, second)]
    assert [len(one) for one in models] == [2, 1]
    assert len({*models[0], *models[1]}) == 3
    assert visited.get(f"{address}&page=none").status_code == 400


def test_a_loser_among_engines_has_its_device_where_there_are_several(tmp_path: Path) -> None:
    database = Database(tmp_path / "several.duckdb")
    database.ensure()
    times = ((SLOW, "pytorch", 4.0), (SLOW, "onnxruntime", 8.0), (FAST, "pytorch", 2.0))
    rows = [
        row
        for name, engine, ms in (*times, (FAST, "onnxruntime", 6.0))
        for row in launches(ms, runtime=engine, **card(name))
    ]
    store(database, "r", *rows)
    address = urlencode({"a": "pytorch", "b": "onnxruntime"})
    said = answers(visitor(database).get(f"/engines?{address}").text)
    assert f"bert-tiny (fp32, batch 1, {SLOW}, cuda) " in said
    assert f"bert-tiny (fp32, batch 1, {FAST}, cuda) " in said


def test_nothing_in_common_is_refused_in_a_sentence(visited: TestClient) -> None:
    page = visited.get(f"/devices?{urlencode({'a': 'Lonely card', 'b': FAST})}").text
    assert answers(page).startswith("Nothing to compare with each other: these devices have no")
    assert "Table of ratios" not in page
    same = visited.get(f"/devices?{urlencode({'a': FAST, 'b': FAST})}")
    assert same.status_code == 400
    gone = visited.get(f"/devices?{urlencode({'a': FAST, 'b': 'Nobody'})}")
    assert gone.status_code == 404
    picture = visited.get("/beside/devices/speed-ups.svg?a=Lonely+card&b=Fast+card")
    assert picture.status_code == 404


def test_engines_are_held_against_each_other_on_one_device(visited: TestClient) -> None:
    address = urlencode({"a": "pytorch", "b": "onnxruntime", "device": FAST})
    page = visited.get(f"/engines?{address}").text
    assert "onnxruntime is 0.800× as fast as pytorch on Fast card in the median of 1" in answers(
        page
    )
    (line,) = rows_of(page, "Table of ratios")
    assert line[:5] == ["bert-tiny", "fp32", "1", FAST, "0.800×"]
    none = visited.get(
        f"/engines?{urlencode({'a': 'pytorch', 'b': 'onnxruntime', 'device': SLOW})}"
    )
    assert "have no configuration in common on Slow card" in answers(none.text)


def test_what_is_narrowed_down_counts_alone(visited: TestClient) -> None:
    page = visited.get(f"/devices?{urlencode({'a': SLOW, 'b': FAST, 'batch': '7'})}").text
    assert "no configuration that was asked for in common" in answers(page)


def test_more_in_common_than_a_page_takes_is_said(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Two configurations of three launches a side are read, the third no longer."""
    monkeypatch.setattr(common_ground, "MOST_READ", 2 * 2 * len(LAUNCHES))
    page = visitor(filled(tmp_path / "a.duckdb")).get(
        f"/devices?{urlencode({'a': SLOW, 'b': FAST})}"
    )
    assert "They have 3 configurations in common, more than a page takes: 2 of them" in text(
        page.text
    )
    assert "(2 of the 3 in common, chosen by a fixed rule)" in answers(page.text)
    assert len(rows_of(page.text, "Table of ratios")) == 2


def version(name: str, engine: str, ms: float, model: str, **changes: Any) -> dict[str, Any]:
    """An import's only launch by a version of an engine, which names no moment."""
    said = {
        "conditions": {"engine": engine},
        "provenance": "imported",
        "started_at": None,
        "finished_at": None,
        **card(name),
        **changes,
    }
    return result(latency_p50_ms=ms, throughput=1e3 / ms, model=model, **said)


def test_cards_with_versions_in_common_are_compared_by_those(tmp_path: Path) -> None:
    """A 4090 was slower than a 3090 by torch 2.9 against 1.13, where both had run 2.4."""
    old, shared, new = ("torch 1.13 eager", "torch 2.4.0 eager", "torch 2.9.1 eager")
    database = Database(tmp_path / "versions.duckdb")
    database.ensure()
    store(
        database,
        "import-1",
        *(version(SLOW, engine, ms, "lambda") for engine, ms in ((old, 6.0), (shared, 8.0))),
        *(version(FAST, engine, ms, "lambda") for engine, ms in ((new, 7.0), (shared, 4.0))),
        # Of this the cards have no version in common; of two as unlike the faster one counts.
        *(version(SLOW, engine, ms, "nest") for engine, ms in ((old, 6.0), ("torch 2.0", 5.0))),
        version(FAST, new, 10.0, "nest"),
    )
    page = visitor(database).get(f"/devices?{urlencode({'a': SLOW, 'b': FAST})}").text
    ratios = {line[0].split()[0]: line[3] for line in rows_of(page, "Table of ratios")}
    assert ratios["lambda"].startswith("2.00×")
    assert "≠" not in ratios["lambda"]
    assert ratios["nest"].startswith("0.500×")
    assert "≠" in ratios["nest"]
    said = answers(page)
    assert "slower, no interval in 1, all of them with other versions" in said
    assert f"nest (fp32, batch 1, ≠ torch 2.0 → {new}) 0.500×" in said


def test_every_configuration_counts_and_none_for_its_name(tmp_path: Path) -> None:
    """The median of two engines was of 500 of 912, which were float."""
    names = [f"m{number}" for number in range(600)]
    database = Database(tmp_path / "many.duckdb")
    database.ensure()
    store(
        database,
        "import-1",
        *(
            version(SLOW, engine, ms, name, runtime=engine)
            for name in names
            for engine, ms in (("onnx", 4.0), ("tflite", 2.0))
        ),
    )
    said = answers(
        visitor(database).get(f"/engines?{urlencode({'a': 'onnx', 'b': 'tflite'})}").text
    )
    assert "2.00× as fast as onnx in the median of 600 common configurations" in said


def test_engines_that_have_most_in_common_are_chosen_first(tmp_path: Path) -> None:
    """The two with most figures had nothing in common, and a visitor was told so."""
    database = Database(tmp_path / "pairs.duckdb")
    database.ensure()
    ran = {"alone": "abcde", "many": "fghi", "some": "gh", "few": "f"}
    store(
        database,
        "import-1",
        *(
            version(SLOW, engine, 4.0, model, runtime=engine)
            for engine, models in ran.items()
            for model in models
        ),
    )
    site = visitor(database)
    chosen = re.findall(r'<option value="([^"]+)" selected>', site.get("/engines").text)
    assert sorted(chosen) == ["many", "some"]


def test_a_device_has_its_facts_its_models_and_no_roof_where_none_is_measured(
    visited: TestClient,
) -> None:
    page = visited.get(address_of("device", FAST)).text
    assert "It is not calibrated." in text(page)
    lines = {line[0]: line for line in rows_of(page, "Table of models")}
    assert set(lines) == set(TIMES)
    assert lines["vit-tiny"][4].startswith("3.01 ")
    assert f'<option value="{SLOW}"' in page
    assert visited.get("/device/nobody").status_code == 404


def test_one_device_alone_is_held_against_none(tmp_path: Path) -> None:
    database = Database(tmp_path / "a.duckdb")
    database.ensure()
    store(database, "r", result())
    site = visitor(database)
    assert "No other device was measured" in text(site.get("/device/A%20processor").text)
    assert "There is one device" in text(site.get("/devices").text)
    assert "There is one run" in text(site.get("/runs/compare").text)


def test_an_empty_store_says_how_to_begin(empty: TestClient) -> None:
    for address in ("/models", "/devices", "/runs/compare"):
        page = empty.get(address)
        assert page.status_code == 200
        assert "accelbench run" in text(page.text)


def test_whatever_a_model_or_device_is_called_its_page_is_there(bad_site: TestClient) -> None:
    first = HOSTILE[0]
    rest = (
        f"/engines?{urlencode({'a': first, 'b': HOSTILE[1]})}",
        f"/devices?{urlencode({'a': first, 'b': HOSTILE[1]})}",
        f"/predictions/model?{urlencode({'name': first})}",
        "/models",
        "/devices",
        "/runs/compare?a=h0&b=h1",
    )
    for name in HOSTILE:
        own = (address_of("model", name), address_of("device", name))
        for address in (*own, *(rest if name == first else ())):
            answer = bad_site.get(address)
            assert answer.status_code == 200, address
            page = read(answer.text)
            assert page.whole, address
            for tag, attributes in page.elements:
                assert tag not in ("iframe", "object", "embed", "base"), address
                assert not [key for key in attributes if key.startswith("on")], address
                for key in ("href", "src", "action"):
                    if attributes.get(key):
                        assert re.match(r"#main$|[/?](?!/)", str(attributes[key])), address


def test_every_link_to_a_model_leads_to_it(bad_site: TestClient) -> None:
    page = bad_site.get("/models").text
    links = [html.unescape(one) for one in re.findall(r'href="(/model[/?][^"]*)"', page)]
    assert len(links) == len(set(links)) == len(HOSTILE)
    for link in links:
        assert bad_site.get(link).status_code == 200, link


def test_names_that_are_steps_through_folders_are_names(tmp_path: Path) -> None:
    names = ["", ".", "..", "a/b", "a?b#c", "50 %"]
    database = Database(tmp_path / "a.duckdb")
    database.ensure()
    store(database, "r", *(result(model=name) for name in names))
    site = visitor(database)
    for name in names:
        address = address_of("model", name)
        assert "." not in address.partition("?")[0]
        page = site.get(address)
        assert page.status_code == 200, name
        assert f"<bdi>{seen(name)}</bdi></h1>" in page.text


def run_pair(tmp_path: Path) -> Database:
    """Two nights: one question became slower, one stayed, one is gone."""
    database = Database(tmp_path / "a.duckdb")
    database.ensure()
    for night, slower in (("night-0", 1.0), ("night-1", 1.5)):
        store(
            database,
            night,
            *launches(8.0 * slower, FIVE),
            *launches(5.0, FIVE, batch_size=4),
            *(launches(3.0, batch_size=8) if night == "night-0" else ()),
        )
    return database


def checked(database: Database, *more: str) -> dict[str, Any]:
    """What `accelbench check --json` prints."""
    from typer.testing import CliRunner

    from accelbench.cli.commands.check import app

    words = ["--run", "night-1", "--baseline", "night-0", "--json", "--db", str(database.path)]
    answer = CliRunner().invoke(app, [*words, *more])
    document: dict[str, Any] = json.loads(answer.stdout)
    return document


def test_run_against_run_is_the_verdict_of_check(tmp_path: Path) -> None:
    database = run_pair(tmp_path)
    document = checked(database)
    page = visitor(database).get("/runs/compare?a=night-0&b=night-1").text
    assert document["outcome"] == "worse"
    assert answers(page).startswith("worse Worse than the baseline: 1 worse")
    lines = rows_of(page, "Table of figures")
    figures = [
        (question, figure) for question in document["questions"] for figure in question["figures"]
    ]
    assert len(lines) == len(figures)
    for line, (question, figure) in zip(lines, figures, strict=True):
        shown = line if len(line) == 6 else line[2:]
        if len(line) == 8:
            assert line[0] == question["what"]
            assert line[1].startswith(question["outcome"])
        assert shown[1:3] == [digits(figure["before"]), digits(figure["now"])]
        assert shown[3].startswith(f"{figure['now'] / figure['before'] - 1.0:+.1%}")
        assert shown[5] == f"{figure['launches_before']}, {figure['launches_now']}"
    assert "1 of the baseline was not measured now" in text(page)


def test_runs_of_two_machines_are_refused_until_somebody_allows_it(tmp_path: Path) -> None:
    database = Database(tmp_path / "a.duckdb")
    database.ensure()
    store(database, "here", *launches(8.0))
    store(database, "there", *launches(8.0), machine=OTHER)
    site = visitor(database)
    page = site.get("/runs/compare?a=here&b=there").text
    assert answers(page).startswith("The baseline is of lab")
    assert "allow=machine" in page
    allowed = site.get("/runs/compare?a=here&b=there&allow=machine").text
    assert "Table of figures" in allowed
    assert site.get("/runs/compare?a=here&b=there&allow=everything").status_code == 400


def test_a_run_by_the_name_of_a_file_opens_none(tmp_path: Path) -> None:
    """An address names runs: a path, a database or a URL is none of the store's."""
    database = run_pair(tmp_path)
    (tmp_path / "b.csv").write_text("model\n", encoding="utf-8")
    site = visitor(database)
    for word in (str(tmp_path / "b.csv"), str(database.path), "s3://bucket/lake", "nobody"):
        answer = site.get(f"/runs/compare?{urlencode({'a': word, 'b': 'night-1'})}")
        assert answer.status_code == 404
        assert "There is no run" in text(answer.text)
    with pytest.raises(UnknownRunError):
        baseline_of_run(database, str(tmp_path / "b.csv"), BaselineQuery({}, ("night-1",)))


def test_what_is_not_there_is_said_with_what_is(visited: TestClient) -> None:
    """A list offered its first engine in the place of one that is not there."""
    page = visited.get(f"/engines?{urlencode({'a': 'onnx'})}")
    assert page.status_code == 404
    said = "There is no engine 'onnx' here. Those with figures: pytorch, onnxruntime."
    assert said in text(page.text)
    assert re.findall(r"<option[^>]* selected>(.*?)</option>", page.text)[:2] == ["choose one"] * 2
    other = visited.get("/engines?a=pytorch")
    assert other.status_code == 200
    assert re.findall(r"<option[^>]* selected>(.*?)</option>", other.text)[:2] == [
        "choose one",
        "pytorch",
    ]
    assert "Choose another engine." in text(other.text)


def test_that_two_engines_are_two_is_no_doubt(tmp_path: Path) -> None:
    """≠ stood on each imported row: its source calls an engine by its name."""
    database = Database(tmp_path / "engines.duckdb")
    database.ensure()
    rows = [
        version(SLOW, engine, ms, "nest", runtime=engine)
        for engine, ms in (("onnx", 4.0), ("tflite", 2.0))
    ]
    store(database, "import-1", *rows)
    page = visitor(database).get(f"/engines?{urlencode({'a': 'onnx', 'b': 'tflite'})}").text
    table = page.partition('aria-label="Table of ratios"')[2].partition("</table>")[0]
    assert "≠" not in table
    assert "; single figures: no interval; all imported</caption>" in table
    assert "95 % interval" not in text(page)


def test_own_versions_that_are_not_alike_are_said_to_be_of_the_newest_software(
    tmp_path: Path,
) -> None:
    database = Database(tmp_path / "own.duckdb")
    database.ensure()
    for name, torch in ((SLOW, "2.12"), (FAST, "2.13")):
        ran = {"conditions": {"packages": {"torch": torch}}, **card(name)}
        store(database, f"r-{torch}", *launches(4.0, **ran))
    address = f"/devices?{urlencode({'a': SLOW, 'b': FAST})}"
    assert "earlier runs with the versions of the other device are not compared" in text(
        visitor(database).get(address).text
    )
    same = Database(tmp_path / "same.duckdb")
    same.ensure()
    for name in (SLOW, FAST):
        ran = {"conditions": {"packages": {"torch": "2.13"}}, **card(name)}
        store(same, f"r-{name}", *launches(4.0, **ran))
    assert "are not compared on this page" not in text(visitor(same).get(address).text)

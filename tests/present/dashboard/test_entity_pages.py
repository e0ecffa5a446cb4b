"""Pages of models and devices: their figures are the store's."""

import html
import re
from urllib.parse import urlencode

from dashboard_world import HOSTILE, result, store, stored_in, visitor
from entity_store import FAST, FIVE, SLOW, TIMES, answers, card, launches, rows_of, text
from test_dashboard_names import read

from accelbench.present.dashboard import common_ground
from accelbench.present.dashboard.common_ground import address_of
from accelbench.present.dashboard.words import seen


def test_pages_of_models_and_devices(visited, bad_site):
    # A list is filtered ordered and searched by its address.
    page = visited.get("/models?model=vit&sort=-date").text
    assert [line[0] for line in rows_of(page, "Table of models")] == ["vit-tiny"]
    assert "No model matches." in visited.get("/models?model=zzz").text
    ordered = rows_of(visited.get("/models?sort=-launches").text, "Table of models")
    assert ordered[0][0] == "bert-tiny"
    # A model begins with what is fastest and by how much.
    said = answers(visited.get("/model/bert-tiny").text)
    assert said.startswith("bert-tiny, inference, batch 1: pytorch on Fast card in fp32, 2.01 ms")
    assert "pytorch on Slow card in fp32 takes 4.00× as long (95 % interval" in said
    # A models pictures are files and what is not there is said.
    page = visited.get("/model/bert-tiny").text
    sources = [html.unescape(one) for one in re.findall(r'<img src="([^"]+)"', page)]
    assert sources[0].startswith("/model-chart/model-panels.svg?name=bert-tiny")
    for source in sources:
        assert visited.get(source).headers["content-type"] == "image/svg+xml"
    assert visited.get("/model-chart/pareto.svg?name=nobody").status_code == 404
    gone = visited.get("/model/nobody")
    assert gone.status_code == 404
    assert "There is no model 'nobody' here." in text(gone.text)
    assert visited.get("/model/bert-tiny?mode=training").status_code == 400
    said = text(visited.get("/predictions/model?name=bert-tiny").text)
    assert "Predictions are judged by 10 measured cases of 3 models or more" in said
    # A device has its facts its models and no roof where none is measured.
    page = visited.get(address_of("device", FAST)).text
    assert "It is not calibrated." in text(page)
    lines = {line[0]: line for line in rows_of(page, "Table of models")}
    assert set(lines) == set(TIMES)
    assert lines["vit-tiny"][4].startswith("3.01 ")
    assert f'<option value="{SLOW}"' in page
    assert visited.get("/device/nobody").status_code == 404
    # Every link to a model leads to it.
    page = bad_site.get("/models").text
    links = [html.unescape(one) for one in re.findall(r'href="(/model[/?][^"]*)"', page)]
    assert len(links) == len(set(links)) == len(HOSTILE)
    for link in links:
        assert bad_site.get(link).status_code == 200, link


def test_lists_begin_with_what_is_newest_and_the_alphabet_is_a_choice(tmp_path):
    database = stored_in(tmp_path)
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


def test_what_overlaps_is_said_to_be_untold(tmp_path):
    database = stored_in(tmp_path)
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


def test_outputs_are_listed_with_error_and_reference(tmp_path):
    database = stored_in(tmp_path)
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


def test_the_fastest_is_that_of_all_where_a_page_has_no_room_for_all(tmp_path, monkeypatch):
    database = stored_in(tmp_path)
    devices = {"A card": 9.0, "B card": 8.0, "C card": 2.0}
    rows = [
        result(hardware="cuda", device_name=name, case_id=name, series_key=name,
               launch=launch, latency_mean_ms=ms * factor,
               latency_p50_ms=ms * factor, throughput_items_per_s=1000.0 / ms / factor)
        for name, ms in devices.items()
        for launch, factor in enumerate(FIVE)
    ]  # fmt: skip
    store(database, "r", *rows)
    monkeypatch.setattr("accelbench.present.dashboard.common_ground.MOST_CELLS", 2)
    page = visitor(database).get("/model/bert-tiny").text
    assert "C card" in answers(page)
    assert "are of 2 of 3 configurations, the quickest of each device" in text(page)


def test_the_table_of_a_model_turns_its_pages_and_leaves_answers_and_pictures_whole(
    visited, monkeypatch
):
    monkeypatch.setattr(common_ground, "CONFIGURATIONS", 2)
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


def test_what_counts_nowhere_stands_behind_what_does_and_failures_last(tmp_path):
    database = stored_in(tmp_path)
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
        *((SLOW, "1"), (FAST, "1"), (SLOW, "2"), (FAST, "3"))
    ]


def test_what_pictures_and_answers_leave_out_is_said_and_stands_in_the_table(visited, monkeypatch):
    monkeypatch.setattr(common_ground, "MOST_CELLS", 2)
    page = visited.get("/model/bert-tiny").text
    assert len(rows_of(page, "Table of configurations")) == 4
    assert "pictures and outputs are of 2 of 4 configurations" in text(page)


def test_an_empty_store_says_how_to_begin(empty):
    for address in ("/models", "/devices", "/runs/compare"):
        page = empty.get(address)
        assert page.status_code == 200
        assert "accelbench run" in text(page.text)


def test_whatever_a_model_or_device_is_called_its_page_is_there(bad_site):
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


def test_names_that_are_steps_through_folders_are_names(tmp_path):
    names = ["", ".", "..", "a/b", "a?b#c", "50 %"]
    database = stored_in(tmp_path, *(result(model=name) for name in names))
    site = visitor(database)
    for name in names:
        address = address_of("model", name)
        assert "." not in address.partition("?")[0]
        page = site.get(address)
        assert page.status_code == 200, name
        assert f"<bdi>{seen(name)}</bdi></h1>" in page.text

"""Two devices, or two engines, beside each other: ratios are those of their launches."""

from __future__ import annotations

import html
import math
import re
from collections.abc import Sequence
from statistics import median
from typing import Any
from urllib.parse import urlencode

from dashboard_world import result, store, stored_in, visitor
from entity_store import FAST, SLOW, answers, asked, card, filled, launches, rows_of, text, version

from accelbench.core.formatting import format_digits
from accelbench.core.result_statistics import Statistic
from accelbench.judge.comparison import Compared
from accelbench.judge.ratios import LAUNCHES, SAMPLES, Ratio, ratio
from accelbench.judge.run_noise import Histories
from accelbench.judge.sides import Side
from accelbench.judge.speed_ups import SpeedUps
from accelbench.present.dashboard import common_ground, entity_pages
from accelbench.present.dashboard.common_ground import CommonGround, answer, sides_of


def test_devices_and_engines_beside_each_other(visited, cards):
    # Ratios of devices are those of their launches.
    page = visited.get(f"/devices?{urlencode({'a': SLOW, 'b': FAST})}").text
    lines = rows_of(page, "Table of ratios")
    assert [line[0] for line in lines] == ["resnet-tiny", "vit-tiny", "bert-tiny"]
    found = []
    for line in lines:
        slow, fast = (
            [ms for (ms,) in asked(cards, _LAUNCHES, line[0], name)] for name in (SLOW, FAST)
        )
        made = ratio(*(_rows(times) for times in (fast, slow)), Histories())
        assert made is not None
        assert made.low is not None
        assert made.high is not None
        assert line[3] == f"{format_digits(made.value)}×"
        assert line[4] == f"{format_digits(made.low)}× to {format_digits(made.high)}×"
        found.append(made.value)
    said = answers(page)
    assert (
        f"Fast card is {format_digits(median(found))}× as fast as Slow card in the median" in said
    )
    assert "of 3 common configurations of 3 models: faster in 2; slower in 1." in said
    assert f"Slower in resnet-tiny (fp32, batch 1) {format_digits(min(found))}×" in said
    (source,) = [html.unescape(one) for one in re.findall(r'<img src="([^"]+)"', page)]
    assert visited.get(source).headers["content-type"] == "image/svg+xml"
    # The other way round is the inverse.
    page = visited.get(f"/devices?{urlencode({'a': FAST, 'b': SLOW})}").text
    assert "Slow card is 0.500× as fast as Fast card" in answers(page)
    assert "Slower in bert-tiny (fp32, batch 1) 0.250×; vit-tiny" in answers(page)
    # A page of engines begins with two different ones.
    page = visited.get("/engines").text
    assert "<title>Engines" in page
    chosen = re.findall(r'<option value="([^"]+)" selected>', page)
    assert sorted(chosen) == ["onnxruntime", "pytorch"]
    # Engines are in the menu and each is told what it ran.
    page = visited.get("/engines").text
    assert '<a href="/engines" aria-current="page">Engines</a>' in page
    # Engine, configurations, models, devices.
    assert [line[:4] for line in rows_of(page, "Table of engines")] == [
        ["pytorch", "8", "4", "3"],
        ["onnxruntime", "1", "1", "1"],
    ]
    # Nothing in common is refused in a sentence.
    page = visited.get(f"/devices?{urlencode({'a': 'Lonely card', 'b': FAST})}").text
    assert answers(page).startswith("Nothing to compare with each other: these devices have no")
    assert "Table of ratios" not in page
    same = visited.get(f"/devices?{urlencode({'a': FAST, 'b': FAST})}")
    assert same.status_code == 400
    gone = visited.get(f"/devices?{urlencode({'a': FAST, 'b': 'Nobody'})}")
    assert gone.status_code == 404
    picture = visited.get("/beside/devices/speed-ups.svg?a=Lonely+card&b=Fast+card")
    assert picture.status_code == 404
    # Engines are held against each other on one device.
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
    page = visited.get(f"/devices?{urlencode({'a': SLOW, 'b': FAST, 'batch': '7'})}").text
    assert "no configuration that was asked for in common" in answers(page)
    # A list offered its first engine in the place of one that is not there.
    page = visited.get(f"/engines?{urlencode({'a': 'onnx'})}")
    assert page.status_code == 404
    said = "There is no engine 'onnx' here. Those with results: pytorch, onnxruntime."
    assert said in text(page.text)
    assert re.findall(r"<option[^>]* selected>(.*?)</option>", page.text)[:2] == ["choose one"] * 2
    other = visited.get("/engines?a=pytorch")
    assert other.status_code == 200
    assert re.findall(r"<option[^>]* selected>(.*?)</option>", other.text)[:2] == [
        "choose one",
        "pytorch",
    ]
    assert "Choose another engine." in text(other.text)


_LAUNCHES = (
    "SELECT latency_mean_ms FROM benchmark_results WHERE model = ? AND device_name = ?"
    " AND batch_size = 1 AND runtime = 'pytorch' ORDER BY launch"
)


def _rows(times: Sequence[float]) -> list[dict[str, Any]]:
    return [{**result(latency_p50_ms=ms), "run_id": "r"} for ms in times]


def test_ratios_turn_their_pages(visited, monkeypatch):
    """The page of two engines was 10,800 pixels long."""
    monkeypatch.setattr(entity_pages, "RATIOS", 2)
    address = f"/devices?{urlencode({'a': SLOW, 'b': FAST})}"
    first, second = (visited.get(f"{address}&page={n}").text for n in (1, 2))
    assert "Page 1 of 2" in first
    assert '&amp;page=2#ratios">Next' in first
    models = [[line[0] for line in rows_of(one, "Table of ratios")] for one in (first, second)]
    assert [len(one) for one in models] == [2, 1]
    assert len({*models[0], *models[1]}) == 3
    assert visited.get(f"{address}&page=none").status_code == 400


def test_a_loser_among_engines_has_its_device_where_there_are_several(tmp_path):
    database = stored_in(tmp_path / "several.duckdb")
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


def test_more_in_common_than_a_page_takes_is_said(monkeypatch, tmp_path):
    """Two configurations of three launches a side are read, the third no longer."""
    monkeypatch.setattr(common_ground, "MOST_READ", 2 * 2 * 3)
    page = visitor(filled(tmp_path / "a.duckdb")).get(
        f"/devices?{urlencode({'a': SLOW, 'b': FAST})}"
    )
    assert "They have 3 configurations in common, more than a page takes: 2 of them" in text(
        page.text
    )
    assert "(2 of the 3 in common, chosen by a fixed rule)" in answers(page.text)
    assert len(rows_of(page.text, "Table of ratios")) == 2


def test_cards_with_versions_in_common_are_compared_by_those(tmp_path):
    """A 4090 was slower than a 3090 by torch 2.9 against 1.13, where both had run 2.4."""
    old, shared, new = ("torch 1.13 eager", "torch 2.4.0 eager", "torch 2.9.1 eager")
    database = stored_in(
        tmp_path / "versions.duckdb",
        *(version(SLOW, engine, ms, "lambda") for engine, ms in ((old, 6.0), (shared, 8.0))),
        *(version(FAST, engine, ms, "lambda") for engine, ms in ((new, 7.0), (shared, 4.0))),
        # Of this the cards have no version in common; of two as unlike the faster one counts.
        *(version(SLOW, engine, ms, "nest") for engine, ms in ((old, 6.0), ("torch 2.0", 5.0))),
        version(FAST, new, 10.0, "nest"),
        run="import-1",
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


def test_every_configuration_counts_and_none_for_its_name(tmp_path):
    """The median of two engines was of 500 of 912, which were float."""
    names = [f"m{number}" for number in range(600)]
    database = stored_in(
        tmp_path / "many.duckdb",
        *(
            version(SLOW, engine, ms, name, runtime=engine)
            for name in names
            for engine, ms in (("onnx", 4.0), ("tflite", 2.0))
        ),
        run="import-1",
    )
    said = answers(
        visitor(database).get(f"/engines?{urlencode({'a': 'onnx', 'b': 'tflite'})}").text
    )
    assert "2.00× as fast as onnx in the median of 600 common configurations" in said


def test_engines_that_have_most_in_common_are_chosen_first(tmp_path):
    """The two with most figures had nothing in common, and a visitor was told so."""
    database = stored_in(tmp_path / "pairs.duckdb")
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


def test_one_device_alone_is_held_against_none(tmp_path):
    database = stored_in(tmp_path, result())
    site = visitor(database)
    assert "No other device was measured" in text(site.get("/device/A%20processor").text)
    assert "There is one device" in text(site.get("/devices").text)
    assert "There is one run" in text(site.get("/runs/compare").text)


def test_that_two_engines_are_two_is_no_doubt(tmp_path):
    """≠ stood on each imported row: its source calls an engine by its name."""
    database = stored_in(tmp_path / "engines.duckdb")
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


def test_own_versions_that_are_not_alike_are_said_to_be_of_the_newest_software(tmp_path):
    database = stored_in(tmp_path / "own.duckdb")
    for name, torch in ((SLOW, "2.12"), (FAST, "2.13")):
        ran = {"conditions": {"packages": {"torch": torch}}, **card(name)}
        store(database, f"r-{torch}", *launches(4.0, **ran))
    address = f"/devices?{urlencode({'a': SLOW, 'b': FAST})}"
    assert "earlier runs with the versions of the other device are not compared" in text(
        visitor(database).get(address).text
    )
    same = stored_in(tmp_path / "same.duckdb")
    for name in (SLOW, FAST):
        ran = {"conditions": {"packages": {"torch": "2.13"}}, **card(name)}
        store(same, f"r-{name}", *launches(4.0, **ran))
    assert "are not compared on this page" not in text(visitor(same).get(address).text)


def line(model: str, value: float, low: float, high: float, of: str = LAUNCHES) -> Compared:
    side = Side(("b",), [{"model": model}])
    return Compared(side, side, Ratio(value, Statistic.MEAN, (3, 3), low, high, of))


def said(*lines: Compared) -> str:
    ground = CommonGround(SpeedUps(lines), len(lines), len(lines), {}, ((), ()))
    return answer(sides_of(False, "a", "b", "", {}), ground)


def test_counts():
    # Two that are faster for certain, by how much nobody knows, are not in the median.
    side = Side(("b",), [{"model": "z"}])
    lines = [
        *(line(f"m{n}", 1.5, 1.4, 1.6) for n in range(3)),
        line("slow", 0.8, 0.7, 0.9),
        *(line(f"rough{n}", 5.0, 1.1, 20.0) for n in range(2)),
        Compared(side, side, refused="not alike: weights"),
    ]
    assert said(*lines) == (
        "b is 1.50× as fast as a in the median of 4 common configurations of 4 models: faster in 3;"
        " slower in 1. Beside these 2 known too roughly for a ratio and 1 not compared."
    )
    told = said(line("m", 1.5, 1.4, 1.6), line("n", 1.3, 1.2, 1.4, SAMPLES))
    assert told.endswith(": faster in 2, 1 of them within single launches.")
    # Of 4 and 0.125 the arithmetic middle is 2.06, and the other way round 4.13.
    there = SpeedUps([line("m", 4.0, 3.9, 4.1), line("n", 0.125, 0.12, 0.13)]).median
    back = SpeedUps([line("m", 0.25, 0.24, 0.26), line("n", 8.0, 7.9, 8.1)]).median
    assert there is not None
    assert back is not None
    assert math.isclose(there * back, 1.0)

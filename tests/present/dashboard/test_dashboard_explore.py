"""Exploring: points by chosen axes, their front, distributions; all of it in the address."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from dashboard_world import result, served, store, stored_in, visitor
from starlette.testclient import TestClient

from accelbench.present.charts.axes import ChartAxis
from accelbench.present.dashboard import explore_points as explore_points
from accelbench.present.dashboard.explore_pages import names_of_front
from accelbench.present.dashboard.explore_points import ticks_of
from accelbench.store.database import Database

#: Model, engine, milliseconds, items a second: b and d are beaten by others.
_FIGURES = (
    ("a", "pytorch", 1.0, 100.0),
    ("b", "pytorch", 2.0, 90.0),
    ("c", "openvino", 4.0, 400.0),
    ("d", "openvino", 9.0, 300.0),
)


def explored(database: Database) -> None:
    store(
        database,
        "points",
        *(
            result(
                model=name,
                runtime=engine,
                latency_p50_ms=ms,
                throughput=rate,
                parameters=int(1e6 * ms),
                ttft_ms=5 * ms,
                tpot_ms=ms,
            )
            for name, engine, ms, rate in _FIGURES
        ),
        result(model="bad", latency_p50_ms=0.1, throughput=9e9, quality="unusable"),
        result(model="stand-in", latency_p50_ms=0.1, throughput=9e9, emulated=True),
        result(model="theirs", provenance="imported", latency_p50_ms=8.0, throughput=500.0),
    )


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Database:
    made = stored_in(tmp_path_factory.mktemp("explored") / "e.duckdb")
    explored(made)
    return made


@pytest.fixture(scope="module")
def there(database: Database) -> TestClient:
    return visitor(database)


def page(there: TestClient, address: str) -> str:
    answer = there.get(address)
    assert answer.status_code == 200, answer.text
    return answer.text


def models(text: str) -> list[str]:
    """Those of the table of the front, in its order."""
    table = text.partition("The front as a table")[2]
    return re.findall(r'<a href="/cell/\w+"><bdi>(.*?)</bdi>', table)


def test_points_and_fronts(there, site):
    # Points are those with usable times and imports are hollow.
    text = page(there, "/explore?x=latency&y=throughput")
    assert "5 configurations with both figures · 2 without" in text
    marks = text.partition('<g class="marks')[2].partition("</g>")[0]
    assert marks.count("<circle") == 5
    assert marks.count("hollow") == 1
    # The front is what nothing beats in both.
    text = page(there, "/explore?x=latency&y=throughput")
    assert models(text) == ["a", "c", "theirs"]
    assert 'class="front"' in text
    names = re.findall(r'<text class="name"[^>]*>(.*?)</text>', text)
    assert set(names) <= {"a", "c", "theirs"}
    # Where nobody knows what is better along the best up are told.
    text = page(there, "/explore?x=parameters&y=latency")
    assert models(text) == ["a", "b", "c", "d"]
    assert 'class="front"' not in text
    # First token against tokens a second is a question where there are such.
    text = page(there, "/explore?x=ttft&y=token-rate")
    assert models(text) == ["a"]  # 5 ms and 1,000 a second: nothing beats it
    assert "1,000" in text.partition("The front as a table")[2]
    assert "First token against tokens a second for a user" in page(there, "/explore")
    assert "First token" not in page(site, "/explore")
    # The address says all of it.
    text = page(
        there,
        "/explore?x=parameters&y=latency&colour=runtime&size=throughput&find=open&x-from=1.5"
        "&runtime=openvino",
    )
    for name, value in (("x", "parameters"), ("y", "latency"), ("size", "throughput")):
        select = text.partition(f'<select id="{name}"')[2].partition("</select>")[0]
        assert f'value="{value}" selected' in select
    assert '<input type="hidden" name="runtime" value="openvino">' in text
    assert 'name="colour" value="runtime"' in text  # the filters keep the axes
    assert "2 configurations with both figures · 2 found" in " ".join(text.split())
    assert text.count('class="found') == 2
    # A part of it is a range of its axes.
    text = page(there, "/explore?x=latency&y=throughput&x-from=1.5&x-to=5")
    assert "2 configurations with both figures" in text
    assert models(text) == ["b", "c"]
    assert "Whole range" in text


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("x=speed", "There is no figure"),
        ("colour=mood", "There is no field"),
        ("x-from=wide", "Give a number"),
        ("x-from=5&x-to=2", "Give the smaller one first"),
    ],
)
def test_a_slip_is_told_in_a_sentence(there, words, said):
    answer = there.get(f"/explore?{words}")
    assert answer.status_code == 400
    assert said in answer.text


def test_what_has_no_such_figures_says_so(there, empty):
    assert "Nothing has both" in page(there, "/explore?x=energy&y=latency")
    assert "There are no results yet" in page(empty, "/explore")


def test_many_points_are_counts_at_places_and_the_same_front(there, database, monkeypatch):
    monkeypatch.setattr(explore_points, "MOST_POINTS", 3)
    text = page(visitor(database), "/explore?x=latency&y=throughput")
    assert "<circle" not in text.partition('<g class="marks')[2].partition("</g>")[0]
    assert text.partition('class="plot"')[2].partition("</svg>")[0].count('class="bin"') == 5
    assert models(text) == ["a", "c", "theirs"]


def test_pictures_of_points(there):
    # Columns for a script are where the marks stand.
    said: dict[str, Any] = there.get("/explore/points.json?x=latency&y=throughput").json()
    assert said["count"] == 5
    assert sorted(said["x"]) == [1.0, 2.0, 4.0, 8.0, 9.0]
    text = page(there, "/explore?x=latency&y=throughput")
    for x, y in zip(said["px"], said["py"], strict=True):
        assert f'cx="{x}%" cy="{y}%"' in text
    assert {len(said[name]) for name in ("said", "key", "day", "kind", "by")} == {5}
    assert set(said["day"]) == {"2026-01-02"}
    assert all(there.get(f"/cell/{key}").status_code == 200 for key in said["key"])
    # A distribution has quantiles by a field.
    text = page(there, "/explore/distribution?of=latency&by=runtime")
    rows = re.findall(r"<tr>(.*?)</tr>", text.partition("<tbody>")[2], re.DOTALL)
    cells = [re.findall(r"<t[hd][^>]*>(?:<bdi>)?(.*?)(?:</bdi>)?</t[hd]>", row) for row in rows]
    by_engine = {row[0].split()[0]: row[1:] for row in cells}
    assert by_engine["openvino"][:2] == ["2", "2"]
    assert by_engine["openvino"][4] == "6.50"  # the median of 4 and 9
    assert by_engine["pytorch"][0] == "3"
    svg = there.get("/explore/distribution.svg?of=latency&by=runtime&theme=dark")
    assert svg.status_code == 200
    assert 'fill="#0f1419"' in svg.text
    # Charts offer what can be drawn and say what others need.
    text = page(there, "/charts")
    offered = set(re.findall(r'<img src="/chart/([\w-]+)\.svg', text))
    assert "latency-distribution" in offered
    assert "scaling" not in offered
    needs = text.partition("Not drawn, and what each needs")[2]
    assert "Over time" in needs
    assert "at different times" in needs
    for name in offered:
        assert "nothing to show" not in there.get(f"/chart/{name}.svg").text
    # A picture has its room and one for dark paper and for a phone.
    text = page(there, "/charts")
    image = re.findall(r"<picture>(.*?)</picture>", text, re.DOTALL)[0]
    assert re.search(r'<img [^>]*width="\d+" height="\d+"', image)
    sources = re.findall(r'media="(.*?)" srcset="(.*?)"', image)
    assert [("dark" in media, "max-width" in media) for media, _ in sources] == [
        (True, True),
        (False, True),
        (True, False),
    ]
    dark = there.get(sources[2][1].replace("&amp;", "&"))
    assert 'fill="#0f1419"' in dark.text
    assert there.get("/chart/hardware-latency.svg?theme=pink").status_code == 400


def test_ticks_stand_on_round_numbers():
    assert ticks_of(ChartAxis("", 0.0, 9.63)) == [0, 2, 4, 6, 8]
    assert ticks_of(ChartAxis("", 0.7, 30.0, log=True)) == [1, 2, 5, 10, 20]


def test_thousands_are_summarised_and_no_alphabet_chooses(database, monkeypatch):
    from accelbench.present.dashboard import picture_pages

    monkeypatch.setattr(picture_pages, "MOST_CELLS", 3)
    text = page(visitor(database), "/charts")
    assert "are too many for pictures of single models" in text
    assert "/explore/distribution.svg?of=latency&amp;by=place" in text
    assert "/chart/hardware-latency.svg" not in text
    assert '/charts?model=a"' in text


def test_pictures_of_many_are_of_the_models_with_the_most(tmp_path):
    from accelbench.present.dashboard import cells, snapshot
    from accelbench.present.dashboard.page_query import PageQuery

    made = stored_in(tmp_path / "m.duckdb")
    one = [result(model="aa")]
    three = [result(model="zz", batch_size=n) for n in (1, 2, 4)]
    store(made, "m", *one, *three)
    taken = snapshot.taken(made, "now")
    chosen = {n: {c["model"] for c in cells.drawn(taken, PageQuery(), n)} for n in (2, 3, 4)}
    assert chosen == {2: {"zz"}, 3: {"zz"}, 4: {"aa", "zz"}}


@pytest.fixture(scope="module")
def address(database: Database) -> Iterator[str]:
    with served(database) as one:
        yield one


def test_a_point_says_what_it_is_and_a_frame_shows_a_part(tab, address):
    tab.look()
    tab.go(f"{address}/explore?x=latency&y=throughput")
    tab.until(lambda: tab.js("document.querySelector('.explored').dataset.ready === '5'"))
    at = """(name) => {
      const c = document.querySelector('.explored canvas'), b = c.getBoundingClientRect();
      const m = document.querySelectorAll('.marks circle')[name];
      const at = (side) => parseFloat(m.getAttribute(side)) / 100;
      return [b.left + at('cx') * b.width, b.top + at('cy') * b.height]; }"""
    send = """((c, kind, x, y) => c.dispatchEvent(new PointerEvent(kind, {clientX: x, clientY: y,
      bubbles: true, button: 0, pointerId: 1, pointerType: 'mouse'})))(
      document.querySelector('.explored canvas'), """
    x, y = tab.js(f"({at})(0)")
    tab.js(f"{send}'pointermove', {x}, {y})")
    said = str(tab.js("document.querySelector('.pointed').textContent"))
    assert said.startswith("a · cpu · A processor · pytorch · fp32 · batch 1")
    assert "latency of a step (median, else mean), ms: 1" in said
    assert "2026-01-02" in said
    other = tab.js(f"({at})(2)")
    tab.js("HTMLCanvasElement.prototype.setPointerCapture = () => {}")
    tab.js(f"{send}'pointerdown', {x - 20}, {y + 30})")
    tab.js(f"{send}'pointermove', {other[0] + 20}, {other[1] - 30})")
    tab.js(f"{send}'pointerup', {other[0] + 20}, {other[1] - 30})")
    tab.until(lambda: "x-from=" in str(tab.js("location.search")))
    tab.until(lambda: tab.js("document.querySelectorAll('.marks circle').length") == 3)


def test_a_precision_that_nobody_said_is_no_data(tmp_path):
    database = stored_in(tmp_path, result(precision=None, provenance="imported"))
    text = page(visitor(database), "/explore")
    assert "None" not in text.partition("The front as a table")[2]


def test_names_of_points():
    # Points of one model are each named by what tells them apart.
    rows: list[dict[str, object]] = [
        {"model": "vit", "batch_size": 1, "precision": "fp16"},
        {"model": "vit", "batch_size": 512, "precision": "fp16"},
        {"model": "bert", "batch_size": 1, "precision": "fp16"},
    ]
    # Marks so close that on the nearest line the second name would lie on the first.
    names = names_of_front(rows, [(50.0, 10.0), (51.0, 10.5), (52.0, 9.5)])
    assert [name.text for name in names] == ["vit, batch 1", "vit, batch 512", "bert"]
    assert len({name.below for name in names}) == 3
    # Names that would lie on each other are left out.
    rows = [{"model": f"model-{n}"} for n in range(7)]
    names = names_of_front(rows, [(50.0, 50.0)] * 7)
    lines = [name.below for name in names]
    assert len(set(lines)) == len(lines) == 6


def test_a_count_has_the_shade_that_the_legend_gives_it(database, monkeypatch):
    monkeypatch.setattr(explore_points, "MOST_POINTS", 3)
    text = page(visitor(database), "/explore?x=batch&y=batch")
    legend = text.partition('aria-label="Shades')[2].partition("</ul>")[0]
    entries = re.findall(r'fill-opacity="([\d.]+)"/></svg> (\d+)', legend)
    drawn = text.partition('class="plot"')[2].partition("</svg>")[0]
    assert entries[-1] == (re.findall(r'class="bin"[^>]*fill-opacity="([\d.]+)"', drawn)[0], "6")
    assert entries[0][1] == "1"

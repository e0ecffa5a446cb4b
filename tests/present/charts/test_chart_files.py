"""Charts as files: SVG, PNG and a page, whatever anybody has called a model."""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Iterator
from xml.etree import ElementTree

import pytest
from made_up_charts import HOSTILE, drawn, results, subject, subject_for
from pages_shown import shown

from accelbench.judge.points import points
from accelbench.present.charts import CHARTS, draw
from accelbench.present.charts.chart import Subject, picture
from accelbench.present.charts.draw import drawable
from accelbench.present.charts.words import safe

pytest.importorskip("vl_convert")

SVG = "{http://www.w3.org/2000/svg}"


def texts(svg: str) -> list[str]:
    """What an SVG shows, line by line."""
    return [one.text for one in ElementTree.fromstring(svg).iter() if one.text]


@pytest.mark.parametrize("name", CHARTS)
def test_an_svg_is_xml_with_its_title(name):
    said = texts(draw.svg(drawn(name).spec))
    assert CHARTS[name].title in said


@pytest.mark.parametrize("name", ["hardware-latency", "latency-by-batch", "trend"])
def test_a_png_is_one_and_as_large_as_a_slide_needs(name):
    found = draw.png(drawn(name).spec)
    assert found.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = struct.unpack(">II", found[16:24])
    assert 900 < width < 2000
    assert 200 < height < 4000


class Fontless:
    """vl-convert with a font that has no llama: what it is asked to draw as dots is kept."""

    def __init__(self) -> None:
        self.real, self.drawn = draw._engine(), list[str]()

    def svg_to_png(self, svg: str, scale: float) -> bytes:
        self.drawn.append(svg)
        return b"a box" if "&#129433;" in svg or "&#983040;" in svg else b"a letter"

    def __getattr__(self, name: str) -> object:
        return getattr(self.real, name)


def test_a_letter_that_no_font_has_is_its_code_point_in_a_png(monkeypatch):
    engine = Fontless()
    assert drawable("bert-\u0436 \U0001f999 \u2713 <b> & 'c'", engine) == (
        "bert-\u0436 <U+1F999> \u2713 <b> & 'c'"
    )
    spec = drawn("hardware-latency", subject(names=("\U0001f999-7b", "bert-tiny"))).spec
    monkeypatch.setattr(draw, "_engine", lambda: engine)
    draw.png(spec)
    assert "<U+1F999>-7b" in texts(engine.drawn[-1])
    assert "\U0001f999-7b" in texts(draw.svg(spec))  # its viewer may have such a font


def test_patterns_and_repeated_drawings():
    # A simulated bar is hatched by a pattern of the file itself.
    found = ElementTree.fromstring(draw.svg(drawn("hardware-latency").spec))
    patterns = {one.get("id") for one in found.iter(f"{SVG}pattern")}
    named = {
        match
        for one in found.iter(f"{SVG}path")
        for match in re.findall(r"^url\(#(.*)\)$", one.get("fill") or "")
    }
    assert named
    assert named <= patterns
    spec = drawn("pareto").spec
    assert draw.svg(spec) == draw.svg(spec)


# -- whatever anybody calls a model -----------------------------------------------------


@pytest.fixture(params=HOSTILE, ids=range(len(HOSTILE)))
def hostile(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.parametrize("names", list(zip(HOSTILE[::2], HOSTILE[1::2], strict=True)), ids=range(4))
@pytest.mark.parametrize("name", CHARTS)
def test_hostile_names_are_text_and_nothing_else(name, names):
    given = subject_for(name, names)
    svg = draw.svg(drawn(name, given).spec)
    tags = {one.tag.removeprefix(SVG) for one in ElementTree.fromstring(svg).iter()}
    assert tags <= {
        *("svg", "g", "path", "text", "tspan", "rect", "line", "defs", "clipPath", "pattern"),
        *("style", "linearGradient", "stop", "title"),
    }
    assert "\x00" not in svg
    assert "\u202e" not in svg
    assert max(map(len, texts(svg))) < 200


def test_hostile_names_in_each_format(hostile):
    # A hostile name is shown as it is as far as it does no harm.
    given = subject(names=(hostile, "bert-tiny"))
    said = texts(draw.svg(drawn("hardware-latency", given).spec))
    assert safe(hostile, 36) in [one.replace("\xa0", " ") for one in said]
    # A hostile name of everything is drawn as png.
    rows = results(hostile)
    columns = ("hardware", "runtime", "precision", "device_name", "run_id", "architecture")
    rows += [{**row, **dict.fromkeys(columns, hostile)} for row in results(hostile)]
    given = Subject(points(rows, {"run-1": hostile, hostile: hostile}), machine=hostile)
    names = [name for name, one in CHARTS.items() if picture(one, given) is not None]
    assert len(names) > 5
    # A name is spelled alike in every chart: each is drawn in a quarter, each chart with two names.
    for name in names[HOSTILE.index(hostile) % 4 :: 4]:
        assert draw.png(drawn(name, given).spec).startswith(b"\x89PNG")
    # A hostile name does not get out of a page.
    page = draw.page(drawn("hardware-latency", subject(names=(hostile, "bert-tiny"))))
    assert "<script>alert" not in page
    assert page.count("<script>") == page.count("</script>") == 2
    spec = json.loads(page.rpartition("vegaEmbed('#chart', ")[2].partition(", {renderer")[0])
    assert spec["concat"]


# -- a page ------------------------------------------------------------------------------


def addresses(text: str) -> Iterator[str]:
    return (one.group() for one in re.finditer(r"https?://[^\s\"'<>\\)`]+", text))


def test_a_page_names_no_address_that_it_would_fetch():
    page = draw.page(drawn("hardware-latency"))
    own = page.replace(draw._bundle(), "")
    assert set(addresses(own)) == {"https://vega.github.io/schema/vega-lite/v6.json"}
    assert not re.search(r"<(link|img|iframe|object|embed|base)\b|\ssrc=|@import", own)
    assert "default-src 'none'" in own


@pytest.mark.parametrize("name", ["hardware-latency", "latency-by-batch", "trend"])
def test_a_page_draws_says_nothing_and_fetches_nothing(tab, name, tmp_path):
    file = tmp_path / "page.html"
    file.write_text(draw.page(drawn(name)), encoding="utf-8")
    found = shown(tab, file)
    assert len(found.fills) > 10
    assert found.said == []
    assert found.fetched == [file.as_uri()]
    assert CHARTS[name].title in found.text


def test_a_page_says_the_days_of_an_axis(tab, tmp_path):
    """A page interprets its expressions, and its interpreter knows less than who draws a file."""
    file = tmp_path / "page.html"
    file.write_text(draw.page(drawn("trend")), encoding="utf-8")
    assert {"12 Jan", "19 Jan"} <= set(shown(tab, file).text.split("\n"))


def test_a_page_hatches_what_was_simulated(tab, tmp_path):
    file = tmp_path / "page.html"
    file.write_text(draw.page(drawn("hardware-latency")), encoding="utf-8")
    assert "url(#hatch-5ca400)" in shown(tab, file).fills


def test_a_page_runs_nothing_of_a_hostile_name(tab, tmp_path):
    rows = [row for name in HOSTILE for row in results(name)]
    file = tmp_path / "page.html"
    given = Subject(points(rows), machine="<img src=x onerror=alert(1)>")
    file.write_text(draw.page(drawn("hardware-latency", given)), encoding="utf-8")
    found = shown(tab, file)
    assert len(found.fills) > 10
    assert found.said == []
    assert found.fetched == [file.as_uri()]
    assert "<script>alert(1)</script>" in found.text

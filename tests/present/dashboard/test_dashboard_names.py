"""Whatever somebody called a model, a device or a run: it is text, everywhere."""

from __future__ import annotations

import csv
import io
import re
from html.parser import HTMLParser
from urllib.parse import quote

import pytest
from dashboard_world import HOSTILE
from starlette.testclient import TestClient

from accelbench.core.safe_text import csv_cell, visible
from accelbench.present.dashboard.words import devices, title

#: Elements that a page of ours is made of; a name has brought none of them.
_VOID = ("img", "input", "link", "meta", "br", "source")


class Read(HTMLParser):
    """What a browser makes of a page: elements with their attributes, and the text."""

    def __init__(self) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.said: list[str] = []
        self._open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in _VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag != "circle":
            assert self._open.pop() == tag

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.said.append(data)

    @property
    def whole(self) -> bool:
        """Whether every element that was opened was closed."""
        return not self._open


def read(page: str) -> Read:
    found = Read()
    found.feed(page)
    found.close()
    return found


def cells(site: TestClient) -> list[str]:
    return list(dict.fromkeys(re.findall(r"/cell/([0-9a-f]{16})\"", site.get("/results").text)))


#: What pages may run.
OUR_SCRIPTS = (
    {"src": "/static/app.js", "defer": None},
    {"src": "/static/explore.js", "type": "module"},
    {"src": "/static/results.js", "type": "module"},
)


def addresses(site: TestClient) -> list[str]:
    keys = cells(site)
    assert len(keys) == 2 * len(HOSTILE)
    return [
        "/",
        "/results",
        "/charts",
        "/explore?find=a",
        "/explore/distribution?by=family",
        "/chart/latency-by-batch",
        "/chart/cold-warm",
        "/history",
        "/runs",
        "/compare?" + "&".join(f"cell={key}" for key in keys[:12]),
        *(f"/matrix?precision={quote(name)}" for name in HOSTILE),
        *(f"/run/h{number}" for number in range(len(HOSTILE))),
        *(f"/cell/{key}" for key in keys),
        *(f"/results?{facet}={quote(name)}" for name in HOSTILE for facet in ("model", "hardware")),
        *(f"/results?runtime={quote(name)}" for name in ("<b>", "' OR 1=1 --")),
    ]


def test_no_name_becomes_an_element_or_an_attribute(bad_site):
    for address in addresses(bad_site):
        answer = bad_site.get(address)
        assert answer.status_code in (200, 400), address
        page = read(answer.text)
        assert page.whole, address
        for tag, attributes in page.elements:
            assert tag not in ("iframe", "object", "embed", "base"), address
            assert not [name for name in attributes if name.startswith("on")], address
            if tag == "script":
                assert attributes in OUR_SCRIPTS, address
            if tag == "img":
                assert str(attributes["src"]).startswith(("/chart/", "/explore/")), address
            for name in ("href", "src", "action"):
                link = str(attributes.get(name) or "#main")
                assert re.match(r"#main$|[/?](?!/)", link), (address, attributes)
        # Names that turn the text round stand only in what a form sends.
        body = answer.text.partition("<body>")[2]
        for place in re.finditer("\u202e", body):
            before = body[: place.start()]
            assert re.search(r'<input [^>]*value="[^"<>]*$', before), (address, before[-200:])


def test_names_are_text_in_pages_links_and_files(bad_site):
    results = bad_site.get("/results").text
    said = " ".join(read(results).said)
    assert all(visible(name) in said for name in HOSTILE)
    assert results.count('name="cell"') == 2 * len(HOSTILE)
    for key in cells(bad_site):
        page = read(bad_site.get(f"/cell/{key}").text)
        (link,) = [
            str(a["href"])
            for tag, a in page.elements
            if tag == "a" and str(a.get("href")).startswith("/results?model=")
        ]
        assert f'"/cell/{key}"' in bad_site.get(link).text
    # A spreadsheet takes no name for a formula.
    lines = csv.reader(io.StringIO(bad_site.get("/cells.csv").text, newline=""))
    found = [value for line in lines for value in line]
    assert not [one for one in found if one.startswith(("=", "@"))]
    assert any(one.startswith("'=HYPERLINK") for one in found)


@pytest.mark.parametrize("name", HOSTILE)
def test_a_name_can_be_filtered_by(bad_site, name):
    for query in (f"model={quote(name)}", f"hardware={quote(name)}&status=ok"):
        rows = list(
            csv.DictReader(io.StringIO(bad_site.get(f"/cells.csv?{query}").text, newline=""))
        )
        assert {row["model"] for row in rows} == {csv_cell(name)}


@pytest.mark.parametrize("name", ["hardware-latency", "latency-by-batch", "cold-warm", "pareto"])
def test_a_picture_is_whole_whatever_is_in_it(bad_site, name):
    from xml.etree import ElementTree

    drawn = bad_site.get(f"/chart/{name}.svg").content
    found = ElementTree.fromstring(drawn)
    assert not [
        one for one in found.iter() if one.tag.rpartition("}")[2] in ("script", "image", "a")
    ]
    assert b"\xe2\x80\xae" not in drawn


def test_a_cell_of_several_devices_says_how_many():
    row = {"runtime": "pytorch", "hardware": "cuda", "precision": "fp16", "batch_size": 48}
    card = {**row, "device_name": "NVIDIA GeForce RTX 2080 Ti", "world_size": 4}
    assert title(card) == "pytorch on cuda · 4 devices · fp16 · batch 48"
    assert devices(card) == "4 devices"
    # The page names the device as well, which may say it; the title stands alone.
    eight = {**row, "device_name": "8x NVIDIA H200", "world_size": 1}
    assert (devices(eight), title(eight).split(" · ")[1]) == ("", "8 devices")
    assert devices({**card, "world_size": 1}) == ""

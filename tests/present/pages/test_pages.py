"""Pages that are made to be passed on: whatever text they are given, they show it and obey none."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from accelbench.api.comparing import ComparisonTable, HistoryTable
from accelbench.api.result import Result, StoredTable
from accelbench.core.safe_text import visible
from accelbench.judge.machines import Machine
from accelbench.judge.matrix import Availability, Matrix, MatrixCell, MatrixLine
from accelbench.present.charts import CHARTS, draw
from accelbench.present.charts.chart import Picture
from accelbench.present.document import (
    ChartBlock,
    Document,
    DocumentSection,
    EvidenceLink,
    KeyFinding,
    KeyFindings,
    Notes,
    Table,
    columns,
)
from accelbench.present.matrix import MatrixHeader, presented
from accelbench.present.pages.document_page import as_html
from accelbench.present.pages.rendering import STYLES, rendered
from hostile_names import NAMES


def drawing(name: str) -> Picture:
    chart = replace(CHARTS["trend"], title=name, answers=name, needs=name)
    return Picture(chart, {"mark": name, "data": {"values": [{name: name}]}}, [name], [])


def report(name: str) -> str:
    table = Table(columns((name, name), {1}), [[name, name]], caption=name)
    blocks = [
        Notes([name]),
        Notes([name], is_list=True),
        table,
        replace(table, is_folded=True),
        ChartBlock(name, name, name, [name], drawing(name).spec, table),
    ]
    finding = KeyFinding(name, [EvidenceLink(name, "results")], name)
    section = DocumentSection(name, blocks)
    made = Document(name, [Notes([name]), KeyFindings([finding]), section])
    return as_html(made, lambda _: '<svg width="1"><g role="x" id="a"/></svg>')


def matrix(name: str) -> str:
    cells = {
        "cpu": MatrixCell(Availability.COMPATIBLE, runtimes=(name,), precisions=(name, name)),
        name: MatrixCell(Availability.INCOMPATIBLE, reason=name, advice=name, notes=(name,)),
    }
    lines = (MatrixLine(name, name, cells),)
    made = Matrix(tuple(cells), lines, lines, name)
    about = MatrixHeader(name, Machine(name, name), name, name)
    return as_html(presented(made, about, opens=True))


def chart(name: str) -> str:
    return re.sub(r"(?s)<script>.*</script>", "<script></script>", draw.page(drawing(name)))


def nothing(name: str) -> str:
    return rendered("nothing.svg", first=name, second=name, paper="#fff", ink="#000")


def table(name: str) -> str:
    row = {"model": "m", "status": "failed", "message": name, "verification": name}
    return Result("run", [row])._repr_html_()


def stored_table(name: str) -> str:
    row = {"model": "m", "status": "failed", "message": name, "device_name": name}
    return StoredTable([row], name)._repr_html_()


def compared_table(name: str) -> str:
    line = {"model": name, "device_name": name, "quality": name, "differs": [name]}
    return ComparisonTable([line], None, name)._repr_html_()


def history_table(name: str) -> str:
    point = {"value": 1.0}
    level = {"value": 1.0, "low": None, "high": None}
    line = {"what": name, "device_name": name, "said": name, "unit": name, "answer": None}
    line |= {"points": [point], "newest": point, "newest_level": level, "point_count": 1}
    return HistoryTable([line], None, name)._repr_html_()


PAGES: dict[str, Callable[[str], str]] = {
    "report": report, "matrix": matrix, "chart": chart, "nothing": nothing, "table": table,
    "stored_table": stored_table, "compared_table": compared_table, "history_table": history_table,
}  # fmt: skip


class Seen(HTMLParser):
    """What a browser would make of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, list[str]]] = []
        self.texts: set[str] = set()
        self.said: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, [name for name, _ in attrs]))
        self.said.append("")
        self.texts |= {value for _, value in attrs if value}

    def handle_endtag(self, tag: str) -> None:
        self.said.append("")

    def handle_data(self, data: str) -> None:
        if self.said:
            self.said[-1] += data


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", PAGES)
def test_text_is_escaped_in_every_page(kind, name):
    found, plain = Seen(PAGES[kind](name)), Seen(PAGES[kind]("harmless"))
    assert found.elements == plain.elements
    # Between tags as it is, whatever it holds, as often as a plain name; options are set apart.
    shown = visible(name)
    assert sum(shown in one for one in found.said) == sum("harmless" in one for one in plain.said)
    assert any(shown in one for one in found.texts) == any("harmless" in one for one in plain.texts)


@pytest.mark.parametrize("kind", ["report", "matrix"])
def test_a_page_brings_the_style_of_the_dashboard_and_fetches_nothing(kind):
    page = PAGES[kind]("harmless")
    base = (STYLES / "base.css").read_text(encoding="utf-8")
    assert base.strip() in page
    assert "default-src 'none'" in page
    assert not re.search(r"<(link|img|iframe|script)\b|\ssrc=|@import|url\(|https?:", page)


def test_a_specification_keeps_its_order_and_ends_no_script():
    spec = {"z": "</script><script>alert(1)", "a": [1.5, None]}
    page = rendered(
        "chart_page.html", picture=drawing("x"), hatched=[], paper="#fff", spec=spec, bundle=""
    )
    assert '{"z": "\\u003c/script\\u003e\\u003cscript\\u003ealert(1)", "a": [1.5, null]}' in page

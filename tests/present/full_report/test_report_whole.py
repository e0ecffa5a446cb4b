"""The report: what it says, and that nothing in it is more than text."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import pytest

from accelbench.core.formatting import format_four_digits
from accelbench.judge.matrix import matrix
from accelbench.judge.points import points
from accelbench.present.charts.chart import Subject
from accelbench.present.document import ChartBlock, Document, Table
from accelbench.present.markdown import as_markdown
from accelbench.present.pages.document_page import as_html
from accelbench.present.report_parts import ReportData, report
from asked_rows import row

HOSTILE = (
    "<script>alert(1)</script>",
    "'; DROP TABLE benchmark_results; --",
    "../../etc/passwd",
    "\U0001f600 emoji",
    "\u202eright to left",
    'a"onmouseover="alert(1)',
    "| a | table | `code` ![](http://example.com/x.png)",
)


def measured(number: int, **changes: Any) -> dict[str, Any]:
    figures = {
        "result_id": f"x{number}", "case_id": f"c{number}", "latency_p50_ms": 8.0 + number,
        "latency_mean_ms": 8.0 + number, "throughput": 125.0, "memory_peak_mb": 100.0,
        "sample_count": 50, "started_at": "2026-01-02T03:04:05.000000Z",
    }  # fmt: skip
    return row(**(figures | changes))


def known(*rows: dict[str, Any]) -> ReportData:
    subject = Subject(points(rows), machine="lab (A processor, 2 CPUs, 16 GiB)", rows=rows)
    run = {
        "run_id": "r1",
        "command": "accelbench run bert-tiny",
        "environment": {"os": "Linux", "packages": {"torch": "2.13.0"}},
    }
    return ReportData(subject, [run], "lab.duckdb", "2026-01-03T00:00:00Z")


def two_platforms() -> ReportData:
    fast = [measured(n, hardware="cuda", device_name="A card", launch=n) for n in range(2)]
    slow = [measured(n + 4, launch=n, batch_size=4) for n in range(2)]
    gone = row(model="vit-tiny", status="failed", reason="wrong_outputs", message="off by 0.4")
    return known(*fast, *slow, measured(9), gone)


def titles(made: Document) -> list[str]:
    return [one.title for one in made.sections]


def tables(made: Document, title: str) -> list[Table]:
    (section,) = [one for one in made.sections if one.title == title]
    return [block for block in section.blocks if isinstance(block, Table)]


def test_what_a_report_says():
    # It says what there is and what there is not.
    made = report(two_platforms())
    assert titles(made)[:3] == ["Summary", "By task", "Results"]
    assert titles(made)[-2:] == ["Environment", "How each figure was computed"]
    summary = as_html(made).partition("Results")[0]
    assert "1 were wrong, and have no figures" in as_html(made)
    assert "lab (A processor, 2 CPUs, 16 GiB)" in summary
    (results,) = tables(made, "Results")
    assert len(results.rows) == 3
    assert [one[2] for one in results.rows] == [
        "17",
        "12.49",
        "8.485",
    ]  # of two launches, their middle
    (without,) = tables(made, "Without a figure")
    assert without.rows[0][1:4] == ["failed", "wrong_outputs", "off by 0.4"]
    # Whatever launches of one cell say otherwise is in the tables.
    bad = {"case_id": "c9", "status": "failed"}
    launches = [
        measured(1, case_id="c1", launch=0, verification="ok", verification_error=0.01),
        measured(2, case_id="c1", launch=1, verification="ok", verification_error=0.04),
        measured(3, case_id="c1", launch=2, verification="not_done"),
        row(**bad, launch=0, reason="crash", message="it crashed"),
        row(**bad, launch=1, reason="out_of_memory", message="too large"),
        row(**bad, launch=2, reason="crash", message="it crashed"),
    ]
    made = report(known(*launches))
    (outputs, *_) = tables(made, "Verification and workarounds")
    assert [one[1:3] for one in outputs.rows] == [["ok", "0.04"], ["not_done", ""]]
    (without,) = tables(made, "Without a figure")
    assert [one[2] for one in without.rows] == ["crash", "out_of_memory"]
    # Of an interval it says what it is of.
    (results,) = tables(report(two_platforms()), "Results")
    by_launches = {one[7]: one[3] for one in results.rows}
    assert re.fullmatch(r"[\d.]+ to [\d.]+, range of 2 launches", by_launches["2"])
    assert by_launches["1"] == ""
    within = known(measured(1, latency_ci_low_ms=8.5, latency_ci_high_ms=9.5))
    (results,) = tables(report(within), "Results")
    assert results.rows[0][3] == "8.5 to 9.5, within one launch"
    # It was headed “Inference in fp32” above cells of platforms that ran int8 alone.
    narrow = {"hardware": "cuda", "device_name": "A card", "precision": "int8"}
    rows = [measured(1, verification="ok"), measured(2, verification="not_done", **narrow)]
    whole = known(*rows)
    subject = replace(whole.subject, matrix=matrix(rows, best_precision=True))
    levels, _ = tables(report(replace(whole, subject=subject)), "Compatibility matrix")
    assert levels.caption == "Inference, each in the best precision that ran"
    (line,) = levels.rows
    cells = dict(zip([column.label for column in levels.columns], line, strict=True))
    assert (cells["cpu"], cells["cuda"]) == ("✅ Medium", "not verified (int8)")
    # An offline cell of one platform read like a single-stream one of another.
    offline = {"scenario": "offline", "hardware": "cuda", "device_name": "A card"}
    made = report(known(measured(1), measured(2, **offline)))
    for title in ("Results", "Verification and workarounds"):
        names = sorted(one[0] for one in tables(made, title)[0].rows)
        assert [name.rpartition(" · ")[2] for name in names] == ["single_stream", "offline"]
    (results,) = tables(report(known(measured(1, scenario="offline"))), "Results")
    assert results.caption.endswith(" · offline")
    (results,) = tables(report(known(measured(1))), "Results")
    assert "stream" not in results.caption


def test_figures_of_a_report():
    # 3000 tokens/s of one platform stood beside 196.5 images/s of another in one column.
    card = {"hardware": "cuda", "device_name": "A card", "throughput": 200.0}
    told = {"model": "gpt2-tiny", "throughput_unit": "tokens/s"}
    rows = [measured(1), measured(2, **card), measured(3, **told), measured(4, **told, **card)]
    (section,) = [s for s in report(known(*rows)).sections if s.title == "Hardware: throughput"]
    (figures,) = [block.table for block in section.blocks if isinstance(block, ChartBlock)]
    unit = [column.label for column in figures.columns].index("unit")
    assert {(one[0], one[unit]) for one in figures.rows} == {
        ("bert-tiny", "items/s"),
        ("gpt2-tiny", "tokens/s"),
    }
    # Emulated times are not shown.
    made = report(known(measured(1, emulated=True, hardware="webgpu")))
    (results,) = tables(made, "Results")
    assert results.rows[0][1:4] == ["emulated", "n/a", ""]
    assert "ran on a stand-in: such times mean nothing" in as_html(made)
    # Each picture has its figures.
    made = report(two_platforms())
    figures = [b for s in made.sections for b in s.blocks if isinstance(b, ChartBlock)]
    assert figures
    assert all(one.table.rows and one.table.is_folded for one in figures)
    page = as_html(made)
    assert page.count("<svg ") == len(figures) == page.count('role="img"')
    # It is one file that fetches nothing.
    page = as_html(report(two_platforms()))
    assert "default-src 'none'" in page
    addresses = set(re.findall(r"https?://[^\s\"'<>)]+", page))
    assert addresses <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}


class _Seen(HTMLParser):
    """What elements and attributes a browser would make of it."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.names: list[str] = []
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.names += [name for name, _ in attrs]
        self.addresses += [v or "" for n, v in attrs if n in ("src", "href", "xlink:href")]


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_is_text_everywhere(name):
    rows = [
        measured(1, model=name),
        measured(2, model=name, hardware=name, device_name=name, runtime=name, batch_size=4),
        row(model=name, status="failed", reason=name, message=name, advice=name),
    ]
    made = report(replace(known(*rows), source=name), title=name)
    seen = _Seen()
    page = as_html(made)
    seen.feed(page)
    assert not seen.tags & {"script", "img", "iframe", "object", "embed", "link"}
    assert not [one for one in seen.names if one.startswith("on")]
    assert all(one.startswith("#") for one in seen.addresses)
    text = as_markdown(made)
    turned = re.compile(r"[\u202a-\u202e\u2066-\u2069]")  # a whole sentence would be turned round
    assert not turned.search(page)
    assert not turned.search(text)
    assert "<script" not in text
    assert "![](http" not in text
    width = {line.count(" | ") for line in text.splitlines() if line.startswith("| ")}
    assert width  # no name adds a column: each table is as wide in every line
    for block in re.split(r"\n\n", text):
        lines = [one for one in block.splitlines() if one.startswith("|")]
        cells = {len(re.split(r"(?<!\\)\|", one)) for one in lines}
        assert len(cells) <= 1, lines[:3]


@pytest.mark.parametrize(
    ("value", "said"), [(23964.2, "23,964"), (2400.0, "2,400"), (0.00081234, "0.0008123")]
)
def test_no_large_figure_has_an_exponent(value, said):
    assert format_four_digits(value) == said

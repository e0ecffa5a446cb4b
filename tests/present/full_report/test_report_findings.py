"""Findings at the head of a report: with links to what they rest on, the same in both spellings."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from accelbench.judge.points import points
from accelbench.present.charts.chart import Subject
from accelbench.present.document import Document, DocumentSection, KeyFinding, KeyFindings, Table
from accelbench.present.markdown import as_markdown
from accelbench.present.pages.document_page import as_html
from accelbench.present.report_parts import MOST_RESULTS, ReportData, report
from asked_rows import row


def known(*rows: dict[str, Any]) -> ReportData:
    subject = Subject(points(rows), machine="lab", rows=rows)
    return ReportData(subject, [], "lab.duckdb", "2026-01-03T00:00:00Z")


def launches(ms: float, runtime: str, **changes: Any) -> list[dict[str, Any]]:
    case = f"{runtime}/{changes.get('model')}"
    return [
        row(
            result_id=f"{case}/{n}",
            case_id=case,
            launch=n,
            latency_p50_ms=ms * factor,
            runtime=runtime,
            task="embedding",
            **changes,
        )
        for n, factor in enumerate((0.99, 1.0, 1.01))
    ]


def findings(made: Document) -> Sequence[KeyFinding]:
    (block,) = [block for block in made.blocks if isinstance(block, KeyFindings)]
    return block.findings


def test_findings_of_a_report():
    # Each finding stands at the head and leads into the report.
    made = report(known(*launches(8.0, "pytorch"), *launches(4.0, "jax")))
    (finding,) = findings(made)
    assert finding.text.startswith("For embedding (batch 1, seq 128), bert-tiny by jax on cpu")
    assert [link.row for link in finding.evidence] == ["c0", "c1"]
    page = as_html(made)
    head = page.partition("<nav")[0]
    assert finding.text in head
    ids = re.findall(r'\bid="([^"]+)"', page)
    targets = re.findall(r'href="#([^"]+)"', page)
    assert set(targets) <= set(ids)
    assert len(ids) == len(set(ids))
    # Markdown has the same sentences first and its links are headings.
    made = report(known(*launches(8.0, "pytorch"), *launches(4.0, "jax")))
    text = as_markdown(made)
    head = text.partition("\n## Summary")[0]
    assert "## Findings" in head
    assert findings(made)[0].text.partition(" (")[0] in head
    headings = {
        "".join(c for c in line[3:].lower().replace(" ", "-") if c.isalnum() or c == "-")
        for line in text.splitlines()
        if line.startswith("## ")
    }
    assert set(re.findall(r"\]\(#([^)]+)\)", text)) <= headings
    assert len(head) < 4000  # what a pull request shows
    # A report with nothing to say says so in a sentence.
    made = report(known(*launches(8.0, "pytorch")))
    assert [finding.text for finding in findings(made)] == [
        "Nothing here says enough for a finding: nothing stands beside anything else."
    ]
    assert not findings(made)[0].evidence
    page = as_html(report(known(*launches(8.0, "pytorch"))))
    assert re.search(r"@media print \{[^@]*\.findings \{ break-after: page", page)


def test_many_findings_and_commands():
    # Of thousands the table has what matters and says how many more there are.
    many = [
        line
        for n in range(MOST_RESULTS // 2 + 10)
        for runtime, ms in (("pytorch", 8.0), ("jax", 4.0))
        for line in launches(ms, runtime, model=f"model-{n:04}")[:1]
    ]
    made = report(known(*many))
    (section,) = [each for each in made.sections if each.title == "Results"]
    (table,) = [block for block in section.blocks if isinstance(block, Table)]
    assert len(table.rows) == len(table.row_ids) == MOST_RESULTS
    assert f"{len(many) - MOST_RESULTS:,} more, slower ways of the same models" in table.caption
    shown = Document("A title", [DocumentSection("Results", [table])])
    page = as_html(shown)
    assert "are in the files of <code>accelbench db export csv</code></caption>" in page
    assert "`" not in page
    assert "are in the files of** `accelbench db export csv`\n" in as_markdown(shown)
    fastest = {f"model-{n:04}" for n in range(MOST_RESULTS // 2 + 10)}
    names = [line[0] for line in table.rows if "jax" in line[0]]
    assert {name for name in fastest if any(name in line for line in names)} == fastest
    # A command stays a command whatever a name has in it.
    told = KeyFinding("Told.", [], "accelbench run 'a`b`` [x](http://evil)'")
    text = as_markdown(Document("A", [KeyFindings([told])]))
    assert " Next: ```accelbench run 'a`b`` [x](http://evil)'```" in text

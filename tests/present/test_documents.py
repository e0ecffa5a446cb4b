"""Documents as Markdown and on a terminal: every block, and names that would forge a row."""

from __future__ import annotations

import io

import pytest

from accelbench.present.document import (
    Document,
    DocumentSection,
    Facts,
    GroupedTable,
    Notes,
    Table,
    TableColumn,
    TableGroup,
    Tone,
    TonedText,
    columns,
)
from accelbench.present.markdown import as_markdown
from accelbench.present.terminal.documents import show

FORGED = "name\n| bert | 1 ms |"


def document(name: str) -> Document:
    rows = [(name, TonedText("High", Tone.GOOD, ["2.5×"]))]
    groups = [
        TableGroup(name, [("latency", "8 → 10")], "worse", Tone.BAD),
        TableGroup("another", [("latency", "8 → 8")], is_minor=True),
        TableGroup("a third", [], "not measured"),
    ]
    return Document(
        "Tables",
        [
            DocumentSection(
                "First", [Table(columns(("model", "level", "nothing")), [(*rows[0], "")])]
            ),
            DocumentSection(
                "Second",
                [Table([TableColumn("model"), TableColumn("level")], rows, is_compact=True)],
            ),
            GroupedTable("what", columns(("figure", "change"), {1}), groups),
            Facts([("file", name)]),
            Notes(["Said once."], is_list=True),
        ],
        verdict="Something is worse",
        tone=Tone.BAD,
    )


def test_blocks():
    # Every block is in markdown.
    lines = as_markdown(document("bert")).splitlines()
    assert lines[:3] == ["# ❌ Something is worse", "", "Tables."]
    assert lines.count("| bert | ✅ High<br>2.5× |") == 2  # a column without a text is left out
    assert "| what | figure | change |" in lines
    assert "| a third |  | not measured |" in lines
    assert lines.index("<details><summary>1 other</summary>") < lines.index(
        "| another | latency | 8 → 8 |"
    )
    assert lines[-1] == "- Said once."
    # No name forges a row.
    stream = io.StringIO()
    show(document(FORGED), stream, 120)
    for text in (stream.getvalue(), as_markdown(document(FORGED))):
        assert not [line for line in text.splitlines() if line.lstrip(" |").startswith("bert")]


@pytest.mark.parametrize("width", [40, 120])
def test_every_block_is_on_a_terminal(width):
    stream = io.StringIO()
    show(document("bert"), stream, width)
    lines = [line.rstrip() for line in stream.getvalue().splitlines()]
    assert lines[0] == "Tables"
    assert [line for line in lines if "High" in line and "bert" in line]
    assert "bert: worse" in lines
    assert "  latency  8 → 10" in lines
    assert "· Said once." in lines
    assert lines[-1] == "Something is worse."

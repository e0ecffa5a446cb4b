"""Text that is shown and never obeyed, for every kind of place that text goes to."""

import csv
import io
import unicodedata
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from accelbench.core.safe_text import (
    csv_cell,
    escape_markdown,
    from_csv_cell,
    hide_homes,
    in_quotes,
    visible,
    visible_lines,
)
from hostile_names import HONEST, NAMES

#: The signs of a formula as keyboards of East Asia write them.
WIDE = (0xFF1D, 0xFF0B, 0xFF0D, 0xFF20)
#: What has to be shown, one by one.
NAMED = [
    *range(0x20),
    *range(0x7F, 0xA0),
    0x61C,
    0xAD,
    *range(0x200B, 0x2010),
    *range(0x2028, 0x202F),
    *range(0x2060, 0x2070),
    0xFEFF,
    *range(0xE0000, 0xE0080),
]


@pytest.mark.parametrize("code", NAMED)
def test_what_acts_is_its_code_point(code):
    assert visible(f"a{chr(code)}b") == f"a<U+{code:04X}>b"


def test_nothing_unseen_is_left():
    left = [
        chr(code)
        for code in range(0x110000)
        if visible(chr(code)) == chr(code) and unicodedata.category(chr(code))[0] in "CZ"
    ]
    assert left == [" ", "\u00a0", "\u3000"]

    assert visible_lines("a\nb\x1bc") == "a\nb<U+001B>c"
    assert "@octocat" not in escape_markdown("@octocat")
    assert "#12" not in escape_markdown("owner/repo#12")


@pytest.mark.parametrize("text", [*HONEST, "⚠️ Low", "é", "🏳️‍🌈", "👩‍💻", "a b", "<U+202E>"])
def test_what_is_seen_stays(text):
    assert visible(text) == text


@given(st.text())
def test_it_is_shown_once(text):
    assert visible(visible(text)) == visible(text)


@pytest.mark.parametrize("sign", ["=", "+", "-", "@", "\t", "\r", "\n", *map(chr, WIDE)])
def test_no_cell_begins_as_a_formula(sign):
    cell = csv_cell(f"{sign}1+1")
    assert cell == f"'{sign}1+1" or cell.startswith("<U+")


@pytest.mark.parametrize("number", ["-3.5", "+1", "-1e-9", "-.5", "-0"])
def test_a_number_stays_a_number(number):
    assert csv_cell(number) == number


@given(st.text())
def test_a_marked_cell_is_read_back(text):
    stream = io.StringIO(newline="")
    csv.writer(stream).writerow([csv_cell(text), "x"])
    ((cell, _),) = csv.reader(io.StringIO(stream.getvalue(), newline=""))
    assert from_csv_cell(cell) == visible(text)


class _Words(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags = []
        self.said = ""

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)

    def handle_data(self, data):
        self.said += data


def _read(page):
    found = _Words()
    found.feed(page)
    found.close()
    return found


BLOCKS = ("# head", "- a", "12. b", "===", "---", "> q", "    code")


@pytest.mark.parametrize("name", [*NAMES, *BLOCKS])
def test_markdown_says_the_name(name):
    reader = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    text = visible(name).strip()
    line = _read(reader.render(escape_markdown(name, begins_line=True)))
    assert line.tags == ["p"]
    assert line.said.replace("\u200b", "").strip() == text
    table = _read(reader.render(f"| a | b |\n|---|---|\n| {escape_markdown(name)} | x |"))
    assert table.tags == ["table", "thead", "tr", "th", "th", "tbody", "tr", "td", "td"]
    assert text in table.said.replace("\u200b", "")


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("fp\u202e32", "'fp<U+202E>32'"),
        ("a\\b\n", "'a\\b<U+000A>'"),
        ("it's", '"it\'s"'),
        ("'\"", "''\"'"),
        (["a\x1b", 3], "['a<U+001B>', 3]"),
        ({"a": "\x1b"}, "{'a': '<U+001B>'}"),
        (2.5, "2.5"),
        (None, "None"),
    ],
)
def test_an_error_quotes_text_visibly(value, said):
    assert in_quotes(value) == said


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("/home/ann/.venv/bin/python", "~/.venv/bin/python"),
        ("run --db /Users/Ann/x.duckdb", "run --db ~/x.duckdb"),
        (r"C:\Users\ann\x.duckdb", r"~\x.duckdb"),
        ("/root/x", "~/x"),
        ("/srv/lab/x.duckdb and /rooted/x", "/srv/lab/x.duckdb and /rooted/x"),
    ],
)
def test_a_home_folder_is_no_name_of_a_person(text, shown):
    assert hide_homes(text) == shown

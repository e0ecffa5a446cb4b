"""Text leaves the program through doors that make it text; nobody opens another one."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCES = Path(__file__).parents[2] / "src" / "accelbench"
FILES = {
    path.relative_to(SOURCES).as_posix(): path.read_text(encoding="utf-8")
    for path in sorted(SOURCES.rglob("*.py"))
}

#: What would be a way past the doors → who may do it.
DOORS = {
    r"(?m)^ *(from|import) (html|markupsafe|xml\.sax)\b(?!\.parser)": {
        "present/dashboard/words.py"  # what a form sends back, which nobody sees
    },
    r"\bConsole\(|rich\.print|rich\.markup": {"present/terminal/console.py"},
    r"\bunguarded\(": {
        "present/terminal/terminal.py",
        "present/terminal/console.py",
        "present/terminal/watch.py",  # the live bar, and a line that goes when it is done
    },
    # Python's escapes of what was typed: `in_quotes` has our own.
    r"![rsa]\}|(?<!_)\brepr\((?=field|name|word)": {
        "__init__.py",  # an error of Python's own, of a name in a program
        "api/enhanced.py",  # a call, as a program has it
        "api/live_objects.py",  # a program that a worker runs
    },
    r"logging\.(StreamHandler|basicConfig)|traceback\.print": {
        "present/terminal/terminal.py",
        "run/process/template.py",  # a worker's log; the end of it becomes a message
    },
}
#: Who writes to a stream of the command line, or of whoever calls the API.
WRITERS = {
    "present/terminal/watch.py",
    "api/benchmark.py",
    "cli/commands/check.py",  # the comment, which is Markdown already
    "present/terminal/terminal.py",  # a document of ours, past the guard of `main`
    "cli/main.py",  # the version
    "api/running.py",  # the guide's CSV
    "cli/services/running.py",  # a file
}
#: One JSON document: what is in it is spelled by JSON, in ASCII.
DOCUMENTS = re.compile(r"\.write\(((?:json\.dumps|json_text)\(|f\"\{\{\\n\{parts\}|text\b)")


@pytest.mark.parametrize("way", DOORS)
def test_nobody_goes_past_the_doors(way):
    found = {name for name, text in FILES.items() if re.search(way, text)}
    assert found <= DOORS[way]


def test_doors_of_text():
    # The command line and the api print lines.
    prints = re.compile(r"\.write\(|(?<![.\w])print\(|\.echo\(|\.writelines\(")
    loose = [
        f"{name}: {line.strip()}"
        for name, text in FILES.items()
        if name.startswith(("cli/", "api/")) and name not in WRITERS
        for line in text.splitlines()
        if prints.search(line) and not DOCUMENTS.search(line)
    ]
    assert loose == []
    # Every table of cells guards its cells.
    writers = [text for text in FILES.values() if "csv.writer(" in text]
    assert len(writers) >= 3
    assert all("import csv_cell" in text for text in writers)
    # Every page of a template shows its text.
    makers = [text for text in FILES.values() if "jinja2.Environment(" in text]
    assert len(makers) == 1
    assert "finalize=_shown" in makers[0]
    assert "autoescape=True" in makers[0]
    templates = "".join(one.read_text("utf-8") for one in SOURCES.rglob("templates/*"))
    assert not re.search(r"\|\s*safe\b|autoescape", templates)
    # Nothing but drawings goes into a page as it is.
    assert {name for name, text in FILES.items() if re.search(r"\bDrawn\(", text)} <= {
        *DRAWN,
        "present/pages/rendering.py",
    }
    # The search for tags sees them.
    for source in ("f'<td{mark}>'", "'<p>'", "'<br/>'", "f'</{x}><svg {y}'", "'<!DOCTYPE html>'"):
        assert any(map(TAGS.search, strings(f"x = {source} + y"))), source
    for source in ('"""<p>"""', "re.compile('<p>')", "'<U+1F600>'", "'a < b'"):
        assert not any(map(TAGS.search, strings(source))), source
    # Pages and pictures are templates.
    # To parse takes long: only what has one somewhere, be it in a comment.
    suspect = {name: text for name, text in FILES.items() if TAGS.search(text)}
    built = {name for name, text in suspect.items() if any(map(TAGS.search, strings(text)))}
    assert built <= WRITE_MARKDOWN


#: Who may say that markup is markup: what libraries have drawn goes into a page as it is.
DRAWN = {"present/pages/document_page.py", "present/charts/draw.py"}


#: Elements of pages and pictures, as somebody would write them into a string.
TAGS = re.compile(
    r"<!doctype|</?(?:a|b|bdi|body|br|caption|code|dd|defs|details|div|dl|dt|em|figcaption|figure"
    r"|footer|form|g|h[1-6]|head|header|html|i|img|input|label|li|line|link|main|meta|nav|noscript"
    r"|ol|option|p|path|pattern|pre|rect|script|section|select|small|span|strong|style|sub|summary"
    r"|sup|svg|t[dhr]|table|tbody|text|tfoot|thead|title|tspan|ul)[\s>/{]",
    re.IGNORECASE,
)
#: Markdown has no words of its own for what folds, nor for a line break within a cell.
WRITE_MARKDOWN = {"present/markdown.py", "present/matrix.py"}


def strings(source: str) -> Iterator[str]:
    """Every string of a module that is no docstring and no pattern; {} for what goes into it."""
    skipped: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            skipped.add(id(node.value))
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "re.compile":
            skipped |= {id(one) for argument in node.args for one in ast.walk(argument)}
        elif id(node) in skipped:
            continue
        elif isinstance(node, ast.JoinedStr):
            parts = [(one, getattr(one, "value", None)) for one in node.values]
            yield "".join(v if isinstance(o, ast.Constant) else "{}" for o, v in parts)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value

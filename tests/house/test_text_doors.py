"""Text leaves the program through doors that make it text; nobody opens another one."""

from __future__ import annotations

import re
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
        "core/visible.py",
        "report/dashboard/words.py",  # what a form sends back, which nobody sees
    },
    r"\bConsole\(|rich\.print|rich\.markup": {"cli/display/console.py"},
    r"\bunguarded\(": {
        "cli/display/terminal.py",
        "cli/display/console.py",
        "cli/display/watch.py",  # the live bar
    },
    # Python's escapes of what was typed: `in_quotes` has our own.
    r"![rsa]\}|(?<!_)\brepr\((?=field|name|word)": {
        "__init__.py",  # an error of Python's own, of a name in a program
        "api/enhanced.py",  # a call, as a program has it
    },
    r"logging\.(StreamHandler|basicConfig)|traceback\.print": {
        "cli/display/terminal.py",
        "run/process/template.py",  # a worker's log; the end of it becomes a message
    },
}
#: Who writes to a stream of the command line, or of whoever calls the API.
WRITERS = {
    "cli/display/terminal.py",
    "cli/display/watch.py",
    "api/progress.py",
    "cli/commands/check.py",  # the comment, which is Markdown already
    "cli/display/text_output.py",  # a document of ours, past the guard of `main`
    "cli/main.py",  # the version
    "api/logger.py",  # the guide's CSV
    "cli/services/profiles.py",  # a file
}
#: One JSON document: what is in it is spelled by JSON, in ASCII.
DOCUMENTS = re.compile(r"\.write\((json\.dumps\(|f\"\{\{\\n\{parts\}|text\b)")


@pytest.mark.parametrize("way", DOORS)
def test_nobody_goes_past_the_doors(way: str) -> None:
    found = {name for name, text in FILES.items() if re.search(way, text)}
    assert found <= DOORS[way]


def test_the_command_line_and_the_api_print_lines() -> None:
    prints = re.compile(r"\.write\(|(?<![.\w])print\(|\.echo\(|\.writelines\(")
    loose = [
        f"{name}: {line.strip()}"
        for name, text in FILES.items()
        if name.startswith(("cli/", "api/")) and name not in WRITERS
        for line in text.splitlines()
        if prints.search(line) and not DOCUMENTS.search(line)
    ]
    assert loose == []


def test_every_table_of_cells_guards_its_cells() -> None:
    writers = [text for text in FILES.values() if "csv.writer(" in text]
    assert len(writers) >= 4
    assert all("import csv_cell" in text for text in writers)


def test_every_page_of_a_template_shows_its_text() -> None:
    makers = [text for text in FILES.values() if "jinja2.Environment(" in text]
    assert len(makers) == 1
    assert "finalize=_shown" in makers[0]
    assert "autoescape=True" in makers[0]
    templates = "".join(one.read_text() for one in SOURCES.rglob("*.html"))
    assert not re.search(r"\|\s*safe\b|autoescape", templates)

"""Names of class folders and of pictures that somebody chose with bad intent, wherever they go.

They reach a result as a warning, as the message of what failed, and in the evidence of accuracy.
"""

import io
import re

import pytest
from dashboard_world import result, store, visitor

from accelbench.present.markdown import as_markdown
from accelbench.present.pages.document_page import as_html
from accelbench.present.report_data import known_in
from accelbench.present.report_parts import report
from accelbench.present.terminal.summary import warning_lines
from accelbench.present.terminal.terminal import print_line
from accelbench.store.database import Database

#: As a folder may be called: no slash.
CLASSES = (
    "<script>alert('class')<\\script>",
    "ant | bee | `cat` **bold** [x](javascript:alert(1))",
    "esc\x1b[2J\x1b]0;title\x07",
    "line\nforged: p50 0.01 ms\r",
    "\u202egnp.tna",
)


@pytest.mark.parametrize("name", CLASSES)
def test_a_class_name_is_text_everywhere(tmp_path, name):
    database = Database(tmp_path / "results.duckdb")
    why = f"classes.txt has no line for the class '{name}'."
    evidence = {
        "devices": ["cpu:0"], "engine": "e",
        "details": {"accuracy": {"skipped": {f"{name}/1.png": "it is no file"}}},
    }  # fmt: skip
    measured = result(warnings=[f"Task accuracy was not measured: {why}"], evidence=evidence)
    failed = result(batch_size=8, status="failed", reason="data_mismatch", message=why)
    store(database, "run-1", measured, failed)

    site = visitor(database)
    keys = set(re.findall(r"/cell/([0-9a-f]{16})\"", site.get("/results").text))
    pages = [site.get(f"/cell/{key}").text for key in sorted(keys)]
    assert len(pages) == 2
    made = report(known_in(database, {}, None))
    pages.append(as_html(made))
    for page in pages:
        assert "<script>alert" not in page
        assert "\x1b" not in page
        assert "\u202e" not in page
        assert "it is no file" in page or "has no line for the class" in page

    text = as_markdown(made)
    stream = io.StringIO()
    for line in warning_lines([measured]):
        print_line(line, stream)
    for shown in (text, stream.getvalue()):
        assert "has no line for the class" in shown
        assert "\x1b" not in shown
        assert "\u202e" not in shown
        assert "\nforged" not in shown
    assert "<script>alert" not in text
    assert not re.search(r"(?<!\\)\]\(javascript:", text)

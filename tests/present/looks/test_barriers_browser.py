"""Pages that no other test looks at with axe-core, light and dark: none keeps anybody out."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from barriers import barriers
from chrome import Chrome
from dashboard_world import served
from typer.testing import CliRunner

from accelbench.api.result import Result, StoredTable
from accelbench.cli.main import app
from accelbench.present.pages.rendering import rendered
from accelbench.store.database import Database

PAGES = ("/engines", "/recommend", "/predict", "/runs/compare", "/nowhere", "/elsewhere")


@pytest.fixture(scope="module")
def address(stored: Database) -> Iterator[str]:
    with served(stored) as one:
        yield one


@pytest.fixture
def still(tab: Chrome) -> Iterator[Chrome]:
    tab.page.emulate_media(reduced_motion="reduce")
    yield tab
    tab.page.emulate_media(reduced_motion="null")
    tab.look()


def kept_out(tab: Chrome, axe: str) -> list[tuple[str, str]]:
    """Barriers of the page that is open, each with the scheme in which it is one."""
    found = []
    for scheme in ("light", "dark"):
        tab.look(scheme)
        found += [(scheme, one) for one in barriers(tab, axe)]
    return found


@pytest.mark.parametrize("page", PAGES)
def test_no_page_of_the_dashboard_keeps_anybody_out(still, axe, address, page):
    still.go(address + page)
    assert kept_out(still, axe) == []


@pytest.mark.parametrize("opened", [False, True])
def test_the_matrix_as_a_file_keeps_nobody_out(still, axe, stored, tmp_path, opened):
    file = tmp_path / "matrix.html"
    words = ["matrix", "--machine", "lab", "--db", str(stored.path), "--output", str(file)]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    still.go(file.as_uri())
    if opened:
        still.js("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    assert kept_out(still, axe) == []


def test_tables_of_a_notebook_keep_nobody_out(still, axe, tmp_path):
    """They stand in a page of somebody else's: here one that has nothing but them."""
    row = {"model": "bert-tiny", "status": "ok", "latency_mean_ms": 8.0, "device_name": "A card"}
    tables = (Result("run", [row])._repr_html_(), StoredTable([row], "results")._repr_html_())
    file = tmp_path / "notebook.html"
    file.write_text(rendered("document.html"), encoding="utf-8")
    still.go(file.as_uri())
    still.js(
        f"document.body.innerHTML = '<main><h1>x</h1>' + {json.dumps(''.join(tables))} + '</main>';"
        " document.title = 'A notebook'"
    )
    assert kept_out(still, axe) == []

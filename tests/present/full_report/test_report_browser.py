"""The report in a real browser, from the disk: no complaints, nobody left out, nothing fetched."""

from __future__ import annotations

from pathlib import Path

import pytest
from barriers import barriers, hosts
from dashboard_world import HOSTILE
from typer.testing import CliRunner

from accelbench.cli.main import app
from accelbench.store.database import Database

_OPENED = "document.querySelectorAll('details').forEach((one) => { one.open = true; })"


def made(database: Database, folder: Path, *more: str) -> str:
    """The address of a report of a database."""
    file = folder / "report.html"
    words = ["report", "--db", str(database.path), "--output", str(file), *more]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    return file.as_uri()


@pytest.fixture(scope="module")
def address(stored: Database, tmp_path_factory: pytest.TempPathFactory) -> str:
    return made(stored, tmp_path_factory.mktemp("report"), "--machine", "lab")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("wide", [1280, 400])
def test_the_report_leaves_nobody_out_complains_of_nothing_and_asks_nobody(
    tab, axe, address, scheme, wide
):
    tab.look(scheme, wide)
    tab.go(address)
    tab.js(_OPENED)
    assert tab.js("document.querySelectorAll('figure svg').length") >= 8
    assert tab.complaints() == []
    assert barriers(tab, axe) == []
    assert hosts(tab) == {"file://"}
    over = tab.js("document.documentElement.scrollWidth - window.innerWidth")
    assert over <= 0, f"{over} px too wide"


def test_paper_shows_whole_tables(tab, address):
    tab.look(wide=700)
    tab.go(address)
    tab.printed(on_paper=True)
    try:
        cut = tab.js(
            "[...document.querySelectorAll('section > div.wide')].filter((one) =>"
            " one.scrollWidth > one.clientWidth + 1).map((one) => one.getAttribute('aria-label'))"
        )
    finally:
        tab.printed(on_paper=False)
    assert cut == []


@pytest.mark.parametrize("number", range(len(HOSTILE)))
def test_a_report_of_hostile_names_is_text(tab, axe, stored_badly, tmp_path, number):
    """Each machine of that database has one of the names, in everything that somebody chose."""
    tab.look()
    tab.go(made(stored_badly, tmp_path, "--run", f"h{number}"))
    assert tab.js("document.querySelectorAll('figure svg').length") >= 1
    assert tab.js("document.querySelectorAll('script, iframe, object, a[onclick]').length") == 0
    assert tab.dialogs == []
    assert tab.complaints() == []
    assert hosts(tab) == {"file://"}
    assert barriers(tab, axe) == []

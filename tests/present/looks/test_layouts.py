"""Every kind of page at three widths, light and dark: nothing cut, nothing over another, no word
broken letter by letter, all text readable; and its boxes are those that were kept.

    ACCELBENCH_GOLDEN=write pytest tests/present/looks        keeps them anew; read the difference
    make screenshots                                         pictures of all of them, for people
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from chrome import Chrome
from dashboard_world import served
from looking import HERE, SCHEMES, WIDTHS, alike_everywhere, as_text, differences, fonts, looked_at
from typer.testing import CliRunner

from accelbench.cli.main import app
from accelbench.store.database import Database

LAYOUTS = HERE / "layouts"
#: Pages by the name of the file that keeps their layout; {cell} and {run} are one of the store's.
PAGES = {
    "overview": "/", "results": "/results?status=ok&sort=-latency",
    "results-tray": "/results?cell={cell}", "results-groups": "/results?group=hardware",
    "results-pivot": "/results?group=model&group=runtime&as=pivot", "cell": "/cell/{cell}",
    "compare": "/compare?cell={cell}&cell={other}", "models": "/models",
    "model": "/model/bert-tiny", "devices": "/devices", "device": "/device/A%20processor",
    "device-against-device": "/devices?a=A%20processor&b=NVIDIA%20A100", "engines": "/engines",
    "charts": "/charts", "chart": "/chart/latency-by-batch", "explore": "/explore",
    "history": "/history", "matrix": "/matrix", "recommend": "/recommend", "predict": "/predict",
    "predictions": "/predictions", "runs": "/runs", "run": "/run/others",
    "run-against-run": "/runs/compare?a=night-0&b=night-5", "no-such-page": "/nowhere",
}  # fmt: skip
#: Pages that are files: the command that writes each.
FILES = {
    "report-file": ("report", "--machine", "lab"),
    "matrix-file": ("matrix", "--machine", "lab"),
}
#: What says which browser the layouts are of.
BROWSER = "BROWSER"
PICTURES = os.environ.get("ACCELBENCH_SCREENSHOTS")


@pytest.fixture(scope="module")
def address(stored: Database) -> Iterator[str]:
    with served(stored) as one:
        yield one


@pytest.fixture(scope="module")
def style() -> str:
    return fonts()


@pytest.fixture(scope="module")
def still(tab: Chrome) -> Iterator[Chrome]:
    with alike_everywhere(tab):
        yield tab
    tab.look()


@pytest.fixture(scope="module")
def names(tab: Chrome, address: str) -> dict[str, str]:
    """The keys of two cells that have figures."""
    tab.go(f"{address}/results?status=ok&provenance=measured&sort=-latency")
    named = "[...document.querySelectorAll('table.results tbody th a')].map((a) => a.pathname)"
    tab.until(lambda: len(tab.js(named)) > 1)  # the store is read first
    links: list[str] = tab.js(named)
    cells = [link.rpartition("/")[2] for link in links]
    return {"cell": cells[0], "other": cells[1]}


def ready(tab: Chrome, address: str) -> None:
    """Until what is worked out beside a page is there."""
    tab.go(address)
    tab.until(lambda: "being worked out" not in tab.js("document.body.textContent"))


@pytest.mark.parametrize("name", PAGES)
def test_a_page_looks_as_it_was_kept(still, address, style, names, name):
    page = address + PAGES[name].format(**names)
    if name in ("overview", "history"):
        ready(still, page)
    kept(still, page, style, name)


@pytest.mark.parametrize("name", FILES)
def test_a_page_that_is_passed_on_looks_as_it_was_kept(still, stored, style, tmp_path, name):
    file = tmp_path / f"{name}.html"
    words = [*FILES[name], "--db", str(stored.path), "--output", str(file)]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    kept(still, file.as_uri(), style, name)


def kept(tab: Chrome, address: str, style: str, name: str) -> None:
    """Hold a page against its layout, or keep it."""
    looks = looked_at(tab, address, style)
    photographed(tab, name)
    made, file = as_text(looks), LAYOUTS / f"{name}.txt"
    if os.environ.get("ACCELBENCH_GOLDEN") == "write":
        file.write_text(made, encoding="utf-8")
        (LAYOUTS / BROWSER).write_text(f"{build(tab)}\n", encoding="utf-8")
    assert [fault for look in looks.values() for fault in look.faults] == []
    if (LAYOUTS / BROWSER).read_text(encoding="utf-8").strip() != build(tab):
        pytest.skip(f"layouts are kept of another build than {build(tab)}; nothing is wrong here")
    assert differences(file.read_text(encoding="utf-8"), made) == []


def build(tab: Chrome) -> str:
    """Which browser it is: another draws fields and lines a little otherwise."""
    browser = tab.page.context.browser
    assert browser is not None
    return f"Chromium {browser.version.partition('.')[0]}"


def photographed(tab: Chrome, name: str) -> None:
    """A picture of each width and scheme, where somebody wants them; what changed is named."""
    if PICTURES is None:
        return
    folder = Path(PICTURES)
    folder.mkdir(parents=True, exist_ok=True)
    for wide in WIDTHS:
        for scheme in SCHEMES:
            tab.look(scheme, wide)
            file = folder / f"{name}-{wide}-{scheme}.png"
            before = file.read_bytes() if file.exists() else None
            now = tab.page.screenshot(full_page=True)
            file.write_bytes(now)
            if before not in (None, now):
                file.with_suffix(".before.png").write_bytes(before or b"")
                print(f"{file.name} is another picture than before")


def test_every_layout_that_is_kept_is_of_a_page():
    assert {file.stem for file in LAYOUTS.glob("*.txt")} == {*PAGES, *FILES}


def test_a_box_that_moves_is_a_difference():
    assert differences("  h1 “A” 10 10 100 20", "  h1 “A” 11 12 100 20") == []
    assert differences("  h1 “A” 10 10 100 20", "  h1 “A” 10 13 100 20")
    assert differences("  h1 “A” 10 10 100 20", "  h1 “B” 10 10 100 20")
    assert differences("  h1 “A” 10 10 100 20", "")

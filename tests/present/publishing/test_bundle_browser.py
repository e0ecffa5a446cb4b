"""A bundle in a real browser, from a server of files: the table works, and asks nobody else."""

from __future__ import annotations

import functools
import http.server
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import pytest
from barriers import barriers, hosts
from chrome import Chrome

from accelbench.hardware.common import colour_of
from accelbench.present.charts.palette import on_dark


class _Files(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Nobody reads it."""


@contextmanager
def hosted(folder: Path) -> Iterator[str]:
    """The folder below an address that is not the root of its server."""
    handler = functools.partial(_Files, directory=str(folder.parent))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/{folder.name}"
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture(scope="module")
def address(bundle: Path) -> Iterator[str]:
    with hosted(bundle) as made:
        yield made


def ready(tab: Chrome) -> None:
    tab.until(lambda: tab.js("document.documentElement.dataset.ready"))


def keys(tab: Chrome) -> list[str]:
    """The cells that the table shows, by their links."""
    shown: list[str] = tab.js(
        "[...document.querySelectorAll('#results tbody th a')].map((a) =>"
        " /([0-9a-f]{16})(?:\\.html)?$/.exec(a.getAttribute('href'))[1])"
    )
    return shown


_ORDER = "lower(model), hardware, runtime, precision, batch_size, key"
_DAYS = "moment BETWEEN '2026-01-03' AND '2026-02-01'"
_MEASURED = "kind = 'measured' AND status = 'ok'"


@pytest.mark.parametrize(
    ("query", "where"),
    [
        ("", f"true ORDER BY {_ORDER}"),
        ("?hardware=cuda&sort=-latency", "hardware = 'cuda' ORDER BY latency DESC"),
        ("?model=VIT", "contains(lower(model), 'vit')"),
        (
            "?provenance=measured&status=ok&sort=throughput",
            f"{_MEASURED} ORDER BY throughput NULLS LAST, {_ORDER}",
        ),
        (
            "?from=2026-01-03&to=2026-02-01&sort=batch",
            f"{_DAYS} ORDER BY batch_size NULLS LAST, {_ORDER}",
        ),
    ],
)
def test_the_browser_answers_as_sql_does(tab, bundle, address, query, where):
    tab.go(f"{address}/results.html{query}")
    ready(tab)
    rows = duckdb.execute(
        f"SELECT key FROM '{bundle / 'results.parquet'}' WHERE {where}"
    ).fetchall()
    assert rows
    assert keys(tab) == [key for (key,) in rows]
    assert tab.complaints() == []


def test_a_bundle_in_a_browser(tab, address):
    # A click filters groups and stays in the address.
    tab.go(f"{address}/results.html")
    ready(tab)
    everything = keys(tab)
    tab.js("document.querySelector('#filters input[value=cuda]').click()")
    assert tab.js("location.search") == "?hardware=cuda"
    assert 0 < len(keys(tab)) < len(everything)
    assert tab.js("document.querySelector('#count').textContent").startswith("3 configurations")
    tab.js(
        "{const by = document.querySelector('#filters select'); by.value = 'provenance';"
        " by.dispatchEvent(new Event('change', {bubbles: true}))}"
    )
    assert tab.js("location.search") == "?hardware=cuda&group=provenance"
    groups = tab.js("[...document.querySelectorAll('#results tbody th')].map((x) => x.textContent)")
    assert sorted(groups) == ["imported", "predicted", "simulated"]
    tab.js("history.go(-2)")
    tab.until(lambda: keys(tab) == everything)
    assert tab.js("location.search") == ""
    # What is not there is a sentence.
    tab.go(f"{address}/results.html?hardware=abacus")
    ready(tab)
    told = tab.js("document.querySelector('#results').textContent")
    assert told.startswith("No result has hardware “abacus”. There are: cpu, cuda")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_dots_have_the_colours_of_their_platforms(tab, address, scheme):
    """As the dashboard has them, in the rows of the page itself and in those of the script."""
    shown = (
        "[...document.querySelectorAll('#results tbody .dot')].map((dot) =>"
        " [dot.nextElementSibling.textContent, getComputedStyle(dot.firstElementChild).fill])"
    )
    tab.look(scheme)
    for scripts in (False, True):
        tab.scripts(scripts)
        try:
            tab.go(f"{address}/results.html")
            if scripts:
                ready(tab)
            dots = tab.js(shown)
        finally:
            tab.scripts(True)
        assert len({platform for platform, _ in dots}) > 2
        for platform, colour in dots:
            told = colour_of(platform) if scheme == "light" else on_dark(colour_of(platform))
            red, green, blue = (int(told[at : at + 2], 16) for at in (1, 3, 5))
            assert colour == f"rgb({red}, {green}, {blue})", platform
    tab.look("light")


def test_chosen_rows_of_any_page_are_compared(tab, bundle, address):
    """By hand, and by the address of another page; with what differs and every figure."""
    tab.go(f"{address}/results.html?hardware=cuda")
    ready(tab)
    for nth in (0, 1):
        tab.js(f"document.querySelectorAll('#results input.pick')[{nth}].click()")
    tab.js("document.querySelector('#chosen a.button').click()")
    file = f"'{bundle / 'results.parquet'}'"
    first = tab.js("new URLSearchParams(location.search).getAll('cell')")
    assert tab.js("new URLSearchParams(location.search).get('compare')") == "yes"
    assert len(first) == 2
    (other,) = duckdb.execute(f"SELECT min(key) FROM {file} WHERE hardware = 'cpu'").fetchall()[0]
    keys_ = [*first, other]
    tab.go(f"{address}/results.html?{'&'.join(f'cell={key}' for key in keys_)}&compare=yes")
    ready(tab)
    shown = tab.js(
        "Object.fromEntries([...document.querySelectorAll('table.beside tbody tr')].map((line) =>"
        " [line.cells[0].textContent, [...line.cells].slice(1).map((one) => one.textContent)]))"
    )
    found = duckdb.execute(f"SELECT key, coalesce(quality, 'no data') FROM {file}").fetchall()
    quality = {key: word.replace("_", " ") for key, word in found}
    assert shown["Hardware"] == ["cuda", "cuda", "cpu"]
    assert shown["Quality"] == [quality[key] for key in keys_]
    assert len(shown["Median latency, ms"]) == 3
    assert "accelbench dashboard" in tab.js("document.querySelector('#results').textContent")
    assert tab.complaints() == []


@pytest.mark.parametrize("bad", [False, True])
def test_the_script_s_rows_are_the_page_s_own(tab, request, bad):
    """To the letter, whatever names have in them; nothing of a name acts."""
    folder: Path = request.getfixturevalue("bad_bundle" if bad else "bundle")
    text = (
        "[...document.querySelectorAll('#results tbody tr')].map((one) => [...one.cells].map("
        "(cell) => cell.textContent.replace(/\\s+/g, ' ').trim()))"
    )
    with hosted(folder) as address:
        tab.scripts(False)
        try:
            tab.go(f"{address}/results.html")
            written = tab.js(text)
        finally:
            tab.scripts(True)
        tab.go(f"{address}/results.html")
        ready(tab)
        assert tab.js(text) == written
        assert len(written) > 5
        assert tab.dialogs == []
        assert tab.complaints() == []


def test_no_page_leaves_anybody_out_or_asks_others(tab, axe, bundle, address):
    first = {path.parent: path for path in sorted(bundle.rglob("*.html"), reverse=True)}
    pages = {*first.values(), *bundle.glob("[a-z]*.html")}
    # A colour on its way to that of the other theme is neither.
    tab.page.emulate_media(reduced_motion="reduce")
    for page in sorted(pages):
        if "-" in page.stem and page.parent == bundle:
            continue  # the same page with a filter
        tab.go(f"{address}/{page.relative_to(bundle).as_posix()}")
        if page.name == "results.html":
            ready(tab)
        assert tab.complaints() == [], page
        for scheme in ("light", "dark"):
            tab.look(scheme)
            assert barriers(tab, axe) == [], (page, scheme)
        assert hosts(tab) == {address.rpartition("/")[0]}, page


def test_without_a_web_server_the_page_says_what_is_needed(tab, bundle):
    tab.go((bundle / "results.html").as_uri())
    assert "python -m http.server" in tab.js("document.querySelector('#reading').textContent")
    assert tab.js("document.querySelectorAll('#results tbody tr').length") > 5

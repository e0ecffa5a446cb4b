"""The dashboard in a real browser: no complaints, nobody left out, nothing fetched."""

from __future__ import annotations

import urllib.request
from collections.abc import Iterable, Iterator
from urllib.parse import urlencode

import pytest
from barriers import barriers, hosts
from chrome import Chrome
from dashboard_world import begin, result, served, store, stored_in
from entity_store import FAST, SLOW, filled, launches
from playwright.sync_api import Route

from accelbench.core.facts import RESULT, Fact
from accelbench.store.database import Database
from accelbench.store.journal import Journal

QUESTION = "/recommend?model=bert-tiny"
PAGES = (
    "/",
    "/results",
    "/results?status=ok&sort=-latency",
    "/results?col=device&col=options&col=versions&col=run&batch-max=8",
    "/results?group=hardware&figure=throughput",
    "/results?group=model&group=runtime&as=pivot",
    "/charts",
    "/explore",
    "/explore?x=latency&y=throughput&find=bert",
    "/explore/distribution",
    "/chart/latency-by-batch",
    "/history",
    "/matrix",
    "/predictions",
    "/predict",
    QUESTION,
    "/runs",
)
#: Pages of models, devices and of two of them.
ENTITIES = (
    "/models",
    "/model/bert-tiny",
    "/predictions/model?name=bert-tiny",
    "/devices",
    "/device/Fast%20card",
    f"/devices?{urlencode({'a': SLOW, 'b': FAST})}",
    "/engines?a=pytorch&b=onnxruntime",
    "/runs/compare?a=r&b=later",
)
TAB, ENTER, SPACE = "Tab", "Enter", "Space"


@pytest.fixture(scope="module")
def address(stored: Database) -> Iterator[str]:
    with served(stored) as one:
        yield one


@pytest.fixture(scope="module")
def bad_address(stored_badly: Database) -> Iterator[str]:
    with served(stored_badly) as one:
        yield one


def links(tab: Chrome, start: str) -> list[str]:
    """Addresses on this page that begin so, in their order."""
    found: list[str] = tab.js(
        "[...new Set([...document.querySelectorAll('main a')]"
        f".map((a) => a.getAttribute('href')).filter((a) => a.startsWith('{start}')))]"
    )
    return found


def everything(tab: Chrome, address: str) -> list[str]:
    """Each page, a cell of each kind, a comparison, a run, and what is not there."""
    tab.go(f"{address}/results?sort=-latency")
    cells = [link for link in links(tab, "/cell/") if not link.endswith(".json")]
    chosen = "&".join(f"cell={link.rpartition('/')[2]}" for link in cells[:4])
    tab.go(f"{address}/runs")
    return [*PAGES, *cells, f"/compare?{chosen}", links(tab, "/run/")[0]]


def seen_whole(tab: Chrome) -> None:
    """Have the pictures below the fold come, too, and everything opened that can be."""
    tab.js(
        "document.querySelectorAll('details').forEach((one) => { one.open = true; });"
        "Promise.all([...document.images].map((one) => { one.loading = 'eager';"
        " return one.decode(); })).then(() => 1)"
    )


def look_at(tab: Chrome, axe: str | None, address: str, pages: Iterable[str]) -> None:
    """Look at pages; for barriers too if axe is given."""
    for page in pages:
        tab.go(f"{address}{page}")
        seen_whole(tab)
        assert tab.complaints() == [], page
        assert tab.dialogs == [], page
        assert axe is None or barriers(tab, axe) == [], page
        assert hosts(tab) == {address}, page
        over = tab.js("document.documentElement.scrollWidth - window.innerWidth")
        assert over <= 0, f"{page} is {over} px too wide"


@pytest.mark.parametrize(("scheme", "wide"), [("light", 1280), ("dark", 400)])
def test_no_page_leaves_anybody_out_complains_or_asks_others(tab, axe, address, scheme, wide):
    tab.look(scheme, wide)
    asked = QUESTION.replace("?", ".json?")  # until it is answered the page is another
    urllib.request.urlopen(f"{address}{asked}", timeout=240).close()
    look_at(tab, axe, address, everything(tab, address))


@pytest.mark.parametrize(("scheme", "wide"), [("light", 1280), ("dark", 400)])
def test_no_page_of_a_model_or_device_does(tab, axe, tmp_path, scheme, wide):
    tab.look(scheme, wide)
    database = filled(tmp_path / "results.duckdb")
    store(database, "later", *launches(8.0, model="vit-tiny"))
    with served(database) as entities:
        look_at(tab, axe, entities, ENTITIES)


def test_a_real_page(tab, axe, address):
    # The overview leaves nobody out when its findings are there.
    tab.go(address)
    tab.until(lambda: tab.js("!!document.querySelector('#findings')"))
    assert barriers(tab, axe) == []
    # Were a name ever to become an element, it still could do nothing.
    tab.go(f"{address}/results")
    tab.js(
        "document.body.insertAdjacentHTML('beforeend',"
        ' \'<img src="data:,x" onerror="window.hit = 1"><p style="color: red" id="red">x</p>\');'
        "const one = document.createElement('script'); one.textContent = 'window.hit = 2';"
        "document.body.append(one); new Promise((done) => setTimeout(done, 200))"
    )
    assert tab.js("window.hit") is None
    assert tab.js("getComputedStyle(document.querySelector('#red')).color") != "rgb(255, 0, 0)"
    refused = tab.js("fetch('https://example.org/').then(() => 'fetched', () => 'refused')")
    assert refused == "refused"
    # A filter answers at once and stays in the address.
    tab.look()
    tab.go(f"{address}/results")
    before = count(tab)
    tab.js("window.same = 1; document.querySelector('input[value=cuda]').focus()")
    tab.key(SPACE)
    tab.until(lambda: count(tab) != before)
    assert search(tab) == "?hardware=cuda"
    assert count(tab).startswith("3 configurations")
    assert tab.js("document.activeElement.value") == "cuda"
    assert tab.js("document.querySelectorAll('#results tbody tr').length") == 3
    assert tab.js("window.same") == 1, "the page was not left"
    assert tab.js("document.querySelector('header nav a[href^=\"/charts\"]').search") == search(tab)
    tab.js("setTimeout(() => history.back())")
    tab.until(lambda: tab.js("document.readyState === 'complete' && !window.same"))
    assert (search(tab), count(tab)) == ("", before)
    # A choice counts before the server has answered.
    tab.look()
    tab.go(f"{address}/results?sort=-latency")
    keys: list[str] = tab.js(
        "[...document.querySelectorAll('td.pick input')].slice(0, 2).map((one) => one.value)"
    )
    tab.go(f"{address}/results?sort=-latency&status=ok&cell={keys[0]}")
    # The server never answers again; the tick is on the page, and nowhere else.
    tab.js("window.fetch = (at) => { window.asked = at; return new Promise(() => {}); }; 1")
    tab.js(f"document.querySelector('input[value=\"{keys[1]}\"]').click()")
    sort = tab.js("document.querySelector('#results th a[href^=\"/results?\"]').search")
    assert [sort.count(f"cell={key}") for key in keys] == [1, 1]
    tab.js("setTimeout(() => document.querySelector('#tray .buttons button').click())")
    tab.until(lambda: tab.js("location.pathname === '/compare'"))
    assert search(tab) == "?" + "&".join(f"cell={key}" for key in keys)


def test_hostile_names_do_nothing_in_a_real_page(tab, bad_address):
    tab.look()
    pages = [page for page in everything(tab, bad_address) if page != QUESTION]
    look_at(tab, None, bad_address, pages)


def count(tab: Chrome) -> str:
    return str(tab.js("document.querySelector('#count').textContent.trim()"))


def search(tab: Chrome) -> str:
    return str(tab.js("location.search"))


def test_keyboard_and_no_script(tab, address):
    # The focus can be seen and skips to the page and stays.
    tab.look()
    tab.go(f"{address}/results")
    tab.key(TAB)
    assert tab.js("document.activeElement.className") == "skip"
    assert tab.js("document.activeElement.getBoundingClientRect().left >= 0"), "seen with focus"
    tab.key(ENTER)
    assert tab.js("document.activeElement.id") == "main"
    tab.go(f"{address}/results?model=bert")
    tabbed_to(tab, "document.activeElement.matches('td.pick input:not(:checked)')")
    key = tab.js("document.activeElement.value")
    tab.key(SPACE)
    tab.until(lambda: search(tab).count("cell=") == 1)
    assert tab.js("document.activeElement.value") == key, "the focus stays"
    tabbed_to(tab, "document.activeElement.matches('main tbody th a')")
    outlined = "getComputedStyle(document.activeElement).outlineStyle"
    assert tab.js(outlined) == "solid", "where the focus is can be seen"
    tab.key(ENTER)
    tab.until(lambda: tab.js("location.pathname.startsWith('/cell/')"))
    tab.js("setTimeout(() => history.back())")
    tab.until(
        lambda: tab.js("location.pathname === '/results' && document.readyState") == "complete"
    )
    assert search(tab) == f"?model=bert&cell={key}"
    assert tab.js("document.querySelectorAll('#tray li').length") == 1
    # Everything works without a script.
    tab.look()
    tab.scripts(allowed=False)
    try:
        tab.go(f"{address}/results")
        tab.js("document.querySelector('input[value=cuda]').focus()")
        tab.key(SPACE)
        tab.js("document.querySelector('.buttons button').focus()")
        tab.key(ENTER)
        tab.until(lambda: "hardware=cuda" in search(tab))
        tab.until(lambda: tab.js("document.readyState") == "complete")
        assert count(tab).startswith("3 configurations")
        assert tab.js("document.querySelectorAll('.choices input:checked').length") == 1
    finally:
        tab.scripts(allowed=True)


def tabbed_to(tab: Chrome, there: str) -> None:
    for _ in range(80):
        tab.key(TAB)
        if tab.js(there):
            return
    raise AssertionError(f"the keyboard does not come to where {there}")


def test_a_run_that_goes_on_is_followed(tab, tmp_path):
    database = stored_in(tmp_path / "live.duckdb")
    with Journal.create(database.journals, "now") as journal, served(database) as site:
        begin(journal, "now", plan=[{}], settings={"launches": 2})
        tab.go(f"{site}/run/now")
        assert "0 of 2 launches" in tab.js("document.body.textContent")
        journal.append(Fact(RESULT, "now-0", result(model="just-measured")))
        tab.until(lambda: "just-measured" in tab.js("document.body.textContent"))
        assert "1 of 2 launches" in tab.js("document.body.textContent")
        assert tab.complaints() == []


def test_colours_and_early_ticks(tab, address):
    # Dark is dark and light is light.
    shade = "getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)[0]"
    tab.look("light")
    tab.go(f"{address}/results")
    assert tab.js(shade) > 240
    tab.look("dark")
    assert tab.js(shade) < 40
    tab.look("light")
    # A tick before the script has come is kept.
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    tab.page.route("**/app.js", hold)
    try:
        tab.page.goto(f"{address}/results", wait_until="commit")
        tab.page.get_by_role("checkbox", name="Choose").first.check()
        assert "cell=" not in tab.page.url
        held[0].continue_()
        tab.until(lambda: "cell=" in tab.page.url)
    finally:
        tab.page.unroute("**/app.js")


#: Figures whose text ends beyond their cell.
_BEYOND = """[...document.querySelectorAll("table.results td.figure")].filter((cell) => {
  const range = document.createRange();
  range.selectNodeContents(cell);
  return range.getBoundingClientRect().right > cell.getBoundingClientRect().right + 1;
}).map((cell) => cell.textContent.trim())"""


def test_qualities_stay_within_their_cells_at_1280_pixels(tab, tmp_path):
    database = stored_in(tmp_path / "wide.duckdb")
    card = {"hardware": "cuda", "device_name": "NVIDIA GeForce RTX 4090 Laptop GPU"}
    processor = {"hardware": "cpu", "device_name": "AMD EPYC 9355 32-Core Processor"}
    kinds = [
        {**card, "model": "bert-tiny", "quality": "time_limited", "runtime": "pytorch"},
        {**processor, "model": "vit-tiny", "quality": "unusable", "runtime": "onnxruntime",
         "batch_size": 32, "sequence_length": None, "image_size": 224},
    ]  # fmt: skip
    rows = [
        result(**kind, launch=n, series_key=kind["model"], latency_p50_ms=1234.5 + 9 * n)
        for kind in kinds
        for n in range(3)
    ]
    store(database, "r", *rows)
    with served(database) as address:
        tab.page.set_viewport_size({"width": 1280, "height": 900})
        tab.go(f"{address}/results")
        tab.until(lambda: tab.js('document.querySelectorAll("table.results tbody tr").length') == 2)
        assert tab.js(_BEYOND) == []

"""The pages of models, devices and of two things beside each other, in a real browser."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlencode

import pytest
from barriers import barriers, hosts
from chrome import Chrome
from dashboard_world import served, store
from test_dashboard_browser import seen_whole
from test_entity_pages import FAST, SLOW, filled, launches


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    database = filled(tmp_path_factory.mktemp("entities") / "results.duckdb")
    store(database, "later", *launches(8.0, model="vit-tiny"))
    with served(database) as one:
        yield one


PAGES = (
    "/models",
    "/model/bert-tiny",
    "/predictions/model?name=bert-tiny",
    "/devices",
    "/device/Fast%20card",
    f"/devices?{urlencode({'a': SLOW, 'b': FAST})}",
    f"/engines?{urlencode({'a': 'pytorch', 'b': 'onnxruntime'})}",
    "/runs/compare?a=r&b=later",
)


@pytest.mark.parametrize(("scheme", "wide"), [("light", 1280), ("dark", 400)])
def test_no_such_page_leaves_anybody_out_complains_or_asks_others(
    tab: Chrome, axe: str, address: str, scheme: str, wide: int
) -> None:
    tab.look(scheme, wide)
    for page in PAGES:
        tab.go(f"{address}{page}")
        seen_whole(tab)
        assert tab.complaints() == [], page
        assert barriers(tab, axe) == [], page
        assert hosts(tab) == {address}, page
        over = tab.js("document.documentElement.scrollWidth - window.innerWidth")
        assert over <= 0, f"{page} is {over} px too wide"

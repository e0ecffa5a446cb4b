from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest
from barriers import AXE
from chrome import Chrome, program
from dashboard_world import hostile, world

from accelbench.engines.browser.assets import fetch, folder_of
from accelbench.store.database import Database


@pytest.fixture(scope="module")  # not for longer: other tests look at which processes are left
def tab() -> Iterator[Chrome]:
    where = program()
    if where is None:
        pytest.skip("no Chromium is here: accelbench setup browser --with-chromium")
    with Chrome(where) as one:
        yield one


@pytest.fixture(scope="session")
def axe() -> str:
    if not folder_of(AXE).is_dir() and shutil.which("npm") is None:
        pytest.skip("axe-core is fetched with npm, which is not here")
    return (fetch(AXE) / "axe.min.js").read_text(encoding="utf-8")


@pytest.fixture(scope="session")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Database:
    return world(tmp_path_factory.mktemp("world") / "results.duckdb")


@pytest.fixture(scope="session")
def stored_badly(tmp_path_factory: pytest.TempPathFactory) -> Database:
    return hostile(tmp_path_factory.mktemp("hostile") / "results.duckdb")

from __future__ import annotations

from pathlib import Path

import pytest
from dashboard_world import stored_in, visitor
from entity_store import filled
from starlette.testclient import TestClient

from accelbench.store.database import Database


@pytest.fixture(scope="session")
def site(stored: Database) -> TestClient:
    return visitor(stored)


@pytest.fixture(scope="session")
def bad_site(stored_badly: Database) -> TestClient:
    return visitor(stored_badly)


@pytest.fixture(scope="session")
def cards(tmp_path_factory: pytest.TempPathFactory) -> Database:
    return filled(tmp_path_factory.mktemp("entities") / "results.duckdb")


@pytest.fixture(scope="session")
def visited(cards: Database) -> TestClient:
    return visitor(cards)


@pytest.fixture
def empty(tmp_path: Path) -> TestClient:
    return visitor(stored_in(tmp_path / "empty.duckdb"))

from __future__ import annotations

from pathlib import Path

import pytest
from dashboard_world import hostile, visitor, world
from starlette.testclient import TestClient

from accelbench.store.database import Database


@pytest.fixture(scope="session")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Database:
    return world(tmp_path_factory.mktemp("world") / "results.duckdb")


@pytest.fixture(scope="session")
def stored_badly(tmp_path_factory: pytest.TempPathFactory) -> Database:
    return hostile(tmp_path_factory.mktemp("hostile") / "results.duckdb")


@pytest.fixture(scope="session")
def site(stored: Database) -> TestClient:
    return visitor(stored)


@pytest.fixture(scope="session")
def bad_site(stored_badly: Database) -> TestClient:
    return visitor(stored_badly)


@pytest.fixture
def empty(tmp_path: Path) -> TestClient:
    database = Database(tmp_path / "empty.duckdb")
    database.ensure()
    return visitor(database)

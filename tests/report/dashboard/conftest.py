from __future__ import annotations

from pathlib import Path

import pytest
from dashboard_world import visitor
from starlette.testclient import TestClient

from accelbench.store.database import Database


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

from __future__ import annotations

import pytest
from dashboard_world import visitor
from lived_store import lived
from plain_cells import PlainStore
from walked_store import MANY, SEED, WalkedStore, walked

from accelbench.store.database import Database


@pytest.fixture(scope="package")
def database(tmp_path_factory: pytest.TempPathFactory) -> Database:
    return lived(tmp_path_factory.mktemp("lived") / "lived.duckdb", SEED)


@pytest.fixture(scope="package")
def store(database: Database) -> WalkedStore:
    return walked(visitor(database), PlainStore(database.path), MANY, SEED)

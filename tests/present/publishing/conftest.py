from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from dashboard_world import OTHER, result, store

from accelbench.engines.browser.assets import folder_of
from accelbench.present.publishing.bundle import PARQUET_READER, publish
from accelbench.store.database import Database


@pytest.fixture(scope="session")
def reader() -> None:
    """What reads Parquet in the browser is here, or can be fetched."""
    if not folder_of(PARQUET_READER).is_dir() and shutil.which("npm") is None:
        pytest.skip("the reader of Parquet is fetched with npm, which is not here")


def _published(database: Database, folder: Path) -> Path:
    publish(database, folder, title="A lab's results", most=2)
    return folder


@pytest.fixture(scope="session")
def bundle(reader: None, stored: Database, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _published(stored, tmp_path_factory.mktemp("published") / "bundle")


@pytest.fixture(scope="session")
def bad_bundle(
    reader: None, stored_badly: Database, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    return _published(stored_badly, tmp_path_factory.mktemp("published") / "bad")


@pytest.fixture(scope="session")
def large_bundle(reader: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of more models, models of a device, and configurations of a model than a page has room for.

    Its machines are two: `office` has measured one model, others have measured the rest.
    """
    folder = tmp_path_factory.mktemp("large")
    database = Database(folder / "large.duckdb")
    database.ensure()
    others = [result(model=f"model {n:03}", provenance="imported") for n in range(101)]
    others += [result(model="model 000", provenance="imported", batch_size=n) for n in range(2, 44)]
    source = {"source": {"name": "others"}}
    store(database, "others", *others, machine=source)
    store(database, "own", result(model="own"), machine=OTHER)
    return _published(database, folder / "bundle")

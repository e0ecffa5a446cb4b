from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from scripted_api import Machine, scripted_machine

from warm_start import warm_engine


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    with scripted_machine(tmp_path) as made:
        yield made


@pytest.fixture(scope="session", autouse=True)
def engine() -> Iterator[None]:
    """PyTorch is imported once, for all templates of a test process."""
    with warm_engine():
        yield

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from scripted_runs import Scripted, scripted_in

from warm_start import warm_engine

settings.register_profile("run", deadline=None, derandomize=True)
settings.load_profile("run")


@pytest.fixture
def scripted(tmp_path: Path) -> Iterator[Scripted]:
    with scripted_in(tmp_path) as made:
        yield made


@pytest.fixture(scope="session", autouse=True)
def engine() -> Iterator[None]:
    """PyTorch is imported once, for all templates of a test process."""
    with warm_engine():
        yield


@pytest.fixture(params=["pytorch", "remote"])
def kind(request: pytest.FixtureRequest) -> str:
    """The kind of a lying session: the pytorch engine's own, or one in another process."""
    return str(request.param)

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from scripted_runs import Scripted, scripted_in

settings.register_profile("run", deadline=None, derandomize=True)
settings.load_profile("run")


@pytest.fixture
def scripted(tmp_path: Path) -> Iterator[Scripted]:
    with scripted_in(tmp_path) as made:
        yield made

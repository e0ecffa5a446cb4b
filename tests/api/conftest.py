from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from scripted_api import Machine, scripted_machine


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    with scripted_machine(tmp_path) as made:
        yield made

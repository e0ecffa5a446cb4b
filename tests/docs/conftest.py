"""What the documents' tests share: their neighbours' helpers, and one look at the machine."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from accelbench.core.protocols import Device
from accelbench.hardware.detect import detect_all
from accelbench.run import execute

for neighbour in ("api", "cli"):
    sys.path.append(str(Path(__file__).parents[1] / neighbour))


@pytest.fixture(scope="module")
def present() -> Iterator[set[str]]:
    """Platforms that are here: looked for once for all plans, as each look starts a process."""
    found = detect_all()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(execute, "LazyInventory", lambda: found)
        yield {name for name, devices in found.items() if isinstance(devices[0], Device)}

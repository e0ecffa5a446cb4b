from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from shells import Command, Shell


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


@pytest.fixture
def command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Command]:
    """Makes a command by its name, in an empty folder and on a terminal of 80 columns."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ACCELBENCH_DB", raising=False)
    monkeypatch.delenv("ACCELBENCH_PRICES", raising=False)
    monkeypatch.setenv("COLUMNS", "80")
    return partial(Command, monkeypatch=monkeypatch, capsys=capsys)

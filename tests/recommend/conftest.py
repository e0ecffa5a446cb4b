"""Nobody's database, and nobody's CLAUDE.md, is read by chance."""

from __future__ import annotations

from pathlib import Path

import pytest

from accelbench.recommend.selector import Knowledge


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ACCELBENCH_DB", raising=False)


@pytest.fixture(autouse=True)
def _everything_is_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """What order candidates come in does not depend on the machine that tests them."""
    monkeypatch.setattr(Knowledge, "present", lambda _, platforms: frozenset(platforms))

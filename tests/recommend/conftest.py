"""Nobody's database, and nobody's CLAUDE.md, is read by chance."""

from __future__ import annotations

from pathlib import Path

import pytest

from accelbench.recommend.candidate_predictions import CandidatePredictions, PredictedCandidates
from accelbench.recommend.selector import Knowledge


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ACCELBENCH_DB", raising=False)


@pytest.fixture(autouse=True)
def _everything_is_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """What order candidates come in does not depend on the machine that tests them."""
    monkeypatch.setattr(Knowledge, "is_here", lambda *_: True)


@pytest.fixture(autouse=True)
def _evidence_alone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave predictions out, except in modules or of tests that `PREDICTS` names."""
    names = getattr(request.module, "PREDICTS", ())
    if names is not True and request.node.name not in names:
        monkeypatch.setattr(CandidatePredictions, "of", lambda *_: PredictedCandidates())

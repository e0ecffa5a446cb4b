from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from recommend_world import ASKED, BATCH_8, CARD, DB
from shells import Command, Here
from stored_rows import store

from accelbench.cli.services import searching
from accelbench.run import execute
from warm_start import warm_engine


@pytest.fixture(scope="session", autouse=True)
def engine() -> Iterator[None]:
    """PyTorch is imported once, for all templates of a test process."""
    with warm_engine():
        yield


@pytest.fixture
def shell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Here:
    return Here(tmp_path, monkeypatch, capfd)


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


def _named(name: str) -> Any:
    """Return a fixture that is the command of this name."""

    @pytest.fixture(name=name)
    def made(command: Callable[..., Command]) -> Command:
        return command(name)

    return made


check, compare, db, history = map(_named, ("check", "compare", "db", "history"))
plot, recommend, report, setup = map(_named, ("plot", "recommend", "report", "setup"))


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What `recommend --verify` would have measured, in the order of its runs; nothing is."""
    seen: list[Any] = []

    def measured(database: Any, planner: Any) -> list[str]:
        found = list(planner(*execute.here()))
        seen.extend(found)
        return ["a-run"] if found else []

    monkeypatch.setattr(searching, "measured", measured)
    monkeypatch.setattr(searching, "measured", measured)
    return seen


@pytest.fixture
def measured(tmp_path: Path) -> None:
    """A CPU at two batches, and a card that is faster."""
    store(tmp_path / DB, *({**ASKED, **row} for row in ({}, BATCH_8, CARD)))


@pytest.fixture(autouse=True)
def _evidence_alone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave predictions out of recommendations, except of tests that `PREDICTS` names."""
    from accelbench.recommend.candidate_predictions import (
        CandidatePredictions,
        PredictedCandidates,
    )

    names = getattr(request.module, "PREDICTS", ())
    if request.module.__name__.startswith("test_recommend") and request.node.name not in names:
        monkeypatch.setattr(CandidatePredictions, "of", lambda *_: PredictedCandidates())

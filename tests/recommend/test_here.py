"""What of a machine can be chosen, and whose figures count for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from accelbench.core.facts import RESULT, RUN_STARTED, Fact
from accelbench.core.protocols import Absent, Device
from accelbench.recommend.selector import HardwareSelector, LocalSelector
from accelbench.store.database import Database
from accelbench.store.journal import Journal

FOUND: Mapping[str, Sequence[Device | Absent]] = {
    "cpu": [Device("cpu", "A processor")],
    "cuda": [Device("cuda", "NVIDIA A10"), Device("cuda", "NVIDIA T4", 1)],
    "qnn": [Device("qnn", "a simulator", emulated=True)],
    "webgpu": [Device("webgpu", "A browser")],
    "mps": [Absent("mps", "this is no Mac", "use one")],
}
RESULTS = (
    {"hardware": "cpu", "device_name": "A processor", "latency_p50_ms": 9.0},
    {"hardware": "cuda", "device_name": "NVIDIA A100", "latency_p50_ms": 1.0},
    {"hardware": "webgpu", "device_name": "A browser", "emulated": True, "latency_p50_ms": 0.1},
)


@pytest.fixture
def database(tmp_path: Path) -> Database:
    made = Database(tmp_path / "some.duckdb")
    made.ensure()
    with Journal.create(made.journals, "r") as journal:
        journal.append(Fact(RUN_STARTED, "r", {"started_at": "2026-01-01T00:00:00Z"}))
        for number, result in enumerate(RESULTS):
            about = {"model": "bert-tiny", "mode": "inference", "runtime": "pytorch"}
            asked = {"precision": "fp32", "batch_size": 1, "status": "ok"}
            said = {"provenance": "measured", "throughput": 100.0, "options": {}}
            journal.append(Fact(RESULT, str(number), {**about, **asked, **said, **result}))
    made.fill()
    return made


class Asked:
    """Keeps what it was asked."""

    def __init__(self) -> None:
        self.hardware: Sequence[str] = ()

    def select_hardware(self, available_hardware: Sequence[str], **more: Any) -> dict[str, Any]:
        self.hardware = available_hardware
        return {"primary_recommendation": available_hardware[0]}


def test_a_stand_in_is_not_here_also_where_only_its_results_show_it(database):
    assert LocalSelector(Asked(), FOUND, None).words(browsers=True) == ["cpu", "cuda", "webgpu"]
    assert LocalSelector(Asked(), FOUND, database).words(browsers=True) == [
        "cpu",
        "cuda:=NVIDIA A10",
    ]


def test_a_browser_is_here_only_for_whom_it_is_meant():
    assert LocalSelector(Asked(), FOUND, None).words() == ["cpu", "cuda"]
    selector = Asked()
    here = LocalSelector(selector, FOUND, None)
    here.select_hardware(available_hardware=["cpu", "webgpu"])
    assert selector.hardware == ["cpu"]
    here.select_hardware(available_hardware=["webgpu"])
    assert selector.hardware == ["webgpu"]


def test_a_platform_is_its_device_where_others_have_figures(database):
    selector = Asked()
    here = LocalSelector(selector, FOUND, database)
    here.select_hardware(available_hardware=["cpu", "cuda"])
    assert selector.hardware == ["cpu", "cuda:=NVIDIA A10"]


def test_another_cards_figures_say_nothing_of_the_one_that_is_here(database):
    selector = HardwareSelector(database.path)
    question: dict[str, Any] = {"model_name": "bert-tiny"}
    anywhere = selector.select_hardware(**question, available_hardware=["cpu", "cuda"])
    assert anywhere["primary_recommendation"] == "cuda"
    found = LocalSelector(selector, FOUND, selector.database).select_hardware(
        **question, available_hardware=["cpu", "cuda"]
    )
    assert found["primary_recommendation"] == "cpu"
    assert found["all_scores"]["cuda:NVIDIA A10"]["basis"] == "rule"

"""Devices by name, by number and by kind of unit: found again, and none of them listed twice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from choosing_world import result, selector

from accelbench.core.errors import UsageError
from accelbench.core.facts import HARDWARE_MEASURED, RESULT, RUN_STARTED, Fact
from accelbench.recommend.selector import HardwareSelector
from accelbench.store.database import Database
from accelbench.store.journal import Journal

#: The tests that predict.
PREDICTS = ("test_a_documented_device_is_enough_of_a_name_as_it_is_to_be_predicted",)


def asked(chosen: HardwareSelector, *names: str) -> dict[str, Any]:
    answer = chosen.select_hardware(model_name="bert-tiny", available_hardware=list(names))
    scores: dict[str, Any] = answer["all_scores"]
    return scores


def units(path: Path) -> HardwareSelector:
    """OpenVINO's CPU, measured as `--hardware openvino:cpu` measures it, and a GPU of it."""
    database = Database(path)
    database.ensure()
    one = {"hardware": "openvino", "runtime": "openvino"}
    with Journal.create(database.journals, "r1") as journal:
        about = {"started_at": "2026-01-01T00:00:00Z", "environment": {"machine": "lab"}}
        journal.append(Fact(RUN_STARTED, "r1", about))
        for number, (unit, ms) in enumerate((("cpu", 4.0), ("gpu.0", 2.0))):
            body = {
                "fingerprint": f"f{number}",
                "hardware": "openvino",
                "name": ("A processor", "Graphics")[number],
                "details": {"device": unit},
                "measured_at": "2026-01-02T03:04:05.000000Z",
            }
            journal.append(Fact(HARDWARE_MEASURED, f"h{number}", body))
            row = {
                "device": f"openvino:{number}",
                "device_name": ("A processor", "Graphics")[number],
            }
            found = result(**one, **row, device_fingerprint=f"f{number}", latency_p50_ms=ms)
            journal.append(Fact(RESULT, f"r{number}", found))
    database.fill()
    return HardwareSelector(path)


@pytest.mark.parametrize(
    ("word", "latency"), [("openvino:cpu", 4.0), ("openvino:gpu", 2.0), ("openvino:0", 4.0)]
)
def test_a_unit_is_found_again_after_its_own_command(tmp_path, word, latency):
    found = asked(units(tmp_path / "units.duckdb"), word, "cpu")
    assert (found[word]["basis"], found[word]["predictions"]["latency"]) == ("measured", latency)


def test_a_unit_that_was_not_measured_is_not(tmp_path):
    found = asked(units(tmp_path / "units.duckdb"), "openvino:npu")
    assert found["openvino:npu"]["basis"] == "rule"


def test_a_platform_beside_its_device_stands_for_the_others(tmp_path):
    card = result(hardware="cuda", latency_p50_ms=2.0)
    other = result(hardware="cuda", device_name="Another", latency_p50_ms=3.0)
    alone = asked(selector(tmp_path, card), "cuda", "cuda:A card")
    assert list(alone) == ["cuda:A card"]
    both = asked(selector(tmp_path, card, other), "cuda", "cuda:A card")
    assert {name: one["predictions"]["latency"] for name, one in both.items()} == {
        "cuda": 3.0,
        "cuda:A card": 2.0,
    }


def test_an_option_is_listed_once_under_limits(tmp_path):
    chosen = selector(tmp_path, result(hardware="cuda", latency_p50_ms=2.0))
    found = chosen.best_under(
        {"max_latency_ms": 50}, model_name="bert-tiny", available_hardware=["cuda", "cuda:A card"]
    )
    assert [one["hardware"] for one in found["fits"]] == ["cuda:A card"]


def test_a_machine_has_one_cpu(tmp_path):
    chosen = selector(tmp_path, result())
    assert list(asked(chosen, "cpu:0", "cpu")) == ["cpu"]
    with pytest.raises(UsageError, match="There is one device of cpu"):
        asked(chosen, "cpu:9")


def test_what_is_best_under_limits_says_its_prices(tmp_path):
    (tmp_path / "p.json").write_text('{"per_hour": {"cuda": 1.0}}')
    chosen = selector(tmp_path, result(), result(hardware="cuda"), prices=tmp_path / "p.json")
    found = chosen.best_under({"max_latency_ms": 50}, model_name="bert-tiny")
    assert found["currency"] == "USD"
    assert found["cost_notes"] == [
        "Priced by p.json: cuda at $1.00 an hour.",
        "Without a price: A processor (cpu).",
    ]


def test_a_documented_device_is_enough_of_a_name_as_it_is_to_be_predicted(tmp_path):
    (name, found), *others = asked(selector(tmp_path, result()), "rtx 4090").items()
    assert (name, others) == ("cuda:NVIDIA GeForce RTX 4090", [])
    assert "RTX 4090" in found["predictions"]["device"]
    with pytest.raises(UsageError, match=r"Name one: .*cuda:rtx-6000-ada"):
        asked(selector(tmp_path, result()), "rtx 6000")
    card = result(hardware="cuda", device_name="NVIDIA GeForce RTX 4090")
    (name,) = asked(selector(tmp_path, card), "rtx 4090")
    assert name == "cuda:NVIDIA GeForce RTX 4090"
    # No import changes which device a name means.
    names = ("1x NVIDIA H100-SXM-80GB", "3x NVIDIA H100-NVL-94GB", "NVIDIA H100 PCIe")
    cards = [result(hardware="cuda", device_name=name) for name in names]
    (name,) = asked(selector(tmp_path, *cards), "H100")
    assert name == "cuda:1x NVIDIA H100-SXM-80GB"

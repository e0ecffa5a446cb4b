"""costs.json: up to date, exact where it was not fitted, None where nothing was counted."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from accelbench.catalog.analytic import count, entry, main, render
from accelbench.catalog.cost import COSTS_FILE, cost, flops, memory_estimate_bytes
from accelbench.catalog.find import every_model, find
from accelbench.catalog.inputs import input_bytes
from accelbench.core.case import Shapes
from accelbench.core.errors import SurroundingsError, UnsupportedError, UsageError
from accelbench.core.model import AnalyticCost
from accelbench.core.words import Mode

CHECKED = ("bert-tiny", "vit-tiny", "resnet-tiny", "gpt2-tiny", "bert-base")


def known(name: str, shapes: Shapes, precision: str = "fp32") -> AnalyticCost:
    found = cost(find(name), shapes, precision)
    assert found is not None
    return found


@pytest.mark.parametrize("name", CHECKED)
def test_the_file_is_up_to_date(name: str) -> None:
    kept = json.loads(COSTS_FILE.read_text())
    assert entry(find(name)) == kept[name], "run: python -m accelbench.catalog.analytic --write"


def test_the_file_has_every_model_in_its_present_config() -> None:
    kept = json.loads(COSTS_FILE.read_text())
    assert {s.id: s.config_digest for s in every_model()} == {
        name: made["config"] for name, made in kept.items()
    }
    assert render(kept) == COSTS_FILE.read_text()


@pytest.mark.parametrize(
    ("name", "shapes"),
    [
        ("bert-base", Shapes(1, sequence=128)),
        ("bert-base", Shapes(7, sequence=333)),
        ("bert-tiny", Shapes(5, sequence=3)),
        ("gpt2-tiny", Shapes(3, sequence=1024)),
        ("gpt2", Shapes(2, sequence=77)),
        ("vit-base", Shapes(9)),
        ("resnet-50", Shapes(4)),
        ("resnet-50", Shapes(3, image=288)),
        ("resnet-tiny", Shapes(2, image=32)),
    ],
)
@pytest.mark.parametrize("half", [False, True])
def test_a_cost_is_exact_where_it_was_not_fitted(name: str, shapes: Shapes, half: bool) -> None:
    seen = count(find(name), shapes, half)
    said = known(name, shapes, "bf16" if half else "fp32")
    assert said.flops == seen.flops
    assert said.bytes_moved == seen.bytes_moved
    assert said.activation_bytes == seen.activation_bytes
    assert said.peak_activation_bytes == seen.peak_activation_bytes


def test_weight_bytes() -> None:
    position_buffers = 2 * 512 * 8  # BERT's position and segment ids, kept as integers
    assert known("bert-base", Shapes(1)).weight_bytes == 109_482_240 * 4 + position_buffers
    assert known("bert-base", Shapes(1), "fp16").weight_bytes == 109_482_240 * 2 + position_buffers
    assert known("gpt2", Shapes(1)).weight_bytes == 124_439_808 * 4


def test_what_was_not_counted_is_none() -> None:
    bert = find("bert-base")
    assert cost(bert, Shapes(1), "amp-bf16") is None
    assert cost(bert, Shapes(1), "int8") is None
    assert cost(bert, Shapes(1), "fp32", Mode.TRAINING) is None
    assert cost(find("resnet-50"), Shapes(1, image=225), "fp32") is None
    assert memory_estimate_bytes(find("resnet-50"), Shapes(1, image=225), "fp32") is None
    other = replace(bert, config={**bert.config, "hidden_size": 1536})
    assert cost(other, Shapes(1), "fp32") is None
    assert flops(replace(bert, id="own"), Shapes(1)) is None


def test_shapes_that_cannot_be_are_refused() -> None:
    with pytest.raises(UnsupportedError):
        cost(find("bert-base"), Shapes(1, sequence=513), "fp32")
    with pytest.raises(UsageError):
        cost(find("bert-base"), Shapes(0), "fp32")


def test_flops_do_not_depend_on_precision() -> None:
    for spec in every_model():
        assert flops(spec, Shapes(2)) == known(spec.id, Shapes(2), "fp16").flops


def test_memory_is_weights_results_alive_and_inputs() -> None:
    shapes = Shapes(8)
    said = known("vit-base", shapes)
    expected = said.weight_bytes + said.peak_activation_bytes + 8 * 3 * 224 * 224 * 4
    assert memory_estimate_bytes(find("vit-base"), shapes, "fp32") == expected


def test_memory_by_precision_and_mode() -> None:
    spec, shapes = find("bert-base"), Shapes(4)
    full, half, amp, int8 = (
        memory_estimate_bytes(spec, shapes, p) for p in ("fp32", "bf16", "amp-bf16", "int8")
    )
    assert full is not None
    assert half is not None
    assert amp is not None
    assert int8 is not None
    assert half < full < amp
    assert amp - full == 2 * spec.parameters
    assert int8 < full
    training = memory_estimate_bytes(spec, shapes, "fp32", Mode.TRAINING)
    said = known("bert-base", shapes)
    moved = 4 * said.weight_bytes + said.activation_bytes + input_bytes(spec, shapes)
    assert training == moved


def test_absurd_batches_are_only_arithmetic() -> None:
    needed = memory_estimate_bytes(find("bert-base"), Shapes(10**9), "fp32")
    assert needed is not None
    assert needed > 10**9 * 2**20


def test_a_cost_without_an_exact_rule_is_not_written() -> None:
    """Along an image size that is no multiple of the stride, sides are rounded."""
    spec = find("resnet-tiny")
    crooked = replace(spec, config={**spec.config, "hidden_sizes": [16, 32, 64, 128, 256],
                                    "depths": [1] * 5})  # fmt: skip
    with pytest.raises(SurroundingsError, match="No exact cost rule"):
        entry(crooked)


def test_the_command_says_whether_it_is_up_to_date(
    monkeypatch: pytest.MonkeyPatch, tmp_path: object, capsys: pytest.CaptureFixture[str]
) -> None:
    from pathlib import Path

    file = Path(str(tmp_path)) / "costs.json"
    monkeypatch.setattr("accelbench.catalog.analytic.COSTS_FILE", file)
    monkeypatch.setattr("accelbench.catalog.analytic.every_model", lambda: (find("vit-tiny"),))
    assert main([]) == 1
    assert "out of date" in capsys.readouterr().out
    assert main(["--write"]) == 0
    assert main([]) == 0
    assert json.loads(file.read_text())["vit-tiny"]["config"] == find("vit-tiny").config_digest

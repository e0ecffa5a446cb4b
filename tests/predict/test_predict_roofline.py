"""The roofline model, by hand."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from accelbench.core.case import Case, Shapes, Target
from accelbench.core.device_facts import DeviceFacts
from accelbench.core.vocabulary import Mode, Outcome, Status
from accelbench.models.cost import Work, cost, parts
from accelbench.models.find import find
from accelbench.predict.roofline import bounds, simulated, work_of
from accelbench.run.plan import run_forecast

#: 2e9 operations and 1e7 bytes a second in fp32: no figures of any maker.
CARD = DeviceFacts("a card", {"fp32": 0.002, "fp16": 0.004, "int8": 0.008}, 0.01, "made up")


def case(model: str, shapes: Shapes, precision: str = "fp32", **more: Any) -> Case:
    return Case(find(model), Target("pytorch", "cuda", "card"), precision, shapes, **more)


def metrics(outcome: Outcome) -> dict[str, float]:
    assert outcome.status is Status.OK, outcome.message
    return dict(outcome.measurement["metrics"])


def test_the_slower_of_operations_and_bytes_binds():
    # The slower of operations and bytes binds.
    works = {"step": Work(6e9, 2e6), "next": Work(6e9, 100e6)}
    first, second = bounds(works, operations_per_second=2e12, bytes_per_second=1e9)
    assert (first.compute_ms, first.memory_ms, first.ms, first.binds) == (3.0, 2.0, 3.0, "compute")
    assert (second.compute_ms, second.memory_ms, second.ms) == (3.0, 100.0, 100.0)
    assert second.binds == "memory"
    assert first.to_dict()["binds"] == "compute"
    # A step that operations bind.
    wide = dataclasses.replace(CARD, bandwidth=1e6)
    asked = case("resnet-50", Shapes(batch=4, image=224))
    counted = cost(asked.model, asked.shapes, "fp32")
    assert counted is not None
    found = simulated(asked, wide)
    assert metrics(found)["latency_mean_ms"] == pytest.approx(counted.flops / 2e9 * 1e3)
    assert metrics(found)["throughput"] == pytest.approx(4 / (counted.flops / 2e9))
    assert found.conditions["binds"] == "compute"
    # A step that memory binds and no other column is made up.
    fast = dataclasses.replace(CARD, teraops={"fp32": 1e6})
    asked = case("bert-tiny", Shapes(batch=2, sequence=16))
    counted = cost(asked.model, asked.shapes, "fp32")
    assert counted is not None
    found = simulated(asked, fast)
    assert metrics(found)["latency_mean_ms"] == pytest.approx(counted.bytes_moved / 1e7 * 1e3)
    assert set(metrics(found)) == {"latency_mean_ms", "throughput"}
    assert found.conditions["binds"] == "memory"
    (part,) = found.conditions["parts"]
    assert (part["flops"], part["bytes_moved"]) == (counted.flops, counted.bytes_moved)


def test_the_parts_of_a_request():
    # Prefill and decode are bound apart and added.
    asked = case("gpt2-tiny", Shapes(batch=1, prompt_tokens=64, new_tokens=5))
    works = parts(asked.model, asked.shapes, "fp32")
    assert works is not None
    reading, writing = works["prefill"], works["decode"]
    # Between the operations a byte of the two, each is bound by another side.
    middle = (reading.flops / reading.bytes_moved + writing.flops / writing.bytes_moved) / 2
    peak = middle * 1e10
    card = dataclasses.replace(CARD, teraops={"fp32": peak / 1e12}, bandwidth=10)
    found = simulated(asked, card)
    assert [part["binds"] for part in found.conditions["parts"]] == ["compute", "memory"]
    prefill, decode = reading.flops / peak * 1e3, writing.bytes_moved / 1e10 * 1e3
    told = metrics(found)
    assert told["latency_mean_ms"] == pytest.approx(prefill + decode)
    assert told["ttft_ms"] == told["prefill_ms"] == pytest.approx(prefill)
    assert told["decode_ms"] == pytest.approx(decode)
    assert told["tpot_ms"] == pytest.approx(decode / 4)  # the first token is the prefill's
    assert told["throughput"] == pytest.approx(5 / ((prefill + decode) / 1e3))
    # One maximum over both would be less: one side hides behind the other.
    flops, moved = reading.flops + writing.flops, reading.bytes_moved + writing.bytes_moved
    assert max(flops / peak, moved / 1e10) * 1e3 < told["latency_mean_ms"]
    # A request of one token is its prefill.
    told = metrics(simulated(case("gpt2-tiny", Shapes(1, prompt_tokens=16, new_tokens=1)), CARD))
    assert told["latency_mean_ms"] == told["ttft_ms"]
    assert "tpot_ms" not in told
    # Of a rag request only the first token is told apart.
    told = metrics(simulated(case("rag-tiny", Shapes(1, prompt_tokens=64, new_tokens=4)), CARD))
    assert {"ttft_ms", "tpot_ms"} <= set(told)
    assert not {"prefill_ms", "decode_ms"} & set(told)


@pytest.mark.parametrize(
    ("model", "shapes"),
    [
        ("bert-tiny", Shapes(3, sequence=9)),
        ("gpt2-tiny", Shapes(1, prompt_tokens=7, new_tokens=6)),
        ("t5-tiny", Shapes(2, prompt_tokens=32, new_tokens=1)),
        ("unet-tiny", Shapes(1, image=64, steps=3)),
    ],
)
@pytest.mark.parametrize("precision", ["fp32", "fp16"])
def test_parts_add_up_to_the_step(model, shapes, precision):
    spec = find(model)
    whole, works = cost(spec, shapes, precision), parts(spec, shapes, precision)
    assert whole is not None
    assert works is not None
    assert sum(work.flops for work in works.values()) == whole.flops
    assert sum(work.bytes_moved for work in works.values()) == whole.bytes_moved
    assert all(work.flops > 0 and work.bytes_moved > 0 for work in works.values())


def test_int8_and_training():
    # Int8 does the same operations on a quarter of the bytes.
    shapes = Shapes(batch=2, sequence=16)
    wide, narrow = work_of(case("bert-tiny", shapes)), work_of(case("bert-tiny", shapes, "int8"))
    assert wide is not None
    assert narrow is not None
    assert narrow["step"].flops == wide["step"].flops
    assert narrow["step"].bytes_moved == wide["step"].bytes_moved / 4
    found = simulated(case("bert-tiny", shapes, "int8"), CARD)
    assert found.conditions["operations_per_second"] == pytest.approx(8e9)
    # Training counts the whole step.
    shapes = Shapes(batch=2, sequence=16)
    trained = metrics(simulated(case("bert-tiny", shapes, mode=Mode.TRAINING), CARD))
    once = metrics(simulated(case("bert-tiny", shapes), CARD))
    assert trained["latency_mean_ms"] > 2 * once["latency_mean_ms"]


_TRAINED = Shapes(batch=1, sequence=16)


@pytest.mark.parametrize(
    "asked",
    [
        case("mamba-tiny", Shapes(batch=1, sequence=77)),  # counted at its default sizes alone
        case("bert-tiny", _TRAINED, "fp16", mode=Mode.TRAINING),
        case("bert-tiny", _TRAINED, "int8", mode=Mode.TRAINING),
        case("bert-tiny", _TRAINED, mode=Mode.TRAINING, options={"optimizer": "sgd"}),
        case("bert-tiny", _TRAINED, mode=Mode.TRAINING, options={"gradient_checkpointing": True}),
        case("bert-tiny", _TRAINED, mode=Mode.TRAINING, options={"pure": True}),
    ],
    ids=str,
)
def test_what_is_not_counted_is_refused_never_guessed(asked):
    found = simulated(asked, CARD)
    assert (found.status, found.reason) == (Status.UNSUPPORTED, "not_counted")
    assert found.advice
    assert not found.measurement


@pytest.mark.parametrize("option", [{"optimizer": "sgd"}, {"gradient_checkpointing": True}])
def test_nor_is_another_steps_work_told_of_what_is_measured(option):
    assert run_forecast.cost(case("bert-tiny", _TRAINED, mode=Mode.TRAINING)) is not None
    assert (
        run_forecast.cost(case("bert-tiny", _TRAINED, mode=Mode.TRAINING, options=option)) is None
    )

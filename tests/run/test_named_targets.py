"""What was named, and of what nothing was measured."""

import pytest

from accelbench.core.protocols import Absent, Device
from accelbench.core.unusable_reasons import SIMULATION
from accelbench.engines.scripted import ScriptedRuntime
from accelbench.run.plan.request import Request
from accelbench.run.plan.targets import (
    MissingTarget,
    lacking,
    missing_places,
    named,
    nothing_measured,
)

NAMED = {
    "hardware": {"cuda": [["cuda", "cuda:0"]], "cuda:1": [["cuda", "cuda:1"]]},
    "runtime": ["pytorch"],
    "precision": ["amp-bf16"],
}


def row(status="ok", **more):
    about = {"hardware": "cuda", "device": "cuda:0", "runtime": "pytorch", "precision": "amp-bf16"}
    return {"status": status, "mode": "inference", "message": "why", **about, **more}


def lacks(*rows):
    return [one.name for one in lacking(NAMED, rows)]


def test_what_was_named_needs_a_result_that_is_ok():
    both = [row(), row(device="cuda:1")]
    assert lacks(*both) == []
    assert lacks(*both, row("unsupported"), row("failed")) == []
    assert lacks(row()) == ["cuda:1"]
    assert lacks(row("failed"), row(device="cuda:1", runtime="jax")) == [*("cuda", "pytorch")]
    assert lacks() == ["cuda", "cuda:1", "pytorch", "amp-bf16"]

    assert lacks(row(mode="training", precision="bf16"), row(device="cuda:1")) == []
    assert lacks(row(precision="bf16"), row(device="cuda:1", precision="bf16")) == ["amp-bf16"]

    (one,) = lacking({"hardware": {"cuda": [["cuda", None]]}}, [
        row("unsupported", device=None, message="cuda is not present: the driver is too old",
            advice="Update it."),
    ])  # fmt: skip
    assert missing_places([one]) == [
        "on cuda: cuda is not present: the driver is too old. Update it."
    ]

    (one,) = lacking({"hardware": {"cpu": [["cpu", "cpu"]]}, "runtime": ["openvino"]}, [
        row(device="cpu", hardware="cpu"),
    ])  # fmt: skip
    (place,) = missing_places([one])
    assert place.startswith("with openvino: it is a platform of its own")
    assert place.endswith("--hardware …,openvino")

    targets = [
        MissingTarget("hardware", "cpu", "it takes a batch of 1"),
        MissingTarget("precision", "int8", "it is not quantised"),
        MissingTarget("runtime", "jax", "it takes a batch of 1"),
    ]
    assert missing_places(targets) == [
        "on cpu, with jax: it takes a batch of 1",
        "in int8: it is not quantised",
    ]

    simulated = {"conditions": {SIMULATION: {"device": "A card"}}}
    assert nothing_measured([row("ok", **simulated)]) == ""
    assert nothing_measured([row("unsupported", **simulated)]) == ""
    assert lacking({"hardware": {"cuda": [["cuda", "cuda:0"]]}}, [row("ok", **simulated)]) == []
    assert nothing_measured([row("ok", **simulated), row("unsupported")])

    assert nothing_measured([row("failed"), row()]) == ""
    assert nothing_measured([row("skipped")]) == "Nothing was measured: why."
    assert "the plan has no such case" in nothing_measured([])
    kept = named(Request((), hardware=("auto",)), [], {}, {})
    assert kept == {"hardware": {}, "runtime": [], "precision": []}


def device(ordinal):
    return Device("cuda", f"card {ordinal}", ordinal)


@pytest.mark.parametrize(
    ("typed", "places"),
    [
        ("cuda", [["cuda", "cuda:0"]]),
        ("cuda:1", [["cuda", "cuda:1"]]),
        ("cuda:7", [["cuda", "7"]]),  # there is none: its result says what was typed
        ("tpu", [["tpu", None]]),
    ],
)
def test_places_are_those_of_the_results(typed, places):
    found = {"cuda": [device(0), device(1)], "tpu": [Absent("tpu", "none here", "buy one")]}
    request = Request((), hardware=(typed,), runtimes=("scripted",))
    kept = named(request, ["fp32"], found, {"scripted": ScriptedRuntime({})})
    assert kept == {"hardware": {typed: places}, "runtime": ["scripted"], "precision": ["fp32"]}


def test_what_no_node_took_says_why_of_its_platform():
    """A unit that was given up has no device: "the plan has no such case" was said of it."""
    named = {"hardware": {"cpu": [["cpu", "cpu:0"]]}}
    row = {
        "hardware": "cpu", "device": None, "runtime": "pytorch", "precision": "fp32",
        "status": "unsupported", "message": "no node has it", "advice": "Let one join",
        "mode": "inference", "provenance": "measured",
    }  # fmt: skip
    (target,) = lacking(named, [row])
    assert target.why.startswith("no node has it")

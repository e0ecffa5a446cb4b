"""`--simulate`: which devices it stands in for, and what their results say."""

import pytest
from fixed_machine import CPU
from scripted_runs import Watcher
from simulated_runs import BROWSER, FOUND, planned, run

from accelbench.core.columns import COLUMNS
from accelbench.core.errors import UsageError
from accelbench.core.facts import HARDWARE_MEASURED, RESULT
from accelbench.core.protocols import Device
from accelbench.core.vocabulary import Mode
from accelbench.run.plan.request import Distribution

A100 = ("cuda:a100-80gb",)


def test_what_is_named_and_not_here_is_simulated_with_a_note():
    (one,) = planned(hardware=A100, simulate=False).cases
    assert one.roofline is one.device is None
    assert one.refusal.reason == "hardware_absent"
    assert "simulate" not in one.refusal.advice

    plan = planned(hardware=A100)
    (one,) = plan.cases
    assert (one.device, one.refusal) == (None, None)
    assert one.roofline.name == "NVIDIA A100-SXM4-80GB"
    (note,) = plan.notes
    assert "cuda:a100-80gb is not here" in note
    assert "a limit, not a measurement" in note

    plan = planned(hardware=("cuda", "cuda:a100-80gb"))
    (one,) = plan.cases  # one question, asked under two names
    assert one.case.target.hardware_label == "cuda:a100-80gb"
    assert "It is what cuda alone stands for." in plan.notes[0]
    assert "alone" not in plan.notes[1]

    (note,) = planned(hardware=("webgpu:rtx-4060",)).notes
    assert "What a browser adds is not in them." in note

    with pytest.raises(UsageError) as caught:
        planned(hardware=("cuda:abacus",))
    assert "cuda:abacus" in caught.value.message
    assert "a100-80gb" in caught.value.advice
    assert "snapdragon" not in caught.value.advice


def test_what_is_here_is_measured_in_spite_of_the_flag():
    plan = planned(hardware=("cpu",))
    (one,) = plan.cases
    assert (one.device, one.roofline) == (CPU, None)
    assert any("--simulate changes nothing" in note for note in plan.notes)
    here = {**FOUND, "cuda": [Device("cuda", "another card"), Device("cuda", "NVIDIA H200", 1)]}
    first, named, away = planned(hardware=("cuda", "cuda:h200", "cuda:t4"), found=here).cases
    assert [str(one.device) for one in (first, named)] == ["cuda:0", "cuda:1"]
    (again,) = planned(hardware=("cuda:H200 SXM",), found=here, simulate=False).cases
    assert str(again.device) == "cuda:1"
    assert first.roofline is named.roofline is None
    assert away.roofline is not None

    asked = ("webgpu:rtx-4060",)
    (one,) = planned(hardware=asked).cases
    assert one.roofline is not None  # there is a browser, and no such card
    seen = {**FOUND, "cuda": [Device("cuda", "NVIDIA GeForce RTX 4060")]}
    (one,) = planned(hardware=asked, found=seen).cases
    assert one.roofline is None
    assert one.refusal.reason == "device_absent"
    assert BROWSER.name == "a browser"


@pytest.mark.parametrize("place", ["cuda:1", "wasm", "wasm:pixel", "cpu:7"])
def test_a_number_and_a_platform_without_documents_stay_unsupported(place):
    (one,) = planned(hardware=(place,)).cases
    assert one.roofline is None
    assert one.refusal.reason in ("hardware_absent", "device_absent")


@pytest.mark.parametrize(
    ("asked", "reason", "advice"),
    [
        ({"hardware": ("qnn",), "precisions": ("fp16",)}, "precision", "--precision int8"),
        ({"hardware": ("webgpu:m2",), "precisions": ("bf16",)}, "precision", "--precision fp32"),
        ({"hardware": ("webgpu:m2",), "modes": (Mode.TRAINING,)}, "mode", "--mode inference"),
        ({"hardware": A100, "precisions": ("amp-fp16",)}, "precision", "fp32,fp16,bf16,int8"),
        ({"hardware": A100, "sequence_lengths": (513,)}, "sequence_too_long", "512"),
    ],
)
def test_what_device_or_runtime_have_not_is_refused(asked, reason, advice):
    (one,) = planned(**asked).cases
    assert one.refusal.reason == reason
    assert advice in f"{one.refusal.message} {one.refusal.advice}"


@pytest.mark.parametrize("mode", Mode)
def test_a_step_of_several_is_not_simulated(mode):
    """One device's figure would stand for theirs."""
    together = Distribution(2, baseline=False)
    for entry in planned(hardware=A100, modes=(mode,), distribution=together).cases:
        assert entry.refusal.reason == "distributed"


def test_a_result_has_the_figures_of_its_document_and_nothing_was_started(scripted):
    watcher = Watcher()
    ended = run(scripted, planned(hardware=("cuda:a100-80gb", "webgpu:rtx-4060")), watcher)
    big, small = ended.rows
    assert not watcher.processes
    assert big["provenance"] == small["provenance"] == "simulated"
    # BERT's tiny size at batch 1 is bound by operations on the one, by memory on the other.
    assert big["latency_mean_ms"] == pytest.approx(big["flops"] / 19.5e12 * 1e3)
    assert small["latency_mean_ms"] == pytest.approx(small["bytes_moved"] / 272e9 * 1e3)
    said = [row["conditions"]["simulation"] for row in ended.rows]
    assert [one["binds"] for one in said] == ["compute", "memory"]
    assert said[0]["operations_per_second"] == 19.5e12
    assert said[0]["bytes_per_second"] == 2039e9
    assert "datasheet" in said[0]["source"]
    for row in ended.rows:
        assert row["status"] == "ok"
        assert row["throughput"] == pytest.approx(1e3 / row["latency_mean_ms"])
        assert row["device_name"] == row["conditions"]["simulation"]["device"]
        assert row["series_key"] is row["device_fingerprint"] is row["quality"] is None
        assert (row["verification"], row["self_check"]) == ("not_done", "not_done")
    facts = scripted.facts(ended.run_id)
    assert [f.kind for f in facts].count(RESULT) == 2
    assert HARDWARE_MEASURED not in {f.kind for f in facts}  # no such device was seen


@pytest.mark.parametrize("mode", [Mode.INFERENCE, Mode.TRAINING])
@pytest.mark.parametrize("model", ["bert-tiny", "gpt2-tiny", "rag-tiny", "resnet-tiny"])
def test_every_empty_column_is_explained(scripted, model, mode):
    ended = run(scripted, planned(model, hardware=A100, modes=(mode,)))
    for row in ended.rows:
        empty = {c.name for c in COLUMNS if c.name != "nulls" and row.get(c.name) is None}
        assert set(row["nulls"]) == empty
        assert "not known" not in row["nulls"].values()
        if row["status"] != "ok":
            continue
        for name in ("latency_p50_ms", "memory_peak_mb", "energy_joules", "evidence", "threads"):
            assert row["nulls"][name] == "simulated: nothing was run"
        if mode is Mode.INFERENCE:
            assert row["nulls"]["loss_first"] == "nothing is trained"


def test_memory_is_that_of_the_document(scripted):
    plan = planned("llama-2-7b", hardware=("cuda:rtx-4060",), precisions=("fp16",))
    (row,) = run(scripted, plan).rows
    assert (row["status"], row["reason"]) == ("out_of_memory", "out_of_memory_estimated")
    assert "8.0 GiB" in row["message"]
    assert row["advice"]
    assert "latency_mean_ms" not in row
    assert row["provenance"] == "simulated"
    assert row["conditions"]["simulation"]["memory_bytes"] == 8 * 2**30

    asked = {"batch_sizes": (), "sequence_lengths": (1024,), "new_tokens": (0,)}
    small = planned("gpt2", hardware=("cuda:rtx-4060",), **asked)
    large = planned("gpt2", hardware=("cuda:h200",), **asked)
    assert [one.case.shapes.batch for one in small.cases] == [1, 8, 32]
    assert [one.case.shapes.batch for one in large.cases] == [1, 8, 32, 128]
    assert "8.0 GiB is free" in small.notes[-1]

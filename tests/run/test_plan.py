"""From a request to an ordered list of cases."""

import dataclasses
from types import SimpleNamespace

import pytest
from fixed_machine import models

from accelbench.core.case import Shapes
from accelbench.core.errors import UsageError
from accelbench.core.model import FileFormat
from accelbench.core.protocols import SUPPORTED, Absent, Device, Support
from accelbench.core.vocabulary import Mode, Status
from accelbench.engines.pytorch import PytorchRuntime
from accelbench.engines.scripted import ScriptedRuntime
from accelbench.run.conduct import run_record
from accelbench.run.plan import expand as planning
from accelbench.run.plan.expand import expand
from accelbench.run.plan.request import Request, apart
from accelbench.run.plan.targets import places

CPU = Device("cpu", "a processor")
GPUS = [Device("cuda", "a card", 0), Device("cuda", "another card", 1)]
FOUND = {
    "cpu": [CPU],
    "cuda": GPUS,
    "mps": [Absent("mps", "this is not a Mac", "use one")],
    "tpu": [Device("tpu", "a chip")],
}


class Everything(ScriptedRuntime):
    """Supports whatever it is asked for but one precision."""

    def supports(self, case, device):
        if case.precision == "fp16":
            return Support(False, "precision", "not in halves", "take it whole")
        return SUPPORTED


def card(name, hardware, default_for=()):
    runtime = Everything()
    runtime.info = dataclasses.replace(
        runtime.info, name=name, hardware=hardware, default_for=default_for
    )
    return runtime


RUNTIMES = {
    "main": card("main", ("cpu", "cuda", "mps"), ("cpu", "cuda", "mps")),
    "other": card("other", ("cpu",)),
}


def plan(
    *names, estimate=lambda case: None, free=lambda device: None, runtimes_there=RUNTIMES, **request
):
    asked = Request(models(*(names or ("bert-tiny",))), **request)
    return expand(asked, FOUND, runtimes_there, estimate, free)


def lines(found):
    return [(str(p.case.target), p.case.precision, p.case.shapes.batch) for p in found.cases]


def test_what_is_present_is_measured_once_and_what_nothing_serves_is_a_note():
    found = plan(batch_sizes=(1,))
    assert lines(found) == [("main/cpu", "fp32", 1), ("main/cuda", "fp32", 1)]
    assert found.notes == (
        "tpu is present, but no runtime of this installation runs on tpu; left out.",
    )

    runtimes = {name: r for name, r in RUNTIMES.items() if "cuda" not in r.info.default_for}
    notes = plan(batch_sizes=(1,), runtimes_there=runtimes).notes
    assert notes == (
        "cpu, cuda and tpu are present, but no runtime of this installation runs there; left out.",
    )

    found = plan(hardware=("cpu",), batch_sizes=(8, 1, 8, 4))
    assert [p.case.shapes.batch for p in found.cases] == [1, 4, 8]
    found = plan(hardware=("cuda", "cuda:0", "cuda:1"), batch_sizes=(1,))
    assert [str(p.device) for p in found.cases] == ["cuda:0", "cuda:1"]
    (one,) = plan(hardware=("tpu",), batch_sizes=(1,)).cases
    assert one.refusal.reason == "no_runtime"
    assert "cpu, cuda, mps" in one.refusal.advice
    found = plan(runtimes=("other",), batch_sizes=(1,))
    assert lines(found) == [("other/cpu", "fp32", 1)]
    (refused,) = plan(runtimes=("other",), hardware=("cuda",), batch_sizes=(1,)).cases
    assert refused.refusal.reason == "no_runtime"


def test_a_file_in_halves_is_measured_in_fp32_where_its_engine_has_no_halves():
    asked = {"hardware": ("cpu",), "batch_sizes": (1,), "precisions": ("fp16",)}
    found = plan(**asked, as_stored=True)
    assert [(p.case.precision, p.refusal) for p in found.cases] == [("fp32", None)]
    (note,) = found.notes
    assert note.startswith("bert-tiny is stored in fp16, in which main/cpu does not compute")
    (named,) = plan(**asked).cases
    assert named.refusal is not None


def test_an_engine_without_fp32_takes_its_first_precision_if_none_is_named():
    npu = card("npu", ("tpu",), ("tpu",))
    npu.info = dataclasses.replace(npu.info, precisions=("int8", "fp16"))
    there = {**RUNTIMES, "npu": npu}

    def precisions(named, **asked):
        (request,) = apart(Request(models("bert-tiny"), batch_sizes=(1,), **asked), named)
        found = expand(request, FOUND, there, lambda case: None, lambda device: None)
        return [f"{p.case.target} {p.case.precision}" for p in found.cases]

    assert precisions(False, hardware=("cpu", "tpu")) == ["main/cpu fp32", "npu/tpu int8"]
    assert precisions(False)[-1] == "npu/tpu int8"
    assert precisions(True, hardware=("tpu",)) == ["npu/tpu fp32"]
    assert precisions(False, hardware=("tpu",), modes=(Mode.TRAINING,)) == ["npu/tpu fp32"]
    emulated = {**FOUND, "tpu": [Device("tpu", "software", emulated=True)]}
    (asked,) = apart(Request(models("bert-tiny"), batch_sizes=(1,)), False)
    found = expand(asked, emulated, there, lambda case: None, lambda device: None)
    assert found.cases[-1].case.precision == "fp32"


def test_the_order_is_model_place_precision_shape():
    found = plan(
        *("bert-tiny", "gpt2-tiny"),
        hardware=("cpu",),
        runtimes=("main", "other"),
        precisions=("fp32", "bf16"),
        sequence_lengths=(64, 32),
        batch_sizes=(1, 2),
    )
    assert len(found.cases) == 2 * 2 * 2 * 2 * 2
    groups = list(found.groups())
    assert len(groups) == 2 * 2 * 2 * 2
    assert [g[0].case.model.id for g in groups] == ["bert-tiny"] * 8 + ["gpt2-tiny"] * 8
    assert [str(g[0].case.target) for g in groups[:8:2]] == ["main/cpu"] * 2 + ["other/cpu"] * 2
    assert [g[0].case.precision for g in groups[:8:2]] == ["fp32", "bf16", "fp32", "bf16"]
    # A worker sees batches ascend, never fall: another sequence length is another worker's.
    shapes = [[(p.case.shapes.sequence, p.case.shapes.batch) for p in g] for g in groups[:2]]
    assert shapes == [[(32, 1), (32, 2)], [(64, 1), (64, 2)]]


def test_a_named_device_that_is_absent_is_refused():
    (one,) = plan(hardware=("mps",), batch_sizes=(1,)).cases
    assert one.device is None
    assert one.refusal.status is Status.UNSUPPORTED
    assert one.refusal.reason == "hardware_absent"
    assert "this is not a Mac" in one.refusal.message
    assert one.refusal.advice == "use one"

    chosen, absent = plan(hardware=("cuda:1", "cuda:7"), batch_sizes=(1,)).cases
    assert chosen.device == GPUS[1]
    assert absent.device is None
    assert absent.refusal.reason == "device_absent"
    assert "cuda:0, cuda:1" in absent.refusal.advice

    from accelbench.run.conduct.results import LaunchFacts, identity_of

    found = plan(hardware=("cuda:7", "cuda:8"), batch_sizes=(1,)).cases
    assert len({identity_of(LaunchFacts("r", 1), one) for one in found}) == 2


def test_a_file_that_a_platform_does_not_open_is_told_of_those_that_do():
    def runtime(*files, hardware):
        info = SimpleNamespace(files=files, hardware=hardware, default_for=hardware, place=0)
        return SimpleNamespace(info=info)

    there = {
        "torch": runtime(hardware=("cpu", "cuda", "mps")),
        "openvino": runtime(FileFormat.OPENVINO, hardware=("openvino",)),
    }
    wanted = SimpleNamespace(
        hardware=("cpu",), runtimes=(), file_format=FileFormat.OPENVINO, simulate=False
    )
    (place,), _ = places(wanted, FOUND, there)
    assert place.refusal.advice == (
        "This installation opens OpenVINO graphs on openvino: name one by --hardware."
    )


def test_what_a_runtime_refuses_carries_its_reason():
    yes, no = plan(hardware=("cpu",), precisions=("fp32", "fp16"), batch_sizes=(1,)).cases
    assert yes.refusal is None
    assert (no.refusal.status, no.refusal.reason) == (Status.UNSUPPORTED, "precision")
    assert (no.refusal.message, no.refusal.advice) == ("not in halves", "take it whole")


def test_a_runtime_that_cannot_even_say_fails_its_own_cases():
    class Broken(Everything):
        def supports(self, case, device):
            raise KeyError("its own mistake")

    broken = Broken()
    broken.info = dataclasses.replace(broken.info, name="broken")
    there = {"broken": broken, **RUNTIMES}
    found = plan(
        hardware=("cpu",), runtimes=("broken", "main"), batch_sizes=(1,), runtimes_there=there
    )
    first, second = found.cases
    assert (first.refusal.status, first.refusal.reason) == (Status.FAILED, "runtime_broken")
    assert "its own mistake" in first.refusal.message
    assert first.refusal.advice
    assert second.refusal is None


def test_sizes_that_a_model_does_not_take_are_refused_or_noted():
    ok, too_long = plan(hardware=("cpu",), sequence_lengths=(512, 513), batch_sizes=(1,)).cases
    assert ok.refusal is None
    assert too_long.refusal.reason == "sequence_too_long"
    assert "512" in too_long.refusal.message
    found = plan("vit-tiny", hardware=("cpu",), sequence_lengths=(32, 64), batch_sizes=(1,))
    assert [(p.case.shapes.sequence, p.case.shapes.image) for p in found.cases] == [(None, 64)]
    (note,) = plan("bert-tiny", hardware=("cpu",), batch_sizes=(1,), image_sizes=(64,)).notes
    assert "--image-sizes changes nothing" in note
    found = plan("wav2vec2-tiny", hardware=("cpu",), batch_sizes=(1,), audio_seconds=(1, 2))
    assert [str(p.case).split(" · ")[-1] for p in found.cases] == ["1 s", "2 s"]
    found = plan("gpt2-tiny", hardware=("cpu",), batch_sizes=(1,), prompt_tokens=(1016, 1017))
    assert [p.refusal and p.refusal.reason for p in found.cases] == [None, "sequence_too_long"]


@pytest.mark.parametrize(
    ("asked", "option"),
    [
        ({"sequence_lengths": (32,)}, "--sequence-lengths"),
        ({"prompt_tokens": (8,)}, "--prompt-tokens"),
        ({"new_tokens": (4,)}, "--new-tokens"),
        ({"audio_seconds": (3,)}, "--audio-seconds"),
        ({"denoising_steps": (2,)}, "--denoising-steps"),
        ({"training_options": {"optimizer": "sgd"}}, "training"),
    ],
)
def test_what_no_case_takes_up_is_said(asked, option):
    (note,) = plan("vit-tiny", hardware=("cpu",), batch_sizes=(1,), **asked).notes
    assert option in note
    assert "change" in note


def test_what_cannot_be_trained_says_why():
    (bert,) = models("bert-tiny")
    untrained = dataclasses.replace(bert, training=None)
    own = dataclasses.replace(untrained, id="mine", sets=("custom",))
    asked = Request((untrained, own), hardware=("cpu",), batch_sizes=(1,), modes=(Mode.TRAINING,))
    theirs, ours = expand(asked, FOUND, RUNTIMES, lambda case: None, lambda device: None).cases
    assert "the catalogue does not say" in theirs.refusal.message
    assert "ForSequenceClassification" not in theirs.refusal.advice
    assert "BertModel, the class of mine," in ours.refusal.message
    assert "such as BertForSequenceClassification" in ours.refusal.advice

    spec = dataclasses.replace(models("bert-tiny")[0], training=None)
    asked = Request((spec,), hardware=("cpu",), batch_sizes=(1,), modes=(Mode.TRAINING,))
    found = expand(asked, FOUND, {"pytorch": PytorchRuntime()}, lambda _: None, lambda _: None)
    assert found.cases[0].refusal is not None
    assert found.cases[0].refusal.reason == "mode"


@pytest.mark.parametrize(
    ("names", "asked"),
    [
        (("vit-tiny", "gpt2-tiny"), {"new_tokens": (4,), "prompt_tokens": (8,)}),
        (("gpt2-tiny",), {"sequence_lengths": (16,), "new_tokens": (0, 4)}),
        (("bert-tiny",), {"new_tokens": (0,)}),
        (("vit-tiny",), {"image_sizes": (33,)}),  # refused, not passed over
        (("wav2vec2-tiny", "unet-tiny"), {"audio_seconds": (2,), "denoising_steps": (2, 3)}),
        (("bert-tiny",), {"modes": tuple(Mode), "training_options": {"optimizer": "sgd"}}),
    ],
)
def test_what_one_model_of_a_set_takes_up_needs_no_note(names, asked):
    assert not plan(*names, hardware=("cpu",), batch_sizes=(1,), **asked).notes


def gib(case):
    return case.shapes.batch * 2**30


def test_default_batches_are_those_that_memory_holds():
    found = plan(hardware=("cpu",), estimate=gib, free=lambda device: 10 * 2**30)
    assert [p.case.shapes.batch for p in found.cases] == [1, 8]
    (note,) = found.notes
    assert "batch 32, 128 left out" in note
    assert "inference" in note  # training needs more, and has a note of its own
    assert "32.0 GiB is needed and 10.0 GiB is free" in note

    needs = {1: 1, 8: 20, 32: 5, 128: 30}
    found = plan(
        hardware=("cpu",),
        estimate=lambda case: needs[case.shapes.batch] * 2**30,
        free=lambda device: 10 * 2**30,
    )
    assert [p.case.shapes.batch for p in found.cases] == [1, 32]
    (note,) = found.notes
    assert "batch 8, 128 left out" in note
    assert "20.0 GiB is needed" in note

    found = plan(hardware=("cpu",), estimate=gib, free=lambda device: 1)
    assert [p.case.shapes.batch for p in found.cases] == [1]
    found = plan(hardware=("cpu",), estimate=gib, free=lambda device: 1, batch_sizes=(1, 64))
    assert [p.case.shapes.batch for p in found.cases] == [1, 64]
    assert not found.notes


@pytest.mark.parametrize("known", ["estimate", "free"])
def test_where_memory_is_not_known_nothing_is_left_out(known):
    how = {"estimate": gib} if known == "estimate" else {"free": lambda device: 1}
    assert [p.case.shapes.batch for p in plan(hardware=("cpu",), **how).cases] == [1, 8, 32, 128]


def test_an_unknown_runtime_is_refused_with_those_there_are():
    request = Request(models("bert-tiny"), runtimes=("torchh",))
    with pytest.raises(UsageError, match=r"torchh.*Installed here: main, other"):
        planning.plan_for(request, FOUND, RUNTIMES)


def test_both_modes_and_only_training_has_its_options():
    found = plan(
        hardware=("cpu",),
        batch_sizes=(1,),
        precisions=("amp-bf16",),
        modes=(Mode.INFERENCE, Mode.TRAINING),
        training_options={"optimizer": "sgd"},
    )
    assert [(p.case.mode, p.case.precision, dict(p.case.options)) for p in found.cases] == [
        (Mode.INFERENCE, "amp-bf16", {}),
        (Mode.TRAINING, "bf16", {"optimizer": "sgd"}),
    ]


def test_requests_and_forward_passes_of_what_generates():
    shapes = [p.case.shapes for p in plan("gpt2-tiny", hardware=("cpu",), batch_sizes=(1,)).cases]
    makes = models("gpt2-tiny")[0].generation
    assert shapes == [Shapes(1, prompt_tokens=makes.prompt_tokens, new_tokens=makes.new_tokens)]

    found = plan(
        *("gpt2-tiny", "bert-tiny"),
        hardware=("cpu",),
        batch_sizes=(1,),
        sequence_lengths=(16,),
        new_tokens=(0, 4),
    )
    assert [p.case.shapes for p in found.cases] == [
        Shapes(1, prompt_tokens=16, new_tokens=4),
        Shapes(1, sequence=16),
        Shapes(1, sequence=16),
    ]


def test_engines_that_generate_measure_whole_requests_beside_one_that_cannot():
    reads = card("reads", ("cpu",))
    reads.info = dataclasses.replace(reads.info, generates=False)
    found = plan(
        *("gpt2-tiny", "bert-tiny"),
        runtimes_there={"main": RUNTIMES["main"], "reads": reads},
        hardware=("cpu",),
        runtimes=("main", "reads"),
        batch_sizes=(1,),
    )
    assert [(p.case.model.id, p.case.target.runtime, p.case.generates) for p in found.cases] == [
        ("gpt2-tiny", "main", True),
        ("gpt2-tiny", "main", False),
        ("gpt2-tiny", "reads", False),
        ("bert-tiny", "main", False),
        ("bert-tiny", "reads", False),
    ]
    assert len(found.notes) == 1


def test_a_plan_survives_its_journal():
    found = plan(
        *("bert-tiny", "vit-tiny"),
        hardware=("cpu", "cuda:1", "mps"),
        precisions=("fp32", "fp16"),
        options={"compile": True, "threads": 2},
    )
    for one in found.cases:
        again = run_record._planned_from_json(run_record.planned_to_json(one))
        assert again == one
        assert again.case.case_id == one.case.case_id

"""`--hardware auto`: each question goes where the selector says, among what is here."""

from dataclasses import replace

import pytest
from fixed_machine import models

from accelbench.core.protocols import SUPPORTED, Absent, Device, Support
from accelbench.core.vocabulary import Mode
from accelbench.engines.scripted import ScriptedRuntime
from accelbench.run.plan.automatic import is_automatic, plan_chosen
from accelbench.run.plan.request import AUTO, Request

FOUND = {
    "cpu": [Device("cpu", "a processor")],
    "cuda": [Device("cuda", "a card")],
    "mps": [Absent("mps", "this is not a Mac", "use one")],
    "qnn": [Device("qnn", "a simulator", emulated=True)],
    "webgpu": [Device("webgpu", "an adapter")],
}


class Fussy(ScriptedRuntime):
    """Trains nothing in a browser."""

    def supports(self, case, device):
        if case.mode is Mode.TRAINING and device.hardware == "webgpu":
            return Support(False, "mode", "a browser does not train", "train elsewhere")
        if case.generates and not self.info.generates:
            return Support(False, "generation", "it does not generate", "measure a forward pass")
        return SUPPORTED


def runtime(name, hardware, default_for=()):
    made = Fussy()
    made.info = replace(made.info, name=name, hardware=hardware, default_for=default_for)
    return made


ALL = ("cpu", "cuda", "mps", "qnn", "webgpu")
RUNTIMES = {"main": runtime("main", ALL, ALL), "other": runtime("other", ("cpu",))}


class Selector:
    """Answers with what was told beforehand, and keeps what it was asked."""

    def __init__(self, *best, scores=None):
        self._best, self._scores = best, scores or {}
        self.asked = []

    def __call__(self, **asked):
        self.asked.append(asked)
        found = self._best[min(len(self.asked), len(self._best)) - 1]
        first = found if found in asked["available_hardware"] else None
        return {"primary_recommendation": first, "all_scores": self._scores}


def chosen(selector, *names, **request):
    asked = {"batch_sizes": (1,), **request}
    wanted = Request(models(*(names or ("bert-tiny",))), hardware=(AUTO,), **asked)
    assert is_automatic(wanted)
    return plan_chosen(wanted, FOUND, RUNTIMES, selector)


def targets(plan):
    return [str(one.case.target) for one in plan.cases]


def test_the_selectors_answer_is_measured_among_what_is_here_and_could_take_it():
    plan, (choice,) = chosen(Selector("cuda"))
    assert targets(plan) == ["main/cuda"]
    assert choice.hardware == "cuda"
    assert plan.notes[0] == (
        "bert-tiny fp32 inference is measured on cuda: chosen before cpu and webgpu."
    )

    selector = Selector("cpu")
    chosen(selector)
    assert selector.asked[0] == {
        "model_family": "embedding",
        "model_name": "bert-tiny",
        "batch_size": 1,
        "mode": "inference",
        "precision": "fp32",
        "available_hardware": ["cpu", "cuda", "webgpu"],
    }

    selector = Selector("cpu")
    chosen(selector, modes=(Mode.TRAINING,))
    assert selector.asked[0]["available_hardware"] == ["cpu", "cuda"]

    scores = {"cpu": {"runtime": "other", "basis": "measured"}}
    plan, (choice,) = chosen(Selector("cpu", scores=scores))
    assert targets(plan) == ["other/cpu"]
    assert choice.reason.endswith("by what was measured")
    assert "on cpu by other:" in plan.notes[0]

    plan, (choice,) = chosen(Selector("none of them"))
    assert choice.hardware is None
    assert {"main/cpu", "main/cuda", "main/webgpu"} <= set(targets(plan))
    assert "names none of cpu, cuda and webgpu" in plan.notes[0]
    _, (choice,) = chosen(Selector("cpu"), runtimes=("other",))
    assert choice.reason == "nothing else here could take it"


def test_every_model_and_mode_and_precision_has_a_choice_of_its_own():
    plan, choices = chosen(
        Selector("cpu", "cuda", "webgpu", "cpu"),
        *("bert-tiny", "resnet-tiny"),
        precisions=("fp32", "bf16"),
    )
    assert [(c.model.id, c.precision, c.hardware) for c in choices] == [
        ("bert-tiny", "fp32", "cpu"),
        ("bert-tiny", "bf16", "cuda"),
        ("resnet-tiny", "fp32", "webgpu"),
        ("resnet-tiny", "bf16", "cpu"),
    ]
    assert targets(plan) == ["main/cpu", "main/cuda", "main/webgpu", "main/cpu"]


@pytest.mark.parametrize(
    ("answers", "best"),
    [
        (("cpu", "cuda", "cuda"), "cuda"),
        (("cpu", "cpu", "cuda"), "cpu"),
        (("cpu", "webgpu", "cuda"), "cuda"),  # none has more: that of the largest batch
    ],
)
def test_batch_sizes_have_one_choice_together(answers, best):
    plan, (choice,) = chosen(Selector(*answers), batch_sizes=(1, 2, 4))
    assert (choice.hardware, set(targets(plan))) == (best, {f"main/{best}"})
    assert len(plan.cases) == 3
    assert "though" in choice.reason
    assert "is first for others" in choice.reason


def test_a_batch_for_which_nothing_is_recommended_is_said():
    """As where none is expected to have the memory: the choice rests on the other batches."""
    _, (choice,) = chosen(Selector("cpu", "None", "cpu"), batch_sizes=(1, 2, 4))
    assert choice.reason.startswith(
        "chosen before cuda and webgpu for batch 1 and 4; for batch 2 none of them is recommended"
    )


@pytest.mark.parametrize(("compared", "alone"), [(["cpu"], True), (["cpu", "cuda"], False)])
def test_what_has_a_figure_alone_was_held_against_nothing_and_that_is_said(compared, alone):
    selector = Selector("cpu", scores={"cpu": {"basis": "measured"}})

    def choose(**question):
        return {**selector(**question), "compared": compared}

    _, (choice,) = chosen(choose)
    assert ("; no other has a figure" in choice.reason) is alone
    assert "by what was measured" in choice.reason


@pytest.mark.parametrize(
    ("scored", "request_more"),
    [
        ({"runtime": "other", "basis": "roofline"}, {}),  # nothing was measured by it
        ({"runtime": "theirs", "basis": "measured"}, {}),  # not installed here
        ({"runtime": "other", "basis": "measured"}, {"runtimes": ("main",)}),  # another is asked
    ],
)
def test_else_the_engine_is_as_without_a_choice(scored, request_more):
    plan, _ = chosen(Selector("cpu", scores={"cpu": scored}), **request_more)
    assert targets(plan) == ["main/cpu"]


def test_generation_is_measured_though_an_engine_here_does_not_generate():
    forward = runtime("forward", ("webgpu",), ("webgpu",))
    forward.info = replace(forward.info, generates=False)
    main = runtime("main", ("cpu", "cuda"), ("cpu", "cuda"))
    selector = Selector("cuda")
    wanted = Request(models("gpt2"), hardware=(AUTO,), batch_sizes=(1,))
    plan, _ = plan_chosen(wanted, FOUND, {"main": main, "forward": forward}, selector)
    assert {planned.case.generates for planned in plan.cases} == {True}
    assert selector.asked[0]["shapes"]["new_tokens"] > 0
    only, _ = plan_chosen(wanted, FOUND, {"forward": forward}, Selector("webgpu"))
    assert {planned.case.generates for planned in only.cases} == {False}


def test_what_is_refused_everywhere_is_not_asked_about_and_says_why():
    selector = Selector("cpu")
    plan, choices = chosen(selector, sequence_lengths=(100_000,))
    assert (selector.asked, choices) == ([], [])
    assert plan.cases
    assert all(one.refusal is not None for one in plan.cases)


def test_a_size_that_one_model_takes_up_is_of_use():
    names = ("bert-tiny", "resnet-tiny")
    plan, _ = chosen(Selector("cpu"), *names, sequence_lengths=(64,))
    assert not [note for note in plan.notes if "changes nothing" in note]
    plan, _ = chosen(Selector("cpu"), *names, audio_seconds=(2,))
    assert len([note for note in plan.notes if "--audio-seconds changes nothing" in note]) == 1

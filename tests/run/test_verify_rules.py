"""The rules of verification at their limits: what is just allowed, and what just is not."""

from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from fixed_machine import CPU, models

from accelbench.core.abilities import StepPreview
from accelbench.core.case import Case, Shapes, Target
from accelbench.core.errors import CaseError
from accelbench.core.model import InputSpec
from accelbench.core.protocols import Block, Device
from accelbench.core.run_options import RunSettings
from accelbench.core.vocabulary import Mode, Timing
from accelbench.engines.scripted import VirtualClock
from accelbench.engines.shared.sketches import Glance, Sketch, sketch
from accelbench.models.cost import flops
from accelbench.models.find import find
from accelbench.run.conduct.launch_context import Repeats
from accelbench.run.plan.request import Planned
from accelbench.run.verify import reference
from accelbench.run.verify.agreement import agree, pick
from accelbench.run.verify.block_lengths import warn_of_slower_steps
from accelbench.run.verify.convergence import are_frozen
from accelbench.run.verify.plausibility import (
    KnownFacts,
    fastest,
    refuse_implausible,
    remove_implausible,
)
from accelbench.run.verify.precision_proof import proved
from accelbench.run.verify.reference import (
    NoReferenceError,
    OwnRounding,
    is_own,
    otherwise,
    reference_of,
)
from accelbench.run.verify.self_check import (
    _has_telling_weights,
    other_seed,
    right_seed,
    self_check,
)
from accelbench.run.verify.timed_steps import (
    LONG_NS,
    UnseenSteps,
    refuse_other,
    refuse_short,
    tells,
)
from accelbench.run.verify.timing_plausibility import TimingLook, TimingWatch
from accelbench.run.verify.training_steps import TrainingSteps, _limits
from accelbench.run.verify.verdicts import (
    FAILED,
    NOT_ASKED_FOR,
    NOT_DONE,
    NOT_FINITE,
    NOT_TELLING,
    OK,
    TOLERANCES,
    Verdict,
    judged,
)
from accelbench.run.verify.verification import Verifications, undetermined
from refusals import refusal

CASE = Case(find("bert-tiny"), Target("pytorch", "cpu"), "fp32", Shapes(2, 16))
ANSWERED = Case(
    find("gpt2-tiny"), Target("pytorch", "cpu"), "fp32", Shapes(2, prompt_tokens=8, new_tokens=4)
)
NOISE = np.random.default_rng(1).standard_normal((4, 50)).astype(np.float32)
OTHER = np.random.default_rng(2).standard_normal((4, 50)).astype(np.float32)
ANSWER = {"error": 0.1, "tolerance": 0.5, "errors": {"y": 0.1}, "wrong": "", "telling": True}


# -- timed steps


class Here:
    """A session that keeps what steps leave."""

    phases = ("step",)

    def stepped(self, most):
        return {}


class Afar(Here):
    """One whose work is done by other processes."""

    host_memory = None

    def cpu_seconds(self):
        return 0.0


class Waiting(UnseenSteps):
    """Steps of 10 ms, whose outputs are there after so many milliseconds, question by question."""

    def __init__(self, session, waits, beside, again=0.0):
        super().__init__(session, VirtualClock(), None, 1e6, SimpleNamespace())
        self._left = list(zip(waits, beside, strict=True))
        self._later = again
        self.left(None)

    def left(self, inputs):
        wait, beside = self._left.pop(0)
        self._waits.append(wait * 1e6)
        self._again.append(self._later * 1e6)
        self._beside.append(round(beside * 1e6))
        self._steps.append(10_000_000)
        return {}


SMALL, LARGE = np.ones(4096, np.float32), np.ones(1_000_000, np.float32)


@pytest.mark.parametrize(
    ("session", "waits", "again", "output", "refused"),
    [
        (Here(), [5.05] * 20, 0.0, SMALL, False),  # half a step, and a conversion
        (Here(), [5.2] * 20, 0.0, SMALL, True),
        (Here(), [13.0] * 20, 1.0, LARGE, False),  # four times what the second answer took
        (Here(), [13.2] * 20, 1.0, LARGE, True),
        (Here(), [25.0] * 20, 10.0, LARGE, False),  # but no more than 4 MB can take
        (Here(), [25.2] * 20, 10.0, LARGE, True),
        (Afar(), [10.9] * 20, 2.0, SMALL, False),
        (Afar(), [11.1] * 20, 2.0, SMALL, True),
        (Afar(), [17.0] * 20, 20.0, SMALL, False),
        (Afar(), [17.2] * 20, 20.0, SMALL, True),
        (Here(), [9.0] * 15 + [5.0] + [9.0] * 4, 0.0, SMALL, False),  # one good try acquits
        (Here(), [9.0] * 16 + [5.0] * 4, 0.0, SMALL, True),
    ],
)
def test_outputs_are_there_within_half_a_step_or_were_computed_when_asked_for(
    session, waits, again, output, refused
):
    unseen = Waiting(session, waits, [0.0] * 20, again)
    right = {"y": Sketch(output.shape, output)}
    with refusal("wrong_steps", refused):
        unseen.refuse_recomputed(right)


def test_of_what_questions_take_beside_steps_the_least_counts():
    with pytest.raises(CaseError):
        Waiting(Here(), [12.0] + [9.0] * 19, [5.0] + [0.0] * 19).refuse_recomputed({})


@pytest.mark.parametrize(("said_ns", "most"), [(LONG_NS, 5), (LONG_NS + 1, 1)])
def test_of_short_steps_any_of_five_is_looked_at(said_ns, most):
    session = Here()
    unseen = UnseenSteps(session, VirtualClock(), None, said_ns, SimpleNamespace())
    assert unseen._most == (1, most)


def test_what_steps_left_is_compared_by_shape_and_precision():
    with pytest.raises(CaseError, match="left none"):
        refuse_other(CASE, {}, {}, None)
    right, turned = sketch({"y": NOISE}), sketch({"y": NOISE.reshape(50, 4)})
    refuse_other(CASE, right, right, sketch({"y": OTHER}))
    with pytest.raises(CaseError, match="shape"):
        refuse_other(CASE, turned, right, sketch({"y": OTHER}))

    # Both come from one engine, so that a model's own sensitivity excuses nothing.
    case, right, other = replace(CASE, precision="bf16"), sketch({"y": NOISE}), sketch({"y": OTHER})
    refuse_other(case, sketch({"y": NOISE + 0.02 * OTHER}), right, other)
    with pytest.raises(CaseError):
        refuse_other(case, sketch({"y": NOISE + 0.1 * OTHER}), right, other)

    assert tells(sketch({"a": np.full(3, np.nan), "b": np.ones(3)}))


def test_a_short_request_is_stepped_with_inputs_of_its_own_and_asked_for_once_more():
    asked = []

    def outputs(inputs):
        draw = np.random.default_rng(inputs)
        return {"logits": draw.standard_normal((2, 64)).astype(np.float32)}

    session = SimpleNamespace(prepare=lambda case, seed: seed, outputs=outputs)
    unseen = SimpleNamespace(
        left=lambda inputs: asked.append(inputs) or sketch(outputs(inputs)),
        refuse_recomputed=lambda right: asked.append("recomputed"),
    )
    refuse_short(session, ANSWERED, 7, unseen)
    assert asked == [8, "recomputed"]
    unseen.left = lambda _: sketch({"logits": (1 + 1e-5) * outputs(8)["logits"]})
    refuse_short(session, ANSWERED, 7, unseen)
    unseen.left = lambda _: sketch({"logits": 1.1 * outputs(8)["logits"]})
    with pytest.raises(CaseError):  # measured by what another draw changes
        refuse_short(session, ANSWERED, 7, unseen)


# -- the self-check


class Answers:
    """A session that gives what is written down, question by question."""

    def __init__(self, *outputs):
        self._outputs = list(outputs)

    def prepare(self, case, seed=None):
        return None

    def outputs(self, inputs):
        return {"y": np.asarray(self._outputs.pop(0))}


def checked(*outputs, left=None):
    session = Answers(*outputs)
    return self_check(session, CASE, left=left)


@pytest.mark.parametrize(("change", "matters"), [(0.5, None), (1.5, True)])
def test_inputs_change_more_than_ten_times_what_chance_does(change, matters):
    assert checked([1.0], [1.1], [1.0 + change]).inputs_matter is matters


def test_what_outputs_tell_of_inputs_and_weights():
    assert checked([1.0], [1.1], [1.0, 1.0]).inputs_matter is True
    assert checked(*[[np.nan, 1.0]] * 3).inputs_matter is False
    assert checked(*[[np.nan, np.nan]] * 3).inputs_matter is None
    assert checked([1.0], [1.0], [2.0]).verdict == "ok"

    left = sketch({"y": np.array([[1.0, 2.0]])})
    session = Answers([1.0, 2.0], [1.0, 2.0], [3.0, 4.0])
    self_check(session, CASE, left=left)
    assert not session._outputs  # asked three times
    with pytest.raises(IndexError):
        checked([1.0, 2.0], [3.0, 4.0], left=left)

    glance = Glance("far", sketch({"y": np.ones(3)}))
    session = SimpleNamespace(prepare=lambda case, seed=0: seed, glance=lambda *_: glance)
    assert self_check(session, CASE).outputs_digest == "far"
    row = InputSpec("x", ("batch", 2), row=(1.0, 2.0))
    session = Answers([1.0], [1.0])
    found = self_check(session, replace(CASE, model=replace(CASE.model, inputs=(row,))))
    assert found.inputs_matter is None
    session = Unrepeatable([1.0], [2.0], [1.5], [1.0], [2.0], [1.5])
    assert self_check(session, CASE).inputs_matter is None


@pytest.mark.parametrize("seed", [0, 1, 0x5EED, 0x217])
def test_seeds_differ_from_the_jobs_and_from_each_other(seed):
    assert len({seed, right_seed(seed), other_seed(seed)}) == 3


class Unrepeatable(Answers):
    """One that promises the same draws, and draws others."""

    @contextmanager
    def same_draws(self):
        yield


@pytest.mark.parametrize(
    ("is_own", "parameters", "output", "telling"),
    [
        (False, 0, np.ones(2, int), True),
        (True, 5, np.ones(2), True),
        (True, 0, np.ones(2), False),
        (True, 5, np.ones(2, int), False),
    ],
)
def test_weights_of_an_owners_module_must_matter_only_to_numbers(
    is_own, parameters, output, telling
):
    case = SimpleNamespace(model=SimpleNamespace(is_user_model=is_own, parameters=parameters))
    first = SimpleNamespace(outputs={"y": output})
    assert _has_telling_weights(case, first) is telling


# -- tolerances


@pytest.mark.parametrize(
    ("precision", "most", "least"),
    [("fp32", 2e-4, 2e-4), ("fp16", 0.1, 0.02), ("bf16", 0.5, 0.03), ("int8", 0.5, 0.15)],
)
def test_what_a_precision_may_cost(precision, most, least):
    assert (TOLERANCES[precision].most, TOLERANCES[precision].least) == (most, least)
    right, other = pick({"y": NOISE}, 0), pick({"y": OTHER}, 0)
    apart = agree({"y": NOISE + OTHER - NOISE}, right, other, precision).error
    for share, ok in ((0.98, True), (1.05, False)):
        moved = NOISE + share * most / apart * (OTHER - NOISE)
        assert agree({"y": moved}, right, other, precision).ok is ok


def test_pairs_and_shapes_that_depend_on_inputs():
    right = (NOISE + 1j * OTHER)[:, :2]
    flat = np.ones((4, 2), np.float32)
    found = agree({"y": flat}, pick({"y": right}, 0), pick({"y": 2 * right}, 0), "fp32")
    assert not found.wrong  # two numbers of their own, and no pair
    assert not found.ok

    right, other = pick({"y": NOISE}, 0), pick({"y": OTHER[:2]}, 0)
    assert agree({"y": NOISE * (1 + 1e-4)}, right, other, "fp32").ok


# -- where the work ran


def test_shares_names_and_what_a_fallback_left():
    for share, reason in ((0.991, ""), (0.98, "bad_evidence")):
        evidence = {"devices": ["cuda:0"], "shares": {"cuda:0": share}}
        if not reason:
            proved(evidence, "cuda:0")
            continue
        with pytest.raises(CaseError) as caught:
            proved(evidence, "cuda:0")
        assert caught.value.reason == reason
    with refusal("no_proof"):
        proved({"devices": [" "]}, "cuda:0")

    evidence = {"devices": ["cpu:0"], "details": {"left_to_the_cpu": "3 of 5 nodes"}}
    with pytest.raises(CaseError, match="3 of 5 nodes"):
        proved(evidence, "cuda:0")


# -- peak rates


@pytest.mark.parametrize(
    ("device", "precision", "most"),
    [
        (Device("cpu", "c", count=8), "fp32", 4e12),
        (Device("cpu", "c", count=8), "bf16", 4e14),
        (Device("cpu", "c", count=0), "fp32", 0.5e12),
        (Device("wasm", "w", count=2), "fp32", 1e12),
        (Device("openvino", "o", count=2, unit="cpu"), "fp32", 1e12),
        (Device("openvino", "o", count=2, unit="gpu"), "fp32", 5e16),
        (Device("cuda", "g", count=99), "fp32", 5e16),
    ],
)
def test_what_no_such_device_reaches(device, precision, most):
    assert fastest(device, precision) == pytest.approx(most)
    case = replace(CASE, precision=precision)
    least_ns = (flops(case.model, case.shapes, case.mode) or 0) / most * 1e9
    refuse_implausible(case, device, 1.01 * least_ns)
    refuse_implausible(case, device, 0.0)  # no time: others refuse that
    with pytest.raises(CaseError):
        refuse_implausible(case, device, 0.99 * least_ns)


@pytest.mark.parametrize(("nbytes", "wanted"), [(32_000_000, True), (32_000_001, False)])
def test_a_look_at_an_eightfold_batch_fetches_256_megabytes_at_most(nbytes, wanted):
    watch = TimingWatch(CPU, VirtualClock())
    watch._last = TimingLook(2, 1e6, (1e6,), nbytes)
    assert watch.wants(replace(CASE, shapes=Shapes(16, 16)), 1e6) is wanted


# -- memory


@pytest.mark.parametrize(
    ("hardware", "columns", "removed"),
    [
        ("cuda", {"memory_peak_mb": 1.0}, set()),  # of the host, if the device has told nothing
        ("cuda", {"memory_peak_mb": 1.0, "device_memory_peak_mb": 20.0}, {"memory_peak_mb"}),
        ("cuda", {"device_memory_peak_mb": 20.0, "memory_peak_mb": 20.0}, set()),
        ("cpu", {"memory_peak_mb": 0.5}, {"memory_peak_mb"}),
    ],
)
def test_memory_holds_half_of_the_weights_if_they_lie_there(hardware, columns, removed):
    facts = KnownFacts(CASE, Device(hardware, "d"))
    assert set(remove_implausible(columns, facts)[1]) == removed


def test_columns_that_are_no_numbers_have_no_bounds():
    columns = {"warnings": ["slow"], "options": {"threads": 4}, "compiled": True}
    assert remove_implausible(columns, KnownFacts(CASE, CPU)) == (columns, {})


# -- opening, compiling and parts of a step


@pytest.mark.parametrize(
    ("columns", "opening_ms", "device", "removed"),
    [
        ({"build_ms": 60.0, "load_ms": 41.0}, 100.0, CPU, 0),  # a hundredth more than it took
        ({"build_ms": 60.0, "load_ms": 41.1}, 100.0, CPU, 2),
        ({"build_ms": 3.0, "load_ms": 2.0}, 100.0, CPU, 0),  # a twentieth of it
        ({"build_ms": 3.0, "load_ms": 1.9}, 100.0, CPU, 2),
        ({"build_ms": 3.0, "load_ms": 1.9}, 100.0, Device("cuda", "g"), 0),
        ({"build_ms": 4.9}, 100.0, CPU, 0),  # the other part may be the rest
        ({"build_ms": 1.0, "load_ms": 1.0}, 50.0, CPU, 0),  # short
        ({"build_ms": 0.0009}, 1.0, CPU, 1),
        ({"build_ms": 0.0011}, 1.0, CPU, 0),
    ],
)
def test_parts_of_opening_explain_a_twentieth_of_it_and_no_more_than_all(
    columns, opening_ms, device, removed
):
    facts = KnownFacts(CASE, device, opening_ns=round(opening_ms * 1e6))
    assert len(remove_implausible(columns, facts)[1]) == removed


@pytest.mark.parametrize(
    ("told", "took", "removed"), [(5.0, 100.0, 0), (4.9, 100.0, 1), (2.0, 50.0, 0), (2.0, 51.0, 1)]
)
def test_a_time_of_compiling_is_a_twentieth_of_what_it_took(told, took, removed):
    facts = KnownFacts(CASE, CPU, compiling_ns=round(took * 1e6))
    assert len(remove_implausible({"compile_ms": told}, facts)[1]) == removed


@pytest.mark.parametrize(("decode", "removed"), [(15.0, 0), (15.1, 2)])
def test_parts_of_a_step_take_three_times_the_slowest_and_a_millisecond_at_most(decode, removed):
    columns = {"prefill_ms": 4.0, "decode_ms": decode, "latency_p50_ms": 5.0, "latency_max_ms": 6.0}
    assert len(remove_implausible(columns, KnownFacts(CASE, CPU))[1]) == removed


@pytest.mark.parametrize(("now", "warnings"), [(1.6, 0), (1.61, 1)])
def test_later_steps_may_take_half_as_long_again_and_the_slack(now, warnings):
    assert len(warn_of_slower_steps(now * 1e6, 1e6, 0.1e6)) == warnings


# -- training steps


class Trained:
    """A session that shows its weights and predicts no step."""

    phases = ("step",)

    def __init__(self):
        self.weights = {"a": 0.0, "b": 0.0}

    def weight_values(self, most, draw):
        return {name: np.array([value]) for name, value in self.weights.items()}

    def preview_step(self, inputs, most, draw):
        return None


def training(**options):
    session = Trained()
    case = replace(CASE, mode=Mode.TRAINING, options=options)
    return TrainingSteps(session, case, VirtualClock()), session


def move(session):
    session.weights = {name: value + 1.0 for name, value in session.weights.items()}


def trained(steps):
    return Block(steps, Timing.EACH, {"step": [1] * steps}, losses=[1.0] * steps)


@pytest.mark.parametrize(("count", "idle"), [(10, []), (11, ["b"])])
def test_more_than_ten_steps_show_that_a_weight_is_idle(count, idle):
    steps, session = training()
    steps.note(trained(1))
    session.weights["a"] = 1.0
    steps.note(trained(count - 1))
    assert steps.idle(["a", "b"]) == idle


@pytest.mark.parametrize(
    ("count", "options", "frozen"), [(11, {}, False), (12, {}, True), (12, {"pure": True}, False)]
)
def test_a_weight_that_has_moved_in_none_of_the_last_ten_steps_is_frozen(count, options, frozen):
    steps, session = training(**options)
    steps.note(trained(1))
    for step in range(2, count + 1):
        session.weights = {"a": 1.0, "b": float(step)}
        steps.note(trained(1))
    with refusal("wrong_steps", frozen):
        steps._refuse_frozen()


@pytest.mark.parametrize(
    ("learning", "still", "frozen"), [(0, 0, False), (10, 0, False), (10, 1, True), (11, 1, False)]
)
def test_a_tenth_of_the_weights_that_stands_still_is_no_chance(learning, still, frozen):
    names = [str(number) for number in range(learning)]
    assert are_frozen(names, names[:still]) is frozen


@pytest.mark.parametrize(
    ("loss", "moved", "differs"),
    [
        (0.0, 3, False),
        (1e-12, 4, True),  # nothing is allowed if the first loss was zero
        (0.0, 2, True),  # half of the weights
    ],
)
def test_a_step_is_its_prediction_but_for_a_quarter_of_the_weights(loss, moved, differs):
    steps, _ = training()
    steps.note(replace(trained(1), losses=[0.0]))
    names = "abcd"
    before = {name: np.zeros(2) for name in names}
    foreseen = StepPreview(0.0, {name: np.ones(2) for name in names})
    after = {name: np.full(2, float(number < moved)) for number, name in enumerate(names)}
    assert bool(steps._differs(foreseen, loss, after, before, _limits("fp32", CPU))) is differs


@pytest.mark.parametrize(
    ("count", "losses", "known"), [(1, [1.0], True), (1, [], False), (3, [1.0] * 3, False)]
)
def test_a_prediction_is_of_one_step_with_a_loss(count, losses, known):
    steps, session = training()
    steps.note(trained(1))
    session.preview_step = lambda *_: StepPreview(1.0)
    block = replace(trained(count), losses=losses)
    asked = SimpleNamespace(sample_some=lambda *_: move(session) or block)
    assert steps._refuse_other_steps(asked, CPU, [], 1e6) is known


@pytest.mark.parametrize(("skipped", "explained"), [(2, False), (3, True)])
def test_a_scaler_explains_as_many_steps_as_it_has_skipped(skipped, explained):
    steps, session = training()
    steps._case = replace(CASE, precision="fp16")
    details = {"training": {"skipped_steps": skipped}}
    session.evidence = lambda: SimpleNamespace(details=details)
    assert steps._explained_by_overflow(3) is explained
    assert not steps._explained_by_overflow(1)  # none since then


# -- launches


def test_launches_are_compared_by_case_and_device_and_keep_their_warnings():
    repeats = Repeats()
    rows = [
        {"case_id": case, "device_fingerprint": device, "launch": 0, "outputs_digest": digest}
        for case, device, digest in [("a", "x", "1"), ("a", "y", "2"), ("b", "x", "3")]
    ]
    rows.append({**rows[0], "launch": 1, "outputs_digest": "4", "warnings": ["first"]})
    for row in rows:
        repeats.look(row)
    assert [len(row.get("warnings", ())) for row in rows] == [0, 0, 0, 2]
    assert rows[3]["warnings"][0] == "first"


# -- verdicts


def test_errors_are_held_against_the_tolerance():
    assert judged({**ANSWER, "error": 0.5, "errors": {"y": 0.5}}).word == OK
    assert judged({**ANSWER, "error": 0.5001, "errors": {"y": 0.5001}}).word == FAILED
    assert judged({**ANSWER, "telling": False}).why == NOT_TELLING
    assert judged({**ANSWER, "telling": False, "finite": False}).why == NOT_FINITE
    assert judged({**ANSWER, "error": 0.0, "errors": {"y": 0.0}}).reasons == {}
    missing = judged({**ANSWER, "wrong": "y is missing", "error": None})
    assert missing.columns == {"verification": FAILED, "verification_tolerance": 0.5}
    verdict = Verdict(FAILED, "", 0.3, 0.2, {"y": 0.3})
    assert undetermined(verdict, OwnRounding("rounding", {"y": 0.2})) is None
    assert undetermined(verdict, OwnRounding("rounding", {"y": 0.21})) is not None
    verdict = Verdict(FAILED, "", 0.4, 0.2, {"x": 0.2, "y": 0.3, "z": 0.4})
    found = undetermined(verdict, OwnRounding("rounding", {"y": 0.25, "z": 0.35}))
    assert "output z by 0.35" in found.why


# -- verification of a run


def test_what_is_not_asked_again():
    held, context = Verifications(), SimpleNamespace(settings=RunSettings(run_id="x"), runtimes={})
    case = replace(CASE, precision="bf16")
    first, second = (Planned(case, Device("cuda", "g", ordinal)) for ordinal in range(2))
    held.judge(first, {**ANSWER, "error": 0.9, "errors": {"y": 0.9}})
    anything = context
    assert held.known(anything, first) is not None
    assert held.known(anything, second) is None

    context = SimpleNamespace(settings=RunSettings(run_id="x", verify="off"), runtimes={})
    planned = Planned(replace(CASE, precision="bf16"), CPU)
    assert Verifications().known(context, planned) == Verdict(NOT_DONE, NOT_ASKED_FOR)
    context = SimpleNamespace(settings=RunSettings(run_id="x"), runtimes={})
    training = replace(CASE, precision="bf16", mode=Mode.TRAINING)
    verdict = Verifications().known(context, Planned(training, CPU))
    assert "losses" in verdict.why

    threaded = replace(CASE, options={"threads": 4})
    assert is_own(threaded)
    assert not is_own(replace(CASE, options={"compile": True}))
    assert reference_of(threaded).options == {}
    assert reference_of(replace(CASE, options={"optimizer": "sgd"})).options == {"optimizer": "sgd"}

    graph = SimpleNamespace(format=reference.FileFormat.ONNX)
    case = SimpleNamespace(model=SimpleNamespace(graph=graph), options={"opset": "converted"})
    assert otherwise(case, NoReferenceError("x", "operator")) is None  # it is converted already
    assert otherwise(CASE, NoReferenceError("x", "operator")) is None
    (spec,) = models("bert-tiny")
    file = SimpleNamespace(model=SimpleNamespace(graph=graph), options={}, spec=spec)
    assert otherwise(file, NoReferenceError("it would not fit", "memory")) is None


# -- the reference


def context_of(**changed):
    runtime = SimpleNamespace(supports=lambda case, device: SimpleNamespace(ok=True))
    settings = SimpleNamespace(verify="auto", timeout=600.0, threads=1, weights="random")
    plain = {
        "settings": settings,
        "budget": SimpleNamespace(left=lambda: None),
        "runtimes": {"pytorch": runtime},
        "estimate": lambda case: None,
        "free": lambda device: None,
        "cost": lambda planned: None,
    }
    return SimpleNamespace(**{**plain, **changed})


@pytest.mark.parametrize(
    ("verify", "timeout", "most"),
    [("auto", 600.0, 60.0), ("require", 600.0, 600.0), ("only", 600.0, 600.0), ("only", 9.0, 60.0)],
)
def test_what_a_reference_may_take(verify, timeout, most):
    settings = SimpleNamespace(verify=verify, timeout=timeout)
    assert reference.most_seconds(context_of(settings=settings)) == most


@pytest.mark.parametrize(("mode", "each"), [(Mode.INFERENCE, 2.0), (Mode.TRAINING, 6.0)])
def test_uncounted_operations_are_two_a_weight_and_token_and_six_in_training(mode, each):
    case = replace(CASE, mode=mode)
    wanted = 3 * each * case.model.parameters * 2 * 16 / 2e10
    assert reference.seconds(context_of(), case, 3) == pytest.approx(wanted)


@pytest.mark.parametrize(
    ("mode", "wide", "bytes_each"),
    [
        (Mode.INFERENCE, False, 4),
        (Mode.TRAINING, False, 16),
        (Mode.INFERENCE, True, 8),
        (Mode.TRAINING, True, 32),
    ],
)
def test_the_least_memory_of_a_reference(mode, wide, bytes_each, monkeypatch):
    monkeypatch.setattr(reference, "spill_to", lambda *_: None)
    case = replace(CASE, mode=mode)
    need = bytes_each * case.model.parameters
    reference.prepare(context_of(free=lambda _: need), case, 1, wide)
    with pytest.raises(NoReferenceError, match="is free"):
        reference.prepare(context_of(free=lambda _: need - 1), case, 1, wide)


def test_a_wide_reference_never_uses_the_disk(monkeypatch):
    monkeypatch.setattr(reference, "spill_to", lambda *_: "disk")
    context = context_of(free=lambda _: 1)
    assert reference.prepare(context, CASE, 1) == "disk"
    with pytest.raises(NoReferenceError):
        reference.prepare(context, CASE, 1, wide=True)

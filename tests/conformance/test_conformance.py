"""Every runtime answers the same questions. See suite.py for who is asked."""

from __future__ import annotations

import dataclasses
import gc
import inspect
import json
import os
import shutil
import subprocess
import sys
import weakref
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from suite import (
    BROWSER,
    COMPILED,
    COMPILED_CUDA,
    CUDA_SUBJECTS,
    EXAMPLE,
    SUBJECTS,
    Opener,
    Subject,
)

from accelbench.core.errors import CaseError, OutOfMemoryError
from accelbench.core.precision import PRECISIONS
from accelbench.core.profile import Profiling
from accelbench.core.protocols import (
    API_VERSION,
    DeviceMemory,
    Evidence,
    Importing,
    Job,
    Runtime,
    RuntimeInfo,
    Session,
    Support,
)
from accelbench.core.words import Mode, Timing
from accelbench.runtimes.browser.assets import engine_folder

ENGINES = {"torch", "transformers", "jax", "onnx", "onnxruntime", "openvino"}
DTYPES = {
    "fp32": ["float32"],
    "fp16": ["float16"],
    "bf16": ["bfloat16"],
    "amp-fp16": ["float32"],
    "amp-bf16": ["float32"],
}

#: Read the card and ask about everything, in a process where an import would show.
READ_CARD = """
import dataclasses, json, sys
from importlib import import_module
from accelbench.catalog.find import choose
from accelbench.core.case import Case, Shapes, Target
from accelbench.core.precision import PRECISIONS
from accelbench.core.protocols import Device
from accelbench.core.words import Mode
module, _, name = {card!r}.partition(":")
runtime = getattr(import_module(module), name)()
info = runtime.info
spec = choose([{model!r}], None, (), (), all_models=False)[0]
answers = []
for precision in (*PRECISIONS, "fp7"):
    for mode in Mode:
        target = Target(info.name, {hardware!r})
        case = Case(spec, target, precision, Shapes(1, spec.sequence, spec.image), mode=mode)
        support = runtime.supports(case, Device({hardware!r}, "a device"))
        answers.append([precision, mode.value, support.ok, support.reason, support.message])
runtime.clock()
loaded = sorted({{name.split(".")[0] for name in sys.modules}})
print(json.dumps([dataclasses.asdict(info), answers, loaded], default=list))
"""


def parameters(subjects: list[Subject], *marks: Any) -> list[Any]:
    return [
        pytest.param(subject, id=str(subject), marks=[*marks, *absent(subject)])
        for subject in subjects
    ]


def absent(subject: Subject) -> list[Any]:
    """A browser is fetched by npm, which is not everywhere."""
    if subject not in BROWSER or engine_folder() is not None or shutil.which("npm"):
        return []
    return [pytest.mark.skip(reason="npm is not here to fetch onnxruntime-web and a browser")]


EVERYONE = [*parameters(SUBJECTS), *parameters(CUDA_SUBJECTS, pytest.mark.cuda)]
CARDS = {(s.card, s.hardware): s for s in SUBJECTS}
COMPILING = [
    *parameters(COMPILED, pytest.mark.full),
    *parameters(COMPILED_CUDA, pytest.mark.cuda, pytest.mark.full),
]

#: Seeds are asked about with three openings, which take longest in a browser. Weights are the
#: artefact's, whatever opens it, so one model says as much for a platform as two; and WebGPU in
#: software compiles shaders for ten seconds at each opening.
SEEDED_AT_LENGTH = [s for s in BROWSER if s.model != "resnet-tiny" or s.hardware == "webgpu"]
SEEDED = [
    *parameters([s for s in SUBJECTS if s not in SEEDED_AT_LENGTH]),
    *parameters(SEEDED_AT_LENGTH, pytest.mark.full),
    *parameters(CUDA_SUBJECTS, pytest.mark.cuda),
]

#: A class's checks go subject by subject, so that they can share what was opened for one.
everyone = pytest.mark.parametrize("subject", EVERYONE, scope="class")
every_card = pytest.mark.parametrize(
    "subject", [pytest.param(s, id=str(s)) for s in CARDS.values()], scope="class"
)


@pytest.fixture(scope="class")
def read(subject: Subject) -> tuple[dict[str, Any], list[Any], set[str]]:
    code = READ_CARD.format(card=subject.card, model=subject.model, hardware=subject.hardware)
    # The example's package is not installed: it is found where it lies.
    path = os.pathsep.join(filter(None, [str(EXAMPLE), os.environ.get("PYTHONPATH")]))
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        env={**os.environ, "PYTHONPATH": path},
    )
    info, answers, loaded = json.loads(done.stdout)
    return info, answers, set(loaded)


@pytest.fixture(scope="class")
def opener(subject: Subject) -> Iterator[Opener]:
    one = Opener(subject)
    yield one
    one.close()


@every_card
class TestCard:
    """What is known without the engine."""

    def test_reading_and_asking_imports_no_engine(self, read: Any) -> None:
        assert not read[2] & ENGINES

    def test_the_card_is_filled_in(self, subject: Subject, read: Any) -> None:
        info: Mapping[str, Any] = read[0]
        assert info["name"]
        assert subject.hardware in info["hardware"]
        assert set(info["default_for"]) <= set(info["hardware"])
        assert set(info["precisions"]) <= set(PRECISIONS)
        assert subject.precision in info["precisions"]
        assert info["api_version"] == API_VERSION
        assert info["isolation"] in ("fork", "spawn", "remote")

    def test_every_no_has_a_reason(self, read: Any) -> None:
        info, answers, _ = read
        for precision, mode, ok, reason, message in answers:
            if not ok:
                assert reason, (precision, mode)
                assert message, (precision, mode)
            else:
                assert precision in info["precisions"]

    def test_everything_the_protocol_names_is_there(self, subject: Subject) -> None:
        runtime = subject.runtime()
        assert isinstance(runtime, Runtime)
        assert isinstance(runtime.info, RuntimeInfo)
        for name, method in inspect.getmembers(Runtime, inspect.isfunction):
            if name.startswith("_"):
                continue
            wanted = list(inspect.signature(method).parameters)[1:]
            offered = list(inspect.signature(getattr(runtime, name)).parameters)
            assert offered[: len(wanted)] == wanted, name

    def test_what_is_not_offered_is_refused(self, subject: Subject) -> None:
        runtime = subject.runtime()
        untrained = dataclasses.replace(subject.case().model, training=None)
        for case in (
            dataclasses.replace(subject.case(), precision="int8"),
            dataclasses.replace(subject.case(), mode=Mode.TRAINING, model=untrained),
            dataclasses.replace(subject.case(), options={"no-such-option": 1}),
        ):
            support = runtime.supports(case, subject.device())
            assert isinstance(support, Support)
            if subject.card.endswith("PytorchRuntime"):
                assert not support.ok
                assert support.reason
                assert support.advice


class TestSession:
    """A model opened, stepped and closed.

    Checks of a fresh session come first, then those that share one: it is opened once. Evidence
    is asked for last: it may cost a session its state, which is then built again.
    """

    @everyone
    def test_eager_work_counts_no_compilation(self, subject: Subject, opener: Opener) -> None:
        with opener.fresh() as (session, case):
            inputs = session.prepare(case)
            assert (session.compile(inputs) is not None) == subject.ahead
            block = session.sample(inputs, 2, Timing.EACH)
            assert (block.compilations, block.compile_ns) == (0, 0)

    @pytest.mark.parametrize("subject", SEEDED, scope="class")
    def test_the_same_seed_gives_the_same_outputs_and_another_others(self, opener: Opener) -> None:
        found = []
        for seed in (7, 7, 8):
            with opener.fresh(seed) as (session, case):
                found.append((session.weights_digest, session.outputs(session.prepare(case))))
        (first_digest, first), (again_digest, again), (other_digest, other) = found
        assert first_digest == again_digest != other_digest
        assert first.keys() == again.keys() == other.keys()
        assert all(np.array_equal(first[name], again[name]) for name in first)
        assert not all(np.array_equal(first[name], other[name]) for name in first)

    @everyone
    @pytest.mark.parametrize("batch", [1, 3])
    def test_one_session_takes_several_batches(
        self, subject: Subject, opener: Opener, batch: int
    ) -> None:
        with opener.shared(batch=1) as (session, case):
            shapes = dataclasses.replace(case.shapes, batch=batch)
            other = dataclasses.replace(case, shapes=shapes)
            if subject.fixed_batch and batch != 1:
                with pytest.raises(CaseError, match="a batch of 1"):
                    session.prepare(other)
                return
            inputs = session.prepare(other)
            session.sample(inputs, 1, Timing.EACH)
            for name, array in session.outputs(inputs).items():
                assert np.shape(array)[subject.batch_axis.get(name, 0)] == batch, name

    @everyone
    def test_everything_the_protocol_names_is_there(self, opener: Opener) -> None:
        names = [n for n in vars(Session) if not n.startswith("_")]
        with opener.shared() as (session, _):
            assert not [name for name in names if not hasattr(session, name)]
            assert session.phases
            assert session.weights_digest

    @everyone
    def test_opening_tells_what_building_and_loading_took(
        self, subject: Subject, opener: Opener
    ) -> None:
        with opener.shared() as (session, _):
            # An artefact was built before, by another process.
            opens = isinstance(subject.runtime(), Importing)
            assert {"load"} | ({"build"} if not opens else set()) <= set(session.timings)
            assert all(isinstance(ns, int) and ns > 0 for ns in session.timings.values())

    @everyone
    def test_blocks_have_as_many_entries_as_they_should(self, opener: Opener) -> None:
        with opener.shared() as (session, case):
            inputs = session.prepare(case)
            timings = [Timing.EACH, Timing.WHOLE]
            timings += [Timing.PHASES] if len(session.phases) > 1 else []
            timings += [Timing.DEVICE] if session.device_timed else []
            for timing in timings:
                for n in (1, 4):
                    block = session.sample(inputs, n, timing)
                    assert (block.steps, block.timing) == (n, timing)
                    expected = set(session.phases) if timing is Timing.PHASES else {"step"}
                    assert set(block.phase_ns) == expected
                    for times in block.phase_ns.values():
                        assert len(times) == (1 if timing is Timing.WHOLE else n)
                        assert all(isinstance(ns, int) and ns > 0 for ns in times)

    @everyone
    def test_outputs_are_finite_and_depend_on_the_inputs(
        self, subject: Subject, opener: Opener
    ) -> None:
        with opener.shared() as (session, case):
            inputs = session.prepare(case)
            outputs = session.outputs(inputs)
            changed = session.outputs(subject.changed(inputs))
        assert outputs
        assert all(isinstance(array, np.ndarray) for array in outputs.values())
        assert all(np.isfinite(array).all() for array in outputs.values())
        assert any(not np.array_equal(outputs[name], changed[name]) for name in outputs)

    @everyone
    def test_a_profile_adds_up_and_leaves_the_session_as_it_was(
        self, subject: Subject, opener: Opener, tmp_path: Path
    ) -> None:
        with opener.shared() as (session, case):
            if not isinstance(session, Profiling):
                pytest.skip("this runtime has no profiler")
            inputs = session.prepare(case)
            session.sample(inputs, 1, Timing.EACH)
            before = session.outputs(inputs)
            found = session.profile(inputs, 2, tmp_path)
            after = session.outputs(inputs)
            block = session.sample(inputs, 1, Timing.EACH)
        assert found.steps == 2
        assert found.profiler
        assert found.operators
        assert all(one.kind and one.where and one.total_ms > 0 for one in found.operators)
        # Of one thread no more than the whole; XLA's operations may run side by side.
        at_once = os.cpu_count() or 1 if subject.card.endswith("JaxRuntime") else 1
        assert 0 < found.explained <= at_once
        assert [p.name for p in tmp_path.glob("trace.*")] == [found.trace][: bool(found.trace)]
        assert (block.compilations, block.compile_ns) == (0, 0)
        if subject.mode is not Mode.TRAINING:  # where steps change the weights
            assert all(np.array_equal(before[name], after[name]) for name in before)

    @everyone
    def test_memory_counters_are_counters_or_absent(self, subject: Subject, opener: Opener) -> None:
        with opener.shared() as (session, case):
            session.reset_memory()
            session.sample(session.prepare(case), 1, Timing.EACH)
            memory = session.device_memory()
        # Of an NPU nobody tells; what emulates one counts in the host's memory.
        # A browser's are counted with its processes.
        places = {"cpu", "qnn", "wasm", "webnn", "webgpu"}
        hosted = places & {subject.hardware, subject.device().unit}
        assert (memory is None) == bool(hosted)
        if isinstance(memory, DeviceMemory):
            assert memory.source
            assert memory.current_bytes > 0
            assert memory.peak_bytes is None or memory.peak_bytes >= memory.current_bytes

    @everyone
    def test_evidence_names_the_device_that_was_asked_for(
        self, subject: Subject, opener: Opener
    ) -> None:
        with opener.shared() as (session, case):
            inputs = session.prepare(case)
            session.outputs(inputs)
            evidence = session.evidence()
        assert isinstance(evidence, Evidence)
        assert evidence.requested == str(subject.device())
        assert evidence.devices == (str(subject.device()),)
        assert not evidence.fell_back
        assert evidence.engine
        json.dumps(dict(evidence.details), allow_nan=False)  # it must reach the journal
        if subject.dtypes is not None:
            # Training keeps whole weights, whatever it calculates in.
            trains = subject.mode is Mode.TRAINING
            expected = DTYPES["fp32" if trains else subject.precision]
            assert subject.dtypes(evidence.details) == expected

    @everyone
    def test_closing_frees_the_model_and_may_be_done_twice(
        self, subject: Subject, opener: Opener
    ) -> None:
        opener.close()
        case = subject.case()
        session = subject.runtime().open(subject.job(case))
        session.sample(session.prepare(case), 1, Timing.EACH)
        session.outputs(session.prepare(case))
        gone = weakref.ref(subject.freed(session)) if subject.freed is not None else None
        session.close()
        session.close()
        gc.collect()
        assert gone is None or gone() is None


SMALLEST = [p for p in EVERYONE if p.values[0].too_large and p.values[0].precision == "fp32"]


@pytest.mark.parametrize("subject", SMALLEST)
class TestMemory:
    """Too much is a word of its own, and nothing is taken for it."""

    def test_inputs_that_no_machine_holds_are_out_of_memory(self, subject: Subject) -> None:
        assert subject.too_large is not None
        with subject.opened() as (session, case):
            shapes = dataclasses.replace(case.shapes, batch=subject.too_large)
            with pytest.raises(OutOfMemoryError) as caught:
                session.prepare(dataclasses.replace(case, shapes=shapes))
        assert caught.value.status == "out_of_memory"

    def test_a_step_that_the_allocator_refuses_is_out_of_memory(self, subject: Subject) -> None:
        with subject.opened() as (session, case):
            # A view: a row of a few bytes that claims to be a batch of 10**12. Nothing holds it,
            # and the first operation that makes something of its size is refused at once.
            inputs = {
                name: tensor[:1].expand(10**12, *tensor.shape[1:])
                for name, tensor in session.prepare(case).items()
            }
            with pytest.raises(OutOfMemoryError):
                session.sample(inputs, 1, Timing.EACH)
            # And the session is still good for what fits.
            session.sample(session.prepare(case), 1, Timing.EACH)


@pytest.mark.parametrize("subject", COMPILING)
class TestCompiled:
    """An engine that compiles says when, and for how long."""

    def test_compilations_are_counted_where_they_happen(self, subject: Subject) -> None:
        with subject.opened() as (session, case):
            inputs = session.prepare(case)
            ahead = session.compile(inputs)
            first = session.sample(inputs, 1, Timing.EACH)
            assert (ahead is not None) != (first.compilations > 0)
            if first.compilations:
                assert 0 < first.compile_ns < sum(first.phase_ns["step"])
            second = session.sample(inputs, 3, Timing.EACH)
            assert (second.compilations, second.compile_ns) == (0, 0)
            # Another shape is other code: it must not pass for a steady state.
            shapes = dataclasses.replace(case.shapes, batch=case.shapes.batch + 1)
            inputs = session.prepare(dataclasses.replace(case, shapes=shapes))
            ahead = session.compile(inputs)
            third = session.sample(inputs, 1, Timing.EACH)
            assert (ahead is not None) != (third.compilations > 0)


def test_a_case_that_asks_for_an_absent_card_is_an_error_of_the_case() -> None:
    """Without the device: what an engine that lacks it must say."""
    subject = CUDA_SUBJECTS[0]
    case = subject.case()
    from accelbench.core.protocols import Device

    with pytest.raises(CaseError) as caught:
        subject.runtime().open(Job(case, Device("cuda", "a card", ordinal=63)))
    assert caught.value.reason == "engine_sees_no_device"

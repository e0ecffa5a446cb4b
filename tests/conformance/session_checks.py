"""What every session must do: a model opened, stepped and closed."""

from __future__ import annotations

import contextlib
import dataclasses
import gc
import json
import os
import weakref
from collections.abc import Iterator

import numpy as np
import pytest
from conformance_subject import Subject
from unproven import reports_no_types

from accelbench.core.abilities import LastStepOutputs, RemoteOutputs, Reusable, TrainingProbe
from accelbench.core.case import Case
from accelbench.core.errors import CaseError
from accelbench.core.identity import to_plain
from accelbench.core.profile import Profiling
from accelbench.core.protocols import DeviceMemory, Evidence, Importing, Session
from accelbench.core.vocabulary import Mode, PrecisionVerdict, Timing
from accelbench.engines.scripted import ScriptedSession
from accelbench.engines.shared.sketches import MOST_VALUES, outputs_digest, sketch
from accelbench.measure.block_validation import refuse_bad_block
from accelbench.models.short_steps import shorten_steps
from accelbench.run.verify.precision_proof import prove_precision
from accelbench.run.verify.timed_steps import refuse_other, right_of
from accelbench.run.verify.training_steps import other_moves
from accelbench.run.verify.verdicts import NOT_DONE, Verdict

DTYPES = {
    "fp32": ["float32"],
    "fp16": ["float16"],
    "bf16": ["bfloat16"],
    "amp-fp16": ["float32"],
    "amp-bf16": ["float32"],
    "int8": ["float32", "int8"],  # embeddings and norms stay whole
}


class Opener:
    """Opens the sessions of one subject, one at a time.

    Most checks leave a session as they found it, and opening one can take seconds: they share
    one. It ends before another is opened, so that memory is needed for one alone.
    """

    def __init__(self, subject: Subject) -> None:
        # Engines leave millions of objects. To search them all took a second each time that a
        # session was closed, half of the time of these tests: what is there now is passed over.
        gc.collect()
        gc.freeze()
        self._subject = subject
        self._runtime = subject.runtime()
        self._session: Session | None = None
        self._case: Case | None = None  # of the session that is shared, as long as it is open

    @contextlib.contextmanager
    def shared(self) -> Iterator[tuple[Session, Case]]:
        """The session that is open, which stays open for the next check."""
        if self._session is None or self._case is None:
            self._open()
        assert self._session is not None
        assert self._case is not None
        try:
            yield self._session, self._case
        except pytest.skip.Exception:
            raise
        except BaseException:
            self.close()  # whatever is wrong with it, the next check gets another
            raise

    @contextlib.contextmanager
    def fresh(self, seed: int = 0) -> Iterator[tuple[Session, Case]]:
        """A session that no check has used before; those that share one go on with it."""
        self._leave()
        self._open(seed)
        with self.shared() as opened:
            yield opened
        if seed:  # they are about the ordinary weights
            self._leave()

    def given_up(self) -> tuple[Session, Case]:
        """The session that is open, which the caller closes."""
        with self.shared() as opened:
            self._session = self._case = None
        return opened

    def _open(self, seed: int = 0) -> None:
        case = self._subject.case()
        self._session = self._runtime.open(self._subject.job(case, seed))
        self._case = case

    def _leave(self) -> None:
        """End the session; a browser stays for the next, as it does between the cases of a run."""
        self._case = None
        if isinstance(self._session, Reusable):
            with contextlib.suppress(CaseError):
                self._session.leave()
                return
        self.close()

    def close(self) -> None:
        """End whatever is open."""
        session, self._session, self._case = self._session, None, None
        if session is not None:
            session.close()
            del session
            gc.collect()


class SessionChecks:
    """A model opened, stepped and closed.

    The first check is of a fresh session, with which those that share one go on: opening one takes
    longer than any check. Evidence is asked for last: it may cost a session its state, which is
    then built again. The last check closes the session that all have used.
    """

    def test_eager_work_counts_no_compilation(self, subject, opener):
        with opener.fresh() as (session, case):
            inputs = session.prepare(case)
            assert (session.compile(inputs) is not None) == subject.ahead
            block = session.sample(inputs, 2, Timing.EACH)
            assert (block.compilations, block.compile_ns) == (0, 0)

    def test_the_same_seed_gives_the_same_outputs_and_another_others(self, subject, opener):
        found = []
        trained = subject.mode is Mode.TRAINING  # whose steps have changed the weights
        first = opener.fresh() if trained else opener.shared()
        for opened in (first, opener.fresh(seed=8), opener.fresh()):
            with opened as (session, case):
                found.append((session.weights_digest, session.outputs(session.prepare(case))))
        (one_digest, one), (other_digest, other), (again_digest, again) = found
        assert one_digest == again_digest
        # A file's weights are its own: a seed draws what it is fed with alone.
        assert (other_digest == one_digest) is case.model.is_user_model
        assert one.keys() == again.keys() == other.keys()
        assert all(np.array_equal(one[name], again[name]) for name in one)
        assert not all(np.array_equal(one[name], other[name]) for name in one)

    def test_one_session_takes_several_batches(self, subject, opener):
        # To compile a training for another batch takes seconds: one other batch is asked of it.
        compiles = subject.ahead and subject.mode is Mode.TRAINING
        for batch in (3,) if compiles else (1, 3):
            with opener.shared() as (session, case):
                own = case.shapes.batch
                shapes = dataclasses.replace(case.shapes, batch=batch)
                other = dataclasses.replace(case, shapes=shapes)
                if subject.fixed_batch:
                    with pytest.raises(CaseError, match=f"a batch of {own}"):
                        session.prepare(other)
                    other, batch = case, own  # the one that it has been opened for
                inputs = session.prepare(other)
                session.sample(inputs, 1, Timing.EACH)
                for name, array in session.outputs(inputs).items():
                    assert np.shape(array)[subject.batch_axis.get(name, 0)] == batch, name

    def test_everything_the_protocol_names_is_there(self, opener):
        names = [n for n in vars(Session) if not n.startswith("_")]
        with opener.shared() as (session, _):
            assert not [name for name in names if not hasattr(session, name)]
            assert session.phases
            assert session.weights_digest

    def test_opening_tells_what_building_and_loading_took(self, subject, opener):
        with opener.shared() as (session, _):
            # An artefact was built before, by another process.
            opens = isinstance(subject.runtime(), Importing)
            assert {"load"} | ({"build"} if not opens else set()) <= set(session.timings)
            assert all(isinstance(ns, int) and ns > 0 for ns in session.timings.values())

    def test_blocks_have_as_many_entries_as_they_should(self, opener):
        with opener.shared() as (session, case):
            inputs = session.prepare(case)
            timings = [Timing.EACH, Timing.WHOLE]
            timings += [Timing.PHASES] if len(session.phases) > 1 else []
            timings += [Timing.DEVICE] if session.device_timed else []
            for timing in timings:
                for n in (1, 2):
                    block = session.sample(inputs, n, timing)
                    assert (block.steps, block.timing) == (n, timing)
                    expected = set(session.phases) if timing is Timing.PHASES else {"step"}
                    assert set(block.phase_ns) == expected
                    refuse_bad_block(block, n, timing, session.phases)

    def test_a_glance_is_of_the_outputs(self, opener):
        with opener.shared() as (session, case):
            inputs = session.prepare(case)
            if not isinstance(session, RemoteOutputs):
                assert not hasattr(session, "glance")
                return
            found, outputs = session.glance(inputs, 100), session.outputs(inputs)
        assert found.digest == outputs_digest(outputs)
        assert found.nbytes == sum(np.asarray(one).nbytes for one in outputs.values())
        for name, one in sketch(outputs, 100).items():
            assert found.outputs[name].shape == one.shape
            assert np.array_equal(found.outputs[name].values, one.values)

    @pytest.mark.parametrize("timing", [Timing.EACH, Timing.WHOLE])
    def test_what_timed_steps_leave_are_the_outputs(self, opener, timing):
        with opener.shared() as (session, case):
            if not isinstance(session, LastStepOutputs):
                assert isinstance(session, ScriptedSession)  # which computes nothing
                return
            short = shorten_steps(case)
            other = right_of(short, session.outputs(session.prepare(short, 3)))
            inputs = session.prepare(short)
            session.sample(inputs, 2, timing)
            left = session.stepped(MOST_VALUES)
            if case.mode is Mode.TRAINING:
                assert left == {}
                return
            right = right_of(short, session.outputs(inputs))
            assert session.stepped(MOST_VALUES) == {}  # given up where something else is asked
            refuse_other(short, left, right, other)
            with pytest.raises(CaseError, match="the steps that were timed"):
                refuse_other(short, left, other, right)

    def test_a_previewed_training_step_is_the_step_that_follows(self, opener):
        with opener.shared() as (session, case):
            if case.mode is not Mode.TRAINING or not isinstance(session, TrainingProbe):
                return
            inputs = session.prepare(case)
            session.sample(inputs, 1, Timing.EACH)
            foreseen = session.preview_step(inputs, 16, 1)
            before = session.weight_values(16, 1)
            (loss,) = session.sample(inputs, 1, Timing.EACH).losses
            after = session.weight_values(16, 1)
        assert foreseen.loss == pytest.approx(loss, rel=1e-5)
        should, other = other_moves(before, after, foreseen.weights or {})
        assert should
        assert not other

    def test_outputs_are_finite_and_depend_on_the_inputs(self, subject, opener):
        with opener.shared() as (session, case):
            inputs = session.prepare(case)
            outputs = session.outputs(inputs)
            changed = session.outputs(subject.changed(inputs))
        assert outputs
        assert all(isinstance(array, np.ndarray) for array in outputs.values())
        assert all(np.isfinite(array).all() for array in outputs.values())
        assert any(not np.array_equal(outputs[name], changed[name]) for name in outputs)

    def test_a_profile_adds_up_and_leaves_the_session_as_it_was(self, subject, opener, tmp_path):
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
        assert 0 < found.explained_share <= at_once
        assert [p.name for p in tmp_path.glob("trace.*")] == [found.trace][: bool(found.trace)]
        assert (block.compilations, block.compile_ns) == (0, 0)
        if subject.mode is not Mode.TRAINING:  # where steps change the weights
            assert all(np.array_equal(before[name], after[name]) for name in before)

    def test_memory_counters_are_counters_or_absent(self, subject, opener):
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

    def test_evidence_names_the_device_that_was_asked_for(self, subject, opener):
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

    def test_evidence_proves_the_precision(self, subject, opener):
        """Of itself: what outputs prove is no part of it."""
        with opener.shared() as (session, case):
            inputs = session.prepare(case)
            session.sample(inputs, 1, Timing.EACH)
            session.inspect(inputs)
            report = to_plain(session.evidence())
        found = prove_precision(case, report, Verdict(NOT_DONE, "nothing is compared"))
        assert (found.word is PrecisionVerdict.PROVEN) != reports_no_types(subject)

    def test_closing_frees_the_model_and_may_be_done_twice(self, subject, opener):
        session, case = opener.given_up()
        session.sample(session.prepare(case), 1, Timing.EACH)
        session.outputs(session.prepare(case))
        gone = weakref.ref(subject.freed(session)) if subject.freed is not None else None
        session.close()
        session.close()
        gc.collect()
        assert gone is None or gone() is None

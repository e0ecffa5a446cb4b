"""Every runtime answers the same questions. See suite.py for who is asked.

Browsers are asked in a file of their own: they take as long as all others together.
"""

import dataclasses

import pytest
from card_checks import CardChecks, read  # noqa: F401 - a fixture
from session_checks import SessionChecks
from suite import BROWSER, COMPILED, COMPILED_CUDA, CUDA_SUBJECTS, SUBJECTS, cards, parameters
from unproven import NOT_ASKED, WITHOUT_TYPES

from accelbench.core.devices import cards as registered
from accelbench.core.errors import CaseError, OutOfMemoryError
from accelbench.core.protocols import Job
from accelbench.core.vocabulary import Timing

EVERYONE = [*parameters(SUBJECTS), *parameters(CUDA_SUBJECTS, pytest.mark.cuda)]
COMPILING = [
    *parameters(COMPILED, pytest.mark.full),
    *parameters(COMPILED_CUDA, pytest.mark.cuda, pytest.mark.full),
]


@pytest.mark.parametrize("subject", cards(SUBJECTS), scope="class")
class TestCard(CardChecks):
    """What is known without the engine."""


@pytest.mark.parametrize("subject", EVERYONE, scope="class")
class TestSession(SessionChecks):
    """A model opened, stepped and closed."""


#: One model of each kind of step: the words of memory are the allocator's, whatever it is asked by.
SMALLEST = [
    p
    for p in EVERYONE
    if p.values[0].too_large
    and p.values[0].precision == "fp32"
    and (p.values[0].model == "bert-tiny" or p.values[0].new_tokens)
    and p.values[0].model != "rag-tiny"
]


@pytest.mark.parametrize("subject", SMALLEST, scope="class")
class TestMemory:
    """Too much is a word of its own, and nothing is taken for it."""

    def test_inputs_that_no_machine_holds_are_out_of_memory(self, subject, opener):
        assert subject.too_large is not None
        with opener.shared() as (session, case):
            shapes = dataclasses.replace(case.shapes, batch=subject.too_large)
            with pytest.raises(OutOfMemoryError) as caught:
                session.prepare(dataclasses.replace(case, shapes=shapes))
        assert caught.value.status == "out_of_memory"

    def test_a_step_that_the_allocator_refuses_is_out_of_memory(self, subject, opener):
        with opener.shared() as (session, case):
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

    def test_compilations_are_counted_where_they_happen(self, subject):
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


def test_every_precision_on_a_card_is_proven_or_named_as_unproven():
    offered = {
        (name, precision)
        for name, card in registered().items()
        for precision in card.precisions
        if name not in WITHOUT_TYPES
    }
    asked = {(one.runtime().info.name, one.precision) for one in (*SUBJECTS, *BROWSER)}
    assert offered - asked == set(NOT_ASKED)


def test_a_case_that_asks_for_an_absent_card_is_an_error_of_the_case():
    """Without the device: what an engine that lacks it must say."""
    subject = CUDA_SUBJECTS[0]
    case = subject.case()
    from accelbench.core.protocols import Device

    with pytest.raises(CaseError) as caught:
        subject.runtime().open(Job(case, Device("cuda", "a card", ordinal=63)))
    assert caught.value.reason == "engine_sees_no_device"

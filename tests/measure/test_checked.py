"""What stands before a session: strikes are forgiven, lies are not."""

import pytest

from accelbench.core.errors import CaseError
from accelbench.core.protocols import Block
from accelbench.core.vocabulary import Timing
from accelbench.engines.scripted import VirtualClock
from accelbench.measure.block_validation import refuse_bad_block
from accelbench.measure.validated_session import LOCAL, REMOTE, CheckedSession, TimeBudget, can_fit

MS = 1_000_000


class Struck:
    """Steps of a millisecond; what else passes between question and answer is handed in."""

    phases, device_timed = ("step",), False

    def __init__(self, beside, said=1.0):
        self.clock = VirtualClock(40.0)
        self._beside, self._said = beside, said
        self.asked = []

    def prepare(self, case, seed=None):
        return None

    def sample(self, inputs, n, timing):
        self.clock.advance(n * MS + self._beside(len(self.asked)))
        self.asked.append(n)
        each = round(self._said * MS)
        return Block(n, timing, {"step": [each * n] if timing is Timing.WHOLE else [each] * n})


def checked(session):
    found = CheckedSession(session, session.clock, session.clock).session
    found.prepare(None)
    found.sample(None, 1, Timing.EACH)  # brings the inputs; what it takes beside is not judged
    return found


def test_a_process_that_was_stopped_once_is_asked_again_and_believed():
    session = Struck(lambda number: 500 * MS if number == 2 else 0)
    found = checked(session)
    for _ in range(3):
        found.sample(None, 10, Timing.EACH)
    assert len(session.asked) == 1 + 3 + 6
    assert session.asked[3] >= 10  # a block like the one that was doubted


@pytest.mark.parametrize(("of", "lies"), [(2, 1), (3, 2), (4, 3)])
def test_who_explains_some_blocks_alone_is_refused(of, lies):
    """Honest blocks between do not make up for the others."""
    session = Struck(lambda _: 0)
    honest = session.sample

    def some(inputs, n, timing):
        block = honest(inputs, n, timing)
        lie = len(session.asked) % of < lies and len(session.asked) > 1
        each = [ns // 3 if lie else ns for ns in block.phase_ns["step"]]
        return Block(n, timing, {"step": each})

    session.sample = some
    found = checked(session)

    def measured():
        for _ in range(8):
            found.sample(None, 10, Timing.EACH)

    with pytest.raises(CaseError, match="the rest is in no step"):
        measured()


def test_steps_that_looked_long_once_are_asked_again_for_long_enough():
    """A busy machine made ten steps take a tenth of a second; twenty-five are no quarter of one.

    In so short a block the way to a page, 30 ms beside other work, is most of the time.
    """

    class Page(Struck):
        host_memory = None

        def cpu_seconds(self):
            return 0.0

        def sample(self, inputs, n, timing):
            busy = 10 if len(self.asked) == 1 else 1
            self.clock.advance(n * (busy - 1) * MS)
            super().sample(inputs, n, timing)
            return Block(n, timing, {"step": [busy * MS] * n})

    session = Page(lambda number: 200 * MS if number == 1 else 30 * MS)
    found = checked(session)
    found.sample(None, 10, Timing.EACH)
    assert session.asked[2] < 30
    assert all(asked >= 250 for asked in session.asked[3:])


def test_doubts_that_are_explained_are_dropped():
    session = Struck(lambda number: 5000 * MS if number == 0 else 0)
    found = checked(session)
    found.sample(None, 10, Timing.EACH)
    assert len(session.asked) == 2

    session = Struck(lambda _: 0, said=0.1)
    found = CheckedSession(session, session.clock, session.clock)
    for _ in range(3):
        found.sample(None, 10, Timing.DEVICE)
    assert session.asked == [10] * 3
    assert found.budget == TimeBudget()

    # A training step that was a second look has a loss like any other.
    noted = []
    session = Struck(lambda number: 500 * MS if number == 1 else 0)
    raw = session
    found = CheckedSession(raw, session.clock, session.clock, noted.append).session
    found.prepare(None)
    for _ in range(2):
        found.sample(None, 10, Timing.EACH)
    assert [block.steps for block in noted] == session.asked


@pytest.mark.parametrize("timing", [Timing.EACH, Timing.WHOLE])
def test_who_never_explains_the_time_is_refused(timing):
    found = checked(Struck(lambda _: 0, said=0.8))
    with pytest.raises(CaseError, match="the rest is in no step") as caught:
        found.sample(None, 10, timing)
    assert caught.value.reason == "wrong_clock"


def test_what_may_be_left_unexplained():
    session = Struck(lambda _: MS // 20)
    raw = session
    found = CheckedSession(raw, session.clock, session.clock)
    found.prepare(None)
    assert found.budget.unexplained_share is None
    for _ in range(3):
        found.sample(None, 1, Timing.EACH)
    assert found.budget.unexplained_share == pytest.approx(1 - 1 / 1.05)

    session = Struck(lambda _: 0, said=0.1)
    found = CheckedSession(session, session.clock, None)
    for _ in range(10):
        found.sample(None, 10, Timing.EACH)
    assert found.budget.unexplained_share is None

    found = TimeBudget().add_request(100 * MS, 75 * MS)
    assert found.is_doubtful(LOCAL)
    assert not found.is_doubtful(REMOTE)
    block = Block(2, Timing.EACH, {"step": [0, 5000]})
    refuse_bad_block(block, 2, Timing.EACH, ("step",), tick_ns=5000.0)
    with pytest.raises(CaseError, match="took 0 ns"):
        refuse_bad_block(block, 2, Timing.EACH, ("step",), tick_ns=40.0)

    assert TimeBudget(1000 * MS, 400 * MS, 1).is_mostly_unexplained(LOCAL)
    assert not TimeBudget(1000 * MS, 600 * MS, 1).is_mostly_unexplained(LOCAL)
    far = TimeBudget(1000 * MS, 300 * MS, 50)  # the ways there and back
    assert not far.is_mostly_unexplained(REMOTE)
    assert far.is_mostly_unexplained(LOCAL)


@pytest.mark.parametrize(
    ("said", "wall", "samples", "tick", "fit"),
    [
        (1000, 1000, 1, 0.0, True),
        (1002, 1000, 1, 0.0, False),
        (1_000_900, 1_000_000, 1, 0.0, True),  # a thousandth: two clocks
        (1_040_000, 1_000_000, 9, 5000.0, True),  # a page's clock rounds each of nine
        (1_060_000, 1_000_000, 9, 5000.0, False),
    ],
)
def test_samples_fit_into_the_time_of_their_question(said, wall, samples, tick, fit):
    assert can_fit(said, wall, samples, tick) is fit

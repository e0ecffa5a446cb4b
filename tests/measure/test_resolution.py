from hypothesis import given
from hypothesis import strategies as st

from accelbench.core.vocabulary import Timing
from accelbench.measure.summary import Resolution, choose_timing


def test_steps_and_blocks_by_the_clock():
    assert choose_timing(30_000, tick_ns=30) == Resolution(Timing.EACH, 1)
    assert choose_timing(29_999, tick_ns=30).timing is Timing.WHOLE
    # A reading of 30 ns wants 300 µs: 300 steps of 1 µs.
    assert choose_timing(1000, tick_ns=30) == Resolution(Timing.WHOLE, 300)
    assert choose_timing(1000, tick_ns=1.9, reading_ns=50) == Resolution(Timing.WHOLE, 500)
    # Browsers round to 100 µs: a block must last 100 ms.
    assert choose_timing(2_000_000, tick_ns=100_000, reading_ns=50).steps_per_sample == 50
    assert choose_timing(0, tick_ns=100) == Resolution(Timing.WHOLE, 1_000_000)
    assert choose_timing(5, tick_ns=0).timing is Timing.EACH


@given(st.floats(1, 1e9), st.floats(1, 1e5), st.floats(1, 1e4))
def test_every_sample_is_long_enough(step_ns, tick_ns, reading_ns):
    chosen = choose_timing(step_ns, tick_ns, reading_ns)
    sample_ns = step_ns * chosen.steps_per_sample
    assert sample_ns >= 1000 * tick_ns * (1 - 1e-9)
    if chosen.timing is Timing.WHOLE:
        assert reading_ns / sample_ns <= 1e-4 * (1 + 1e-9)

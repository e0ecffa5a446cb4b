import pytest
from hypothesis import given
from hypothesis import strategies as st

from accelbench.measure.warmup import WarmupRule

MS = 1_000_000


def run(rule, step_at, compile_at=frozenset()):
    """Warm up on a model whose i-th step takes step_at(i) ns; returns state and block sizes."""
    state, blocks = rule.start(), []
    while not state.done:
        n = state.next_steps()
        assert n > 0
        steps = range(state.steps, state.steps + n)
        blocks.append(n)
        state = state.add_block([step_at(i) for i in steps], len(compile_at & set(steps)))
        assert len(blocks) < 1000
    return state, blocks


def test_windows_are_filled_by_number_or_time():
    state, blocks = run(WarmupRule(), lambda i: 10 * MS)
    assert state.steady
    assert state.steps == 20  # two windows of 100 ms
    assert blocks == [1, 9, 10]
    assert state.step_ns == 10 * MS

    state, _ = run(WarmupRule(), lambda i: 90 * MS)
    assert state.steady
    assert state.steps == 10
    state, blocks = run(WarmupRule(), lambda i: 20_000)
    assert state.steady
    assert state.steps >= 10_000
    assert blocks[:4] == [1, 10, 110, 1210]  # an estimate is trusted step by step
    state, _ = run(WarmupRule(), lambda i: (50 if i < 7 else 10) * MS)
    assert state.steady
    assert state.steps == 20  # 5 of 50 ms; 2 of 50 and 3 of 10; 10 of 10


def test_windows_agree_within_two_percent_and_compilation_begins_anew():
    def second_window(step_ns):
        state = WarmupRule().start().add_block([100 * MS] * 5)
        assert not state.done
        return state.add_block([step_ns] * 5)

    assert second_window(102 * MS).steady
    assert not second_window(103 * MS).done
    assert not second_window(97 * MS).done

    state = WarmupRule().start().add_block([100 * MS] * 5)
    assert not state.add_block([100 * MS] * 5, compilations=1).done
    after = state.add_block([100 * MS] * 5, compilations=1).add_block([100 * MS] * 5)
    assert not after.done
    assert after.add_block([100 * MS] * 5).steady
    assert after.steps == 15


def test_what_never_settles_is_unsteady_at_the_cap():
    state, _ = run(WarmupRule(), lambda i: int(20 * MS * 1.02**i))
    assert state.done
    assert state.steady is False
    assert 2_000 * MS <= state.elapsed_ns <= 2_500 * MS
    state, _ = run(WarmupRule(), lambda i: 100 * MS, compile_at=frozenset(range(1000)))
    assert state.steady is False
    assert state.steps == 20
    # Windows of 750 ms: 150, then 160; the open third would fall between.
    state, _ = run(WarmupRule(), lambda i: (150 if i < 5 else 160) * MS)
    assert state.steady is False
    state, _ = run(WarmupRule(), lambda i: 4_000 * MS, compile_at=frozenset({2}))
    assert state.steady is False
    state, _ = run(WarmupRule(budget_ns=1_000 * MS), lambda i: int(20 * MS * 1.02**i))
    assert state.elapsed_ns < 350 * MS


@pytest.mark.parametrize(("later", "steady"), [(4.0, True), (4.06, True), (4.2, False)])
def test_a_step_of_four_seconds_gets_three_steps_judged_by_first_and_last(later, steady):
    state, blocks = run(WarmupRule(), lambda i: int((4.0 if i == 0 else later) * 1e9))
    assert state.steps == 3
    assert blocks == [1, 2]
    assert state.steady is steady


@pytest.mark.parametrize("step_ms", [200, 300, 700, 1500])
def test_steps_too_slow_for_two_windows_are_judged_by_halves(step_ms):
    state, _ = run(WarmupRule(), lambda i: step_ms * MS)
    assert state.steady
    assert state.elapsed_ns <= max(2_000 * MS + step_ms * MS, 3 * step_ms * MS)
    drifting, _ = run(WarmupRule(), lambda i: int(step_ms * MS * 1.05**i))
    assert drifting.steady is False


@pytest.mark.parametrize("fixed", [0, 1, 10])
def test_a_fixed_number_is_exact_and_not_judged(fixed):
    state, blocks = run(WarmupRule(fixed=fixed), lambda i: 4_000 * MS)
    assert state.steps == sum(blocks) == fixed
    assert state.steady is None
    assert state.next_steps() == 0


def test_blocks_count_by_their_steps():
    state = WarmupRule().start().add_block([50 * MS, 50 * MS], steps_per_sample=1000)
    assert state.steps == 2000
    assert state.step_ns == 50_000
    assert state.add_block([100 * MS], steps_per_sample=2000).steady
    state = WarmupRule().start().add_block([MS])
    assert state.add_block([]) == state


@given(st.lists(st.integers(0, 5_000 * MS), min_size=1, max_size=20))
def test_it_always_ends_near_its_cap(pattern):
    """Whatever the steps take, as long as some of them take time."""
    pattern = [*pattern, 10 * MS]
    state, _ = run(WarmupRule(), lambda i: pattern[i % len(pattern)])
    assert state.steps >= 3
    assert state.steady in (True, False)

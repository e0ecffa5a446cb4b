"""A budget shared so that the last case gets as much as the first."""

import pytest

from accelbench.run.plan.run_forecast import LONGEST_SECONDS, SHORTEST_SECONDS, Budget


class Time:
    def __init__(self):
        self.seconds = 0.0

    def __call__(self):
        return self.seconds


def test_a_budget_is_shared_until_it_is_used_up():
    budget = Budget(None, 3)
    assert budget.left() is None
    assert budget.steady_seconds() is None
    assert not budget.exhausted

    now = Time()
    budget = Budget(40.0, 4, now)
    assert budget.steady_seconds() == 5.0  # half of a quarter
    now.seconds = 4.0
    budget.case_over()
    assert budget.steady_seconds() == 6.0
    assert budget.left() == 36.0

    now = Time()
    budget = Budget(10.0, 1, now)
    now.seconds = 9.999
    assert not budget.exhausted
    now.seconds = 10.0
    assert budget.exhausted

    budget = Budget(10.0, 1, Time())
    budget.case_over()
    budget.case_over()
    assert budget.steady_seconds() == 5.0


@pytest.mark.parametrize(("seconds", "share"), [(0.1, SHORTEST_SECONDS), (1e6, LONGEST_SECONDS)])
def test_a_share_has_bounds(seconds, share):
    assert Budget(seconds, 1, Time()).steady_seconds() == share

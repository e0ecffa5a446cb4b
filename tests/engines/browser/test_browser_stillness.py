"""A browser that was asked and does nothing at all is given up; one that works is waited for."""

import pytest

from accelbench.engines.browser.page_link import Stillness


@pytest.mark.parametrize(
    ("taken_each_second", "given_up_after"),
    [
        (0.0, 65),  # it waits for what never comes
        (0.002, 65),  # its timers tick
        (0.2, None),  # it compiles, on a machine with other work
        (1.9, None),
    ],
)
def test_only_one_that_does_nothing_is_given_up(taken_each_second, given_up_after):
    now = 0
    stillness = Stillness(lambda: now * taken_each_second)
    for now in range(600):
        if stillness.lasted(now):
            break
    else:
        now = None
    assert now == given_up_after


def test_work_and_quick_answers_begin_the_count_anew():
    clock = {"now": 0.0, "cpu": 0.0}
    stillness = Stillness(lambda: clock["cpu"])
    for second in range(200):
        clock["now"], clock["cpu"] = second, 3.0 if second >= 50 else 0.0
        if stillness.lasted(second):
            break
    assert clock["now"] == 110

    def never():
        raise AssertionError("looked at")

    assert not any(Stillness(never).lasted(0.25 * look) for look in range(1))
    stillness = Stillness(never)
    assert not any(stillness.lasted(0.25 * look) for look in range(20))

"""What a line over time comes to, in the words of a check and by its rules."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest

from accelbench.analysis.checking import Check, Outcome, Rules, checked
from accelbench.analysis.history import HistoryPoint, Series, every_series
from accelbench.analysis.judging import METRICS, Judgement
from accelbench.analysis.run_noise import histories
from one_series import series_of

LATENCY = METRICS[0]
FOUR = (126.0, 34.23, 104.0, 104.0)


def row(run: int, launch: int, ms: float) -> dict[str, Any]:
    return {
        "model": "m",
        "series_key": "s",
        "case_id": "c",
        "run_id": f"r{run}",
        "launch": launch,
        "status": "ok",
        "provenance": "measured",
        "quality": "converged",
        "device_name": "A processor",
        "runtime": "pytorch",
        "batch_size": 1,
        "threads": 1,
        "latency_p50_ms": ms,
        "started_at": f"2026-01-{run + 1:02d} 03:04:0{launch}",
    }


def runs_of(values: Sequence[Sequence[float]]) -> list[list[dict[str, Any]]]:
    return [[row(run, n, ms) for n, ms in enumerate(one)] for run, one in enumerate(values)]


def line(values: Sequence[Sequence[float]]) -> Series:
    """What `history` makes of runs."""
    points = [
        HistoryPoint(
            f"2026-01-{run + 1:02d}",
            f"r{run}",
            "",
            sorted(one)[len(one) // 2],
            len(one),
            (),
            tuple(one),
        )
        for run, one in enumerate(values)
    ]
    return series_of({"series_key": "s"}, LATENCY, points, 0.03)


def check(values: Sequence[Sequence[float]], before: int, now: int = -1) -> Check:
    """What `check` makes of two of them, the others being known."""
    runs = runs_of(values)
    judged = runs[now]
    known = histories(one for run in runs if run is not judged for one in run)
    return checked(judged, runs[before], Rules(known=known))


@pytest.mark.parametrize("launches", [1, 5])
@pytest.mark.parametrize("before", [0, 1, 2])
def test_four_runs_that_are_all_over_the_place_say_the_same_in_both(
    launches: int, before: int
) -> None:
    values = [[ms * (1.0 + 0.01 * n) for n in range(launches)] for ms in FOUR]
    told = line(values)
    assert told.answer is Judgement.CANNOT_TELL
    (question,) = check(values, before).questions
    assert question.outcome is Outcome.CANNOT_TELL
    words = "runs of this differ by so much where nothing changed that only ten times as much"
    assert words in told.said
    assert words in question.why


def test_a_step_that_stayed_is_worse_in_both_from_four_runs_on() -> None:
    values = [
        [ms * f for f in (1.0, 1.002, 0.998, 1.001, 0.999)] for ms in (34.0, 34.1, 104.0, 104.2)
    ]
    assert line(values).answer is Judgement.WORSE
    assert check(values, 1).outcome is Outcome.WORSE
    single = [one[:1] for one in values]
    assert line(single).answer is Judgement.WORSE
    assert check(single, 1).outcome is Outcome.WORSE


def test_a_newest_run_that_is_off_is_judged_as_a_check_judges_it() -> None:
    quiet = [[20.0 + 0.02 * (n + run % 2) for n in range(5)] for run in range(8)]
    values = [*quiet, [30.0 + 0.02 * n for n in range(5)]]
    told = line(values)
    assert told.course is not None
    assert told.course.unconfirmed is not None
    assert told.answer is Judgement.WORSE
    assert check(values, -2).outcome is Outcome.WORSE
    single = [one[:1] for one in values]  # one launch may have been a slow one
    assert line(single).answer is Judgement.CANNOT_TELL
    assert check(single, -2).outcome is Outcome.CANNOT_TELL


def test_no_answer_of_the_one_contradicts_the_other() -> None:
    by = random.Random(11)
    answered = set()
    for _ in range(150):
        noise, stays = by.choice((0.002, 0.01, 0.05, 0.4)), by.choice((1.0, 1.0, 1.3, 0.7))
        count, launches = by.randint(4, 14), by.choice((1, 5))
        changed = by.randint(1, count - 1)
        values = []
        for run in range(count):
            level = 20.0 * (stays if run >= changed else 1.0) * by.lognormvariate(0.0, noise)
            values.append([level * by.lognormvariate(0.0, 0.003) for _ in range(launches)])
        told = line(values)
        (question,) = check(values, -2).questions
        answer = next(one.answer for one in question.figures if one.metric.name == LATENCY.name)
        answered.add((told.answer, answer))
        if told.answer is Judgement.STEADY:
            assert answer in (Judgement.STEADY, Judgement.CANNOT_TELL), values
        if answer in (Judgement.WORSE, Judgement.BETTER):
            assert told.answer in (answer, Judgement.CANNOT_TELL), values
    assert {(Judgement.STEADY, Judgement.STEADY), (Judgement.WORSE, Judgement.WORSE)} <= answered


@pytest.mark.parametrize("count", [2, 3])
def test_from_two_runs_on_it_is_drawn_and_from_four_on_judged(count: int) -> None:
    values = [[10.0], [10.02], [10.01], [10.0]]
    few = line(values[:count])
    assert (few.answer, few.course) == (None, None)
    assert few.said == f"drawn, not judged: {count} runs, four are needed"
    assert line(values).said == "no change shown in 4 runs"


def test_a_small_change_that_could_hide_in_the_noise_is_not_denied() -> None:
    quiet = [[10.0 * f] for f in (1.0, 1.004, 0.997, 1.002, 0.999, 1.003)]
    assert line(quiet).answer is Judgement.STEADY
    noisy = [[10.0 * f] for f in (1.0, 1.06, 0.95, 1.05, 0.93, 1.02)]
    told = line(noisy)
    assert (told.answer, told.changed) == (Judgement.CANNOT_TELL, False)
    wide = [HistoryPoint(str(n), str(n), "", one[0], 1) for n, one in enumerate(noisy)]
    assert series_of({}, LATENCY, wide, 0.3).answer is Judgement.STEADY


def versions(*torch: str) -> list[HistoryPoint]:
    return [
        HistoryPoint(f"2026-0{n + 1}-08", "import-1", "", 10.0, 1, (("packages.torch", one),))
        for n, one in enumerate(torch)
    ]


def test_a_line_goes_through_versions_and_marks_where_they_change() -> None:
    told = series_of({}, LATENCY, versions("2.9", "2.9", "2.10", "2.10"), 0.03)
    assert told.software_changes == ((2, ("torch 2.9 → 2.10",)),)


def test_versions_of_one_moment_are_in_their_order() -> None:
    points = [one._replace(moment="2026-01-01") for one in versions("2.10", "2.9", "2.11")]
    told = series_of({}, LATENCY, points, 0.03)
    assert [one.software[0][1] for one in told.points] == ["2.9", "2.10", "2.11"]


def test_what_says_nothing_of_its_software_has_no_marks() -> None:
    known = versions("2.9", "2.10", "2.11")
    points = [known[0], known[1]._replace(software=()), known[2]]
    assert series_of({}, LATENCY, points, 0.03).software_changes == ()


def test_many_lines_together_are_told_as_each_alone() -> None:
    several = [
        (
            {"model": f"{n}"},
            [
                HistoryPoint(f"2026-01-{at + 1:02d}", f"r{at}", "", 10.0 + (at * n) % 7, 1)
                for at in range(n)
            ],
        )
        for n in range(1, 30)
    ]
    assert every_series([(one, LATENCY, points) for one, points in several], 0.03) == [
        series_of(one, LATENCY, points, 0.03) for one, points in several
    ]

"""What a line over time comes to, in the words of a check and by its rules."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest

from accelbench.judge.accuracies import Outputs
from accelbench.judge.history import HistoryPoint, Series, every_series, partings
from accelbench.judge.regressions import Check, Outcome, Rules, checked
from accelbench.judge.run_noise import histories
from accelbench.judge.verdicts import METRICS, Judgement, Metric
from one_series import series_of

LATENCY = METRICS[0]
FOUR = (126.0, 34.23, 104.0, 104.0)


def row(run: int, launch: int, ms: float) -> dict[str, Any]:
    return {
        "model": "m", "series_key": "s", "case_id": "c", "run_id": f"r{run}", "launch": launch,
        "status": "ok", "provenance": "measured", "quality": "converged",
        "device_name": "A processor", "runtime": "pytorch", "batch_size": 1, "threads": 1,
        "latency_p50_ms": ms, "started_at": f"2026-01-{run + 1:02d} 03:04:0{launch}",
    }  # fmt: skip


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
def test_four_runs_that_are_all_over_the_place_say_the_same_in_both(launches, before):
    values = [[ms * (1.0 + 0.01 * n) for n in range(launches)] for ms in FOUR]
    told = line(values)
    assert told.answer is Judgement.CANNOT_TELL
    (question,) = check(values, before).questions
    assert question.outcome is Outcome.CANNOT_TELL
    words = "runs of this differ by so much where nothing changed that only ten times as much"
    assert words in told.said
    assert words in question.why


def test_a_step_is_judged_as_a_check_judges_it():
    # A step that stayed is worse in both from four runs on.
    values = [
        [ms * f for f in (1.0, 1.002, 0.998, 1.001, 0.999)] for ms in (34.0, 34.1, 104.0, 104.2)
    ]
    assert line(values).answer is Judgement.WORSE
    assert check(values, 1).outcome is Outcome.WORSE
    single = [one[:1] for one in values]
    assert line(single).answer is Judgement.WORSE
    assert check(single, 1).outcome is Outcome.WORSE
    # A newest run that is off is judged as a check judges it.
    quiet = [[20.0 + 0.02 * (n + run % 2) for n in range(5)] for run in range(8)]
    values = [*quiet, [30.0 + 0.02 * n for n in range(5)]]
    told = line(values)
    assert told.course is not None
    assert told.course.unconfirmed is not None
    assert told.answer is Judgement.WORSE
    assert told.said == (
        "worse by the newest run alone, +49.8% beside those before it;"
        " one does not tell whether it stays: measure again"
    )
    assert told.newest_step == pytest.approx(0.498, abs=1e-3)  # it stands among what became worse
    assert check(values, -2).outcome is Outcome.WORSE
    assert line([*values, values[-1]]).said == "worse"  # it stayed
    much = line([*quiet, [ms * 1000.0 for ms in values[-1]]])
    assert "by the newest run alone, 1,498× those before it;" in much.said
    single = [one[:1] for one in values]
    assert line(single).answer is Judgement.WORSE
    assert check(single, -2).outcome is Outcome.WORSE
    single[-1] = [26.0]  # below 33 % one launch may have been a slow one
    assert line(single).answer is Judgement.CANNOT_TELL
    assert check(single, -2).outcome is Outcome.CANNOT_TELL


ABOVE = "the newest run is +47.7% beside the first run, of 2026-01-01"
LEVEL = (0.582, 0.583, 0.581, 0.582, 0.583, 0.582, 0.581, 0.582)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        # The first release was faster by a third, and the last step took back a part of that.
        ((0.394, *(0.627, 0.626, 0.628, 0.627, 0.626) * 2, *LEVEL), f"better; but {ABOVE}"),
        ((0.394, *LEVEL), f"no change shown in 8 runs since 2026-01-02; but {ABOVE}"),
        ((0.9, *LEVEL), "no change shown in 8 runs since 2026-01-02"),  # it is no worse
        (LEVEL, "no change shown in 8 runs"),
    ],
)
def test_a_first_run_that_is_off_never_came_back(values, said):
    told = line([[ms] for ms in values])
    assert told.said == said
    assert told.came_back == ()
    assert [spike.at for spike in told.first_off] == ([0] if values != LEVEL else [])


def test_what_is_said_of_the_first_and_the_last_run():
    # A run that is off between others came back.
    told = line([[ms] for ms in (*LEVEL, 0.9, *LEVEL)])
    assert ([spike.at for spike in told.came_back], told.first_off) == ([8], ())
    assert told.said == "no change shown in 17 runs"
    # A last step that took back a part does not hide the steps before.
    levels = (20.0, 30.0, 28.0)
    told = line([[ms * f] for ms in levels for f in (1.0, 1.002, 0.999, 1.001, 0.998, 1.0)])
    assert told.answer is Judgement.BETTER
    assert told.said == "better; but the newest run is +40.0% beside the first run, of 2026-01-01"
    # A rate that fell below its first is told too.
    rate = next(metric for metric in METRICS if metric.name == "throughput")
    points = [
        HistoryPoint(f"2026-01-{day:02d}", f"r{day}", "", 1.0 / ms, 1, (), (1.0 / ms,))
        for day, ms in enumerate((0.394, *LEVEL), start=1)
    ]
    told = series_of({"series_key": "s"}, rate, points, 0.03)
    assert "but the newest run is -32.3% beside the first run" in told.said


def test_no_answer_of_the_one_contradicts_the_other():
    by = random.Random(11)
    answered = set()
    for _ in range(60):
        noise, stays = by.choice((0.002, 0.01, 0.05, 0.4)), by.choice((1.0, 1.0, 1.3, 0.7))
        count, launches = by.randint(4, 36), by.choice((1, 5))
        changed = by.choice((by.randint(1, count - 1), count - 1))
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
def test_from_two_runs_on_it_is_drawn_and_from_four_on_judged(count):
    values = [[10.0], [10.02], [10.01], [10.0]]
    few = line(values[:count])
    assert (few.answer, few.course) == (None, None)
    assert few.said == f"not judged: {count} of the 4 runs that this needs"
    assert line(values).said == "no change shown in 4 runs"


def test_a_small_change_that_could_hide_in_the_noise_is_not_denied():
    quiet = [[10.0 * f] for f in (1.0, 1.004, 0.997, 1.002, 0.999, 1.003)]
    assert line(quiet).answer is Judgement.STEADY
    noisy = [[10.0 * f] for f in (1.0, 1.06, 0.95, 1.05, 0.93, 1.02)]
    told = line(noisy)
    assert (told.answer, told.is_eventful) == (Judgement.CANNOT_TELL, False)
    wide = [HistoryPoint(str(n), str(n), "", one[0], 1) for n, one in enumerate(noisy)]
    assert series_of({}, LATENCY, wide, 0.3).answer is Judgement.STEADY


def versions(*torch: str) -> list[HistoryPoint]:
    return [
        HistoryPoint(f"2026-0{n + 1}-08", "import-1", "", 10.0, 1, (("packages.torch", one),))
        for n, one in enumerate(torch)
    ]


def test_versions_along_a_line():
    told = series_of({}, LATENCY, versions("2.9", "2.9", "2.10", "2.10"), 0.03)
    assert told.software_changes == ((2, ("torch 2.9 → 2.10",)),)
    # Versions of one moment are in their order.
    points = [one._replace(moment="2026-01-01") for one in versions("2.10", "2.9", "2.11")]
    told = series_of({}, LATENCY, points, 0.03)
    assert [one.software[0][1] for one in told.points] == ["2.9", "2.10", "2.11"]
    # What says nothing of its software has no marks.
    known = versions("2.9", "2.10", "2.11")
    points = [known[0], known[1]._replace(software=()), known[2]]
    assert series_of({}, LATENCY, points, 0.03).software_changes == ()


def test_many_lines_together_are_told_as_each_alone():
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


KINDS = {
    "weights": ({"weights_digest": "a"}, {"weights_digest": "b"}),
    "workarounds": ({"workarounds": []}, {"workarounds": ["static shapes"]}),
    "source": ({"provenance": "measured"}, {"provenance": "imported"}),
}
RATE = METRICS[1]
#: Five launches that are alike to half a percent.
QUIET = (1.0, 1.002, 0.998, 1.001, 0.999)


def parted(
    first: dict[str, Any], later: dict[str, Any], after: int, metric: Metric = LATENCY
) -> Series:
    """Six runs of one level, and so many of half of it that are figures of something else."""
    points = [
        HistoryPoint(f"2026-01-{run + 1:02d}", f"r{run}", "", level * QUIET[run % 5], 5)._replace(
            kinds=(of,), outputs=Outputs(of is first or "verified" in of)
        )
        for run, (level, of) in enumerate([(8.0, first)] * 6 + [(4.0, later)] * after)
    ]
    return series_of({"series_key": "s"}, metric, points, 0.03)


@pytest.mark.parametrize("word", sorted(KINDS))
def test_what_a_check_refuses_is_no_step_of_a_line(word):
    before, now = ({**one, "verified": 1} for one in KINDS[word])
    for after, answer in ((1, Judgement.CANNOT_TELL), (3, Judgement.CANNOT_TELL)):
        found = parted(before, now, after)
        assert found.answer is answer
        assert found.said.startswith(f"can't tell: not alike: {word}, since 2026-01-07; {after}")
        assert found.course is not None
        assert not found.course.steps
    found = parted(before, now, 6)
    assert found.answer in (Judgement.STEADY, Judgement.CANNOT_TELL)
    assert [(one.at, one.what) for one in found.partings] == [(6, (word,))]
    runs = [
        [{**row(run, n, ms * one), **kind} for n, one in enumerate(QUIET)]
        for run, (ms, kind) in enumerate([(8.0, before), (4.0, now)])
    ]
    refused = checked(runs[1], runs[0])
    assert refused.questions[0].why == f"not alike: {word}"


def test_where_a_line_is_parted():
    # Rates of other things are no step of a line.
    images, tokens = (
        {"throughput": 1.0, "throughput_unit": unit, "verified": 1}
        for unit in ("images/s", "tokens/s")
    )
    found = parted(images, tokens, 3, RATE)
    assert found.answer is Judgement.CANNOT_TELL
    assert "unit images/s → tokens/s" in found.said
    assert found.metric.header == "tokens/s"
    assert not parted(images, tokens, 6, LATENCY).partings  # a step takes what it takes
    # Steps before and after a parting are found where they are.
    a, b = ({"weights_digest": one} for one in "ab")
    values = [8.0] * 6 + [9.0] * 6 + [4.0] * 6 + [5.0] * 6
    points = [
        HistoryPoint(f"2026-01-{n + 1:02d}", f"r{n}", "", ms * QUIET[n % 5], 5)._replace(
            kinds=(a if n < 12 else b,)
        )
        for n, ms in enumerate(values)
    ]
    found = series_of({"series_key": "s"}, LATENCY, points, 0.03)
    assert found.course is not None
    assert [step.at for step in found.course.steps] == [6, 18]
    assert [one.at for one in found.partings] == [12]
    assert found.answer is Judgement.WORSE
    # Who does not say its weights parts nothing and joins nothing.
    said: list[dict[str, Any]] = [{"weights_digest": one} for one in ("a", None, "a", None, "b")]
    kinds = [(one,) for one in said]
    assert [one.at for one in partings(LATENCY, kinds)] == [4]
    assert not partings(LATENCY, kinds[:4])


def test_a_line_whose_outputs_changed():
    # A line that is no longer verified is not better.
    of: dict[str, Any] = {}
    found = parted(of, dict(of), 6)
    assert (found.answer, found.why) == (Judgement.CANNOT_TELL, "outputs are no longer verified")
    assert found.doubt_of(6) == "outputs are no longer verified"
    assert parted(of, {"verified": 1}, 6).answer is Judgement.BETTER
    assert parted(of, {"verified": 1}, 6).doubt_of(6) == ""
    # A line whose error grew beyond the bound is not told.
    errors = [0.001] * 7 + [0.9]
    points = [
        HistoryPoint(f"2026-01-{n + 1:02d}", f"r{n}", "", 8.0, 5)._replace(
            outputs=Outputs(True, error)
        )
        for n, error in enumerate(errors)
    ]
    found = series_of({"series_key": "s"}, LATENCY, points, 0.03)
    assert found.answer is Judgement.CANNOT_TELL
    assert found.why == "outputs are further off: error 0.001 → 0.9, of 0.1 at most"

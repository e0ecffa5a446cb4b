"""Now beside a baseline: matched by what was asked, refused where not alike, failures told."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from accelbench.core.columns import CONFIGURATION_COLUMNS
from accelbench.judge import regressions
from accelbench.judge.regressions import Check, CheckedQuestion, Outcome, Rules
from accelbench.judge.run_noise import histories
from accelbench.judge.verdicts import Judgement
from accelbench.measure.launch_verdicts import Noise
from accelbench.measure.run_to_run_noise import PRIOR
from accelbench.present.check import ordered, sentences
from asked_rows import row

NOW = {"run_id": "r2", "started_at": "2026-01-02 00:00:00"}
TIMES = (8.0, 8.01, 7.99, 8.02, 7.98, 8.0)


def launches(factor: float = 1.0, **changes: Any) -> list[dict[str, Any]]:
    return [
        row(
            **{
                "launch": n,
                "latency_p50_ms": ms * factor,
                "latency_mean_ms": ms * factor,
                **changes,
            }
        )
        for n, ms in enumerate(TIMES)
    ]


def checked(
    now: Sequence[dict[str, Any]], before: Sequence[dict[str, Any]], rules: Rules | None = None
) -> Check:
    """Check against 10 %, which two runs without a history show in four of five cases."""
    rules = rules or Rules()
    return regressions.checked(now, before, replace(rules, threshold=rules.threshold or 0.1))


def only(found: Check) -> CheckedQuestion:
    (one,) = found.questions
    return one


def test_each_figure_and_the_whole_have_an_outcome():
    # Each figure is judged apart.
    found = only(checked(launches(memory_peak_mb=120.0, **NOW), launches()))
    assert found.outcome is Outcome.WORSE
    answers = {one.metric.name: one.answer for one in found.figures}
    assert answers == {
        "latency": Judgement.STEADY,
        "throughput": Judgement.STEADY,
        "memory": Judgement.WORSE,
    }
    # What is slower is worse and the whole with it.
    found = checked(launches(1.3, **NOW), launches())
    assert (only(found).outcome, found.outcome) == (Outcome.WORSE, Outcome.WORSE)
    assert checked(launches(0.7, **NOW), launches()).outcome is Outcome.STEADY
    assert only(checked(launches(0.7, **NOW), launches())).outcome is Outcome.BETTER
    # Of one answer the worst comes first.
    factors = {"a": 1.2, "b": 1.9, "c": 0.5, "d": 1.5, "e": 0.7, "f": 1.0}
    sides = [
        [
            one
            for model, factor in factors.items()
            for one in launches(
                factor if now else 1.0, model=model, series_key=model, case_id=model, **now
            )
        ]
        for now in (NOW, {})
    ]
    found = ordered(checked(*sides))
    assert [question.row["model"] for question in found] == ["b", "d", "a", "e", "c", "f"]


def test_what_is_matched():
    # Only what was asked alike is held against each other.
    found = checked([*launches(**NOW), *launches(2.0, batch_size=8, **NOW)], launches())
    assert only(found).row["batch_size"] == 1
    assert [one["batch_size"] for one in found.not_before] == [8]
    found = checked(launches(**NOW), [*launches(), *launches(precision="bf16")])
    assert [one["precision"] for one in found.not_measured] == ["bf16"]
    assert checked(launches(batch_size=8), launches()).outcome is Outcome.CANNOT_TELL
    older = launches(0.5, run_id="r0", started_at="2025-01-01 00:00:00")
    assert only(checked(launches(**NOW), [*older, *launches()])).outcome is Outcome.STEADY


def test_what_fails_now_or_failed_before():
    # What no longer runs is a regression and what runs now is none.
    lost = row(
        **NOW, status="out_of_memory", reason="out_of_memory", message="too large",
        threads=None, device_name=None, latency_p50_ms=None, latency_mean_ms=None,
    )  # fmt: skip
    found = checked([lost], launches())
    assert (only(found).outcome, found.outcome) == (Outcome.BROKEN, Outcome.WORSE)
    assert only(found).why == "out_of_memory: too large"
    assert not found.not_measured
    before = {**lost, "run_id": "r1"}
    assert only(checked(launches(**NOW), [before])).outcome is Outcome.MENDED
    assert only(checked([lost], [before])).outcome is Outcome.FAILS_STILL
    assert checked([lost], [before]).outcome is Outcome.CANNOT_TELL  # nothing was judged
    both = checked([lost, *launches(batch_size=8, **NOW)], [before, *launches(batch_size=8)])
    assert both.outcome is Outcome.STEADY
    # A launch that was lost beside good ones is told.
    lost = row(**NOW, status="failed", reason="crashed", latency_p50_ms=None, latency_mean_ms=None)
    found = only(checked([*launches(**NOW), lost], launches()))
    assert (found.outcome, found.why) == (Outcome.BROKEN, "1 of 7 launches: crashed")
    # As flaky as it was is no news.
    flaky = [*launches(), {**lost, "run_id": "r1"}]
    found = only(checked([*launches(**NOW), lost], flaky))
    assert (found.outcome, found.why) == (Outcome.STEADY, "1 of 7 launches: crashed")
    # An old failure does not hide a new one.
    old = row(**{**UNOPENED, "run_id": "r0", "started_at": "2025-01-01 00:00:00"})
    found = checked([row(**{**NOW, **UNOPENED})], [old, *launches()])
    assert only(found).outcome is Outcome.BROKEN
    later = {"run_id": "r3", "started_at": "2026-01-03 00:00:00"}
    good = checked([row(**{**NOW, **UNOPENED}), *launches(**later)], launches())
    assert only(good).outcome is Outcome.STEADY  # the newest run has the word


UNOPENED = {
    "status": "failed", "reason": "crashed", "threads": None, "device_name": None,
    "compiled": None, "latency_p50_ms": None, "latency_mean_ms": None,
}  # fmt: skip


@pytest.mark.parametrize("first", [True, False])
def test_launches_that_never_opened_are_of_the_case_that_others_opened(first):
    lost, good = row(**{**NOW, **UNOPENED}), launches(**NOW)
    now = [lost, *good] if first else [*good, lost]
    found = checked(now, launches())
    assert (only(found).outcome, only(found).why) == (Outcome.BROKEN, "1 of 7 launches: crashed")
    assert not found.not_before


def test_what_leaves_a_case_open():
    # What was not measured now leaves it open unless it may.
    before = [*launches(), *launches(batch_size=8)]
    assert checked(launches(**NOW), before).outcome is Outcome.CANNOT_TELL
    assert checked(launches(**NOW), before, Rules(allow=["missing"])).outcome is Outcome.STEADY
    skipped = row(**{**NOW, **UNOPENED, "status": "skipped", "reason": "budget"})
    found = only(checked([skipped], launches()))
    assert (found.outcome, found.why) == (Outcome.CANNOT_TELL, "budget")
    # A figure that is gone leaves it open.
    now = launches(memory_peak_mb=None, **NOW)
    found = only(checked(now, launches()))
    assert (found.outcome, found.why) == (Outcome.CANNOT_TELL, "there is no memory any more")
    found = only(checked(launches(5.0, threads=1, **NOW), launches()))
    assert (found.outcome, found.why) == (Outcome.CANNOT_TELL, "not alike: threads 2 → 1")


def test_what_is_not_alike():
    # Every launch has to be alike.
    now = launches(**NOW)
    now[3] |= {"workarounds": ["eager"]}
    assert only(checked(now, launches())).why == "not alike: workarounds"
    untold = [{n: v for n, v in one.items() if n != "workarounds"} for one in launches()]
    eager = launches(workarounds=["eager"], **NOW)
    rules = Rules(untold=["workarounds"])
    assert only(checked(eager, untold, rules)).outcome is Outcome.STEADY
    # What is not alike cannot be told unless it is allowed.
    for change, name in (
        ({"weights_digest": "v"}, "weights"),
        ({"workarounds": ["eager"]}, "workarounds"),
        ({"emulated": True}, "emulated"),
        ({"provenance": "imported"}, "source"),
    ):
        now = launches(**NOW, **change)
        found = only(checked(now, launches()))
        assert (found.outcome, found.why) == (Outcome.CANNOT_TELL, f"not alike: {name}")
        assert only(checked(now, launches(), Rules(allow=[name]))).outcome is Outcome.STEADY
    now = launches(**NOW, conditions={"versions": {"torch": "2.14"}})
    assert only(checked(now, launches())).differs == ("versions.torch 2.13 → 2.14",)
    # A baseline that says less matches by what it says.
    told = set(CONFIGURATION_COLUMNS) - {"threads", "options", "weights", "device_name"}
    before = [{name: value for name, value in one.items() if name not in {"threads", "options"}}
              for one in launches()]  # fmt: skip
    assert only(checked(launches(**NOW), before, Rules(told))).outcome is Outcome.STEADY
    both = [*launches(**NOW), *launches(threads=1, **NOW)]
    found = checked(both, before, Rules(told))
    assert {one.outcome for one in found.questions} == {Outcome.CANNOT_TELL}
    assert found.questions[0].why == "the baseline does not say which threads it is of"


def older(factors: Sequence[float], times: Sequence[float] = TIMES, **changes: Any) -> Rules:
    """What a check goes by where runs of so many times the usual are stored."""
    rows = [
        row(launch=n, latency_p50_ms=ms * factor, run_id=f"o{number}", series_key="s",
            started_at=f"2025-01-{number + 1:02d}", **changes)
        for number, factor in enumerate(factors)
        for n, ms in enumerate(times)
    ]  # fmt: skip
    return Rules(known=histories(rows))


def test_noise_is_known_from_older_runs():
    # The launches show 5 %: the machine's history shows whether runs differ by as much.
    checked = regressions.checked
    now, before = launches(1.05, series_key="s", **NOW), launches(series_key="s")
    unknown = only(checked(now, before))
    assert unknown.outcome is Outcome.CANNOT_TELL
    assert "runs of this differ by so much where nothing changed" in unknown.why
    assert "--against" in unknown.why
    quiet = [1.0, 1.001, 0.999, 1.002, 1.0, 0.998] * 3
    assert only(checked(now, before, older(quiet))).outcome is Outcome.WORSE
    loud = [1.0, 1.06, 0.95, 1.05, 1.0, 0.94] * 3
    assert only(checked(now, before, older(loud))).outcome is Outcome.CANNOT_TELL
    # Of a series without a history its neighbours on the device are asked.
    beside = older(loud)
    other = launches(1.25, series_key="t", **NOW)
    assert only(checked(other, before)).outcome is Outcome.WORSE
    found = only(checked(other, before, beside)).figures[0]
    assert found.runs is not None
    assert found.runs.freedom == PRIOR.freedom + 1
    elsewhere = older(loud, device_name="Another processor")
    assert only(checked(other, before, elsewhere)).figures[0].runs == Noise(PRIOR.value, math.inf)
    # Two runs without a history show 10 % in four of five cases, but no number shows 5 %.
    now, before = launches(1.02, **NOW)[:1], launches()[:1]
    found = regressions.checked(now, before)
    assert (only(found).outcome, found.outcome) == (Outcome.CANNOT_TELL, Outcome.CANNOT_TELL)
    latency = only(found).figures[0]
    # Launches are taken to differ by as much as runs: 8 a side show 10 %.
    assert (latency.required_both, latency.most_shown) == (8, None)
    narrow = only(regressions.checked(now, before, Rules(threshold=0.05))).figures[0]
    assert narrow.required_both is None
    # z at 99 % and at 80 %, √2 of 2 %, and 2 % in each of 40 launches a side.
    assert narrow.most_shown == pytest.approx(
        math.expm1((2.326348 + 0.841621) * 0.02 * math.sqrt(2 + 2 / 40)), rel=1e-3
    )
    # The six launches of now differ by 2 %, so that the noise of launches is known.
    loud = [
        {**one, "latency_p50_ms": 8.0 * math.exp(0.02 * z), "latency_mean_ms": 8.0}
        for one, z in zip(launches(**NOW), (-1.5, -0.5, 0.5, 1.5, -0.5, 0.5), strict=True)
    ]
    assert only(regressions.checked(loud, before)).figures[0].required_both == 9
    # Noise of launches is known from older runs.
    now, before = launches(1.3, series_key="s", **NOW), launches(series_key="s")
    loud = older([1.0, 1.0, 1.0, 1.0], (5.0, 12.0, 8.0, 4.0, 13.0, 8.0))
    found = only(checked(now, before, loud))
    assert found.outcome is Outcome.CANNOT_TELL
    assert "6 launches before and 6 now are too few at this noise" in found.why
    # Sides of one run differ by their launches alone.
    rows = launches(1.05, run_id="r1"), launches(run_id="r1")
    assert only(regressions.checked(*rows)).outcome is Outcome.WORSE
    assert only(regressions.checked(*rows)).figures[0].runs is None


@pytest.mark.parametrize("quality", ["noise_limited", "unsteady", "throttled"])
def test_one_launch_that_is_not_settled_turns_no_build_red(quality):
    now = launches(5.0, quality=quality, **NOW)[:1]
    found = checked(now, launches(quality="converged")[:1])
    assert (only(found).outcome, found.outcome) == (Outcome.CANNOT_TELL, Outcome.CANNOT_TELL)
    assert only(found).figures[0].required_both == 8
    converged = launches(5.0, quality="converged", **NOW)[:1]
    assert checked(converged, launches(quality="converged")[:1]).outcome is Outcome.WORSE
    assert checked(converged, launches(quality=quality)[:1]).outcome is Outcome.CANNOT_TELL


@pytest.mark.parametrize("quality", ["noise_limited", "time_limited", "fixed"])
@pytest.mark.parametrize(
    ("half", "independent", "outcome"),
    [(0.04, 30, Outcome.WORSE), (0.06, 30, Outcome.CANNOT_TELL), (0.04, 10, Outcome.CANNOT_TELL)],
)
def test_a_single_launch_decides_if_its_samples_agree(quality, half, independent, outcome):
    """An interval beyond ±5 % may span two modes of the samples."""

    def one(factor: float, **more: Any) -> list[dict[str, Any]]:
        ms = 8.0 * factor
        interval = {
            "latency_ci_low_ms": ms * (1 - half),
            "latency_ci_high_ms": ms * (1 + half),
            "effective_sample_count": independent,
        }
        return launches(factor, quality=quality, **interval, **more)[:1]

    assert only(checked(one(1.46, **NOW), one(1.0))).outcome is outcome


def test_each_metric_has_a_reason_of_its_own():
    """Rates are far louder than medians here, and the latency is not blamed for it."""
    loud = (100.0, 320.0, 60.0, 150.0, 90.0, 240.0)
    mild = (8.0, 8.3, 7.8, 8.1, 7.9, 8.2)
    sides = [
        [
            row(launch=n, latency_p50_ms=ms, throughput=rate, memory_peak_mb=None, **more)
            for n, (ms, rate) in enumerate(zip(mild, loud, strict=True))
        ]
        for more in (NOW, {})
    ]
    found = only(checked(sides[0], sides[1]))
    latency, throughput = found.figures
    assert latency.required is not None
    assert throughput.most_shown is not None
    assert throughput.most_shown > 0.5
    about_latency, about_throughput = found.why.split("; ")
    assert about_latency.startswith("latency: ")
    assert f"{latency.required} now" in about_latency
    assert about_throughput.startswith("throughput: ")
    assert f"{throughput.most_shown:.1%}" in about_throughput
    assert f"{throughput.most_shown:.1%}" not in about_latency
    about = {"baseline": "r1", "runs": ["r2"], "machine": "lab"}
    (limits,) = [s for s in sentences(checked(sides[0], sides[1]), about) if "Judged by" in s]
    of_latency, of_throughput = limits.split("; ")
    for part, figure in ((of_latency, latency), (of_throughput, throughput)):
        assert figure.least_shown is not None
        assert f"for {figure.metric.name} from {figure.limit:.1%} on" in part
        assert f"find one of {figure.least_shown:.1%}" in part


def test_what_is_said_of_a_change():
    # What moved together is rather the machine.
    def of(factors: dict[int, float]) -> Check:
        now = [one for b, f in factors.items() for one in launches(f, batch_size=b, **NOW)]
        then = [one for b in factors for one in launches(batch_size=b)]
        return checked(now, then)

    together = of({1: 1.06, 8: 1.05, 32: 1.07}).together
    assert together is not None
    assert 0.05 < together < 0.07
    assert of({1: 1.06, 8: 1.05}).together is None
    assert of({1: 1.06, 8: 1.05, 32: 0.95}).together is None
    assert of({1: 1.06, 8: 1.05, 32: 1.001}).together is None
    assert of({1: 1.06, 8: 1.05, 32: 1.029}).together is None
    # It is what such a check is about; of anything else other weights are another thing.
    before = launches(weights="code", weights_digest="0123456789")
    found = only(checked(launches(1.3, weights="code", weights_digest="abcdef0123", **NOW), before))
    assert found.outcome is Outcome.WORSE
    assert found.differs[0] == "code 01234567 → abcdef01"
    before = launches(weights="file", weights_digest="0123456789")
    found = only(checked(launches(1.3, weights="file", weights_digest="other", **NOW), before))
    assert (found.outcome, found.why) == (Outcome.CANNOT_TELL, "not alike: weights")
    # Eight times as long, by four launches that are not settled: forty would show 20 %.
    now = [{**one, "quality": "unsteady"} for one in launches(8.0, **NOW)[:4]]
    found = only(checked(now, launches()))
    assert found.outcome is Outcome.CANNOT_TELL
    assert found.figures[0].required == 5


def test_what_gives_no_verdict():
    # Times that are unusable are given no verdict.
    bad = [{**one, "quality": "unusable"} for one in launches(2.0, **NOW)]
    found = checked(bad, launches())
    assert (only(found).outcome, found.outcome) == (Outcome.CANNOT_TELL, Outcome.CANNOT_TELL)
    assert only(found).why == "times of now are unusable: interval wider than ±25 %"
    assert [one.metric.name for one in only(found).figures] == ["memory"]
    heavier = [{**one, "memory_peak_mb": 120.0} for one in bad]
    assert only(checked(heavier, launches())).outcome is Outcome.WORSE
    assert only(checked(heavier, launches())).unusable == only(found).unusable != ""
    # One unusable launch of many is left out.
    now = launches(**NOW)
    wild = {**now[0], "latency_p50_ms": 80.0, "latency_mean_ms": 80.0, "quality": "unusable"}
    found = only(checked([wild, *now[1:]], launches()))
    assert found.outcome is Outcome.STEADY
    assert found.figures[0].launches == (6, 5)
    # A job that is published again says nothing of a change.
    told = {"provenance": "imported", "conditions": {"job_id": "j1"}}
    then = launches(run_id="r1", started_at="2026-01-01T00:00:00Z", **told)
    again = launches(run_id="r2", started_at="2026-02-01T00:00:00Z", **told)
    found = only(checked(again, then))
    assert found.outcome is Outcome.CANNOT_TELL
    assert "one measurement, of job j1" in found.why
    anew = launches(1.5, run_id="r2", started_at="2026-02-01T00:00:00Z", **told)
    assert "one measurement" not in only(checked(anew, then)).why


TOKENS = {"throughput": 5000.0, "throughput_unit": "tokens/s"}
IMAGES = {"throughput": 99.0, "throughput_unit": "images/s"}


@pytest.mark.parametrize(("before", "now"), [(IMAGES, TOKENS), (TOKENS, IMAGES), ({}, TOKENS)])
def test_rates_of_other_things_are_never_held_against_each_other(before, now):
    found = only(checked(launches(**NOW, **now), launches(**before)))
    assert found.outcome is Outcome.CANNOT_TELL
    assert "rates are of other things" in found.why
    assert "tokens/s" in found.why
    assert "throughput" not in {one.metric.name for one in found.figures}


def test_rates_and_outputs():
    # A rate is named by its unit.
    found = only(checked(launches(**NOW, **IMAGES), launches(**IMAGES)))
    headers = {one.metric.name: one.metric.header for one in found.figures}
    assert headers["throughput"] == "images/s"
    # What says no unit may be of any, and an item of the batch by another name is the same item.
    for unit in (None, "items/s"):
        other = {**IMAGES, "throughput_unit": unit}
        found = only(checked(launches(**NOW, **IMAGES), launches(**other)))
        assert {one.metric.name for one in found.figures} >= {"latency", "throughput"}
    # What is no longer verified is not called better.
    found = only(checked(launches(0.5, **NOW, **UNVERIFIED), launches(**VERIFIED)))
    assert (found.outcome, found.why) == (Outcome.CANNOT_TELL, "outputs are no longer verified")
    assert Judgement.BETTER not in {one.answer for one in found.figures}
    assert "verification ok → not done" in found.differs
    assert "self check ok → not done" in found.differs
    steady = only(checked(launches(**NOW, **UNVERIFIED), launches(**VERIFIED)))
    assert (steady.outcome, steady.why) == (Outcome.STEADY, "outputs are no longer verified")
    worse = only(checked(launches(2.0, **NOW, **UNVERIFIED), launches(**VERIFIED)))
    assert worse.outcome is Outcome.WORSE
    for before in (UNVERIFIED, {}):
        better = only(checked(launches(0.5, **NOW, **UNVERIFIED), launches(**before)))
        assert (better.outcome, better.why) == (Outcome.BETTER, "")
    found = only(checked(launches(memory_peak_mb=math.inf, **NOW), launches()))
    assert (found.outcome, found.why) == (Outcome.CANNOT_TELL, "there is no memory any more")


VERIFIED = {"verification": "ok", "verification_error": 0.001, "self_check": "ok"}
UNVERIFIED = {"verification": "not_done"}


@pytest.mark.parametrize(
    ("before", "now", "outcome", "said"),
    [
        (0.001, 0.9, Outcome.CANNOT_TELL, True),  # beyond what may be chosen
        (0.05, 0.15, Outcome.CANNOT_TELL, True),
        (0.3, 0.5, Outcome.BETTER, False),  # it was beyond before
        (0.0001, 0.002, Outcome.BETTER, True),  # a digit lost
        (0.9, 0.001, Outcome.BETTER, True),
        (0.001, 0.003, Outcome.BETTER, False),  # by the order of sums
        (1e-9, 1e-7, Outcome.BETTER, False),  # rounding
    ],
)
def test_an_error_that_grew_is_told_and_beyond_the_bound_leaves_it_open(before, now, outcome, said):
    sides = ({**VERIFIED, "verification_error": error} for error in (before, now))
    then, here = sides
    found = only(checked(launches(0.5, **NOW, **here), launches(**then)))
    assert found.outcome is outcome
    assert any(text.startswith("error ") for text in found.differs) == said
    assert ("outputs are further off" in found.why) == (outcome is Outcome.CANNOT_TELL)


def test_more_launches_are_not_asked_for_if_the_runs_differ_by_more():
    """Six launches that differ by 3 % err by 1.2 %, and two runs by 2 %."""
    factors = (0.96, 0.98, 1.0, 1.0, 1.02, 1.04)
    now, before = (
        [
            {**one, "latency_p50_ms": 8.0 * factor, "latency_mean_ms": 8.0 * factor}
            for one, factor in zip(side, factors, strict=True)
        ]
        for side in (launches(**NOW), launches())
    )
    found = only(regressions.checked(now, before))
    assert found.outcome is Outcome.CANNOT_TELL
    assert "runs of this differ by so much" in found.why
    of_latency = found.figures[0]
    for between, by_runs in ((0.5, False), (0.501, True)):  # four err by half of 1
        figure = replace(
            of_latency, runs=Noise(between, 3.0), noise=Noise(1.0, 9.0), launches=(4, 9)
        )
        assert regressions._of_runs(figure) is by_runs

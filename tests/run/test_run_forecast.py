"""How long a run takes: from predicted steps, by the rules of measuring, with an honest range."""

import math

import pytest
from simulated_runs import planned

from accelbench.core.run_options import RunSettings
from accelbench.run.plan import run_forecast
from accelbench.run.plan.run_forecast import (
    CaseForecast,
    PlanForecast,
    SamplingEnds,
    SecondsRange,
    run_seconds,
    sampling_limits,
)

FIXED = {"iterations": 10, "warmup": 2, "verify": "off"}
NOTHING = SecondsRange(1e-6, 1e-6, 1e-6)


@pytest.fixture(autouse=True)
def script(tmp_path, monkeypatch):
    """Without a script the engine supports nothing."""
    (tmp_path / "script.json").write_text("{}")
    monkeypatch.setenv("ACCELBENCH_SCRIPT", str(tmp_path / "script.json"))


def cases(*names, batches=(1,)):
    return planned(*names, hardware=("cpu",), simulate=False, batch_sizes=batches)


def forecast(plan, step, **more):
    beside = {"opening": NOTHING, "again": NOTHING, **more}
    return PlanForecast({p.key: CaseForecast(step, **beside) for p in plan.cases}, learned_from=9)


def seconds(plan, step, launches=1, **settings):
    how = RunSettings(run_id="r", launches=launches, **{**FIXED, **settings})
    return run_seconds([(plan, how)], forecast(plan, step))


def exactly(step):
    return SecondsRange(step, step, step)


def test_a_forecast_lies_within_rules_timeout_and_budget():
    # One first, two to warm up, ten samples, one for memory: 14 of two seconds.
    taken = seconds(cases("bert-tiny"), exactly(2.0))
    assert taken.low == pytest.approx(28 + run_forecast.START_SECONDS, rel=1e-3)
    assert taken.high == pytest.approx(taken.low, rel=1e-3)
    assert (taken.predicted, taken.counted) == (1, 0)
    assert seconds(cases("bert-tiny"), exactly(2.0), launches=3).low == pytest.approx(
        3 * 28 + run_forecast.START_SECONDS, rel=1e-3
    )

    long = exactly(100.0)
    timed_out = seconds(cases("bert-tiny"), long, timeout=60.0)
    assert timed_out.high == pytest.approx(60 + run_forecast.START_SECONDS, rel=1e-3)
    assert seconds(cases("bert-tiny"), long, budget=30.0).high == 30.0

    least, most = sampling_limits(0.01, None, None)
    assert least == pytest.approx(0.2 + 30 * 0.01)  # two windows of 100 ms, 30 samples
    assert most == pytest.approx(2.0 + 10.0)
    slow, slowest = sampling_limits(4.0, None, None)
    assert slow == slowest == pytest.approx(3 * 4.0 + 5 * 4.0)  # steps too long for a choice
    assert sampling_limits(0.5, 8, 1) == (pytest.approx(4.5), pytest.approx(4.5))

    short = exactly(0.001)
    names = ("bert-tiny", "vit-tiny", "resnet-tiny", "gpt2-tiny")
    how = RunSettings(run_id="r", verify="off")

    def width(plan):
        taken = run_seconds([(plan, how)], forecast(plan, short))
        start = run_forecast.START_SECONDS
        return math.log((taken.high - start) / (taken.low - start))

    assert width(cases(*names)) == pytest.approx(width(cases("bert-tiny")), rel=0.03)

    plan, how = cases("bert-tiny"), RunSettings(run_id="r", verify="off")
    known = forecast(plan, exactly(0.001))
    quiet = PlanForecast(known.cases, SamplingEnds(0.0, 0.05, 0.1))
    noisy = PlanForecast(known.cases, SamplingEnds(0.9, 0.95, 1.0))
    assert run_seconds([(plan, how)], quiet).high < 8.0
    assert run_seconds([(plan, how)], noisy).low > 12.0

    plan, how = cases("bert-tiny", batches=(1, 2, 4)), RunSettings(run_id="r", **FIXED)
    known = forecast(plan, exactly(0.01), opening=exactly(20.0), again=exactly(3.0))
    taken = run_seconds([(plan, how)], known)
    assert taken.low == pytest.approx(run_forecast.START_SECONDS + 26 + 3 * 0.19, rel=0.01)
    assumed = run_seconds([(plan, how)], forecast(plan, exactly(0.01), opening=None, again=None))
    assert assumed.high < 13.0


def test_what_one_model_is_off_by_adds_up_and_what_several_are_off_by_partly_cancels():
    factor = 2.0
    step = SecondsRange(2.0 / factor, 2.0, 2.0 * factor)

    def width(taken):
        start = run_forecast.START_SECONDS
        return math.log((taken.high - start) / (taken.low - start))

    alone = width(seconds(cases("bert-tiny"), step))
    assert alone == pytest.approx(2 * math.log(factor), rel=1e-3)
    batches = seconds(cases("bert-tiny", batches=(1, 2, 4, 8)), step)
    assert width(batches) == pytest.approx(alone, rel=1e-3)
    assert width(seconds(cases("bert-tiny"), step, launches=4)) == pytest.approx(alone, rel=1e-3)
    several = seconds(cases("bert-tiny", "vit-tiny", "resnet-tiny", "gpt2-tiny"), step)
    assert width(several) == pytest.approx(alone / 2, rel=0.1)  # of four: a half


def test_cases_without_a_prediction_rest_on_their_operations():
    plan = cases("bert-tiny", "bert-base")
    known = forecast(plan, exactly(0.01))
    some = PlanForecast(dict(list(known.cases.items())[:1]), learned_from=9)
    how = RunSettings(run_id="r", **FIXED)
    taken = run_seconds([(plan, how)], some)
    assert (taken.predicted, taken.counted) == (1, 1)
    assert taken.high > run_seconds([(plan, how)], known).high
    nothing = run_seconds([(plan, how)], PlanForecast())
    assert (nothing.low, nothing.high) == run_forecast.seconds(plan, how)
    assert nothing.predicted == 0

"""The measuring loop on a virtual clock: known latencies in, known numbers out."""

import math
from dataclasses import replace
from types import SimpleNamespace

import pytest

from accelbench.core.case import Case, Shapes, Target
from accelbench.core.columns import BY_NAME
from accelbench.core.errors import CaseError
from accelbench.core.protocols import Block, Device, Job
from accelbench.core.unusable_reasons import NOT_USED
from accelbench.core.vocabulary import Quality, Timing
from accelbench.engines.scripted import ScriptedSession, VirtualClock
from accelbench.measure.block_validation import run_side_passes
from accelbench.measure.loop import Rules, measure
from accelbench.measure.stopping import StoppingRule
from accelbench.measure.warmup import WarmupRule
from accelbench.models.selection import choose

MODEL = choose(["bert-tiny"], None, (), (), all_models=False)[0]
CPU = Device("cpu", "a processor")
MS = 1_000_000


class Notes:
    """A listener that remembers, and a meter that gives what it is told to."""

    def __init__(self):
        self.phases = []
        self.counts = []
        self.resets = 0

    def phase(self, name):
        self.phases.append(name)

    def progress(self, samples, median_ns, interval):
        self.counts.append(samples)

    def reset(self):
        self.resets += 1

    def sample(self, work):
        work()

    def columns(self):
        return {"memory_peak_mb": 3.0, "memory_avg_mb": 2.0}


class Session(ScriptedSession):
    """A scripted session whose blocks can be altered, and that knows when it is at work."""

    def __init__(self, case, script, clock):
        super().__init__(Job(case, CPU), script, clock)
        self.alter = lambda _, block: block
        self.blocks = []
        self.at_work = False

    def sample(self, inputs, n, timing):
        self.at_work = True
        block = self.alter(len(self.blocks), super().sample(inputs, n, timing))
        self.blocks.append(block)
        self.at_work = False
        return block


def case_of(batch=1, compiled=False):
    options = {"compile": True} if compiled else {}
    return Case(MODEL, Target("scripted", "cpu"), "fp32", Shapes(batch, 128), options=options)


def session_of(case, tick_ns=1.0, **script):
    clock = VirtualClock(tick_ns)
    return Session(case, script, clock), clock


def measured(batch=1, rules=None, tick_ns=1.0, **script):
    session, clock = session_of(case_of(batch), tick_ns, **script)
    notes = Notes()
    return measure(session, case_of(batch), rules or Rules(), clock, notes, notes)


def fixed(warmup, iterations):
    return Rules(WarmupRule(fixed=warmup), StoppingRule(fixed=iterations))


def test_figures_of_constant_and_cyclic_latencies():
    found = measured(batch=4, step_ns=MS)
    for name in ("mean", "p50", "min", "max", "ci_low", "ci_high"):
        assert found.metrics[f"latency_{name}_ms"] == 4.0, name
    assert found.metrics["latency_std_ms"] == 0.0
    assert found.metrics["throughput"] == pytest.approx(1000.0, rel=1e-12)
    assert found.metrics["sample_count"] == 30
    assert found.metrics["first_inference_ms"] == 4.0
    assert found.metrics["compile_ms"] is None
    assert found.samples["step"] == [4 * MS] * 30
    assert found.sampling["step"] == {"timing": "each"}
    assert found.quality is Quality.CONVERGED
    assert not found.warnings
    assert found.metrics["sampling_ms"] == 120.0

    metrics = measured(step_ns=MS).metrics
    assert [metrics[f"latency_p{p}_ms"] for p in (90, 95, 99)] == [1.0, 1.0, None]
    assert [metrics[f"latency_p{p}_rough"] for p in (90, 95, 99)] == [True, True, None]
    assert not set(measured(step_ns=MS).metrics) - set(BY_NAME)

    found = measured(step_ns=[MS, 3 * MS])
    assert found.metrics["latency_mean_ms"] == 2.0
    assert found.metrics["latency_p50_ms"] == 2.0
    assert (found.metrics["latency_min_ms"], found.metrics["latency_max_ms"]) == (1.0, 3.0)
    assert found.metrics["throughput"] == pytest.approx(500.0, rel=1e-12)
    assert found.metrics["sample_count"] in (30, 60, 120, 240, 480, 960, 1920, 3840)


def test_warm_up_and_steadiness():
    found = measured(step_ns=MS, warm_up_ns=[50 * MS, 20 * MS, 5 * MS])
    assert found.metrics["first_inference_ms"] == 51.0
    # 1 while memory is sampled, 1 + 16 to learn the pace, 78 to fill 100 ms, 100 that agree.
    assert found.metrics["warmup_steps"] == 196
    assert found.metrics["warmup_ms"] == 196.0 + 25.0
    assert set(found.samples["step"]) == {MS}
    assert found.quality is Quality.CONVERGED

    found = measured(step_ns=[round(MS * 1.0005 ** min(i, 1600)) for i in range(20_000)])
    assert found.quality is Quality.UNSTEADY
    assert any("not yet steady" in w for w in found.warnings)

    found = measured(step_ns=[round(MS * 1.02**i) for i in range(600)])
    assert found.quality is Quality.UNUSABLE
    assert any("not yet steady" in w for w in found.warnings)
    (said,) = [w for w in found.warnings if NOT_USED in w]
    low, middle, high = (found.metrics[f"latency_{n}_ms"] for n in ("ci_low", "p50", "ci_high"))
    share = math.ceil(100 * (high - low) / 2 / middle)
    assert said == f"Too noisy: ±{share} % (limit ±25 %). {NOT_USED}"


def test_of_steps_in_blocks_the_width_that_counts_is_of_the_mean_which_is_shown():
    """A few slow blocks leave the median of blocks where it was, and the mean anywhere."""
    slow = [MS // 100] * 3_000 + [60 * MS] + [MS // 100] * 40_000
    found = measured(step_ns=slow, tick_ns=1000.0, rules=fixed(5, 30))
    m = found.metrics
    half = (m["latency_ci_high_ms"] - m["latency_ci_low_ms"]) / 2 / m["latency_mean_ms"]
    assert m["latency_p50_ms"] is None
    assert half > 0.25
    assert found.quality is Quality.UNUSABLE
    (said,) = [w for w in found.warnings if NOT_USED in w]
    assert f"Too noisy: ±{math.ceil(100 * half)} % (limit" in said


def test_fixed_numbers_are_honoured():
    slow = [MS // 100] * 1_000 + [60 * MS] + [MS // 100] * 40_000
    found = measured(step_ns=slow, tick_ns=1000.0, rules=fixed(5, 12))
    assert found.metrics["latency_p50_ms"] is None
    assert found.quality is Quality.FIXED

    case = case_of()
    session, clock = session_of(case, step_ns=MS, warm_up_ns=[0, 9 * MS, 9 * MS, 9 * MS])
    notes = Notes()
    found = measure(session, case, fixed(3, 50), clock, notes, notes)
    assert found.metrics["warmup_steps"] == 3
    assert found.metrics["warmup_ms"] == 30.0
    assert found.samples["step"] == [MS] * 50
    assert any("fixed" in w for w in found.warnings)

    found = measured(rules=fixed(0, 5), step_ns=MS, warm_up_ns=[0, 2 * MS])
    assert found.metrics["warmup_steps"] == 0
    assert found.samples["step"] == [3 * MS, MS, MS, MS, MS]
    assert any("Only 5 samples" in w for w in found.warnings)


@pytest.mark.parametrize("sigma", [0.01, 0.05, 0.3])
@pytest.mark.parametrize("rho", [0.0, 0.75])
def test_random_latencies_stop_as_the_rule_says(sigma, rho):
    script = {"median_ns": MS, "sigma": sigma, "seed": 7, "rho": rho}
    found = measured(lognormal=script)
    m = found.metrics
    assert m["latency_ci_low_ms"] <= m["latency_p50_ms"] <= m["latency_ci_high_ms"]
    assert m["latency_p50_ms"] == pytest.approx(1.0, rel=4 * sigma)
    half = (m["latency_ci_high_ms"] - m["latency_ci_low_ms"]) / 2 / m["latency_p50_ms"]
    if found.quality is Quality.CONVERGED:
        assert half <= 0.01
    else:
        assert found.quality in (Quality.NOISE_LIMITED, Quality.TIME_LIMITED, Quality.UNSTEADY)
    if found.quality in (Quality.CONVERGED, Quality.NOISE_LIMITED):
        assert m["sample_count"] in [30 * 2**k for k in range(12)]


@pytest.mark.parametrize(("seconds", "least", "most"), [(1, 10, 10), (2, 5, 5), (5, 5, 5)])
def test_slow_steps_are_limited_by_time(seconds, least, most):
    found = measured(step_ns=seconds * 1000 * MS)
    assert found.quality is Quality.TIME_LIMITED
    assert least <= found.metrics["sample_count"] <= most
    assert found.metrics["latency_p50_ms"] == seconds * 1000.0
    assert any("Only" in w for w in found.warnings)


def test_steps_too_short_for_the_clock_are_timed_in_blocks():
    found = measured(step_ns=MS // 10, tick_ns=1000.0)
    assert found.metrics["latency_mean_ms"] == pytest.approx(0.1, rel=1e-12)
    for name in ("p50", "p90", "p95", "p99", "min", "max", "std"):
        assert found.metrics[f"latency_{name}_ms"] is None, name
    timing = found.sampling["step"]
    steps = timing["steps"][0]
    assert timing == {"timing": "whole", "steps": [steps] * found.metrics["sample_count"]}
    assert found.samples["step"] == [steps * MS // 10] * found.metrics["sample_count"]
    assert steps * MS // 10 >= 1000 * 1000  # a block is at least a thousand ticks


class Afar(Session):
    """A session that is asked for many blocks at once."""

    def __init__(self, case, script, clock):
        super().__init__(case, script, clock)
        self.asked = []

    def unbroken_blocks(self, inputs, steps, samples):
        self.asked.append((steps, samples))
        return [self.sample(inputs, steps, Timing.WHOLE) for _ in range(samples)]


def test_whoever_is_asked_from_afar_is_asked_for_many_blocks_at_once():
    clock, notes = VirtualClock(1000.0), Notes()
    session = Afar(case_of(), {"step_ns": MS // 10}, clock)
    found = measure(session, case_of(), fixed(5, 40), clock, notes, notes)
    ((steps, first), (same, rest)) = session.asked
    assert steps == same
    assert (first, rest) == (1, 39)  # the first tells how long one takes
    assert found.metrics["sample_count"] == 40


def test_drift_and_compilation_are_unsteady():
    steps = [MS] * 36 + [round(1.1 * MS)] * 30 + [round(1.2 * MS)] * 100
    found = measured(rules=fixed(5, 90), step_ns=steps)
    assert found.quality is Quality.UNSTEADY
    assert any("20% slower" in w for w in found.warnings)

    case = case_of(compiled=True)
    session, clock = session_of(case, step_ns=MS)
    # Block 0 is the first inference, 1 and 2 the warm-up of 3 fixed steps, the rest steady state.
    session.alter = lambda i, block: replace(block, compilations=1) if i == 3 else block
    notes = Notes()
    found = measure(session, case, fixed(3, 40), clock, notes, notes)
    assert found.quality is Quality.UNSTEADY
    assert any("compiled again once" in w for w in found.warnings)


def test_compiling_is_told_apart():
    case = case_of(compiled=True)
    session, clock = session_of(case, step_ns=MS, compile_ns=5 * MS)
    notes = Notes()
    found = measure(session, case, fixed(1, 5), clock, notes, notes)
    assert found.metrics["compile_ms"] == 5.0
    assert found.metrics["first_inference_ms"] == 1.0
    assert notes.phases[:3] == ["prepare", "compile", "first inference"]

    case = case_of(compiled=True)
    session, clock = session_of(case, step_ns=MS, warm_up_ns=[40 * MS])
    session.alter = lambda i, block: (
        replace(block, compilations=1, compile_ns=40 * MS) if i == 0 else block
    )
    notes = Notes()
    found = measure(session, case, fixed(1, 5), clock, notes, notes)
    assert found.metrics["compile_ms"] == 40.0
    assert found.metrics["first_inference_ms"] == 1.0
    assert notes.phases[:3] == ["prepare", "compile", "warm-up"]


def test_phases_are_announced_in_order_and_memory_is_metered():
    case = case_of()
    session, clock = session_of(case, step_ns=MS)
    notes = Notes()
    found = measure(session, case, Rules(), clock, notes, notes)
    assert notes.phases == [
        *("prepare", "compile", "first inference", "average memory", "warm-up", "steady state")
    ]
    assert notes.resets == 1
    assert found.metrics["memory_peak_mb"] == 3.0
    assert found.metrics["memory_avg_mb"] == 2.0
    assert notes.counts == sorted(notes.counts)
    assert notes.counts[-1] == 30


def test_the_listener_is_called_only_between_blocks():
    case = case_of()
    session, clock = session_of(case, lognormal={"median_ns": MS, "sigma": 0.2, "seed": 1})
    heard = []

    class Listener(Notes):
        def phase(self, name):
            heard.append(session.at_work)

        def progress(self, samples, median_ns, interval):
            heard.append(session.at_work)
            clock.advance(3600e9)  # an hour of drawing must not show in any sample

    notes = Listener()
    found = measure(session, case, fixed(3, 200), clock, notes, notes)
    assert heard
    assert not any(heard)
    assert max(found.samples["step"]) < 10 * MS


def test_a_listener_that_raises_ends_it():
    case = case_of()
    session, clock = session_of(case, step_ns=MS)

    class StopError(Exception):
        pass

    class Listener(Notes):
        def progress(self, samples, median_ns, interval):
            raise StopError

    notes = Listener()
    with pytest.raises(StopError):
        measure(session, case, Rules(), clock, notes, notes)
    taken = sum(block.steps for block in session.blocks)
    assert session._steps == taken + 1  # the inspected pass; nothing ran after it


def test_outputs_that_are_not_finite_are_said():
    case = case_of()

    class NotFinite(Session):
        def evidence(self):
            return replace(super().evidence(), details={"outputs_finite": False})

    clock = VirtualClock()
    notes = Notes()
    session = NotFinite(case, {"step_ns": MS}, clock)
    found = measure(session, case, fixed(1, 5), clock, notes, notes)
    assert any("not finite" in w for w in found.warnings)


def test_several_phases_are_split_in_a_pass_of_their_own():
    case = case_of()

    class Training(Session):
        phases = ("forward", "backward")

        def sample(self, inputs, n, timing):
            block = super().sample(inputs, n, Timing.EACH)
            if timing is not Timing.PHASES:
                return block
            parts = {"forward": [MS // 4] * n, "backward": [3 * MS // 4] * n}
            return replace(block, timing=timing, phase_ns=parts)

    clock = VirtualClock()
    notes = Notes()
    session = Training(case, {"step_ns": MS}, clock)
    found = measure(session, case, fixed(1, 5), clock, notes, notes)
    assert found.metrics["forward_ms"] == 0.25
    assert found.metrics["backward_ms"] == 0.75
    assert set(found.samples["step"]) == {MS}
    assert found.sampling["phase:forward"] == {"timing": "phases"}


@pytest.mark.parametrize(("told", "ok"), [(4, True), (1, False), (5, False)])
def test_a_request_has_a_time_for_each_of_its_tokens(told, ok):
    class Writing(Session):
        phases = ("prefill", "decode")

        def sample(self, inputs, n, timing):
            block = super().sample(inputs, n, Timing.EACH)
            if timing is not Timing.PHASES:
                return block
            parts = {"prefill": [MS // 4] * n, "decode": [3 * MS // 4] * n}
            stamps = [[(k + 1) * MS // 5 for k in range(told)]] * n
            return replace(block, timing=timing, phase_ns=parts, token_ns=stamps)

    case = replace(case_of(), shapes=Shapes(1, prompt_tokens=8, new_tokens=4))
    clock, notes = VirtualClock(), Notes()
    session = Writing(case, {"step_ns": MS}, clock)
    if ok:
        assert measure(session, case, fixed(1, 5), clock, notes, notes).metrics["ttft_ms"] == 0.2
        return
    with pytest.raises(CaseError, match=f"for 4 tokens has the times of {told}"):
        measure(session, case, fixed(1, 5), clock, notes, notes)


@pytest.mark.parametrize(
    ("phases", "whole_steps"), [(("step",), 0), (("forward", "backward"), 1), (("prefill",), 1)]
)
def test_average_memory_of_a_slow_step_is_of_a_whole_one(phases, whole_steps):
    """What is looked at is a forward pass: it is the step only where a step is no more."""
    case = case_of()
    seen = []

    class Parted(Session):
        def sample(self, inputs, n, timing):
            block = super().sample(inputs, n, Timing.EACH)
            times = dict.fromkeys(phases, block.phase_ns["step"])
            return replace(block, timing=timing, phase_ns=times)

    class Metered(Notes):
        def sample(self, work):
            before = len(session.blocks)
            work()
            seen.extend(block.steps for block in session.blocks[before:])

    clock = VirtualClock()
    session = Parted(case, {"step_ns": 100 * MS}, clock)
    session.phases = phases
    notes = Metered()
    measure(session, case, fixed(1, 5), clock, notes, notes)
    assert sum(seen) == whole_steps


def test_a_device_with_event_timers_reports_them_beside():
    case = case_of()

    class Timed(Session):
        device_timed = True

        def sample(self, inputs, n, timing):
            if timing is Timing.DEVICE:
                return Block(n, timing, {"step": [MS // 2] * n})
            return super().sample(inputs, n, timing)

    clock = VirtualClock()
    notes = Notes()
    session = Timed(case, {"step_ns": MS}, clock)
    found = measure(session, case, fixed(1, 5), clock, notes, notes)
    assert found.metrics["device_time_ms"] == 0.5
    assert found.metrics["latency_p50_ms"] == 1.0
    assert found.sampling["device"] == {"timing": "device"}


@pytest.mark.parametrize(
    ("step_ms", "steps"), [(1.0, 60), (19.0, 3), (20.0, 3), (333.0, 3), (334.0, 1)]
)
def test_a_pass_beside_takes_60_ms_or_three_steps_or_one_that_is_long(step_ms, steps):
    asked = []

    def sample(inputs, n, timing):
        asked.append(n)
        return Block(n, timing, {"step": [MS] * n})

    session = SimpleNamespace(phases=("step",), device_timed=True, sample=sample)
    run_side_passes(session, case_of(), None, step_ms * MS, Notes())
    assert asked == [steps]

"""Predictions at the edges: wider the farther from what was measured, and never what cannot be."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from made_up_cases import HERE, THERE, made_case, made_trace, measured_cases

from accelbench.core.calibration import CalibratedLimits
from accelbench.models.graph_files.steps import OperatorSignature
from accelbench.predict.case_predictor import (
    USUAL_WIDENING,
    CaseFeatures,
    CasePredictor,
    doublings_beyond,
    predictor_of,
    widening,
)
from accelbench.predict.cases import CaseConfiguration
from accelbench.predict.device_limits import HALF_WIDTH, within_limits
from accelbench.predict.positive_sum import ConfigurationSums, PositiveSum
from accelbench.predict.signatures import PassTrace
from accelbench.predict.terms import (
    NOT_CALIBRATED,
    PRODUCT_TERMS,
    TIME_TERMS,
    Calibrated,
    TracedCase,
    time_terms,
)

LIMITS = CalibratedLimits("cpu", HERE.device, "2026-01-01", {"fp32": 4e12}, 1e11)
CALIBRATED: Calibrated = {("cpu", HERE.device): LIMITS}
CARD = CaseConfiguration("cuda", "NVIDIA A100-SXM4-80GB", "pytorch", "fp32", "inference")


def latency(cases: list[TracedCase], calibrated: Calibrated = NOT_CALIBRATED) -> CaseFeatures:
    return CaseFeatures.of(cases, "latency", calibrated=calibrated)


@pytest.fixture(scope="module")
def fitted() -> CasePredictor:
    return predictor_of(*measured_cases(batches=(1, 2, 4, 8)), "latency").fit()


def test_intervals_widen_with_the_distance_from_what_was_measured(fitted):
    batches = (8, 32, 1_000, 30_000, 1_000_000)
    answer = fitted.predict(latency([made_case(3, HERE, batch) for batch in batches]))
    width = np.log(answer.high / answer.low)
    assert (np.diff(width) > 0.05).all()
    assert width[-1] > width[0] + 2 * 0.05 * 15  # five hundredths a doubling at the least


def test_intervals_widen_beyond_what_was_measured():
    # A longer sequence and more work are far away too.
    near, far = made_case(3), made_case(3)
    long = replace(far.case, shapes=replace(far.case.shapes, sequence=100_000))
    sizes = np.zeros((2, 4))
    sizes[1, 3] = np.log(100_000) / 2
    beyond = doublings_beyond([near.case, long], sizes, [near.case], np.zeros((1, 4)))
    assert beyond == pytest.approx([0.0, np.log2(100_000) - 1.0])
    sizes[1, 3], sizes[1, 0] = 0.0, np.log(64) / 2
    assert doublings_beyond([near.case, long], sizes, [near.case], np.zeros((1, 4)))[
        1
    ] == pytest.approx(5.0)
    # What was measured in between brings an interval near again.
    cases = [made_case(3, HERE, batch).case for batch in (1, 1024)]
    asked = [made_case(3, HERE, batch).case for batch in (32, 600)]
    column = [np.log2(c.shapes.batch) / 2 for c in (*cases, *asked)]
    sizes = np.zeros((4, 4))
    sizes[:, 1] = column
    beyond = doublings_beyond(asked, sizes[2:], cases, sizes[:2])
    assert beyond == pytest.approx([4.0, 0.0])
    # Widening is what nine in ten left out larger batches need.
    assert widening(np.full(19, 9.0), np.ones(19)) == USUAL_WIDENING
    excess = np.array([*([-1.0] * 15), *([0.6] * 10)])
    assert widening(excess, np.full(25, 2.0)) == pytest.approx(0.3)
    assert widening(np.full(25, -1.0), np.ones(25)) == pytest.approx(0.05)

    # Batches that turn slow widen what lies beyond.
    def slope(power: float) -> float:
        measured, traced = measured_cases(batches=(1, 2, 4, 8))
        bent = [
            replace(m, latency_ms=(m.latency_ms or 0.0) * max(m.case.shapes.batch / 2, 1) ** power)
            for m in measured
        ]
        return predictor_of(bent, traced, "latency").fit().widening

    assert slope(1.0) > slope(0.0)


def base_of_nothing(predictor: CasePredictor) -> CasePredictor:
    """A predictor that says next to nothing of any case: what is left are the limits."""
    predictor.rooflines = ConfigurationSums(PositiveSum(np.full(len(predictor.usual), -20.0)))
    predictor.process = None
    return predictor


def roofline_ms(case: TracedCase) -> float:
    products = time_terms([case], CALIBRATED)[0, :PRODUCT_TERMS].sum()
    return float(products)


@pytest.mark.parametrize("place", [HERE, CARD])
def test_neither_a_time_nor_its_lower_end_is_below_the_roofline_at_peak(place, monkeypatch):
    measured, traced = measured_cases(models=8)
    tiny = np.exp(np.full(len(TIME_TERMS), -20.0))  # what peaks alone are taken by
    monkeypatch.setattr(CasePredictor, "usual", property(lambda _: tiny))
    predictor = base_of_nothing(predictor_of(measured, traced, "latency", CALIBRATED))
    case = made_case(30, place, 64)
    answer = predictor.predict(latency([case], CALIBRATED))
    assert answer.low[0] == pytest.approx(roofline_ms(case))
    assert answer.low[0] < answer.value[0] < 1.1 * answer.low[0]
    assert answer.limited.tolist() == [0]
    # A middle device's peak, which stands in where none is known, limits nothing.
    unknown = predictor.predict(latency([made_case(30, HERE, 64)]))
    assert unknown.low[0] < 1e-3 * answer.low[0]


def test_limits_by_bandwidth_and_below():
    # Weights that no cache holds are read at the bandwidth.
    case = made_case(30, CARD)
    trace = PassTrace(
        [(OperatorSignature("lin", 10**9, 10, 10**9, 10, 1, 1, 1, 1, 1, 1), 1)], 10**9, 10
    )
    large = replace(case, passes={"forward": trace})
    assert latency([large]).least[0] == pytest.approx(4e9 / 2039e9 * 1e3)
    # What was measured below a limit lowers it there alone.
    measured, traced = measured_cases(models=8)
    quick = [
        replace(entry, latency_ms=roofline_ms(traced[entry.case]) * share)
        for entry in measured
        for share in [0.5 if entry.case.configuration == HERE else 2.0]
    ]
    predictor = base_of_nothing(predictor_of(quick, traced, "latency", CALIBRATED))
    for place, share in ((HERE, 0.5), (THERE, 1.0)):
        case = made_case(30, place, 64)
        low = predictor.predict(latency([case], CALIBRATED)).low[0]
        assert low == pytest.approx(share * roofline_ms(case))


@pytest.mark.parametrize(("precision", "width"), [("fp32", 4), ("bf16", 2), ("int8", 1)])
def test_memory_is_never_below_the_weights_in_their_precision(precision, width):
    predictor = base_of_nothing(predictor_of(*measured_cases(models=8), "memory"))
    case = made_case(30, replace(HERE, precision=precision))
    answer = predictor.predict(CaseFeatures.of([case], "memory"))
    weights = made_trace(30).weights * width / 2**20
    assert answer.low[0] == pytest.approx(weights)
    assert answer.low[0] < answer.value[0] < 1.2 * answer.low[0] < answer.high[0]
    assert answer.limited.tolist() == [0]


def test_limits_of_values_and_precisions():
    # A value that a limit moves lies inside its interval and says so.
    log_value = np.log(np.array([10.0, 10.0, 10.0, 1e-30]))
    least = np.array([0.0, 9.0, 20.0, 5.0])
    value, low, high, moved = within_limits(log_value, np.full(4, 0.3), least)
    assert moved.tolist() == [2, 3]
    assert (low >= least).all()
    assert value[:2] == pytest.approx(10.0)
    assert (low < value).all()
    assert (value < high).all()
    assert (high[2:] >= least[2:] * np.exp(0.3) * 0.999).all()
    # The farther below the limit what was learned lies, the nearer to it is the value.
    assert value[3] / 5.0 < value[2] / 20.0 < 1.1
    # Of a normal distribution with its limit at its mean: the quartile above it.
    half = np.array([HALF_WIDTH])
    value, _, high, _ = within_limits(np.array([-1e-9]), half, np.array([1.0]))
    assert np.log(value[0]) == pytest.approx(0.6745, abs=1e-3)
    assert np.log(high[0]) == pytest.approx(1.96, abs=1e-2)
    # An H100 multiplies twice as fast in int8 as in fp16; of a V100 no document says it.
    h100, older = "NVIDIA H100 80GB HBM3", "Tesla V100-SXM2-32GB"

    def limit(device: str, precision: str) -> float:
        place = replace(CARD, device=device, precision=precision)
        return float(latency([made_case(3, place, 4096)]).least[0])

    assert limit(h100, "int8") == pytest.approx(limit(h100, "fp16") / 2)
    assert limit(older, "fp16") > 0.0
    assert limit(older, "int8") == 0.0
    # An L4 takes 57 of 121 teraflops in fp16 for long: a limit of what is usual, not possible.
    assert limit("NVIDIA L4", "fp16") == pytest.approx(limit(h100, "fp16") * 989.5 / 121)
    processor = replace(HERE, precision="int8")
    of = {("cpu", HERE.device): replace(LIMITS, peaks={"fp32": 4e12, "int8": 16e12})}
    assert latency([made_case(3, processor, 64)], CALIBRATED).least[0] == 0.0
    assert latency([made_case(3, processor, 64)], of).least[0] > 0.0
    # Imports have it: twice the memory of fp32, and not that of fp16.
    memory = [
        CaseFeatures.of([made_case(3, replace(CARD, precision=precision))], "memory").least[0]
        for precision in ("fp16", "fp32", "fp64")
    ]
    assert memory[2] == pytest.approx(2 * memory[1])
    assert memory[1] == pytest.approx(2 * memory[0])


@pytest.mark.parametrize("precision", ["amp-fp16", "amp-bf16"])
def test_under_autocast_weights_take_what_they_take_in_fp32(precision):
    """resnet50 under autocast was predicted to take 60 MB, of which its weights are 98."""
    narrow, whole = (
        CaseFeatures.of([made_case(3, replace(CARD, precision=name))], "memory")
        for name in (precision, "fp32")
    )
    assert narrow.least[0] == whole.least[0]
    assert narrow.terms[0, 0] == whole.terms[0, 0]  # weights that are multiplied
    assert narrow.terms[0, 2] == whole.terms[0, 2] / 2  # results that are alive

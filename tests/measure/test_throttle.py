import numpy as np
import pytest
from known_series import ar1, many

from accelbench.core.vocabulary import Quality
from accelbench.measure.loop import Drift, drift_quality, find_drift


@pytest.mark.parametrize("n", [60, 120, 480])
def test_noise_alone_hardly_ever_alarms(n):
    """Autocorrelated noise of 10 %, enough for thirds to differ by more than 5 %."""
    rows = many(lambda seed: ar1(n, 0.75, seed, relative=0.10), 500)
    assert np.mean([find_drift(row).found for row in rows]) < 0.01


@pytest.mark.parametrize("n", [60, 240])
def test_a_clock_that_falls_half_way_is_seen(n):
    lowered = np.where(np.arange(n) < n / 2, 1.0, 1.15)
    found = [find_drift(row * lowered) for row in many(lambda s: ar1(n, 0.5, s, 0.02), 40)]
    assert np.mean([d.slower for d in found]) >= 0.9
    assert np.median([d.relative for d in found]) == pytest.approx(0.15, abs=0.03)


def test_a_drift_is_between_the_first_and_the_last_third():
    ramp = np.linspace(1.0, 1.3, 300)
    slower, faster = (
        find_drift(ar1(300, 0.3, 1, 0.02) * ramp),
        find_drift(ar1(300, 0.3, 1, 0.02) / ramp),
    )
    assert slower.found
    assert slower.slower
    assert faster.found
    assert not faster.slower
    assert faster.relative < 0

    found = find_drift(ar1(300, 0.0, 1, relative=0.001) * np.linspace(1, 1.04, 300))
    assert not found.found
    assert found.relative == pytest.approx(0.027, abs=0.002)
    row = [100] * 100 + [150] * 100 + [110] * 100
    assert find_drift(row) == Drift(pytest.approx(0.1), False)
    assert find_drift([100] * 60) == Drift(0.0, False)
    assert find_drift([100] * 30 + [200] * 29) is None
    assert find_drift([0] * 90) is None


def test_throttled_only_with_evidence_from_the_clock():
    slow, fast, none = Drift(0.2, True), Drift(-0.2, True), Drift(0.2, False)
    assert drift_quality(slow, clock_fell=True) is Quality.THROTTLED
    assert drift_quality(slow, clock_fell=False) is Quality.UNSTEADY
    assert drift_quality(slow, clock_fell=None) is Quality.UNSTEADY
    assert drift_quality(fast, clock_fell=True) is Quality.UNSTEADY
    assert drift_quality(none, clock_fell=True) is None
    assert drift_quality(None, clock_fell=True) is None

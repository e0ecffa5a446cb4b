"""The worker's memory columns."""

import pytest

from accelbench.core.vocabulary import MIB
from accelbench.hardware.hostmemory import HostMemory
from accelbench.run.worker.worker import WorkerMeter


class Host(HostMemory):
    """Samples and a peak as they are handed in, in MB."""

    def __init__(self, sampled, peak):
        super().__init__(0, "handed in")
        self._sampled = sampled
        self._peak = peak

    def reset_peak(self):
        pass

    def peak_bytes(self):
        return None if self._peak is None else self._peak * MIB

    def current_bytes(self):
        return self._sampled * MIB


@pytest.mark.parametrize(
    ("sampled", "peak", "average"), [(10, 20, 10.0), (21, 20, 20.0), (10, None, 10.0)]
)
def test_no_average_is_above_the_peak(monkeypatch, sampled, peak, average):
    monkeypatch.setattr(HostMemory, "start", lambda: Host(sampled, peak))
    meter = WorkerMeter()
    meter.sample(lambda: None)
    columns = meter.columns()
    assert (columns["host_memory_avg_mb"], columns["memory_avg_mb"]) == (average, average)
    assert columns["memory_peak_mb"] == peak

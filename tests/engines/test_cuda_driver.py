"""The CUDA driver as a callable's wait: whoever launched, and on whichever device."""

import numpy as np
import pytest

from accelbench.core.errors import CaseError
from accelbench.engines.python import places
from accelbench.engines.python.places import devices, waiting


class Driver:
    """As libcuda answers, of so many devices of which some are in use."""

    def __init__(self, count, active, begun=True):
        self.count, self.active, self.begun = count, active, begun
        self.current = []
        self.waited = []
        self.fails = 0

    def cuDeviceGetCount(self, count):  # noqa: N802
        count._obj.value = self.count
        return 0 if self.begun else 3

    def cuDevicePrimaryCtxGetState(self, number, _flags, active):  # noqa: N802
        active._obj.value = number in self.active
        return 0

    def cuDevicePrimaryCtxRetain(self, context, number):  # noqa: N802
        context._obj.value = 1000 + number
        return 0

    def cuCtxPushCurrent_v2(self, context):  # noqa: N802
        self.current.append((context.value or 0) - 1000)
        return 0

    def cuCtxPopCurrent_v2(self, _context):  # noqa: N802
        self.current.pop()
        return 0

    def cuCtxSynchronize(self):  # noqa: N802
        if not self.current:
            return 201  # this thread has no context
        self.waited.append(self.current[-1])
        return self.fails


@pytest.fixture
def driver(monkeypatch):
    """Three devices, of which this process uses two; loaded by a library that nobody here knows."""
    found = Driver(3, {0, 2})
    monkeypatch.setattr(places, "loaded", lambda: found)
    return found


def test_no_driver_is_loaded_by_asking_for_it():
    assert places.loaded() is None


def test_every_device_in_use_is_waited_for(driver):
    wait = waiting(1.0)
    assert wait is not None
    wait(1.0)
    assert driver.waited == [0, 2]
    assert driver.current == []  # the thread's own context is current again

    assert devices(np.ones(2)) == {"cuda:0", "cuda:2"}

    wait = waiting(1.0)
    assert wait is not None
    driver.fails = 700  # an illegal address
    with pytest.raises(CaseError, match="CUDA driver reports error 700"):
        wait(1.0)
    assert driver.current == []


@pytest.mark.parametrize("unused", [Driver(2, set()), Driver(0, set(), begun=False)])
def test_a_driver_of_which_nothing_is_in_use_is_not_waited_for(unused, monkeypatch):
    monkeypatch.setattr(places, "loaded", lambda: unused)
    assert waiting(1.0) is None
    assert devices(1.0) == {"cpu:0"}

"""The CUDA driver as a callable's wait: whoever launched, and on whichever device."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

from accelbench.core.errors import CaseError
from accelbench.engines.python import places
from accelbench.engines.python.places import devices, waiting


class Driver:
    """As libcuda answers, of so many devices of which some are in use."""

    def __init__(self, count: int, active: set[int], begun: bool = True) -> None:
        self.count, self.active, self.begun = count, active, begun
        self.current: list[int] = []
        self.waited: list[int | None] = []
        self.fails = 0

    def cuDeviceGetCount(self, count: Any) -> int:  # noqa: N802
        count._obj.value = self.count
        return 0 if self.begun else 3

    def cuDevicePrimaryCtxGetState(self, number: int, _flags: Any, active: Any) -> int:  # noqa: N802
        active._obj.value = number in self.active
        return 0

    def cuDevicePrimaryCtxRetain(self, context: Any, number: int) -> int:  # noqa: N802
        context._obj.value = 1000 + number
        return 0

    def cuCtxPushCurrent_v2(self, context: ctypes.c_void_p) -> int:  # noqa: N802
        self.current.append((context.value or 0) - 1000)
        return 0

    def cuCtxPopCurrent_v2(self, _context: Any) -> int:  # noqa: N802
        self.current.pop()
        return 0

    def cuCtxSynchronize(self) -> int:  # noqa: N802
        if not self.current:
            return 201  # this thread has no context
        self.waited.append(self.current[-1])
        return self.fails


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Driver:
    """Three devices, of which this process uses two; loaded by a library that nobody here knows."""
    found = Driver(3, {0, 2})
    monkeypatch.setattr(places, "loaded", lambda: found)
    return found


def test_no_driver_is_loaded_by_asking_for_it():
    assert places.loaded() is None


def test_every_device_in_use_is_waited_for_whatever_was_returned(driver):
    wait = waiting(1.0)
    assert wait is not None
    wait(1.0)
    assert driver.waited == [0, 2]
    assert driver.current == []  # the thread's own context is current again


def test_devices_in_use_are_where_it_worked_whatever_was_returned(driver):
    assert devices(np.ones(2)) == {"cuda:0", "cuda:2"}


@pytest.mark.parametrize("unused", [Driver(2, set()), Driver(0, set(), begun=False)])
def test_a_driver_of_which_nothing_is_in_use_is_not_waited_for(unused, monkeypatch):
    monkeypatch.setattr(places, "loaded", lambda: unused)
    assert waiting(1.0) is None
    assert devices(1.0) == {"cpu:0"}


def test_a_launch_that_failed_is_no_time(driver):
    wait = waiting(1.0)
    assert wait is not None
    driver.fails = 700  # an illegal address
    with pytest.raises(CaseError, match="CUDA driver reports error 700"):
        wait(1.0)
    assert driver.current == []

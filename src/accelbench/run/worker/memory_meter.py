"""The worker's memory meter: host memory from the kernel, device memory from the allocator."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from accelbench.core.abilities import OutOfProcess
from accelbench.core.errors import RUNTIMES_FAULT, CaseError
from accelbench.core.protocols import DeviceMemory, Session
from accelbench.core.vocabulary import MIB
from accelbench.hardware.hostmemory import HostMemory, MemorySampler


class WorkerMeter:
    """Counts what a model adds to a worker that started with `HostMemory.start()`."""

    def __init__(self) -> None:
        self._host = HostMemory.start()
        self._session: Session | None = None

    def watch(self, session: Session) -> None:
        """The session whose device memory is counted from now on."""
        self._session = session
        if isinstance(session, OutOfProcess):
            self._host = session.host_memory

    def reset(self) -> None:
        self._host.reset_peak()
        if self._session is not None:
            self._session.reset_memory()

    def peaks(self) -> Mapping[str, Any]:
        host = self._host.peak_bytes()
        device = self._session.device_memory() if self._session else None
        columns: dict[str, Any] = {
            "host_memory_peak_mb": _mb(host),
            "memory_peak_mb": _mb(host),
            "memory_source": self._host.source,
        }
        if device is not None:
            columns["device_memory_reserved_mb"] = _mb(device.reserved_bytes)
            columns["device_memory_peak_mb"] = _mb(device.peak_bytes)
            columns["memory_peak_mb"] = _mb(device.peak_bytes)
            columns["memory_source"] = device.source
        return columns

    def averages(self, work: Callable[[], object]) -> Mapping[str, Any]:
        session = self._session
        device_now = session.device_memory() if session else None
        read_device = _current(session) if session and device_now else None
        with MemorySampler(self._host, read_device) as sampler:
            work()
        host = _at_most(sampler.host_average, self._host.peak_bytes()) if self._host.known else None
        columns: dict[str, Any] = {"host_memory_avg_mb": _mb(host), "memory_avg_mb": _mb(host)}
        if device_now is not None:
            columns["device_memory_avg_mb"] = _mb(sampler.device_average)
            columns["memory_avg_mb"] = _mb(sampler.device_average)
            if device_now.peak_bytes is None:
                # No counter of its own: the highest value sampled is the best there is.
                columns["device_memory_peak_mb"] = _mb(sampler.device_peak)
                columns["memory_peak_mb"] = _mb(sampler.device_peak)
        return columns


def _current(session: Session) -> Callable[[], int | None]:
    def read() -> int | None:
        memory: DeviceMemory | None = session.device_memory()
        return memory.current_bytes if memory else None

    return read


def _at_most(average: float | None, peak: float | None) -> float | None:
    """The average, which code that was paged in meanwhile can have lifted above the peak.

    Samples hide the code of when sampling began, the peak that of its end: 0.2 % was seen.
    """
    return average if average is None or peak is None else min(average, peak)


def _mb(value: float | None) -> float | None:
    if value is None:
        return None
    if not 0 <= value < float("inf"):
        raise CaseError(
            "bad_block",
            f"the runtime says that {value} bytes of memory were used",
            RUNTIMES_FAULT,
        )
    return value / MIB

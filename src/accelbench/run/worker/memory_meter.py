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
        self._sampler: MemorySampler | None = None

    def watch(self, session: Session) -> None:
        """The session whose device memory is counted from now on."""
        self._session = session
        if isinstance(session, OutOfProcess):
            self._host = session.host_memory

    def reset(self) -> None:
        self._host.reset_peak()
        if self._session is not None:
            self._session.reset_memory()

    def sample(self, work: Callable[[], object]) -> None:
        session = self._session
        known = session is not None and session.device_memory() is not None
        read_device = _current(session) if session is not None and known else None
        with MemorySampler(self._host, read_device) as self._sampler:
            work()

    def columns(self) -> Mapping[str, Any]:
        """Return peaks since the reset, and averages over the work that was sampled."""
        peak = self._host.peak_bytes()
        sampler = self._sampler
        average = sampler.host_average if sampler is not None and self._host.known else None
        average = _at_most(average, peak)
        columns: dict[str, Any] = {
            "host_memory_peak_mb": _mb(peak),
            "memory_peak_mb": _mb(peak),
            "memory_source": self._host.source,
            "host_memory_avg_mb": _mb(average),
            "memory_avg_mb": _mb(average),
        }
        device = self._session.device_memory() if self._session else None
        if device is None:
            return columns
        device_peak = device.peak_bytes
        if device_peak is None and sampler is not None:
            device_peak = sampler.device_peak  # the allocator has no counter: the highest sample
        device_average = sampler.device_average if sampler is not None else None
        return {
            **columns,
            "device_memory_reserved_mb": _mb(device.reserved_bytes),
            "device_memory_peak_mb": _mb(device_peak),
            "memory_peak_mb": _mb(device_peak),
            "memory_source": device.source,
            "device_memory_avg_mb": _mb(device_average),
            "memory_avg_mb": _mb(device_average),
        }


def _current(session: Session) -> Callable[[], int | None]:
    def read() -> int | None:
        memory: DeviceMemory | None = session.device_memory()
        return memory.current_bytes if memory else None

    return read


def _at_most(average: float | None, peak: float | None) -> float | None:
    """Return the average, but no more than the peak.

    Samples are taken before the peak is reset, so they can be higher.
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

"""torch as places.py sees it, for devices that are not here: written from its documented API.

CUDA: torch 2.13.0+cu130 names and types; HIP builds answer through torch.cuda with
torch.version.hip set; MPS counts current and driver memory but no peak.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any


class Device:
    def __init__(self, kind: str, index: int | None = None) -> None:
        self.type, self.index = kind, index

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"


class Event:
    """Events take the milliseconds at which they were recorded."""

    moments = iter([float(i) * 1.5 for i in range(1000)])

    def __init__(self, enable_timing: bool = False) -> None:
        assert enable_timing, "an event without timing cannot be read"
        self.at: float | None = None

    def record(self) -> None:
        self.at = next(Event.moments)

    def elapsed_time(self, end: Event) -> float:
        assert self.at is not None
        assert end.at is not None
        return end.at - self.at


class Cuda:
    Event = Event

    def __init__(self, calls: list[Any], count: int) -> None:
        self._calls, self._count = calls, count

    def is_available(self) -> bool:
        return self._count > 0

    def device_count(self) -> int:
        return self._count

    def set_device(self, ordinal: int) -> None:
        self._calls.append(("set_device", ordinal))

    def synchronize(self, ordinal: int) -> None:
        self._calls.append(("synchronize", ordinal))

    def reset_peak_memory_stats(self, ordinal: int) -> None:
        self._calls.append(("reset", ordinal))

    def max_memory_allocated(self, ordinal: int) -> int:
        return 3000 + ordinal

    def memory_allocated(self, ordinal: int) -> int:
        return 2000 + ordinal

    def memory_reserved(self, ordinal: int) -> int:
        return 4000 + ordinal

    def get_device_properties(self, ordinal: int) -> Any:
        return SimpleNamespace(name="NVIDIA H200", major=9, minor=0, total_memory=150_754_820_096)


def fake_torch(gpus: int = 2, hip: str | None = None, mps: bool = False) -> Any:
    """A torch built for CUDA or HIP with so many cards, or one on a Mac."""
    calls: list[Any] = []
    return SimpleNamespace(
        calls=calls,
        __version__="2.13.0",
        version=SimpleNamespace(cuda=None if hip or mps else "13.0", hip=hip),
        device=Device,
        cuda=Cuda(calls, gpus),
        backends=SimpleNamespace(
            cudnn=SimpleNamespace(
                is_available=lambda: True, version=lambda: 91002, benchmark=False, allow_tf32=True
            ),
            cuda=SimpleNamespace(matmul=SimpleNamespace(allow_tf32=True)),
            mps=SimpleNamespace(
                is_available=lambda: mps, is_macos_or_newer=lambda major, minor: True
            ),
        ),
        get_num_threads=lambda: 4,
        get_float32_matmul_precision=lambda: "highest",
        mps=SimpleNamespace(
            synchronize=lambda: calls.append(("synchronize", "mps")),
            current_allocated_memory=lambda: 500,
            driver_allocated_memory=lambda: 900,
            event=SimpleNamespace(Event=Event),
        ),
    )

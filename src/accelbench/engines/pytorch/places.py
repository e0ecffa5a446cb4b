"""Where PyTorch runs: what differs between cpu, cuda, rocm and mps, and nothing else.

CPU kernels have finished when they return, so there is nothing to wait for; the host's memory is
the worker's, metered from outside the engine.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from accelbench.core.errors import CaseError, UnsupportedError
from accelbench.core.protocols import Absent, Device, DeviceMemory
from accelbench.engines.shared.local import DeviceTimer


class TorchPlace(Protocol):
    """One kind of device as PyTorch sees it."""

    @property
    def synchronize(self) -> Callable[[], None] | None:
        """Return what waits for the device; None if a step returns when it is done."""

    @property
    def timer(self) -> DeviceTimer | None:
        """The device's event timers."""

    @property
    def device(self) -> Any:
        """The torch.device."""

    def reset_memory(self) -> None:
        """Restart the allocator's peak."""

    def memory(self) -> DeviceMemory | None:
        """Return the allocator's counters."""

    def facts(self) -> dict[str, Any]:
        """Return what the engine says of the device and of settings that change its speed."""


class CpuPlace:
    """The host."""

    synchronize = None
    timer = None

    def __init__(self, torch: Any, ordinal: int) -> None:
        self._torch = torch
        self.device = torch.device("cpu")

    def reset_memory(self) -> None:
        return None

    def memory(self) -> DeviceMemory | None:
        return None

    def facts(self) -> dict[str, Any]:
        torch = self._torch
        return {
            "threads": torch.get_num_threads(),
            "interop_threads": torch.get_num_interop_threads(),
            "capability": torch.backends.cpu.get_cpu_capability(),
            "mkldnn": bool(torch.backends.mkldnn.is_available()),
        }


class EventTimer:
    """Events of CUDA, HIP or Metal; CUDA's count in steps of about half a microsecond."""

    def __init__(self, event: Any) -> None:
        self._event = event

    def record(self) -> Any:
        event = self._event(enable_timing=True)
        event.record()
        return event

    def elapsed_ns(self, start: Any, end: Any) -> int:
        return int(start.elapsed_time(end) * 1e6)


class CudaPlace:
    """An NVIDIA GPU, or an AMD one: ROCm's PyTorch speaks through torch.cuda too."""

    def __init__(self, torch: Any, ordinal: int, hardware: str = "cuda") -> None:
        built_for = "rocm" if torch.version.hip else "cuda"
        if not torch.cuda.is_available() or torch.cuda.device_count() <= ordinal:
            raise CaseError(
                "engine_sees_no_device",
                f"PyTorch {torch.__version__} sees no {hardware} device {ordinal}",
                f"Install a PyTorch built for {hardware}.",
            )
        if built_for != hardware:
            raise UnsupportedError(
                "wrong_build",
                f"this PyTorch is built for {built_for}, not {hardware}",
                f"Install a PyTorch built for {hardware}, or ask for --hardware {built_for}.",
            )
        torch.cuda.set_device(ordinal)
        # fp32 means fp32: PyTorch's own default lets convolutions round to TF32's 10 bits.
        torch.backends.cudnn.allow_tf32 = False
        torch.backends.cuda.matmul.allow_tf32 = False
        self._torch = torch
        self._ordinal = ordinal
        self._hardware = hardware
        self.device = torch.device("cuda", ordinal)
        self.timer: DeviceTimer | None = EventTimer(torch.cuda.Event)

    def synchronize(self) -> None:
        self._torch.cuda.synchronize(self._ordinal)

    def reset_memory(self) -> None:
        self._torch.cuda.reset_peak_memory_stats(self._ordinal)

    def memory(self) -> DeviceMemory | None:
        cuda = self._torch.cuda
        return DeviceMemory(
            peak_bytes=cuda.max_memory_allocated(self._ordinal),
            current_bytes=cuda.memory_allocated(self._ordinal),
            reserved_bytes=cuda.memory_reserved(self._ordinal),
            source="torch.cuda allocator",
        )

    def facts(self) -> dict[str, Any]:
        torch = self._torch
        properties = torch.cuda.get_device_properties(self._ordinal)
        return {
            "name": properties.name,
            "hardware": self._hardware,
            "compute_capability": f"{properties.major}.{properties.minor}",
            "cuda": torch.version.cuda,
            "hip": torch.version.hip,
            "cudnn": torch.backends.cudnn.version()
            if torch.backends.cudnn.is_available()
            else None,
            "cudnn_benchmark": torch.backends.cudnn.benchmark,
            "threads": torch.get_num_threads(),
            "matmul_precision": torch.get_float32_matmul_precision(),
            "cudnn_tf32": torch.backends.cudnn.allow_tf32,
        }


class MpsPlace:
    """Apple's GPU. Its allocator has no peak counter; a pass of its own samples it."""

    def __init__(self, torch: Any, ordinal: int) -> None:
        if not torch.backends.mps.is_available():
            raise CaseError(
                "engine_sees_no_device",
                f"PyTorch {torch.__version__} sees no Metal device",
                "Metal needs macOS 12.3 or later on Apple silicon.",
            )
        self._torch = torch
        self.device = torch.device("mps")
        self.timer: DeviceTimer | None = EventTimer(torch.mps.event.Event)

    def synchronize(self) -> None:
        self._torch.mps.synchronize()

    def reset_memory(self) -> None:
        return None

    def memory(self) -> DeviceMemory | None:
        mps = self._torch.mps
        return DeviceMemory(
            peak_bytes=None,
            current_bytes=mps.current_allocated_memory(),
            reserved_bytes=mps.driver_allocated_memory(),
            source="torch.mps allocator, sampled",
        )

    def facts(self) -> dict[str, Any]:
        return {
            "name": "mps",
            "threads": self._torch.get_num_threads(),
            "macos_13_or_newer": self._torch.backends.mps.is_macos_or_newer(13, 0),
        }


def place_for(torch: Any, hardware: str, ordinal: int) -> TorchPlace:
    """Return the place of a platform's nth device."""
    if hardware == "cpu":
        return CpuPlace(torch, ordinal)
    if hardware in ("cuda", "rocm"):
        return CudaPlace(torch, ordinal, hardware)
    if hardware == "mps":
        return MpsPlace(torch, ordinal)
    raise UnsupportedError("hardware", f"the pytorch runtime does not serve {hardware}")


def devices() -> list[Device | Absent]:
    """Return an entry per device, or why there is none; in a throw-away process only.

    Asking may hang a driver.
    """
    import torch

    entries: list[Device | Absent] = [Device("cpu", "host", count=torch.get_num_threads())]
    gpu = "rocm" if torch.version.hip else "cuda"
    if torch.cuda.is_available():
        for i in range(torch.cuda.device_count()):
            card = torch.cuda.get_device_properties(i)
            entries.append(Device(gpu, card.name, i, memory_bytes=card.total_memory))
    else:
        built = torch.version.cuda or torch.version.hip
        reason = "torch sees no device" if built else "this torch is built for CPU only"
        entries.append(Absent(gpu, reason, f"Install a PyTorch built for {gpu}."))
    if torch.backends.mps.is_available():
        entries.append(Device("mps", "Apple GPU"))
    return entries

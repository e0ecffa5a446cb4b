"""What NVML says of NVIDIA's cards. `main()` runs in a throw-away process.

NVML counts devices in PCI order whatever CUDA_VISIBLE_DEVICES says; which of
them a worker sees, and under what number, is worked out by the detector.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def main() -> dict[str, Any]:
    """Every card as plain values, or the reason why NVML has nothing to say."""
    try:
        import pynvml
    except ImportError:
        return {"missing": "package"}
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        return {"missing": "driver", "reason": str(error)}
    try:
        return read_cards(pynvml)
    finally:
        pynvml.nvmlShutdown()


def read_cards(nvml: Any) -> dict[str, Any]:
    """All cards of an initialised NVML module."""
    count = nvml.nvmlDeviceGetCount()
    version = _asked(nvml, nvml.nvmlSystemGetCudaDriverVersion_v2)
    return {
        "driver": _text(nvml.nvmlSystemGetDriverVersion()),
        "cuda": None if version is None else f"{version // 1000}.{version % 1000 // 10}",
        "cards": [_card(nvml, nvml.nvmlDeviceGetHandleByIndex(i)) for i in range(count)],
    }


def _asked(nvml: Any, question: Callable[..., Any], *args: Any) -> Any:
    """An answer, or None where this card or driver does not know the question."""
    try:
        return question(*args)
    except nvml.NVMLError:
        return None


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _card(nvml: Any, handle: Any) -> dict[str, Any]:
    capability = _asked(nvml, nvml.nvmlDeviceGetCudaComputeCapability, handle)
    limit = _asked(nvml, nvml.nvmlDeviceGetPowerManagementLimit, handle)
    mig = _asked(nvml, nvml.nvmlDeviceGetMigMode, handle)
    pci = _asked(nvml, nvml.nvmlDeviceGetPciInfo, handle)
    return {
        **_identity(nvml, handle),
        "power_limit_watts": None if limit is None else limit / 1000,
        "compute_capability": None if capability is None else f"{capability[0]}.{capability[1]}",
        "cores": _asked(nvml, nvml.nvmlDeviceGetNumGpuCores, handle),
        "max_sm_clock_mhz": _asked(
            nvml, nvml.nvmlDeviceGetMaxClockInfo, handle, nvml.NVML_CLOCK_SM
        ),
        "pci": None if pci is None else _text(pci.busId),
        "processes": _processes(nvml, handle),
        "mig": bool(mig and mig[0]),
        "instances": _instances(nvml, handle) if mig and mig[0] else [],
    }


def _identity(nvml: Any, handle: Any) -> dict[str, Any]:
    memory = _asked(nvml, nvml.nvmlDeviceGetMemoryInfo, handle)
    return {
        "name": _text(nvml.nvmlDeviceGetName(handle)),
        "uuid": _text(nvml.nvmlDeviceGetUUID(handle)),
        "memory_bytes": None if memory is None else int(memory.total),
    }


def _processes(nvml: Any, handle: Any) -> list[int] | None:
    running = _asked(nvml, nvml.nvmlDeviceGetComputeRunningProcesses, handle)
    return None if running is None else [process.pid for process in running]


def _instances(nvml: Any, handle: Any) -> list[dict[str, Any]]:
    """The MIG instances of a card that is cut up."""
    instances = []
    for index in range(_asked(nvml, nvml.nvmlDeviceGetMaxMigDeviceCount, handle) or 0):
        part = _asked(nvml, nvml.nvmlDeviceGetMigDeviceHandleByIndex, handle, index)
        if part is not None:
            instances.append(_identity(nvml, part))
    return instances

"""Recorded libraries: NVML and amdsmi as they answer on machines that are not here."""

from __future__ import annotations

from types import SimpleNamespace as Answer
from typing import Any


class NVMLError(Exception):
    """NVML's own error."""


class NVMLNotSupportedError(NVMLError):
    """A card that does not know the question."""

    def __str__(self) -> str:
        return "Not Supported"


H200 = {
    "name": "NVIDIA H200", "uuid": "GPU-5f3ce1a0-0000-1111-2222-333344445555",
    "memory": 143771 * 2**20, "used": 2**30, "power_limit_mw": 700_000, "power_mw": 75_120,
    "energy_mj": 123_456_789, "capability": (9, 0), "cores": 16896, "clocks": {1: 1980, 2: 3201},
    "temperature": 31, "reasons": 0x1, "mig": (0, 0), "processes": [(4711, 2**29), (4712, None)],
}  # fmt: skip
RTX = {
    "name": "NVIDIA GeForce RTX 4090", "uuid": "GPU-aaaa0000-0000-1111-2222-333344445555",
    "memory": 24564 * 2**20, "used": 5, "power_limit_mw": 450_000, "power_mw": 30_000,
    "capability": (8, 9), "cores": 16384, "clocks": {1: 2520, 2: 10501}, "temperature": 40,
    "reasons": 0x4 | 0x40, "processes": [],
}  # fmt: skip
A100_MIG = {
    **H200,
    "name": "NVIDIA A100-SXM4-80GB",
    "uuid": "GPU-bbbb0000-0000-1111-2222-333344445555",
    "memory": 81920 * 2**20,
    "power_limit_mw": 400_000,
    "capability": (8, 0),
    "mig": (1, 1),
    "instances": [
        {"name": "NVIDIA A100-SXM4-80GB MIG 3g.40gb", "uuid": "MIG-1", "memory": 40192 * 2**20},
        {"name": "NVIDIA A100-SXM4-80GB MIG 1g.10gb", "uuid": "MIG-2", "memory": 9728 * 2**20},
    ],
}


class RecordedNvml:
    """pynvml, with cards from a record: what a record lacks is "Not Supported"."""

    NVMLError = NVMLError
    NVML_CLOCK_SM = 1
    NVML_CLOCK_MEM = 2
    NVML_TEMPERATURE_GPU = 0

    def __init__(self, *cards: dict[str, Any], newer_reasons: bool = True) -> None:
        self.cards = cards
        self.newer_reasons = newer_reasons
        self.users = 0

    def nvmlInit(self) -> None:  # noqa: N802
        self.users += 1

    def nvmlShutdown(self) -> None:  # noqa: N802
        self.users -= 1

    def __getattr__(self, name: str) -> Any:
        answers = {
            "nvmlDeviceGetCount": lambda: len(self.cards),
            "nvmlSystemGetDriverVersion": lambda: "580.159.04",
            "nvmlSystemGetCudaDriverVersion_v2": lambda: 13000,
            "nvmlDeviceGetHandleByIndex": lambda i: self.cards[i],
            "nvmlDeviceGetHandleByUUID": self._by_uuid,
            "nvmlDeviceGetName": lambda c: self._of(c, "name").encode(),
            "nvmlDeviceGetUUID": lambda c: self._of(c, "uuid"),
            "nvmlDeviceGetMemoryInfo": lambda c: Answer(
                total=self._of(c, "memory"), used=self._of(c, "used", 0)
            ),
            "nvmlDeviceGetPowerManagementLimit": lambda c: self._of(c, "power_limit_mw"),
            "nvmlDeviceGetPowerUsage": lambda c: self._of(c, "power_mw"),
            "nvmlDeviceGetTotalEnergyConsumption": lambda c: self._of(c, "energy_mj"),
            "nvmlDeviceGetCudaComputeCapability": lambda c: self._of(c, "capability"),
            "nvmlDeviceGetNumGpuCores": lambda c: self._of(c, "cores"),
            "nvmlDeviceGetClockInfo": lambda c, kind: self._of(c, "clocks")[kind],
            "nvmlDeviceGetMaxClockInfo": lambda c, kind: self._of(c, "clocks")[kind],
            "nvmlDeviceGetTemperature": lambda c, kind: self._of(c, "temperature"),
            "nvmlDeviceGetPciInfo": lambda c: self._of(c, "pci"),
            "nvmlDeviceGetMigMode": lambda c: self._of(c, "mig"),
            "nvmlDeviceGetMaxMigDeviceCount": lambda c: 7,
            "nvmlDeviceGetMigDeviceHandleByIndex": self._instance,
            "nvmlDeviceGetComputeRunningProcesses": self._processes,
            "nvmlDeviceGetGraphicsRunningProcesses": self._processes,
            "nvmlDeviceGetCurrentClocksThrottleReasons": lambda c: self._of(c, "reasons"),
        }
        if self.newer_reasons:
            answers["nvmlDeviceGetCurrentClocksEventReasons"] = lambda c: self._of(c, "reasons")
        else:
            answers["nvmlDeviceGetCurrentClocksEventReasons"] = self._unknown
        return answers[name]

    def _unknown(self, card: Any) -> Any:
        raise NVMLNotSupportedError

    def _of(self, card: dict[str, Any], key: str, default: Any = None) -> Any:
        value = card.get(key, default)
        if value is None:
            raise NVMLNotSupportedError
        return value

    def _by_uuid(self, uuid: str) -> dict[str, Any]:
        for card in self.cards:
            if card["uuid"] == uuid:
                return card
        raise NVMLError("Not Found")

    def _instance(self, card: dict[str, Any], index: int) -> dict[str, Any]:
        instances = card.get("instances", [])
        if index >= len(instances):
            raise NVMLError("Not Found")
        return instances[index]

    def _processes(self, card: dict[str, Any]) -> list[Answer]:
        return [Answer(pid=p, usedGpuMemory=m) for p, m in self._of(card, "processes")]


class AmdSmiException(Exception):  # noqa: N818 - the library's own name
    """amdsmi's own error."""


MI300X = {
    "asic": {
        "market_name": "AMD Instinct MI300X", "target_graphics_version": "gfx942",
        "num_compute_units": 304,
    },
    "uuid": "d9ff74a1-0000-1000-80fc-aabbccddeeff", "vram": 206141652992, "vram_used": 297_000_000,
    "cap": {"power_cap": 750_000_000}, "driver": {"driver_version": "6.10.5"},
    "power": {"current_socket_power": 141, "average_socket_power": "N/A"},
    "energy": {"energy_accumulator": 1000, "counter_resolution": 15.259, "timestamp": 1},
    "clocks": {"gfx": {"clk": 132, "max_clk": 2100}, "mem": {"clk": 900, "max_clk": 1300}},
    "hotspot": 38, "metrics": {"throttle_status": "N/A"},
    "processes": [{"pid": 99, "mem": 4096, "name": "python"}],
}  # fmt: skip


class RecordedAmdSmi:
    """amdsmi, with cards from a record."""

    AmdSmiException = AmdSmiException
    AmdSmiMemoryType = Answer(VRAM="vram")
    AmdSmiClkType = Answer(GFX="gfx", MEM="mem")
    AmdSmiTemperatureType = Answer(HOTSPOT="hotspot")
    AmdSmiTemperatureMetric = Answer(CURRENT="current")

    def __init__(self, *cards: dict[str, Any]) -> None:
        self.cards = cards
        self.users = 0

    def amdsmi_init(self) -> None:
        self.users += 1

    def amdsmi_shut_down(self) -> None:
        self.users -= 1

    def amdsmi_get_processor_handles(self) -> list[dict[str, Any]]:
        return list(self.cards)

    def __getattr__(self, name: str) -> Any:
        keys = {
            "amdsmi_get_gpu_asic_info": "asic",
            "amdsmi_get_gpu_driver_info": "driver",
            "amdsmi_get_power_cap_info": "cap",
            "amdsmi_get_gpu_device_uuid": "uuid",
            "amdsmi_get_gpu_memory_total": "vram",
            "amdsmi_get_gpu_memory_usage": "vram_used",
            "amdsmi_get_gpu_process_list": "processes",
            "amdsmi_get_power_info": "power",
            "amdsmi_get_energy_count": "energy",
            "amdsmi_get_temp_metric": "hotspot",
            "amdsmi_get_gpu_metrics_info": "metrics",
        }

        def answer(card: dict[str, Any], *_: Any) -> Any:
            if keys[name] not in card:
                raise AmdSmiException("AMDSMI_STATUS_NOT_SUPPORTED")
            return card[keys[name]]

        if name == "amdsmi_get_clock_info":
            return lambda card, kind: card["clocks"][kind]
        return answer


#: /sys of a machine with one CPU node and one MI300X, without amdsmi.
MI300X_SYSFS = {
    "/sys/class/kfd/kfd/topology/nodes/0/properties": "cpu_cores_count 96\nsimd_count 0",
    "/sys/class/kfd/kfd/topology/nodes/1/properties": (
        "cpu_cores_count 0\nsimd_count 1216\nsimd_per_cu 4\ngfx_target_version 90402\n"
        "device_id 29857\nunique_id 255\ndrm_render_minor 128\n"
    ),
    "/sys/class/drm/renderD128/device/mem_info_vram_total": "206141652992",
    "/sys/class/drm/renderD128/device/hwmon/hwmon7/power1_cap": "750000000",
    "/sys/module/amdgpu/version": "6.10.5",
}

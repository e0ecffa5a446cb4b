"""AMD GPUs, by amdsmi in a disposable process or only by /sys."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from accelbench.core.protocols import Device
from accelbench.hardware.common import (
    DeviceSearch,
    DriverMissingError,
    Files,
    HardwareError,
    NoDeviceError,
    Probe,
    SystemFiles,
    filter_visible,
    log,
    named_numbers,
    number,
    probe_in_process,
)

_NODES = "/sys/class/kfd/kfd/topology/nodes"

#: PCI device id → name, for cards whose /sys has none (amdgpu.ids of libdrm).
_NAMES = {
    0x738C: "AMD Instinct MI100", 0x7408: "AMD Instinct MI250X", 0x740C: "AMD Instinct MI250X",
    0x740F: "AMD Instinct MI210", 0x74A0: "AMD Instinct MI300A", 0x74A1: "AMD Instinct MI300X",
    0x74A5: "AMD Instinct MI325X", 0x75A0: "AMD Instinct MI350X", 0x75A3: "AMD Instinct MI355X",
}  # fmt: skip

#: Above this a power cap must be in microwatts, below it in watts: versions of amdsmi differ.
_LARGEST_WATTS = 100_000


def main() -> dict[str, Any]:
    """Return every card as plain values, or the reason why amdsmi gives none."""
    try:
        import amdsmi
    except (
        ImportError,
        KeyError,
        OSError,
    ) as error:  # amdsmi raises KeyError if its library is missing
        return {"missing": "package", "reason": f"{type(error).__name__}: {error}"}
    try:
        amdsmi.amdsmi_init()
    except amdsmi.AmdSmiException as error:
        return {"missing": "driver", "reason": str(error)}
    try:
        return read_cards(amdsmi)
    finally:
        amdsmi.amdsmi_shut_down()


def read_cards(smi: Any) -> dict[str, Any]:
    """Return all cards of an initialised amdsmi module."""
    handles = smi.amdsmi_get_processor_handles()
    return {"cards": [_card(smi, handle) for handle in handles]}


def _query(smi: Any, question: Callable[..., Any], *args: Any) -> Any:
    try:
        return question(*args)
    except smi.AmdSmiException:
        return None


def _card(smi: Any, handle: Any) -> dict[str, Any]:
    asic = _query(smi, smi.amdsmi_get_gpu_asic_info, handle) or {}
    driver = _query(smi, smi.amdsmi_get_gpu_driver_info, handle) or {}
    cap = (_query(smi, smi.amdsmi_get_power_cap_info, handle) or {}).get("power_cap")
    vram = smi.AmdSmiMemoryType.VRAM
    processes = _query(smi, smi.amdsmi_get_gpu_process_list, handle)
    return {
        "name": asic.get("market_name"),
        "architecture": asic.get("target_graphics_version"),
        "compute_units": asic.get("num_compute_units"),
        "uuid": _query(smi, smi.amdsmi_get_gpu_device_uuid, handle),
        "memory_bytes": _query(smi, smi.amdsmi_get_gpu_memory_total, handle, vram),
        "power_limit_watts": watts(cap),
        "driver": driver.get("driver_version"),
        "processes": None if processes is None else [p["pid"] for p in processes],
        "source": "amdsmi",
    }


def watts(cap: Any) -> float | None:
    """Return a power cap in watts, whichever unit this amdsmi uses."""
    if not isinstance(cap, (int, float)) or cap <= 0:
        return None
    return cap / 1e6 if cap > _LARGEST_WATTS else float(cap)


def read_sysfs(files: Files) -> list[dict[str, Any]]:
    """Return cards as the kernel describes them, without a library."""
    cards = []
    nodes = [node for node in files.names(_NODES) if node.isdigit()]
    for node in sorted(nodes, key=int):
        properties = named_numbers(files.text(f"{_NODES}/{node}/properties"))
        if not properties.get("simd_count"):
            continue  # a CPU, which the topology also lists
        card = f"/sys/class/drm/renderD{properties.get('drm_render_minor', 0)}/device"
        units = properties.get("simd_per_cu") or 0
        cards.append(
            {
                "name": _name(files, card, properties),
                "architecture": gfx_name(properties.get("gfx_target_version")),
                "compute_units": properties["simd_count"] // units if units else None,
                "uuid": f"GPU-{properties['unique_id']:x}" if properties.get("unique_id") else None,
                "memory_bytes": number(files.text(f"{card}/mem_info_vram_total")),
                "power_limit_watts": _power_cap(files, card),
                "driver": files.text("/sys/module/amdgpu/version"),
                "source": "/sys/class/kfd; install the extra rocm for processes and telemetry",
            }
        )
    return cards


def _name(files: Files, card: str, properties: dict[str, int]) -> str:
    known = _NAMES.get(properties.get("device_id", 0))
    return known or files.text(f"{card}/product_name") or "AMD GPU"


def gfx_name(version: int | None) -> str | None:
    """Format 90402 as gfx942: major, minor and stepping, the last two in hexadecimal."""
    if not version:
        return None
    return f"gfx{version // 10000}{version // 100 % 100:x}{version % 100:x}"


def _power_cap(files: Files, card: str) -> float | None:
    for folder in files.names(f"{card}/hwmon"):
        if re.fullmatch(r"hwmon\d+", folder):
            cap = number(files.text(f"{card}/hwmon/{folder}/power1_cap"))
            if cap:
                return cap / 1e6
    return None


_TIMEOUT_SECONDS = 30.0
_REMEDY = (
    "Needs an AMD GPU and its kernel driver (amdgpu with KFD, part of ROCm);"
    " then: accelbench setup rocm"
)


@dataclass(frozen=True)
class RocmDetector(DeviceSearch):
    """Detector of AMD GPUs that does not load HIP."""

    hardware = "rocm"
    colour = "#902424"
    remedy = _REMEDY

    files: Files = field(default_factory=SystemFiles)
    probe: Probe = probe_in_process
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)
    system: str = sys.platform

    def _devices(self) -> list[Device]:
        if self.system != "linux":
            raise DriverMissingError("ROCm is looked for on Linux only", "Use Linux.")
        if not self.files.names("/sys/class/kfd"):
            raise DriverMissingError("no AMD compute driver (KFD) is loaded")
        cards = self._read_by_library() or read_sysfs(self.files)
        if not cards:
            raise NoDeviceError("the AMD compute driver is loaded, but it has no GPU")
        return devices(cards, self.environment)

    def _read_by_library(self) -> list[dict[str, Any]]:
        try:
            answer = self.probe("accelbench.hardware.rocm", _TIMEOUT_SECONDS)
        except HardwareError as error:
            log.debug("amdsmi: %s", error)
            return []
        if "missing" in answer:
            log.debug("amdsmi: no %s: %s", answer["missing"], answer.get("reason"))
        cards: list[dict[str, Any]] = answer.get("cards", [])
        return cards


def devices(cards: list[dict[str, Any]], environment: Mapping[str, str]) -> list[Device]:
    """Return the cards that HIP shows to a worker of this environment."""
    for variable in ("ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"):
        cards = filter_visible(cards, environment.get(variable))
        if not cards:
            raise NoDeviceError(
                f"{variable}={environment[variable]} hides every GPU", f"Unset {variable}."
            )
    return [_device(card, ordinal) for ordinal, card in enumerate(cards)]


def _device(card: Mapping[str, Any], ordinal: int) -> Device:
    named = card.get("name") or ""
    known = ("name", "memory_bytes", "power_limit_watts", "driver")
    return Device(
        hardware="rocm",
        name=named
        if named not in ("", "N/A")
        else f"AMD GPU {card.get('architecture') or ''}".strip(),
        ordinal=ordinal,
        vendor="AMD",
        memory_bytes=card.get("memory_bytes"),
        power_limit_watts=card.get("power_limit_watts"),
        driver=card.get("driver") or "",
        details={k: v for k, v in card.items() if k not in known and v is not None},
    )

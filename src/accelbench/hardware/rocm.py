"""AMD GPUs: the kernel's driver tells that they are there, amdsmi tells the rest."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any

from accelbench.core.protocols import Absent, Device
from accelbench.hardware import amdgpu
from accelbench.hardware.common import (
    DriverMissingError,
    Files,
    HardwareError,
    NoDeviceError,
    Probe,
    SystemFiles,
    absent,
    log,
    probe_in_process,
    visible,
)

_TIMEOUT_SECONDS = 30.0
_REMEDY = (
    "Needs an AMD GPU and its kernel driver (amdgpu with KFD, part of ROCm);"
    " then: accelbench setup rocm"
)


class RocmDetector:
    """Finds AMD GPUs without loading HIP."""

    hardware = "rocm"
    colour = "#902424"

    def __init__(
        self,
        files: Files | None = None,
        probe: Probe = probe_in_process,
        environment: Mapping[str, str] = os.environ,
        system: str = sys.platform,
    ) -> None:
        self._files = files or SystemFiles()
        self._probe = probe
        self._environment = environment
        self._system = system

    def detect(self) -> list[Device | Absent]:
        try:
            return list(self._devices())
        except HardwareError as error:
            return [absent(self.hardware, error, _REMEDY)]

    def _devices(self) -> list[Device]:
        if self._system != "linux":
            raise DriverMissingError("ROCm is looked for on Linux only", "Use Linux.")
        if not self._files.names("/sys/class/kfd"):
            raise DriverMissingError("no AMD compute driver (KFD) is loaded")
        cards = self._by_library() or amdgpu.read_sysfs(self._files)
        if not cards:
            raise NoDeviceError("the AMD compute driver is loaded, but it has no GPU")
        return devices(cards, self._environment)

    def _by_library(self) -> list[dict[str, Any]]:
        """amdsmi's answers; none where it is missing or fails, since /sys has the essentials."""
        try:
            answer = self._probe("accelbench.hardware.amdgpu", _TIMEOUT_SECONDS)
        except HardwareError as error:
            log.debug("amdsmi: %s", error)
            return []
        if "missing" in answer:
            log.debug("amdsmi: no %s: %s", answer["missing"], answer.get("reason"))
        cards: list[dict[str, Any]] = answer.get("cards", [])
        return cards


def devices(cards: list[dict[str, Any]], environment: Mapping[str, str]) -> list[Device]:
    """The cards that HIP will show to a worker of this environment."""
    for variable in ("ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"):
        cards = visible(cards, environment.get(variable))
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

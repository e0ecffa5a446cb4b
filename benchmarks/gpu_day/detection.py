"""Detection: is what `accelbench hardware` says of the device what PyTorch finds?"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import psutil
import torch

from gpu_day.part import Recorder

#: NVML counts memory that the driver keeps for itself; the CUDA runtime does not.
MEMORY_RATIO = 1.05


def detection(at: Recorder) -> None:
    hardware = at.day.hardware
    command = [sys.executable, "-m", "accelbench", "hardware", hardware, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=at.day.folder)
    if done.returncode:
        raise RuntimeError(f"accelbench hardware: {done.stderr.strip()[-500:]}")
    found: dict[str, Any] = json.loads(done.stdout)["hardware"][hardware]
    at.figure("accelbench", found)
    at.same(f"{hardware} is present", found["present"], True)
    if not found["present"]:
        return
    device = found["devices"][0]
    if hardware == "cuda":
        _against_torch(at, device, len(found["devices"]))
    else:
        _memory(at, device, psutil.virtual_memory().total)


def _against_torch(at: Recorder, device: dict[str, Any], count: int) -> None:
    properties = torch.cuda.get_device_properties(0)
    capability = f"{properties.major}.{properties.minor}"
    at.figure("torch", {"name": properties.name, "memory_bytes": properties.total_memory,
                        "compute_capability": capability})  # fmt: skip
    at.same("number of devices", count, torch.cuda.device_count())
    at.same("name", device["name"], properties.name)
    at.same("compute capability", device["details"].get("compute_capability"), capability)
    _memory(at, device, properties.total_memory)
    for name in ("driver", "power_limit_watts"):
        at.check(name, device[name], "known", bool(device[name]))


def _memory(at: Recorder, device: dict[str, Any], expected: int) -> None:
    ratio = (device["memory_bytes"] or 0) / expected
    reached = 1 / MEMORY_RATIO <= ratio <= MEMORY_RATIO
    at.check("memory, detected ÷ usable", round(ratio, 4), f"1 to {MEMORY_RATIO}", reached)

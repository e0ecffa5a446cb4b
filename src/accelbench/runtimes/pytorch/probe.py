"""What torch itself sees. Imported in a throw-away process only: asking may hang a driver."""

from __future__ import annotations

import torch

from accelbench.core.protocols import Absent, Device


def devices() -> list[Device | Absent]:
    """One entry per device, or why there is none."""
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

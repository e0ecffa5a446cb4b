"""`reset_memory_stats`: the guide's call before a measurement of one's own."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path


def reset_memory_stats() -> None:
    """Forget the memory peaks of the calling process, as far as there are any.

    That is the allocator's peak on every CUDA or ROCm device that this process
    uses, and on Linux the process's own (VmHWM). Metal keeps no peak. Nothing
    is imported or started for it. `run_inference_benchmark` does not need it:
    it measures in fresh processes, each with a baseline of its own.
    """
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        for ordinal in range(torch.cuda.device_count()):
            torch.cuda.reset_peak_memory_stats(ordinal)
    # 5 is "reset the peak resident set size" of proc(5); other systems have no such file.
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_bytes(b"5\n")

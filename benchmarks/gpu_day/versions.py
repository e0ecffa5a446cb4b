"""Versions and environment: everything about the machine that the day's figures depend on."""

from __future__ import annotations

import platform

from accelbench.hardware.environment import describe_environment
from gpu_day.part import Recorder

PYTHONS = ("3.11", "3.12")


def versions(at: Recorder) -> None:
    import torch

    about = describe_environment()
    for name in ("os_release", "kernel", "python", "cpu", "cpus_logical", "effective_cpus",
                 "memory_total", "limits", "governor", "virtualisation", "packages", "variables",
                 "git"):  # fmt: skip
        at.figure(name, about.get(name))
    cudnn = torch.backends.cudnn.version() if torch.backends.cudnn.is_available() else None
    at.figure(
        "torch",
        {
            "version": torch.__version__,
            "cuda": torch.version.cuda,
            "cudnn": cudnn,
            "sees_cuda": torch.cuda.is_available(),
            "architectures": torch.cuda.get_arch_list(),
            "tf32_in_convolutions_by_default": torch.backends.cudnn.allow_tf32,
            "tf32_in_products_by_default": torch.backends.cuda.matmul.allow_tf32,
        },
    )
    minor = ".".join(platform.python_version_tuple()[:2])
    at.check("Python", minor, " or ".join(PYTHONS), minor in PYTHONS or None)

"""Environment variables that several engines are started with."""

from __future__ import annotations

#: NVML counts devices in this order; CUDA's own default puts the fastest first, and cuda:1
#: would then be another card than the one that was named.
CARDS_IN_ORDER = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}

#: The libraries that torch's modules come from say nothing and report nothing home.
MODULES_QUIET = {
    "TRANSFORMERS_VERBOSITY": "error",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "TOKENIZERS_PARALLELISM": "false",
}

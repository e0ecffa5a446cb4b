"""Documented devices that are not here: the rooflines behind `--simulate`.

Each line follows its maker's document, dense: rates "with sparsity" are halved, and fp32 is never
TF32. If a document gives units and a clock, the rate is their product, and the source states so. A
precision without a document is left out and refused: a guess would look like a fact in a result.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache

from accelbench.core.device_facts import facts_of
from accelbench.core.precision import PRECISIONS


@dataclass(frozen=True)
class Roofline:
    """The two limits of a device: operations and bytes per second."""

    name: str  # as --hardware PLATFORM:NAME asks for it
    device: str  # as people, and its driver, call it
    platforms: tuple[str, ...]
    teraops: Mapping[str, float]  # by precision: 1e12 operations a second, a product being two
    gigabytes_per_second: float  # 1e9 bytes
    memory_gib: float
    source: str
    #: Rates with sums in the precision itself, where those are faster: no estimate takes them.
    narrow_sums: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        figures = (*self.teraops.values(), self.gigabytes_per_second, self.memory_gib)
        whole = all((self.name, self.device, self.platforms, self.teraops, self.source))
        if not whole or min(figures) <= 0 or not set(self.teraops) <= set(PRECISIONS):
            raise ValueError(f"the roofline of {self.name or 'a device'} is not whole")

    def operations_per_second(self, precision: str) -> float | None:
        teraops = self.teraops.get(precision)
        return None if teraops is None else teraops * 1e12

    def highest_per_second(self, precision: str) -> float | None:
        """Return the rate that no product in a precision exceeds, however sums are kept."""
        rate = self.operations_per_second(precision)
        faster = self.narrow_sums.get(precision)
        return rate if faster is None else faster * 1e12

    @property
    def bytes_per_second(self) -> float:
        return self.gigabytes_per_second * 1e9

    @property
    def memory_bytes(self) -> int:
        return int(self.memory_gib * 2**30)


def documented_devices() -> tuple[Roofline, ...]:
    """Return every documented device."""
    return _TABLE


def rooflines_of(platform: str) -> tuple[Roofline, ...]:
    """Return every documented device of a platform."""
    return tuple(device for device in _TABLE if platform in device.platforms)


def roofline(platform: str, name: str) -> Roofline | None:
    """Return a documented device by its name; by "" or a kind of unit, the typical one."""
    name = _TYPICAL.get((platform, name), name)
    return next((device for device in rooflines_of(platform) if device.name == name), None)


def is_called(roofline: Roofline, name: str) -> bool:
    """Return whether a device that was found here is this one, by its driver's name."""
    return _bare(name) == _bare(roofline.device)


@cache
def called(platform: str, name: str) -> Roofline | None:
    """Return the documented device of a platform with this driver's name."""
    return next((entry for entry in rooflines_of(platform) if is_called(entry, name)), None)


@cache
def _bare(name: str) -> str:
    return " ".join(re.sub(r"\((r|tm|c|dgpu|igpu)\)", " ", name.lower()).split())


#: What a platform, or a kind of its units, stands for where no device is named: one that many
#: people have or rent. The result and a note name it.
_TYPICAL: Mapping[tuple[str, str], str] = {
    ("cuda", ""): "a100-80gb", ("rocm", ""): "mi300x", ("mps", ""): "m2", ("tpu", ""): "v5e",
    ("qnn", ""): "snapdragon-x-elite", ("openvino", ""): "max-1550",
    ("openvino", "gpu"): "max-1550", ("openvino", "npu"): "core-ultra-7-258v-npu",
    ("directml", ""): "rtx-4060", ("webgpu", ""): "rtx-4060", ("webnn", ""): "rtx-4060",
}  # fmt: skip

_CARDS = ("directml", "webgpu", "webnn")


def _nvidia(
    name: str,
    device: str,
    memory_gib: float,
    *,
    int8: float | None = None,
    bf16: bool = True,
    more: tuple[str, ...] = (),
) -> Roofline:
    """Return a card with the rates of `core/device_facts.py`; in 16 bits sums are in fp32."""
    facts = facts_of(device)
    assert facts is not None, device
    narrow = ("fp16", "bf16") if bf16 else ("fp16",)
    teraops = {"fp32": facts.fp32, **dict.fromkeys(narrow, facts.half)}
    if int8 is not None:
        teraops["int8"] = int8
    sums = facts.half_fp16_sums
    faster = {"fp16": sums} if sums is not None else {}
    return Roofline(
        name,
        device,
        (facts.kind, *more),
        teraops,
        facts.bandwidth,
        memory_gib,
        facts.source,
        faster,
    )


_TABLE = (
    _nvidia("v100-32gb", "Tesla V100-SXM2-32GB", 32, bf16=False),
    _nvidia("t4", "Tesla T4", 16, int8=130, bf16=False),
    _nvidia("a10", "NVIDIA A10", 24, int8=250),
    _nvidia("a100-40gb", "NVIDIA A100-SXM4-40GB", 40, int8=624),
    _nvidia("a100-80gb", "NVIDIA A100-SXM4-80GB", 80, int8=624),
    _nvidia("l4", "NVIDIA L4", 24, int8=242.5),
    _nvidia("l40s", "NVIDIA L40S", 48, int8=733),
    _nvidia("h100", "NVIDIA H100 80GB HBM3", 80, int8=1979),
    _nvidia("h200", "NVIDIA H200", 141, int8=1979),
    _nvidia("rtx-3090", "NVIDIA GeForce RTX 3090", 24, int8=284, more=_CARDS),
    # 242 AI TOPS with sparsity.
    _nvidia("rtx-4060", "NVIDIA GeForce RTX 4060", 8, int8=121, more=_CARDS),
    _nvidia("rtx-4090", "NVIDIA GeForce RTX 4090", 24, int8=660.6, more=_CARDS),
    Roofline("mi210", "AMD Instinct MI210", ("rocm",),
             {"fp32": 45.3, "fp16": 181, "bf16": 181, "int8": 181}, 1638.4, 64,
             "AMD Instinct MI210 data sheet, matrix figures"),
    Roofline("mi300x", "AMD Instinct MI300X", ("rocm",),
             {"fp32": 163.4, "fp16": 1307.4, "bf16": 1307.4, "int8": 2614.9}, 5300, 192,
             "AMD Instinct MI300X data sheet, without sparsity"),
    Roofline("rx-7900-xtx", "AMD Radeon RX 7900 XTX", ("rocm", *_CARDS),
             {"fp32": 61.4, "fp16": 122.8}, 960, 24, "AMD Radeon RX 7900 XTX specifications"),
    Roofline("m1", "Apple M1", ("mps", "webgpu"), {"fp32": 2.6}, 68.25, 16,
             "Apple, announcement of M1 (2.6 teraflops); 128 bit of LPDDR4X-4266"),
    Roofline("m1-pro", "Apple M1 Pro", ("mps", "webgpu"), {"fp32": 5.2}, 200, 32,
             "Apple, announcement of M1 Pro, 16 GPU cores"),
    Roofline("m1-max", "Apple M1 Max", ("mps", "webgpu"), {"fp32": 10.4}, 400, 64,
             "Apple, announcement of M1 Max, 32 GPU cores"),
    Roofline("m2", "Apple M2", ("mps", "webgpu"), {"fp32": 3.6}, 100, 24,
             "Apple, announcement of M2, 10 GPU cores"),
    Roofline("max-1550", "Intel Data Center GPU Max 1550", ("openvino",),
             {"fp32": 52.4, "fp16": 838.9, "bf16": 838.9, "int8": 1677.7}, 3276.8, 128,
             "Intel Data Center GPU Max Series technical overview: operations a clock of an Xe "
             "core × 128 cores × 1.6 GHz; HBM2e of 3276.8 GB/s"),
    Roofline("core-ultra-7-258v-npu", "Intel AI Boost of Core Ultra 7 258V", ("openvino", "webnn"),
             {"int8": 47}, 136.5, 32, "Intel Core Ultra 7 processor 258V specifications: NPU 47 "
             "TOPS in int8, 128 bit of LPDDR5X-8533"),
    Roofline("snapdragon-x-elite", "Hexagon NPU of Snapdragon X Elite", ("qnn", "webnn"),
             {"int8": 45}, 135, 64, "Qualcomm Snapdragon X Elite product brief"),
    Roofline("v4", "Google TPU v4", ("tpu",), {"bf16": 275, "int8": 275}, 1200, 32,
             "Google Cloud TPU v4 documentation, a chip"),
    Roofline("v5e", "Google TPU v5e", ("tpu",), {"bf16": 197, "int8": 393}, 819, 16,
             "Google Cloud TPU v5e documentation, a chip"),
    Roofline("v5p", "Google TPU v5p", ("tpu",), {"bf16": 459, "int8": 918}, 2765, 95,
             "Google Cloud TPU v5p documentation, a chip"),
    Roofline("v6e", "Google TPU v6e", ("tpu",), {"bf16": 918, "int8": 1836}, 1640, 32,
             "Google Cloud TPU v6e documentation, a chip"),
)  # fmt: skip

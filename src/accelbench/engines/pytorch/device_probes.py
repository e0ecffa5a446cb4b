"""Probes in PyTorch: the operators whose rates are a device's limits.

Matrices are random: a device that multiplies zeros draws less power and clocks higher. Outputs are
allocated once, so that no step waits for pages. fp32 is fp32: the place has switched TF32 off.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from accelbench.core.calibration import ProbeKind, ProbeSpec

Step = Callable[[], object]

#: Batch, heads and width of a head: a layer of a base model on a CPU, a batch of a larger one on
#: an accelerator.
ATTENTION_ON_CPUS = (1, 12, 64)
ATTENTION_ELSEWHERE = (8, 16, 64)


def step_of(torch: Any, spec: ProbeSpec, device: Any) -> Step:
    """Return one step of a probe, its values on the device; raise as torch does."""
    torch.manual_seed(0)
    return _STEPS[spec.kind](torch, spec, device)


def cache_bytes(torch: Any, device: Any) -> dict[str, int]:
    """Return the caches that the engine says an accelerator has, by level."""
    if device.type != "cuda":
        return {}
    properties = torch.cuda.get_device_properties(device)
    size = int(getattr(properties, "L2_cache_size", 0))
    return {"L2": size} if size else {}


def attention_shape(hardware: str) -> tuple[int, int, int]:
    """Return batch, heads and width of a head of the attention probe."""
    return ATTENTION_ON_CPUS if hardware == "cpu" else ATTENTION_ELSEWHERE


def _dtype(torch: Any, precision: str) -> Any:
    return {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}[precision]


def _product(torch: Any, spec: ProbeSpec, device: Any) -> Step:
    side = (spec.size, spec.size)
    if spec.precision == "int8":
        first, second = (
            torch.randint(-128, 128, side, dtype=torch.int8, device=device) for _ in range(2)
        )
        if device.type != "cpu":
            second = second.t()  # cuBLAS takes int8 with the second matrix by columns alone
        sums = torch.empty(side, dtype=torch.int32, device=device)
        return lambda: torch._int_mm(first, second, out=sums)
    dtype = _dtype(torch, spec.precision)
    first, second = (torch.randn(side, device=device).to(dtype) for _ in range(2))
    product = torch.empty(side, dtype=dtype, device=device)
    return lambda: torch.mm(first, second, out=product)


def _attention(torch: Any, spec: ProbeSpec, device: Any) -> Step:
    batch, heads, width = attention_shape(device.type)
    shape = (batch, heads, spec.size, width)
    dtype = _dtype(torch, spec.precision)
    query, key, value = (torch.randn(shape, device=device).to(dtype) for _ in range(3))
    attend = torch.nn.functional.scaled_dot_product_attention
    return lambda: attend(query, key, value)


def _array(torch: Any, spec: ProbeSpec, device: Any) -> Step:
    count = spec.size // 4
    source, target = (torch.ones(count, device=device) for _ in range(2))
    if not spec.name.endswith("-triad"):
        return lambda: target.copy_(source)
    other = torch.ones(count, device=device)
    return lambda: torch.add(source, other, alpha=3.0, out=target)


def _launch(torch: Any, spec: ProbeSpec, device: Any) -> Step:
    source, target = torch.ones(spec.size, device=device), torch.empty(spec.size, device=device)
    return lambda: torch.add(source, source, out=target)


_STEPS: dict[ProbeKind, Callable[[Any, ProbeSpec, Any], Step]] = {
    ProbeKind.MATRIX: _product,
    ProbeKind.ATTENTION: _attention,
    ProbeKind.MEMORY: _array,
    ProbeKind.CACHE: _array,
    ProbeKind.LAUNCH: _launch,
}

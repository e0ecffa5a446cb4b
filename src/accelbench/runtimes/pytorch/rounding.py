"""What a precision costs a model: the same fp32 pass with numbers rounded as it would round them.

In bf16 and fp16 every result is rounded; in int8 and tf32 what enters a product is, in int8 to 255
steps between its least and its largest value, weights and what they are multiplied with alike. How
far that moves the outputs is the model's own sensitivity: BERT's tiny size 0.008 in bf16 and
0.01 in int8, X-CLIP's 0.12 and 0.3, in units of what other inputs move.

Imports torch: import this module only where a model is open.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

_aten = torch.ops.aten

#: What multiplies weights or what was computed with something computed; in inference these come
#: undivided. A table of embeddings is quantised like a weight.
_PRODUCTS = frozenset(
    (
        _aten.linear.default,
        _aten.matmul.default,
        _aten.mm.default,
        _aten.addmm.default,
        _aten.bmm.default,
        _aten.baddbmm.default,
        _aten.einsum.default,
        _aten._grouped_mm.default,
        _aten.convolution.default,
        _aten.conv1d.default,
        _aten.conv2d.default,
        _aten.conv3d.default,
        _aten.conv_transpose1d.default,
        _aten.conv_transpose2d.input,
        _aten.scaled_dot_product_attention.default,
        _aten.embedding.default,
        # What training adds: attention that keeps what its backward pass needs, and such passes.
        _aten.convolution_backward.default,
        _aten._scaled_dot_product_flash_attention_for_cpu.default,
        _aten._scaled_dot_product_flash_attention_for_cpu_backward.default,
    )
)

#: Masks hold the lowest number there is; steps between that and anything would leave nothing.
_MASK = -1e9

Rounder = Callable[[torch.Tensor], torch.Tensor]


class Rounded(TorchDispatchMode):  # type: ignore[misc]  # mypy skips torch
    """While it is entered, fp32 is rounded as another precision rounds."""

    def __init__(self, precision: str) -> None:
        super().__init__()
        self._round = _ROUNDERS[precision]
        self._results = precision not in ("int8", "tf32")

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        if func in _PRODUCTS:
            args = tuple(self._rounded(arg) for arg in args)
        output = func(*args, **(kwargs or {}))
        return self._rounded(output) if self._results and not func.is_view else output

    def _rounded(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor) and value.dtype == torch.float32 and value.numel() > 1:
            return self._round(value)
        if isinstance(value, (list, tuple)):
            return type(value)(self._rounded(part) for part in value)
        return value


def _narrow(dtype: torch.dtype) -> Rounder:
    return lambda value: value.to(dtype).to(torch.float32)


def _ten_bits(value: torch.Tensor) -> torch.Tensor:
    """Return the numbers rounded to ten bits after the first, as TF32 does; fp16 has as many."""
    bits = value.contiguous().view(torch.int32)
    return ((bits + 0x1000) & ~0x1FFF).view(torch.float32)


def _stepped(value: torch.Tensor) -> torch.Tensor:
    """To 255 steps between the least and the largest, zero being one of them."""
    low, high = (float(bound) for bound in value.clamp(_MASK, -_MASK).aminmax())
    if low <= _MASK:
        return value
    step = (max(high, 0.0) - min(low, 0.0)) / 255
    return torch.round(value / step) * step if step else value


_ROUNDERS: dict[str, Rounder] = {
    "bf16": _narrow(torch.bfloat16),
    "fp16": _narrow(torch.float16),
    "int8": _stepped,
    "tf32": _ten_bits,
}

"""Convolutions and pools: channels last inside, as torch has them outside.

XLA's CPU backend calculates with the outputs of a kernel last. Kernels that are
kept so save a transposition of all of them in every call, which is half of
ResNet-50's time at batch 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
from jax import Array, lax

from accelbench.runtimes.jax.lowering.table import op

_CHANNELS_LAST = {
    1: ("NHC", "HIO", "NHC"),
    2: ("NHWC", "HWIO", "NHWC"),
    3: ("NDHWC", "DHWIO", "NDHWC"),
}


def outputs_last(kernel: Array) -> Array:
    """From torch's order (outputs, inputs, sizes) to XLA's (sizes, inputs, outputs)."""
    return jnp.transpose(kernel, (*range(2, kernel.ndim), 1, 0))


def outputs_first(kernel: Array) -> Array:
    """Back to torch's order."""
    n = kernel.ndim
    return jnp.transpose(kernel, (n - 1, n - 2, *range(n - 2)))


def _last(x: Array) -> Array:
    return jnp.moveaxis(x, 1, -1)


def _first(x: Array) -> Array:
    return jnp.moveaxis(x, -1, 1)


@op("convolution.default")
def _convolution(
    x: Array, weight: Array, bias: Array | None, stride: Sequence[int], padding: Sequence[int],
    dilation: Sequence[int], transposed: bool, output_padding: Sequence[int], groups: int,
    *, laid_out: bool = False,
) -> Array:  # fmt: skip
    """`laid_out`: the kernel lies as XLA wants it, spatial sizes first and outputs last."""
    n = x.ndim - 2
    pads = [(p, p) for p in padding]
    fractional = (1,) * n
    if transposed:
        # The gradient of a convolution: the kernel turned round, the input spread by the stride.
        inner, outer = weight.shape[0] // groups, weight.shape[1]
        weight = weight.reshape(groups, inner, outer, *weight.shape[2:]).swapaxes(1, 2)
        weight = jnp.flip(weight.reshape(groups * outer, inner, *weight.shape[3:]), range(2, n + 2))
        reach = [d * (k - 1) for d, k in zip(dilation, weight.shape[2:], strict=True)]
        pads = [(r - p, r - p + o) for r, p, o in zip(reach, padding, output_padding, strict=True)]
        stride, fractional = (1,) * n, tuple(stride)
    kernel = weight if laid_out else outputs_last(weight)
    y = lax.conv_general_dilated(
        _last(x), kernel, tuple(stride), pads,
        lhs_dilation=fractional, rhs_dilation=tuple(dilation), feature_group_count=groups,
        dimension_numbers=_CHANNELS_LAST[n],
    )  # fmt: skip
    return _first(y if bias is None else y + bias)


def _window(
    n: int, size: Sequence[int], stride: Sequence[int], padding: Any
) -> tuple[Any, Any, Any]:
    full = [*size] * (n if len(size) == 1 else 1)
    steps = ([*stride] * (n if len(stride) == 1 else 1)) or full
    pads = padding if isinstance(padding, (list, tuple)) else [padding]
    pads = [*pads] * (n if len(pads) == 1 else 1)
    return (1, *full, 1), (1, *steps, 1), ((0, 0), *((p, p) for p in pads), (0, 0))


@op("max_pool2d_with_indices.default")
def _max_pool(
    x: Array, size: Any, stride: Any = (), padding: Any = 0, dilation: Any = 1, ceil: bool = False
) -> tuple[Array, None]:
    if ceil or any(d != 1 for d in (dilation if isinstance(dilation, list) else [dilation])):
        raise NotImplementedError("a pool that rounds up or is dilated")
    window, steps, pads = _window(2, size, stride, padding)
    least = -jnp.inf if jnp.issubdtype(x.dtype, jnp.floating) else jnp.iinfo(x.dtype).min
    return _first(lax.reduce_window(_last(x), least, lax.max, window, steps, pads)), None


@op("avg_pool2d.default")
def _avg_pool(
    x: Array, size: Any, stride: Any = (), padding: Any = 0, ceil: bool = False,
    count_pads: bool = True, divisor: int | None = None,
) -> Array:  # fmt: skip
    window, steps, pads = _window(2, size, stride, padding)
    if ceil or (not count_pads and any(p != (0, 0) for p in pads)):
        raise NotImplementedError("this form of an average pool")
    total = lax.reduce_window(_last(x), 0.0, lax.add, window, steps, pads)
    return _first(total / (divisor or math.prod(window)))


@op("adaptive_avg_pool2d.default", "_adaptive_avg_pool2d.default")
def _adaptive_avg_pool(x: Array, size: Sequence[int]) -> Array:
    (h, w), (rows, columns) = x.shape[-2:], size
    if h % rows or w % columns:
        raise NotImplementedError("an adaptive pool whose windows differ")
    return x.reshape(*x.shape[:-2], rows, h // rows, columns, w // columns).mean((-3, -1))


@op("upsample_nearest2d.vec", "upsample_nearest2d.default")
def _upsample(
    x: Array, size: Sequence[int] | None, scales: Sequence[float] | None = None, *_: Any
) -> Array:
    wanted = size or [int(n * s) for n, s in zip(x.shape[-2:], scales or (), strict=True)]
    for axis, n in zip((-2, -1), wanted, strict=True):
        have = x.shape[axis]
        if n % have == 0:
            x = jnp.repeat(x, n // have, axis)
        else:
            x = jnp.take(x, jnp.arange(n) * have // n, axis)
    return x

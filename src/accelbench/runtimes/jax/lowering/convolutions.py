"""Convolutions and pools: channels last inside, as torch has them outside.

XLA's CPU backend calculates with the outputs of a kernel last. Kernels that are
kept so save a transposition of all of them in every call, which is half of
ResNet-50's time at batch 1.

Normalisations, in fp32 as torch's kernels calculate them.
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


def _normed(x: Array, axes: Any, eps: float) -> tuple[Array, Array, Array]:
    """In fp32, as torch: what is normed, its mean and the reciprocal of its deviation."""
    x = x.astype(jnp.float32)
    mean = jnp.mean(x, axes, keepdims=True)
    scale = lax.rsqrt(jnp.mean(jnp.square(x - mean), axes, keepdims=True) + eps)
    return (x - mean) * scale, mean, scale


@op("native_layer_norm.default")
def _layer_norm(
    x: Array, shape: Sequence[int], weight: Array | None, bias: Array | None, eps: float
) -> Any:
    y, mean, scale = _normed(x, tuple(range(-len(shape), 0)), eps)
    y = y if weight is None else y * weight
    return (y if bias is None else y + bias), mean, scale


@op("layer_norm.default")
def _whole_layer_norm(
    x: Array, shape: Sequence[int], weight: Any = None, bias: Any = None, eps: float = 1e-5, *_: Any
) -> Array:
    return _layer_norm(x, shape, weight, bias, eps)[0]


def _by_channel(x: Array | None, n: int) -> Array | None:
    return None if x is None else x.reshape(1, -1, *(1,) * (n - 2))


@op("native_group_norm.default")
def _group_norm(
    x: Array, weight: Array | None, bias: Array | None, n: int, _c: int, _hw: int, group: int,
    eps: float,
) -> tuple[Array, None, None]:  # fmt: skip
    y = _normed(x.reshape(n, group, -1), -1, eps)[0].reshape(x.shape)
    weight, bias = _by_channel(weight, x.ndim), _by_channel(bias, x.ndim)
    y = y if weight is None else y * weight
    return (y if bias is None else y + bias), None, None


def _channels_normed(
    x: Array, weight: Array | None, bias: Array | None, mean: Array, var: Array, eps: float
) -> Array:
    """By given statistics: one product and one sum an element."""
    scale = lax.rsqrt(var.astype(jnp.float32) + eps)
    scale = scale if weight is None else scale * weight
    shift = -mean * scale if bias is None else bias - mean * scale
    return x * _by_channel(scale, x.ndim) + _by_channel(shift, x.ndim)


@op("_native_batch_norm_legit_no_training.default")
def _batch_norm(
    x: Array, weight: Array | None, bias: Array | None, mean: Array, var: Array, _momentum: float,
    eps: float,
) -> tuple[Array, None, None]:  # fmt: skip
    return _channels_normed(x, weight, bias, mean, var, eps), None, None


@op("_native_batch_norm_legit_functional.default")
def _batch_norm_training(
    x: Array, weight: Array | None, bias: Array | None, mean: Array, var: Array, training: bool,
    momentum: float, eps: float,
) -> tuple[Array, Array | None, Array | None, Array, Array]:  # fmt: skip
    """In training: by the batch's own statistics, and the running ones come back renewed."""
    if not training:
        return _channels_normed(x, weight, bias, mean, var, eps), None, None, mean, var
    axes = (0, *range(2, x.ndim))
    wide = x.astype(jnp.float32)
    own = jnp.mean(wide, axes)
    spread = jnp.mean(jnp.square(wide - _by_channel(own, x.ndim)), axes)
    y = _channels_normed(wide, weight, bias, own, spread, eps)
    count = x.size // x.shape[1]
    unbiased = spread * (count / max(count - 1, 1))
    renewed = [old + momentum * (new - old) for old, new in ((mean, own), (var, unbiased))]
    return y, own, lax.rsqrt(spread + eps), renewed[0], renewed[1]

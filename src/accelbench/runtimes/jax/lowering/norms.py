"""Normalisations, in fp32 as torch's kernels calculate them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
from jax import Array, lax

from accelbench.runtimes.jax.lowering.table import op


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

"""Operators that work element by element, and those that only make arrays.

Operators that draw. Each node gets a key of its own; without keys nothing is dropped.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax

from accelbench.runtimes.jax.lowering.table import each, op

each(
    {
        "abs": jnp.abs, "acos": jnp.arccos, "asin": jnp.arcsin, "atan": jnp.arctan,
        "bitwise_not": jnp.bitwise_not, "ceil": jnp.ceil, "cos": jnp.cos, "cosh": jnp.cosh,
        "erf": lax.erf, "exp": jnp.exp, "exp2": jnp.exp2, "expm1": jnp.expm1, "floor": jnp.floor,
        "isinf": jnp.isinf, "isnan": jnp.isnan, "log": jnp.log, "log1p": jnp.log1p,
        "log2": jnp.log2, "logical_not": jnp.logical_not, "neg": jnp.negative,
        "reciprocal": jnp.reciprocal, "relu": jax.nn.relu, "round": jnp.round, "rsqrt": lax.rsqrt,
        "sigmoid": jax.nn.sigmoid, "sign": jnp.sign, "silu": jax.nn.silu, "sin": jnp.sin,
        "sinh": jnp.sinh, "sqrt": jnp.sqrt, "square": jnp.square, "tan": jnp.tan,
        "tanh": jnp.tanh, "trunc": jnp.trunc, "atan2": jnp.arctan2,
        "logical_and": jnp.logical_and, "logical_or": jnp.logical_or,
        "logical_xor": jnp.logical_xor, "maximum": jnp.maximum, "minimum": jnp.minimum,
        # What it keeps for the backward pass beside the result, JAX has no use for.
        "log_sigmoid_forward": lambda x: (jax.nn.log_sigmoid(x), None),
    },
    "default",
)  # fmt: skip
each(
    {
        "bitwise_and": jnp.bitwise_and, "bitwise_or": jnp.bitwise_or,
        "bitwise_xor": jnp.bitwise_xor, "eq": jnp.equal, "fmod": jnp.fmod, "ge": jnp.greater_equal,
        "gt": jnp.greater, "le": jnp.less_equal, "lt": jnp.less, "mul": jnp.multiply,
        "ne": jnp.not_equal, "pow": jnp.power, "remainder": jnp.remainder,
    },
    "Tensor", "Scalar", "Tensor_Tensor", "Tensor_Scalar",
)  # fmt: skip


@op("add.Tensor", "add.Scalar")
def _add(x: Array, y: Any, alpha: float = 1) -> Array:
    return jnp.add(x, y if alpha == 1 else y * alpha)


@op("sub.Tensor", "sub.Scalar")
def _sub(x: Array, y: Any, alpha: float = 1) -> Array:
    return jnp.subtract(x, y if alpha == 1 else y * alpha)


@op("rsub.Scalar", "rsub.Tensor")
def _rsub(x: Array, y: Any, alpha: float = 1) -> Array:
    return jnp.subtract(y, x if alpha == 1 else x * alpha)


@op("div.Tensor", "div.Scalar", "div.Tensor_mode", "div.Scalar_mode")
def _div(x: Array, y: Any, rounding_mode: str | None = None) -> Array:
    if rounding_mode == "floor":
        return jnp.floor_divide(x, y)
    quotient = jnp.true_divide(x, y)
    return jnp.trunc(quotient) if rounding_mode == "trunc" else quotient


@op("pow.Scalar")
def _pow_of_number(base: float, x: Array) -> Array:
    return jnp.power(base, x)


@op("gelu.default")
def _gelu(x: Array, approximate: str = "none") -> Array:
    return jax.nn.gelu(x, approximate=approximate == "tanh")


@op("leaky_relu.default")
def _leaky_relu(x: Array, slope: float = 0.01) -> Array:
    return jax.nn.leaky_relu(x, slope)


@op("elu.default")
def _elu(x: Array, alpha: float = 1.0, scale: float = 1.0, input_scale: float = 1.0) -> Array:
    return scale * jnp.where(x > 0, x, alpha * jnp.expm1(jnp.minimum(x, 0) * input_scale))


@op("softplus.default")
def _softplus(x: Array, beta: float = 1, threshold: float = 20) -> Array:
    return jnp.where(x * beta > threshold, x, jax.nn.softplus(x * beta) / beta)


@op("clamp.default", "clamp.Tensor")
def _clamp(x: Array, least: Any = None, most: Any = None) -> Array:
    return jnp.clip(x, least, most)


@op("hardtanh.default")
def _hardtanh(x: Array, least: float = -1, most: float = 1) -> Array:
    return jnp.clip(x, least, most)


@op("clamp_min.default", "clamp_min.Tensor")
def _clamp_min(x: Array, least: Any) -> Array:
    return jnp.maximum(x, least)


@op("clamp_max.default", "clamp_max.Tensor")
def _clamp_max(x: Array, most: Any) -> Array:
    return jnp.minimum(x, most)


@op("where.self", "where.ScalarOther", "where.ScalarSelf", "where.Scalar")
def _where(condition: Array, x: Any, y: Any) -> Array:
    return jnp.where(condition, x, y)


@op("masked_fill.Scalar", "masked_fill.Tensor")
def _masked_fill(x: Array, mask: Array, value: Any) -> Array:
    return jnp.where(mask, value, x)


@op(
    "clone.default", "alias.default", "contiguous.default", "detach_.default", "to.dtype",
    "lift_fresh_copy.default", "_to_copy.default",
)  # fmt: skip
def _same(x: Array, *_: Any, **__: Any) -> Array:
    return x  # the dtype follows from the node


@op("detach.default")
def _detach(x: Array) -> Array:
    return lax.stop_gradient(x)


@op("arange.start_step")
def _arange(start: float, end: float, step: float = 1, **_: Any) -> Array:
    return jnp.arange(start, end, step)


@op("full.default")
def _full(size: Sequence[int], value: Any, **_: Any) -> Array:
    return jnp.full(size, value)


@op("full_like.default")
def _full_like(x: Array, value: Any, **_: Any) -> Array:
    return jnp.full(x.shape, value)


@op("empty_permuted.default", "empty.memory_format", "zeros.default")
def _zeros(size: Sequence[int], *_: Any, **__: Any) -> Array:
    return jnp.zeros(size)


@op("ones.default")
def _ones(size: Sequence[int], *_: Any, **__: Any) -> Array:
    return jnp.ones(size)


@op("new_zeros.default", "new_empty.default")
def _new_zeros(_x: Array, size: Sequence[int], **_: Any) -> Array:
    return jnp.zeros(size)


@op("zeros_like.default", "empty_like.default")
def _zeros_like(x: Array, **_: Any) -> Array:
    return jnp.zeros_like(x)


@op("ones_like.default")
def _ones_like(x: Array, **_: Any) -> Array:
    return jnp.ones_like(x)


@op("scalar_tensor.default")
def _scalar_tensor(value: Any, **_: Any) -> Array:
    return jnp.asarray(value)


def dropped(x: Array, p: float, key: Array | None) -> Array:
    """Some values are 0 by chance, the others larger by as much."""
    if p == 0 or key is None:
        return x
    if p >= 1:
        return jnp.zeros_like(x)
    kept = jax.random.bernoulli(key, 1 - p, x.shape)
    return jnp.where(kept, x / (1 - p), 0)


@op("dropout.default", random=True)
def _dropout(x: Array, p: float, train: bool, *, key: Array | None = None) -> Array:
    return dropped(x, p if train else 0, key)


@op("native_dropout.default", random=True)
def _native_dropout(
    x: Array, p: float, train: bool | None, *, key: Array | None = None
) -> tuple[Array, Array]:
    ones = dropped(jnp.ones(x.shape), 0 if train is False else p, key)
    return x * ones, ones > 0


def _drawn(key: Array | None, what: str) -> Array:
    """The key of a node that cannot do without: what it draws is no dropout."""
    if key is None:
        raise NotImplementedError(f"{what} outside training")
    return key


@op("bernoulli.p", random=True)
def _bernoulli(x: Array, p: float = 0.5, *, key: Array | None = None, **_: Any) -> Array:
    return jax.random.bernoulli(_drawn(key, "bernoulli"), p, x.shape)


@op("bernoulli.default", random=True)
def _bernoulli_each(x: Array, *, key: Array | None = None, **_: Any) -> Array:
    return jax.random.bernoulli(_drawn(key, "bernoulli"), x)


@op("rand.default", random=True)
def _rand(size: Sequence[int], *, key: Array | None = None, **_: Any) -> Array:
    return jax.random.uniform(_drawn(key, "rand"), size)


@op("rand_like.default", random=True)
def _rand_like(x: Array, *, key: Array | None = None, **_: Any) -> Array:
    return jax.random.uniform(_drawn(key, "rand_like"), x.shape)


@op("randn.default", random=True)
def _randn(size: Sequence[int], *, key: Array | None = None, **_: Any) -> Array:
    return jax.random.normal(_drawn(key, "randn"), size)


@op("randn_like.default", random=True)
def _randn_like(x: Array, *, key: Array | None = None, **_: Any) -> Array:
    return jax.random.normal(_drawn(key, "randn_like"), x.shape)

"""Operators that calculate: element by element, over whole axes, products, and those that draw."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax

from accelbench.engines.jax.lowering.operators import each, op

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


each(
    {
        "pow.Scalar": jnp.power, "leaky_relu.default": jax.nn.leaky_relu,
        "clamp.default clamp.Tensor": jnp.clip,
        "hardtanh.default": lambda x, least=-1, most=1: jnp.clip(x, least, most),
        "clamp_min.default clamp_min.Tensor": jnp.maximum,
        "clamp_max.default clamp_max.Tensor": jnp.minimum,
        "where.self where.ScalarOther where.ScalarSelf where.Scalar": jnp.where,
        "masked_fill.Scalar masked_fill.Tensor": lambda x, mask, value: jnp.where(mask, value, x),
        # The dtype follows from the node.
        "clone.default alias.default contiguous.default detach_.default to.dtype"
        " lift_fresh_copy.default _to_copy.default": lambda x, *_, **__: x,
        "detach.default": lax.stop_gradient,
        "arange.start_step": lambda start, end, step=1, **_: jnp.arange(start, end, step),
        "full.default": lambda size, value, **_: jnp.full(size, value),
        "full_like.default": lambda x, value, **_: jnp.full(x.shape, value),
        "empty_permuted.default empty.memory_format zeros.default":
            lambda size, *_, **__: jnp.zeros(size),
        "ones.default": lambda size, *_, **__: jnp.ones(size),
        "new_zeros.default new_empty.default": lambda _x, size, **_: jnp.zeros(size),
        "zeros_like.default empty_like.default": lambda x, **_: jnp.zeros_like(x),
        "ones_like.default": lambda x, **_: jnp.ones_like(x),
        "scalar_tensor.default": lambda value, **_: jnp.asarray(value),
        "cumsum.default": lambda x, dim, **_: jnp.cumsum(x, dim),
    }
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


@op("gelu.default")
def _gelu(x: Array, approximate: str = "none") -> Array:
    return jax.nn.gelu(x, approximate=approximate == "tanh")


@op("elu.default")
def _elu(x: Array, alpha: float = 1.0, scale: float = 1.0, input_scale: float = 1.0) -> Array:
    return scale * jnp.where(x > 0, x, alpha * jnp.expm1(jnp.minimum(x, 0) * input_scale))


@op("softplus.default")
def _softplus(x: Array, beta: float = 1, threshold: float = 20) -> Array:
    return jnp.where(x * beta > threshold, x, jax.nn.softplus(x * beta) / beta)


def dropped(x: Array, p: float, key: Array | None) -> Array:
    """Make some values 0 by chance, and the others larger by as much."""
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


def _draw(name: str, draw: Callable[..., Array]) -> None:
    """Enter an operator whose result is drawn: outside training it cannot do without a key."""

    @op(name, random=True)
    def drawn(*args: Any, key: Array | None = None, **_: Any) -> Array:
        if key is None:
            raise NotImplementedError(f"{name.partition('.')[0]} outside training")
        return draw(key, *args)


_draw("bernoulli.p", lambda key, x, p=0.5: jax.random.bernoulli(key, p, x.shape))
_draw("bernoulli.default", lambda key, x: jax.random.bernoulli(key, x))
_draw("rand.default", lambda key, size: jax.random.uniform(key, size))
_draw("rand_like.default", lambda key, x: jax.random.uniform(key, x.shape))
_draw("randn.default", lambda key, size: jax.random.normal(key, size))
_draw("randn_like.default", lambda key, x: jax.random.normal(key, x.shape))


def wide(x: Array) -> Array:
    """Return 16-bit floats in fp32: torch's kernels sum so, and round once at the end."""
    narrow = jnp.issubdtype(x.dtype, jnp.floating) and x.dtype.itemsize < 4
    return x.astype(jnp.float32) if narrow else x


def _axes(dim: Any) -> Any:
    return tuple(dim) or None if isinstance(dim, (list, tuple)) else dim


def _reduction(function: Callable[..., Array]) -> Callable[..., Array]:
    def reduce(x: Array, dim: Any = None, keepdim: bool = False, **_: Any) -> Array:
        return function(x, axis=_axes(dim), keepdims=keepdim)

    return reduce


for _names, _function in (
    ("sum.default sum.dim_IntList", jnp.sum),
    ("mean.default mean.dim", jnp.mean),
    ("prod.default prod.dim_int", jnp.prod),
    ("any.default any.dim any.dims", jnp.any),
    ("all.default all.dim all.dims _is_all_true.default", jnp.all),
    ("max.default amax.default", jnp.max),
    ("min.default amin.default", jnp.min),
    ("argmax.default", jnp.argmax),
    ("argmin.default", jnp.argmin),
):
    op(*_names.split())(_reduction(_function))


@op("max.dim")
def _max_dim(x: Array, dim: int, keepdim: bool = False) -> tuple[Array, Array]:
    return jnp.max(x, dim, keepdims=keepdim), jnp.argmax(x, dim, keepdims=keepdim)


@op("min.dim")
def _min_dim(x: Array, dim: int, keepdim: bool = False) -> tuple[Array, Array]:
    return jnp.min(x, dim, keepdims=keepdim), jnp.argmin(x, dim, keepdims=keepdim)


@op("var.correction")
def _var(x: Array, dim: Any = None, correction: float = 1, keepdim: bool = False) -> Array:
    return jnp.var(x, _axes(dim), ddof=1 if correction is None else correction, keepdims=keepdim)


@op("linalg_vector_norm.default")
def _vector_norm(
    x: Array, order: float = 2, dim: Any = None, keepdim: bool = False, **_: Any
) -> Array:
    if order != 2:
        raise NotImplementedError(f"a vector norm of order {order}")
    return jnp.sqrt(jnp.sum(x * x, _axes(dim), keepdims=keepdim))


@op("_softmax.default", "softmax.int")
def _softmax(x: Array, dim: int, *_: Any) -> Array:
    return jax.nn.softmax(wide(x), dim)


@op("_safe_softmax.default")
def safe_softmax(x: Array, dim: int, *_: Any) -> Array:
    """Return softmax with zeros where everything is masked, and no gradient that is no number."""
    empty = jnp.all(x == -jnp.inf, dim, keepdims=True)
    return jnp.where(empty, 0, jax.nn.softmax(jnp.where(empty, 0, x), dim))


@op("_log_softmax.default")
def _log_softmax(x: Array, dim: int, *_: Any) -> Array:
    return jax.nn.log_softmax(wide(x), dim)


@op("topk.default")
def _topk(x: Array, k: int, dim: int = -1, largest: bool = True, *_: Any) -> tuple[Array, Array]:
    moved = jnp.moveaxis(x if largest else -x, dim, -1)
    values, indices = lax.top_k(moved, k)
    values = values if largest else -values
    return jnp.moveaxis(values, -1, dim), jnp.moveaxis(indices, -1, dim)


@op("sort.default")
def _sort(x: Array, dim: int = -1, descending: bool = False) -> tuple[Array, Array]:
    order = jnp.argsort(x, dim, stable=True, descending=descending)
    return jnp.take_along_axis(x, order, dim), order


@op("sort.stable")
def _sort_stable(x: Array, *, dim: int = -1, descending: bool = False, **_: Any) -> Any:
    return _sort(x, dim, descending)


@op("histc.default")
def _histc(x: Array, bins: int = 100, low: float = 0, high: float = 0) -> Array:
    if low == high:
        raise NotImplementedError("a histogram without limits")
    place = jnp.clip(jnp.floor((x - low) * bins / (high - low)).astype(jnp.int32), 0, bins - 1)
    counted = ((x >= low) & (x <= high)).reshape(-1).astype(jnp.int32)
    return jnp.zeros(bins, jnp.int32).at[place.reshape(-1)].add(counted)


each(dict.fromkeys(("mm", "bmm", "matmul", "mv", "dot"), jnp.matmul), "default")


@op("addmm.default", "baddbmm.default")
def _addmm(bias: Array, x: Array, y: Array, *, beta: float = 1, alpha: float = 1) -> Array:
    product = jnp.matmul(x, y)
    return (bias if beta == 1 else bias * beta) + (product if alpha == 1 else product * alpha)


@op("linear.default")
def _linear(x: Array, weight: Array, bias: Array | None = None) -> Array:
    product = lax.dot_general(x, weight, (((x.ndim - 1,), (1,)), ((), ())))
    return product if bias is None else product + bias


@op("scaled_dot_product_attention.default", random=True)
def _attention(
    q: Array, k: Array, v: Array, mask: Array | None = None, dropout: float = 0.0,
    is_causal: bool = False, *, scale: float | None = None, enable_gqa: bool = False,
    key: Array | None = None,
) -> Array:  # fmt: skip
    # Scores and softmax in fp32, as torch's kernels have them, whatever the inputs are.
    if enable_gqa:
        k, v = (jnp.repeat(x, q.shape[-3] // x.shape[-3], axis=-3) for x in (k, v))
    scale = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
    scores = jnp.einsum("...qd,...kd->...qk", q, k, preferred_element_type=jnp.float32) * scale
    if is_causal:
        mask = jnp.tril(jnp.ones(scores.shape[-2:], bool))
    if mask is not None:
        scores = jnp.where(mask, scores, -jnp.inf) if mask.dtype == bool else scores + mask
        chances = safe_softmax(scores, -1)
    else:
        chances = jax.nn.softmax(scores, -1)
    chances = dropped(chances.astype(q.dtype), dropout, key)
    return jnp.einsum("...qk,...kd->...qd", chances, v)


@op("transformers.grouped_mm_fallback.default", "_grouped_mm.default")
def _grouped_mm(x: Array, weight: Array, ends: Array) -> Array:
    sizes = jnp.diff(ends, prepend=0).astype(jnp.int32)
    return lax.ragged_dot(x, weight, sizes)

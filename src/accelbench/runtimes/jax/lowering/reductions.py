"""Operators over whole axes: sums and the like, softmax, running sums, order.

Matrix products and attention.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax

from accelbench.runtimes.jax.lowering.elementwise import dropped
from accelbench.runtimes.jax.lowering.table import each, op


def wide(x: Array) -> Array:
    """In fp32 what is of 16 bits: torch's kernels sum so, and round once at the end."""
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


@op("cumsum.default")
def _cumsum(x: Array, dim: int, **_: Any) -> Array:
    return jnp.cumsum(x, dim)


@op("_softmax.default", "softmax.int")
def _softmax(x: Array, dim: int, *_: Any) -> Array:
    return jax.nn.softmax(wide(x), dim)


@op("_safe_softmax.default")
def safe_softmax(x: Array, dim: int, *_: Any) -> Array:
    """Zeros where everything is masked, and no gradient that is no number."""
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
    """Scores and softmax in fp32, as torch's kernels have them, whatever the inputs are."""
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

"""Operators over whole axes: sums and the like, softmax, running sums, order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax

from accelbench.runtimes.jax.lowering.table import op


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

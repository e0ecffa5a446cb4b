"""Operators that look values up by index, or put them there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
from jax import Array, lax

from accelbench.runtimes.jax.lowering.table import op


@op("embedding.default")
def _embedding(weight: Array, indices: Array, padding: int = -1, *_: Any) -> Array:
    """The row of padding learns nothing, as in torch."""
    rows = jnp.take(weight, indices, axis=0, mode="clip")
    if padding < 0:
        return rows
    return jnp.where((indices == padding)[..., None], lax.stop_gradient(rows), rows)


@op("gather.default")
def _gather(x: Array, dim: int, index: Array, **_: Any) -> Array:
    """As torch, an index may be shorter than x along the other dimensions."""
    dim %= x.ndim
    whole = x[tuple(slice(None) if d == dim else slice(n) for d, n in enumerate(index.shape))]
    return jnp.take_along_axis(whole, index, dim)


def _where_indexed(indices: Sequence[Array | None]) -> tuple[Any, ...]:
    if any(i is not None and i.dtype == bool for i in indices):
        raise NotImplementedError("an index that is a mask: its result has no static shape")
    return tuple(slice(None) if i is None else i for i in indices)


@op("index.Tensor")
def _index(x: Array, indices: Sequence[Array | None]) -> Array:
    return x[_where_indexed(indices)]


@op("index_select.default")
def _index_select(x: Array, dim: int, index: Array) -> Array:
    return jnp.take(x, index, dim)


@op("index_put.default")
def _index_put(
    x: Array, indices: Sequence[Array | None], values: Array, accumulate: bool = False
) -> Array:
    mask = indices[0] if len(indices) == 1 else None
    if mask is not None and mask.dtype == bool and values.size == 1:
        mask = mask.reshape(mask.shape + (1,) * (x.ndim - mask.ndim))
        return jnp.where(mask, x + values if accumulate else values, x)
    place = x.at[_where_indexed(indices)]
    values = values.astype(x.dtype)
    return place.add(values) if accumulate else place.set(values)


def _places(x: Array, dim: int, index: Array) -> tuple[Array, ...]:
    """Of each value of an index: where it lies in x, an array a dimension."""
    places = jnp.indices(index.shape)
    return tuple(index if d == dim % x.ndim else places[d] for d in range(x.ndim))


def _source(source: Any, index: Array) -> Any:
    """As torch, the source may be larger than the index."""
    return source[tuple(slice(n) for n in index.shape)] if jnp.ndim(source) else source


@op("scatter.src", "scatter.value")
def _scatter(x: Array, dim: int, index: Array, source: Any) -> Array:
    return x.at[_places(x, dim, index)].set(_source(source, index))


@op("scatter_add.default")
def _scatter_add(x: Array, dim: int, index: Array, source: Array) -> Array:
    return x.at[_places(x, dim, index)].add(_source(source, index))


@op("masked_scatter.default")
def _masked_scatter(x: Array, mask: Array, source: Array) -> Array:
    """The k-th place of the mask takes the k-th value."""
    mask = jnp.broadcast_to(mask, x.shape).reshape(-1)
    which = jnp.clip(jnp.cumsum(mask) - 1, 0, source.size - 1)
    return jnp.where(mask, source.reshape(-1)[which], x.reshape(-1)).reshape(x.shape)


@op("nll_loss_forward.default")
def _nll(
    x: Array, target: Array, weight: Array | None, reduction: int, ignored: int
) -> tuple[Array, Array]:
    judged = target != ignored
    if weight is not None or x.ndim != 2 or reduction == 0:
        raise NotImplementedError("this form of the negative log likelihood")
    picked = jnp.take_along_axis(x, jnp.where(judged, target, 0)[:, None], 1)[:, 0]
    total = -jnp.sum(jnp.where(judged, picked, 0))
    count = jnp.sum(judged).astype(x.dtype)
    return (total / count if reduction == 1 else total), count

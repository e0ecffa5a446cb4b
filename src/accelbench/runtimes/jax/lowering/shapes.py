"""Operators that move, cut and join without calculating."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
from jax import Array, lax

from accelbench.runtimes.jax.lowering.table import op


@op("view.default", "reshape.default", "_unsafe_view.default")
def _view(x: Array, size: Sequence[int]) -> Array:
    return x.reshape(size)


@op("permute.default")
def _permute(x: Array, dims: Sequence[int]) -> Array:
    return jnp.transpose(x, [d % x.ndim for d in dims])


@op("t.default")
def _t(x: Array) -> Array:
    return x.T


@op("transpose.int")
def _transpose(x: Array, axis: int, other: int) -> Array:
    return jnp.swapaxes(x, axis, other)


@op("expand.default")
def _expand(x: Array, size: Sequence[int], **_: Any) -> Array:
    lead = len(size) - x.ndim
    wanted = [x.shape[i - lead] if n == -1 else n for i, n in enumerate(size)]
    return jnp.broadcast_to(x, wanted)


@op("unsqueeze.default")
def _unsqueeze(x: Array, dim: int) -> Array:
    return jnp.expand_dims(x, dim)


@op("squeeze.dims", "squeeze.dim")
def _squeeze(x: Array, dims: Any) -> Array:
    dims = [dims] if isinstance(dims, int) else dims
    return jnp.squeeze(x, tuple(d for d in dims if x.shape[d] == 1))


@op("select.int")
def _select(x: Array, dim: int, index: int) -> Array:
    return lax.index_in_dim(x, index, dim % x.ndim, keepdims=False)


@op("slice.Tensor")
def _slice(
    x: Array, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Array:
    first, last, _ = slice(start, end).indices(x.shape[dim])
    return lax.slice_in_dim(x, first, max(first, last), step, dim % x.ndim)


@op("cat.default")
def _cat(xs: Sequence[Array], dim: int = 0) -> Array:
    kept = [x for x in xs if x.shape != (0,)]  # torch lets an empty vector pass beside any shape
    return jnp.concatenate(kept or xs, dim)


@op("stack.default")
def _stack(xs: Sequence[Array], dim: int = 0) -> Array:
    return jnp.stack(xs, dim)


@op("split_with_sizes.default")
def _split_with_sizes(x: Array, sizes: Sequence[int], dim: int = 0) -> Any:
    ends = [sum(sizes[: i + 1]) for i in range(len(sizes) - 1)]
    return jnp.split(x, ends, dim)


@op("split.Tensor")
def _split(x: Array, size: int, dim: int = 0) -> Any:
    return jnp.split(x, list(range(size, x.shape[dim], size)), dim)


@op("unbind.int")
def _unbind(x: Array, dim: int = 0) -> Sequence[Array]:
    return [_select(x, dim, i) for i in range(x.shape[dim])]


@op("repeat.default")
def _repeat(x: Array, repeats: Sequence[int]) -> Array:
    return jnp.tile(x, repeats)


@op("flip.default")
def _flip(x: Array, dims: Sequence[int]) -> Array:
    return jnp.flip(x, dims)


@op("constant_pad_nd.default")
def _pad(x: Array, pad: Sequence[int], value: Any = 0) -> Array:
    """torch counts the pads from the last dimension; a negative one crops."""
    pairs = [(0, 0, 0)] * (x.ndim - len(pad) // 2)
    pairs += [(pad[i], pad[i + 1], 0) for i in range(len(pad) - 2, -1, -2)]
    return lax.pad(x, jnp.asarray(value, x.dtype), pairs)

"""Operators that move, cut and join without calculating.

Tensors of torch as arrays of JAX.

Operators that look values up by index, or put them there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch
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


#: Of torch's types: what JAX calculates in. Its 64-bit types are off unless a whole process asks.
DTYPES = {
    torch.float64: jnp.float32,
    torch.float32: jnp.float32,
    torch.float16: jnp.float16,
    torch.bfloat16: jnp.bfloat16,
    torch.int64: jnp.int32,
    torch.int32: jnp.int32,
    torch.int16: jnp.int16,
    torch.int8: jnp.int8,
    torch.uint8: jnp.uint8,
    torch.bool: jnp.bool_,
}


def host_array(tensor: torch.Tensor) -> Any:
    """The same bits in NumPy, 64-bit types narrowed to what JAX calculates in."""
    tensor = tensor.detach().cpu().contiguous()
    if tensor.dtype is torch.bfloat16:  # NumPy has none of its own
        return tensor.view(torch.int16).numpy().view(jnp.bfloat16)
    return np.asarray(tensor.numpy(), DTYPES[tensor.dtype])


def array(tensor: torch.Tensor, device: Any = None) -> jax.Array:
    """A copy on a device: what a step writes over must not be torch's own memory.

    `jax.device_put` would share it on a CPU, also where it is told not to.
    """
    return jnp.array(host_array(tensor), device=device)


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

"""The table of operators: each ATen name as a function of JAX; here those that move and place.

The functions take what the node of the graph takes (arrays for tensors, Python values as they are)
and need not care for the result's dtype: `lower` casts every result to torch's. Shapes are static.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch
from jax import Array, lax

Function = Callable[..., Any]

#: By the operator's name in a graph, such as "aten.add.Tensor".
OPS: dict[str, Function] = {}

#: Operators that draw: `lower` hands a key of its own to each of their nodes.
RANDOM: set[str] = set()


def op(*names: str, random: bool = False) -> Callable[[Function], Function]:
    """Enter a function under these names of the operator library aten."""

    def enter(function: Function) -> Function:
        for name in names:
            full = name if name.startswith("transformers.") else f"aten.{name}"
            OPS[full] = function
            if random:
                RANDOM.add(full)
        return function

    return enter


def each(functions: Mapping[str, Function], *overloads: str) -> None:
    """Enter functions by their names, several parted by blanks, each under the same overloads."""
    for names, function in functions.items():
        for name in names.split():
            op(*([f"{name}.{overload}" for overload in overloads] or [name]))(function)


#: The type that JAX calculates in for each of torch's; its 64-bit types are off by default.
DTYPES = {
    torch.float64: jnp.float32, torch.float32: jnp.float32, torch.float16: jnp.float16,
    torch.bfloat16: jnp.bfloat16, torch.int64: jnp.int32, torch.int32: jnp.int32,
    torch.int16: jnp.int16, torch.int8: jnp.int8, torch.uint8: jnp.uint8, torch.bool: jnp.bool_,
}  # fmt: skip


def host_array(tensor: torch.Tensor) -> Any:
    """Return the same bits in NumPy, 64-bit types narrowed to what JAX calculates in."""
    tensor = tensor.detach().cpu().contiguous()
    if tensor.dtype is torch.bfloat16:  # NumPy has none of its own
        return tensor.view(torch.int16).numpy().view(jnp.bfloat16)
    return np.asarray(tensor.numpy(), DTYPES[tensor.dtype])


def array(tensor: torch.Tensor, device: Any = None) -> jax.Array:
    """Return a copy on a device: what a step writes over must not be torch's own memory.

    `jax.device_put` would share it on a CPU, even if told not to.
    """
    return jnp.array(host_array(tensor), device=device)


each(
    {
        "view.default reshape.default _unsafe_view.default": jnp.reshape,
        "permute.default": lambda x, dims: jnp.transpose(x, [d % x.ndim for d in dims]),
        "t.default": jnp.transpose,
        "transpose.int": jnp.swapaxes,
        "unsqueeze.default": jnp.expand_dims,
        "select.int": lambda x, dim, index: lax.index_in_dim(x, index, dim % x.ndim, False),
        "stack.default": jnp.stack,
        "repeat.default": jnp.tile,
        "flip.default": jnp.flip,
        "index_select.default": lambda x, dim, index: jnp.take(x, index, dim),
    }
)


@op("expand.default")
def _expand(x: Array, size: Sequence[int], **_: Any) -> Array:
    lead = len(size) - x.ndim
    wanted = [x.shape[i - lead] if n == -1 else n for i, n in enumerate(size)]
    return jnp.broadcast_to(x, wanted)


@op("squeeze.dims", "squeeze.dim")
def _squeeze(x: Array, dims: Any) -> Array:
    dims = [dims] if isinstance(dims, int) else dims
    return jnp.squeeze(x, tuple(d for d in dims if x.shape[d] == 1))


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


@op("split_with_sizes.default")
def _split_with_sizes(x: Array, sizes: Sequence[int], dim: int = 0) -> Any:
    ends = [sum(sizes[: i + 1]) for i in range(len(sizes) - 1)]
    return jnp.split(x, ends, dim)


@op("split.Tensor")
def _split(x: Array, size: int, dim: int = 0) -> Any:
    return jnp.split(x, list(range(size, x.shape[dim], size)), dim)


@op("unbind.int")
def _unbind(x: Array, dim: int = 0) -> Sequence[Array]:
    return [lax.index_in_dim(x, i, dim % x.ndim, False) for i in range(x.shape[dim])]


@op("constant_pad_nd.default")
def _pad(x: Array, pad: Sequence[int], value: Any = 0) -> Array:
    # torch counts the pads from the last dimension; a negative one crops.
    pairs = [(0, 0, 0)] * (x.ndim - len(pad) // 2)
    pairs += [(pad[i], pad[i + 1], 0) for i in range(len(pad) - 2, -1, -2)]
    return lax.pad(x, jnp.asarray(value, x.dtype), pairs)


@op("embedding.default")
def _embedding(weight: Array, indices: Array, padding: int = -1, *_: Any) -> Array:
    # The row of padding learns nothing, as in torch.
    rows = jnp.take(weight, indices, axis=0, mode="clip")
    if padding < 0:
        return rows
    return jnp.where((indices == padding)[..., None], lax.stop_gradient(rows), rows)


@op("gather.default")
def _gather(x: Array, dim: int, index: Array, **_: Any) -> Array:
    # As in torch, an index may be shorter than x along the other dimensions.
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
    places = jnp.indices(index.shape)
    return tuple(index if d == dim % x.ndim else places[d] for d in range(x.ndim))


def _source(source: Any, index: Array) -> Any:
    # As in torch, the source may be larger than the index.
    return source[tuple(slice(n) for n in index.shape)] if jnp.ndim(source) else source


@op("scatter.src", "scatter.value")
def _scatter(x: Array, dim: int, index: Array, source: Any) -> Array:
    return x.at[_places(x, dim, index)].set(_source(source, index))


@op("scatter_add.default")
def _scatter_add(x: Array, dim: int, index: Array, source: Array) -> Array:
    return x.at[_places(x, dim, index)].add(_source(source, index))


@op("masked_scatter.default")
def _masked_scatter(x: Array, mask: Array, source: Array) -> Array:
    # The k-th place of the mask takes the k-th value.
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


# -- convolutions, pools and normalisations
#
# Channels last inside, as torch has them outside: XLA's CPU backend calculates with the outputs of
# a kernel last. Kernels that are kept so save a transposition of all of them in every call, which
# is half of ResNet-50's time at batch 1. Norms are in fp32, as torch's kernels calculate them.

_CHANNELS_LAST = {
    1: ("NHC", "HIO", "NHC"),
    2: ("NHWC", "HWIO", "NHWC"),
    3: ("NDHWC", "DHWIO", "NDHWC"),
}


def outputs_last(kernel: Array) -> Array:
    """Reorder a kernel from torch's (outputs, inputs, sizes) to XLA's (sizes, inputs, outputs)."""
    return jnp.transpose(kernel, (*range(2, kernel.ndim), 1, 0))


def outputs_first(kernel: Array) -> Array:
    """Reorder a kernel back to torch's order."""
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
    # `laid_out`: the kernel lies as XLA wants it, spatial sizes first and outputs last.
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
    """Return, in fp32, what is normed, its mean and the reciprocal of its deviation."""
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
    # By given statistics: one product and one sum an element.
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
    # By the batch's own statistics; the running ones come back renewed.
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

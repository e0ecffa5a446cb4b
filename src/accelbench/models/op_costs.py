"""Cost of each of torch's operations, by the shapes of its tensors."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

Args = tuple[Any, ...]

#: Operations for each element of the input. Layer norm: mean, difference, square,
#: their mean, scale, weight, bias. Batch norm at inference: scale and shift; in training as
#: layer norm. Softmax: difference to the largest, exponential, sum, quotient. Backward passes:
#: of softmax product, sum, difference, product; of a norm two sums of products and the
#: gradients of scale and shift beside the forward's own.
PER_ELEMENT = {
    "native_layer_norm": 7, "native_group_norm": 7, "native_batch_norm": 2,
    "_native_batch_norm_legit_no_training": 2, "cudnn_batch_norm": 2, "_fused_rms_norm": 4,
    "_softmax": 4, "_safe_softmax": 4, "_log_softmax": 4, "mean": 1, "sum": 1, "amax": 1, "max": 1,
    "cumsum": 1, "linalg_vector_norm": 2, "native_layer_norm_backward": 12,
    "native_group_norm_backward": 12, "native_batch_norm_backward": 12,
    "_fused_rms_norm_backward": 8, "_softmax_backward_data": 4, "_log_softmax_backward_data": 4,
    "embedding_dense_backward": 1, "softplus_backward": 4, "_weight_norm_interface": 4,
    "_weight_norm_interface_backward": 8, "nll_loss_forward": 1, "nll_loss_backward": 1,
    "mse_loss": 3, "mse_loss_backward": 3, "index_put": 1, "_index_put_impl_": 1, "index_put_": 1,
    "index_add": 1, "index_add_": 1, "scatter_add": 1, "scatter_add_": 1, "avg_pool2d": 1,
    "avg_pool2d_backward": 1, "_adaptive_avg_pool2d": 1, "_adaptive_avg_pool2d_backward": 1,
    "native_dropout": 2, "bernoulli_": 1,
    # Sixteen neighbours, each weighted and added.
    "upsample_bicubic2d": 32, "upsample_bicubic2d_backward": 32, "upsample_bilinear2d": 8,
    "upsample_bilinear2d_backward": 8,
}  # fmt: skip
SOFTMAX = PER_ELEMENT["_softmax"]
_BATCH_NORM_TRAINING = 7

#: Data is moved, made, ordered or compared; nothing is calculated with floating-point numbers.
FREE = {
    "clone", "_to_copy", "copy_", "copy", "cat", "stack", "gather", "index", "index_select",
    "embedding", "new_empty", "empty", "empty_like", "empty_strided", "new_empty_strided",
    "zeros", "zeros_like", "new_zeros", "ones", "ones_like", "new_ones", "full", "full_like",
    "new_full", "arange", "scalar_tensor", "where", "masked_fill", "masked_fill_", "all", "any",
    "constant_pad_nd", "max_pool2d_with_indices", "max_pool2d_with_indices_backward", "repeat",
    "fill_", "zero_", "_unsafe_view", "argmax", "argmin", "argsort", "sort", "topk", "histc",
    "bincount", "one_hot", "_is_all_true", "_assert_async", "_assert_tensor_metadata", "roll",
    "flip", "tril", "triu", "masked_select", "masked_scatter", "masked_scatter_", "scatter",
    "scatter_", "select_backward", "slice_backward", "new_tensor", "lift_fresh", "randint",
    "rand", "randn", "rand_like", "randn_like", "upsample_nearest2d", "im2col", "col2im",
    "upsample_nearest2d_backward", "unfold_backward", "set_", "resize_", "equal",
    "select_scatter", "slice_scatter", "masked_scatter_backward", "_reshape_copy", "fill",
    "split_with_sizes_copy",
    "reflection_pad1d", "value_selecting_reduction_backward", "eye", "linspace", "nonzero_static",
}  # fmt: skip

#: In-place scatters are counted by what is added, the operand at this place.
_ADDED = {"index_add": 3, "index_add_": 3, "scatter_add": 3, "scatter_add_": 3,
          "index_put": 2, "index_put_": 2, "_index_put_impl_": 2}  # fmt: skip


class UnknownOperationError(Exception):
    """An operation that no rule counts."""


def operations(func: Any, name: str, args: Args, result: Any) -> int:
    """Return the operations of what is not a product, or raise UnknownOperationError."""
    if name in PER_ELEMENT:
        counted = args[_ADDED.get(name, 0)]
        each = PER_ELEMENT[name]
        if name == "native_batch_norm" and args[5]:
            each = _BATCH_NORM_TRAINING
        return each * int(counted.numel()) if counted.is_floating_point() else 0
    if name in FREE:
        return 0
    results = result if isinstance(result, (tuple, list)) else (result,)
    made = [
        r
        for r in results
        if isinstance(r, torch.Tensor) and (r.is_floating_point() or r.is_complex())
    ]
    if not made:  # places, masks, ids
        return 0
    if torch.Tag.pointwise in func.tags:
        return int(made[0].numel())
    raise UnknownOperationError(f"no rule counts {func}")


def _mm(args: Args, result: Any) -> int:
    return 2 * int(result.numel()) * int(args[0].shape[-1])


def _addmm(args: Args, result: Any) -> int:
    return 2 * int(result.numel()) * int(args[1].shape[-1])


def _convolution(args: Args, result: Any) -> int:
    inputs, weight, transposed = args[0], args[1], args[6]
    each = math.prod(weight.shape[1:])  # channels a group × kernel, on the side multiplied from
    return 2 * int(inputs.numel() if transposed else result.numel()) * int(each)


def _convolution_backward(args: Args, _result: Any) -> int:
    outward, inputs, weight, transposed, wanted = args[0], args[1], args[2], args[7], args[10]
    each = math.prod(weight.shape[1:])
    gradient_flops = 2 * int(inputs.numel() if transposed else outward.numel()) * int(each)
    return gradient_flops * (bool(wanted[0]) + bool(wanted[1]))


def _grouped_mm(args: Args, result: Any) -> int:
    """Count rows × experts' matrices, or in the backward pass one product per expert."""
    left, right = args[0], args[1]
    if left.dim() == 2 and right.dim() == 2:  # the gradient of the weights: rows are summed over
        return 2 * int(left.shape[0]) * int(left.shape[1]) * int(right.shape[1])
    return 2 * int(result.numel()) * int(left.shape[-1])


def grouped_result(left: Any, right: Any, offs: Any = None, *_: Any, **__: Any) -> Any:
    """Return the result of a product by groups, in shape: rows × matrices, or one per group."""
    if left.dim() == 2 and right.dim() == 2:
        return left.new_empty((offs.shape[0], left.shape[0], right.shape[1]))
    return left.new_empty((*left.shape[:-1], right.shape[-1]))


PRODUCTS: dict[str, Callable[[Args, Any], int]] = {
    "mm": _mm, "bmm": _mm, "addmm": _addmm, "baddbmm": _addmm, "convolution": _convolution,
    "convolution_backward": _convolution_backward, "_grouped_mm": _grouped_mm,
}  # fmt: skip

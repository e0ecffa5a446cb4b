"""Classes of torch's operations by their names, for the tracer and for files. Pure."""

from __future__ import annotations

ACTIVATIONS = {
    "relu", "gelu", "silu", "hardswish", "sigmoid", "hardtanh", "hardsigmoid", "tanh",
    "leaky_relu", "mish", "clamp", "softplus", "elu", "threshold", "erf", "clamp_min",
}  # fmt: skip
REDUCTIONS = {"mean", "var", "var_mean", "sum", "amax", "max", "linalg_vector_norm", "cumsum"}
#: Operations that calculate nothing but do move values; what else is free gives only sizes,
#: constants, or what the next operation reads in passing.
COPIES = {
    "clone", "_to_copy", "copy_", "copy", "cat", "stack", "gather", "index", "index_select",
    "embedding", "where", "masked_fill", "masked_fill_", "constant_pad_nd", "repeat", "roll",
    "flip", "im2col", "col2im", "upsample_nearest2d", "scatter", "scatter_", "masked_scatter",
    "_reshape_copy", "split_with_sizes_copy", "reflection_pad1d", "select_scatter",
    "slice_scatter", "sort", "topk", "argsort", "max_pool2d_with_indices",
}  # fmt: skip


def class_of(name: str) -> str:
    """The class of an operation that multiplies no matrices."""
    bare = name.removesuffix("_")
    if "batch_norm" in name:
        return "bn"
    if "norm" in name and name != "linalg_vector_norm":
        return "ln"
    if bare in ACTIVATIONS:
        return "act"
    if "pool" in name or bare in REDUCTIONS:
        return "pool"
    if "softmax" in name:
        return "softmax"
    return "copy" if name in COPIES or "upsample" in name else "elt"

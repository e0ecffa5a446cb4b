"""Counting one forward pass on torch's meta device: nothing is computed, no memory is taken.

Every operation that reaches torch's dispatcher is seen with the shapes of its
tensors. The rules:

- multiply and add count apart; a product (m, k) × (k, n) is 2·m·k·n, a bias
  included (k products and k sums for each of m·n results);
- a convolution is 2 × results × kernel size × input channels a group, padding
  included; attention is its two products in full, causal or not, and a softmax;
- an elementwise operation is one per floating result; normalisations and softmax
  are the few per element stated in `_PER_ELEMENT`; moving data is none;
- an operation that no rule knows is refused, never taken for free.

Imports torch: import this module only where something is counted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

_Args = tuple[Any, ...]

#: Operations for each element of the input. Layer norm: mean, difference, square,
#: their mean, scale, weight, bias. Batch norm at inference: scale and shift.
#: Softmax: difference to the largest, exponential, sum, quotient.
_PER_ELEMENT = {
    "native_layer_norm": 7,
    "native_group_norm": 7,
    "native_batch_norm": 2,
    "_native_batch_norm_legit_no_training": 2,
    "cudnn_batch_norm": 2,
    "_softmax": 4,
    "_log_softmax": 4,
    "mean": 1,
    "sum": 1,
    "amax": 1,
    "cumsum": 1,
}
_SOFTMAX = _PER_ELEMENT["_softmax"]

#: Data is moved, made or compared; nothing is calculated with floating-point numbers.
_FREE = {
    "clone", "_to_copy", "copy_", "cat", "stack", "gather", "index", "index_select", "embedding",
    "new_empty", "empty", "empty_like", "empty_strided", "zeros", "zeros_like", "new_zeros", "ones",
    "ones_like", "new_ones", "full", "full_like", "arange", "scalar_tensor", "where", "masked_fill",
    "all", "any", "constant_pad_nd", "max_pool2d_with_indices", "repeat", "fill_", "zero_",
    "_unsafe_view",
}  # fmt: skip


@dataclass
class Count:
    """What one forward pass takes."""

    matmul_flops: int = 0
    other_flops: int = 0
    activation_bytes: int = 0  # results of every operation that makes a new tensor
    weight_bytes_read: int = 0
    input_bytes: int = 0
    live_bytes: list[int] = field(default_factory=list)  # results alive, operation by operation

    @property
    def flops(self) -> int:
        """Products, and everything else."""
        return self.matmul_flops + self.other_flops

    @property
    def bytes_moved(self) -> int:
        """Weights read, inputs and results, each once."""
        return self.weight_bytes_read + self.input_bytes + self.activation_bytes

    @property
    def peak_activation_bytes(self) -> int:
        """The most that is alive at once."""
        return max(self.live_bytes, default=0)


class UnknownOperationError(Exception):
    """An operation that no rule counts."""


def count_forward(module: torch.nn.Module, inputs: Mapping[str, torch.Tensor]) -> Count:
    """Count `module(**inputs)`; module and inputs are on the meta device.

    Raises:
        UnknownOperationError: name it in one of the tables above.
    """
    counter = _Counter(module, inputs)
    # inference_mode would show composite operations whole: no_grad has them in parts.
    with torch.no_grad(), _WholeAttention(counter), counter:
        result = module(**inputs)
    del result
    return counter.count


class _Counter(TorchDispatchMode):  # type: ignore[misc]  # mypy skips torch
    def __init__(self, module: torch.nn.Module, inputs: Mapping[str, torch.Tensor]) -> None:
        super().__init__()
        self.count = Count(input_bytes=sum(t.nbytes for t in inputs.values()))
        own = [*module.parameters(), *module.buffers()]
        self._weights = {t.untyped_storage()._cdata: t.untyped_storage().nbytes() for t in own}
        given = [*own, *inputs.values()]
        self._given = {t.untyped_storage()._cdata for t in given}
        self._kept = (module, inputs)  # their storages' addresses must stay theirs
        self._alive: dict[int, tuple[StorageWeakRef, int]] = {}
        self._live = 0

    def __torch_dispatch__(
        self, func: Any, types: Any, args: _Args = (), kwargs: Any = None
    ) -> Any:
        name = func._schema.name.removeprefix("aten::")
        if name == "_local_scalar_dense":
            return _answer(args[0]) if args[0].is_meta else func(*args)
        result = func(*args, **(kwargs or {}))
        if not func.is_view:
            self._read_weights(name, args, result)
            # At inference the kernels leave the batch's statistics empty; meta tensors do not.
            self._keep_books(result[0] if name == "native_batch_norm" else result)
            self._add_flops(func, name, args, result)
        return result

    def _add_flops(self, func: Any, name: str, args: _Args, result: Any) -> None:
        product = _PRODUCTS.get(name)
        if product is not None:
            self.count.matmul_flops += product(args, result)
        elif name in _PER_ELEMENT:
            if args[0].is_floating_point():
                self.count.other_flops += _PER_ELEMENT[name] * int(args[0].numel())
        elif name in _FREE:
            pass
        elif torch.Tag.pointwise in func.tags:
            if result.is_floating_point():
                self.count.other_flops += int(result.numel())
        else:
            raise UnknownOperationError(f"no rule counts {func}")

    def attention(
        self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, masked: bool
    ) -> None:
        """Both products, mask and softmax of one fused attention; its scores are never stored."""
        scores = math.prod(query.shape[:-1]) * int(key.shape[-2])
        self.count.matmul_flops += 2 * scores * (int(query.shape[-1]) + int(value.shape[-1]))
        self.count.other_flops += (_SOFTMAX + masked) * scores

    def _read_weights(self, name: str, args: _Args, result: Any) -> None:
        if name == "embedding":  # reads the rows it returns, not the table
            self.count.weight_bytes_read += result.nbytes
            return
        for tensor in _tensors(args):  # a view of a weight has the weight's storage
            self.count.weight_bytes_read += self._weights.pop(tensor.untyped_storage()._cdata, 0)

    def _keep_books(self, result: Any) -> None:
        for tensor in _tensors((result,)):
            storage = tensor.untyped_storage()
            key = storage._cdata
            ours = key in self._alive and not self._alive[key][0].expired()
            if not ours and key not in self._given and storage.nbytes():
                self._forget_dead()
                self._alive[key] = (StorageWeakRef(storage), storage.nbytes())
                self._live += storage.nbytes()
                self.count.activation_bytes += storage.nbytes()
        self._forget_dead()
        self.count.live_bytes.append(self._live)

    def _forget_dead(self) -> None:
        for key in [k for k, (ref, _) in self._alive.items() if ref.expired()]:
            self._live -= self._alive.pop(key)[1]


class _WholeAttention(TorchFunctionMode):  # type: ignore[misc]  # mypy skips torch
    """Sees attention as the one operation that every device's kernel is."""

    def __init__(self, counter: _Counter) -> None:
        super().__init__()
        self._counter = counter

    def __torch_function__(
        self, func: Any, types: Any, args: _Args = (), kwargs: Any = None
    ) -> Any:
        if func is not torch.nn.functional.scaled_dot_product_attention:
            return func(*args, **(kwargs or {}))
        query, key, value = args[:3]
        mask = args[3] if len(args) > 3 else (kwargs or {}).get("attn_mask")
        self._counter.attention(query, key, value, mask is not None)
        *batch, heads, length, _ = query.shape
        # The fused kernels lay their result out by token, so that joining the heads is a view.
        return query.new_empty((*batch, length, heads, value.shape[-1])).transpose(-3, -2)


def _answer(tensor: torch.Tensor) -> bool:
    """The one question asked of values: is nothing masked? Our masks are all ones."""
    if tensor.dtype is not torch.bool:
        raise UnknownOperationError(f"the value of a {tensor.dtype} tensor decides the way")
    return True


def _tensors(values: Any) -> Iterator[torch.Tensor]:
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from _tensors(value)


def _mm(args: _Args, result: Any) -> int:
    return 2 * int(result.numel()) * int(args[0].shape[-1])


def _addmm(args: _Args, result: Any) -> int:
    return 2 * int(result.numel()) * int(args[1].shape[-1])


def _convolution(args: _Args, result: Any) -> int:
    inputs, weight, transposed = args[0], args[1], args[6]
    each = math.prod(weight.shape[1:])  # channels a group × kernel, on the side multiplied from
    return 2 * int(inputs.numel() if transposed else result.numel()) * int(each)


_PRODUCTS: dict[str, Callable[[_Args, Any], int]] = {
    "mm": _mm,
    "bmm": _mm,
    "addmm": _addmm,
    "baddbmm": _addmm,
    "convolution": _convolution,
}

"""Counts of a model's passes on torch's meta device, without computing or memory."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode

from accelbench.core.clock import pause_garbage_collection
from accelbench.models.op_costs import (
    PRODUCTS,
    SOFTMAX,
    Args,
    UnknownOperationError,
    grouped_result,
    operations,
)

__all__ = ["Count", "Counter", "UnknownOperationError", "count_forward", "count_training"]


@dataclass
class Count:
    """Counts of one pass."""

    matmul_flops: int = 0
    other_flops: int = 0
    activation_bytes: int = 0  # results of every operation that makes a new tensor
    weight_bytes_read: int = 0
    input_bytes: int = 0
    live_bytes: list[int] = field(default_factory=list)  # results alive, operation by operation

    @property
    def flops(self) -> int:
        return self.matmul_flops + self.other_flops

    @property
    def bytes_moved(self) -> int:
        return self.weight_bytes_read + self.input_bytes + self.activation_bytes

    @property
    def peak_activation_bytes(self) -> int:
        return max(self.live_bytes, default=0)


def count_forward(
    module: torch.nn.Module,
    inputs: Mapping[str, torch.Tensor],
    counter_class: type[Counter] | None = None,
) -> Count:
    """Count `module(**inputs)`; module and inputs are on the meta device.

    `counter_class` counts more of each operation. Raises UnknownOperationError: add the operation
    to one of the tables of `op_costs`.
    """
    counter = (counter_class or Counter)(module, inputs.values())
    # inference_mode would show composite operations whole: no_grad has them in parts.
    with torch.no_grad(), counter.counting():
        result = module(**inputs)
    del result
    return counter.count


def count_training(
    module: torch.nn.Module,
    inputs: Mapping[str, torch.Tensor],
    labels: Mapping[str, torch.Tensor],
    loss: Callable[[Any], torch.Tensor],
    counter_class: type[Counter] | None = None,
) -> Counter:
    """Count forward, loss and backward; gradients are among what is alive.

    The module is on the meta device, in training mode.
    """
    counter = (counter_class or Counter)(module, (*inputs.values(), *labels.values()))
    try:
        with counter.counting():
            loss_value = loss(module(**inputs))
            loss_value.backward()
            del loss_value
    finally:
        module.zero_grad(set_to_none=True)
    return counter


class Counter(TorchDispatchMode):  # type: ignore[misc]  # mypy skips torch
    """Counter of one pass after another; the next begins with what one leaves alive."""

    def __init__(self, module: torch.nn.Module, inputs: Iterable[torch.Tensor]) -> None:
        super().__init__()
        given = tuple(inputs)
        self._own = [*module.parameters(), *module.buffers()]
        self._given = {_key(t) for t in (*self._own, *given)}
        self._kept = [module, given]  # their storages' addresses must stay theirs
        self._alive: dict[int, tuple[StorageWeakRef, int]] = {}
        self._live = 0
        self.count = Count()
        self.begin(given)

    def begin(self, inputs: Iterable[torch.Tensor]) -> None:
        """Begin a pass with these inputs; weights are read again."""
        given = tuple(inputs)
        self._kept.append(given)
        self._given.update(_key(t) for t in given)
        self._unread = {_key(t): t.untyped_storage().nbytes() for t in self._own}
        self.count = Count(input_bytes=sum(t.nbytes for t in given))

    @contextmanager
    def counting(self) -> Iterator[None]:
        # What the collector of cycles would free, and when, is chance: real workers have it
        # off too while they are timed.
        with pause_garbage_collection(), _whole_attention(self), self:
            yield

    def __torch_dispatch__(self, func: Any, types: Any, args: Args = (), kwargs: Any = None) -> Any:
        name = func._schema.name.rpartition("::")[2]
        if name == "_local_scalar_dense":
            return _answer(args[0]) if args[0].is_meta else func(*args)
        if name == "_grouped_mm" and args[0].is_meta:  # torch's own shapes are of bf16 alone
            result = grouped_result(*args, **(kwargs or {}))
        else:
            result = func(*args, **(kwargs or {}))
        if not func.is_view and name != "detach":
            self._read_weights(name, args, result)
            # At inference the kernels leave the batch's statistics empty; meta tensors do not.
            bare = name == "native_batch_norm" and not args[5]
            self._keep_books(result[0] if bare else result)
            self._add_flops(func, name, args, result)
        return result

    def _add_flops(self, func: Any, name: str, args: Args, result: Any) -> None:
        product = PRODUCTS.get(name)
        if product is not None:
            self.count.matmul_flops += product(args, result)
        else:
            self.count.other_flops += operations(func, name, args, result)

    def attention(
        self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, masked: bool
    ) -> None:
        """Count products, mask and softmax of one fused attention; its scores are never stored."""
        scores = math.prod(query.shape[:-1]) * int(key.shape[-2])
        self.count.matmul_flops += 2 * scores * (int(query.shape[-1]) + int(value.shape[-1]))
        self.count.other_flops += (SOFTMAX + masked) * scores

    def attention_backward(
        self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor
    ) -> None:
        """Count the scores again, and the gradients of scores, query, key and value."""
        scores = math.prod(query.shape[:-1]) * int(key.shape[-2])
        self.count.matmul_flops += (
            2 * scores * (3 * int(query.shape[-1]) + 2 * int(value.shape[-1]))
        )
        self.count.other_flops += 2 * SOFTMAX * scores

    def _read_weights(self, name: str, args: Args, result: Any) -> None:
        if name == "embedding":  # reads the rows it returns, not the table
            self.count.weight_bytes_read += result.nbytes
            return
        for tensor in _tensors(args):  # a view of a weight has the weight's storage
            self.count.weight_bytes_read += self._unread.pop(_key(tensor), 0)

    def _keep_books(self, result: Any) -> None:
        made = []
        for tensor in _tensors((result,)):
            storage = tensor.untyped_storage()
            key, size = storage._cdata, storage.nbytes()
            if key in self._given or not size:
                continue
            known = self._alive.get(key)
            if known is not None:
                if not known[0].expired():
                    continue
                self._live -= known[1]  # another storage at the address of one that died
            self._alive[key] = (StorageWeakRef(storage), size)
            made.append(size)
        if made:
            self._live += sum(made)
            self.count.activation_bytes += sum(made)
            self._forget_dead()
            self.count.live_bytes.append(self._live)

    def _forget_dead(self) -> None:
        expired = torch.UntypedStorage._expired
        for key in [k for k, (ref, _) in self._alive.items() if expired(ref.cdata)]:
            self._live -= self._alive.pop(key)[1]


@contextmanager
def _whole_attention(counter: Counter) -> Iterator[None]:
    """Replace attention by one operation, as every device's kernel is.

    By its name, not by a mode of torch's: autograd leaves modes in the backward pass, where what is
    recomputed would be counted in its parts.
    """
    functional = torch.nn.functional
    plain = functional.scaled_dot_product_attention

    def whole(
        query: Any, key: Any, value: Any, attn_mask: Any = None, dropout_p: float = 0.0,
        *rest: Any, **named: Any,
    ) -> Any:  # fmt: skip
        if dropout_p or (attn_mask is not None and attn_mask.requires_grad):
            return plain(query, key, value, attn_mask, dropout_p, *rest, **named)
        return _Attention.apply(counter, query, key, value, attn_mask is not None)

    functional.scaled_dot_product_attention = whole
    try:
        yield
    finally:
        functional.scaled_dot_product_attention = plain


class _Attention(torch.autograd.Function):  # type: ignore[misc]  # mypy skips torch
    """Fused attention in shapes only."""

    @staticmethod
    def forward(ctx: Any, counter: Counter, query: Any, key: Any, value: Any, masked: bool) -> Any:
        counter.attention(query, key, value, masked)
        *batch, heads, length, _ = query.shape
        # The fused kernels lay their result out by token, so that joining the heads is a view.
        made = query.new_empty((*batch, length, heads, value.shape[-1])).transpose(-3, -2)
        if any(ctx.needs_input_grad):
            sums = query.new_empty((*batch, heads, length), dtype=torch.float32)
            ctx.counter = counter
            ctx.save_for_backward(query, key, value, made, sums)
        return made

    @staticmethod
    def backward(ctx: Any, _gradient: Any) -> Any:
        query, key, value, *_ = ctx.saved_tensors
        ctx.counter.attention_backward(query, key, value)
        return (None, *(torch.empty_like(t) for t in (query, key, value)), None)


def _answer(tensor: torch.Tensor) -> bool:
    """Answer whether nothing is masked, the one question asked of values: masks are all ones."""
    if tensor.dtype is not torch.bool:
        raise UnknownOperationError(f"the value of a {tensor.dtype} tensor decides the way")
    return True


def _key(tensor: torch.Tensor) -> int:
    key: int = tensor.untyped_storage()._cdata
    return key


def _tensors(values: Any) -> Iterator[torch.Tensor]:
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from _tensors(value)

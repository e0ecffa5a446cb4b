"""What module workarounds change, for as long as an export takes. Imports torch where it acts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any

_TYPES = "token_type_ids"


@contextmanager
def applied(names: Sequence[str], module: Any) -> Iterator[None]:
    """Within it a module and its library are as the workarounds want them."""
    with ExitStack() as stack:
        for name in names:
            if name in _PATCHES:
                stack.enter_context(_PATCHES[name](module))
        yield


@contextmanager
def _replaced(owner: Any, name: str, other: Any) -> Iterator[None]:
    before = getattr(owner, name)
    setattr(owner, name, other)
    try:
        yield
    finally:
        setattr(owner, name, before)


@contextmanager
def _experts_in_batches(module: Any) -> Iterator[None]:
    # The module is of this export alone: nobody asks for the former way again.
    module.set_experts_implementation("batched_mm")
    yield


@contextmanager
def _eager_attention(module: Any) -> Iterator[None]:
    if hasattr(module, "set_attn_implementation"):
        module.set_attn_implementation("eager")
    yield


def _no_packed_sequences(_: Any) -> AbstractContextManager[None]:
    from transformers import masking_utils

    return _replaced(masking_utils, "find_packed_sequence_indices", lambda *_, **__: None)


@contextmanager
def _image_sizes_as_numbers(_: Any) -> Iterator[None]:
    from transformers.models.llava_next import modeling_llava_next

    with ExitStack() as stack:
        stack.enter_context(_replaced(modeling_llava_next, "unpad_image", unpadded))
        if hasattr(modeling_llava_next, "torch_compilable_check"):
            stack.enter_context(
                _replaced(modeling_llava_next, "torch_compilable_check", lambda *_, **__: None)
            )
        yield


def unpadded(tensor: Any, original_size: Any) -> Any:
    """transformers' unpad_image with sizes as numbers: round() refuses a traced one."""
    height, width = (int(size) for size in original_size)
    now_height, now_width = int(tensor.shape[1]), int(tensor.shape[2])
    if width / height > now_width / now_height:
        new = int(round(height * (now_width / width), 7))
        pad = (now_height - new) // 2
        return tensor[:, pad : now_height - pad, :]
    new = int(round(width * (now_height / height), 7))
    pad = (now_width - new) // 2
    return tensor[:, :, pad : now_width - pad]


def _scan_by_doubling(_: Any) -> AbstractContextManager[None]:
    from transformers.models.mamba import modeling_mamba

    return _replaced(modeling_mamba, "mamba_selective_scan", selective_scan)


def selective_scan(
    hidden_states: Any,
    dt: Any,
    A: Any,  # noqa: N803 - transformers' names
    B: Any,  # noqa: N803
    C: Any,  # noqa: N803
    D: Any = None,  # noqa: N803
    z: Any = None,
    delta_bias: Any = None,
    delta_softplus: bool = False,
    return_last_state: bool = False,
    **_: Any,
) -> Any:
    """transformers' own scan over tokens, exact, without a loop over them."""
    import torch.nn.functional as functional

    if delta_bias is not None:
        dt = dt + delta_bias.to(dt.dtype)[..., None]
    if delta_softplus:
        dt = functional.softplus(dt)
    B, C = B.transpose(1, 2), C.transpose(1, 2)  # noqa: N806
    decay = (A[None, :, None, :] * dt[:, :, :, None]).exp()
    step = dt[:, :, :, None] * B[:, None, :, :].float() * hidden_states[:, :, :, None].float()
    y = doubled(decay, step, C)
    if D is not None:
        y = y + hidden_states * D[None, :, None]
    if z is not None:
        y = y * functional.silu(z)
    return (y, None) if return_last_state else y


def doubled(decay: Any, step: Any, read: Any) -> Any:
    """state = decay · state + step for every token, each round reaching twice as far back."""
    import torch

    reach, length = 1, decay.shape[2]
    while reach < length:
        later, earlier = decay[:, :, reach:], step[:, :, :-reach]
        step = torch.cat([step[:, :, :reach], step[:, :, reach:] + later * earlier], 2)
        decay = torch.cat([decay[:, :, :reach], later * decay[:, :, :-reach]], 2)
        reach *= 2
    return (step * read[:, None]).sum(-1)


def _product_for_einsum(_: Any) -> AbstractContextManager[None]:
    import torch

    return _replaced(torch, "einsum", contracted(torch.einsum))


def contracted(einsum: Callable[..., Any]) -> Callable[..., Any]:
    """torch.einsum that does X-CLIP's sum, a video's row with each of its texts', by a product."""

    def other(equation: str, *operands: Any) -> Any:
        if equation != "bd,bkd->bk" or len(operands) != 2:
            return einsum(equation, *operands)
        rows, texts = operands
        return (texts @ rows[:, :, None])[:, :, 0]

    return other


@contextmanager
def _gather_for_scatter(_: Any) -> Iterator[None]:
    import torch

    torch.Tensor.masked_scatter = placed
    try:
        yield
    finally:
        del torch.Tensor.masked_scatter  # what is left is the base class's own


def placed(tokens: Any, mask: Any, rows: Any) -> Any:
    """masked_scatter of whole rows, each token reading the row that is its own.

    The mask says the same of every number of a token, as transformers makes it.
    """
    import torch

    here = mask[..., 0]
    # The how-manieth place of an image a token is; before the first it reads any row for nothing.
    nth = (here.reshape(-1).to(torch.int32).cumsum(0) - 1).clamp(min=0)
    source = rows.reshape(-1, tokens.shape[-1])[nth].reshape(tokens.shape)
    return torch.where(here[..., None], source, tokens)


@contextmanager
def _token_types_as_zeros(module: Any) -> Iterator[None]:
    """Without the buffer, transformers' text embeddings make zeros of the tokens' shape."""
    held = [
        (layer, layer._buffers.get(_TYPES))
        for layer in module.modules()
        if _TYPES in layer._buffers
    ]
    for layer, _ in held:
        delattr(layer, _TYPES)
    try:
        yield
    finally:
        for layer, buffer in held:
            layer.register_buffer(_TYPES, buffer, persistent=False)


def _layer_norm_written_out(_: Any) -> AbstractContextManager[None]:
    from torch.nn import functional

    return _replaced(functional, "layer_norm", written_out)


def written_out(
    values: Any, shape: Sequence[int], weight: Any = None, bias: Any = None, eps: float = 1e-5
) -> Any:
    """torch's layer_norm as means, a product and a root."""
    axes = tuple(range(-len(shape), 0))
    off = values - values.mean(axes, keepdim=True)
    normed = off / ((off * off).mean(axes, keepdim=True) + eps).sqrt()
    if weight is not None:
        normed = normed * weight
    return normed if bias is None else normed + bias


_PATCHES: dict[str, Callable[[Any], AbstractContextManager[None]]] = {
    "scan_by_doubling": _scan_by_doubling,
    "experts_in_batches": _experts_in_batches,
    "no_packed_sequences": _no_packed_sequences,
    "image_sizes_as_numbers": _image_sizes_as_numbers,
    "eager_attention": _eager_attention,
    "layer_norm_written_out": _layer_norm_written_out,
    "token_types_as_zeros": _token_types_as_zeros,
    "product_for_einsum": _product_for_einsum,
    "gather_for_scatter": _gather_for_scatter,
}

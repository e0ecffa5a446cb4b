"""Inputs for a model: shapes settled, bytes counted, tensors drawn. Imports NumPy on use."""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from string import ascii_lowercase
from typing import TYPE_CHECKING, Any

from accelbench.core.axes import Axis, Part, axes_of, numeric_axes
from accelbench.core.case import Shapes
from accelbench.core.errors import CaseError, OutOfMemoryError, UnsupportedError, UsageError
from accelbench.core.free_dimensions import parse_names, parse_sizes, resolve_sizes
from accelbench.core.model import CodeKind, Generation, InputSpec, ModelSpec
from accelbench.core.safe_text import in_quotes
from accelbench.core.vocabulary import Family, Mode

if TYPE_CHECKING:
    import numpy as np
    import torch


_moved: ContextVar[bool] = ContextVar("_moved", default=False)


@contextmanager
def last_places_moved() -> Iterator[None]:
    """Draw neighbours of every number within: one unit in the last place up or down, by chance.

    What this changes of a model's outputs, rounding within the model changes as well: it shows how
    far outputs are determined in the type of the computation.
    """
    before = _moved.set(True)
    try:
        yield
    finally:
        _moved.reset(before)


def as_asked(drawn: np.ndarray[Any, Any], stream: np.random.Generator) -> np.ndarray[Any, Any]:
    """Return what was drawn, or its neighbours within `last_places_moved`; ids have none."""
    if not _moved.get() or drawn.dtype.kind != "f":
        return drawn
    import numpy as np

    towards = np.where(stream.random(drawn.shape) < 0.5, -np.inf, np.inf).astype(drawn.dtype)
    neighbours: np.ndarray[Any, Any] = np.nextafter(drawn, towards)
    return neighbours


#: Bytes of a value, of types whose names do not end with their bits.
_BYTES = {"float": 4, "bool": 1}

#: More than this is never drawn: batch 1024 of the largest catalogue input takes 0.6 GiB,
#: so a request beyond it is a slip (batch 10**9), and trying would take the machine down.
LARGEST_BYTES = 16 * 2**30

#: Sizes that a model has for itself, whatever is asked of it.
_OF_MODELS = axes_of(Part.INPUT, Part.PASSES)


def settle(spec: ModelSpec, shapes: Shapes) -> Shapes:
    """Fill in the model's default sizes and drop those it has no use for, or refuse them."""
    for what, size in (
        ("batch size", shapes.batch),
        *((axis.noun, getattr(shapes, axis.field)) for axis in numeric_axes() if axis.least),
    ):
        if size is not None and size < 1:
            raise UsageError(f"A {what} of {size} is impossible.", "Use 1 or more.")
    makes = spec.generation if shapes.new_tokens else None
    sizes: dict[str, Any] = {axis.field: _settle_size(spec, axis, shapes) for axis in _OF_MODELS}
    if makes:
        sizes["sequence"] = None  # the prompt is what it reads
    settled = replace(
        shapes,
        **sizes,
        prompt_tokens=(shapes.prompt_tokens or makes.prompt_tokens) if makes else None,
        new_tokens=shapes.new_tokens if makes else None,
    )
    _check_limits(spec, settled)
    if makes:
        _check_request(spec, makes, settled)
    return settled


def _settle_size(spec: ModelSpec, axis: Axis, shapes: Shapes) -> Any:
    own, asked = axis.default_size(spec), getattr(shapes, axis.field)
    if own is None or not axis.text:
        return None if own is None else asked or own
    settled = resolve_sizes(own, asked or "")
    open_ = [name for name in parse_names(settled) if name not in parse_sizes(settled)]
    if open_:
        raise UsageError(
            f"{spec.id} has a free dimension {in_quotes(open_[0])}, and no size for it.",
            f"Name one: {axis.option} {open_[0]}=64{_not_the_batch(spec, open_[0])}",
        )
    return settled


def _first_axis(spec: ModelSpec) -> str | None:
    """Return the free dimension that inputs of a file begin with, if it is not the batch."""
    first = (entry.shape[0] for entry in spec.inputs if entry.shape)
    return next((str(name) for name in first if name in parse_names(spec.dims)), None)


def _not_the_batch(spec: ModelSpec, name: str) -> str:
    if name != _first_axis(spec):
        return ""
    return (
        ". A first dimension is the batch, for --batch-sizes, only if its name is batch, N or bs."
    )


def tensors(spec: ModelSpec, shapes: Shapes, mode: str = Mode.INFERENCE) -> tuple[InputSpec, ...]:
    """Return the inputs of a forward pass, a prefill, or a training step."""
    if mode == Mode.TRAINING:
        return spec.training_variant.inputs
    if shapes.new_tokens and spec.generation is not None:
        return spec.generation.inputs
    return spec.inputs


def _check_request(spec: ModelSpec, makes: Generation, shapes: Shapes) -> None:
    prompt, new = shapes.prompt_tokens or 0, shapes.new_tokens or 0
    if new < 1:
        raise UsageError(f"{new} new tokens are impossible.", "Use 1 or more, or 0 for none.")
    if prompt < makes.min_prompt:
        raise UnsupportedError(
            "prompt_too_short",
            f"{spec.id} needs a prompt of at least {makes.min_prompt} tokens, not {prompt}.",
            f"Use --prompt-tokens {makes.min_prompt} or more.",
        )
    if makes.max_tokens is not None and prompt + new > makes.max_tokens:
        raise UnsupportedError(
            "sequence_too_long",
            f"{spec.id} takes at most {makes.max_tokens} tokens, prompt and new ones together,"
            f" not {prompt} + {new}.",
            "Use fewer with --prompt-tokens or --new-tokens.",
        )


def _check_limits(spec: ModelSpec, shapes: Shapes) -> None:
    longest = spec.max_sequence
    if longest is not None and shapes.sequence is not None and shapes.sequence > longest:
        raise UnsupportedError(
            "sequence_too_long",
            f"{spec.id} takes at most {longest} tokens, not {shapes.sequence}.",
            f"Use a sequence length of {longest} or less.",
        )
    if spec.fixed_audio and shapes.audio != spec.audio:
        raise UnsupportedError(
            "audio_length",
            f"{spec.id} takes {spec.audio} seconds of sound, not {shapes.audio}.",
            f"Leave the length at {spec.audio}.",
        )
    least = max((input_.lead[1] + 1 for input_ in spec.inputs if input_.lead), default=1)
    if shapes.sequence is not None and shapes.sequence < least:
        raise UnsupportedError(
            "sequence_too_short",
            f"{spec.id} needs at least {least} tokens, {least - 1} of them places of its image,"
            f" not {shapes.sequence}.",
            f"Use a sequence length of {least} or more.",
        )
    _check_file(spec, shapes)
    batch = spec.fixed_batch
    if batch is not None and shapes.batch != batch:
        raise UnsupportedError(
            "fixed_batch",
            f"{spec.id} takes a batch of {batch} and no other, not {shapes.batch}",
            _other_batches(spec, batch),
        )
    fixed = spec.image if _has_learned_positions(spec) else None
    if fixed is not None and shapes.image is not None and shapes.image != fixed:
        raise UnsupportedError(
            "image_size",
            f"{spec.id} takes images of {fixed} × {fixed}, not {shapes.image} × {shapes.image}.",
            f"Leave the image size at {fixed}.",
        )


def _other_batches(spec: ModelSpec, batch: int) -> str:
    if spec.code is None and (axis := _first_axis(spec)) is not None:
        other = (
            f"give sizes to its first dimension with --dim {axis}={batch},8: the batch, for"
            " --batch-sizes, has a name such as batch or N."
        )
    elif spec.code is None:
        other = "export it with a name for its first size, such as batch."
    elif spec.code.kind is CodeKind.CALLABLE:
        other = (
            "have its inputs drawn: --input NAME=float32[batch,64]. A call with its own example"
            " is one step, whatever is in it."
        )
    else:
        other = "make it take its example twice over."
    return f"Measure it with --batch-sizes {batch}, or {other}"


def _check_file(spec: ModelSpec, shapes: Shapes) -> None:
    if spec.file is None:
        return
    asked = {
        "batch": shapes.batch,
        "sequence": shapes.sequence,
        "image": shapes.image,
        **parse_sizes(shapes.dims or ""),
    }
    for name, size in asked.items():
        least, most = spec.file.least.get(name), spec.file.most.get(name)
        if size is None or (size >= (least or 0) and (most is None or size <= most)):
            continue
        limits = [f"{least} or more" if least else "", f"{most} or less" if most else ""]
        told = " and ".join(filter(None, limits))
        raise UnsupportedError(
            "size_not_taken",
            f"{spec.id} takes a {name} of {told}, not {size}.",
            "Use such a size, or export it with other limits: torch.export.Dim(name, min, max).",
        )


#: Classes of transformers that learn a position a patch, and refuse another number of them.
#: An image size in a config is no sign: Swin and ConvNeXt name one and take others.
_LEARNED = ("ViTFor", "ViTModel", "DeiTFor", "DeiTModel", "CLIP", "XCLIP", "Llava")
_LEARNED_ENCODERS = ("vit", "deit")


def _has_learned_positions(spec: ModelSpec) -> bool:
    origin, _, name = spec.builder.partition(":")
    if origin != "transformers":
        return False
    encoder = spec.config.get("encoder")
    if name == "VisionEncoderDecoderModel" and isinstance(encoder, Mapping):
        return encoder.get("model_type") in _LEARNED_ENCODERS
    return name.startswith(_LEARNED)


def input_shapes(
    spec: ModelSpec, shapes: Shapes, mode: str = Mode.INFERENCE
) -> dict[str, tuple[int, ...]]:
    """Return the shape of every input by name; `shapes` is settled first."""
    settled = settle(spec, shapes)
    return {t.name: _fill_shape(spec, t, settled) for t in tensors(spec, settled, mode)}


def axis(spec: ModelSpec, part: str, shapes: Shapes) -> int | None:
    """Return the size that a name in an input's shape stands for, or None."""
    if part in parse_names(spec.dims):
        return parse_sizes(shapes.dims).get(part)
    name, _, fewer = part.partition("-")
    if fewer:
        whole = axis(spec, name, shapes)
        return None if whole is None else whole - int(fewer)
    if part == "sequence":
        return shapes.sequence if shapes.sequence is not None else shapes.prompt_tokens
    if part == "samples":
        seconds, rate = shapes.audio, spec.sampling_rate
        return None if seconds is None or rate is None else seconds * rate
    if part == "latent":  # what an image is where a denoiser sees it: an eighth a side
        return None if shapes.image is None else shapes.image // 8
    size: int | None = getattr(shapes, part)
    return size


def _fill_shape(spec: ModelSpec, tensor: InputSpec, shapes: Shapes) -> tuple[int, ...]:
    sizes = []
    for part in tensor.shape:
        size = part if isinstance(part, int) else axis(spec, part, shapes)
        if size is None:
            raise UsageError(
                f"Input {tensor.name} of {spec.id} needs a size for {part}.",
                f"Give the model a default {part}, or name one.",
            )
        sizes.append(size)
    return tuple(sizes)


def input_bytes(
    spec: ModelSpec, shapes: Shapes, float_bytes: int = 4, mode: str = Mode.INFERENCE
) -> int:
    """Return the bytes of one batch of inputs, with `float_bytes` of the precision."""
    sizes = {**_BYTES, "float": float_bytes}
    wanted = input_shapes(spec, shapes, mode)
    kinds = {t.name: t.dtype for t in tensors(spec, shapes, mode)}
    return sum(
        math.prod(shape) * (sizes.get(kinds[name]) or int(kinds[name].lstrip(ascii_lowercase)) // 8)
        for name, shape in wanted.items()
    )


def throughput_unit(spec: ModelSpec, shapes: Shapes, mode: str = Mode.INFERENCE) -> str:
    """Return the unit of a step's items per second: images, tokens, seconds of sound."""
    if spec.audio is not None:
        return "audio s/s"
    if _counts_tokens(spec, shapes, mode):
        return "tokens/s"
    return f"{spec.item}/s"


def items_per_step(spec: ModelSpec, shapes: Shapes, mode: str = Mode.INFERENCE) -> int:
    """Return how many of these items one step completes."""
    if spec.audio is not None:
        return shapes.batch * (shapes.audio or spec.audio)
    if _counts_tokens(spec, shapes, mode):
        return shapes.batch * (shapes.new_tokens or 0)
    return shapes.batch


def _counts_tokens(spec: ModelSpec, shapes: Shapes, mode: str) -> bool:
    """Return text is counted by tokens; models that answer about an image, by samples."""
    makes = mode == Mode.INFERENCE and bool(shapes.new_tokens)
    return makes and spec.family is Family.TEXT_GENERATION


#: Which items of a seed's stream are drawn; None: the first ones, as many as the batch has.
_chosen: ContextVar[tuple[int, ...] | None] = ContextVar("_chosen", default=None)


@contextmanager
def choosing(items: Sequence[int]) -> Iterator[None]:
    """Draw these items of a seed's stream, in this order, as the batch.

    Item i of a stream has the same values in every batch, so a reference of few items can be
    compared with a batch that has them among others.
    """
    before = _chosen.set(tuple(items))
    try:
        yield
    finally:
        _chosen.reset(before)


def chosen_items() -> tuple[int, ...] | None:
    """Return the items that `choosing` asks for, or None if it is not used."""
    return _chosen.get()


def make_inputs(
    spec: ModelSpec, shapes: Shapes, seed: int, mode: str = Mode.INFERENCE
) -> dict[str, np.ndarray[Any, Any]]:
    """Draw one batch of inputs; the same seed gives the same bits on every machine.

    Ids are below the vocabulary, masks are ones, floats (always float32 here) are standard normal.
    Every tensor has a stream of its own, so that another input leaves the others as they were.
    Raises OutOfMemoryError if the inputs alone would take more than `LARGEST_BYTES`.
    """
    items = _chosen.get() or ()
    drawn_count = max(items, default=shapes.batch - 1) + 1
    drawn_shapes = replace(shapes, batch=drawn_count)
    refuse_absurd(spec, drawn_shapes, mode)
    wanted = input_shapes(spec, drawn_shapes, mode)
    fed = tensors(spec, shapes, mode)
    drawn = {t.name: draw(t, wanted[t.name], seed) for t in fed}
    if items == tuple(range(len(items))):
        return drawn
    return {t.name: _take_items(t, drawn[t.name], items) for t in fed}


def _take_items(
    tensor: InputSpec, drawn: np.ndarray[Any, Any], items: Sequence[int]
) -> np.ndarray[Any, Any]:
    if "batch" not in tensor.shape:
        return drawn
    return drawn.take(items, axis=tensor.shape.index("batch"))


def refuse_absurd(spec: ModelSpec, shapes: Shapes, mode: str = Mode.INFERENCE) -> None:
    """Raise OutOfMemoryError if one batch would take more than `LARGEST_BYTES`."""
    needed = input_bytes(spec, shapes, mode=mode)
    if needed > LARGEST_BYTES:
        raise OutOfMemoryError(
            f"The inputs alone would take {needed / 2**30:,.0f} GiB.",
            "Use a smaller batch size.",
            reason="out_of_memory_estimated",
        )


def draw(tensor: InputSpec, shape: tuple[int, ...], seed: int) -> np.ndarray[Any, Any]:
    """Draw one input tensor; its stream follows from the seed and the tensor's name."""
    import numpy as np

    dtype = np.dtype("float32" if tensor.dtype == "float" else tensor.dtype)
    if tensor.row is not None:
        return np.broadcast_to(np.asarray(tensor.row, dtype), shape).copy()
    if tensor.constant is not None:
        return np.full(shape, tensor.constant, dtype)
    random = np.random.Generator(np.random.PCG64([seed % 2**64, zlib.crc32(tensor.name.encode())]))
    if dtype.kind == "f":
        numbers = random.standard_normal(shape, np.float32).astype(dtype, copy=False)
        return as_asked(numbers, random)
    if dtype.kind == "b":
        return random.random(shape) < 0.5
    drawn = random.integers(tensor.low, tensor.high, shape, dtype)
    if tensor.lead is not None:
        value, count = tensor.lead
        drawn[..., :count] = value
    if tensor.last is not None:
        drawn[..., -1] = tensor.last
    return drawn


def named_tensors(output: Any) -> dict[str, torch.Tensor]:
    """Return every tensor of a torch model's output by name: the same in every engine."""
    import torch

    if isinstance(output, torch.Tensor):
        return {"output": output}
    if isinstance(output, Mapping):
        return {str(k): v for k, v in output.items() if isinstance(v, torch.Tensor)}
    if isinstance(output, (tuple, list)):
        return {str(i): v for i, v in enumerate(output) if isinstance(v, torch.Tensor)}
    raise CaseError("no_outputs", f"the model returned a {type(output).__name__}, not tensors")


def encoder_outputs(output: Any, inputs: Mapping[str, torch.Tensor]) -> dict[str, Any]:
    """Return what a decoder is given of its encoder's pass, which is made once."""
    from transformers.modeling_outputs import BaseModelOutput

    kept = {"encoder_outputs": BaseModelOutput(output.encoder_last_hidden_state)}
    if "attention_mask" in inputs:  # the encoder's, which cross-attention looks at
        kept["attention_mask"] = inputs["attention_mask"]
    return kept


def enable_checkpointing(module: torch.nn.Module) -> None:
    """Have results recomputed in the backward pass; both libraries raise ValueError without it."""
    # Transformers' new and old name for it, or diffusers'.
    how = {"use_reentrant": False}
    if hasattr(module, "activation_checkpointing_enable"):
        module.activation_checkpointing_enable(activation_checkpointing_kwargs=how)
    elif hasattr(module, "gradient_checkpointing_enable"):
        module.gradient_checkpointing_enable(gradient_checkpointing_kwargs=how)
    elif hasattr(module, "enable_gradient_checkpointing"):
        module.enable_gradient_checkpointing()
    else:
        raise ValueError(f"{type(module).__name__} has no gradient checkpointing")

"""Inputs for a model: shapes settled, bytes counted, tensors drawn. Pure; NumPy only on use."""

from __future__ import annotations

import math
import zlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from accelbench.core.case import Shapes
from accelbench.core.errors import OutOfMemoryError, UnsupportedError, UsageError
from accelbench.core.model import InputSpec, ModelSpec

if TYPE_CHECKING:
    import numpy as np

_BYTES = {"float": 4, "float32": 4, "int64": 8, "bool": 1}

#: More than this is never drawn: batch 1024 of the largest catalogue input takes 0.6 GiB,
#: so a request beyond it is a slip (batch 10**9), and trying would take the machine down.
LARGEST_BYTES = 16 * 2**30


def settle(spec: ModelSpec, shapes: Shapes) -> Shapes:
    """Fill in the model's default sizes and drop those it has no use for.

    Raises:
        UsageError: a size is below one.
        UnsupportedError: the sequence is longer than the model can take, or the
            image has another size than its learned positions.
    """
    for what, size in (
        ("batch size", shapes.batch),
        ("sequence length", shapes.sequence),
        ("image size", shapes.image),
    ):
        if size is not None and size < 1:
            raise UsageError(f"A {what} of {size} is impossible.", "Use 1 or more.")
    settled = replace(
        shapes,
        sequence=None if spec.sequence is None else shapes.sequence or spec.sequence,
        image=None if spec.image is None else shapes.image or spec.image,
    )
    _check_limits(spec, settled)
    return settled


def _check_limits(spec: ModelSpec, shapes: Shapes) -> None:
    longest = spec.max_sequence
    if longest is not None and shapes.sequence is not None and shapes.sequence > longest:
        raise UnsupportedError(
            "sequence_too_long",
            f"{spec.id} takes at most {longest} tokens, not {shapes.sequence}.",
            f"Use a sequence length of {longest} or less.",
        )
    fixed = spec.config.get("image_size")
    if fixed is not None and shapes.image is not None and shapes.image != fixed:
        raise UnsupportedError(
            "image_size",
            f"{spec.id} takes images of {fixed} × {fixed}, not {shapes.image} × {shapes.image}.",
            f"Leave the image size at {fixed}.",
        )


def input_shapes(spec: ModelSpec, shapes: Shapes) -> dict[str, tuple[int, ...]]:
    """The shape of every input by name; `shapes` is settled first."""
    settled = settle(spec, shapes)
    return {tensor.name: _filled(spec, tensor, settled) for tensor in spec.inputs}


def _filled(spec: ModelSpec, tensor: InputSpec, shapes: Shapes) -> tuple[int, ...]:
    sizes = []
    for part in tensor.shape:
        size = part if isinstance(part, int) else getattr(shapes, part)
        if size is None:
            raise UsageError(
                f"Input {tensor.name} of {spec.id} needs a size for {part}.",
                f"Give the model a default {part}, or name one.",
            )
        sizes.append(size)
    return tuple(sizes)


def input_bytes(spec: ModelSpec, shapes: Shapes, float_bytes: int = 4) -> int:
    """Bytes of one batch of inputs, by arithmetic alone.

    Args:
        spec: the model.
        shapes: the sizes; defaults are filled in.
        float_bytes: storage of a value of a tensor that follows the precision.
    """
    sizes = {**_BYTES, "float": float_bytes}
    wanted = input_shapes(spec, shapes)
    return sum(math.prod(wanted[tensor.name]) * sizes[tensor.dtype] for tensor in spec.inputs)


def throughput_unit(spec: ModelSpec) -> str:
    """What one output item is, per second: "images/s"."""
    return f"{spec.item}/s"


def make_inputs(spec: ModelSpec, shapes: Shapes, seed: int) -> dict[str, np.ndarray[Any, Any]]:
    """Draw one batch of inputs; the same seed gives the same bits on every machine.

    Ids are below the vocabulary, masks are all ones, floats (always float32
    here) are standard normal. Every tensor has a stream of its own, so that
    adding an input to a model leaves the others as they were.

    Raises:
        UsageError, UnsupportedError: as `settle`.
        OutOfMemoryError: the inputs alone would take more than `LARGEST_BYTES`.
    """
    wanted = input_shapes(spec, shapes)
    needed = input_bytes(spec, shapes)
    if needed > LARGEST_BYTES:
        raise OutOfMemoryError(
            f"The inputs alone would take {needed / 2**30:,.0f} GiB.",
            "Use a smaller batch size.",
            reason="out_of_memory_estimated",
        )
    return {tensor.name: _draw(tensor, wanted[tensor.name], seed) for tensor in spec.inputs}


def _draw(tensor: InputSpec, shape: tuple[int, ...], seed: int) -> np.ndarray[Any, Any]:
    import numpy as np

    dtype = np.dtype("float32" if tensor.dtype == "float" else tensor.dtype)
    if tensor.constant is not None:
        return np.full(shape, tensor.constant, dtype)
    random = np.random.Generator(np.random.PCG64([seed % 2**64, zlib.crc32(tensor.name.encode())]))
    if dtype.kind == "f":
        return random.standard_normal(shape, np.float32)
    if dtype.kind == "b":
        return random.random(shape) < 0.5
    return random.integers(tensor.low, tensor.high, shape, dtype)

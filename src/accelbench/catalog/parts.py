"""Input tensors that many models share, so that a model file says only what is its own."""

from __future__ import annotations

from accelbench.core.model import InputSpec


def token_ids(vocabulary: int, name: str = "input_ids") -> InputSpec:
    """Token ids drawn evenly from the whole vocabulary."""
    return InputSpec(name, ("batch", "sequence"), "int64", 0, vocabulary)


def attention_mask(name: str = "attention_mask") -> InputSpec:
    """A mask of ones: every token counts, nothing is padding."""
    return InputSpec(name, ("batch", "sequence"), "int64", constant=1)


def pixel_values(channels: int = 3, name: str = "pixel_values") -> InputSpec:
    """Square images, normalised: standard normal values."""
    return InputSpec(name, ("batch", channels, "image", "image"))

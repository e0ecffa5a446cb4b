"""Input tensors that many models share, so that a model file says only what is its own."""

from __future__ import annotations

from typing import Any

from accelbench.core.model import Generation, InputSpec, Training

#: Ids that a tiny size knows: the logits of a batch of 128 then stay below 300 MB.
FEW = 4096


def token_ids(vocabulary: int, name: str = "input_ids") -> InputSpec:
    """Token ids drawn evenly from the whole vocabulary."""
    return InputSpec(name, ("batch", "sequence"), "int64", 0, vocabulary)


def attention_mask(name: str = "attention_mask") -> InputSpec:
    """A mask of ones: every token counts, nothing is padding."""
    return InputSpec(name, ("batch", "sequence"), "int64", constant=1)


def text(vocabulary: int) -> tuple[InputSpec, ...]:
    """What a decoder reads: ids, all of which count."""
    return (token_ids(vocabulary), attention_mask())


def pixel_values(channels: int = 3, name: str = "pixel_values") -> InputSpec:
    """Square images, normalised: standard normal values."""
    return InputSpec(name, ("batch", channels, "image", "image"))


def rotary_decoder(
    vocabulary: int,
    hidden: int,
    *,
    feed_forward: int,
    layers: int,
    heads: int,
    key_value_heads: int,
    positions: int,
    norm: float = 1e-5,
    rope: dict[str, Any],
    tied: bool = False,
    **more: Any,
) -> dict[str, Any]:
    """A decoder made like LLaMA: rotary positions, gated feed-forward, keys shared by queries."""
    return {
        "vocab_size": vocabulary,
        "hidden_size": hidden,
        "intermediate_size": feed_forward,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": key_value_heads,
        "max_position_embeddings": positions,
        "rms_norm_eps": norm,
        "rope_parameters": rope,
        "tie_word_embeddings": tied,
        # One forward pass keeps no keys and values; generation asks for the cache itself.
        "use_cache": False,
        **more,
    }


def turning(theta: float) -> dict[str, Any]:
    """Positions that turn at the plain rates of a base."""
    return {"rope_type": "default", "rope_theta": theta}


def request(
    inputs: tuple[InputSpec, ...],
    max_tokens: int | None = None,
    *,
    prompt_tokens: int = 128,
    new_tokens: int = 32,
) -> Generation:
    """How a decoder answers: it reads the prompt, then goes on from it."""
    return Generation(inputs, prompt_tokens, new_tokens, max_tokens)


def short_request(inputs: tuple[InputSpec, ...], max_tokens: int | None = None) -> Generation:
    """The same of a tiny model: under a tenth of a second on one core."""
    return request(inputs, max_tokens, prompt_tokens=32, new_tokens=8)


#: A decoder learns to tell the next id of what it reads: it needs no labels of its own.
NEXT_TOKEN = Training(loss="causal_lm", labels=())


def classes(builder: str, count: int = 2) -> Training:
    """An encoder is trained with a head that sorts what it reads into classes."""
    labels = InputSpec("labels", ("batch",), "int64", 0, count)
    return Training("classification", (labels,), builder=builder, config={"num_labels": count})


def image_classes(count: int) -> Training:
    """A model that already sorts images into classes is trained as it is."""
    return Training("classification", (InputSpec("labels", ("batch",), "int64", 0, count),))


def sentence(end: int) -> InputSpec:
    """Token ids below `end`, which closes every row and occurs nowhere else.

    Models that read a sentence off the place of its end would find another
    place in ids drawn from the whole vocabulary.
    """
    return InputSpec("input_ids", ("batch", "sequence"), "int64", 0, end, last=end)


#: Both sides of a pair find each other among all pairs of the batch; no labels are needed.
PAIRS = Training(loss="contrastive", labels=())


def places(image_id: int, count: int, name: str = "input_ids") -> InputSpec:
    """Text after an image: `image_id` once for each place of the image, then ids below it."""
    return InputSpec(name, ("batch", "sequence"), "int64", 0, image_id, lead=(image_id, count))


def answers(image_id: int, count: int) -> Training:
    """A model that reads images learns the text alone: their places are left out of the loss."""
    labels = InputSpec("labels", ("batch", "sequence"), "int64", 0, image_id, lead=(-100, count))
    return Training("causal_lm", (labels,))


def seen_request(
    inputs: tuple[InputSpec, ...], count: int, text: int, new_tokens: int, max_tokens: int
) -> Generation:
    """The prompt is an image of `count` places and some text; at least one token of it."""
    return Generation(inputs, count + text, new_tokens, max_tokens, min_prompt=count + 1)

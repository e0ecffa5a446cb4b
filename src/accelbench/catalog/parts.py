"""Input tensors that many models share, so that a model file says only what is its own."""

from __future__ import annotations

from accelbench.core.model import Generation, InputSpec, Training


def token_ids(vocabulary: int, name: str = "input_ids") -> InputSpec:
    """Token ids drawn evenly from the whole vocabulary."""
    return InputSpec(name, ("batch", "sequence"), "int64", 0, vocabulary)


def attention_mask(name: str = "attention_mask") -> InputSpec:
    """A mask of ones: every token counts, nothing is padding."""
    return InputSpec(name, ("batch", "sequence"), "int64", constant=1)


def pixel_values(channels: int = 3, name: str = "pixel_values") -> InputSpec:
    """Square images, normalised: standard normal values."""
    return InputSpec(name, ("batch", channels, "image", "image"))


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

"""T5: an encoder that reads, and a decoder that answers, over one shared embedding."""

from __future__ import annotations

from typing import Any

from accelbench.catalog.own import FEW, attention_mask, other_size, token_ids
from accelbench.core.model import Generation, InputSpec, ModelSpec, Training
from accelbench.core.vocabulary import Architecture, Family

_VOCABULARY = 32128
_START = 0  # the padding id, which the decoder begins with


def _config(
    vocabulary: int, hidden: int, feed_forward: int, layers: int, heads: int
) -> dict[str, Any]:
    return {
        "vocab_size": vocabulary,
        "d_model": hidden,
        "d_kv": 64,
        "d_ff": feed_forward,
        "num_layers": layers,
        "num_heads": heads,
        "relative_attention_num_buckets": 32,
        "feed_forward_proj": "relu",
        "pad_token_id": _START,
        "decoder_start_token_id": _START,
        # One forward pass keeps no keys and values; generation asks for the cache itself.
        "use_cache": False,
    }


def _read(vocabulary: int) -> tuple[InputSpec, ...]:
    return (token_ids(vocabulary), attention_mask())


def _both(vocabulary: int) -> tuple[InputSpec, ...]:
    """A forward pass reads as many tokens on either side."""
    return (*_read(vocabulary), token_ids(vocabulary, "decoder_input_ids"))


def _answers(vocabulary: int, prompt_tokens: int, new_tokens: int) -> Generation:
    """The encoder reads the prompt; the decoder begins with nothing but its start id.

    Positions are relative, so that no length is too long for the weights.
    """
    start = InputSpec("decoder_input_ids", ("batch", 1), "int64", constant=_START)
    return Generation(
        (*_read(vocabulary), start), prompt_tokens, new_tokens, kind="encoder-decoder"
    )


def _training(vocabulary: int) -> Training:
    return Training(loss="seq2seq_lm", labels=(token_ids(vocabulary, "labels"),))


_LARGEST = ModelSpec(
    id="t5-base",
    family=Family.TEXT_GENERATION,
    architecture=Architecture.ENCODER_DECODER,
    modalities=("text",),
    task="text2text-generation",
    size="base",
    builder="transformers:T5ForConditionalGeneration",
    config=_config(_VOCABULARY, hidden=768, feed_forward=3072, layers=12, heads=12),
    inputs=_both(_VOCABULARY),
    parameters=222_903_552,
    item="sequences",
    sequence=128,
    generation=_answers(_VOCABULARY, prompt_tokens=128, new_tokens=32),
    training=_training(_VOCABULARY),
    aliases=("t5",),
    hub_ids=("google-t5/t5-base",),
    small_variant="t5-tiny",
    sets=("key",),
)
MODELS = (
    _LARGEST,
    other_size(
        _LARGEST,
        id="t5-small",
        size="small",
        config=_config(_VOCABULARY, hidden=512, feed_forward=2048, layers=6, heads=8),
        parameters=60_506_624,
        hub_ids=("google-t5/t5-small",),
        small_variant="t5-tiny",
    ),
    other_size(
        _LARGEST,
        id="t5-tiny",  # a size of our own
        size="tiny",
        config=_config(FEW, hidden=128, feed_forward=512, layers=2, heads=2),
        inputs=_both(FEW),
        parameters=1_443_456,
        generation=_answers(FEW, prompt_tokens=32, new_tokens=8),
        training=_training(FEW),
        sets=("small",),
    ),
)

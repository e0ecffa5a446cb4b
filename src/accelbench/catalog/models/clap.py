"""CLAP: a sound encoder (a Swin transformer over a mel spectrum) and a text encoder that meet."""

from __future__ import annotations

from typing import Any

from accelbench.catalog.own import PAIRS, attention_mask, other_size
from accelbench.core.model import InputSpec, ModelSpec
from accelbench.core.vocabulary import Architecture, Family

_RATE = 48_000
_SECONDS, _MELS = 10, 64
_TINY_SECONDS, _TINY_MELS = 5, 32
_FIRST_WORD = 3  # below it are start, padding and end; padding would take no position


def _config(
    audio: dict[str, Any], mels: int, text: dict[str, Any], vocabulary: int, joint: int
) -> dict[str, Any]:
    return {
        "projection_dim": joint,
        "audio_config": {
            # The spectrum is folded into a square: four stretches of time, one above the other.
            "num_mel_bins": mels,
            "spec_size": 4 * mels,
            "window_size": 8,
            "patch_size": 4,
            "patch_stride": [4, 4],
            "enable_fusion": False,  # "unfused": long sound is cut, not read at two scales
            "projection_dim": joint,
            **audio,
        },
        "text_config": {
            "vocab_size": vocabulary,
            "max_position_embeddings": 514,  # the first two are never a word's
            "type_vocab_size": 1,
            "projection_dim": joint,
            **text,
        },
    }


def _inputs(vocabulary: int, seconds: int, mels: int) -> tuple[InputSpec, ...]:
    frames = 100 * seconds + 1  # one every 10 ms, and one at the end
    return (
        InputSpec("input_ids", ("batch", "sequence"), "int64", _FIRST_WORD, vocabulary),
        attention_mask(),
        InputSpec("input_features", ("batch", 1, frames, mels)),
    )


_VOCABULARY, _TINY_VOCABULARY = 50265, 4096
_HTSAT = {
    "patch_embeds_hidden_size": 96,
    "hidden_size": 768,
    "depths": [2, 2, 6, 2],
    "num_attention_heads": [4, 8, 16, 32],
    "num_hidden_layers": 4,
}
_ROBERTA = {
    "hidden_size": 768,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "intermediate_size": 3072,
}
#: Two stages of one block each; the size doubles from one to the next.
_TINY_SOUND = {
    "patch_embeds_hidden_size": 32,
    "hidden_size": 64,
    "depths": [1, 1],
    "num_attention_heads": [2, 4],
    "num_hidden_layers": 2,
}
_TINY_WORDS = {
    "hidden_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 512,
}

_LARGEST = ModelSpec(
    id="clap-base",
    family=Family.AUDIO,
    architecture=Architecture.MULTIMODAL,
    modalities=("audio", "text"),
    task="zero-shot-audio-classification",
    size="base",
    builder="transformers:ClapModel",
    config=_config(_HTSAT, _MELS, _ROBERTA, _VOCABULARY, joint=512),
    inputs=_inputs(_VOCABULARY, _SECONDS, _MELS),
    parameters=153_492_890,
    sequence=77,
    max_sequence=512,
    audio=_SECONDS,
    sampling_rate=_RATE,
    fixed_audio=True,  # shorter sound is repeated, longer is cut
    training=PAIRS,
    aliases=("clap", "clap-htsat"),
    hub_ids=("laion/clap-htsat-unfused",),
    small_variant="clap-tiny",
    sets=("key",),
)
MODELS = (
    _LARGEST,
    other_size(
        _LARGEST,
        id="clap-tiny",  # a size of our own, for 5 s of sound
        size="tiny",
        config=_config(_TINY_SOUND, _TINY_MELS, _TINY_WORDS, _TINY_VOCABULARY, joint=64),
        inputs=_inputs(_TINY_VOCABULARY, _TINY_SECONDS, _TINY_MELS),
        parameters=1_097_544,
        sequence=16,
        audio=_TINY_SECONDS,
        sets=("small",),
    ),
)

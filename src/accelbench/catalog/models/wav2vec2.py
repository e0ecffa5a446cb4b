"""Wav2Vec2: convolutions over the wave itself, a transformer, and a head that spells."""

from __future__ import annotations

from typing import Any

from accelbench.catalog.own import other_size
from accelbench.core.model import InputSpec, ModelSpec, Training
from accelbench.core.vocabulary import Architecture, Family

_RATE = 16_000
_LETTERS = 32  # 0 is the blank


def _config(
    hidden: int, layers: int, heads: int, wave: int, reach: int, groups: int
) -> dict[str, Any]:
    return {
        "vocab_size": _LETTERS,
        "hidden_size": hidden,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "intermediate_size": 4 * hidden,
        # 320 samples, 20 ms, a place.
        "conv_dim": [wave] * 7,
        "conv_kernel": [10, 3, 3, 3, 3, 2, 2],
        "conv_stride": [5, 2, 2, 2, 2, 2, 2],
        "num_conv_pos_embeddings": reach,
        "num_conv_pos_embedding_groups": groups,
        "feat_extract_norm": "group",
        "do_stable_layer_norm": False,
        "pad_token_id": 0,
    }


def _training(letters: int) -> Training:
    return Training(
        "ctc",
        (InputSpec("labels", ("batch", letters), "int64", 1, _LETTERS),),
        # Masking draws from NumPy's unseeded state, and leaving out layers makes steps that do
        # less work than others: neither repeats.
        config={"apply_spec_augment": False, "layerdrop": 0.0},
    )


_INPUTS = (InputSpec("input_values", ("batch", "samples")),)

_LARGEST = ModelSpec(
    id="wav2vec2-base",
    family=Family.AUDIO,
    architecture=Architecture.SPEECH,
    modalities=("audio",),
    task="automatic-speech-recognition",
    size="base",
    builder="transformers:Wav2Vec2ForCTC",
    config=_config(hidden=768, layers=12, heads=12, wave=512, reach=128, groups=16),
    inputs=_INPUTS,
    parameters=94_396_320,
    audio=10,
    sampling_rate=_RATE,
    training=_training(letters=128),
    aliases=("wav2vec2",),
    # Only the first comes with the head that spells.
    hub_ids=("facebook/wav2vec2-base-960h", "facebook/wav2vec2-base"),
    small_variant="wav2vec2-tiny",
    sets=("key",),
)
MODELS = (
    _LARGEST,
    other_size(
        _LARGEST,
        id="wav2vec2-tiny",  # a size of our own, for 2 s of sound
        size="tiny",
        config=_config(hidden=64, layers=2, heads=2, wave=32, reach=16, groups=4),
        parameters=137_648,
        audio=2,
        training=_training(letters=16),
        sets=("small",),
    ),
)

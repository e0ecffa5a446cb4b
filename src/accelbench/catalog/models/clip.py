"""CLIP: an image encoder and a text encoder that meet in one space."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from accelbench.catalog.own import PAIRS, attention_mask, other_size, pixel_values, sentence
from accelbench.core.model import ModelSpec
from accelbench.core.vocabulary import Architecture, Family


@dataclass(frozen=True)
class _Tower:
    hidden: int
    layers: int
    heads: int

    def config(self, **own: Any) -> dict[str, Any]:
        return {
            "hidden_size": self.hidden,
            "num_hidden_layers": self.layers,
            "num_attention_heads": self.heads,
            "intermediate_size": 4 * self.hidden,
            "hidden_act": "quick_gelu",
            "layer_norm_eps": 1e-5,
            **own,
        }


def _config(
    vision: _Tower,
    text: _Tower,
    image: int,
    patch: int,
    vocabulary: int,
    positions: int,
    **ids: int,
) -> dict[str, Any]:
    return {
        "projection_dim": text.hidden,
        "logit_scale_init_value": 2.6592,
        "vision_config": vision.config(image_size=image, patch_size=patch),
        "text_config": text.config(vocab_size=vocabulary, max_position_embeddings=positions, **ids),
    }


_VOCABULARY, _TINY_VOCABULARY = 49408, 4096

_LARGEST = ModelSpec(
    id="clip-base",
    family=Family.MULTIMODAL,
    architecture=Architecture.MULTIMODAL,
    modalities=("vision", "text"),
    task="zero-shot-image-classification",
    size="base",
    builder="transformers:CLIPModel",
    config=_config(_Tower(768, 12, 12), _Tower(512, 12, 8), 224, 32, _VOCABULARY, 77),
    inputs=(sentence(_VOCABULARY - 1), attention_mask(), pixel_values()),
    parameters=151_277_313,
    sequence=77,  # what its processor pads to
    max_sequence=77,
    image=224,
    training=PAIRS,
    aliases=("clip", "clip-vit-base", "clip-vit-b-32"),
    hub_ids=("openai/clip-vit-base-patch32",),
    small_variant="clip-tiny",
    sets=("key",),
)
MODELS = (
    _LARGEST,
    other_size(
        _LARGEST,
        id="clip-tiny",  # a size of our own: 64 places an image, 16 tokens a text
        size="tiny",
        # The end of a sentence has the highest id, as in CLIP's own vocabulary.
        config=_config(
            _Tower(128, 2, 2),
            _Tower(128, 2, 2),
            image=64,
            patch=8,
            vocabulary=_TINY_VOCABULARY,
            positions=32,
            bos_token_id=_TINY_VOCABULARY - 2,
            eos_token_id=_TINY_VOCABULARY - 1,
        ),
        inputs=(sentence(_TINY_VOCABULARY - 1), attention_mask(), pixel_values()),
        parameters=1_388_033,
        sequence=16,
        max_sequence=32,
        image=64,
        sets=("small",),
    ),
)

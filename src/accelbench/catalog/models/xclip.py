"""X-CLIP: CLIP for films; what the frames show is put together, and colours the texts."""

from __future__ import annotations

from typing import Any

from accelbench.catalog.own import PAIRS, attention_mask, other_size, sentence
from accelbench.core.model import InputSpec, ModelSpec
from accelbench.core.vocabulary import Architecture, Family


def _tower(hidden: int, layers: int, heads: int) -> dict[str, Any]:
    return {
        "hidden_size": hidden,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "intermediate_size": 4 * hidden,
        "hidden_act": "quick_gelu",
    }


def _config(
    vision: dict[str, Any], text: dict[str, Any], frames: int, image: int, patch: int
) -> dict[str, Any]:
    joint, heads = text["hidden_size"], text["num_attention_heads"]
    return {
        "projection_dim": joint,
        "prompt_layers": 2,
        "prompt_num_attention_heads": heads,
        "logit_scale_init_value": 2.6592,
        "vision_config": {
            **vision,
            "image_size": image,
            "patch_size": patch,
            "num_frames": frames,
            # The network over the frames works in the space where texts are met.
            "mit_hidden_size": joint,
            "mit_intermediate_size": 4 * joint,
            "mit_num_hidden_layers": 1,
            "mit_num_attention_heads": heads,
        },
        "text_config": text,
    }


def _film(frames: int) -> InputSpec:
    return InputSpec("pixel_values", ("batch", frames, 3, "image", "image"))


_VOCABULARY, _TINY_VOCABULARY = 49408, 4096
_TEXT = {**_tower(512, 12, 8), "vocab_size": _VOCABULARY, "max_position_embeddings": 77}
_TINY_TEXT = {**_tower(64, 2, 2), "vocab_size": _TINY_VOCABULARY, "max_position_embeddings": 32}

_LARGEST = ModelSpec(
    id="xclip-base",
    family=Family.MULTIMODAL,
    architecture=Architecture.MULTIMODAL,
    modalities=("vision", "text"),
    task="video-classification",
    size="base",
    builder="transformers:XCLIPModel",
    config=_config(_tower(768, 12, 12), _TEXT, frames=8, image=224, patch=32),
    inputs=(sentence(_VOCABULARY - 1), attention_mask(), _film(8)),
    parameters=196_585_729,
    sequence=77,
    max_sequence=77,
    image=224,
    training=PAIRS,
    aliases=("xclip", "x-clip"),
    hub_ids=("microsoft/xclip-base-patch32",),
    small_variant="xclip-tiny",
    sets=("key",),
)
MODELS = (
    _LARGEST,
    other_size(
        _LARGEST,
        id="xclip-tiny",  # a size of our own: 4 frames of 16 places
        size="tiny",
        config=_config(_tower(128, 2, 2), _TINY_TEXT, frames=4, image=32, patch=8),
        inputs=(sentence(_TINY_VOCABULARY - 1), attention_mask(), _film(4)),
        parameters=1_124_609,
        sequence=16,
        max_sequence=32,
        image=32,
        sets=("small",),
    ),
)

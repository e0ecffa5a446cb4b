"""Whether the products of a model can be split over processes, by its class and config alone.

It is asked while a run is planned, when no engine is imported: what is refused here is refused
before its one-process baseline is measured. Of classes that are not named here the ranks say it
(`tensor_plan`), as only their modules tell.
"""

from __future__ import annotations

from typing import Any

from accelbench.core.model import ModelSpec

#: Beginnings of the names of classes of transformers that bring no plan of columns and rows, and
#: whose blocks are none of the layouts that ours knows.
_NOT_SPLIT = (
    "CLIP",
    "Clap",  # its audio tower adds a bias for each head, which would not be split
    "Detr",
    "GPT2",
    "Mamba",
    "Mixtral",
    "ResNet",
    "T5",
    "ViT",
    "VisionEncoderDecoder",
    "Wav2Vec2",
    "Whisper",
    "XCLIP",
)
_NETWORKS = (
    "accelbench.catalog.networks.detr:",
    "accelbench.catalog.networks.diffusion:",
)
_HEADS = ("num_attention_heads", "n_heads", "num_key_value_heads")


def nothing_says_how(spec: ModelSpec) -> bool:
    """Whether it is known beforehand that no plan splits its products."""
    if spec.builder.startswith(_NETWORKS):
        return True
    source, _, name = spec.builder.partition(":")
    return source == "transformers" and name.startswith(_NOT_SPLIT)


def uneven_heads(spec: ModelSpec, processes: int) -> tuple[str, int] | None:
    """The count of heads that processes cannot share evenly, with its name."""
    text: Any = spec.config.get("text_config")
    for config in (spec.config, text if isinstance(text, dict) else {}):
        for name in _HEADS:
            count = config.get(name)
            if isinstance(count, int) and count % processes:
                return name, count
    return None

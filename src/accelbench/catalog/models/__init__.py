"""Every model of the catalogue, as data: one file a family or architecture.

A new model is one `ModelSpec` in the file of its architecture (or one new file,
named below) and `python -m accelbench.catalog.analytic --write` for its costs.
Nothing here imports more than the shared words.
"""

from __future__ import annotations

from accelbench.catalog.models import (
    bert,
    clip,
    diffusion,
    distilbert,
    gpt2,
    llama,
    llava,
    mamba,
    mixtral,
    qwen2,
    rag,
    resnet,
    t5,
    vit,
    whisper,
)
from accelbench.core.model import ModelSpec

MODELS: tuple[ModelSpec, ...] = (
    *bert.MODELS,
    *distilbert.MODELS,
    *vit.MODELS,
    *resnet.MODELS,
    *gpt2.MODELS,
    *t5.MODELS,
    *llama.MODELS,
    *qwen2.MODELS,
    *mixtral.MODELS,
    *mamba.MODELS,
    *clip.MODELS,
    *llava.MODELS,
    *whisper.MODELS,
    *diffusion.MODELS,
    *rag.MODELS,
)

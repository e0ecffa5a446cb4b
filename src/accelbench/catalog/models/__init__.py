"""Every model of the catalogue, as data: one file a family or architecture.

A new model is one `ModelSpec` in the file of its architecture (or one new file,
named below) and `python -m accelbench.catalog.analytic --write` for its costs.
Nothing here imports more than the shared words.
"""

from __future__ import annotations

from accelbench.catalog.models import (
    bert,
    captioner,
    clap,
    clip,
    detr,
    diffusion,
    distilbert,
    gpt2,
    llama,
    llava,
    llava_next,
    mamba,
    mixtral,
    qwen2,
    rag,
    resnet,
    t5,
    vit,
    wav2vec2,
    whisper,
    xclip,
)
from accelbench.core.model import ModelSpec

MODELS: tuple[ModelSpec, ...] = (
    *bert.MODELS,
    *distilbert.MODELS,
    *vit.MODELS,
    *resnet.MODELS,
    *detr.MODELS,
    *gpt2.MODELS,
    *t5.MODELS,
    *llama.MODELS,
    *qwen2.MODELS,
    *mixtral.MODELS,
    *mamba.MODELS,
    *wav2vec2.MODELS,
    *whisper.MODELS,
    *clap.MODELS,
    *clip.MODELS,
    *xclip.MODELS,
    *llava.MODELS,
    *llava_next.MODELS,
    *captioner.MODELS,
    *diffusion.MODELS,
    *rag.MODELS,
)

"""Diffusion: the denoiser alone, pass by pass; text and image encoders are models of their own.

A step makes one batch of images in the latent space, an eighth of the image a
side. The inputs are those of one pass of the denoiser: the noisy latent, the
time, and what a text encoder says of the prompt. A forward pass and training
draw the time; denoising puts its scheduler's times in its place.
"""

from __future__ import annotations

from typing import Any

from accelbench.catalog.own import other_size
from accelbench.core.model import InputSpec, ModelSpec, Training
from accelbench.core.vocabulary import Architecture, Family

_CHANNELS = 4  # of the latent
_TIMES = 1000  # that the noise schedule has
_PROMPT = 77  # tokens that CLIP's text encoder reads, always


def _config(channels: list[int], layers: int, heads: int, text: int) -> dict[str, Any]:
    attended = len(channels) - 1  # all levels but the deepest look at the prompt
    return {
        "in_channels": _CHANNELS,
        "out_channels": _CHANNELS,
        "block_out_channels": channels,
        "layers_per_block": layers,
        "down_block_types": ["CrossAttnDownBlock2D"] * attended + ["DownBlock2D"],
        "up_block_types": ["UpBlock2D"] + ["CrossAttnUpBlock2D"] * attended,
        "attention_head_dim": heads,  # diffusers' name, but Stable Diffusion's 8 are heads
        "cross_attention_dim": text,
    }


def _inputs(text: int) -> tuple[InputSpec, ...]:
    return (
        InputSpec("sample", ("batch", _CHANNELS, "latent", "latent")),
        InputSpec("timestep", ("batch",), "int64", 0, _TIMES),
        InputSpec("encoder_hidden_states", ("batch", _PROMPT, text)),
    )


_TRAINING = Training(
    loss="denoising",  # what the denoiser takes for noise, against the noise itself
    labels=(InputSpec("noise", ("batch", _CHANNELS, "latent", "latent")),),
)

_LARGEST = ModelSpec(
    id="stable-diffusion-1.5",
    family=Family.VISION,
    architecture=Architecture.DIFFUSION,
    modalities=("vision", "text"),
    task="text-to-image",
    size="large",
    builder="accelbench.catalog.networks.diffusion:denoiser",
    config=_config([320, 640, 1280, 1280], layers=2, heads=8, text=768),
    inputs=_inputs(768),
    parameters=859_520_964,
    item="images",
    image=512,
    # What distilled samplers (LCM, Turbo) need; the undistilled one takes 20 to 50, by
    # --denoising-steps. The time of a pass is the same.
    steps=4,
    procedure="denoise",
    training=_TRAINING,
    aliases=("stable-diffusion", "sd-1.5", "stable-diffusion-v1-5"),
    small_variant="unet-tiny",
    sets=("architectures",),
)
MODELS = (
    _LARGEST,
    other_size(
        _LARGEST,
        id="unet-tiny",  # a size of our own
        size="tiny",
        config=_config([32, 64], layers=1, heads=4, text=64),
        inputs=_inputs(64),
        parameters=803_204,
        image=64,
        sets=("small",),
    ),
)

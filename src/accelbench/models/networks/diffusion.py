"""The denoiser of a diffusion model, from diffusers. Imports it: only if one is built."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from accelbench.core.errors import MissingExtraError

try:
    from diffusers import UNet2DConditionModel
    from diffusers.utils import logging
except ModuleNotFoundError as error:
    raise MissingExtraError("diffusers", "torch", "Building a diffusion model") from error

if TYPE_CHECKING:
    import torch

# A cast to 16 bits would be warned of between the lines of our own output.
logging.set_verbosity_error()


def denoiser(**config: Any) -> torch.nn.Module:
    """Return a UNet that predicts the noise in an image, with random weights; fetches nothing."""
    network: torch.nn.Module = UNet2DConditionModel(**config)
    return network

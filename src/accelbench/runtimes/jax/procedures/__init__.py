"""What a step is: one forward pass, an image, a training step. One file each."""

from accelbench.runtimes.jax.procedures.base import Model, Opened, Procedure, Telling
from accelbench.runtimes.jax.procedures.registry import make

__all__ = ["Model", "Opened", "Procedure", "Telling", "make"]

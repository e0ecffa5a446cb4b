"""What a step is: one forward pass, a whole request, an image, a training step. One file each."""

from accelbench.runtimes.pytorch.procedures.base import Inputs, Opened, Procedure, Settling, Telling
from accelbench.runtimes.pytorch.procedures.registry import make

__all__ = ["Inputs", "Opened", "Procedure", "Settling", "Telling", "make"]

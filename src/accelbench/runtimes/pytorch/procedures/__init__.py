"""What a step is: one forward pass, a whole request, an image, a training step. One file each."""

from __future__ import annotations

from collections.abc import Callable

from accelbench.core.case import Case
from accelbench.runtimes.pytorch.procedures import forward, generate, train
from accelbench.runtimes.pytorch.procedures.base import Inputs, Opened, Procedure, Settling, Telling

__all__ = ["Inputs", "Opened", "Procedure", "Settling", "Telling", "make"]


def make(case: Case, opened: Opened) -> Procedure:
    """The procedure of a case."""
    makers: dict[str, Callable[[Case, Opened], Procedure]] = {
        "forward": forward.Forward,
        "generate": generate.Generate,
        "denoise": forward.Denoise,
        "rag": generate.RagAnswer if case.generates else forward.Forward,
        "train": train.Train,
    }
    return makers[case.procedure](case, opened)

"""What a step is: one forward pass, an image, a training step. One file each."""

from __future__ import annotations

from collections.abc import Callable

from accelbench.core.case import Case
from accelbench.runtimes.jax.procedures import denoise, forward, train
from accelbench.runtimes.jax.procedures.base import Example, Model, Opened, Procedure, Telling

__all__ = ["Model", "Opened", "Procedure", "Telling", "make"]


def make(case: Case, opened: Opened, example: Example) -> Procedure:
    """The procedure of a case."""
    makers: dict[str, Callable[[Case, Opened, Example], Procedure]] = {
        "forward": forward.Forward,
        "denoise": denoise.Denoise,
        "rag": forward.Forward,  # one pass over passages and question; the card refuses answers
        "train": train.Train,
    }
    return makers[case.procedure](case, opened, example)

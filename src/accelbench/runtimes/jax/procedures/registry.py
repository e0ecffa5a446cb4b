"""The procedure of a case: which one a step of it is."""

from __future__ import annotations

from collections.abc import Callable

from accelbench.core.case import Case
from accelbench.runtimes.jax.procedures import denoise, forward, train
from accelbench.runtimes.jax.procedures.base import Example, Opened, Procedure


def make(case: Case, opened: Opened, example: Example) -> Procedure:
    """The procedure of a case."""
    makers: dict[str, Callable[[Case, Opened, Example], Procedure]] = {
        "forward": forward.Forward,
        "denoise": denoise.Denoise,
        "rag": forward.Forward,  # one pass over passages and question; the card refuses answers
        "train": train.Train,
    }
    return makers[case.procedure](case, opened, example)

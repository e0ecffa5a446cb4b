"""What a step is: one forward pass, a whole request, an image, a training step."""

from __future__ import annotations

from collections.abc import Callable

from accelbench.core.case import Case
from accelbench.engines.pytorch.procedures.base import Denoise, Forward, Inputs, Opened, Procedure
from accelbench.engines.pytorch.procedures.generate import Generate, RagAnswer
from accelbench.engines.pytorch.procedures.train import Train

__all__ = ["Forward", "Inputs", "Opened", "Procedure", "Train", "make"]


def make(case: Case, opened: Opened) -> Procedure:
    """Return the procedure of a case."""
    makers: dict[str, Callable[[Case, Opened], Procedure]] = {
        "forward": Forward,
        "generate": Generate,
        "denoise": Denoise,
        "rag": RagAnswer if case.generates else Forward,
        "train": Train,
    }
    return makers[case.procedure](case, opened)

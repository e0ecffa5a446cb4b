"""The batches that a call of `accelbench.benchmark` means."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from accelbench.catalog.code_models.example import batch_of
from accelbench.catalog.code_models.loading import EXAMPLE
from accelbench.core.model import ModelSpec

#: As many items as the inputs have.
GIVEN = "given"


def batches_meant(
    batch_sizes: Sequence[int] | str | None, spec: ModelSpec, model: Any, inputs: Any
) -> tuple[int, ...]:
    """Items in a step; () leaves them to the plan.

    Args:
        batch_sizes: as the caller has them.
        spec: the model that is meant.
        model: what the caller gave: an object, or a word.
        inputs: what it is called with; None where it says so itself.
    """
    if not isinstance(batch_sizes, str):
        return tuple(batch_sizes or ())
    example = None if isinstance(model, str) else inputs
    if example is None:
        example = getattr(model, EXAMPLE, None)
    return (spec.fixed_batch or batch_of(example) or 1,)

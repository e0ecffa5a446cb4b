"""Errors of engines about an index, with the inputs of a model that may have held it. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

from accelbench.catalog.file_models.given_inputs import OPTION
from accelbench.core.model import InputSpec

#: What engines write of an index beyond a table.
_OUT_OF_RANGE = re.compile(
    r"out of (?:\w+ )?(?:bounds|range)|index.{0,40}(?:exceeds|must be within)", re.IGNORECASE
)
_INDEX = re.compile(r"\b(?:idx|index)\D{0,3}(\d+)", re.IGNORECASE)


def index_advice(message: str, inputs: Iterable[InputSpec]) -> str:
    """Return which input to correct if an engine refused an index, or "".

    Args:
        message: of the engine.
        inputs: of the model; those of whole numbers may hold indices.
    """
    if not _OUT_OF_RANGE.search(message):
        return ""
    drawn = [one for one in inputs if "int" in one.dtype and one.high > one.low]
    if match := _INDEX.search(message):
        drawn = [one for one in drawn if one.low <= int(match[1]) < one.high] or drawn
    if not drawn:
        return ""
    ranges = " and ".join(f"{one.name} ({one.low:,} to {one.high - 1:,})" for one in drawn)
    return (
        f"The index comes from the values of {ranges}: set a smaller range with"
        f" {OPTION} {drawn[0].name}=0..LIMIT, or the values with --input-file FILE.npz."
    )

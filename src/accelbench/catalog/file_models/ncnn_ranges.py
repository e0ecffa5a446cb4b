"""What the inputs of an ncnn network may hold, as its layers tell it. Pure.

ncnn has numbers alone: which of them name rows of a table, and which mask, follows from the layers
that take them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from accelbench.catalog.file_models.input_ranges import drawn_of_type
from accelbench.catalog.file_models.mask_effects import MaskEffect, lets_through, of_factor
from accelbench.catalog.file_models.ncnn_layers import KEEPS_SIZES, rows_of
from accelbench.catalog.file_models.ncnn_text import NcnnLayer

#: Layers whose results hold nothing but values of what they take.
_PASSES_ON = frozenset(
    {
        "Split", "Noop", "Dropout", "DeepCopy", "Cast", "Reshape", "ExpandDims", "Squeeze",
        "Permute", "Flatten", "Slice", "Crop", "Tile",
    }
)  # fmt: skip
#: Arithmetic with a number: which, whether there is one, and the number.
_KIND, _WITH_NUMBER, _NUMBER = 0, 1, 2
_TIMES, _FROM = 2, 7
#: Where attention says that what it is given last is added to its scores, and that it keeps more.
_ATTENTION = {"MultiHeadAttention", "SDPA"}
_MASKED, _CACHED = 5, 7
_FLOAT = re.compile(r"-?\d{1,20}(\.\d{0,20})?([eE][+-]?\d{1,3})?")
_ADDED = "zeros: attention adds it to its scores, and they leave nothing out"
_MULTIPLIED = "ones: the network uses it as a mask, and they leave nothing out"


def range_of(name: str, layers: Sequence[NcnnLayer]) -> dict[str, Any]:
    """Type and values of an input: `dtype`, and what `drawn_of_type` says."""
    followed = {name}
    rows: list[int] = []
    for layer in layers:
        if followed.intersection(layer.takes):
            if found := rows_of(layer):
                rows.append(found)
            elif layer.type in _PASSES_ON or layer.type in KEEPS_SIZES:
                followed.update(layer.makes)
    if rows:
        return {"dtype": "int32", **drawn_of_type(name, "int32", min(rows))}
    return {"dtype": "float32", **(_as_mask(name, layers) or drawn_of_type(name, "float32", None))}


def _as_mask(name: str, layers: Sequence[NcnnLayer]) -> Mapping[str, Any] | None:
    followed = {name}
    for layer in layers:
        if layer.type in _PASSES_ON and followed.intersection(layer.takes):
            followed.update(layer.makes)
        masked = layer.type in _ATTENTION and layer.number(_MASKED) and not layer.number(_CACHED)
        if masked and layer.takes[-1] in followed:
            return {"constant": 0, "drawn": _ADDED}

    def effects(read: str) -> Iterator[tuple[MaskEffect | None, Sequence[str]]]:
        for layer in layers:
            if read in layer.takes:
                yield _effect(layer), layer.makes

    # Numbers that are multiplied by a large one may be no mask: 1 - mask is one.
    if lets_through(name, effects) == 1:
        return {"constant": 1, "drawn": _MULTIPLIED}
    return None


def _effect(layer: NcnnLayer) -> MaskEffect | None:
    """What a layer does with what it takes."""
    if layer.type in _PASSES_ON:
        return MaskEffect.SAME
    if layer.type != "BinaryOp" or not layer.number(_WITH_NUMBER):
        return None
    text = layer.parameters.get(_NUMBER, "")
    number = float(text) if _FLOAT.fullmatch(text) else None
    if layer.number(_KIND) == _FROM and number == 1.0:
        return MaskEffect.TURNED
    return of_factor(number) if layer.number(_KIND) == _TIMES else None

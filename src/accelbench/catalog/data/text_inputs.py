"""Which of a model's inputs take a text's ids, its mask and the like, by their names and shapes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from accelbench.catalog.inputs import input_shapes, tensors
from accelbench.core.case import Case
from accelbench.core.errors import CaseError
from accelbench.core.model import InputSpec

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

_MASK = re.compile("mask", re.IGNORECASE)
_TYPES = re.compile(r"token_type|segment|type_ids", re.IGNORECASE)
_POSITIONS = re.compile(r"position", re.IGNORECASE)
#: What a mask holds where ids count: a floating one of zeros is added, and 1 would leave out none.
_LETS_THROUGH: Mapping[bool, tuple[float | None, ...]] = {False: (1, 0, None), True: (1, None)}


@dataclass(frozen=True)
class TextInputs:
    """The inputs of [batch, sequence] that a text gives.

    Attributes:
        ids: takes the ids.
        length: of a text in ids.
        known: the first id that the model does not know; None where nothing says it.
        masks: say which ids count; each with what it holds there.
        types: tell a first text from a second.
        positions: count the ids.
    """

    ids: InputSpec
    length: int
    known: int | None
    masks: Mapping[str, tuple[str, int]]
    types: Mapping[str, str]
    positions: Mapping[str, str]

    def row(
        self, ids: Sequence[int], mask: Sequence[int], types: Sequence[int]
    ) -> dict[str, Array]:
        """The inputs of one text."""
        import numpy as np

        self._check(ids)
        counts = np.asarray(mask, np.int64)
        made = {self.ids.name: np.asarray(ids).astype(self.ids.dtype)}
        for name, (dtype, there) in self.masks.items():
            made[name] = (counts if there else 1 - counts).astype(dtype)
        for name, dtype in self.types.items():
            made[name] = np.asarray(types).astype(dtype)
        for name, dtype in self.positions.items():
            made[name] = np.maximum(counts.cumsum() - 1, 0).astype(dtype)
        return made

    def _check(self, ids: Sequence[int]) -> None:
        if self.known is not None and max(ids) >= self.known:
            raise CaseError(
                "tokenizer_mismatch",
                f"The tokenizer gives the id {max(ids)}, and the model knows {self.known}.",
                "Use the tokenizer.json that belongs to the weights.",
            )


def text_inputs(case: Case) -> TextInputs:
    """The inputs of a case that a text gives.

    Raises:
        CaseError: it takes none, or something beside it whose values matter.
    """
    shapes = input_shapes(case.model, case.shapes, case.mode)
    masks, types, positions = dict[str, tuple[str, int]](), dict[str, str](), dict[str, str]()
    open_: list[InputSpec] = []
    for tensor in tensors(case.model, case.shapes, case.mode):
        shape, name, dtype = shapes[tensor.name], tensor.name, tensor.dtype
        dtype = "float32" if dtype == "float" else dtype
        alike = len(shape) == 2 and shape[0] == case.shapes.batch
        if alike and _MASK.search(name) and tensor.constant in _LETS_THROUGH[dtype[0] == "f"]:
            masks[name] = (dtype, 1 if tensor.constant is None else int(tensor.constant))
        elif alike and _TYPES.search(name):
            types[name] = dtype
        elif alike and _POSITIONS.search(name):
            positions[name] = dtype
        elif tensor.constant is None and tensor.row is None:
            open_.append(tensor)
    if len(open_) == 1 and open_[0].dtype in ("int64", "int32"):
        ids, shape = open_[0], shapes[open_[0].name]
        beside = [*masks, *types, *positions]
        fits = all(shapes[name] == shape for name in beside)
        if len(shape) == 2 and shape[0] == case.shapes.batch and fits and ids.lead is None:
            known = None if case.model.code is not None or not ids.high else ids.high
            return TextInputs(ids, shape[1], known, masks, types, positions)
    taken = ", ".join(f"{t.name} {list(shapes[t.name])}" for t in open_) or "nothing that is open"
    raise CaseError(
        "data_mismatch",
        f"{case.model.id} takes {taken}, which no text of one input of ids is.",
        "Store its inputs and labels in an .npz file, and name that with --data.",
    )

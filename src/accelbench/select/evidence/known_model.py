"""A model as it is known whatever it was measured on: its weights and operations. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from accelbench.core.case import Shapes
from accelbench.core.errors import AccelbenchError
from accelbench.core.vocabulary import Mode
from accelbench.select.evidence.cells import EvidenceCell, ModelKnowledge
from accelbench.select.query.query import GENERATING, SIZES, Query


def known_of(
    query: Query, own: Sequence[EvidenceCell], flops: float | None = None, kin: str = ""
) -> ModelKnowledge:
    """What is known of the model: by who asks, by the catalogue, by results anywhere."""
    parameters = query.size.parameters
    counted = flops or _counted(query)
    for cell in own:
        parameters = parameters or cell.row.get("parameters")
        operations = cell.row.get("flops")
        if not counted and operations:
            counted = float(operations) / cell.batch
        kin = kin or str(cell.row.get("kin") or "")
    return ModelKnowledge(None if parameters is None else int(parameters), counted, kin)


def _counted(query: Query) -> float | None:
    """Operations of an item, as the catalogue counts them; None where it does not."""
    if query.spec is None:
        return None
    from accelbench.catalog.cost import flops

    sizes: dict[str, Any] = {SIZES[name]: value for name, value in query.shapes.items()}
    if query.mode == Mode.TRAINING:
        sizes = {name: value for name, value in sizes.items() if name not in GENERATING}
    try:
        operations = flops(query.spec, Shapes(query.batch, **sizes), query.mode)
    except AccelbenchError:
        return None
    return None if operations is None else operations / query.batch

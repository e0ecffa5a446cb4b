"""The sizes and circumstances that a question is answered for. Pure.

A value that an import does not record may be anything, so it matches cells that record it. Our own
results record everything.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from accelbench.core.axes import AS_ASKED, axes_of
from accelbench.core.model import ModelSpec
from accelbench.core.vocabulary import SINGLE_STREAM
from accelbench.judge.questions import SHAPES
from accelbench.recommend.evidence.cells import CIRCUMSTANCES, EvidenceCell, sizes_of

_NAMES = (*SHAPES, *CIRCUMSTANCES)
#: A value that an import does not record.
_ANYTHING = object()
Context = tuple[object, ...]


@dataclass(frozen=True)
class SelectedContext:
    """The cells of one context.

    Attributes:
        cells: what can be compared.
        context: its sizes and circumstances by name, as far as they are known.
        others: cells of the model in other contexts.
    """

    cells: Sequence[EvidenceCell]
    context: Mapping[str, object]
    others: Sequence[EvidenceCell]

    @property
    def sizes(self) -> dict[str, int]:
        return sizes_of(self.context)


def meant(
    cells: Sequence[EvidenceCell],
    batch: int | None,
    shapes: Mapping[str, int],
    spec: ModelSpec | None,
) -> SelectedContext:
    """Return the cells of the context that is meant.

    The named sizes are required. Contexts are then preferred, in this order, for the model's own
    sizes, single requests on one device, the number of devices with this batch, the number of
    devices, and the number of cells.
    """
    by_context: dict[Context, list[EvidenceCell]] = defaultdict(list)
    for cell in cells:
        if all(cell.row.get(name) == value for name, value in shapes.items()):
            by_context[_said(cell)].append(cell)
    if not by_context:
        return SelectedContext((), {}, tuple(cells))
    own = own_shapes(spec)
    most_said_first = sorted(
        by_context, key=lambda context: (context.count(_ANYTHING), _order(context))
    )
    groups = {context: _grown(context, most_said_first) for context in by_context}

    def merit(context: Context) -> tuple[object, ...]:
        whole, members = groups[context]
        settings = dict(zip(_NAMES, whole, strict=True))
        group = [cell for member in members for cell in by_context[member]]
        here = {(c.hardware, c.device) for c in group if batch in (None, c.batch)}
        return (
            -sum(settings[name] == value for name, value in own.items()),
            settings["scenario"] not in (None, _ANYTHING, SINGLE_STREAM),
            settings["world_size"] not in (None, _ANYTHING, 1),
            -len(here),
            -len({(c.hardware, c.device) for c in group}),
            -len(group),
            _order(whole),
        )

    whole, members = groups[min(groups, key=merit)]
    kept = {id(cell) for member in members for cell in by_context[member]}
    known = {n: None if v is _ANYTHING else v for n, v in zip(_NAMES, whole, strict=True)}
    return SelectedContext(
        [cell for cell in cells if id(cell) in kept],
        known,
        [cell for cell in cells if id(cell) not in kept],
    )


def own_shapes(spec: ModelSpec | None) -> dict[str, int]:
    """Return the default sizes of a model of the catalogue."""
    if spec is None:
        return {}
    sizes = {axis.column: axis.own(spec) for axis in axes_of(*AS_ASKED)}
    return {name: value for name, value in sizes.items() if value is not None}


def differs(cell: EvidenceCell, context: Mapping[str, object]) -> str:
    """Return what differs in a cell of another context, as a text."""
    settings = dict(zip(_NAMES, cell.context, strict=True))
    differences = [
        f"{name} {settings[name]}"
        for name, value in context.items()
        if settings[name] not in (None, value)
    ]
    return ", ".join(differences)


def _said(cell: EvidenceCell) -> Context:
    if not cell.imported:
        return cell.context
    return tuple(_ANYTHING if part is None else part for part in cell.context)


def _grown(start: Context, contexts: Sequence[Context]) -> tuple[Context, list[Context]]:
    """Return a context completed by those that may be the same, and these.

    They are taken one after the other, so that no two of them contradict each other.
    """
    whole, members = start, [start]
    for context in contexts:
        if context != start and _may_be(whole, context):
            whole = tuple(b if a is _ANYTHING else a for a, b in zip(whole, context, strict=True))
            members.append(context)
    return whole, members


def _may_be(context: Context, other: Context) -> bool:
    return all(
        a is _ANYTHING or b is _ANYTHING or a == b for a, b in zip(context, other, strict=True)
    )


def _order(context: Context) -> tuple[tuple[bool, str], ...]:
    """Return a sort key: known values before unknown ones, and no None among texts."""
    return tuple(
        (part is None or part is _ANYTHING, "" if part is _ANYTHING else str(part))
        for part in context
    )

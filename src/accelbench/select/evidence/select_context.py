"""Which of the questions that a model was asked is the one that is meant. Pure.

What an import does not say is not known, and may be anything: its figures stand beside those that
say it. What we measured ourselves says all of it, and what it says nothing of has none.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from accelbench.analysis.questions import SHAPES
from accelbench.core.axes import AS_ASKED, axes_of
from accelbench.core.model import ModelSpec
from accelbench.core.vocabulary import SINGLE_STREAM
from accelbench.select.evidence.cells import CIRCUMSTANCES, EvidenceCell, sizes_of

_NAMES = (*SHAPES, *CIRCUMSTANCES)
#: What an import does not say.
_ANYTHING = object()
Context = tuple[object, ...]


@dataclass(frozen=True)
class SelectedContext:
    """The figures of one context, and those that are not of it.

    Attributes:
        cells: what can be held together.
        context: its sizes and circumstances, by name, where they are known.
        others: figures of the model that were asked something else.
    """

    cells: Sequence[EvidenceCell]
    context: Mapping[str, object]
    others: Sequence[EvidenceCell]

    @property
    def sizes(self) -> dict[str, int]:
        """The sizes that were said."""
        return sizes_of(self.context)


def meant(
    cells: Sequence[EvidenceCell],
    batch: int | None,
    shapes: Mapping[str, int],
    spec: ModelSpec | None,
) -> SelectedContext:
    """The cells of one context: what was measured at several places there can be held together.

    What is asked for has to be so. Of the rest counts, in this order: that the sizes are the
    model's own, that requests come one by one to one process, how many places answered at the
    batch, how many at all, and how many figures there are.
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
    """The sizes that a model of the catalogue has for itself."""
    if spec is None:
        return {}
    sizes = {axis.column: axis.own(spec) for axis in axes_of(*AS_ASKED)}
    return {name: value for name, value in sizes.items() if value is not None}


def differs(cell: EvidenceCell, context: Mapping[str, object]) -> str:
    """In words, what a figure of another context was asked otherwise."""
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
    """A context with all that may be of it: what it does not say is learned from them.

    One after the other: no two of them contradict each other.
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
    """The same every time: what is said before what is not, and no None among words."""
    return tuple(
        (part is None or part is _ANYTHING, "" if part is _ANYTHING else str(part))
        for part in context
    )

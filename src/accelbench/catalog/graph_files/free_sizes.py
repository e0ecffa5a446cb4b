"""Free dimensions of a file's inputs: which size each stands for, by its name or by its place."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from accelbench.catalog.file_models.dimensions import BATCH, IMAGE, SEQUENCE, meaning
from accelbench.catalog.graph_files.signatures import UntracedError
from accelbench.core.visible import in_quotes

#: The options that bind each.
OPTIONS = {BATCH: "--batch-sizes", SEQUENCE: "--sequence-lengths", IMAGE: "--image-sizes"}


@dataclass(frozen=True)
class FileInput:
    """An input of a graph.

    Attributes:
        name: as its graph calls it.
        shape: a number, or the name of a free dimension; "" of one without a name.

    Raises:
        UntracedError: a dimension is a number below one.
    """

    name: str
    shape: tuple[int | str, ...]

    def __post_init__(self) -> None:
        for place, size in enumerate(self.shape):
            if not isinstance(size, str) and size < 1:
                raise UntracedError(
                    f"Dimension {place} of its input {self.name} is {size}, and none is below 1.",
                    "Export the model with a size there, or with a name for a free one.",
                )


@dataclass(frozen=True)
class GraphSizes:
    """Inputs with all dimensions bound.

    Attributes:
        shapes: by input.
        dimensions: by the name of a free dimension.
        axes: which sizes the graph leaves open.
        batch: items that it takes at once: where the batch is free, one.
    """

    shapes: Mapping[str, tuple[int, ...]]
    dimensions: Mapping[str, int]
    axes: frozenset[str]
    batch: int


def bound(inputs: Sequence[FileInput], sizes: Mapping[str, int | None]) -> GraphSizes:
    """Inputs at some sizes, a batch of one where the batch is free.

    Args:
        inputs: of a graph.
        sizes: by `SEQUENCE` and `IMAGE`.

    Raises:
        UntracedError: a dimension remains free.
    """
    known: dict[str, int | None] = {BATCH: 1, **sizes}
    shapes: dict[str, tuple[int, ...]] = {}
    dimensions: dict[str, int] = {}
    axes: set[str] = set()
    for entry in inputs:
        shape = []
        for place, size in enumerate(entry.shape):
            if isinstance(size, str):
                wanted = meaning(size, place, len(entry.shape))
                value = known.get(wanted) if wanted else None
                if value is None:
                    raise UntracedError(*_remains(entry, place, size, wanted))
                axes.add(wanted)
                if size:
                    value = dimensions.setdefault(size, value)
                shape.append(value)
            else:
                shape.append(size)
        shapes[entry.name] = tuple(shape)
    fixed = {shape[0] for shape in shapes.values() if len(shape) > 1}
    batch = 1 if BATCH in axes or len(fixed) != 1 else max(fixed.pop(), 1)
    return GraphSizes(shapes, dimensions, frozenset(axes), batch)


def axes_of(inputs: Iterable[FileInput]) -> frozenset[str]:
    """Which sizes a graph leaves open."""
    return frozenset(
        meaning(size, place, len(entry.shape))
        for entry in inputs
        for place, size in enumerate(entry.shape)
        if isinstance(size, str)
    )


def _remains(entry: FileInput, place: int, name: str, wanted: str) -> tuple[str, str]:
    called = f"{in_quotes(name)}" if name else f"{place}"
    return (
        f"Dimension {called} of its input {entry.name} is free.",
        f"Name its size: {OPTIONS[wanted]} 128." if wanted else
        "No option binds it: export the model with a fixed size there.",
    )  # fmt: skip

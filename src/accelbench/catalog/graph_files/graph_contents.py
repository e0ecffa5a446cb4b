"""What the readers of all formats say alike of a graph: its weights, and what no rule counts."""

from __future__ import annotations

from collections.abc import Iterable

from accelbench.catalog.graph_files.signatures import UntracedError
from accelbench.core.nouns import listed
from accelbench.core.visible import in_quotes

_FP32 = "float"
_MOST_NAMED = 5


def stored_weights(tensors: Iterable[tuple[str, int]]) -> tuple[int, str]:
    """How many elements a graph's weights have, and what most of them are stored in.

    Args:
        tensors: of each weight what it is stored in, and its elements.
    """
    by_kind: dict[str, int] = {}
    for kind, number in tensors:
        by_kind[kind] = by_kind.get(kind, 0) + number
    return sum(by_kind.values()), max(by_kind, key=lambda kind: by_kind[kind], default=_FP32)


def refuse_uncounted(names: Iterable[str]) -> None:
    """Refuse a graph with operators that no rule counts, by their names.

    Raises:
        UntracedError: there are such operators.
    """
    unknown = sorted(set(names))
    if unknown:
        raise UntracedError(f"No rule counts its operators {listed(unknown, _MOST_NAMED)}.")


def refuse_unmade(operator: str, missing: Iterable[str]) -> None:
    """Refuse a graph in which an operator reads what none before it gives.

    Raises:
        UntracedError: there is such a value.
    """
    for name in missing:
        raise UntracedError(
            f"Its operator {operator} reads {in_quotes(name)}, which nothing before it gives: the"
            " graph runs in a circle, or a part of it is missing."
        )

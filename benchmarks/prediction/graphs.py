"""Operator graphs: for each model and input size its operators by signature, from Parquet.

A row is one signature of one graph with its count: class, multiply-accumulates, input, weight and
output elements, M, N, K, groups, kernel and stride, all for a batch of one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from accelbench.core.errors import UsageError
from accelbench.predict.signatures import CLASSES, Floats, Ints

_FIGURES = (
    "macs", "input_elements", "weight_elements", "output_elements", "m", "n", "k", "groups",
    "kernel", "stride", "count",
)  # fmt: skip


@dataclass(frozen=True)
class OperatorGraphs:
    """All graphs of a table, their operators one after the other."""

    index: Mapping[tuple[str, int], int]  # (model, image size) → its number
    start: Ints  # graph g has the operators start[g]:start[g + 1]
    op_class: Ints
    figures: Mapping[str, Floats]

    def __len__(self) -> int:
        return len(self.start) - 1

    @property
    def graph_of(self) -> Ints:
        """The graph of each operator."""
        return np.repeat(np.arange(len(self)), np.diff(self.start))

    def operators(self, graphs: Sequence[int] | Ints) -> Ints:
        """The operators of some graphs, in their order."""
        if not len(graphs):
            return np.zeros(0, dtype=np.int64)
        return np.concatenate([np.arange(self.start[g], self.start[g + 1]) for g in graphs])


def parquet_table(
    path: Path, required: Sequence[str], advice: str, *, more: Sequence[str] = ()
) -> pa.Table:
    """Return the required columns of a file, and those of `more` that it has, in this order.

    Raises:
        UsageError: there is no such file, it is not Parquet, or a column is missing.
    """
    if not path.is_file():
        raise UsageError(f"There is no file {path}.", advice)
    try:
        present = set(pq.read_schema(path).names)
        absent = [name for name in required if name not in present]
        if not absent:
            wanted = [*required, *(name for name in more if name in present)]
            return pq.read_table(path, columns=wanted)
    except (OSError, pa.ArrowInvalid) as error:
        raise UsageError(f"{path.name} cannot be read as Parquet.", advice) from error
    raise UsageError(f"{path.name} has no column {', '.join(absent)}.", advice)


def read_graphs(path: Path) -> OperatorGraphs:
    """The operator graphs of a table of signatures.

    Raises:
        UsageError: the file is no such table.
    """
    table = parquet_table(
        path,
        ["model", "img_size", "op_class", *_FIGURES],
        "Give a table of operator signatures, a row a signature.",
    )
    return graphs_of(table.to_pydict())


def graphs_of(columns: Mapping[str, Sequence[Any]]) -> OperatorGraphs:
    """The operator graphs of columns by name. A class that is not known counts as elementwise."""
    keys = list(zip(columns["model"], columns["img_size"], strict=True))
    index = {key: number for number, key in enumerate(dict.fromkeys(keys))}
    owner = np.array([index[key] for key in keys], dtype=np.int64)
    order = np.argsort(owner, kind="stable")
    classes = {name: number for number, name in enumerate(CLASSES)}
    kinds = [classes.get(name, len(CLASSES) - 1) for name in columns["op_class"]]
    return OperatorGraphs(
        index=index,
        start=np.searchsorted(owner[order], np.arange(len(index) + 1)).astype(np.int64),
        op_class=np.array(kinds, dtype=np.int64)[order],
        figures={name: np.array(columns[name], dtype=np.float64)[order] for name in _FIGURES},
    )

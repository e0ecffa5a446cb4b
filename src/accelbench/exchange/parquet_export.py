"""Results as Parquet, with the types of the store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from accelbench.core.columns import COLUMNS
from accelbench.store.arrow import result_table


def columns_table(names: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> Any:
    """These columns of rows as a table; JSON is text, samples a map of phase to nanoseconds."""
    import pyarrow as pa

    table = result_table(rows, [column for column in COLUMNS if column.name in names])
    if "samples" in names:
        kind = pa.map_(pa.string(), pa.list_(pa.int64()))
        values = pa.array([list(row["samples"].items()) for row in rows], kind)
        table = table.append_column("samples", values)
    return table


def write_parquet(path: Path, names: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> None:
    """Write these columns of rows."""
    import pyarrow.parquet as pq

    pq.write_table(columns_table(names, rows), path, compression="zstd")

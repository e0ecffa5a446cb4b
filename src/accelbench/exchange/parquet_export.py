"""Results as Parquet, with the types of the store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from accelbench.core.columns import COLUMNS
from accelbench.core.identity import canonical
from accelbench.exchange.run_facts import RUN
from accelbench.store.arrow import result_table


def columns_table(
    names: Sequence[str],
    rows: Sequence[Mapping[str, Any]],
    runs: Mapping[str, Mapping[str, Any]] | None = None,
) -> Any:
    """These columns of rows as a table; JSON is text, samples a map of phase to nanoseconds."""
    import pyarrow as pa

    table = result_table(rows, [column for column in COLUMNS if column.name in names])
    if "samples" in names:
        kind = pa.map_(pa.string(), pa.list_(pa.int64()))
        values = pa.array([list(row["samples"].items()) for row in rows], kind)
        table = table.append_column("samples", values)
        said = pa.array([canonical(row["sampling"]) for row in rows], pa.string())
        table = table.append_column("sampling", said)
    if runs:
        said = {run: canonical(about) for run, about in runs.items()}
        texts = pa.array([said.get(row["run_id"]) for row in rows], pa.string())
        table = table.append_column(RUN, texts)
    return table


def write_parquet(
    path: Path,
    names: Sequence[str],
    rows: Sequence[Mapping[str, Any]],
    runs: Mapping[str, Mapping[str, Any]] | None = None,
) -> None:
    """Write these columns of rows."""
    import pyarrow.parquet as pq

    pq.write_table(columns_table(names, rows, runs), path, compression="zstd")

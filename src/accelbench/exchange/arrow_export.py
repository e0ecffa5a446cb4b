"""Results as an Arrow file, with the types of the store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from accelbench.exchange.parquet_export import columns_table


def write_arrow(
    path: Path,
    names: Sequence[str],
    rows: Sequence[Mapping[str, Any]],
    runs: Mapping[str, Mapping[str, Any]] | None = None,
) -> None:
    """Write these columns of rows; JSON is text, samples a map of phase to nanoseconds."""
    import pyarrow.feather as feather

    feather.write_feather(columns_table(names, rows, runs), str(path), compression="zstd")

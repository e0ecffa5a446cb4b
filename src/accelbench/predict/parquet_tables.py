"""Tables of Parquet that people hand in: columns of a file, or what is wrong with it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from accelbench.core.errors import UsageError

if TYPE_CHECKING:
    from pyarrow import Table


def parquet_table(
    path: Path, required: Sequence[str], advice: str, *, more: Sequence[str] = (), form: str = ""
) -> Table:
    """Columns of a file, in their order.

    Args:
        path: the file.
        required: columns that it has to have.
        advice: what to give in its place.
        more: columns that are read where it has them.
        form: the advice where columns are missing; the same by default.

    Raises:
        UsageError: there is no such file, it is no Parquet, or a column is missing.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

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
    raise UsageError(f"{path.name} has no column {', '.join(absent)}.", form or advice)

"""Files as `db export` writes them, of rows that a test has in its hands."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from accelbench.core.facts import FACT_VERSION
from accelbench.present.table_export import TABLES, export_report, export_table
from accelbench.store.database import Database
from accelbench.store.duck import connect
from accelbench.store.insert import Batch, flush


def export(
    path: Path,
    rows: Sequence[Mapping[str, Any]],
    name: str,
    *,
    samples: bool = False,
    runs: Mapping[str, Mapping[str, Any]] | None = None,
) -> None:
    """Rows as they are, impossible ones too: nobody asks whether a stored result can be."""
    if name not in TABLES:
        export_report(path, rows, name)
        return
    with tempfile.TemporaryDirectory() as folder:
        database = Database(Path(folder) / "rows.duckdb")
        database.ensure()
        batch = Batch()
        for number, row in enumerate(rows):
            batch.add_result(str(row.get("result_id") or number), row, FACT_VERSION)
        with connect(database.path, write=True) as con:
            flush(con, batch)
        export_table(path, database, name, samples=samples, runs=runs)

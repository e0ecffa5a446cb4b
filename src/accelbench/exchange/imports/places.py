"""Where in a file of ours a result stands: for an error that only the database could find."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from accelbench.exchange.imports import parquet
from accelbench.exchange.imports.ours import told_as_csv, told_as_json
from accelbench.exchange.imports.records import MalformedError, object_of
from accelbench.store.conflicts import ConflictError
from accelbench.store.duck import quoted


def placed(kind: str, files: Sequence[Path], conflict: ConflictError) -> Exception:
    """The conflict with file, line and field; as it is where no file says that figure."""
    for file in files:
        for line, value in _told(kind, file, conflict.result_id, conflict.column):
            if value == conflict.said:
                why = f"it is {value}, where the result {conflict.result_id} has {conflict.known}"
                return MalformedError(file, line, conflict.column, why, conflict.advice)
    return conflict


def _told(kind: str, file: Path, result_id: str, column: str) -> Iterator[tuple[int, Any]]:
    """What a file says of that column of the result: the line, and the value."""
    if kind == "json":
        for one, body in told_as_json(object_of(file)):
            if body["result_id"] == result_id:
                yield (one.lines or {}).get(column, one.line), body.get(column)
    elif kind == "csv":
        for line, body in told_as_csv(file):
            if body["result_id"] == result_id:
                yield line.line, body.get(column)
    elif kind == "parquet":
        with parquet.looking_at(file) as con:
            query = f'''SELECT file_row_number + 1, "{column}" FROM {parquet.read(file)}
                WHERE result_id = {quoted(result_id)}'''  # noqa: S608 — our column
            yield from con.execute(query).fetchall()

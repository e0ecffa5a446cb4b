"""Where in a file of ours a result stands: for an error that only the database could find."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from accelbench.exchange.imports import parquet, tidy
from accelbench.exchange.imports.formats import TIDY
from accelbench.exchange.imports.ours import told_as_csv, told_as_json
from accelbench.exchange.imports.records import MalformedError, object_of
from accelbench.store.conflicts import ConflictError
from accelbench.store.duck import quoted


def placed(kind: str, files: Sequence[Path], conflict: ConflictError) -> Exception:
    """The conflict with file, line and field; as it is where no file says that figure."""
    for file in files:
        lines = list(_told(kind, file, conflict.result_id, conflict.column))
        claim_line, known = (_first(lines, value) for value in (conflict.said, conflict.known))
        if claim_line is None:
            continue
        # Of two lines of one file the later is the one that says something else.
        line, value, other = claim_line, conflict.said, conflict.known
        if known is not None and known > claim_line:
            line, value, other = known, other, value
        name = tidy.FIGURES.get(conflict.column) if kind == TIDY else None
        why = f"it is {value}, where the result {conflict.result_id} has {other}"
        return MalformedError(file, line, name or conflict.column, why, conflict.advice)
    return conflict


def _first(lines: Sequence[tuple[int, Any]], value: Any) -> int | None:
    """The first line that says a value."""
    return next((line for line, figure in lines if figure == value), None)


def _told(kind: str, file: Path, result_id: str, column: str) -> Iterator[tuple[int, Any]]:
    """What a file says of that column of the result: the line, and the value."""
    if kind == "json":
        for record, body in told_as_json(object_of(file)):
            if body["result_id"] == result_id:
                yield (record.lines or {}).get(column, record.line), body.get(column)
    elif kind == "csv":
        for line, body in told_as_csv(file):
            if body["result_id"] == result_id:
                yield line.line, body.get(column)
    elif kind == TIDY:
        yield from tidy.lines_of(file, result_id, column)
    elif kind == "parquet":
        with parquet.looking_at(file) as con:
            query = f'''SELECT file_row_number + 1, "{column}" FROM {parquet.read(file)}
                WHERE result_id = {quoted(result_id)}'''  # noqa: S608 — our column
            yield from con.execute(query).fetchall()

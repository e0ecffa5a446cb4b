"""Two results with one id: alike they are one; with another figure, one of them is not true."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from math import isclose
from typing import TYPE_CHECKING, Any

from accelbench.core.axes import columns
from accelbench.core.columns import BY_NAME, metric_columns
from accelbench.core.errors import UsageError
from accelbench.core.visible import in_quotes

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

#: What was measured, how it was identified, and what was found; words about it may be another
#: version's.
FIGURES = (
    *("status", "case_id", "series_key", "launch", "arm", "model", "hardware", "runtime", "device"),
    *("device_name", "device_fingerprint", "precision", "batch_size", *columns(), "mode"),
    *("scenario", "compiled", "threads", "world_size", "seed", "optimizer", "weights"),
    *("verification", "self_check", "steps_verified", "weights_digest", "outputs_digest"),
    *(column.name for column in metric_columns()),
)
#: A file may hold a figure in single precision.
_ALIKE = 1e-6


class ConflictError(UsageError):
    """A result that has another figure than the one that is known by its id."""

    def __init__(self, result_id: str, column: str, known: Any, claim: Any) -> None:
        super().__init__(
            f"{result_id}, {in_quotes(column)}: it is {claim}, where the result of that id has"
            f" {known}.",
            "Nothing of it was imported.",
        )
        self.result_id, self.column, self.known, self.said = result_id, column, known, claim


def refuse_another(result_id: str, known: Mapping[str, Any], row: Mapping[str, Any]) -> None:
    """Refuse another figure than the known one; what one of them does not say is no figure."""
    for name in FIGURES:
        figure, other = known.get(name), row.get(name)
        if figure is None or other is None or figure == other:
            continue
        if BY_NAME[name].kind not in ("int", "float") or not isclose(figure, other, rel_tol=_ALIKE):
            raise ConflictError(result_id, name, figure, other)


def refuse_known(con: DuckDBPyConnection, rows: Mapping[str, Mapping[str, Any]]) -> None:
    """The same of rows by their ids, against what is in the database."""
    names = ("result_id", *FIGURES)
    columns = ", ".join(f'"{name}"' for name in names)
    known = con.execute(
        f"SELECT {columns} FROM fact_result"  # noqa: S608 — our columns
        " WHERE result_id IN (SELECT unnest(?))",
        [list(rows)],
    )
    for values in known.fetchall():
        row = dict(zip(names, values, strict=True))
        refuse_another(row["result_id"], row, rows[row["result_id"]])


def refuse_others(con: DuckDBPyConnection, query: str, columns: Collection[str]) -> int:
    """The same of what a query gives: against what is in the database, and within itself.

    Returns:
        How many of its results it gives once more.
    """
    names = [name for name in FIGURES if name in columns]
    # Ids alone are read in no time; rows are joined only where some are there twice.
    ((rows, different, known),) = con.execute(
        "SELECT count(*), count(DISTINCT result_id),"  # noqa: S608 — our query
        " count(*) FILTER (result_id IN (SELECT result_id FROM fact_result))"
        f" FROM ({query})"
    ).fetchall()
    others = ["fact_result"] if known else []
    if different < rows:
        twice = f"SELECT result_id FROM ({query}) GROUP BY result_id HAVING count(*) > 1"  # noqa: S608
        others.append(f"(SELECT * FROM ({query}) WHERE result_id IN ({twice}))")  # noqa: S608
    pairs = ", ".join(f'k."{name}" AS "k_{name}", i."{name}" AS "i_{name}"' for name in names)
    unlike = " OR ".join(_unlike(name) for name in names)
    for other in others:
        both = f"SELECT i.result_id, {pairs} FROM ({query}) i JOIN {other} k USING (result_id)"  # noqa: S608
        row = con.execute(f"SELECT * FROM ({both}) WHERE {unlike} LIMIT 1").fetchone()  # noqa: S608
        if row is not None:
            values = list(row[1:])
            refuse_another(
                str(row[0]),
                dict(zip(names, values[::2], strict=True)),
                dict(zip(names, values[1::2], strict=True)),
            )
    return int(rows - different)


def _unlike(name: str) -> str:
    """SQL: whether both are known and differ; NULL, which is no match, where one is not."""
    if BY_NAME[name].kind not in ("int", "float"):
        return f'"k_{name}" <> "i_{name}"'
    most = f'greatest(abs("k_{name}"), abs("i_{name}"))'
    return f'abs("k_{name}" - "i_{name}") > {_ALIKE} * {most}'

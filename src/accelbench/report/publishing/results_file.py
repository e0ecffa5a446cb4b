"""The table of results as rows and as a Parquet file: what the pages say, in their words."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from accelbench.analysis.cost_words import money
from accelbench.core.rows import Row
from accelbench.core.visible import visible
from accelbench.hardware.colours import colour_of
from accelbench.report.dashboard import words
from accelbench.report.dashboard.asked import AS_THEY_LIE
from accelbench.report.dashboard.snapshots.cell_intervals import interval, latency_note
from accelbench.report.dashboard.snapshots.cells import Cell, told_apart

if TYPE_CHECKING:
    from accelbench.report.dashboard.snapshots.snapshot import Snapshot

#: Name → kind. Names and kinds as the browser's table reads them (`static/results.mjs`).
COLUMNS: Mapping[str, str] = {
    **dict.fromkeys(
        (
            *("key", "model", "family", "hardware", "colour", "device", "devices", "machine"),
            *("machine_id", "runtime", "precision", "mode", "size", "scenario", "kind", "status"),
            *("reason", "apart", "latency_note", "tail_of", "unit", "quality", "why_unusable"),
            *("verification", "moment", "run_id", "cost", "device_name", "latency_spread"),
            "throughput_spread",
        ),
        "text",
    ),
    **dict.fromkeys(
        (
            *("batch_size", "latency", "tail", "throughput"),
            *("memory", "cost_per_million", "launches", "answered", "left_out", "failed"),
            "samples",
        ),
        "number",
    ),
    "page": "yes or no",
}


def rows_of_table(snapshot: Snapshot) -> list[Row]:
    """Every cell as its row of the table, in the order of the dashboard's own."""
    cells = cast(
        "list[Cell]",
        snapshot.ask(f"SELECT * EXCLUDE (results, series) FROM cell ORDER BY {AS_THEY_LIE}"),  # noqa: S608
    )
    shown = _Shown()
    return [_row(cast("Row", cell), snapshot, shown) for cell in told_apart(cells)]


class _Shown(dict[str, str]):
    """Texts as pages show them; most are alike."""

    def __missing__(self, text: str) -> str:
        self[text] = made = visible(text)
        return made


def _row(cell: Row, snapshot: Snapshot, shown: _Shown) -> dict[str, Any]:
    machine = snapshot.machines.get(str(cell["machine"]))
    cost = cell.get("cost_per_million")
    told = {
        **cell,
        "colour": colour_of(str(cell["hardware"])),
        "device": words.device(cell["device_name"]),
        "devices": words.devices(cell),
        "machine": machine.name if machine else "",
        "machine_id": cell["machine"],
        "latency_note": latency_note(cast("Cell", cell)),
        "size": words.size(cell),
        "unit": words.unit(cell),
        "moment": words.day(cell["moment"]) if cell["moment"] else None,
        "cost": money(cast("float", cost)) if cost is not None else None,
        **{f"{name}_spread": _spread(cell, name) for name in ("latency", "throughput")},
        "why_unusable": words.why_not(cell) if cell["quality"] == "unusable" else None,
    }
    row: dict[str, Any] = {}
    for name, kind in COLUMNS.items():
        value = told.get(name)
        if kind == "text":
            row[name] = shown[str(value)] if value not in (None, "") else None
        elif kind == "number":
            row[name] = None if value is None else float(cast("float", value))
    return row


def _spread(cell: Row, figure: str) -> str:
    """Return the interval of a figure as the dashboard's pages show it; "" without one."""
    known = interval(cast("Cell", cell), figure)
    return known.text if known else ""


def write_results(rows: Sequence[Row], pages: Collection[str], path: Path) -> None:
    """The rows as a Parquet file, with which of them have a page of their own.

    Args:
        rows: as `rows_of_table` gives them.
        pages: the keys of cells that have one.
        path: the file.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    types = {"text": pa.string(), "number": pa.float64(), "yes or no": pa.bool_()}
    arrays = {
        name: pa.array(
            [row["key"] in pages for row in rows]
            if name == "page"
            else [row.get(name) for row in rows],
            types[kind],
        )
        for name, kind in COLUMNS.items()
    }
    # Snappy is what every reader of Parquet has built in, the browser's too.
    pq.write_table(pa.table(arrays), path, compression="snappy")

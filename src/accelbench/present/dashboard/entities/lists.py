"""Lists of the models, devices and engines of a snapshot, and the cells of one.

A device is identified by its name: OpenVINO's processor is the machine's, and two machines may have
the same. A device without a name has that of its platform.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast
from urllib.parse import quote

from accelbench.core.rows import Row, number, text
from accelbench.core.vocabulary import Quality
from accelbench.present.dashboard.page_query import COUNTED_SQL, PAGE, PageQuery, address_of_pairs
from accelbench.present.dashboard.snapshots.cells import Cell, named, told_apart
from accelbench.present.dashboard.snapshots.snapshot import Snapshot

#: The name of a cell's device, in SQL.
DEVICE = "coalesce(nullif(device_name, ''), hardware)"
#: The SQL condition that a cell's results are usable measurements.
COUNTS = f"{COUNTED_SQL} AND quality IS DISTINCT FROM '{Quality.UNUSABLE.value}'"
#: Cells of a model or device on its page, and launches that are read of them.
MOST_CELLS, MOST_LAUNCHES = 240, 1500
#: Rows on a page of a model's table: 240 of them were 26,000 pixels on a phone.
CONFIGURATIONS = 40
#: The milliseconds of an item, which rank devices and models at any batch size. If the batch size
#: is unknown, the rate is better than the time of a batch.
_ITEM_MS = (
    "coalesce(coalesce(latency, tail) / nullif(batch_size, 0), 1000 / nullif(throughput, 0),"
    " latency, tail)"
)
#: Orders of a list: the name in `asked.ORDERS` → SQL.
_LIST_ORDERS: Mapping[str, str] = {"model": "lower(name)", "date": "newest", "launches": "cells"}
#: Names that a browser takes for steps through folders.
_FOLDERS = ("", ".", "..")


@dataclass(frozen=True)
class Entity:
    """A model, a device or an engine in a list."""

    name: str
    row: Row  # the columns that all its cells have in common
    best: Cell | None  # the cell with the most items per second


def address_of(kind: str, name: object, **more: str) -> str:
    """Return the address of the page of a model or a device."""
    plain, pairs = str(name), list(more.items())
    # Some proxies decode a path twice.
    if plain in _FOLDERS or "%" in plain:
        return f"/{kind}{address_of_pairs([('name', plain), *pairs])}"
    return f"/{kind}/{quote(plain, safe='')}{address_of_pairs(pairs)}"


def listed(snapshot: Snapshot, query: PageQuery, kind: str) -> tuple[list[Entity], int]:
    """Return a page of models, devices or engines, and the count of all.

    `kind` is the SQL of their name: "model", `DEVICE` or "runtime".
    """
    where, values = query.where()
    way = "DESC NULLS LAST" if query.falling else "ASC NULLS LAST"
    order = _LIST_ORDERS.get(query.sort, _LIST_ORDERS["model"])
    rank = f"row(mode IS DISTINCT FROM 'inference', {_ITEM_MS}, key)"
    ranked = f"{COUNTS} AND {_ITEM_MS} > 0"
    rows = snapshot.ask(
        f"SELECT {kind} AS name, list_sort(list(DISTINCT hardware)) AS platforms,"  # noqa: S608
        " min(family) AS family,"
        " max(parameters) AS parameters, count(*) AS cells, count(DISTINCT model)::INTEGER AS"
        f" models, count(DISTINCT runtime)::INTEGER AS engines, max(moment) AS newest,"
        f" count(DISTINCT {DEVICE})::INTEGER AS devices,"
        " count(DISTINCT machine)::INTEGER AS machines,"
        " count(*) FILTER (status <> 'ok') AS failed,"
        " count(*) FILTER (kind = 'imported') AS imported,"
        f" arg_min(key, {rank}) FILTER ({ranked}) AS best,"
        f" arg_min(1000 / {_ITEM_MS}, {rank}) FILTER ({ranked}) AS items_per_second,"
        f" count(*) OVER () AS every FROM cell WHERE {where} GROUP BY 1"
        f" ORDER BY {order} {way}, cells DESC,"
        " lower(name), name"
        f" LIMIT {PAGE} OFFSET {(query.page - 1) * PAGE}",
        values,
    )
    best = {cell["key"]: cell for cell in named(snapshot, [str(row["best"]) for row in rows])}
    entities = [Entity(text(row, "name"), row, best.get(str(row["best"]))) for row in rows]
    return entities, int(number(rows[0], "every") or 0) if rows else 0


def about(snapshot: Snapshot, kind: str, name: str) -> Row | None:
    """Return what the cells of a model or a device have in common, or None if it has none."""
    (row,) = snapshot.ask(
        "SELECT count(*) AS cells, count(DISTINCT model)::INTEGER AS models,"  # noqa: S608
        f" list_sort(list(DISTINCT {DEVICE})) AS devices, min(family) AS family,"
        " min(architecture) AS architecture, max(parameters) AS parameters,"
        " list_sort(list(DISTINCT runtime)) AS engines, max(moment) AS newest,"
        " list_sort(list(DISTINCT hardware)) AS platforms,"
        " list_sort(list(DISTINCT precision)) AS precisions,"
        " list_sort(list(DISTINCT machine)) AS machines,"
        " list_sort(list(DISTINCT device_fingerprint)) AS fingerprints,"
        f" count(*) FILTER (status <> 'ok') AS failed FROM cell WHERE {kind} = ?",
        [name],
    )
    return row if row["cells"] else None


def implausible(snapshot: Snapshot, kind: str, name: str) -> list[Row]:
    """Return the configurations of a model or device with a rate that the device cannot reach."""
    rows = snapshot.ask(
        f"SELECT key, model, {DEVICE} AS device, hardware, runtime, precision, batch_size,"  # noqa: S608
        f" implausible_rate FROM cell WHERE {kind} = ? AND implausible_rate IS NOT NULL"
        " ORDER BY lower(model), device, key",
        [name],
    )
    return [*rows]


def modes_of_model(snapshot: Snapshot, name: str) -> list[str]:
    """Return the modes in which a model was measured, the most common first."""
    rows = snapshot.ask(
        "SELECT coalesce(mode, '') AS mode FROM cell WHERE model = ?"
        " GROUP BY 1 ORDER BY count(*) DESC, 1",
        [name],
    )
    return [str(row["mode"]) for row in rows]


#: The cells of a model in a mode, of each version the newest.
_OF_MODEL = f"""
SELECT rowid AS place, status, batch_size, runtime, precision, key,
    coalesce({COUNTS}, false) AS counts, {DEVICE} AS device, {_ITEM_MS} AS item_ms
FROM cell WHERE model = ? AND coalesce(mode, '') = ?
QUALIFY row_number() OVER (PARTITION BY coalesce(case_id, key), machine, kind, device_name,
    threads, compiled ORDER BY moment DESC NULLS LAST, key) = 1
"""  # noqa: S608 — our columns


def of_model(snapshot: Snapshot, name: str, mode: str) -> list[Cell]:
    """Return the cells of a model in a mode, up to a limit.

    First the fastest of each device at each batch, then the second of each. By name the first 240
    of 319 left out two phones that were twice as fast as the reported fastest.
    """
    rows = snapshot.whole(
        "SELECT place FROM (SELECT *, row_number() OVER (PARTITION BY device, batch_size"  # noqa: S608
        " ORDER BY status <> 'ok', NOT counts, item_ms NULLS LAST, key) AS nth"
        f" FROM ({_OF_MODEL})) ORDER BY status <> 'ok', NOT counts, nth, item_ms NULLS LAST, key"
        f" LIMIT {MOST_CELLS + 1}",
        [name, mode],
        "* EXCLUDE (series)",
    )
    return told_apart(cast("list[Cell]", rows))


def page_of_model(snapshot: Snapshot, name: str, mode: str, page: int) -> tuple[list[Cell], int]:
    """Return a page of a model's cells in a mode, and the count of all.

    Devices are in the order of their fastest item, and so are the cells of each. Unusable cells
    follow, and then those without results.
    """
    rows = snapshot.whole(
        f"SELECT place FROM ({_OF_MODEL})"  # noqa: S608
        " ORDER BY status <> 'ok', NOT counts, min(item_ms) FILTER (status = 'ok' AND counts)"
        " OVER (PARTITION BY device) NULLS LAST, device, item_ms NULLS LAST, runtime, precision,"
        f" batch_size, key LIMIT {CONFIGURATIONS} OFFSET {(page - 1) * CONFIGURATIONS}",
        [name, mode],
        "* EXCLUDE (series, results)",
    )
    count = snapshot.count(f"SELECT count(*) FROM ({_OF_MODEL})", [name, mode])  # noqa: S608
    return told_apart(cast("list[Cell]", rows)), count


def of_device(snapshot: Snapshot, name: str, page: int) -> tuple[list[Cell], int]:
    """Return a page of a device's models, each by its cell with the most items per second."""
    condition = f"{DEVICE} = ? AND {COUNTS} AND coalesce(latency, throughput) IS NOT NULL"
    rows = snapshot.whole(
        "SELECT place FROM (SELECT rowid AS place, model, row_number() OVER (PARTITION BY model"  # noqa: S608
        f" ORDER BY mode IS DISTINCT FROM 'inference', {_ITEM_MS} NULLS LAST, key) AS nth"
        f" FROM cell WHERE {condition}) WHERE nth = 1"
        f" ORDER BY lower(model), model LIMIT {PAGE} OFFSET {(page - 1) * PAGE}",
        [name],
        "* EXCLUDE (series, results)",
    )
    sql = f"SELECT count(DISTINCT model) FROM cell WHERE {condition}"  # noqa: S608
    return told_apart(cast("list[Cell]", rows)), snapshot.count(sql, [name]) if rows else 0

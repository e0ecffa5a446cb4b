"""Models and devices of a snapshot: lists of them, and the cells that are of one.

A device is known by its name, as people know it: OpenVINO's processor is the machine's, and two
machines may have alike ones. What has no name is called by its platform.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast
from urllib.parse import quote, urlencode

from accelbench.core.rows import Row, number, text
from accelbench.core.vocabulary import Quality
from accelbench.report.dashboard.asked import PAGE, PageQuery
from accelbench.report.dashboard.snapshots.cells import Cell, named, told_apart
from accelbench.report.dashboard.snapshots.snapshot import Snapshot

#: The name of a cell's device, in SQL.
DEVICE = "coalesce(nullif(device_name, ''), hardware)"
#: Its figures count: somebody measured them, and they are of use.
COUNTS = (
    "status = 'ok' AND kind IN ('measured', 'imported')"
    f" AND quality IS DISTINCT FROM '{Quality.UNUSABLE.value}'"
)
#: More cells of a model, or a device, are on no page of its own.
MOST_CELLS = 240
#: Configurations on a page of a model's table: each is two or three lines high where there is
#: little room, and 240 of them were 26,000 pixels on a phone.
CONFIGURATIONS = 40
#: Launches that are read of all of these.
MOST_LAUNCHES = 1500
#: An import may bring a configuration in forty versions: of each the newest is shown.
_NEWEST = (
    "QUALIFY row_number() OVER (PARTITION BY coalesce(case_id, key), machine, kind, device_name,"
    " threads, compiled ORDER BY moment DESC NULLS LAST, key) = 1"
)
#: Milliseconds of an item. Devices and models are ranked by it, as batches of different sizes take
#: different times. Of an unknown batch size the rate says more than the time of a batch.
_ITEM_MS = (
    "coalesce(coalesce(latency, tail) / nullif(batch_size, 0), 1000 / nullif(throughput, 0),"
    " latency, tail)"
)
#: What a list can be ordered by: that of `asked.ORDERS` → SQL.
_LIST_ORDERS: Mapping[str, str] = {"model": "lower(name)", "date": "newest", "launches": "cells"}
#: A browser takes these for steps through folders, however they are written.
_FOLDERS = ("", ".", "..")


@dataclass(frozen=True)
class Entity:
    """A model or a device in a list."""

    name: str  # its name
    row: Row  # what the snapshot says of all its cells together
    best: Cell | None  # the cell with the most items per second; None if none has a time or a rate

    @property
    def items_per_second(self) -> float | None:
        """The rate of the best cell."""
        rate = number(self.row, "items_per_second")
        return None if rate is None else float(rate)


@dataclass(frozen=True)
class EntityPage:
    """A page of a list, and how many there are of all."""

    entities: Sequence[Entity]
    count: int

    @property
    def pages(self) -> int:
        return max(1, -(-self.count // PAGE))


def address_of(kind: str, name: object, **more: str) -> str:
    """The address of a model's or a device's page, whatever it is called."""
    plain = str(name)
    # Some that stand between a browser and a page decode a path twice.
    if plain in _FOLDERS or "%" in plain:
        return f"/{kind}?{urlencode({'name': plain, **more})}"
    return f"/{kind}/{quote(plain, safe='')}{f'?{urlencode(more)}' if more else ''}"


def listed(snapshot: Snapshot, query: PageQuery, kind: str) -> EntityPage:
    """Models, devices or engines of what was asked for."""
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
    return EntityPage(entities, int(number(rows[0], "every") or 0) if rows else 0)


def about(snapshot: Snapshot, kind: str, name: str) -> Row | None:
    """What all cells of a model or a device have in common; None if there is no such thing.

    `kind` is what it is, in SQL over cells: "model" or `DEVICE`.
    """
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
    """What a model was measured at, inference or training, the more common first."""
    rows = snapshot.ask(
        "SELECT coalesce(mode, '') AS mode FROM cell WHERE model = ?"
        " GROUP BY 1 ORDER BY count(*) DESC, 1",
        [name],
    )
    return [str(row["mode"]) for row in rows]


def of_model(snapshot: Snapshot, name: str, mode: str) -> list[Cell]:
    """The cells of a model in a mode, of every version the newest, up to a limit.

    First the quickest of each device at each batch, then the next of each: where there is no room
    for all, what is called the fastest is the fastest of all. By their names the first 240 of 319
    left out two phones, which were twice as fast as what was said to be.
    """
    rows = snapshot.whole(
        "WITH newest AS (SELECT rowid AS place, status, batch_size, key,"  # noqa: S608
        f" coalesce({COUNTS}, false) AS counts, {DEVICE} AS device, {_ITEM_MS} AS item_ms FROM cell"
        f" WHERE model = ? AND coalesce(mode, '') = ? {_NEWEST}),"
        " told AS (SELECT *, row_number() OVER (PARTITION BY device, batch_size"
        " ORDER BY status <> 'ok', NOT counts, item_ms NULLS LAST, key) AS nth FROM newest)"
        " SELECT place FROM told ORDER BY status <> 'ok', NOT counts, nth, item_ms NULLS LAST, key"
        f" LIMIT {MOST_CELLS + 1}",
        [name, mode],
        "* EXCLUDE (series)",
    )
    return told_apart(cast("list[Cell]", rows))


def page_of_model(snapshot: Snapshot, name: str, mode: str, page: int) -> tuple[list[Cell], int]:
    """A page of a model's configurations in a mode, of every version the newest, and their count.

    Devices are in the order of their quickest time of an item, and so are the configurations of
    each. What counts nowhere stands behind all that does, and what has no figures last.
    """
    rows = snapshot.whole(
        "WITH newest AS (SELECT rowid AS place, status, batch_size, runtime, precision, key,"  # noqa: S608
        f" coalesce({COUNTS}, false) AS counts, {DEVICE} AS device, {_ITEM_MS} AS item_ms FROM cell"
        f" WHERE model = ? AND coalesce(mode, '') = ? {_NEWEST}) SELECT place FROM newest"
        " ORDER BY status <> 'ok', NOT counts, min(item_ms) FILTER (status = 'ok' AND counts)"
        " OVER (PARTITION BY device) NULLS LAST, device, item_ms NULLS LAST, runtime, precision,"
        f" batch_size, key LIMIT {CONFIGURATIONS} OFFSET {(page - 1) * CONFIGURATIONS}",
        [name, mode],
        "* EXCLUDE (series, results)",
    )
    count = snapshot.count(
        "SELECT count(*) FROM (SELECT key FROM cell WHERE model = ?"  # noqa: S608
        f" AND coalesce(mode, '') = ? {_NEWEST})",
        [name, mode],
    )
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

"""Lists of models, devices and engines, and the configurations that two of them both ran.

The snapshot finds these configurations; only their launches are read from the store.

A device is identified by its name: OpenVINO's processor is the machine's, and two machines may have
the same. A device without a name has that of its platform.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from urllib.parse import quote

from accelbench.core.formatting import format_count, format_digits
from accelbench.core.rows import Row, text
from accelbench.core.vocabulary import Quality
from accelbench.judge import speed_ups
from accelbench.judge.baselines import COLUMNS
from accelbench.judge.comparison import Compared
from accelbench.judge.older_runs import histories_of
from accelbench.judge.questions import AXES, ComparisonAxis, Key
from accelbench.judge.ratios import SAMPLES
from accelbench.judge.stored_results import rows_of
from accelbench.present.charts.words import safe
from accelbench.present.dashboard.cells import Cell, named, told_apart
from accelbench.present.dashboard.page_query import COUNTED_SQL, PAGE, PageQuery, address_of_pairs
from accelbench.present.dashboard.snapshot import Snapshot
from accelbench.store.database import Database

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
    return entities, rows[0]["every"] if rows else 0


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
    return told_apart(rows)


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
    return told_apart(rows), count


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
    return told_apart(rows), snapshot.count(sql, [name]) if rows else 0


#: Launches of each cell: a sweep has five, an import any number.
_MOST_LAUNCHES = 12
#: Launches that are read for a page: of thirteen hundred configurations that two cards have in
#: common 5,500, which takes half a second. Of more in common some are chosen (`_COMMON`).
MOST_READ = 8000
#: What else is narrowed down by: its name in an address → the column.
NARROWED: Mapping[str, str] = {"mode": "mode", "precision": "precision", "batch": "batch_size"}

#: Cells of both, of the questions that both answered. What only one of them answered is left out
#: first, by a hash: to tell questions and versions of two hundred thousand cells takes half a
#: second. An import brings many versions at once: of each way to run those count that both sides
#: have, else the newest, or all where it names no moments, for `matching` to choose of. Which
#: questions are read where they are too many is by their digests, which favour no model, precision
#: or batch.
_COMMON = """
WITH of_both AS (
    SELECT hash({alike}) AS about FROM cell WHERE {condition}
    GROUP BY 1 HAVING count(DISTINCT {side}) = 2
), here AS (
    SELECT rowid AS place, {side} AS side, md5(concat_ws(chr(31), {alike})) AS question,
        {way}, kind, machine, versions, moment
    FROM cell WHERE {condition} AND hash({alike}) IN (FROM of_both)
), shared AS (
    SELECT *, min(side) OVER alike <> max(side) OVER alike AS of_two
    FROM here WINDOW alike AS (PARTITION BY question, kind, versions)
), kept AS (
    SELECT * FROM shared QUALIFY rank() OVER (
        PARTITION BY side, question, {way}, kind, machine
        ORDER BY of_two DESC, moment DESC NULLS LAST) = 1
), sized AS (
    SELECT place, kept.side, question, least(len(results), {launches}) AS launches
    FROM kept JOIN cell ON cell.rowid = place
), common AS (
    SELECT question, sum(launches) AS launches
    FROM sized GROUP BY 1 HAVING count(DISTINCT side) = 2
), numbered AS (
    SELECT question, count(*) OVER () AS every,
        sum(launches) OVER (ORDER BY question) - launches AS before
    FROM common
)
SELECT key, results[:{launches}] AS results, every, numbered.question AS question
FROM sized JOIN numbered USING (question) JOIN cell ON cell.rowid = sized.place
WHERE before < {most} ORDER BY numbered.question, sized.side, key
"""


@dataclass(frozen=True)
class TwoSides:
    """Two devices, or two engines on a device."""

    base: str
    other: str  # the candidate
    column: str  # their name in SQL over cells
    axis: ComparisonAxis
    device: str = ""  # the device of engines; "" is any
    narrowed: Mapping[str, str] = field(default_factory=dict)  # values by `NARROWED`

    @property
    def is_asked(self) -> bool:
        """Whether an address names a side."""
        return bool(self.base or self.other)

    @property
    def of_devices(self) -> bool:
        """Whether they are devices."""
        return self.axis.name == "hardware"

    @property
    def alike(self) -> str:
        """The SQL of what a configuration has in common on both sides."""
        names = [f"coalesce({name}::VARCHAR, '')" for name in self.axis.alike]
        return ", ".join(names if self.of_devices else [*names, DEVICE])

    @property
    def key(self) -> tuple[object, ...]:
        """The identity of the comparison."""
        return self.axis.name, self.base, self.other, self.device, *self.narrowed.items()

    def pairs(self) -> list[tuple[str, str]]:
        """Return the names and values of the address."""
        device = [("device", self.device)] if self.device else []
        return [("a", self.base), ("b", self.other), *device, *self.narrowed.items()]

    def where(self) -> tuple[str, list[str]]:
        """Return the condition of their cells as SQL and its parameters."""
        parts = [COUNTED_SQL, f"{self.column} IN (?, ?)"]
        values = [self.base, self.other]
        if self.device:
            parts.append(f"{DEVICE} = ?")
            values.append(self.device)
        for name, value in self.narrowed.items():
            parts.append(f"{NARROWED[name]}::VARCHAR = ?")
            values.append(value)
        return " AND ".join(parts), values


@dataclass(frozen=True)
class CommonGround:
    """The ratios of two sides."""

    made: speed_ups.SpeedUps
    count: int  # configurations in common
    held: int  # those of them that were compared: all, or those that a fixed rule chose
    cells: Mapping[str, str]  # the keys of cells by the ids of results
    machines: Sequence[Sequence[str]]  # the machines of each side

    def cell_of(self, row: Row) -> str:
        """Return the key of a launch's cell."""
        return self.cells.get(text(row, "result_id"), "")


def sides_of(
    of_devices: bool, base: str, other: str, device: str, narrowed: Mapping[str, str]
) -> TwoSides:
    """Return the comparison of two devices, or of two engines on a device or on each with both."""
    if of_devices:
        return TwoSides(base, other, DEVICE, AXES["hardware"], narrowed=narrowed)
    return TwoSides(base, other, "runtime", AXES["runtime"], device, narrowed)


#: The sides with the most configurations, of which a pair is chosen: with all 300 devices each
#: question would be compared 40,000 times.
_MOST_CHOSEN_OF = 12
_PAIR = """
WITH many AS (
    SELECT {side} AS side, count(*) AS cells FROM cell WHERE {side} IS NOT NULL AND {counts}
    GROUP BY 1 ORDER BY cells DESC, side LIMIT {most}
), each AS (
    SELECT DISTINCT hash({alike}) AS about, side, cells FROM cell JOIN many ON {side} = side
    WHERE {counts}
)
SELECT a.side AS base, b.side AS other FROM each a JOIN each b USING (about)
WHERE (a.cells, b.side) > (b.cells, a.side)
GROUP BY ALL ORDER BY count(*) DESC, base, other LIMIT 1
"""


def most_in_common(snapshot: Snapshot, of_devices: bool) -> tuple[str, str] | None:
    """Return the two with the most configurations in common, that with more of its own first."""
    two = sides_of(of_devices, "", "", "", {})
    rows = snapshot.ask(
        _PAIR.format(side=two.column, alike=two.alike, counts=COUNTED_SQL, most=_MOST_CHOSEN_OF)
    )
    return (str(rows[0]["base"]), str(rows[0]["other"])) if rows else None


def common_ground(snapshot: Snapshot, database: Database, two: TwoSides) -> CommonGround:
    """Return the ratios of the configurations that both ran, or of a choice if they are many."""
    condition, values = two.where()
    words = {"side": two.column, "alike": two.alike, "way": ", ".join(two.axis.along)}
    sql = _COMMON.format(condition=condition, launches=_MOST_LAUNCHES, most=MOST_READ, **words)
    found = snapshot.ask(sql, [*values, *values])
    count = found[0]["every"] if found else 0
    held = len({cell["question"] for cell in found})
    by_result = {result: cell["key"] for cell in found for result in cell["results"]}
    ids = list(by_result)
    with database.keep_open():
        rows = _read(database, ids) if ids else []
        placed = [_placed(row, two) for row in rows]
        runs = {text(row, "run_id") for row in rows}
        machines = {run: snapshot.machines.get(snapshot.ran.get(run, "")) for run in runs}
        by_run = [
            (machines[run], [row for row in placed if text(row, "run_id") == run])
            for run in sorted(runs)
        ]
        if len(runs) >= _FEW_RUNS:
            by_run = [(None, placed)]
        known = histories_of(database, by_run)
    made = speed_ups.speed_ups(
        placed, two.axis, _place(two.base, two), _place(two.other, two), known
    )
    ran_on: dict[Key, set[str]] = {}
    for row in placed:
        if machine := machines[text(row, "run_id")]:
            ran_on.setdefault(two.axis.value(row), set()).add(str(machine))
    sides = [sorted(ran_on.get(_place(side, two), ())) for side in (two.base, two.other)]
    return CommonGround(made, count, held, by_result, sides)


#: With more runs the machines of older runs are not told apart.
_FEW_RUNS = 200


def _read(database: Database, ids: Sequence[str]) -> list[Row]:
    columns = tuple(dict.fromkeys((*COLUMNS, "result_id", "arm")))
    condition = "result_id IN (SELECT unnest(?::VARCHAR[]))"
    rows = rows_of(database, columns, condition, [list(ids)], launches=True)
    return [dict(row) for row in rows]


def _placed(row: Row, two: TwoSides) -> Row:
    # A device of several platforms, such as OpenVINO's processor, is one device.
    if not two.of_devices:
        return row
    name = str(row.get("device_name") or row.get("hardware"))
    return {**row, "device_name": name, "hardware": _PLATFORM}


#: The platform of each device, which is compared by its name only.
_PLATFORM = "device"


def _place(name: str, two: TwoSides) -> Key:
    return (_PLATFORM, name) if two.of_devices else (name,)


def narrowings(snapshot: Snapshot, two: TwoSides) -> dict[str, list[str]]:
    """Return the values of each filter that both sides have."""
    condition, values = replace(two, narrowed={}).where()
    offered = {}
    for name, column in NARROWED.items():
        rows = snapshot.ask(
            f"SELECT {column}::VARCHAR AS value FROM cell WHERE {condition}"  # noqa: S608
            f" AND {column} IS NOT NULL GROUP BY {column}"
            f" HAVING count(DISTINCT {two.column}) = 2 ORDER BY {column}",
            values,
        )
        offered[name] = [str(row["value"]) for row in rows]
    return offered


#: So many losers are named in a sentence.
_NAMED = 5


def answer(two: TwoSides, ground: CommonGround) -> str:
    """Return the sentence with the median ratio and the counts of its answers."""
    base, other = safe(two.base, 60), safe(two.other, 60)
    where = f" on {safe(two.device, 60)}" if two.device else ""
    made, middle = ground.made, ground.made.median
    if not made.lines:
        noun = "devices" if two.of_devices else "engines"
        narrowed = " that was asked for" if two.narrowed else ""
        return (
            f"Nothing to compare with each other: these {noun} have no configuration{narrowed} in"
            f" common{where}."
        )
    if middle is None:
        return f"Can't tell how {other} compares with {base}{where}: {_why(made)}."
    what = (
        f"{format_count(len(made.told), 'common configuration')} of"
        f" {format_count(made.models, 'model')}"
    )
    if ground.held < ground.count:
        what += f" ({ground.held:,} of the {ground.count:,} in common, chosen by a fixed rule)"
    told = set(map(id, made.told))
    counts = [
        f"{found} in {_counted(lines)}"
        for found in (
            speed_ups.FASTER,
            speed_ups.FASTER_ALONE,
            speed_ups.SLOWER,
            speed_ups.SLOWER_ALONE,
            speed_ups.UNSURE,
        )
        if (lines := [line for line in made.of(found) if id(line) in told])
    ]
    refused = len(made.of(speed_ups.REFUSED))
    rough = len(made.lines) - refused - len(told)
    beside = [
        f"{count:,} {what}"
        for count, what in ((rough, "known too roughly for a ratio"), (refused, "not compared"))
        if count
    ]
    more = f" Beside these {' and '.join(beside)}." if beside else ""
    return (
        f"{other} is {format_digits(middle)}× as fast as {base}{where} in the median of {what}:"
        f" {'; '.join(counts)}.{more}"
    )


def _counted(lines: Sequence[Compared]) -> str:
    counts = (
        (sum(line.ratio is not None and line.ratio.of == SAMPLES for line in lines), _WITHIN),
        (sum(bool(speed_ups.other_versions(line)) for line in lines), "with other versions"),
    )
    beside = "".join(
        f", {'all' if count == len(lines) else f'{count:,}'} of them {what}"
        for count, what in counts
        if count
    )
    return f"{len(lines):,}{beside}"


_WITHIN = "within single launches"


def _why(made: speed_ups.SpeedUps) -> str:
    refused = made.of(speed_ups.REFUSED)
    if len(refused) == len(made.lines):
        reasons = dict.fromkeys(line.refused for line in refused)
        return f"all {len(made.lines):,} are {safe('; '.join(reasons), 160)}"
    return "the intervals span more than a factor of 2"


def losers(ground: CommonGround) -> Sequence[str]:
    """Return the configurations in which the other is slower, the slowest first.

    Certain ones come first; if there are none, those of single results.
    """
    made = ground.made
    slower = made.of(speed_ups.SLOWER) or made.of(speed_ups.SLOWER_ALONE)
    more = [f"and {len(slower) - _NAMED:,} more"] if len(slower) > _NAMED else []
    # On several devices the same configuration comes once for each.
    places = {_place_words(line) for line in made.lines}
    return [*(_named(line, len(places) > 1) for line in slower[:_NAMED]), *more]


def _place_words(line: Compared) -> str:
    row, base = line.side.row, (line.baseline or line.side).row
    units = dict.fromkeys(text(one, "hardware") for one in (row, base))
    name = text(row, "device_name")
    known = [safe(one, 40) for one in (name, " against ".join(filter(None, units))) if one]
    return ", ".join(known)


def _named(line: Compared, with_place: bool) -> str:
    row, ratio = line.side.row, line.ratio
    assert ratio is not None
    batch = f"batch {row['batch_size']}" if row.get("batch_size") else ""
    place = _place_words(line) if with_place else ""
    parts = [safe(text(row, "precision"), 20), batch, place, _versions(line)]
    return (
        f"{safe(row.get('model'), 60)} ({', '.join(filter(None, parts))})"
        f" {format_digits(ratio.value)}×"
    )


def _versions(line: Compared) -> str:
    first, *more = speed_ups.other_versions(line) or [""]
    said = safe(first.removeprefix("engine ").removeprefix("packages."), 80)
    rest = f" and {len(more):,} more" if more else ""
    return f"≠ {said}{rest}" if said else ""

"""Queries of a snapshot: cells, choices of filters, intervals, task accuracy."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from accelbench.core.formatting import format_digits
from accelbench.core.result_statistics import Spread, Statistic
from accelbench.core.rows import Row, text
from accelbench.judge import accuracies
from accelbench.judge.filters import marks
from accelbench.judge.machines import chosen
from accelbench.judge.questions import SHAPES, flat
from accelbench.judge.ratios import COLUMNS as OF_AN_INTERVAL
from accelbench.judge.ratios import apart_from_median, interval_within
from accelbench.measure.launch_verdicts import interval_of, spread_of
from accelbench.present.dashboard.page_query import FACETS, PAGE, PageQuery
from accelbench.present.dashboard.snapshot import Snapshot

if TYPE_CHECKING:
    from accelbench.store.database import Database


#: Columns that are only read for intervals.
BEHIND = ("times", "means", "rates", *OF_AN_INTERVAL)
#: So many values of a facet have a box of their own in a form; the others are in a list.
MOST_CHOICES = 60


#: A row of the snapshot's table of cells, by column. `results`: ids of its launches. `times`,
#: `means` and `rates` have a value for each launch that counts. `apart` distinguishes it from
#: others with the same line.
Cell = dict[str, Any]


@dataclass(frozen=True)
class FilterChoice:
    """One value of a facet."""

    value: str
    text: str
    cells: int
    chosen: bool


@dataclass(frozen=True)
class CellPage:
    """One page of cells with the counts of all."""

    cells: Sequence[Cell]
    count: int
    models: int
    hardware: int
    kinds: Mapping[str, int]
    failed: int

    @property
    def pages(self) -> int:
        return max(1, -(-self.count // PAGE))


def found(snapshot: Snapshot, query: PageQuery, size: int = PAGE) -> CellPage:
    """Return a page of cells, and the counts of all that match."""
    where, values = query.where()
    counts = snapshot.ask(
        "SELECT kind, count(*) AS cells, count(*) FILTER (status <> 'ok') AS failed"  # noqa: S608
        f" FROM cell WHERE {where} GROUP BY 1 ORDER BY 2 DESC, 1",
        values,
    )
    (names,) = snapshot.ask(
        "SELECT count(DISTINCT model) AS models, count(DISTINCT hardware) AS hardware"  # noqa: S608
        f" FROM cell WHERE {where}",
        values,
    )
    return CellPage(
        page(snapshot, query, size) if size else [],
        sum(row["cells"] for row in counts),
        names["models"],
        names["hardware"],
        {str(row["kind"]): row["cells"] for row in counts},
        sum(row["failed"] for row in counts),
    )


def page(snapshot: Snapshot, query: PageQuery, size: int = PAGE) -> list[Cell]:
    """Return the cells of a page in the order of the query."""
    where, values = query.where()
    return told_apart(
        snapshot.whole(
            f"SELECT rowid AS place FROM cell WHERE {where}"  # noqa: S608
            f" ORDER BY {query.order} LIMIT {size} OFFSET {(query.page - 1) * size}",
            values,
            "* EXCLUDE (results, series)",
        )
    )


def every(snapshot: Snapshot, query: PageQuery) -> list[Cell]:
    """Return all cells of a query, for a file."""
    where, values = query.where()
    return snapshot.ask(
        f"SELECT * EXCLUDE (series, {', '.join(BEHIND)}) FROM cell"  # noqa: S608
        f" WHERE {where} ORDER BY {query.order}",
        values,
    )


def drawn(snapshot: Snapshot, query: PageQuery, most: int) -> list[Cell]:
    """Return cells with values, for charts: all, or those of the models that have the most."""
    where, values = query.where()
    drawable = (
        f"{where} AND status = 'ok'"
        " AND (coalesce(latency, throughput, tail) IS NOT NULL OR kind = 'emulated')"
    )
    return snapshot.whole(
        f"WITH each AS (SELECT model AS name, count(*) AS n FROM cell WHERE {drawable} GROUP BY 1),"  # noqa: S608
        " upto AS (SELECT name, n, sum(n) OVER (ORDER BY n DESC, lower(name), name) AS m FROM each)"
        f" SELECT rowid AS place FROM cell WHERE {drawable}"
        f" AND model IN (SELECT name FROM upto WHERE m <= {most} OR m = n)"
        f" ORDER BY {query.order} LIMIT {most}",
        [*values, *values],
    )


def largest_models(snapshot: Snapshot, query: PageQuery, most: int) -> list[tuple[str, int]]:
    """Return the models with the most cells, and their counts."""
    where, values = query.where()
    rows = snapshot.ask(
        f"SELECT model, count(*) AS cells FROM cell WHERE {where}"  # noqa: S608
        f" GROUP BY 1 ORDER BY 2 DESC, lower(model), model LIMIT {most}",
        values,
    )
    return [(str(row["model"]), row["cells"]) for row in rows]


def of_matrix(snapshot: Snapshot, query: PageQuery, most: int) -> list[Cell]:
    """Return the cells of a matrix, failures included."""
    where, values = query.where()
    return snapshot.ask(
        f"SELECT key, results FROM cell WHERE {where}"  # noqa: S608
        f" AND kind IN ('measured', 'imported', 'emulated') ORDER BY {query.order} LIMIT {most}",
        values,
    )


def newest_machine(snapshot: Snapshot) -> tuple[str, ...]:
    """Return the machine of the newest measured cell, which `accelbench matrix` chooses too."""
    rows = snapshot.ask(
        "SELECT machine, coalesce(max(moment)::VARCHAR, '') AS newest FROM cell"
        " WHERE machine IS NOT NULL AND kind IN ('measured', 'imported', 'emulated') GROUP BY 1"
    )
    newest = {snapshot.machines[str(row["machine"])]: str(row["newest"]) for row in rows}
    return (chosen(newest, None).id,) if newest else ()


def named(snapshot: Snapshot, keys: Sequence[str]) -> list[Cell]:
    """Return cells by their keys, in that order; ignore unknown keys."""
    if not keys:
        return []
    of_them = "SELECT rowid AS place FROM cell WHERE key IN (SELECT unnest(?::VARCHAR[]))"
    rows = snapshot.whole(of_them, [list(keys)])
    # Sorted here: in the store that takes a fifth of a second of a million results.
    by_key: dict[str, Cell] = {
        row["key"]: {**row, "results": sorted(row["results"])} for row in rows
    }
    return told_apart([by_key[key] for key in dict.fromkeys(keys) if key in by_key])


def choices(snapshot: Snapshot, query: PageQuery) -> dict[str, list[FilterChoice]]:
    """Return every value of each facet with the number of cells that it would leave.

    Of more than MOST_CHOICES, chosen ones are first, and those that would leave nothing last.
    """
    offered = {}
    counts_of = _counts(snapshot, query)
    for name in FACETS:
        counts = counts_of[name]
        chosen = query.chosen.get(name, ())
        options = sorted(
            snapshot.known[name], key=lambda option: (option not in chosen, not counts.get(option))
        )
        offered[name] = [
            FilterChoice(
                option, _text(snapshot, name, option), counts.get(option, 0), option in chosen
            )
            for option in (options if len(options) > MOST_CHOICES else snapshot.known[name])
        ]
    return offered


def _counts(snapshot: Snapshot, query: PageQuery) -> dict[str, dict[str, int]]:
    """Return the number of cells that each value of each facet would leave.

    Facets without a choice have the same filter and are counted in one pass.
    """
    passes = [[name] for name in query.chosen]
    passes.append([name for name in FACETS if name not in query.chosen])
    counts: dict[str, dict[str, int]] = {name: {} for name in FACETS}
    for names in filter(None, passes):
        where, values = query.where(but=names[0])
        columns = [FACETS[name] for name in names]
        which = " ".join(
            f"WHEN GROUPING({column}) = 0 THEN {n}" for n, column in enumerate(columns)
        )
        rows = snapshot.ask(
            f"SELECT CASE {which} END AS facet, coalesce({', '.join(columns)}) AS value,"  # noqa: S608
            f" count(*) AS cells FROM cell WHERE {where}"
            f" GROUP BY GROUPING SETS ({', '.join(f'({column})' for column in columns)})",
            values,
        )
        for row in rows:
            if row["value"] is not None:
                counts[names[row["facet"]]][str(row["value"])] = row["cells"]
    return counts


def beside(snapshot: Snapshot, cell: Cell, most: int = 24) -> list[Cell]:
    """Return other cells of the same model, the same batch on other hardware first."""
    rows = snapshot.ask(
        "SELECT * EXCLUDE (results, series) FROM cell WHERE model = ? AND key <> ?"
        " ORDER BY (batch_size IS NOT DISTINCT FROM ?) DESC, (mode = ?) DESC, hardware, runtime,"
        " precision, batch_size, key LIMIT ?",
        [cell["model"], cell["key"], cell["batch_size"], cell["mode"], most],
    )
    return told_apart(rows)


#: Columns that a line of a table shows.
_TOLD = (
    *("model", "kind", "mode", "hardware", "device_name", "machine", "runtime", "precision"),
    *("batch_size", *SHAPES, "world_size"),
)
#: Columns that may distinguish two equal lines, next to options and versions.
_APART = ("compiled", "threads", "scenario", "weights", "data_source", "optimizer")


def told_apart(rows: list[Cell], told: Sequence[str] = _TOLD) -> list[Cell]:
    """Set `apart` of each row: what distinguishes it from rows with the same line."""
    alike: dict[tuple[str, ...], list[Cell]] = {}
    for row in rows:
        alike.setdefault(tuple(str(row.get(name)) for name in told), []).append(row)
    for several in alike.values():
        traits = [_traits(row, told) for row in several] if len(several) > 1 else [{}]
        names = dict.fromkeys(name for cell_traits in traits for name in cell_traits)
        differ = [
            name for name in names if len({cell_traits.get(name) for cell_traits in traits}) > 1
        ]
        for row, own_traits in zip(several, traits, strict=True):
            row["apart"] = ", ".join(
                _said(name, own_traits[name]) for name in differ if name in own_traits
            )
    return rows


def _traits(row: Cell, told: Sequence[str]) -> dict[str, str]:
    names = (name for name in _APART if name not in told)
    traits = {name: str(row.get(name)) for name in names if row.get(name) is not None}
    traits |= flat(row.get("options") or {})
    return traits | flat(json.loads(row.get("versions") or "{}"))


def _said(name: str, value: str) -> str:
    if name == "compiled":
        return "compiled" if value == "True" else "not compiled"
    return f"{name.rpartition('.')[2].replace('_', ' ')} {value}"


def _text(snapshot: Snapshot, name: str, value: str) -> str:
    if name == "machine" and value in snapshot.machines:
        return str(snapshot.machines[value])
    return value.replace("_", " ")


_BASE = "fp32"
_WHERE = "model = ? AND runtime = ? AND hardware = ? AND precision IN (?, ?) AND provenance = ?"


@dataclass(frozen=True)
class CellAccuracy:
    """The newest task accuracy of a cell's model, engine and precision."""

    known: accuracies.TaskAccuracy
    cost: str = ""  # the difference to fp32 as a sentence, if it is known
    run_id: str = ""  # the run that measured it, if it is not the cell's own
    other_weights: bool = False  # whether its weights differ from those of the cell's launches


def cell_accuracy(
    database: Database, snapshot: Snapshot, cell: Cell, rows: Sequence[Row]
) -> CellAccuracy | None:
    """Return the accuracy of a cell, preferably of its own launches; None if there is none."""
    if not rows:
        return None
    first = rows[0]
    runs = [run for run, machine in snapshot.ran.items() if machine == cell["machine"]]
    asked = [text(first, name) for name in ("model", "runtime", "hardware", "precision")]
    own = {text(row, "result_id") for row in rows}
    # If the machine is unknown, only its own launches are certainly of the same one.
    column, among = ("run_id", runs) if runs else ("result_id", sorted(own))
    where = f"{_WHERE} AND {column} IN ({marks(among)})"
    values = [*asked, _BASE, text(first, "provenance"), *among]
    places = accuracies.accuracies_in(database, where, values, "")
    place = accuracies.place_of(first, "")
    of_place = sorted(places.get(place, ()), key=lambda row: text(row, "result_id") not in own)
    if not of_place:
        return None
    chosen = of_place[0]
    known = accuracies.accuracy_of(chosen)
    assert known is not None  # else it were not among them
    base = accuracies.like_for_like(chosen, places.get(place.as_fp32(), ()))
    cost = None
    if base is not None and place.precision != _BASE:
        cost = accuracies.accuracy_against([chosen], [base])
    run = text(chosen, "run_id")
    return CellAccuracy(
        known,
        accuracies.cost_sentence(place.precision, _BASE, cost) if cost is not None else "",
        "" if run in {text(row, "run_id") for row in rows} else run,
        chosen.get("weights_digest") not in {row.get("weights_digest") for row in rows},
    )


@dataclass(frozen=True)
class LaunchInterval:
    """The interval of a value."""

    middle: float  # the value
    spread: Spread  # the ends that are shown
    sure: tuple[float, float]  # the 95 % interval, which comparisons use

    @property
    def text(self) -> str:
        """The ends next to the figure: ±2.1%."""
        return self.spread.text(self.middle, format_digits)

    @property
    def ends(self) -> str:
        """The ends in a sentence: 95 % interval 7.90 to 8.12, of 5 launches."""
        return self.spread.sentence(format_digits)

    def is_apart_from(self, other: LaunchInterval) -> bool:
        """Return whether the two intervals have nothing in common."""
        return self.sure[1] < other.sure[0] or other.sure[1] < self.sure[0]


def interval(cell: Cell, figure: str) -> LaunchInterval | None:
    """Return the interval of a cell's latency, throughput or cost; None if it is not known.

    A latency has the interval of its launches' latencies, a rate that of their rates. The cost of a
    million items has that of the rate.
    """
    if figure == "latency":
        return _of_latency(cell)
    rate = _of_rate(cell)
    if figure == "throughput" or rate is None:
        return rate if figure == "throughput" else None
    cost = cell.get("cost_per_million")
    return None if figure != "cost" or not cost else _inverse(rate, cost * rate.middle)


def latency_note(cell: Cell) -> str:
    """Return what stands next to a latency: that it is a mean, or the mean where that differs."""
    if cell.get("latency_of") == Statistic.MEAN:
        return str(Statistic.MEAN)
    medians, means = cell.get("times") or [], cell.get("means") or []
    if not medians or len(medians) != len(means):
        return ""
    mean = apart_from_median(medians, means, cell)
    return "" if mean is None else f"{Statistic.MEAN} {format_digits(mean)}"


def _of_latency(cell: Cell) -> LaunchInterval | None:
    middle = cell.get("latency")
    if not middle:
        return None
    within = None
    if cell.get("launches") == 1:
        within = interval_within(cell, Statistic(cell.get("latency_of") or Statistic.MEDIAN))
    return _made(middle, cell.get("times") or [], within)


def _of_rate(cell: Cell) -> LaunchInterval | None:
    rate, rates = cell.get("throughput"), cell.get("rates") or []
    if not rate:
        return None
    mean = cell.get("latency_mean_ms")
    within = interval_within(cell, Statistic.MEAN) if cell.get("launches") == 1 and mean else None
    if within is not None and within[0] > 0.0 and mean:
        within = rate * mean / within[1], rate * mean / within[0]
    return _made(rate, rates, within)


def _made(
    middle: float, each: Sequence[float], within: tuple[float, float] | None
) -> LaunchInterval | None:
    sure = interval_of(each) if len(each) > 1 else within
    spread = spread_of(each, within)
    if spread is None or sure is None or sure[0] <= 0.0:
        return None
    return LaunchInterval(middle, spread, sure)


def _inverse(known: LaunchInterval, product: float) -> LaunchInterval:
    low, high = (
        None if end is None else product / end for end in (known.spread.high, known.spread.low)
    )
    spread = Spread(low, high, known.spread.kind, known.spread.count)
    return LaunchInterval(
        product / known.middle, spread, (product / known.sure[1], product / known.sure[0])
    )

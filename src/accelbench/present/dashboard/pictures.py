"""Charts of the configurations that an address asks for, each drawn once."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Sequence
from concurrent.futures import Future, wait
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from accelbench.core.errors import UsageError
from accelbench.core.rows import Row
from accelbench.exchange.prices import Prices
from accelbench.judge.costs import with_costs
from accelbench.judge.machine_matrix import LocalPlatforms
from accelbench.judge.points import points
from accelbench.present.chart_data import collectives_of, matrix_of, roofs_of
from accelbench.present.charts import CHARTS
from accelbench.present.charts.chart import Chart, Picture, Subject, picture
from accelbench.present.charts.palette import DARK, LIGHT, Look, repainted
from accelbench.present.charts.spread import MOST_LAUNCHES
from accelbench.present.dashboard import cells, details
from accelbench.present.dashboard.cells import Cell
from accelbench.present.dashboard.history_changes import (
    ChangesKeeper,
    JudgedLines,
    LineKey,
    line_key,
)
from accelbench.present.dashboard.page_query import PageQuery
from accelbench.present.dashboard.snapshot import Snapshot
from accelbench.store.body_to_row import step_samples
from accelbench.store.database import Database

if TYPE_CHECKING:
    from accelbench.judge.history import Series


T = TypeVar("T")
_MOST = 192


class KeptValues:
    """Values by key, of which each is made by one thread while others wait for it."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Hashable, Future[Any]] = OrderedDict()
        self._lock = threading.Lock()

    def once(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return the value of a key, made now if there is none. A failure is not kept."""
        future, is_new = self._future(key)
        if is_new:
            self._make(key, future, make)
        value: T = future.result()
        return value

    def soon(self, key: Hashable, make: Callable[[], T], patience: float) -> T | None:
        """Return the value of a key, made in a thread, or None after `patience` seconds."""
        future, is_new = self._future(key)
        if is_new:
            # Not a daemon: an interpreter that ends under a reader of DuckDB aborts.
            threading.Thread(target=self._make, args=(key, future, make)).start()
        return future.result() if wait([future], patience).done else None

    def _future(self, key: Hashable) -> tuple[Future[Any], bool]:
        with self._lock:
            is_new = key not in self._kept
            future = self._kept.setdefault(key, Future())
            self._kept.move_to_end(key)
            while len(self._kept) > _MOST:
                self._kept.popitem(last=False)
        return future, is_new

    def _make(self, key: Hashable, future: Future[Any], make: Callable[[], object]) -> None:
        try:
            future.set_result(make())
        except BaseException as error:
            with self._lock:
                self._kept.pop(key, None)
            future.set_exception(error)


#: Series whose history is drawn.
MOST_SERIES = 12
#: Points of all series of a picture together.
_MOST_POINTS = 3000
#: Points from which on it is worth while to judge every line, so that the next picture reads few.
_MANY_POINTS = 4 * _MOST_POINTS
_LATENCY = "latency"


def trend_lines(
    database: Database, snapshot: Snapshot, chosen: Sequence[Cell], changes: ChangesKeeper
) -> list[Series]:
    """Return the series that a trend draws: those in which most changed.

    To read and judge 48 lines of 2,000 runs takes 0.9 s of a processor, so lines that were judged
    for the page of histories are not read again.
    """
    several = chosen[: 4 * MOST_SERIES]
    known = changes.known(snapshot, _LATENCY)
    if known is not None:
        return drawn_lines(database, snapshot, several, known)
    series = details.history_of(database, snapshot, several, details.BY_METRIC[_LATENCY])
    if sum(len(one.points) for one in series) > _MANY_POINTS:
        changes.of(snapshot, _LATENCY, 0.0)
    return _few((one, len(one.points)) for one in series)


def drawn_lines(
    database: Database, snapshot: Snapshot, cells: Sequence[Cell], judged: JudgedLines
) -> list[Series]:
    """Return the same by known judgements: only drawn lines and those not judged are read."""
    metric = details.BY_METRIC[_LATENCY]
    keys = list(dict.fromkeys(line_key(cell) for cell in cells if cell.get("series_key")))
    unknown = _of(cells, {key for key in keys if key not in judged.ranks})
    read = {
        line_key(one.row): one for one in details.history_of(database, snapshot, unknown, metric)
    }
    lines: list[tuple[tuple[bool, float], LineKey, int]] = []
    for key in keys:
        if key in read:
            lines.append((details.foremost(read[key]), key, len(read[key].points)))
        elif (rank := judged.ranks.get(key)) is not None:
            lines.append((rank.place, key, rank.points))
    lines.sort(key=lambda line: line[0])
    few = _few((key, points) for _, key, points in lines)
    more = _of(cells, {key for key in few if key not in read})
    read |= {line_key(one.row): one for one in details.history_of(database, snapshot, more, metric)}
    return [read[key] for key in few if key in read]


def _of(cells: Sequence[Cell], keys: set[LineKey]) -> list[Cell]:
    return [cell for cell in cells if cell.get("series_key") and line_key(cell) in keys]


def _few(lines: Iterable[tuple[T, int]]) -> list[T]:
    # A picture of ten thousand points has megabytes and shows nothing.
    room = _MOST_POINTS
    selection: list[T] = []
    for line, count in lines:
        room -= count
        if len(selection) == MOST_SERIES or (selection and room < 0):
            break
        selection.append(line)
    return selection


#: Configurations of a picture; the page shows how many are left out.
MOST_CELLS = 240
#: On light paper, as wide as it is passed on.
_AS_STORED = Look()


class Pictures:
    """The pictures of a store, by snapshot and address."""

    def __init__(
        self,
        database: Database,
        local: LocalPlatforms,
        changes: ChangesKeeper,
        kept: KeptValues,
        prices: Prices | None = None,
    ) -> None:
        self._database, self._local, self._prices = database, local, prices
        self._changes, self._kept = changes, kept
        #: One picture at a time: each takes a whole processor.
        self._drawing = threading.Lock()

    def of(self, snapshot: Snapshot, chart: Chart, page_query: PageQuery) -> Picture | None:
        """Return a chart of the configurations asked for, or None if it has nothing to show."""
        key = ("picture", snapshot.at, chart.name, page_query.query(order=False))
        return self._kept.once(
            key, lambda: picture(chart, self._subject(snapshot, chart, page_query))
        )

    def subject(self, snapshot: Snapshot, page_query: PageQuery) -> Subject:
        """Return the data that all charts of the configurations asked for share."""
        return self._once_common(snapshot, page_query)[2]

    def file(
        self, snapshot: Snapshot, chart: Chart, page_query: PageQuery, form: str, look: Look
    ) -> bytes | None:
        """Return a chart as a file (svg, png or html), or None if it has nothing to show."""

        def make() -> bytes | None:
            if form == "svg" and look.theme == DARK:
                # A bundle shows both themes, so the light one is drawn anyway.
                on_light = replace(look, theme=LIGHT)
                light = self.file(snapshot, chart, page_query, form, on_light)
                dark = None if light is None else repainted(light.decode())
                if light is None or dark is not None:
                    return None if dark is None else dark.encode()
            return self.drawn(self.of(snapshot, chart, page_query), form, look)

        key = (form, look, snapshot.at, chart.name, page_query.query(order=False))
        return self._kept.once(key, make)

    def _subject(self, snapshot: Snapshot, chart: Chart, page_query: PageQuery) -> Subject:
        # With a million results each question is slow: what one chart needs is read only for it.
        chosen, rows, common = self._once_common(snapshot, page_query)
        if chart.name == "trend":
            series = trend_lines(self._database, snapshot, chosen, self._changes)
            return replace(common, series=series)
        if chart.name == "latency-distribution":
            timed = [str(row["result_id"]) for p in common.points if p.timed for row in p.rows]
            return replace(common, samples=step_samples(self._database, timed[:MOST_LAUNCHES]))
        if chart.name == "roofline":
            return replace(common, roofs=roofs_of(self._database, rows))
        if chart.name == "collectives" and common.machine:
            timed_there = collectives_of(self._database, common.machine, rows)
            return replace(common, collectives=timed_there)
        if chart.name == "compatibility" and len({cell["machine"] for cell in chosen}) == 1:
            machine = snapshot.machines.get(str(chosen[0]["machine"]))
            return replace(common, matrix=matrix_of(rows, machine, self._local))
        return common

    def _once_common(
        self, snapshot: Snapshot, page_query: PageQuery
    ) -> tuple[Sequence[Cell], Sequence[Row], Subject]:
        key = ("common", snapshot.at, page_query.query(order=False))
        return self._kept.once(key, lambda: self._common(snapshot, page_query))

    def _common(
        self, snapshot: Snapshot, page_query: PageQuery
    ) -> tuple[Sequence[Cell], Sequence[Row], Subject]:
        if page_query.cells:
            chosen = cells.named(snapshot, page_query.cells)
        else:
            chosen = cells.drawn(snapshot, page_query, MOST_CELLS)
        ids = [str(key) for cell in chosen for key in cell["results"]]
        read = details.launches_in(self._database, ids)
        ran = {str(cell["run_id"]): str(cell["machine"]) for cell in chosen}
        several = len({cell["machine"] for cell in chosen}) > 1
        known = {run: snapshot.machines[m] for run, m in ran.items() if m in snapshot.machines}
        machines = {run: str(known.get(run, "")) for run in ran}
        rows = with_costs(read, self._prices, known)
        chart_points = points(rows, machines if several else {})
        here = "" if several else next(iter(machines.values()), "")
        return chosen, rows, Subject(chart_points, machine=here, rows=rows, prices=self._prices)

    def drawn(self, made: Picture | None, form: str, look: Look = _AS_STORED) -> bytes | None:
        """Return a picture as a file: svg, png or html."""
        from accelbench.present.charts import draw

        if made is None:
            return None
        with self._drawing:
            if form == "png":
                return draw.png(look.of(made.spec))
            return (draw.svg(look.of(made.spec)) if form == "svg" else draw.page(made)).encode()


def chart_of(name: str) -> Chart:
    """Return a chart by its name."""
    if name not in CHARTS:
        raise UsageError("There is no such chart.", f"Charts: {', '.join(CHARTS)}.")
    return CHARTS[name]

"""Cells out of a store: one query a model or family, kept until the store has changed.

A query groups launches into cells and takes the newest run of each alone, so that what reaches
Python is as small as what is asked.
"""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from heapq import nsmallest
from typing import TYPE_CHECKING, Any

from accelbench.analysis.judging import METRICS
from accelbench.analysis.matrix import NEAR_BEST
from accelbench.core.columns import ASKED
from accelbench.core.provenance import COMPARABLE_SQL
from accelbench.core.reasons import Belongs, belongs
from accelbench.select.evidence import SHAPES, Cell, Known, Place, Tried
from accelbench.select.figures import FEWEST_FITTED
from accelbench.select.names import plain_name
from accelbench.store.fit import spell_time

if TYPE_CHECKING:
    from accelbench.store.database import Database

_log = logging.getLogger("hardware_selector")
_FIGURES = {metric.name: metric.sql for metric in METRICS}
_LAUNCHES = ("latencies", "rates")
#: Results of which all cells may be held in memory at once.
_MOST_HELD = 1_000_000
#: Models that an estimate may be from: the more, the longer it takes.
_MOST_LIKE = 200
#: What is the middle of a cell's launches.
_MIDDLES = (
    *("memory_peak_mb", "ttft_ms", "tpot_ms", "tokens_per_second", "power_watts", "flops"),
    *("convergence", "parameters"),
)
_SAID = (*ASKED, "family", "throughput_unit", "device_fingerprint", "verification", "provenance")
_COLUMNS = tuple(dict.fromkeys((
    *_SAID, *_MIDDLES, "verification_error", "run_id", "series_key", "conditions", "status",
    "started_at", "launch", "result_id", "throughput", "latency_p50_ms", "latency_mean_ms",
    "batch_size", "emulated",
)))  # fmt: skip
#: Of an import, which may be of years in one run, a day is a run. The newest attempt counts, also
#: where it failed: what worked before it is history.
_CELLS = """
WITH tried AS (
    SELECT {columns}, {latency} AS latency, {rate} AS rate,
        coalesce(series_key, concat_ws(chr(31), {asked})) AS series,
        CASE WHEN provenance = 'imported' THEN json_merge_patch(coalesce(conditions, '{{}}'),
            '{{"source": null, "said": {{"file": null, "job_id": null}}, "kin": null}}')::VARCHAR
            ELSE '' END AS versions,
        conditions->>'kin' AS kin,
        coalesce(run_id, '') || CASE WHEN starts_with(run_id, 'import-')
            THEN coalesce(started_at::DATE::VARCHAR, '') ELSE '' END AS run
    FROM benchmark_results
    WHERE {counts} AND NOT coalesce(emulated, false) AND status <> 'skipped' AND {where}
), newest AS (
    SELECT series, versions, arg_max(run, (coalesce(started_at, 'epoch'::TIMESTAMP), run)) AS run
    FROM tried GROUP BY ALL
)
SELECT {said}, {middles}, max(verification_error) AS verification_error, versions,
    any_value(kin) AS kin, max(run_id) AS run_id, max(started_at) AS moment,
    list(latency ORDER BY started_at, launch, result_id) AS latencies,
    list(rate ORDER BY started_at, launch, result_id) AS rates
FROM tried JOIN newest USING (series, versions, run)
WHERE status = 'ok' AND coalesce(verification, '') <> 'failed' AND latency > 0
GROUP BY series, versions
"""
#: A throughput beside the CPU's, over what both answered: the matrix's own rule, in one query.
_TRIED = """
WITH tried AS (
    SELECT coalesce(family, '') AS family, hardware, mode, model, status, reason, run_id,
        coalesce(verification, '') AS verification, {rate} AS rate,
        concat_ws(chr(31), {question}) AS question
    FROM benchmark_results
    WHERE {counts} AND NOT coalesce(emulated, false) AND status <> 'skipped' AND model IS NOT NULL
), whole AS (
    SELECT family, hardware, mode, count(DISTINCT model) AS models,
        count(DISTINCT model) FILTER (status = 'ok' AND verification <> 'failed') AS through,
        list(DISTINCT reason ORDER BY reason) FILTER (status <> 'ok') AS reasons
    FROM tried GROUP BY ALL
), fastest AS (
    SELECT family, mode, hardware, question, max(rate) AS rate FROM tried
    WHERE status = 'ok' AND verification <> 'failed' AND rate > 0 GROUP BY ALL
), beside AS (
    SELECT a.family, a.mode, a.hardware, b.hardware AS other,
        exp(avg(ln(a.rate / b.rate))) AS speed
    FROM fastest a JOIN fastest b USING (family, mode, question)
    WHERE a.hardware <> b.hardware GROUP BY ALL
)
SELECT whole.*, max(speed) FILTER (other = 'cpu') AS speed, coalesce(min(speed), 0) AS least
FROM whole LEFT JOIN beside USING (family, mode, hardware)
GROUP BY ALL ORDER BY family, hardware, mode
"""
_QUESTION = ("model", "precision", "batch_size", *SHAPES, "scenario", "world_size")
_FACTS = """
SELECT model, max(family), max(parameters), max(flops / batch_size), max(conditions->>'kin'),
    list(DISTINCT hardware)
FROM benchmark_results WHERE {where} GROUP BY model ORDER BY model
"""


class Store:
    """A database or a lake's mirror, asked for what choosing needs.

    The first model that is asked about is read alone, which is all that a command line wants.
    Whoever asks about a second one will ask about more: everything is read then, once. Both give
    the same.
    """

    def __init__(self, database: Database) -> None:
        self.database = database
        self._seen: Any = None
        self._kept: dict[Any, Any] = {}
        self._asked: set[tuple[str, ...]] = set()
        self._answering: ExitStack | None = None

    @contextmanager
    def answering(self) -> Iterator[None]:
        """Open the store once for all that an answer has to read, and not at all for nothing."""
        with ExitStack() as stack:
            self._answering = stack
            try:
                yield
            finally:
                self._answering = None

    def _query(
        self, sql: str, values: Sequence[Any] = ()
    ) -> tuple[list[str], list[tuple[Any, ...]]]:
        if self._answering is not None:  # opened again it is the same connection
            self._answering.enter_context(self.database.asking())
        return self.database.query(sql, values)

    def cells(self, models: Sequence[str]) -> list[Cell]:
        """The cells of a model by its names, the same order every time."""
        self._asked.add(tuple(models))
        if len(self._asked) > 1 and self._few():
            by_model = self._by_model()
            found = [cell for name in models for cell in by_model.get(name, ())]
            return sorted(found, key=lambda one: one.order)
        return self._read(f"model IN ({_marks(models)})", models)

    def peers(self, place: Place, known: Known) -> list[Cell]:
        """The best answers at a place of the models that are most like one, by batch."""
        names = self._like(place, known)
        if not names:
            return []
        if len(self._asked) > 1 and self._few():
            by_model = self._by_model()
            found = [cell for name in names for cell in by_model.get(name, ())]
        else:
            found = self._read(
                f"hardware = ? AND model IN ({_marks(names)})", (place.hardware, *names)
            )
        return place.best_of_each(found)

    def _like(self, place: Place, known: Known) -> list[str]:
        """The models of a family with a result at a place that have about as much work to do.

        Where too few say that, it is about as many weights.
        """
        there = [
            (name, said)
            for name, said in self.models().items()
            if said["family"] == place.family and place.hardware in said["hardware"]
        ]
        for column, amount in (("flops", known.flops), ("parameters", known.parameters)):
            told = [(said[column], name) for name, said in there if amount and said[column]]
            apart = ((abs(math.log(one / amount)), name) for one, name in told if amount)
            if len(told) >= FEWEST_FITTED:
                return [name for _, name in nsmallest(_MOST_LIKE, apart)]
        return [name for name, _ in there][:_MOST_LIKE]

    def _few(self) -> bool:
        """Whether all of it may be held in memory."""

        def counted() -> int:
            _, ((count,),) = self._query("SELECT count(*) FROM benchmark_results")
            return int(count)

        return bool(self._once("count", counted) <= _MOST_HELD)

    def _by_model(self) -> dict[str, list[Cell]]:
        def made() -> dict[str, list[Cell]]:
            found: dict[str, list[Cell]] = {}
            for cell in self._cells("true", ()):
                found.setdefault(cell.model, []).append(cell)
            return found

        by_model: dict[str, list[Cell]] = self._once("by model", made)
        return by_model

    def tried(self) -> list[Tried]:
        """What became of each family on each platform, in each mode."""
        found: list[Tried] = self._once("tried", self._tried)
        return found

    def models(self) -> dict[str, dict[str, Any]]:
        """Every stored model with its family, weights, operations an item, and kind."""
        found: dict[str, dict[str, Any]] = self._once("models", self._models)
        return found

    def named(self) -> dict[str, str]:
        """The stored models by their names as `plain_name` leaves them."""

        def made() -> dict[str, str]:
            return {plain_name(model): model for model in sorted(self.models(), reverse=True)}

        found: dict[str, str] = self._once("named", made)
        return found

    def devices(self) -> dict[str, list[str]]:
        """Of each platform, the devices with a result that counts."""
        found: dict[str, list[str]] = self._once("devices", self._devices)
        return found

    def _once(self, key: Any, made: Any) -> Any:
        """What was asked before, unless the store has changed since."""
        now = self._looks()
        if now != self._seen:
            self._kept, self._seen = {}, now
        if key not in self._kept:
            self._kept[key] = made()
        return self._kept[key]

    def _looks(self) -> list[tuple[int, int]]:
        """What can be seen of the file, and of what waits to become part of it, from outside."""
        path = self.database.path
        files = (path, path.with_name(f"{path.name}.wal"))
        stats = [file.stat() for file in files if file.exists()]
        return [(one.st_size, one.st_mtime_ns) for one in stats]

    def _there(self) -> set[str]:
        def read() -> set[str]:
            _, rows = self._query("DESCRIBE benchmark_results")
            return {str(row[0]) for row in rows}

        found: set[str] = self._once("columns", read)
        return found

    def _read(self, where: str, values: Sequence[Any]) -> list[Cell]:
        found: list[Cell] = self._once((where, *values), lambda: self._cells(where, values))
        return found

    def _cells(self, where: str, values: Sequence[Any]) -> list[Cell]:
        there = self._there()
        sql = _CELLS.format(
            columns=", ".join(
                f'"{name}"' if name in there else f'NULL AS "{name}"' for name in _COLUMNS
            ),
            latency=_FIGURES["latency"],
            rate=_FIGURES["throughput"],
            asked=", ".join(f"coalesce({name}::VARCHAR, '')" for name in ASKED if name in there),
            counts=COMPARABLE_SQL,
            where=where,
            said=", ".join(f'any_value("{name}") AS "{name}"' for name in _SAID),
            middles=", ".join(f'median("{name}") AS "{name}"' for name in _MIDDLES),
        )
        names, rows = self._query(sql, list(values))
        found = [_cell(dict(zip(names, row, strict=True))) for row in rows]
        _log.debug("%d cells where %s: %s", len(found), where, list(values))
        return sorted(found, key=lambda one: one.order)

    def _tried(self) -> list[Tried]:
        there = self._there()
        sql = _TRIED.format(
            rate=_FIGURES["throughput"],
            question=", ".join(
                f"coalesce({name}::VARCHAR, '')" for name in _QUESTION if name in there
            ),
            counts=COMPARABLE_SQL,
        )
        names, rows = self._query(sql)
        return [_tried(dict(zip(names, row, strict=True))) for row in rows]

    def _models(self) -> dict[str, dict[str, Any]]:
        where = f"{COMPARABLE_SQL} AND model IS NOT NULL AND status = 'ok'"
        _, rows = self._query(_FACTS.format(where=where))
        names = ("family", "parameters", "flops", "kin", "hardware")
        return {str(row[0]): dict(zip(names, row[1:], strict=True)) for row in rows}

    def _devices(self) -> dict[str, list[str]]:
        _, rows = self._query(
            "SELECT DISTINCT hardware, device_name FROM benchmark_results"  # noqa: S608 — our words
            f" WHERE {COMPARABLE_SQL} AND status = 'ok' AND hardware IS NOT NULL"
            " AND NOT coalesce(emulated, false) ORDER BY ALL"
        )
        found: dict[str, list[str]] = {}
        for hardware, device in rows:
            names = found.setdefault(str(hardware), [])
            if device is not None:
                names.append(str(device))
        return found


def _marks(values: Sequence[Any]) -> str:
    return ", ".join("?" * len(values))


def _cell(row: dict[str, Any]) -> Cell:
    latencies, rates = (tuple(v for v in row.pop(name) if v) for name in _LAUNCHES)
    row["moment"] = spell_time(row["moment"]) if row["moment"] else None
    return Cell(row, latencies, rates)


def _tried(row: Mapping[str, Any]) -> Tried:
    reasons: Sequence[str] = [one for one in row["reasons"] or () if one]
    refused = [one for one in reasons if belongs(one) is Belongs.CELL]
    return Tried(
        family=row["family"],
        hardware=row["hardware"],
        mode=row["mode"] or "",
        models=row["models"],
        through=row["through"],
        refused=len(refused),
        speed=row["speed"],
        best=bool(row["least"]) and row["least"] >= NEAR_BEST,
        reason=json.dumps(refused)[1:-1].replace('"', "") if refused else "",
    )

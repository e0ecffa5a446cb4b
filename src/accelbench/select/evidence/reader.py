"""Cells out of a store: one query a model or family, kept until the store has changed.

The best answers of models at a place, each worked out once however many are like it.

A ranking of 1,300 models asks at eight platforms what the two hundred models most like each came
to there. Looked for anew among all of their cells that took two thirds of a minute.

What a selector is made of besides its store: a configuration, and pages with a matrix.
"""

from __future__ import annotations

import logging
import math
from bisect import bisect_left
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from heapq import nsmallest
from os import PathLike
from typing import TYPE_CHECKING, TypeVar, cast

from accelbench.analysis.machines import Machine, chosen, machines_of
from accelbench.analysis.run_noise import Histories
from accelbench.core.rows import number
from accelbench.core.vocabulary import Provenance
from accelbench.query.filters import marks
from accelbench.query.histories import histories_of
from accelbench.select.evidence import sql as queries
from accelbench.select.evidence.cells import (
    FEWEST_FITTED,
    EvidenceAttempt,
    EvidenceCell,
    EvidencePlace,
    ModelKnowledge,
    Tried,
)
from accelbench.select.evidence.failures import Failure
from accelbench.select.evidence.sql import Rates
from accelbench.select.query import validation
from accelbench.select.query.config import Config, defaults, over_defaults, read
from accelbench.select.query.model_size import plain_name
from accelbench.select.query.query import StoredModel

if TYPE_CHECKING:
    from accelbench.store.database import Database


#: A size, and the name of what has it.
Sized = tuple[float, str]
#: The cells of one model by platform and mode.
_ByWay = dict[tuple[str, str], list[EvidenceCell]]


class PeerAnswers:
    """What models came to, for as long as a store stays as it is.

    Args:
        cells_of: the cells of a model that anything may be chosen by.
    """

    def __init__(self, cells_of: Callable[[str], Iterable[EvidenceCell]]) -> None:
        self._cells_of = cells_of
        self._ways: dict[str, _ByWay] = {}
        self._best: dict[EvidencePlace, dict[str, list[EvidenceCell]]] = {}

    def of(self, models: Sequence[str], place: EvidencePlace) -> list[EvidenceCell]:
        """The best answer of each model to each question that was asked there, by batch."""
        asked = replace(place, family="", precisions=tuple(place.precisions))
        there, way = self._best.setdefault(asked, {}), (place.hardware, place.mode)
        for model in models:
            if model not in there:
                there[model] = place.best_of_each(self._by_way(model).get(way, ()))
        found = [cell for model in models for cell in there[model]]
        return sorted(found, key=lambda cell: (cell.batch, cell.order))

    def _by_way(self, model: str) -> _ByWay:
        if model not in self._ways:
            ways: _ByWay = {}
            for cell in self._cells_of(model):
                ways.setdefault((cell.hardware, cell.mode), []).append(cell)
            self._ways[model] = ways
        return self._ways[model]


def nearest_names(ordered: Sequence[Sized], size: float, most: int) -> list[str]:
    """The names whose sizes are nearest to one, the nearest first, of equals by name.

    Args:
        ordered: all of them, in their order.
        size: what they are to be near.
        most: how many.
    """
    middle = bisect_left(ordered, (size, ""))
    first = max(0, middle - most)
    if first:  # of one size those of the first names count
        first = bisect_left(ordered, (ordered[first][0], ""))
    near = ordered[first : middle + most]
    return [name for _, name in nsmallest(most, ((abs(one - size), name) for one, name in near))]


_log = logging.getLogger("hardware_selector")
Attempt = TypeVar("Attempt", bound=EvidenceAttempt)
Kept = TypeVar("Kept")
#: By family and platform, and by what is known of them: its logarithm, and a model's name.
Places = dict[tuple[str | None, str], dict[str, list[tuple[float, str]]]]
#: Results of which all cells may be held in memory at once.
_MOST_HELD = 1_000_000
#: Platforms whose devices are units of several kinds.
_OF_UNITS = frozenset({"openvino"})
#: Models that are read one by one before all are.
_SINGLY = 8
#: Models that an estimate may be from: the more, the longer it takes.
_MOST_LIKE = 200


class EvidenceStore:
    """A database or a lake's mirror, asked for what choosing needs.

    The first few models that are asked about are read one by one, which is all that most people
    want: tens of milliseconds each, of a hundred thousand results. Whoever asks about more, or
    says so beforehand, has everything read once, which takes seconds, and each answer then
    milliseconds. Both give the same.

    Args:
        database: where the results are.
        machine: a host name, an id or a source: only what was measured there; anything without it.
    """

    def __init__(self, database: Database, machine: str | None = None) -> None:
        self.database, self.machine = database, machine
        self._seen: list[tuple[int, int]] | None = None
        self._kept: dict[Hashable, object] = {}
        self._asked: set[tuple[str, ...]] = set()
        self._every = False
        self._answering: ExitStack | None = None
        self._fresh = False  # whether this answer has looked for changes

    @contextmanager
    def answering(self) -> Iterator[None]:
        """Open the store once for all that an answer has to read, and not at all for nothing."""
        with ExitStack() as stack:
            self._answering, self._fresh = stack, False
            try:
                yield
            finally:
                self._answering = None

    def _query(
        self, sql: str, values: Sequence[object] = ()
    ) -> tuple[list[str], list[tuple[object, ...]]]:
        if self._answering is not None:  # opened again it is the same connection
            self._answering.enter_context(self.database.asking())
        return self.database.query(sql, values)

    def cells(self, models: Sequence[str]) -> list[EvidenceCell]:
        """The cells of a model by its names, the same order every time."""
        self._asked.add(tuple(models))
        return [cell for cell in self._of_models(models) if cell.usable]

    def unusable(self, models: Sequence[str]) -> list[EvidenceCell]:
        """What of a model was measured, and has no time that anything may be chosen by."""
        return [cell for cell in self._of_models(models) if not cell.usable]

    def _of_models(self, models: Sequence[str]) -> list[EvidenceCell]:
        if self._at_once():
            cells = sorted(self._cells_of(models), key=lambda cell: cell.order)
        else:
            cells = self._read(f"model IN ({marks(models)})", models)
        return self._of_machine(cells)

    def failures(self, models: Sequence[str]) -> list[Failure]:
        """What of a model did not work when it was last tried."""
        if not self._few():
            model_failures = self._once(("failures", *models), lambda: self._failed(models))
            return self._of_machine(model_failures)
        known = self._once("failures", self._every_failure)
        return self._of_machine([failure for name in models for failure in known.get(name, ())])

    def peers(self, place: EvidencePlace, known: ModelKnowledge) -> list[EvidenceCell]:
        """The best answers at a place of the models that are most like one, by batch."""
        names = self._like(place, known)
        if not names:
            return []
        if self._at_once():
            return self._once("peers", lambda: PeerAnswers(self._usable_of)).of(names, place)
        cells = self._read(f"hardware = ? AND model IN ({marks(names)})", (place.hardware, *names))
        return place.best_of_each(attempt for attempt in self._of_machine(cells) if attempt.usable)

    def _usable_of(self, model: str) -> list[EvidenceCell]:
        """Of everything that was read, what anything of a model may be chosen by."""
        return [cell for cell in self._of_machine(self._cells_of([model])) if cell.usable]

    def rates(self) -> Rates:
        """What devices do in a millisecond at their best, where enough models show it."""

        def read() -> Rates:
            rows = self._query(queries.rates_sql())[1]
            return {
                (str(hardware), str(device), str(precision), str(mode)): rate
                for hardware, device, precision, mode, rate in rows
                if isinstance(rate, float)
            }

        return self._once("rates", read)

    def histories(self, cells: Sequence[EvidenceCell]) -> Histories:
        """The older runs of what was measured, on the machines where it was; an import has none."""
        rows = [cell.row for cell in cells]
        own = [row for row in rows if row.get("provenance") == Provenance.MEASURED]
        if not own or len({row.get("run_id") for row in rows}) < 2:
            return Histories()

        def read() -> Histories:
            machines = self._machines()
            return histories_of(
                self.database, [(machines.get(str(row.get("run_id"))), [row]) for row in rows]
            )

        keys = ((row.get("series_key"), row.get("run_id")) for row in rows)
        return self._once(("histories", *keys), read)

    def _machines(self) -> dict[str, Machine]:
        """The machine of each run."""

        def read() -> dict[str, Machine]:
            rows = self._query(queries.RUNS)[1]
            return machines_of(
                (str(run), None if recorded is None else str(recorded)) for run, recorded in rows
            )

        return self._once("machines", read)

    def _of_machine(self, attempts: list[Attempt]) -> list[Attempt]:
        """What was measured, or tried, on the machine that is asked for; all where none is.

        Raises:
            UsageError: No machine answers to it, or several do.
        """
        if (runs := self._own_runs()) is None:
            return attempts
        return [attempt for attempt in attempts if str(attempt.row.get("run_id")) in runs]

    def _own_runs(self) -> frozenset[str] | None:
        """The runs of the machine that alone counts; None where all do.

        Raises:
            UsageError: No machine answers to it, or several do.
        """
        if self.machine is None:
            return None
        machines = self._machines()
        ours = chosen(dict.fromkeys(machines.values(), ""), self.machine)
        return frozenset(run for run, machine in machines.items() if machine == ours)

    def _like(self, place: EvidencePlace, known: ModelKnowledge) -> list[str]:
        """The models of a family with a result at a place that have about as much work to do.

        Where too few say that, it is about as many weights.
        """
        by_column = self._by_place().get((place.family, place.hardware), {})
        for column, amount in (("flops", known.flops), ("parameters", known.parameters)):
            entries = by_column.get(column, ())
            if amount and len(entries) >= FEWEST_FITTED:
                return nearest_names(entries, math.log(amount), _MOST_LIKE)
        return [name for _, name in by_column.get("", ())][:_MOST_LIKE]

    def _by_place(self) -> Places:
        """By family and platform the models with a result there, beside what is known of each.

        Under flops and parameters stand the logarithms of those that say theirs.
        """

        def made() -> Places:
            places: Places = {}
            for name, model in self.models().items():
                for hardware in model["hardware"]:
                    by_column = places.setdefault((model["family"], hardware), {})
                    by_column.setdefault("", []).append((0.0, name))
                    for column in ("flops", "parameters"):
                        if amount := number(model, column):
                            by_column.setdefault(column, []).append((math.log(amount), name))
            for by_column in places.values():
                for column in by_column.keys() & {"flops", "parameters"}:
                    by_column[column].sort()
            return places

        return self._once("by place", made)

    def expect_many(self) -> None:
        """Many models will be asked about: what there is is best read at once."""
        self._every = True

    def _at_once(self) -> bool:
        return (self._every or len(self._asked) > _SINGLY) and self._few()

    def _few(self) -> bool:
        """Whether all of it may be held in memory."""

        def counted() -> int:
            _, ((count,),) = self._query("SELECT count(*) FROM benchmark_results")
            assert isinstance(count, int)
            return count

        return self._once("count", counted) <= _MOST_HELD

    def _cells_of(self, models: Sequence[str]) -> list[EvidenceCell]:
        """Of everything that was read; what nobody has asked about yet is made now."""
        names, rows = self._once("rows", self._every_row)
        made = self._once("made", dict[str, list[EvidenceCell]])
        for model in models:
            if model not in made:
                made[model] = [
                    queries.cell(order, self._whole(dict(zip(names, row, strict=True))))
                    for order, row in rows.get(model, ())
                ]
        return [cell for model in models for cell in made[model]]

    def _every_row(self) -> tuple[list[str], dict[str, list[tuple[int, tuple[object, ...]]]]]:
        """The cells of all models as they were read.

        As plain rows until they are asked for, without lists: the collector of garbage, which
        passes over tuples of plain values, looked through a hundred thousand cells for a quarter
        of a second now and then.
        """
        names, rows = self._query(queries.cells_sql("model IS NOT NULL"))
        place = names.index("model")
        by_model: dict[str, list[tuple[int, tuple[object, ...]]]] = {}
        for order, row in enumerate(rows):
            plain = tuple(tuple(value) if isinstance(value, list) else value for value in row)
            by_model.setdefault(str(row[place]), []).append((order, plain))
        return names, by_model

    def tried(self) -> list[Tried]:
        """What became of each family on each platform, in each mode."""
        return self._once("tried", self._tried)

    def models(self) -> dict[str, StoredModel]:
        """Every stored model with its family, weights, operations an item, and kind."""
        return self._once("models", self._models)

    def named(self) -> dict[str, str]:
        """The stored models by their names as `plain_name` leaves them."""

        def made() -> dict[str, str]:
            return {plain_name(model): model for model in sorted(self.models(), reverse=True)}

        return self._once("named", made)

    def precisions(self) -> frozenset[str]:
        """Every precision that a result has, as it is spelt there."""

        def read() -> frozenset[str]:
            return frozenset(str(name) for (name,) in self._query(queries.PRECISIONS)[1])

        return self._once("precisions", read)

    def devices(self) -> dict[str, list[str]]:
        """Of each platform, the devices with a result that counts."""
        return self._once("devices", self._devices)

    def machine_devices(self) -> dict[str, list[str]] | None:
        """Of each platform the devices of the machine that alone counts; None where all do.

        Raises:
            UsageError: No machine answers to it, or several do.
        """
        if (runs := self._own_runs()) is None:
            return None
        by_platform: dict[str, list[str]] = {}
        for run, hardware, device in self._once("run devices", self._run_devices):
            if run in runs and device not in by_platform.get(hardware, ()):
                by_platform.setdefault(hardware, []).append(device)
        return by_platform

    def _run_devices(self) -> list[tuple[str, str, str]]:
        _, rows = self._query(queries.RUN_DEVICES)
        return [(str(run), str(place), str(name)) for run, place, name in rows if name is not None]

    def _once(self, key: Hashable, made: Callable[[], Kept]) -> Kept:
        """What was asked before, unless the store has changed since."""
        if self._answering is None or not self._fresh:  # an answer is of one state of the store
            now = self._looks()
            if now != self._seen:
                self._kept, self._seen = {}, now
            self._fresh = True
        if key not in self._kept:
            self._kept[key] = made()
        return cast("Kept", self._kept[key])  # a key is of one kind of thing

    def _looks(self) -> list[tuple[int, int]]:
        """What can be seen of the file, and of what waits to become part of it, from outside."""
        path = self.database.path
        files = (path, path.with_name(f"{path.name}.wal"))
        stats = [file.stat() for file in files if file.exists()]
        return [(stat.st_size, stat.st_mtime_ns) for stat in stats]

    def _read(self, where: str, values: Sequence[str]) -> list[EvidenceCell]:
        return self._once((where, *values), lambda: self._cells(where, values))

    def _cells(self, where: str, values: Sequence[str]) -> list[EvidenceCell]:
        rows = self._rows(queries.cells_sql(where), values)
        cells = [queries.cell(order, row) for order, row in enumerate(rows)]
        _log.debug("%d cells where %s: %s", len(cells), where, list(values))
        return cells

    def _every_failure(self) -> dict[str, list[Failure]]:
        """By model: there are few, and to look for those of one takes as long."""
        by_model: dict[str, list[Failure]] = {}
        for row in self._rows(queries.failures_sql("model IS NOT NULL")):
            by_model.setdefault(str(row["model"]), []).append(queries.failure(row))
        return by_model

    def _failed(self, models: Sequence[str]) -> list[Failure]:
        sql = queries.failures_sql(f"model IN ({marks(models)})")
        return [queries.failure(row) for row in self._rows(sql, models)]

    def _rows(self, sql: str, values: Sequence[str] = ()) -> list[dict[str, object]]:
        names, rows = self._query(sql, list(values))
        return [self._whole(dict(zip(names, row, strict=True))) for row in rows]

    def _whole(self, row: dict[str, object]) -> dict[str, object]:
        """A row with its machine by name, and its device's kind of unit where there are several."""
        if row.get("machine"):
            row["machine"] = str(self._machines()[str(row["run_id"])])
        if row.get("hardware") not in _OF_UNITS:
            return row
        units = self._once("units", self._units)
        return {**row, "unit": units.get(str(row.get("device_fingerprint") or ""))}

    def _units(self) -> dict[str, str]:
        return {str(device): str(unit) for device, unit in self._query(queries.UNITS)[1]}

    def _tried(self) -> list[Tried]:
        return [queries.tried(row) for row in self._rows(queries.tried_sql())]

    def _models(self) -> dict[str, StoredModel]:
        _, rows = self._query(queries.FACTS)
        names = ("family", "parameters", "flops", "kin", "hardware")
        return {
            str(model): cast("StoredModel", dict(zip(names, known, strict=True)))
            for model, *known in rows
        }

    def _devices(self) -> dict[str, list[str]]:
        _, rows = self._query(queries.DEVICES)
        by_platform: dict[str, list[str]] = {}
        for hardware, device in rows:
            names = by_platform.setdefault(str(hardware), [])
            if device is not None:
                names.append(str(device))
        return by_platform


StrPath = str | PathLike[str]


class EmptyStore:
    """What is known where nothing was measured."""

    @contextmanager
    def answering(self) -> Iterator[None]:
        yield

    def expect_many(self) -> None:
        """Nothing is read."""

    def cells(self, models: Sequence[str]) -> list[EvidenceCell]:
        return []

    def unusable(self, models: Sequence[str]) -> list[EvidenceCell]:
        return []

    def failures(self, models: Sequence[str]) -> list[Failure]:
        return []

    def peers(self, place: EvidencePlace, known: ModelKnowledge) -> list[EvidenceCell]:
        return []

    def rates(self) -> Rates:
        return {}

    def histories(self, cells: Sequence[EvidenceCell]) -> Histories:
        return Histories()

    def tried(self) -> list[Tried]:
        return []

    def models(self) -> dict[str, StoredModel]:
        return {}

    def named(self) -> dict[str, str]:
        return {}

    def precisions(self) -> frozenset[str]:
        return frozenset()

    def devices(self) -> dict[str, list[str]]:
        return {}

    def machine_devices(self) -> None:
        """Nothing was measured, by any machine."""


def configured(given: StrPath | Mapping[str, object] | None) -> Config:
    """A configuration over the defaults: of a file, or as it is.

    Raises:
        UsageError: it is none.
    """
    if isinstance(given, Mapping):
        return over_defaults(dict(given))
    named = validation.path("config_path", given)
    return defaults() if named is None else read(named)

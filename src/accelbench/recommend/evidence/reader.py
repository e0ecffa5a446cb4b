"""Read evidence from a store: one query a model, kept until the store changes.

Open `database_path`: a database, a lake, or a folder of results.
"""

from __future__ import annotations

import atexit
import logging
import os
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, cast

from accelbench.core.errors import AccelbenchError, StoreError
from accelbench.core.vocabulary import Provenance
from accelbench.judge.filters import marks
from accelbench.judge.machines import Machine, chosen, machines_of
from accelbench.judge.older_runs import histories_of
from accelbench.judge.run_noise import Histories
from accelbench.recommend import validation
from accelbench.recommend.config import Config, defaults, over_defaults, plain_name, read
from accelbench.recommend.evidence import sql as queries
from accelbench.recommend.evidence.cells import EvidenceAttempt, EvidenceCell, Failure, Tried
from accelbench.recommend.query import StoredModel
from accelbench.store.database import DEFAULT_NAME, ENVIRONMENT, Database
from accelbench.store.files import create_temporary_folder
from accelbench.store.opening import open_store

if TYPE_CHECKING:
    from collections.abc import Iterable

    from accelbench.store.database import Database


_log = logging.getLogger("hardware_selector")
Attempt = TypeVar("Attempt", bound=EvidenceAttempt)
Kept = TypeVar("Kept")
#: The cells of so many results fit in memory.
_MOST_HELD = 1_000_000
#: Platforms whose devices are units of several kinds.
_OF_UNITS = frozenset({"openvino"})
#: Models that are read one by one before all are.
_SINGLY = 8


class EvidenceStore:
    """The evidence of a store.

    The first few models are read one by one: of a hundred thousand results, that takes tens of
    milliseconds each. For more models everything is read once, which takes seconds, and each answer
    then takes milliseconds. Both give the same.

    Args:
        database: the results; None if nothing was measured.
        machine: a host name, an id or a source, whose results alone count.
    """

    def __init__(self, database: Database | None, machine: str | None = None) -> None:
        self.database, self.machine = database, machine
        self._seen: list[tuple[int, int]] | None = None
        self._kept: dict[Hashable, object] = {}
        self._asked: set[tuple[str, ...]] = set()
        self._every = False
        self._answering: ExitStack | None = None
        self._fresh = False  # whether this answer has looked for changes

    @contextmanager
    def answering(self) -> Iterator[None]:
        """Open the store once for all reads of an answer, and only if there are any."""
        with ExitStack() as stack:
            self._answering, self._fresh = stack, False
            try:
                yield
            finally:
                self._answering = None

    def _query(
        self, sql: str, values: Sequence[object] = ()
    ) -> tuple[list[str], list[tuple[object, ...]]]:
        if self.database is None:
            return [], []
        if self._answering is not None:  # opened again it is the same connection
            self._answering.enter_context(self.database.keep_open())
        return self.database.query(sql, values)

    def cells(self, models: Sequence[str]) -> list[EvidenceCell]:
        """Return the usable cells of a model by its names, always in the same order."""
        self._asked.add(tuple(models))
        return [cell for cell in self._of_models(models) if cell.usable]

    def unusable(self, models: Sequence[str]) -> list[EvidenceCell]:
        return [cell for cell in self._of_models(models) if not cell.usable]

    def _of_models(self, models: Sequence[str]) -> list[EvidenceCell]:
        if self._at_once():
            cells = sorted(self._cells_of(models), key=lambda cell: cell.order)
        else:
            cells = self._read(f"model IN ({marks(models)})", models)
        return self._of_machine(cells)

    def failures(self, models: Sequence[str]) -> list[Failure]:
        if not self._few():
            model_failures = self._once(("failures", *models), lambda: self._failed(models))
            return self._of_machine(model_failures)
        known = self._once("failures", self._every_failure)
        return self._of_machine([failure for name in models for failure in known.get(name, ())])

    def histories(self, cells: Sequence[EvidenceCell]) -> Histories:
        """Return the older runs of cells on their machines; imports have none."""
        rows = [cell.row for cell in cells]
        own = [row for row in rows if row.get("provenance") == Provenance.MEASURED]
        database = self.database
        if database is None or not own or len({row.get("run_id") for row in rows}) < 2:
            return Histories()

        def read() -> Histories:
            machines = self._machines()
            return histories_of(
                database, [(machines.get(str(row.get("run_id"))), [row]) for row in rows]
            )

        keys = ((row.get("series_key"), row.get("run_id")) for row in rows)
        return self._once(("histories", *keys), read)

    def _machines(self) -> dict[str, Machine]:
        def read() -> dict[str, Machine]:
            rows = self._query(queries.RUNS)[1]
            return machines_of(
                (str(run), None if recorded is None else str(recorded)) for run, recorded in rows
            )

        return self._once("machines", read)

    def _of_machine(self, attempts: list[Attempt]) -> list[Attempt]:
        if (runs := self._own_runs()) is None:
            return attempts
        return [attempt for attempt in attempts if str(attempt.row.get("run_id")) in runs]

    def _own_runs(self) -> frozenset[str] | None:
        """Return the runs of the named machine, or None if no machine is named."""
        if self.machine is None or self.database is None:
            return None
        machines = self._machines()
        ours = chosen(dict.fromkeys(machines.values(), ""), self.machine)
        return frozenset(run for run, machine in machines.items() if machine == ours)

    def expect_many(self) -> None:
        """Read everything at once, because many models follow."""
        self._every = True

    def _at_once(self) -> bool:
        return (self._every or len(self._asked) > _SINGLY) and self._few()

    def _few(self) -> bool:

        def counted() -> int:
            rows = self._query("SELECT count(*) FROM benchmark_results")[1]
            return sum(int(str(count)) for (count,) in rows)

        return self._once("count", counted) <= _MOST_HELD

    def _cells_of(self, models: Sequence[str]) -> list[EvidenceCell]:
        """Return cells of everything that was read; make those that are asked for first."""
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
        """Read the cells of all models as rows by model.

        The rows have tuples instead of lists: the garbage collector ignores tuples of plain values,
        while a hundred thousand cells took it a quarter of a second now and then.
        """
        names, rows = self._query(queries.cells_sql("model IS NOT NULL"))
        place = names.index("model") if rows else 0
        by_model: dict[str, list[tuple[int, tuple[object, ...]]]] = {}
        for order, row in enumerate(rows):
            plain = tuple(tuple(value) if isinstance(value, list) else value for value in row)
            by_model.setdefault(str(row[place]), []).append((order, plain))
        return names, by_model

    def tried(self) -> list[Tried]:
        return self._once(
            "tried", lambda: [queries.tried(row) for row in self._rows(queries.tried_sql())]
        )

    def models(self) -> dict[str, StoredModel]:
        def read() -> dict[str, StoredModel]:
            rows = self._query(queries.FACTS)[1]
            return {
                str(model): cast("StoredModel", {"family": family, "parameters": parameters})
                for model, family, parameters in rows
            }

        return self._once("models", read)

    def named(self) -> dict[str, str]:
        return self._once(
            "named",
            lambda: {plain_name(model): model for model in sorted(self.models(), reverse=True)},
        )

    def precisions(self) -> frozenset[str]:
        return self._once(
            "precisions",
            lambda: frozenset(str(name) for (name,) in self._query(queries.PRECISIONS)[1]),
        )

    def devices(self) -> dict[str, list[str]]:
        return _by_platform((place, name) for _, place, name in self._devices_of_runs())

    def machine_devices(self) -> dict[str, list[str]] | None:
        """Return the devices of the named machine by platform, or None if no machine is named."""
        if (runs := self._own_runs()) is None:
            return None
        return _by_platform(
            (place, name)
            for run, place, name in self._devices_of_runs()
            if run in runs and name is not None
        )

    def _devices_of_runs(self) -> list[tuple[object, ...]]:
        return self._once("devices", lambda: self._query(queries.RUN_DEVICES)[1])

    def _once(self, key: Hashable, made: Callable[[], Kept]) -> Kept:
        """Return the kept value of a key, unless the store has changed since."""
        if self._answering is None or not self._fresh:  # an answer sees one state of the store
            now = self._looks()
            if now != self._seen:
                self._kept, self._seen = {}, now
            self._fresh = True
        if key not in self._kept:
            self._kept[key] = made()
        return cast("Kept", self._kept[key])  # a key is of one kind of thing

    def _looks(self) -> list[tuple[int, int]]:
        """Return sizes and times of the file and its write-ahead log."""
        if self.database is None:
            return []
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
        """Read all failures by model: there are few, and those of one model take as long."""
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
        if row.get("machine"):
            row["machine"] = str(self._machines()[str(row["run_id"])])
        if row.get("hardware") not in _OF_UNITS:
            return row
        units = self._once("units", self._units)
        return {**row, "unit": units.get(str(row.get("device_fingerprint") or ""))}

    def _units(self) -> dict[str, str]:
        return {str(device): str(unit) for device, unit in self._query(queries.UNITS)[1]}


def _by_platform(devices: Iterable[tuple[object, object]]) -> dict[str, list[str]]:
    by_platform: dict[str, list[str]] = {}
    for platform, device in devices:
        names = by_platform.setdefault(str(platform), [])
        if device is not None and str(device) not in names:
            names.append(str(device))
    return by_platform


StrPath = str | PathLike[str]


def configured(given: StrPath | Mapping[str, object] | None) -> Config:
    """Return a configuration over the defaults, from a mapping or a file; refuse wrong ones."""
    if isinstance(given, Mapping):
        return over_defaults(dict(given))
    named = validation.path("config_path", given)
    return defaults() if named is None else read(named)


#: Where runs store result files, in the documents' tree and in ours.
_RAW = ("raw_results", ".")


def opened(location: str | PathLike[str] | None) -> Database | None:
    """Return the store of a path, filled from its journals; None if there is none.

    Without a path it is the default store. A missing path is logged, not refused: the first example
    of a guide names a folder that does not exist yet.
    """

    if location is None:
        database = open_store()
        if not database.exists:
            name = os.environ.get(ENVIRONMENT, DEFAULT_NAME)
            _log.debug("there is no %s: nothing measured is known", name)
            return None
        return _filled(database)
    named = validation.path("database_path", location)
    path = Path(named or "").expanduser()
    if path.is_dir() and not (path / "accelbench-lake.json").exists():
        return _in_folder(path)
    database = open_store(str(location))
    if not database.exists:
        _log.warning("There is nothing at %s: rules answer, and nothing measured.", location)
        return None
    return _filled(database)


def destination(location: str | PathLike[str] | None) -> tuple[tuple[str, ...], str]:
    """Return the words of `run` that store results there, and why there are none."""
    if location is None:
        return (), ""
    path = Path(location).expanduser()
    if not path.is_dir() or (path / "accelbench-lake.json").exists():
        return ("--db", str(location)), ""
    files = sorted(path.glob("*.duckdb"))
    if files:
        return ("--db", str(Path(location) / files[0].name)), ""
    raw, result_files = path / _RAW[0], _result_files(path)
    if not result_files or result_files[0].parent == raw:
        return ("--output-dir", str(location)), ""
    if result_files[0].parent == path:
        return ("--output-ci", str(Path(location) / "measured.json")), ""
    return (), f"what run measures cannot be put among the files below {location}: use a database"


def _in_folder(folder: Path) -> Database | None:
    """Return the database of a folder, else one with its result files."""
    files = sorted(folder.glob("*.duckdb"))
    if len(files) > 1:
        names = ", ".join(file.name for file in files)
        raise StoreError(f"There are several databases in {folder}: {names}.", "Name one of them.")
    if files:
        return _filled(Database(files[0].resolve()))
    results = _result_files(folder)
    if not results:
        _log.warning("There are no results in %s: rules answer, and nothing measured.", folder)
        return None
    return _read_in(results)


def _result_files(folder: Path) -> list[Path]:
    """Return the result files of a folder, preferably those in its raw_results."""
    for name in _RAW:
        files = sorted((folder / name).glob("*.json"))
        if files:
            return files
    return sorted(folder.rglob("*.json"))


def _read_in(files: Iterable[Path]) -> Database | None:
    """Return a temporary database with the results of files; ignore other files."""
    from accelbench.exchange.imports.ours import read_json_rows
    from accelbench.exchange.imports.records import MalformedError
    from accelbench.exchange.imports.result_row import Source
    from accelbench.exchange.titles import RUN

    bodies = []
    for file in files:
        try:
            rows = list(read_json_rows(file, Source("result files")))
        except MalformedError as error:
            _log.debug("%s holds no results: %s", file.name, error.message)
            continue
        bodies += [
            {name: v for name, v in row.items() if name not in (RUN, "samples")} for row in rows
        ]
    if not bodies:
        _log.warning("No result file there can be read: rules answer, and nothing measured.")
        return None
    scratch = create_temporary_folder()
    atexit.register(scratch.close)
    database = Database(scratch.folder / "results.duckdb")
    database.bring_in("result-files", [], bodies)
    return database


def _filled(database: Database) -> Database | None:
    """Return a store filled from its journals, if it can be written; None if it is missing."""
    try:
        filled = database.fill()
    except AccelbenchError as error:
        _log.debug("what waits in journals is not looked at: %s", error.message)
    else:
        for problem in filled.problems:
            _log.warning("%s", problem)
    if not database.path.exists():
        return None
    return database

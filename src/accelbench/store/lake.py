"""Lake: immutable Parquet files in a folder or an object store, which many machines fill.

Each run adds its own files, so writers never conflict. Each machine reads a mirror: an ordinary
database that ingests every file of the lake once, by the same anti-joins on ids as a journal.

    accelbench-lake.json              the application and the schema version
    results/STEM.parquet              results, one per row
    facts/STEM.parquet                runs, hardware and the rest, as reported
    samples/STEM.parquet              every sample
    manifest/STEM.json                the stems that a compacted one replaces
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from accelbench.core.errors import StoreError, UsageError
from accelbench.core.facts import Fact, new_run_id, utc_now
from accelbench.core.identity import digest
from accelbench.core.jsonc import loads
from accelbench.store.contradictions import mark_implausible
from accelbench.store.database import Database
from accelbench.store.duck import (
    connect,
    exclusive_guard,
    exists,
    file_error_types,
    quote_path,
    refuse_version,
)
from accelbench.store.files import create_temporary_folder, default_folder
from accelbench.store.insert import copy_parquet, insert_many
from accelbench.store.journal import FilledRows
from accelbench.store.merge_validation import (
    ConflictError,
    OtherSchemaError,
    check_tables,
    columns_in,
)
from accelbench.store.places import FolderPlace, StorePlace
from accelbench.store.schema import APPLICATION, SCHEMA_VERSION, columns_of

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


#: The table of each folder, the keys that distinguish its rows, the keys by which known rows are
#: found, and the table to search. Samples come first, because their results are searched for.
TABLES: Mapping[str, tuple[str, str, str, str]] = {
    "samples": ("fact_samples", "result_id, phase", "result_id", "fact_result"),
    "facts": ("fact", "kind, id", "kind, id", "fact"),
    "results": ("fact_result", "result_id", "result_id", "fact_result"),
}


def insert_files(
    con: DuckDBPyConnection,
    files: Mapping[str, Mapping[str, Path]],
    lake: str,
    mirror: Path,
) -> FilledRows:
    """Insert new rows from files of a lake, in the mirror's transaction.

    Raises StoreError if a file is damaged, or has another value than the known result of its id.
    """
    sources = {folder: _source(names.values()) for folder, names in files.items()}
    with _explain_file_errors(con, files, lake, mirror):
        held = check_tables(con, sources["results"], sources["samples"], lake)
        sources |= {"results": held.results, "samples": held.samples}
        # In the order of the tables: samples come first.
        counts = {folder: _read(con, folder, sources[folder], lake) for folder in TABLES}
        if counts["results"]:
            mark_implausible(con)
    return FilledRows(
        results=counts["results"],
        facts=counts["facts"],
        problems=held.problems,
        refused=len(held.refused),
        refusals=held.refused,
    )


def _source(paths: Iterable[Path]) -> str:
    files = ", ".join(map(quote_path, paths))
    return f"read_parquet([{files}], union_by_name = true)" if files else ""


def _read(con: DuckDBPyConnection, folder: str, source: str, lake: str) -> int:
    if not source:
        return 0
    table, apart, keys, against = TABLES[folder]
    known = set(columns_of(con, table))
    names = columns_in(con, source, keys.split(", "), lake)
    columns = ", ".join(f'i."{name}"' for name in names if name in known)
    return insert_many(con, table, source, keys, against=against, columns=columns, distinct=apart)


@contextmanager
def _explain_file_errors(
    con: DuckDBPyConnection, files: Mapping[str, Mapping[str, Path]], lake: str, mirror: Path
) -> Iterator[None]:
    """Explain errors in files of a lake, with the names of the files."""
    import duckdb

    try:
        yield
    except ConflictError as error:
        query = "SELECT 1 FROM {} WHERE result_id = ? LIMIT 1"
        paths = [
            f"{lake}/{name}"
            for name, path in files["results"].items()
            if con.execute(query.format(_source([path])), [error.result_id]).fetchall()
        ]
        raise StoreError(
            f"Result {error.result_id} in {' and '.join(paths)} has {error.claim} in"
            f" {error.column}, but {error.known} elsewhere: one of the two is wrong.",
            "Remove the wrong file from there. If this machine has read it already, remove also"
            f" {mirror}, which is created again.",
        ) from error
    except OtherSchemaError:
        for names in files.values():  # a joint query reports the types of one of them
            for name, path in names.items():
                columns_in(con, _source([path]), (), f"{lake}/{name}")
        raise
    except duckdb.Error as error:
        own = [str(path) for names in files.values() for path in names.values()]
        if isinstance(error, file_error_types()) and not any(path in str(error) for path in own):
            raise  # the error is in the mirror
        raise StoreError(
            f"A file of {lake} is damaged ({str(error).splitlines()[0]}).",
            "Put back what it was, or take it away from there.",
        ) from error


MARKER = "accelbench-lake.json"
_MANIFESTS = "manifest"
_OWN = """
CREATE TABLE IF NOT EXISTS lake_file (name VARCHAR);
CREATE TABLE IF NOT EXISTS lake_sent (name VARCHAR, rows BIGINT);
"""
#: Seconds to wait for another process of this machine, which may ingest millions of results.
_LOCK_SECONDS = 600.0


@dataclass(frozen=True)
class Lake(Database):
    """Lake with this machine's mirror; `path` is the mirror's."""

    place: StorePlace = field(kw_only=True)

    @classmethod
    def from_place(cls, place: StorePlace, typed: str = "") -> Lake:
        """Return the lake of a location; `typed` is the folder as the user typed it."""
        folder = default_folder() / "lakes" / digest(place.name)
        return cls(folder / "mirror.duckdb", place=place, typed_path=typed)

    @property
    def name(self) -> str:
        return self.place.name

    @property
    def is_created(self) -> bool:
        return self._has_marker()

    @property
    def exists(self) -> bool:
        return self._has_marker()

    def ensure(self) -> None:
        if not self._has_marker():
            self._create_marker()
        self._ensure_mirror()

    def init(self, *, overwrite: bool = False) -> Path | None:
        if overwrite and self._has_marker():
            raise UsageError(
                f"{self.name} is a lake, whose files are never overwritten.", "Create another one."
            )
        self.ensure()
        return None

    def fill(self) -> FilledRows:
        """Ingest journals and the lake, and send the lake this machine's new results."""
        if not self._has_marker():
            raise StoreError(
                f"There is no lake at {self.name}.",
                "Create one with `accelbench db init` or `accelbench run`.",
            )
        if not exists(self.path):
            self._ensure_mirror()
        with self._mirror_lock():
            in_step = self._is_in_sync()
            if not in_step:
                self._ensure_mirror()
            filled = super().fill()
            if not in_step or filled.results or filled.facts:
                self._send()
                filled += self._ingest_files()
                self._record_sync()
            return filled

    def merge(self, other: Path) -> FilledRows:
        self._fill_existing()
        counts = super().merge(other)
        self._send_pending()
        return counts

    def bring_in(
        self,
        run_id: str,
        facts: Iterable[Fact],
        bodies: Iterable[Mapping[str, Any]] = (),
        queries: Iterable[str] = (),
    ) -> FilledRows:
        self._fill_existing()
        counts = super().bring_in(run_id, facts, bodies, queries)
        self._send_pending()
        return counts

    def _send_pending(self) -> None:
        """Send the lake the new results; the mirror keeps them until that succeeds."""
        try:
            self.fill()
        except StoreError as error:
            raise StoreError(
                error.message,
                "The new results are kept on this machine; the next command that can write into the"
                " lake sends them.",
            ) from error

    def _fill_existing(self) -> None:
        """Read the lake before results are brought in, so that none are brought in twice."""
        if self.exists:
            self.fill()

    def status(self) -> dict[str, Any]:
        stems = {_stem(name) for folder in TABLES for name in self.place.names(folder)}
        return {**super().status(), "database": self.name, "lake_files": len(stems)}

    def compact(self) -> tuple[int, int]:
        """Write all rows into one file, and remove the files that an earlier one replaced.

        Returns how many files are now one, and how many were removed.
        """
        self.fill()
        with self._mirror_lock():
            gone = {stem for stems in self._manifests().values() for stem in stems}
            removed = self._remove(gone)
            stems = sorted({_stem(n) for f in TABLES for n in self.place.names(f)} - gone)
            if len(stems) < 2:
                return 0, removed
            with (
                connect(self.path, write=True, separate=True) as con,
                create_temporary_folder() as scratch,
            ):
                new = self._write(con, scratch, dict.fromkeys(TABLES, 0), "compact-")
                manifest = scratch / "manifest.json"
                manifest.write_text(json.dumps({"by": new, "replaces": stems}))
                _record_files(con, [f"{folder}/{new}.parquet" for folder in TABLES])
                self.place.put(manifest, f"{_MANIFESTS}/{new}.json")
            return len(stems), removed

    # -- the lake's marker

    def _has_marker(self) -> bool:
        """Return whether there is a lake that this version can read."""
        if MARKER not in self.place.names(""):
            return False
        with create_temporary_folder() as scratch:
            marker = self._json(MARKER, scratch)
        if marker.get("application") != APPLICATION:
            raise StoreError(f"{self.name} is another program's lake; it was left as it is.")
        version = marker.get("schema_version")
        refuse_version(self.name, version)
        return True

    def _create_marker(self) -> None:
        """Mark a location as a lake, unless it has other contents."""
        if isinstance(self.place, FolderPlace) and self.place.names(""):
            if self._has_marker():  # another writer has just created it
                return
            raise StoreError(
                f"{self.name} is a folder with other contents, not a lake.",
                "Name an empty folder, or a file for a database.",
            )
        with create_temporary_folder() as scratch:
            marker = scratch / MARKER
            about = {"schema_version": SCHEMA_VERSION, "created_at": utc_now()}
            marker.write_text(json.dumps({"application": APPLICATION, **about}))
            self.place.put(marker, MARKER)

    def _json(self, name: str, scratch: Path) -> dict[str, Any]:
        try:
            document = loads(self.place.fetch(name, scratch).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise self._unreadable(name, str(error)) from error
        return document if isinstance(document, dict) else {}

    def _unreadable(self, name: str, why: str) -> StoreError:
        advice = "Restore the file, or remove it."
        return StoreError(f"{name} of {self.name} cannot be read ({why}).", advice)

    # -- the mirror

    def _ensure_mirror(self) -> None:
        super().ensure()

    @contextmanager
    def _mirror_lock(self) -> Iterator[None]:
        """Hold the lock that lets one process of this machine update the mirror."""
        with exclusive_guard(self.path.with_name("sync"), _LOCK_SECONDS):
            yield

    @property
    def _sync_record(self) -> Path:
        """File that records the lake and the mirror when both had the same contents."""
        return self.path.with_name("in-step.json")

    def _is_in_sync(self) -> bool:
        """Return whether nothing has changed since, without opening the mirror."""
        # Opening a mirror of ten million results took 0.5 s.
        try:
            return bool(
                json.loads(self._sync_record.read_text(encoding="utf-8")) == self._visible_state()
            )
        except (OSError, ValueError):
            return False

    def _record_sync(self) -> None:
        self._sync_record.write_text(json.dumps(self._visible_state()), encoding="utf-8")

    def _visible_state(self) -> dict[str, Any]:
        """Return the state of the lake and the mirror as their files show it."""
        mirror = [self.path, self.path.with_name(f"{self.path.name}.wal")]
        stats = [path.stat() for path in mirror if path.exists()]
        return {
            "version": SCHEMA_VERSION,
            "lake": [f"{f}/{n}" for f in (*TABLES, _MANIFESTS) for n in self.place.names(f)],
            "mirror": [[stat.st_size, stat.st_mtime_ns] for stat in stats],
        }

    def _send(self) -> None:
        """Send the lake the results of the mirror that did not come from it."""
        with (
            connect(self.path, write=True, separate=True) as con,
            create_temporary_folder() as scratch,
        ):
            con.execute(_OWN)
            sent = dict(con.execute("SELECT name, max(rows) FROM lake_sent GROUP BY 1").fetchall())
            stem = self._write(con, scratch, {folder: sent.get(folder, 0) for folder in TABLES})
            if stem:
                _record_files(con, [f"{folder}/{stem}.parquet" for folder in TABLES])
                _record_sent(con)

    def _write(
        self,
        con: DuckDBPyConnection,
        scratch: Path,
        since: Mapping[str, int],
        before: str = "",
    ) -> str:
        """Write files of all rows from these row ids on; return their stem, or "" for none."""
        # Tables only grow, so the earlier count shows the new rows. For ten million results,
        # keeping their order took 4 GiB, and sorting them 12 GiB.
        con.execute("SET preserve_insertion_order = false")
        stem = f"{before}{new_run_id()}-{digest([platform.node(), os.getpid()], 8)}"
        wrote = False
        for folder, (table, *_) in TABLES.items():
            path = scratch / f"{folder}.parquet"
            query = f"SELECT * FROM {table} WHERE rowid >= {since[folder]}"  # noqa: S608 — our names
            count = copy_parquet(con, query, path)
            if count:
                self.place.put(path, f"{folder}/{stem}.parquet")
                wrote = True
        return stem if wrote else ""

    def _ingest_files(self) -> FilledRows:
        """Ingest the lake's files that this mirror has not read."""
        manifests = self._manifests()
        with (
            connect(self.path, write=True, separate=True) as con,
            create_temporary_folder() as scratch,
        ):
            con.execute(_OWN)
            seen = {name for (name,) in con.execute("SELECT name FROM lake_file").fetchall()}
            known = {_stem(name) for name in seen}
            replaced = {stem for stems in manifests.values() for stem in stems}
            # A compacted file of known files has nothing new.
            known_again = {by for by, stems in manifests.items() if known.issuperset(stems)}
            new = {
                folder: [
                    f"{folder}/{name}"
                    for name in self.place.names(folder)
                    if f"{folder}/{name}" not in seen and _stem(name) not in replaced
                ]
                for folder in TABLES
            }
            if not any(new.values()):
                return FilledRows()
            con.execute("BEGIN")
            files = {
                folder: {
                    name: self.place.fetch(name, scratch)
                    for name in names
                    if _stem(name) not in known_again
                }
                for folder, names in new.items()
            }
            filled = insert_files(con, files, self.name, self.path)
            _record_files(con, [name for names in new.values() for name in names])
            _record_sent(con)
            con.execute("COMMIT")
        return filled

    def _manifests(self) -> dict[str, list[str]]:
        """Return the stems that each stem replaces."""
        replacements = {}
        with create_temporary_folder() as scratch:
            for name in self.place.names(_MANIFESTS):
                stems = self._json(f"{_MANIFESTS}/{name}", scratch).get("replaces", [])
                if not isinstance(stems, list) or not all(isinstance(stem, str) for stem in stems):
                    raise self._unreadable(
                        f"{_MANIFESTS}/{name}", "replaces is not a list of names"
                    )
                replacements[_stem(name)] = stems
        return replacements

    def _remove(self, stems: set[str]) -> int:
        names = {
            f"{folder}/{name}"
            for folder in TABLES
            for name in self.place.names(folder)
            if _stem(name) in stems
        }
        for name in sorted(names):
            self.place.remove(name)
        return len({_stem(name) for name in names})


def _record_files(con: DuckDBPyConnection, names: Sequence[str]) -> None:
    con.executemany("INSERT INTO lake_file VALUES (?)", [[name] for name in names])


def _record_sent(con: DuckDBPyConnection) -> None:
    """Record that the lake has all current rows of the mirror."""
    # By count, because uncommitted rows have other row ids.
    for folder, (table, *_) in TABLES.items():
        con.execute(f"INSERT INTO lake_sent SELECT ?, count(*) FROM {table}", [folder])  # noqa: S608


def _stem(name: str) -> str:
    return name.rpartition("/")[2].partition(".")[0]

"""A lake: immutable Parquet files in a folder or an object store, which many machines fill.

Each run adds its own files, so writers never meet. Each machine reads a mirror: an ordinary
database that takes in every file of the lake once, by the same anti-joins on ids as a journal.

    accelbench-lake.json              the application and the schema version
    results/STEM.parquet              results, a row each
    facts/STEM.parquet                runs, hardware and the rest, as it was reported
    samples/STEM.parquet              every sample
    manifest/STEM.json                which stems a compacted one replaces
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
    exists,
    file_errors,
    quoted_path,
    refuse_version,
    whole_guard,
)
from accelbench.store.files import default_folder, temporary_folder
from accelbench.store.insert import copy_parquet, insert_many
from accelbench.store.journal import FilledRows
from accelbench.store.merge_validation import ConflictError, UnlikeError, columns_in, hold
from accelbench.store.places import FolderPlace, StorePlace
from accelbench.store.schema import APPLICATION, SCHEMA_VERSION, columns_of

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


#: Folder → table, what its rows are told apart by, the keys that say whether they are there, and in
#: which table. Samples come first: what is asked of them is whether their results are there.
TABLES: Mapping[str, tuple[str, str, str, str]] = {
    "samples": ("fact_samples", "result_id, phase", "result_id", "fact_result"),
    "facts": ("fact", "kind, id", "kind, id", "fact"),
    "results": ("fact_result", "result_id", "result_id", "fact_result"),
}


def bring_files(
    con: DuckDBPyConnection,
    files: Mapping[str, Mapping[str, Path]],
    lake: str,
    mirror: Path,
) -> FilledRows:
    """Insert what files of a lake hold and the mirror has not, in the mirror's transaction.

    Raises StoreError if a file is damaged, or has another value than the known result of its id.
    """
    sources = {folder: _source(names.values()) for folder, names in files.items()}
    with _readable(con, files, lake, mirror):
        held = hold(con, sources["results"], sources["samples"], lake)
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
    files = ", ".join(map(quoted_path, paths))
    return f"read_parquet([{files}], union_by_name = true)" if files else ""


def _read(con: DuckDBPyConnection, folder: str, source: str, lake: str) -> int:
    if not source:
        return 0
    table, apart, keys, against = TABLES[folder]
    known = set(columns_of(con, table))
    names = columns_in(con, source, keys.split(", "), lake)
    columns = ", ".join(f'i."{name}"' for name in names if name in known)
    return insert_many(con, table, source, keys, against=against, columns=columns, apart=apart)


@contextmanager
def _readable(
    con: DuckDBPyConnection, files: Mapping[str, Mapping[str, Path]], lake: str, mirror: Path
) -> Iterator[None]:
    """Explain errors in files of a lake, with their names."""
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
            f"Result {error.result_id} in {' and '.join(paths)} has {error.said} in"
            f" {error.column}, where that id has {error.known} elsewhere: one of the two is"
            " not true.",
            "Take the wrong file away from there; if this machine has read it already, remove"
            f" {mirror} too, which is made again.",
        ) from error
    except UnlikeError:
        for names in files.values():  # together they have the types of one of them
            for name, path in names.items():
                columns_in(con, _source([path]), (), f"{lake}/{name}")
        raise
    except duckdb.Error as error:
        own = [str(path) for names in files.values() for path in names.values()]
        if isinstance(error, file_errors()) and not any(path in str(error) for path in own):
            raise  # it is the mirror's
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
#: Another process of this machine may be taking in millions of results.
_PATIENCE = 600.0


@dataclass(frozen=True)
class Lake(Database):
    """A lake and this machine's mirror of it; `path` is the mirror's."""

    place: StorePlace = field(kw_only=True)

    @classmethod
    def at(cls, place: StorePlace, typed: str = "") -> Lake:
        """Return the lake of a place; `typed` is a folder as somebody named it."""
        folder = default_folder() / "lakes" / digest(place.name)
        return cls(folder / "mirror.duckdb", place=place, typed=typed)

    @property
    def name(self) -> str:
        return self.place.name

    @property
    def begun(self) -> bool:
        return self._marked()

    @property
    def there(self) -> bool:
        return self._marked()

    def ensure(self) -> None:
        if not self._marked():
            self._begin()
        self._mirrored()

    def init(self, *, overwrite: bool = False) -> Path | None:
        if overwrite and self._marked():
            raise UsageError(
                f"{self.name} is a lake, whose files are never overwritten.", "Begin another one."
            )
        self.ensure()
        return None

    def fill(self) -> FilledRows:
        """Bring in what journals and the lake have, and send the lake what it has not."""
        if not self._marked():
            raise StoreError(
                f"There is no lake at {self.name}.",
                "Begin one with `accelbench db init` or `accelbench run`.",
            )
        if not exists(self.path):
            self._mirrored()
        with self._alone():
            in_step = self._in_step()
            if not in_step:
                self._mirrored()
            filled = super().fill()
            if not in_step or filled.results or filled.facts:
                self._send()
                filled += self._take()
                self._leave()
            return filled

    def merge(self, other: Path) -> FilledRows:
        self._fill_if_there()
        counts = super().merge(other)
        self._give()
        return counts

    def bring_in(
        self,
        run_id: str,
        facts: Iterable[Fact],
        bodies: Iterable[Mapping[str, Any]] = (),
        queries: Iterable[str] = (),
    ) -> FilledRows:
        self._fill_if_there()
        counts = super().bring_in(run_id, facts, bodies, queries)
        self._give()
        return counts

    def _give(self) -> None:
        """Send the lake what was just brought in; the mirror keeps it until that succeeds."""
        try:
            self.fill()
        except StoreError as error:
            raise StoreError(
                error.message,
                "What was brought in is kept on this machine; the next command that can write into"
                " the lake gives it what it has not.",
            ) from error

    def _fill_if_there(self) -> None:
        """Read the lake before anything is brought in, so that nothing is brought in again."""
        if self.there:
            self.fill()

    def status(self) -> dict[str, Any]:
        stems = {_stem(name) for folder in TABLES for name in self.place.names(folder)}
        return {**super().status(), "database": self.name, "lake_files": len(stems)}

    def compact(self) -> tuple[int, int]:
        """Write one file of all that there is; remove what an earlier one replaced.

        Return how many files are now one, and how many were removed.
        """
        self.fill()
        with self._alone():
            gone = {stem for stems in self._manifests().values() for stem in stems}
            removed = self._remove(gone)
            stems = sorted({_stem(n) for f in TABLES for n in self.place.names(f)} - gone)
            if len(stems) < 2:
                return 0, removed
            with connect(self.path, write=True, apart=True) as con, temporary_folder() as scratch:
                new = self._write(con, scratch, dict.fromkeys(TABLES, 0), "compact-")
                manifest = scratch / "manifest.json"
                manifest.write_text(json.dumps({"by": new, "replaces": stems}))
                _note_files(con, [f"{folder}/{new}.parquet" for folder in TABLES])
                self.place.put(manifest, f"{_MANIFESTS}/{new}.json")
            return len(stems), removed

    # -- the lake's own word

    def _marked(self) -> bool:
        """Return whether there is a lake that this version can read."""
        if MARKER not in self.place.names(""):
            return False
        with temporary_folder() as scratch:
            marker = self._json(MARKER, scratch)
        if marker.get("application") != APPLICATION:
            raise StoreError(f"{self.name} is another program's; it was left as it is.")
        version = marker.get("schema_version")
        refuse_version(self.name, version)
        return True

    def _begin(self) -> None:
        """Mark a place as a lake, unless something else is there."""
        if isinstance(self.place, FolderPlace) and self.place.names(""):
            if self._marked():  # another writer has begun it since it was looked for
                return
            raise StoreError(
                f"{self.name} is a folder with other things in it, and no lake.",
                "Name an empty folder, or a file for a database.",
            )
        with temporary_folder() as scratch:
            marker = scratch / MARKER
            about = {"schema_version": SCHEMA_VERSION, "created_at": utc_now()}
            marker.write_text(json.dumps({"application": APPLICATION, **about}))
            self.place.put(marker, MARKER)

    def _json(self, name: str, scratch: Path) -> dict[str, Any]:
        try:
            document = loads(self.place.local(name, scratch).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise self._unreadable(name, str(error)) from error
        return document if isinstance(document, dict) else {}

    def _unreadable(self, name: str, why: str) -> StoreError:
        advice = "Put back what it was, or take it away from there."
        return StoreError(f"{name} of {self.name} cannot be read ({why}).", advice)

    # -- the mirror

    def _mirrored(self) -> None:
        super().ensure()

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Let one process of this machine at a time know what was sent."""
        with whole_guard(self.path.with_name("sync"), _PATIENCE):
            yield

    @property
    def _left(self) -> Path:
        """The file that records the lake and the mirror when both had the same."""
        return self.path.with_name("in-step.json")

    def _in_step(self) -> bool:
        """Return whether nothing has changed since, without opening the mirror."""
        # To open one of ten million results and to find nothing took 0.5 s.
        try:
            return bool(json.loads(self._left.read_text(encoding="utf-8")) == self._looks())
        except (OSError, ValueError):
            return False

    def _leave(self) -> None:
        self._left.write_text(json.dumps(self._looks()), encoding="utf-8")

    def _looks(self) -> dict[str, Any]:
        """Return what can be seen of the lake and of the mirror from outside."""
        mirror = [self.path, self.path.with_name(f"{self.path.name}.wal")]
        stats = [path.stat() for path in mirror if path.exists()]
        return {
            "version": SCHEMA_VERSION,
            "lake": [f"{f}/{n}" for f in (*TABLES, _MANIFESTS) for n in self.place.names(f)],
            "mirror": [[stat.st_size, stat.st_mtime_ns] for stat in stats],
        }

    def _send(self) -> None:
        """Send the lake what is in the mirror and did not come from it."""
        with connect(self.path, write=True, apart=True) as con, temporary_folder() as scratch:
            con.execute(_OWN)
            sent = dict(con.execute("SELECT name, max(rows) FROM lake_sent GROUP BY 1").fetchall())
            stem = self._write(con, scratch, {folder: sent.get(folder, 0) for folder in TABLES})
            if stem:
                _note_files(con, [f"{folder}/{stem}.parquet" for folder in TABLES])
                _note_sent(con)

    def _write(
        self,
        con: DuckDBPyConnection,
        scratch: Path,
        since: Mapping[str, int],
        before: str = "",
    ) -> str:
        """Write files of all rows from these row ids on; return their stem, empty if there are
        none."""
        # Rows of a table are only added, so the earlier count shows which ones are new. To keep
        # their order took 4 GiB of ten million results, to sort them 12.
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

    def _take(self) -> FilledRows:
        """Bring in the lake's files that this mirror has not seen."""
        manifests = self._manifests()
        with connect(self.path, write=True, apart=True) as con, temporary_folder() as scratch:
            con.execute(_OWN)
            seen = {name for (name,) in con.execute("SELECT name FROM lake_file").fetchall()}
            known = {_stem(name) for name in seen}
            replaced = {stem for stems in manifests.values() for stem in stems}
            # What only puts together what is here already has nothing new in it.
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
                    name: self.place.local(name, scratch)
                    for name in names
                    if _stem(name) not in known_again
                }
                for folder, names in new.items()
            }
            filled = bring_files(con, files, self.name, self.path)
            _note_files(con, [name for names in new.values() for name in names])
            _note_sent(con)
            con.execute("COMMIT")
        return filled

    def _manifests(self) -> dict[str, list[str]]:
        """Return which stem replaces which."""
        replacements = {}
        with temporary_folder() as scratch:
            for name in self.place.names(_MANIFESTS):
                stems = self._json(f"{_MANIFESTS}/{name}", scratch).get("replaces", [])
                if not isinstance(stems, list) or not all(isinstance(stem, str) for stem in stems):
                    raise self._unreadable(f"{_MANIFESTS}/{name}", "replaces is no list of names")
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


def _note_files(con: DuckDBPyConnection, names: Sequence[str]) -> None:
    con.executemany("INSERT INTO lake_file VALUES (?)", [[name] for name in names])


def _note_sent(con: DuckDBPyConnection) -> None:
    """Note that the lake has all that the mirror holds now."""
    # Counted, since rows that are not committed yet have row ids of their own.
    for folder, (table, *_) in TABLES.items():
        con.execute(f"INSERT INTO lake_sent SELECT ?, count(*) FROM {table}", [folder])  # noqa: S608


def _stem(name: str) -> str:
    return name.rpartition("/")[2].partition(".")[0]

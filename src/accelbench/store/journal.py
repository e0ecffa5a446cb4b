"""Journal: one file per run, one line per fact, durable before anything is announced.

A line is the CRC-32 of the rest in eight hex digits, a space, and the fact as canonical JSON, which
has no line break. A crash leaves a torn tail: bytes after the last valid line, never announced.
Invalid bytes before a valid line were changed after they were written: such lines are reported and
left unchanged; the others stay readable.
"""

from __future__ import annotations

import json
import logging
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from accelbench.core.errors import StoreError, SurroundingsError
from accelbench.core.facts import FACT_VERSION, Fact
from accelbench.core.identity import canonical_json
from accelbench.core.safe_text import in_quotes
from accelbench.store.files import (
    DB_OPTION,
    REAL_FILES,
    Files,
    explain_os_error,
    explain_os_errors,
    read_from,
    try_lock,
    write_synced,
)

if TYPE_CHECKING:
    from accelbench.store.contradictions import Contradiction

SUFFIX = ".jsonl"
#: Folder of the journals of runs without a database.
BARE_JOURNALS = Path("accelbench.journal")
_CRC_LENGTH = 8
_FACT = re.compile(rb'\{"body":\{.*\},"id":".*","kind":".*","version":\d+\}')
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class FilledRows:
    """Numbers of rows that an ingest inserted, and problems of the journals."""

    results: int = 0
    facts: int = 0  # of other kinds
    journals: int = 0  # that had something new
    problems: tuple[str, ...] = ()
    repeated: int = 0  # results that equal others of the same source
    refused: int = 0  # impossible results, which are not stored
    refusals: tuple[Contradiction, ...] = ()  # those of another store
    copies: int = 0  # measured results that were already stored as imported copies

    def __add__(self, other: FilledRows) -> FilledRows:
        names = [each.name for each in fields(self)]
        return FilledRows(**{name: getattr(self, name) + getattr(other, name) for name in names})


def journal_dir_for(db_path: Path) -> Path:
    """Return the folder of the journals that belong to a database."""
    return db_path.with_name(db_path.name + ".journal")


def list_journals(folder: Path) -> list[Path]:
    """Return the journals of a folder, oldest run first."""
    with explain_os_errors("Looking for journals", folder, DB_OPTION):
        return sorted(folder.glob(f"*{SUFFIX}")) if folder.is_dir() else []


@dataclass(frozen=True)
class Line:
    """Valid line: its number from 1, its end in the file, and its payload."""

    # The fact is decoded on demand: a thousand samples are 8 kB of text here and 36 kB as Python
    # integers.

    number: int
    end: int
    payload: bytes

    @property
    def fact(self) -> Fact:
        record: dict[str, Any] = json.loads(self.payload)
        return Fact(record["kind"], record["id"], record["body"], record["version"])

    @property
    def version(self) -> int:
        """Version, read without decoding: in canonical JSON it is a fact's last key."""
        return int(self.payload[self.payload.rindex(b":") + 1 : -1])


@dataclass(frozen=True)
class Scan:
    """Contents of a journal from an offset on."""

    lines: tuple[Line, ...]
    corrupt: tuple[int, ...]  # numbers of invalid lines before a valid one
    end: int  # the offset after the last valid line; the rest is torn or incomplete
    last_number: int  # the number of the line that ends there
    size: int

    @property
    def facts(self) -> list[Fact]:
        return [line.fact for line in self.lines]

    @property
    def is_newer(self) -> bool:
        """Whether a newer accelbench wrote facts that this one may misread."""
        return any(line.version > FACT_VERSION for line in self.lines)


def encode(fact: Fact) -> bytes:
    """Return a fact as a journal line; raise StoreError for NaN and infinities."""
    record = {"kind": fact.kind, "id": fact.id, "version": fact.version, "body": fact.body}
    try:
        payload = canonical_json(record).encode()
    except (ValueError, TypeError) as error:
        raise StoreError(
            f"Fact {fact.kind} {fact.id} has a value that cannot be stored: {error}.",
            "Leave unknown values out.",
        ) from error
    return b"%08x %s\n" % (zlib.crc32(payload), payload)


def check_line(line: bytes) -> bytes | None:
    """Return the payload of a line without its line break; None if it is not valid."""
    crc, payload = line[:_CRC_LENGTH], line[_CRC_LENGTH + 1 :]
    if line[_CRC_LENGTH : _CRC_LENGTH + 1] != b" " or crc != b"%08x" % zlib.crc32(payload):
        return None
    # A valid checksum without a fact would be from another program.
    return payload if _FACT.fullmatch(payload) else None


def scan(path: Path, offset: int = 0, lines_before: int = 0) -> Scan:
    """Read a journal from the start of a line on; safe while another process writes it."""
    data = read_from(path, offset)
    lines: list[Line] = []
    suspects: list[int] = []
    corrupt: list[int] = []
    end, last_number = offset, lines_before
    for number, stop, raw in _whole_lines(data):
        payload = check_line(raw)
        if payload is None:
            suspects.append(lines_before + number)
            continue
        corrupt += suspects
        suspects = []
        end, last_number = offset + stop, lines_before + number
        lines.append(Line(last_number, end, payload))
    return Scan(tuple(lines), tuple(corrupt), end, last_number, offset + len(data))


def _whole_lines(data: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Yield number from 1, end offset and bytes of every complete line."""
    start = number = 0
    while (stop := data.find(b"\n", start)) >= 0:
        number += 1
        yield number, stop + 1, data[start:stop]
        start = stop + 1


def read(path: Path) -> list[Fact]:
    """Return every valid fact in order, without an incomplete last line."""
    contents = scan(path)
    if contents.corrupt:
        _log.warning("%s: lines %s do not check out", path, list(contents.corrupt))
    return contents.facts


class Journal:
    """Journal of a run, open for writing only by this process."""

    # The lock belongs to the open file: a forked child without exec shares it until it ends.

    def __init__(self, path: Path, fd: int, size: int, files: Files) -> None:
        self.path = path
        self._fd = fd
        self._size = size  # all bytes up to here are synced and belong to valid lines
        self._files = files
        self._dirty = False  # bytes of a failed append may lie beyond
        self._closed = False

    @property
    def run_id(self) -> str:
        return self.path.name.removesuffix(SUFFIX)

    @classmethod
    def create(cls, folder: Path, run_id: str, files: Files = REAL_FILES) -> Journal:
        """Create the journal of a new run; it is durable on return."""
        path = journal_path(folder, run_id)
        with explain_os_errors("Starting the journal", path, DB_OPTION):
            files.make_folder(folder)
            try:
                fd = files.open_new(path)
            except FileExistsError as error:
                raise SurroundingsError(
                    f"Run {run_id} has a journal already: {path}.", "Resume it, or start anew."
                ) from error
            _lock_or_refuse(fd, path, files)
            try:
                files.sync_folder(folder)
            except BaseException:
                files.close(fd)
                files.remove(path)  # it is empty, and another attempt needs the name
                raise
        return cls(path, fd, 0, files)

    @classmethod
    def resume(cls, folder: Path, run_id: str, files: Files = REAL_FILES) -> Journal:
        """Open a run's journal again. A torn tail is removed after a copy of it is kept."""
        path = journal_path(folder, run_id)
        if not path.is_file():
            raise SurroundingsError(
                f"There is no journal of run {run_id} in {folder}.",
                "`accelbench db status` shows the database in use.",
            )
        with explain_os_errors("Resuming the journal", path, DB_OPTION):
            fd = files.open_append(path)
            _lock_or_refuse(fd, path, files)
            try:
                contents = scan(path)
                if contents.size > contents.end:
                    _keep_torn(path, contents.end, files)
                    files.truncate(fd, contents.end)
                files.sync(fd)
            except BaseException:
                files.close(fd)
                raise
        return cls(path, fd, contents.end, files)

    def append(self, fact: Fact) -> None:
        """Append a fact durably. If it raises, the fact is not stored and may be appended again."""
        line = encode(fact)
        try:
            self._cut_back()
            self._dirty = True
            self._files.write(self._fd, line)
            self._files.sync(self._fd)
            self._dirty = False
            self._size += len(line)
        except OSError as error:
            self._cut_back_quietly()
            failure = explain_os_error(error, "Storing a result", self.path, DB_OPTION)
            failure.advice += " Earlier results are safe: the run can be resumed."
            raise failure from error

    def _cut_back(self) -> None:
        if self._dirty:
            self._files.truncate(self._fd, self._size)
            self._files.sync(self._fd)
            self._dirty = False

    def _cut_back_quietly(self) -> None:
        try:
            self._cut_back()
        except OSError as error:
            # It stays marked: the next append or resume removes the rest first.
            _log.debug("%s: cutting a failed append failed: %s", self.path, error)

    def facts(self) -> list[Fact]:
        return read(self.path)

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._files.close(self._fd)

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def journal_path(folder: Path, run_id: str) -> Path:
    """Return a run's journal; refuse a run id that is not a plain file name."""
    if not run_id or run_id.startswith(".") or any(c in run_id for c in "/\\\0:"):
        raise SurroundingsError(
            f"{in_quotes(run_id)} is not a run's id.",
            "Copy the id from the output of `accelbench run`.",
        )
    return folder / f"{run_id}{SUFFIX}"


def is_being_written(path: Path) -> bool:
    """Return whether a process has this journal open for writing."""
    fd = REAL_FILES.open_append(path)
    try:
        return not try_lock(fd)
    finally:
        REAL_FILES.close(fd)


def _lock_or_refuse(fd: int, path: Path, files: Files) -> None:
    if not try_lock(fd):
        files.close(fd)
        raise SurroundingsError(
            f"Another process is writing run {path.name.removesuffix(SUFFIX)} ({path}).",
            "Wait until it ends, or stop it; then resume.",
        )


def _keep_torn(path: Path, start: int, files: Files) -> None:
    torn = read_from(path, start)
    number = 1
    while (kept := path.with_name(f"{path.name.removesuffix(SUFFIX)}.torn-{number}")).exists():
        number += 1
    write_synced(files, kept, [torn])
    files.sync_folder(path.parent)
    _log.debug("%s: %d torn bytes moved to %s", path, len(torn), kept)

"""The cache of artefacts: a folder with one folder a key, and no more of them than fit.

    <cache>/artifacts/<key>/manifest.json, model.onnx, model.data …

An artefact is made in a folder of another name and renamed when it is whole, and renamed before it
is removed: what a killed process left half-made is never taken for one. Reading one touches it; the
longest untouched go first when there are too many bytes. What was opened within the hour stays, for
it may be read again.
"""

from __future__ import annotations

import contextlib
import errno
import json
import math
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from accelbench.core.errors import CaseError, UsageError
from accelbench.core.safe_text import in_quotes
from accelbench.engines.artifacts.recipe import FILE, Manifest, all_versions, load
from accelbench.engines.artifacts.workarounds import WORKAROUNDS
from accelbench.store.files import default_folder

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
_FORBIDDEN = frozenset({errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EEXIST})

#: What engines written in C++ say of it, in errors that are no OSError.
_FULL_WORDS = ("no space left on device", "disk quota exceeded")

#: All that OpenVINO says where it cannot write a whole model; what it wrote of it is gone then.
_UNSAID = "iostream error"

ELSEWHERE = "Put the cache elsewhere with ACCELBENCH_CACHE"


@contextmanager
def of_the_folder(folder: Path) -> Iterator[None]:
    """Raise trouble of writing as the folder's (disk_full, cache_unwritable), not the model's."""
    try:
        yield
    except CaseError:
        raise
    except Exception as error:
        trouble = place_trouble(error, folder)
        if trouble is None:
            raise
        raise trouble from error


def place_trouble(error: BaseException, folder: Path, need: int = 0) -> CaseError | None:
    """Return what an error says of the folder to write to; None if it says nothing of it.

    `need` is the bytes that were to be written, roughly.
    """
    for cause in _chain(error):
        words = str(cause).lower()
        full = any(phrase in words for phrase in _FULL_WORDS)
        full = full or (_UNSAID in words and shutil.disk_usage(folder).free < need)
        if full or (isinstance(cause, OSError) and cause.errno in _FULL):
            return CaseError(
                "disk_full",
                f"the disk of the cache {folder} is full",
                "Free some of it (accelbench's own artefacts there can go), or lower"
                f" ACCELBENCH_CACHE_GB. {ELSEWHERE}, on another disk.",
            )
        if isinstance(cause, OSError) and cause.errno in _FORBIDDEN and _within(cause, folder):
            return CaseError(
                "cache_unwritable",
                f"the cache {folder} cannot be written: {cause.strerror or cause}",
                f"Make it writable. {ELSEWHERE}.",
            )
    return None


def _within(error: OSError, folder: Path) -> bool:
    if error.filename is None:
        return True
    path = Path(str(error.filename)).absolute()
    return path.is_relative_to(folder) or folder.is_relative_to(path)


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def failed(reason: str, message: str, error: Exception, others: str) -> CaseError:
    """Return the error of an exporter or converter that did not get through, in one sentence."""
    lines = str(error).strip().splitlines() or [""]
    return CaseError(
        reason,
        f"{message}: {type(error).__name__}: {lines[0][:300]}",
        f"Other {others} were tried, or --no-fix kept them from it.",
    )


SIZE_VARIABLE = "ACCELBENCH_CACHE_GB"
DEFAULT_GB = 20.0

#: Whoever opened an artefact less than this ago may still be reading it.
_IN_USE_SECONDS = 3600.0
_HALF_MADE = ".making-"


def size_cap() -> int:
    """Return how many bytes may be kept."""
    text = os.environ.get(SIZE_VARIABLE, "")
    try:
        gigabytes = float(text) if text else DEFAULT_GB
    except ValueError:
        gigabytes = math.nan
    if not math.isfinite(gigabytes) or gigabytes < 0:
        raise UsageError(
            f"{SIZE_VARIABLE} is {in_quotes(text)}, which is no number of gigabytes.",
            "Give gigabytes, such as 20; 0 keeps nothing longer than an hour.",
        )
    return int(gigabytes * 2**30)


@dataclass(frozen=True)
class Kept:
    """One artefact in the cache."""

    folder: Path
    manifest: Manifest


class Cache:
    """The artefacts of one folder."""

    def __init__(self, folder: Path | None = None, cap: int | None = None) -> None:
        self.folder = (folder or default_folder()) / "artifacts"
        self.cap = size_cap() if cap is None else cap

    def find(self, key: str) -> Kept | None:
        """Return what is kept under a key; one that cannot be read is as good as none."""
        folder = self.folder / key
        try:
            manifest = load(folder)
            whole = manifest.key == key and (folder / manifest.file).is_file()
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            return None
        if not whole:
            return None
        with contextlib.suppress(OSError):
            os.utime(folder / FILE)
        return Kept(folder, manifest)

    @contextmanager
    def making(self, key: str) -> Iterator[Path]:
        """Yield a folder to make an artefact in; it is kept under its key if nothing is raised.

        Two processes that make the same one at once both succeed, and one is kept.
        """
        with of_the_folder(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            making = Path(tempfile.mkdtemp(prefix=f"{_HALF_MADE}{key}-", dir=self.folder))
            try:
                yield making
                self._keep(making, key)
                self.shrink(keep=key)
            finally:
                shutil.rmtree(making, ignore_errors=True)

    def _keep(self, making: Path, key: str) -> None:
        target = self.folder / key
        try:
            making.rename(target)
        except OSError:
            if self.find(key) is not None:
                return
            self._discard(target)  # what is there cannot be read, and would be there for ever
            try:
                making.rename(target)
            except OSError:
                if self.find(key) is None:
                    raise

    def discard(self, key: str) -> None:
        if (self.folder / key).is_dir():
            with contextlib.suppress(OSError):
                self._discard(self.folder / key)

    def _discard(self, folder: Path) -> bool:
        """Remove a folder so that nobody finds half of it; return whether it is gone."""
        grave = Path(tempfile.mkdtemp(prefix=_HALF_MADE, dir=self.folder))
        try:
            folder.rename(grave / "gone")  # refused on Windows while somebody reads it
        except OSError:
            return not folder.exists()
        finally:
            shutil.rmtree(grave, ignore_errors=True)
        return True

    def remembered(self, cell: str) -> tuple[str, ...] | None:
        """Return the workarounds that a cell needed before; None if it never was here.

        What was needed with other versions of the packages may not be needed now.
        """
        try:
            record = json.loads((self._memory / f"{cell}.json").read_text(encoding="utf-8"))
            names, made_with = tuple(record["workarounds"]), record["versions"]
            known = {fix.name for fix in WORKAROUNDS}.issuperset(names)
        except (OSError, ValueError, TypeError, KeyError):
            return None
        return names if known and made_with == all_versions() else None

    def remember(self, cell: str, workarounds: Sequence[str]) -> None:
        # A cache that cannot be written only costs the next run a failure.
        body = {"workarounds": list(workarounds), "versions": all_versions()}
        with contextlib.suppress(OSError):
            self._memory.mkdir(parents=True, exist_ok=True)
            half = self._memory / f"{_HALF_MADE}{cell}-{os.getpid()}-{threading.get_ident()}"
            half.write_text(json.dumps(body), encoding="utf-8")
            half.replace(self._memory / f"{cell}.json")

    @property
    def _memory(self) -> Path:
        return self.folder.parent / "workarounds"

    def entries(self) -> list[tuple[Path, int, float]]:
        """Return folder, bytes and the time of last use, longest unused first."""
        folders = []
        for folder in self.folder.iterdir() if self.folder.is_dir() else ():
            with contextlib.suppress(OSError):  # another process is removing it
                files = [path.stat() for path in folder.rglob("*") if path.is_file()]
                marker = folder / FILE
                # What is being made is as young as the file that is being written.
                used = marker.stat().st_mtime if marker.exists() else _youngest(folder, files)
                folders.append((folder, sum(file.st_size for file in files), used))
        return sorted(folders, key=lambda entry: entry[2])

    def shrink(self, keep: str = "") -> list[Path]:
        """Remove what is too much, and what killed processes left; return what was removed."""
        entries, gone = self.entries(), []
        too_much = sum(size for _, size, _ in entries) - self.cap
        for folder, size, used in entries:
            idle = time.time() - used > _IN_USE_SECONDS
            half_made = folder.name.startswith(_HALF_MADE)
            if folder.name == keep or not idle or not (half_made or too_much > 0):
                continue
            if self._discard(folder):
                too_much -= size
                gone.append(folder)
        return gone

    def clear(self) -> int:
        """Remove everything, workarounds too; return how many bytes there were."""
        total = sum(size for _, size, _ in self.entries())
        for folder in (self.folder, self._memory):
            shutil.rmtree(folder, ignore_errors=True)
        return total


def _youngest(folder: Path, files: Sequence[os.stat_result]) -> float:
    return max([folder.stat().st_mtime, *(file.st_mtime for file in files)])

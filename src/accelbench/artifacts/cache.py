"""Where artefacts are kept: a folder with one folder a key, and no more of them than fit.

    <cache>/artifacts/<key>/manifest.json, model.onnx, model.data …

An artefact is made in a folder of another name and renamed when it is whole: what a
killed process left half-made is never taken for one. Reading one touches it; the
longest untouched go first when there are too many bytes.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from accelbench.artifacts.manifest import FILE, Manifest, load
from accelbench.artifacts.workarounds import WORKAROUNDS
from accelbench.core.errors import UsageError

FOLDER_VARIABLE = "ACCELBENCH_CACHE"
SIZE_VARIABLE = "ACCELBENCH_CACHE_GB"
DEFAULT_GB = 20.0

#: Whoever opened an artefact less than this ago may still be reading it.
_IN_USE_SECONDS = 3600.0
_HALF_MADE = ".making-"


def default_folder() -> Path:
    """Where this user's caches are."""
    named = os.environ.get(FOLDER_VARIABLE)
    if named:
        return Path(named).expanduser().absolute()
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA", "~/AppData/Local"))
    elif sys.platform == "darwin":
        base = Path("~/Library/Caches")
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache")
    return base.expanduser() / "accelbench"


def size_cap() -> int:
    """How many bytes may be kept."""
    text = os.environ.get(SIZE_VARIABLE, "")
    try:
        gigabytes = float(text) if text else DEFAULT_GB
    except ValueError:
        raise UsageError(
            f"{SIZE_VARIABLE} is {text!r}, which is no number.", "Give gigabytes, such as 20."
        ) from None
    return int(max(gigabytes, 0.0) * 2**30)


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
        """What is kept under a key; one that cannot be read is as good as none."""
        folder = self.folder / key
        try:
            manifest = load(folder)
        except (OSError, ValueError, TypeError, KeyError):
            return None
        with contextlib.suppress(OSError):
            os.utime(folder / FILE)
        return Kept(folder, manifest)

    @contextmanager
    def making(self, key: str) -> Iterator[Path]:
        """A folder to make an artefact in; kept under its key if nothing is raised.

        Two processes that make the same one at once both succeed, and one is kept.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        workshop = self.folder / f"{_HALF_MADE}{key}-{os.getpid()}"
        shutil.rmtree(workshop, ignore_errors=True)
        workshop.mkdir()
        try:
            yield workshop
            try:
                workshop.rename(self.folder / key)
            except OSError:
                if self.find(key) is None:
                    raise
            self.shrink(keep=key)
        finally:
            shutil.rmtree(workshop, ignore_errors=True)

    def remembered(self, cell: str) -> tuple[str, ...] | None:
        """The workarounds that a cell went through with before; None if it never was here."""
        try:
            found = json.loads((self._memory / f"{cell}.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        known = {one.name for one in WORKAROUNDS}
        return tuple(found) if isinstance(found, list) and known.issuperset(found) else None

    def remember(self, cell: str, workarounds: Sequence[str]) -> None:
        """Keep them; a cache that cannot be written only costs the next run a failure."""
        with contextlib.suppress(OSError):
            self._memory.mkdir(parents=True, exist_ok=True)
            half = self._memory / f"{_HALF_MADE}{cell}-{os.getpid()}"
            half.write_text(json.dumps(list(workarounds)), encoding="utf-8")
            half.replace(self._memory / f"{cell}.json")

    @property
    def _memory(self) -> Path:
        return self.folder.parent / "workarounds"

    def entries(self) -> list[tuple[Path, int, float]]:
        """Folder, bytes and the time of last use, longest unused first."""
        found = []
        for folder in self.folder.iterdir() if self.folder.is_dir() else ():
            with contextlib.suppress(OSError):  # another process is removing it
                size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
                marker = folder / FILE
                used = (marker if marker.exists() else folder).stat().st_mtime
                found.append((folder, size, used))
        return sorted(found, key=lambda entry: entry[2])

    def shrink(self, keep: str = "") -> list[Path]:
        """Remove what is too much, and what killed processes left; what was removed."""
        entries, gone = self.entries(), []
        too_much = sum(size for _, size, _ in entries) - self.cap
        for folder, size, used in entries:
            idle = time.time() - used > _IN_USE_SECONDS
            half_made = folder.name.startswith(_HALF_MADE)
            if folder.name == keep or not idle or not (half_made or too_much > 0):
                continue
            shutil.rmtree(folder, ignore_errors=True)
            too_much -= size
            gone.append(folder)
        return gone

    def clear(self) -> int:
        """Remove everything; how many bytes there were."""
        total = sum(size for _, size, _ in self.entries())
        shutil.rmtree(self.folder, ignore_errors=True)
        return total

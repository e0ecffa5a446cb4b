"""Places of a lake's files: a folder, or a prefix of an object store that fsspec knows.

A file is written once, whole, and never changed: nobody ever sees half of one.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from accelbench.core.errors import MissingExtraError, StoreError
from accelbench.store.files import DB_OPTION, REAL_FILES, Files, copy_whole, explained

#: A path loses one of the two slashes of a URL.
_URL = re.compile(r"^([a-z][a-z0-9+.-]+):/{1,3}(.*)$")
_LOCAL = "file"
#: What has the protocols that are asked for most.
_PACKAGES = {
    **dict.fromkeys(("s3", "s3a"), "s3fs"),
    **dict.fromkeys(("gs", "gcs"), "gcsfs"),
    **dict.fromkeys(("abfs", "abfss", "az", "adl"), "adlfs"),
    **dict.fromkeys(("sftp", "ssh"), "paramiko"),
}


@dataclass(frozen=True)
class FolderPlace:
    """A folder, perhaps of a shared file system. A file's name has at most one folder in it."""

    folder: Path
    files: Files = field(default=REAL_FILES, repr=False, compare=False)

    @property
    def name(self) -> str:
        """Its name for people."""
        return str(self.folder)

    def names(self, folder: str) -> list[str]:
        inside = self.folder / folder
        with explained("Looking into the lake", inside, DB_OPTION):
            entries = inside.iterdir() if inside.is_dir() else ()
            return sorted(entry.name for entry in entries if not entry.name.startswith("."))

    def put(self, written: Path, name: str) -> None:
        """Make a local file appear under a name, whole."""
        wanted = self.folder / name
        beside = wanted.with_name(f".{wanted.name}.{os.getpid()}")
        with explained("Writing into the lake", wanted, DB_OPTION):
            self.files.make_folder(wanted.parent)
            self.files.remove(beside)
            copy_whole(self.files, written, beside)
            self.files.rename(beside, wanted)
            self.files.sync_folder(wanted.parent)

    def local(self, name: str, scratch: Path) -> Path:
        """Return a file to read, fetched into a scratch folder if necessary."""
        return self.folder / name

    def remove(self, name: str) -> None:
        with explained("Removing from the lake", self.folder / name, DB_OPTION):
            self.files.remove(self.folder / name)


@dataclass(frozen=True)
class RemotePlace:
    """A prefix of whatever fsspec has a protocol for: s3, gs, abfs, sftp and more."""

    url: str

    @property
    def name(self) -> str:
        return self.url

    def names(self, folder: str) -> list[str]:
        with self._reached() as (fs, root):
            inside = f"{root}/{folder}".rstrip("/")
            fs.invalidate_cache()
            try:
                paths = fs.ls(inside, detail=False)
            except FileNotFoundError:
                return []
            names = (str(path).rstrip("/").rpartition("/")[2] for path in paths)
            return sorted(name for name in names if not name.startswith("."))

    def put(self, written: Path, name: str) -> None:
        with self._reached() as (fs, root):
            wanted = f"{root}/{name}"
            if not root.startswith("/"):
                # A store of objects, whose path begins with the bucket: it shows an object when all
                # of it is there, and it needs no folders. To ask for them would make a bucket of
                # every slip of the pen (s3fs).
                fs.put_file(str(written), wanted)
                return
            folder, _, last = wanted.rpartition("/")
            beside = f"{folder}/.{last}.{os.getpid()}"
            fs.makedirs(folder, exist_ok=True)
            fs.put_file(str(written), beside)
            fs.mv(beside, wanted)

    def local(self, name: str, scratch: Path) -> Path:
        fetched = scratch / name.replace("/", "-")
        with self._reached() as (fs, root):
            fs.get_file(f"{root}/{name}", str(fetched))
        return fetched

    def remove(self, name: str) -> None:
        with self._reached() as (fs, root):
            try:
                fs.rm_file(f"{root}/{name}")
            except FileNotFoundError:
                return

    @contextmanager
    def _reached(self) -> Iterator[tuple[Any, str]]:
        protocol = self.url.partition(":")[0]
        try:
            import fsspec

            fs, root = fsspec.core.url_to_fs(self.url)
            yield fs, str(root).rstrip("/")
        except ImportError as error:
            if getattr(error, "name", None) == "fsspec":
                raise MissingExtraError("fsspec", "lake", f"A lake at {self.url}") from error
            package = _PACKAGES.get(protocol)
            raise StoreError(
                f"What fsspec needs for {protocol}:// is not installed.",
                f"Install it: pip install {package}" if package else str(error),
            ) from error
        except ValueError as error:
            raise StoreError(f"{self.url} is nothing that can be reached: {error}.") from error
        except Exception as error:
            if isinstance(error, StoreError):
                raise
            message = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise StoreError(
                f"{self.url} cannot be reached ({message}).",
                "Look at the address, the credentials and the network.",
            ) from error


StorePlace = FolderPlace | RemotePlace


def url_of(word: Path | str) -> str | None:
    """Return the URL that a command line's path was; None for a path."""
    match = _URL.match(str(word))
    if match is None or len(match[1]) < 2:  # a drive's letter
        return None
    return f"{match[1]}://{'/' if match[1] == _LOCAL else ''}{match[2].lstrip('/')}"


def place_of(word: Path | str) -> StorePlace | None:
    """Return the place of a lake: a URL, or a folder that exists; None for anything else."""
    url = url_of(word)
    if url is not None and not url.startswith(f"{_LOCAL}:"):
        return RemotePlace(url.rstrip("/"))
    path = Path(url.partition("://")[2]) if url else Path(word)
    path = path.expanduser().resolve()
    return FolderPlace(path) if url or path.is_dir() else None

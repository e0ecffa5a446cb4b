"""Locations of a lake's files: a folder, or a prefix of an object store that fsspec supports.

A file is written once and completely, and never changed: no reader ever sees half of one.
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
from accelbench.store.files import DB_OPTION, REAL_FILES, Files, copy_synced, explain_os_errors

#: A URL; a path object loses one of its two slashes.
_URL = re.compile(r"^([a-z][a-z0-9+.-]+):/{1,3}(.*)$")
_LOCAL = "file"
#: Packages of the most common protocols.
_PACKAGES = {
    **dict.fromkeys(("s3", "s3a"), "s3fs"),
    **dict.fromkeys(("gs", "gcs"), "gcsfs"),
    **dict.fromkeys(("abfs", "abfss", "az", "adl"), "adlfs"),
    **dict.fromkeys(("sftp", "ssh"), "paramiko"),
}


@dataclass(frozen=True)
class FolderPlace:
    """Folder, perhaps on a shared file system. A file's name has at most one folder in it."""

    folder: Path
    files: Files = field(default=REAL_FILES, repr=False, compare=False)

    @property
    def name(self) -> str:
        """Display name."""
        return str(self.folder)

    def names(self, folder: str) -> list[str]:
        """Return the files of a folder; none if it does not exist."""
        inside = self.folder / folder
        with explain_os_errors("Looking into the lake", inside, DB_OPTION):
            entries = inside.iterdir() if inside.is_dir() else ()
            return sorted(entry.name for entry in entries if not entry.name.startswith("."))

    def put(self, written: Path, name: str) -> None:
        """Give a complete local file its name here."""
        wanted = self.folder / name
        beside = wanted.with_name(f".{wanted.name}.{os.getpid()}")
        with explain_os_errors("Writing into the lake", wanted, DB_OPTION):
            self.files.make_folder(wanted.parent)
            self.files.remove(beside)
            copy_synced(self.files, written, beside)
            self.files.rename(beside, wanted)
            self.files.sync_folder(wanted.parent)

    def fetch(self, name: str, scratch: Path) -> Path:
        """Return a local file to read, downloaded into a scratch folder if necessary."""
        return self.folder / name

    def remove(self, name: str) -> None:
        """Remove a file, if it exists."""
        with explain_os_errors("Removing from the lake", self.folder / name, DB_OPTION):
            self.files.remove(self.folder / name)


@dataclass(frozen=True)
class RemotePlace:
    """Prefix of a URL with any protocol that fsspec supports: s3, gs, abfs, sftp and more."""

    url: str

    @property
    def name(self) -> str:
        return self.url

    def names(self, folder: str) -> list[str]:
        with self._connection() as (fs, root):
            inside = f"{root}/{folder}".rstrip("/")
            fs.invalidate_cache()
            try:
                paths = fs.ls(inside, detail=False)
            except FileNotFoundError:
                return []
            names = (str(path).rstrip("/").rpartition("/")[2] for path in paths)
            return sorted(name for name in names if not name.startswith("."))

    def put(self, written: Path, name: str) -> None:
        with self._connection() as (fs, root):
            wanted = f"{root}/{name}"
            if not root.startswith("/"):
                # An object store, whose path begins with the bucket: it shows only complete
                # objects, and needs no folders. Creating folders would make a bucket for every typo
                # (s3fs).
                fs.put_file(str(written), wanted)
                return
            folder, _, last = wanted.rpartition("/")
            beside = f"{folder}/.{last}.{os.getpid()}"
            fs.makedirs(folder, exist_ok=True)
            fs.put_file(str(written), beside)
            fs.mv(beside, wanted)

    def fetch(self, name: str, scratch: Path) -> Path:
        fetched = scratch / name.replace("/", "-")
        with self._connection() as (fs, root):
            fs.get_file(f"{root}/{name}", str(fetched))
        return fetched

    def remove(self, name: str) -> None:
        with self._connection() as (fs, root):
            try:
                fs.rm_file(f"{root}/{name}")
            except FileNotFoundError:
                return

    @contextmanager
    def _connection(self) -> Iterator[tuple[Any, str]]:
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
                f"The package that fsspec needs for {protocol}:// is not installed.",
                f"Install it: pip install {package}" if package else str(error),
            ) from error
        except ValueError as error:
            raise StoreError(f"{self.url} is not a valid address: {error}.") from error
        except Exception as error:
            if isinstance(error, StoreError):
                raise
            message = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise StoreError(
                f"{self.url} cannot be reached ({message}).",
                "Check the address, the credentials and the network.",
            ) from error


StorePlace = FolderPlace | RemotePlace


def parse_url(word: Path | str) -> str | None:
    """Return the URL that a command line's path was; None for a path."""
    match = _URL.match(str(word))
    if match is None or len(match[1]) < 2:  # a drive letter
        return None
    return f"{match[1]}://{'/' if match[1] == _LOCAL else ''}{match[2].lstrip('/')}"


def parse_place(word: Path | str) -> StorePlace | None:
    """Return the location of a lake: a URL, or an existing folder; None for others."""
    url = parse_url(word)
    if url is not None and not url.startswith(f"{_LOCAL}:"):
        return RemotePlace(url.rstrip("/"))
    path = Path(url.partition("://")[2]) if url else Path(word)
    path = path.expanduser().resolve()
    return FolderPlace(path) if url or path.is_dir() else None

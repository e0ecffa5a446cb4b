"""The engine's files and a browser, fetched once into the user's cache and checked.

    <cache>/browser/onnxruntime-web-1.30.0/…
    <cache>/browser/chromium-153.0.0/chromium, libvk_swiftshader.so …

A folder is made under another name and renamed when it is whole: one that is there is whole.
"""

from __future__ import annotations

import base64
import hashlib
import io
import os
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

from accelbench.core.errors import SurroundingsError
from accelbench.runtimes.browser.pins import CHROMIUM, ENGINE, Package, chromium_runs_here
from accelbench.store.folders import default_folder

COMMAND = "accelbench setup browser"
_NPM_SECONDS = 600.0

Pack = Callable[[Package, Path], Path]


def folder_of(package: Package, base: Path | None = None) -> Path:
    """Where a package's files lie once they are here."""
    name = package.name.rpartition("/")[2]
    return (base or default_folder()) / "browser" / f"{name}-{package.version}"


def engine_folder(base: Path | None = None) -> Path | None:
    """onnxruntime-web, if it is here."""
    folder = folder_of(ENGINE, base)
    return folder if folder.is_dir() else None


def fetched_browser(base: Path | None = None) -> Path | None:
    """The browser that was fetched, if one was."""
    program = folder_of(CHROMIUM, base) / "chromium"
    return program if program.is_file() else None


def wanted(with_browser: bool) -> list[Package]:
    """What has to be here."""
    return [ENGINE, *([CHROMIUM] if with_browser and chromium_runs_here() else [])]


def fetch(package: Package, base: Path | None = None, pack: Pack | None = None) -> Path:
    """Have a package's files here; one that is here is not fetched again.

    Args:
        package: which.
        base: the cache's folder, if not the user's own.
        pack: puts the package's archive into a folder; npm does, unless told otherwise.

    Raises:
        SurroundingsError: npm or the network is missing, or what came is not what was asked for.
    """
    folder = folder_of(package, base)
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".making-", dir=folder.parent) as made:
        archive = (pack or npm_pack)(package, Path(made))
        _hold(package, archive)
        into = Path(made) / "files"
        into.mkdir()
        _unpack(package, archive, into)
        try:
            into.rename(folder)
        except OSError:
            if not folder.is_dir():  # another process was faster, and has the same
                raise
    return folder


def npm_pack(package: Package, into: Path) -> Path:
    """The archive as npm gives it."""
    npm = shutil.which("npm")
    if npm is None:
        raise SurroundingsError(
            f"npm is not installed, and {package} is fetched with it.",
            f"Install Node.js (https://nodejs.org, or: apt install npm) and run: {COMMAND}",
        )
    try:
        done = subprocess.run(
            [npm, "pack", "--silent", "--pack-destination", str(into), str(package)],
            capture_output=True,
            text=True,
            timeout=_NPM_SECONDS,
            check=False,
            cwd=into,
            stdin=subprocess.DEVNULL,
            env={**os.environ, "NO_UPDATE_NOTIFIER": "1"},
        )
    except subprocess.TimeoutExpired as error:
        raise _not_fetched(package, f"npm took more than {_NPM_SECONDS:g} s") from error
    found = sorted(into.glob("*.tgz"))
    if done.returncode or not found:
        said = [line for line in done.stderr.splitlines() if "error" in line.lower()]
        raise _not_fetched(package, said[0] if said else f"npm ended with {done.returncode}")
    return found[0]


def _not_fetched(package: Package, why: str) -> SurroundingsError:
    return SurroundingsError(
        f"{package} could not be fetched: {why}.",
        f"Check the network and npm's registry (npm ping), then run: {COMMAND}",
    )


def _hold(package: Package, archive: Path) -> None:
    kind, _, expected = package.integrity.partition("-")
    with archive.open("rb") as file:
        found = base64.b64encode(hashlib.file_digest(file, kind).digest()).decode()
    if found != expected:
        raise SurroundingsError(
            f"What came as {package} is not what was asked for: its {kind} is {found[:16]}…"
            f" and not {expected[:16]}…. Nothing of it is kept.",
            "The registry or the way to it gives other files: npm config get registry.",
        )


def _unpack(package: Package, archive: Path, into: Path) -> None:
    with tarfile.open(archive, "r:gz") as held:
        for inside, name in package.files.items():
            file = held.extractfile(inside)
            assert file is not None, inside
            with file:
                _put(name, file.read(), into)


def _put(name: str, data: bytes, into: Path) -> None:
    """A file as it is; one that is compressed or an archive as what it holds."""
    if name.endswith(".br"):
        name, data = name.removesuffix(".br"), _decompressed(data)
    if name.endswith(".tar"):
        with tarfile.open(fileobj=io.BytesIO(data)) as held:
            # In one folder: the libraries are looked for beside the program.
            for member in _files(held):
                file = held.extractfile(member)
                assert file is not None
                _write(into / Path(member.name).name, file.read(), member.mode)
        return
    _write(into / name, data, 0o755 if "." not in name else 0o644)


def _files(held: tarfile.TarFile) -> Iterable[tarfile.TarInfo]:
    return (member for member in held.getmembers() if member.isfile())


def _write(path: Path, data: bytes, mode: int) -> None:
    path.write_bytes(data)
    path.chmod(0o755 if mode & 0o100 else 0o644)


def _decompressed(data: bytes) -> bytes:
    try:
        import brotli
    except ImportError as error:
        raise SurroundingsError(
            "The package brotli is not installed, and the browser comes compressed with it.",
            "Install it with: pip install 'accelbench[browser]'",
        ) from error
    found: bytes = brotli.decompress(data)
    return found

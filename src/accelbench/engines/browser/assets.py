"""The files of the browser engine: packages of npm, fetched once into the cache and checked.

A folder is made under another name and renamed when it is whole: one that is there is whole.
Packages come from the registry of the user's npm settings, and are compared with their sums before
anything of them is unpacked.
"""

from __future__ import annotations

import base64
import hashlib
import io
import os
import platform
import re
import shutil
import sys
import tarfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path, PureWindowsPath
from types import MappingProxyType
from typing import IO

from accelbench.core import processes
from accelbench.core.errors import MissingExtraError, SurroundingsError
from accelbench.store.files import FOLDER_VARIABLE, Scratch, default_folder


@dataclass(frozen=True)
class Package:
    """One package of the registry."""

    name: str
    version: str
    integrity: str  # its archive's SHA-512, as npm writes it
    files: Mapping[str, str]  # what is taken: where it lies in the archive, and its name here
    licence: str  # of what is taken
    # what fetches it, for who is told that it could not be fetched
    command: str = "accelbench setup browser"

    def __str__(self) -> str:
        return f"{self.name}@{self.version}"


def _same(folder: str, *names: str) -> Mapping[str, str]:
    return MappingProxyType({f"package/{folder}/{name}": name for name in names})


ENGINE = Package(
    "onnxruntime-web",
    "1.30.0",
    "sha512-q0y+JrrtukXSzsBWEMccVfqX25LRmosXHF+CaRJmg8pZClzcV7svNc4rKY3jL02Vb7QmRMDs1SigqR4CXAfKYQ==",
    _same(
        "dist",
        "ort.wasm.min.mjs",
        "ort-wasm-simd-threaded.mjs",
        "ort-wasm-simd-threaded.wasm",
        "ort.webgpu.min.mjs",
        "ort-wasm-simd-threaded.asyncify.mjs",
        "ort-wasm-simd-threaded.asyncify.wasm",
    ),
    "MIT",
)

#: A headless Chromium with WebGPU in software and a WebNN that computes on the CPU. It is here
#: for machines without a browser of their own; a newer or an older one is not the same: 147
#: crashed on BERT's mask in WebNN. The second and third are archives, unpacked beside the first.
CHROMIUM = Package(
    "@sparticuz/chromium",
    "153.0.0",
    "sha512-jiGWqSvPMdu4+P9TilYqAR7yEGPEHINx+lCvE/NqNO/EHYzF/x1hUiI5T6ioVIt7dEy7n88byyT0vk+dnsgQwA==",
    _same("bin", "chromium.br", "swiftshader.tar.br", "al2023.tar.br"),
    "MIT; Chromium: BSD-3 and others",
)


def chromium_runs_here(system: str = sys.platform, machine: str | None = None) -> bool:
    """Return whether the packaged browser is for this machine: Linux on x86-64 alone."""
    return system == "linux" and (machine or platform.machine()).lower() in ("x86_64", "amd64")


COMMAND = "accelbench setup browser"
_NPM_SECONDS = 600.0
#: What npm puts before each line of an error, and the lines that only number it.
_NPM_PREFIX = re.compile(r"npm (?:error|ERR!) ?(?:(?:code|syscall|errno|path|dest)\b.*)?")

Pack = Callable[[Package, Path], Path]


def folder_of(package: Package, base: Path | None = None) -> Path:
    """Return where a package's files lie once they are here."""
    name = package.name.rpartition("/")[2]
    return (base or default_folder()) / "browser" / f"{name}-{package.version}"


def engine_folder(base: Path | None = None) -> Path | None:
    """Return the folder of onnxruntime-web, if it is here."""
    folder = folder_of(ENGINE, base)
    return folder if folder.is_dir() else None


def wanted(with_browser: bool) -> list[Package]:
    """Return the packages that have to be here."""
    return [ENGINE, *([CHROMIUM] if with_browser and chromium_runs_here() else [])]


def fetch(package: Package, base: Path | None = None, pack: Pack | None = None) -> Path:
    """Fetch a package's files unless they are here, and return their folder."""
    folder = folder_of(package, base)
    if folder.is_dir():
        return folder
    _refuse_what_cannot_be_unpacked(package)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        scratch = Scratch(folder.parent)  # removes what one that was killed has left, too
        try:
            _make(package, folder, scratch.folder, pack or npm_pack)
        finally:
            scratch.close()
    except OSError as error:
        raise SurroundingsError(
            f"{package} could not be written into {folder}: {error.strerror or error}.",
            f"Make room there, or name another place: export {FOLDER_VARIABLE}=FOLDER",
        ) from error
    return folder


def _make(package: Package, folder: Path, made: Path, pack: Pack) -> None:
    archive = pack(package, made)
    _hold(package, archive)
    into = made / "files"
    into.mkdir()
    _unpack(package, archive, into)
    try:
        into.rename(folder)
    except OSError:
        if not folder.is_dir():  # another process was faster, and has the same
            raise


def npm_pack(package: Package, into: Path) -> Path:
    """Return the archive as npm gives it."""
    npm = shutil.which("npm")
    if npm is None:
        raise SurroundingsError(
            f"npm is not installed, and {package} is fetched with it.",
            f"Install Node.js (https://nodejs.org, or: apt install npm) and run: {package.command}",
        )
    try:
        done = processes.run(
            # Not --silent: then npm does not say either why it failed.
            [npm, "pack", "--loglevel=error", "--pack-destination", str(into), str(package)],
            _NPM_SECONDS,
            folder=into,
            environment={**os.environ, "NO_UPDATE_NOTIFIER": "1"},
        )
    except OSError as error:
        raise _not_fetched(package, f"npm cannot be started: {error.strerror or error}") from error
    except processes.TimeoutExpired as error:
        raise _not_fetched(package, f"npm took more than {_NPM_SECONDS:g} s") from error
    archives = sorted(into.glob("*.tgz"))
    if done.returncode or not archives:
        raise _not_fetched(package, _why(done.stderr) or f"npm ended with {done.returncode}")
    return archives[0]


def _why(text: str) -> str:
    lines = [_NPM_PREFIX.sub("", line, count=1).strip().rstrip(".") for line in text.splitlines()]
    log = [line for line in lines if line]
    return next((line for line in log if "failed" in line or "reason:" in line), "".join(log[:1]))


def _not_fetched(package: Package, why: str) -> SurroundingsError:
    return SurroundingsError(
        f"{package} could not be fetched: {why}.",
        f"Check the network and npm's registry (npm ping), then run: {package.command}",
    )


def _hold(package: Package, archive: Path) -> None:
    kind, _, expected = package.integrity.partition("-")
    with archive.open("rb") as file:
        digest = base64.b64encode(hashlib.file_digest(file, kind).digest()).decode()
    if digest != expected:
        raise SurroundingsError(
            f"What came as {package} is not what was asked for: its {kind} is {digest[:16]}…"
            f" and not {expected[:16]}…. Nothing of it is kept.",
            "The registry or the way to it gives other files: npm config get registry.",
        )


def _unpack(package: Package, archive: Path, into: Path) -> None:
    with tarfile.open(archive, "r:gz") as held:
        for inside, name in package.files.items():
            _put(name, _read(held, inside), into)


def _put(name: str, data: bytes, into: Path) -> None:
    """Write a file, or what it holds if it is compressed or an archive."""
    if name.endswith(".br"):
        name, data = name.removesuffix(".br"), _decompressed(data)
    if name.endswith(".tar"):
        with tarfile.open(fileobj=io.BytesIO(data)) as held:
            # In one folder: the libraries are looked for beside the program.
            for member, last in _files(held):
                _write(into / last, _read(held, member), member.mode)
        return
    _write(into / name, data, 0o755 if "." not in name else 0o644)


def _files(held: tarfile.TarFile) -> Iterator[tuple[tarfile.TarInfo, str]]:
    """Yield each file and the last part of its name, which leads out of no folder."""
    for member in held.getmembers():
        last = PureWindowsPath(member.name).name  # parts at either system's strokes
        if member.isfile() and last not in ("", "..", "."):
            yield member, last


def _read(held: tarfile.TarFile, member: str | tarfile.TarInfo) -> bytes:
    file: IO[bytes] | None = held.extractfile(member)
    assert file is not None, member
    with file:
        return file.read()


def _write(path: Path, data: bytes, mode: int) -> None:
    path.write_bytes(data)
    path.chmod(0o755 if mode & 0o100 else 0o644)


def _refuse_what_cannot_be_unpacked(package: Package) -> None:
    packed = any(name.endswith(".br") for name in package.files.values())
    if packed and find_spec("brotli") is None:
        raise MissingExtraError("brotli", "browser", f"Unpacking {package}")


def _decompressed(data: bytes) -> bytes:
    import brotli

    content: bytes = brotli.decompress(data)
    return content

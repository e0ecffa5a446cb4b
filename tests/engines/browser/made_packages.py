"""Packages that no registry has: small archives as npm would give them."""

from __future__ import annotations

import base64
import hashlib
import io
import tarfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from accelbench.engines.browser.assets import Package

Members = Mapping[str, bytes | tarfile.TarInfo]


def tar(members: Members, kind: str = "w", mode: int = 0o644) -> bytes:
    """An archive; a member is its content, or a link or a folder as it is."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode=kind) as archive:
        for name, content in members.items():
            if isinstance(content, tarfile.TarInfo):
                archive.addfile(content)
                continue
            about = tarfile.TarInfo(name)
            about.size, about.mode = len(content), mode
            archive.addfile(about, io.BytesIO(content))
    return made.getvalue()


def integrity(data: bytes) -> str:
    return "sha512-" + base64.b64encode(hashlib.sha512(data).digest()).decode()


class Registry:
    """Has one package, and counts how often it is asked for it."""

    def __init__(
        self, members: Members, taken: tuple[str, ...] = (), name: str = "@some/engine"
    ) -> None:
        self.archive = tar({f"package/bin/{key}": one for key, one in members.items()}, "w:gz")
        files = {f"package/bin/{key}": key for key in taken or members}
        self.package = Package(name, "1.2.3", integrity(self.archive), files, "MIT")
        self.asked = 0
        #: What happens while the archive is on its way.
        self.meanwhile: Callable[[], object] = lambda: None

    @property
    def forged(self) -> Package:
        """The package as somebody expects it who pinned another."""
        return replace(self.package, integrity=integrity(b"another"))

    def pack(self, package: Package, into: Path) -> Path:
        self.asked += 1
        path = into / "archive.tgz"
        path.write_bytes(self.archive)
        self.meanwhile()
        return path

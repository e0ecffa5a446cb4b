"""Files that lose power: before, after or in the middle of any operation.

`PowerLoss` counts the operations that matter and stops the world at one of
them; `lose` then puts the folder into a state that a power cut could have left:

- "drop": nothing survives that was not synced: bytes since the last sync of the
  file, names since the last sync of the folder.
- "half": names survive all, and of unsynced bytes the first half.

Bytes that DuckDB writes itself, with its own syncs, are left as they are.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from accelbench.store.files import Files


class PowerCutError(BaseException):
    """Not an Exception: no handler may catch a power cut."""


class PowerLoss(Files):
    def __init__(self, root: Path, at: int | None = None, moment: str = "before") -> None:
        self.root = root
        self.at, self.moment = at, moment
        self.count = 0
        self.log: list[str] = []
        self.dead = False
        self.names: dict[int, dict[str, int]] = {}  # folder → durable names
        self.bytes: dict[int, bytes] = {}  # file → durable bytes, for files written here
        self.written: set[int] = set()
        self.kept: dict[
            int, int
        ] = {}  # file → descriptor: its inode is not reused, it stays readable
        for folder, _, files in os.walk(root):
            self._note_names(Path(folder))
            for name in files:
                self._keep(Path(folder) / name)

    # -- what is durable

    def _note_names(self, folder: Path) -> None:
        self.names[folder.stat().st_ino] = {p.name: p.stat().st_ino for p in folder.iterdir()}

    def _keep(self, path: Path) -> None:
        inode = path.stat().st_ino
        if inode not in self.kept:
            self.kept[inode] = os.open(path, os.O_RDONLY)

    def _read(self, inode: int) -> bytes:
        fd = self.kept[inode]
        return os.pread(fd, os.fstat(fd).st_size, 0)

    # -- one operation

    def _do(self, what: str, apply: Callable[[], object], half: Callable[[], object]) -> None:
        if self.dead:
            raise PowerCutError
        self.log.append(what)
        mine = self.count == self.at
        self.count += 1
        if mine and self.moment == "before":
            self._die()
        if mine and self.moment == "middle":
            half()
            self._die()
        apply()
        if mine:
            self._die()

    def _die(self) -> None:
        self.dead = True
        raise PowerCutError

    def open_new(self, path: Path) -> int:
        opened: list[int] = []

        def apply() -> None:
            opened.append(Files.open_new(self, path))
            self._keep(path)
            self.written.add(path.stat().st_ino)

        try:
            self._do(f"open_new {path.name}", apply, lambda: None)
        except PowerCutError:
            for fd in opened:
                os.close(fd)
            raise
        return opened[0]

    def open_append(self, path: Path) -> int:
        if self.dead:
            raise PowerCutError
        self._keep(path)
        return super().open_append(path)

    def write(self, fd: int, data: bytes) -> None:
        inode = os.fstat(fd).st_ino
        if inode not in self.written:
            self.written.add(inode)
            self.bytes[inode] = self._read(inode)  # what was there before is durable
        real = super().write
        self._do("write", lambda: real(fd, data), lambda: real(fd, data[: len(data) // 2]))

    def truncate(self, fd: int, size: int) -> None:
        inode = os.fstat(fd).st_ino
        if inode not in self.written:
            self.written.add(inode)
            self.bytes[inode] = self._read(inode)
        real = super().truncate
        self._do("truncate", lambda: real(fd, size), lambda: None)

    def sync(self, fd: int) -> None:
        inode = os.fstat(fd).st_ino

        def apply() -> None:
            self.bytes[inode] = self._read(inode)

        self._do("sync", apply, lambda: None)

    def close(self, fd: int) -> None:
        os.close(fd)

    def make_folder(self, path: Path) -> None:
        if not path.is_dir():
            self._do(f"make_folder {path.name}", path.mkdir, lambda: None)
            self.names.setdefault(path.stat().st_ino, {})
            self.sync_folder(path.parent)

    def sync_folder(self, path: Path) -> None:
        self._do("sync_folder", lambda: self._note_names(path), lambda: None)

    def rename(self, old: Path, new: Path) -> None:
        for path in (old, new):
            if path.is_file():
                self._keep(path)
        self._do(f"rename to {new.name}", lambda: old.replace(new), lambda: None)

    def link(self, old: Path, new: Path) -> None:
        self._do(f"link {new.name}", lambda: os.link(old, new), lambda: None)

    def remove(self, path: Path) -> None:
        if path.exists():
            self._keep(path)
        self._do(f"remove {path.name}", lambda: path.unlink(missing_ok=True), lambda: None)

    # -- after the cut

    def lose(self, mode: str) -> None:
        """Put the folder into a state that the cut could have left."""
        if mode == "drop":
            self._rebuild()
        for folder, _, files in os.walk(self.root):
            for name in files:
                path = Path(folder) / name
                inode = path.stat().st_ino
                if inode in self.written:
                    path.write_bytes(self._surviving(inode, mode))
        for fd in self.kept.values():
            os.close(fd)

    def _surviving(self, inode: int, mode: str) -> bytes:
        durable, now = self.bytes.get(inode, b""), self._read(inode)
        if mode == "drop":
            return durable
        if now.startswith(durable):
            return now[: len(durable) + (len(now) - len(durable)) // 2]
        return now

    def _rebuild(self) -> None:
        """Give every folder its durable names; DuckDB's own log files stay as they are."""
        content = {inode: self._read(inode) for inode in self.kept}
        remembered = self.written
        logs = {p.name: p.read_bytes() for p in self.root.glob("*.wal")}
        current = {p.stat().st_ino: p.read_bytes() for p in self.root.rglob("*") if p.is_file()}
        content = {**current, **content}
        durable = {inode: self.bytes.get(inode, b"") for inode in remembered}

        def restore(folder: Path, inode: int) -> None:
            folder.mkdir(exist_ok=True)
            for name, child in self.names.get(inode, {}).items():
                if child in self.names:
                    restore(folder / name, child)
                elif not name.endswith(".wal"):
                    (folder / name).write_bytes(durable.get(child, content.get(child, b"")))

        root = self.root.stat().st_ino
        for path in self.root.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        restore(self.root, root)
        for name, data in logs.items():
            (self.root / name).write_bytes(data)
        self.written = set()  # restored already


def every_cut(
    make: Callable[[], Path], act: Callable[[Path, PowerLoss], None], *, after: bool = True
) -> Iterator[tuple[Path, str]]:
    """Act once to count the operations, then once per way of losing power in it.

    Args:
        make: Makes the folder to act in, anew for every cut.
        act: What is cut.
        after: Whether to cut after every operation too, and not only after the last.

    Yields:
        The folder after the cut, and where the cut was.
    """
    dry = PowerLoss(make())
    act(dry.root, dry)
    for fd in dry.kept.values():
        os.close(fd)
    assert dry.count > 2, "nothing to cut"
    for at, what in enumerate(dry.log):
        last = at == dry.count - 1
        moments = ["before", *["middle"] * (what == "write"), *["after"] * (after or last)]
        for moment in moments:
            for mode in ("drop", "half"):
                files = PowerLoss(make(), at, moment)
                with suppress(PowerCutError):
                    act(files.root, files)
                assert files.dead, f"the cut {moment} {at} {what} did not happen"
                files.lose(mode)
                yield files.root, f"{moment} {at} ({what}), {mode}"


def cut_when_done(make: Callable[[], Path], act: Callable[[Path, PowerLoss], None]) -> Path:
    """The folder as a cut leaves it right after the act has returned: what it did must last."""
    files = PowerLoss(make())
    act(files.root, files)
    files.lose("drop")
    return files.root


class Failing(Files):
    """Files whose n-th operation of a kind fails with an errno, writes after writing half."""

    def __init__(self, operation: str, number: int, code: int, times: int = 1) -> None:
        self.operation, self.numbers, self.code = operation, range(number, number + times), code
        self.count = 0

    def _fails(self, operation: str) -> bool:
        if operation != self.operation:
            return False
        self.count += 1
        return self.count - 1 in self.numbers

    def write(self, fd: int, data: bytes) -> None:
        if self._fails("write"):
            super().write(fd, data[: len(data) // 2])
            raise OSError(self.code, os.strerror(self.code))
        super().write(fd, data)

    def sync(self, fd: int) -> None:
        if self._fails("sync"):
            raise OSError(self.code, os.strerror(self.code))
        super().sync(fd)

    def truncate(self, fd: int, size: int) -> None:
        if self._fails("truncate"):
            raise OSError(self.code, os.strerror(self.code))
        super().truncate(fd, size)

    def open_new(self, path: Path) -> int:
        if self._fails("open_new"):
            raise OSError(self.code, os.strerror(self.code))
        return super().open_new(path)

    def rename(self, old: Path, new: Path) -> None:
        if self._fails("rename"):
            raise OSError(self.code, os.strerror(self.code))
        super().rename(old, new)

    def link(self, old: Path, new: Path) -> None:
        if self._fails("link"):
            raise OSError(self.code, os.strerror(self.code))
        super().link(old, new)

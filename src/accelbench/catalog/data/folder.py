"""What lies in a folder of real inputs: images, sounds and texts, by name and class. Reads none."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from accelbench.core import jsonc
from accelbench.core.errors import SurroundingsError, UsageError

_IMAGES = frozenset([".jpg", ".jpeg", ".png", ".webp", ".bmp", ".gif", ".tif", ".tiff", ".ppm"])
_SOUNDS = frozenset([".wav", ".flac", ".ogg", ".mp3"])
_TEXTS = frozenset([".txt", ".jsonl"])

#: The best split first: what a model was not trained on is what it meets in use.
#: ImageNet-100 is often spread over "train.X1" … "train.X4" and "val.X".
_SPLITS = (
    re.compile(r"(val|valid|validation|dev)([._-].*)?", re.IGNORECASE),
    re.compile(r"(test)([._-].*)?", re.IGNORECASE),
    re.compile(r"(train|training)([._-].*)?", re.IGNORECASE),
)


@dataclass(frozen=True)
class Entry:
    """One file."""

    path: Path
    name: str  # relative to the folder, with slashes: the order is by it, on every machine
    label: str = ""  # the class folder it lies in

    @property
    def folder(self) -> str:
        """The folder right above it."""
        return self.name.rpartition("/")[0]


@dataclass(frozen=True)
class Folder:
    """Everything of use in a folder, each kind sorted by name."""

    path: Path
    images: tuple[Entry, ...] = ()
    sounds: tuple[Entry, ...] = ()
    texts: tuple[Entry, ...] = ()  # without the transcripts of sounds
    titles: Mapping[str, str] = field(default_factory=dict)  # class folder → its name in words

    @property
    def holds(self) -> str:
        """What is there, in words."""
        kinds = (("images", self.images), ("sound", self.sounds), ("text", self.texts))
        return " and ".join(name for name, entries in kinds if entries)

    def title(self, label: str) -> str:
        """A class in words."""
        return self.titles.get(label) or label.replace("_", " ").replace("-", " ")


def classes_of(entries: Iterable[Entry]) -> tuple[str, ...]:
    """The class folders, sorted; none where a file lies in none."""
    labels = {entry.label for entry in entries}
    return () if "" in labels else tuple(sorted(labels))


def look(path: str | Path) -> Folder:
    """List a folder of inputs, or take a single file for one.

    Class folders may lie in the folder itself or in its splits: of `val`, `test`
    and `train`, the first that holds anything is taken.

    Raises:
        UsageError: there is nothing at the path, or nothing of use.
        SurroundingsError: it may not be read.
    """
    root = Path(path).expanduser()
    if root.is_file():
        entries = [Entry(root, root.name)]
    elif root.is_dir():
        try:
            entries = _listed(root)
        except OSError as error:
            raise SurroundingsError(
                f"{root} cannot be read: {error.strerror}.", "Check its permissions."
            ) from error
    else:
        raise UsageError(f"There is nothing at {root}.", "Name a folder of images, sound or text.")
    folder = _sorted_out(root, entries)
    if not folder.holds:
        raise UsageError(
            f"{root} holds no images, sound or text.",
            "Images lie in class folders; sound is .wav, .flac, .ogg or .mp3; text .txt or .jsonl.",
        )
    return folder


def _listed(root: Path) -> list[Entry]:
    splits = _splits(root)
    for tops in splits:
        entries = [entry for top in tops for entry in _below(top, root)]
        if any(_kind(entry) for entry in entries):
            return entries
    return list(_below(root, root))


def _splits(root: Path) -> list[list[Path]]:
    """The folders of each split, the best first; none where a folder is no split.

    A class may be called "train": only where every folder is a split are they splits.
    """
    folders = sorted(p for p in root.iterdir() if p.is_dir() and not p.name.startswith("."))
    named = [[p for p in folders if pattern.fullmatch(p.name)] for pattern in _SPLITS]
    if not folders or sum(len(group) for group in named) < len(folders):
        return []
    return [group for group in named if group]


def _below(top: Path, root: Path) -> Iterator[Entry]:
    """Every file below; links to folders are followed, as ImageNet-100 is often made of them."""
    seen: set[str] = set()
    for where, folders, files in os.walk(top, followlinks=True):
        real = os.path.realpath(where)
        if real in seen:
            folders.clear()
            continue
        seen.add(real)
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in files:
            if not name.startswith("."):
                path = Path(where, name)
                inside = path.relative_to(top).parts
                label = inside[0] if len(inside) > 1 else ""
                yield Entry(path, path.relative_to(root).as_posix(), label)


def _kind(entry: Entry) -> str:
    ending = entry.path.suffix.lower()
    for kind, endings in (("images", _IMAGES), ("sounds", _SOUNDS), ("texts", _TEXTS)):
        if ending in endings:
            return kind
    return ""


def _sorted_out(root: Path, entries: Iterable[Entry]) -> Folder:
    kinds: dict[str, list[Entry]] = {"images": [], "sounds": [], "texts": [], "": []}
    for entry in sorted(entries, key=lambda e: e.name):
        kinds[_kind(entry)].append(entry)
    spoken = {entry.path.with_suffix(".txt") for entry in kinds["sounds"]}
    return Folder(
        path=root,
        images=tuple(kinds["images"]),
        sounds=tuple(kinds["sounds"]),
        texts=tuple(e for e in kinds["texts"] if e.path not in spoken),
        titles=_titles(root),
    )


def _titles(root: Path) -> dict[str, str]:
    """ImageNet-100's Labels.json, where there is one: {"n01440764": "tench, Tinca tinca"}."""
    file = root / "Labels.json"
    try:
        labels = jsonc.read(file) if file.is_file() else None  # a pipe would be waited for
    except (OSError, ValueError):
        return {}
    if not isinstance(labels, dict):
        return {}
    return {k: v.partition(",")[0].strip() for k, v in labels.items() if isinstance(v, str)}

"""The content of a folder of real inputs, by name and class, and of the folders next to a model."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from accelbench.core import jsonc
from accelbench.core.errors import CaseError, SurroundingsError, UsageError
from accelbench.core.model import ModelSpec
from accelbench.core.run_options import JobSettings
from accelbench.core.safe_text import in_quotes
from accelbench.models.find import cached_folder

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
        kinds = (("images", self.images), ("sound", self.sounds), ("text", self.texts))
        return " and ".join(name for name, entries in kinds if entries)

    def title(self, label: str) -> str:
        return self.titles.get(label) or label.replace("_", " ").replace("-", " ")


def classes_of(entries: Iterable[Entry]) -> tuple[str, ...]:
    """Return the class folders, sorted, or none if a file lies in none."""
    labels = {entry.label for entry in entries}
    return () if "" in labels else tuple(sorted(labels))


def look(path: str | Path) -> Folder:
    """List a folder of inputs, or take a single file as one; refuse a path without any.

    Class folders may lie in the folder itself or in its splits: the first of `val`, `test` and
    `train` that holds anything is taken.
    """
    root = Path(path).expanduser()
    if root.is_file():
        entries = [Entry(root, root.name)]
    elif root.is_dir():
        try:
            entries = _list_files(root)
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


def _list_files(root: Path) -> list[Entry]:
    splits = _splits(root)
    for tops in splits:
        entries = [entry for top in tops for entry in _below(top, root)]
        if any(_kind(entry) for entry in entries):
            return entries
    return list(_below(root, root))


def _splits(root: Path) -> list[list[Path]]:
    """Return the folders of each split, the best first, or none if a folder is not a split.

    A class may be called "train": folders are splits only if all of them are.
    """
    folders = sorted(p for p in root.iterdir() if p.is_dir() and not p.name.startswith("."))
    named = [[p for p in folders if pattern.fullmatch(p.name)] for pattern in _SPLITS]
    if not folders or sum(len(group) for group in named) < len(folders):
        return []
    return [group for group in named if group]


def _below(top: Path, root: Path) -> Iterator[Entry]:
    """Yield every file below; follow links to folders, because ImageNet-100 often has them."""
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
    """Read ImageNet-100's Labels.json: {"n01440764": "tench, Tinca tinca"}."""
    file = root / "Labels.json"
    try:
        labels = jsonc.read(file) if file.is_file() else None  # a pipe would be waited for
    except (OSError, ValueError):
        return {}
    if not isinstance(labels, dict):
        return {}
    return {k: v.partition(",")[0].strip() for k, v in labels.items() if isinstance(v, str)}


#: One class a line, in the order of the model's: where that of the classes' names is another.
CLASSES = "classes.txt"


def folders_beside(model: ModelSpec, settings: JobSettings) -> list[Path]:
    """Return the folders that may say how a model is fed, the nearest first."""
    if model.file is not None:
        return [Path(model.file.path).parent]
    if model.code is not None:
        return [Path(model.code.path).parent] if model.code.path else []
    found = [model.folder] if model.folder else []
    if settings.weights == "hub":
        cached = (cached_folder(hub_id) for hub_id in model.hub_ids)
        return [*map(Path, found), *(folder for folder in cached if folder is not None)]
    if settings.weights != "random":
        found.append(settings.weights)
    return [Path(folder).expanduser() for folder in found]


def read_beside(folders: Sequence[Path], name: str) -> Mapping[str, Any]:
    """Return a JSON object next to a model, or an empty one if none can be read."""
    for folder in folders:
        path = folder / name
        if path.is_file():
            try:
                read = jsonc.read(path, allow_infinity=True)
            except (OSError, ValueError):
                return {}
            return read if isinstance(read, Mapping) else {}
    return {}


def number_classes(
    root: Path, names: Sequence[str], model: ModelSpec, folders: Sequence[Path]
) -> tuple[Mapping[str, int], int | None, str]:
    """Return a number for each class, the number of the model's classes, and what orders them.

    Raises CaseError if a file classes.txt lacks a class.
    """
    path = root / CLASSES
    if path.is_file():
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
        order = [line.strip() for line in lines if line.strip()]
        unknown = [name for name in names if name not in order]
        if unknown:
            raise CaseError(
                "data_mismatch",
                f"{path.name} has no line for the class {in_quotes(unknown[0])}.",
                "Write a line a class, in the order of the model's classes.",
            )
        return {name: order.index(name) for name in names}, len(order), path.name
    known = model.config.get("label2id")
    if known is None and model.is_user_model:
        known = read_beside(folders, "config.json").get("label2id")
    if isinstance(known, Mapping) and all(isinstance(known.get(name), int) for name in names):
        return {name: int(known[name]) for name in names}, None, "label2id of its config.json"
    by_name = f"the order of their names ({CLASSES} says another)"
    return {name: number for number, name in enumerate(names)}, len(names), by_name

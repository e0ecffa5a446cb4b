"""Rows of pictures: single ones, frames of a video, tiles of a large one; with labels or captions.

`images.py` knows pixels, this file knows folders and what a model is fed.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from accelbench.catalog.data import images
from accelbench.catalog.data.captions import Captions, Fed
from accelbench.catalog.data.folder import Entry, Folder, classes_of
from accelbench.catalog.data.rows import Saw, contents, label_of, number
from accelbench.core.errors import UnsupportedError
from accelbench.core.model import ModelSpec

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class _View:
    """What one item's pixels become."""

    height: int
    width: int
    frames: int | None = None  # of a video
    whole: tuple[int, int] | None = None  # height and width of a picture that is seen in tiles
    grid: tuple[int, int] = (0, 0)  # what it is laid on


class PictureReader:
    """One item is one picture, or `frames` of them in a row from one folder."""

    def __init__(
        self,
        folder: Folder,
        spec: ModelSpec,
        fed: Fed,
        captions: Captions | None,
    ) -> None:
        self.notes: list[str] = []
        self.classes = classes_of(folder.images)
        self._folder = folder
        self._view = _view(spec, fed)
        self._how = images.preprocessing(spec) or images.usual_preprocessing()
        if images.preprocessing(spec) is None:
            self.notes.append(f"Nothing is published for {spec.id}: normalised as for ImageNet.")
        self._items = _items(folder.images, self._view.frames, self.notes)
        self.count = len(self._items)
        self._captions = captions
        labels = fed.get("labels")
        self._labels: dict[str, int] = {}
        if labels is not None and len(labels[1]) == 1:
            self._labels = label_of(labels[0], self.classes, "images", self.notes)
        self.gives = frozenset(
            {"pixel_values"}
            | (set(self._captions.gives) if self._captions else set())
            | ({"labels"} if self._labels else set())
        )
        self.facts: Mapping[str, Any] = {
            "kind": "images",
            "files": len(folder.images),
            "classes": len(self.classes),
            "mean": list(self._how.mean),
            "std": list(self._how.std),
        }

    def name(self, index: int) -> str:
        return self._items[index][0].name

    def read(self, index: int, saw: Saw) -> dict[str, Array]:
        entries = self._items[index]
        decoded = []
        for entry in entries:
            data = contents(entry.path)
            decoded.append(images.decode(data))
            saw(data)
        row = {"pixel_values": self._pixels(decoded)}
        label = entries[0].label
        if self._captions is not None:
            row |= self._captions.rows(f"a photo of a {self._folder.title(label)}")
        if self._labels:
            row["labels"] = number(self._labels[label])
        return row

    def _pixels(self, decoded: Sequence[Any]) -> Array:
        import numpy as np

        view, how = self._view, self._how
        if view.whole is not None:
            return np.stack(images.tiled(decoded[0], view.whole, view.grid, view.height, how))
        made = [
            images.normalised(images.fitted(image, view.height, view.width, how), how)
            for image in decoded
        ]
        return made[0] if view.frames is None else np.stack(made)


def _view(spec: ModelSpec, fed: Fed) -> _View:
    shape = fed["pixel_values"][1]
    *lead, channels, height, width = shape[1:]
    sizes = fed["image_sizes"][0].row if "image_sizes" in fed else None
    if channels == 3 and not lead:
        return _View(height, width)
    if channels == 3 and len(lead) == 1:
        if sizes is None:
            return _View(height, width, frames=lead[0])
        size = (int(sizes[0]), int(sizes[1]))
        grid = images.best_grid(size, spec.config.get("image_grid_pinpoints") or [size])
        if height == width and lead[0] == 1 + (grid[0] // height) * (grid[1] // width):
            return _View(height, width, whole=size, grid=grid)
    raise UnsupportedError(
        "no_real_inputs",
        f"{spec.id} takes pixels of shape {tuple(shape[1:])}, which no recipe makes of pictures.",
        "Leave out --data.",
    )


def _counted(name: str) -> list[tuple[int, str]]:
    """A name as people count: frame 10 comes after frame 9."""
    parts = re.split(r"(\d+)", name)
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in parts]


def _items(
    entries: Sequence[Entry], frames: int | None, notes: list[str]
) -> list[tuple[Entry, ...]]:
    """Single pictures, or windows of consecutive ones of a folder as a video's frames."""
    if frames is None:
        return [(entry,) for entry in entries]
    items: list[tuple[Entry, ...]] = []
    by_folder = sorted(entries, key=lambda e: (e.folder, _counted(e.name)))
    for _, group in itertools.groupby(by_folder, key=lambda e: e.folder):
        members = list(group)
        if len(members) < frames:
            spread = [members[i * len(members) // frames] for i in range(frames)]
            items.append(tuple(spread))
        else:
            starts = range(0, len(members) - frames + 1, frames)
            items += [tuple(members[start : start + frames]) for start in starts]
    short = sum(len(set(item)) < frames for item in items)
    if short:
        notes.append(f"{short} of {len(items)} videos have fewer than {frames} frames: some twice.")
    return items

"""Labelled pictures: a folder per class, as torchvision's ImageFolder and ImageNet have it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from accelbench.catalog.data import images
from accelbench.catalog.data.beside import folders_beside, numbered
from accelbench.catalog.data.folder import Entry, Folder, classes_of
from accelbench.catalog.data.labelled import chosen, settled
from accelbench.catalog.data.picture_recipe import ADVICE, CONFIG, PictureRecipe, recipe_of
from accelbench.catalog.data.rows import UnreadableError, contents, need
from accelbench.catalog.inputs import input_shapes, tensors
from accelbench.core.case import Case
from accelbench.core.errors import CaseError
from accelbench.core.job_settings import JobSettings

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

#: Names of skipped files that a result carries; all are counted.
_NAMED = 5


class LabelledPictures:
    """The pictures of a folder, each the input of one sample.

    Args:
        folder: whose pictures all lie in class folders.
        case: whose model is fed.
        settings: of the job.
    """

    def __init__(self, folder: Folder, case: Case, settings: JobSettings) -> None:
        need("PIL.Image", "pillow", "data", "Reading images")
        self._name, self._view = _picture_input(case)
        self._recipe = _recipe(case, settings, self._view)
        entries = folder.images
        names = classes_of(entries)
        self._numbers, self.classes, ordered_by = numbered(
            folder.path, names, case.model, folders_beside(case.model, settings)
        )
        places = chosen(len(entries), settings.accuracy_samples, settings.seed)
        self._entries: Sequence[Entry] = [entries[place] for place in places]
        self.count: int | None = len(places)
        self._skipped: dict[str, str] = {}
        self._drawn = len(places) < len(entries)
        self._all = len(entries)
        self._ordered_by = ordered_by
        self._sum = hashlib.sha256()

    @property
    def notes(self) -> list[str]:
        """What a reader of the result should know; what was skipped is known once all was read."""
        notes = [self._recipe.note, f"Classes are numbered by {self._ordered_by}."]
        if self._drawn:
            notes.append(f"{self.count} of {self._all} samples were drawn for accuracy.")
        if self._skipped:
            notes.append(f"Skipped, as unreadable: {len(self._skipped)} of {self.count} pictures.")
        return notes

    @property
    def facts(self) -> Mapping[str, Any]:
        """How they were made into inputs."""
        recipe = self._recipe
        return {
            "kind": "images",
            "files": self._all,
            "classes_in_folder": len(self._numbers),
            "classes_by": self._ordered_by,
            "preprocessing": {
                "by": recipe.name,
                "mean": list(recipe.mean),
                "std": list(recipe.std),
                "scale": recipe.scale,
                "filter": recipe.filter,
                "stretched": recipe.stretched,
                "margin": recipe.margin,
            },
            "skipped": dict(list(self._skipped.items())[:_NAMED]),
        }

    def rows(self) -> Iterator[tuple[Mapping[str, Array], Array]]:
        import numpy as np

        # All of the recipe, of which its note leaves the margin out.
        self._sum = hashlib.sha256(repr((self._recipe, self._view)).encode())
        self._skipped = {}
        height, width, channels, last = self._view
        for entry in self._entries:
            number = self._numbers[entry.label]
            try:
                data = contents(entry.path)
                pixels = self._recipe.pixels(images.decode(data), height, width, channels)
            except UnreadableError as error:
                self._skipped[entry.name] = str(error)
                continue
            self._sum.update(hashlib.sha256(data).digest() + number.to_bytes(8, "big"))
            shaped = pixels.transpose(1, 2, 0) if last else pixels
            yield {self._name: np.ascontiguousarray(shaped)}, np.asarray(number, np.int64)
        if len(self._skipped) == len(self._entries):
            name, why = next(iter(self._skipped.items()))
            raise CaseError(
                "data_unreadable",
                f"None of the {len(self._entries)} pictures can be read; {name}: {why}.",
                "Check that the files are whole.",
            )

    def digest(self) -> str:
        return self._sum.hexdigest()[:16]


def _picture_input(case: Case) -> tuple[str, tuple[int, int, int, bool]]:
    """The input that takes pictures: its name, height, width, channels, and whether those are last.

    Raises:
        CaseError: there is none, or another input whose values matter.
    """
    shapes = input_shapes(case.model, case.shapes, case.mode)
    open_ = [t for t in tensors(case.model, case.shapes, case.mode) if not settled(t)]
    if len(open_) == 1 and open_[0].dtype in ("float", "float32", "float16"):
        name, shape = open_[0].name, shapes[open_[0].name]
        if len(shape) == 4 and shape[0] == case.shapes.batch:
            if shape[1] in (1, 3):
                return name, (shape[2], shape[3], shape[1], False)
            if shape[3] in (1, 3):
                return name, (shape[1], shape[2], shape[3], True)
    taken = ", ".join(f"{t.name} {list(shapes[t.name])}" for t in open_)
    raise CaseError(
        "data_mismatch",
        f"{case.model.id} takes {taken}, which no picture of 1 or 3 channels is.",
        "Store its inputs and labels in an .npz file, and name that with --data.",
    )


def _recipe(case: Case, settings: JobSettings, view: tuple[int, int, int, bool]) -> PictureRecipe:
    model = case.model
    found = recipe_of(settings.preprocessing, folders_beside(model, settings))
    published = None if model.is_own else images.preprocessing(model)
    if found is None and published is not None:
        found = PictureRecipe(
            f"its publishers of {model.id}",
            published.mean,
            published.std,
            filter=published.filter,
            margin=published.margin,
        )
    if found is None:
        raise CaseError(
            "data_mismatch",
            f"Nothing says how pictures are prepared for {model.id}: there is no {CONFIG}"
            " beside it.",
            ADVICE,
        )
    height, width, channels, _ = view
    if found.size is not None and found.size != (height, width):
        raise CaseError(
            "data_mismatch",
            f"{CONFIG} makes pictures of {found.size[0]} × {found.size[1]}, and {model.id} is fed"
            f" {height} × {width}.",
            f"Ask for that size with --image-sizes {found.size[0]}, or name another recipe.",
        )
    if channels == 1 and max(len(found.mean), len(found.std)) > 1:
        raise CaseError(
            "data_mismatch",
            f"{found.name} has three means, and {model.id} takes pictures of one channel.",
            ADVICE,
        )
    return found

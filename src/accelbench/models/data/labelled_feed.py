"""Labelled samples of a job: folders of pictures and sounds, and the batch that is timed."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from accelbench.core.case import Case
from accelbench.core.columns import AccuracyMetric
from accelbench.core.errors import CaseError
from accelbench.core.model import InputSpec
from accelbench.core.run_options import JobSettings
from accelbench.core.vocabulary import Mode
from accelbench.models.data import pictures
from accelbench.models.data.folder import (
    Entry,
    Folder,
    classes_of,
    folders_beside,
    look,
    number_classes,
)
from accelbench.models.data.labelled import LabelledArrays, LabelledData, batch_of, chosen, is_fixed
from accelbench.models.data.labelled_text import LabelledTexts, TextWindows
from accelbench.models.data.pictures import ADVICE, CONFIG, PictureRecipe, recipe_of
from accelbench.models.data.rows import SUFFIX, DataFeed, UnreadableError, contents, need
from accelbench.models.data.sounds import SoundRecipe, sound_recipe
from accelbench.models.data.text import TABLES, TextFiles, TextTable, is_text_table
from accelbench.models.inputs import input_shapes, tensors

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]


T = TypeVar("T")
#: Names of skipped files that a result carries; all are counted.
_NAMED = 5


class _LabelledFiles:
    """Files of a folder per class, each the input of one sample.

    A subclass sets `_name` and `_recipe` before it calls this constructor.
    """

    kind: str
    noun: str
    _name: str
    _recipe: SoundRecipe | PictureRecipe

    def __init__(
        self, folder: Folder, entries: Sequence[Entry], case: Case, settings: JobSettings
    ) -> None:
        beside = folders_beside(case.model, settings)
        numbers = number_classes(folder.path, classes_of(entries), case.model, beside)
        self._numbers, self.classes, self._by = numbers
        places = chosen(len(entries), settings.accuracy_samples, settings.seed)
        self._entries: Sequence[Entry] = [entries[place] for place in places]
        self._all = len(entries)
        self.count: int | None = len(places)
        self._skipped: dict[str, str] = {}
        self._sum = hashlib.sha256()

    @property
    def notes(self) -> list[str]:
        notes = [self._recipe.note, f"Classes are numbered by {self._by}."]
        if self.count != self._all:
            notes.append(f"{self.count} of {self._all} samples were drawn for accuracy.")
        if self._skipped:
            skipped = f"{len(self._skipped)} of {self.count} {self.noun}"
            notes.append(f"Skipped, as unreadable: {skipped}.")
        return notes

    @property
    def facts(self) -> Mapping[str, Any]:
        return {
            "kind": self.kind,
            "files": self._all,
            "classes_in_folder": len(self._numbers),
            "classes_by": self._by,
            "preprocessing": self._preprocessing(),
            "skipped": dict(list(self._skipped.items())[:_NAMED]),
        }

    def rows(self) -> Iterator[tuple[Mapping[str, Array], Array]]:
        import numpy as np

        self._sum = hashlib.sha256(self._about().encode())
        self._skipped = {}
        for entry in self._entries:
            number = self._numbers[entry.label]
            try:
                data = contents(entry.path)
                values = self._values(data)
            except UnreadableError as error:
                self._skipped[entry.name] = str(error)
                continue
            self._sum.update(hashlib.sha256(data).digest() + number.to_bytes(8, "big"))
            yield {self._name: values}, np.asarray(number, np.int64)
        if len(self._skipped) == len(self._entries):
            name, why = next(iter(self._skipped.items()))
            raise CaseError(
                "data_unreadable",
                f"None of the {len(self._entries)} {self.noun} can be read; {name}: {why}.",
                "Check that the files are whole.",
            )

    def digest(self) -> str:
        return self._sum.hexdigest()[:16]

    def _about(self) -> str:
        raise NotImplementedError

    def _preprocessing(self) -> dict[str, Any]:
        raise NotImplementedError

    def _values(self, data: bytes) -> Array:
        raise NotImplementedError


class LabelledSounds(_LabelledFiles):
    """The sounds of a folder, each the input of one sample."""

    kind, noun = "sound", "sounds"
    _recipe: SoundRecipe

    def __init__(self, folder: Folder, case: Case, settings: JobSettings) -> None:
        need("soundfile", "soundfile", "data", "Reading sound")
        tensor, self._shape = _float_input(case, _sound_shape, "sound")
        self._name = tensor.name
        self._dtype = "float16" if tensor.dtype == "float16" else "float32"
        beside = folders_beside(case.model, settings)
        self._recipe = sound_recipe(settings.preprocessing, beside, case, self._shape)
        super().__init__(folder, folder.sounds, case, settings)

    def _about(self) -> str:
        return f"{self._recipe.note} {self._shape}"

    def _preprocessing(self) -> dict[str, Any]:
        recipe = self._recipe
        return {"by": recipe.name, "rate": recipe.rate, "does": recipe.does}

    def _values(self, data: bytes) -> Array:
        return self._recipe.input(data).astype(self._dtype)


def _sound_shape(shape: Sequence[int]) -> tuple[int, ...] | None:
    return tuple(shape[1:]) if 2 <= len(shape) <= 4 else None


#: Height, width and channels of a picture, and whether its channels are last.
View = tuple[int, int, int, bool]


class LabelledPictures(_LabelledFiles):
    """The pictures of a folder, each the input of one sample."""

    kind, noun = "images", "pictures"
    _recipe: PictureRecipe

    def __init__(self, folder: Folder, case: Case, settings: JobSettings) -> None:
        need("PIL.Image", "pillow", "data", "Reading images")
        tensor, self._view = _float_input(case, _picture_view, "picture of 1 or 3 channels")
        self._name = tensor.name
        self._recipe = _recipe(case, settings, self._view)
        super().__init__(folder, folder.images, case, settings)

    def _about(self) -> str:
        return repr((self._recipe, self._view))  # the recipe's note leaves its margin out

    def _preprocessing(self) -> dict[str, Any]:
        recipe = self._recipe
        names = ("scale", "filter", "stretched", "margin")
        return {
            "by": recipe.name,
            "mean": list(recipe.mean),
            "std": list(recipe.std),
            **{name: getattr(recipe, name) for name in names},
        }

    def _values(self, data: bytes) -> Array:
        import numpy as np

        height, width, channels, last = self._view
        pixels = self._recipe.pixels(pictures.decode(data), height, width, channels)
        return np.ascontiguousarray(pixels.transpose(1, 2, 0) if last else pixels)


def _picture_view(shape: Sequence[int]) -> View | None:
    if len(shape) == 4 and shape[1] in (1, 3):
        return shape[2], shape[3], shape[1], False
    if len(shape) == 4 and shape[3] in (1, 3):
        return shape[1], shape[2], shape[3], True
    return None


def _float_input(
    case: Case, fits: Callable[[Sequence[int]], T | None], what: str
) -> tuple[InputSpec, T]:
    """Return the only input whose values matter, and its shape as `fits` returns it."""
    shapes = input_shapes(case.model, case.shapes, case.mode)
    open_ = [t for t in tensors(case.model, case.shapes, case.mode) if not is_fixed(t)]
    if len(open_) == 1 and open_[0].dtype in ("float", "float32", "float16"):
        shape = shapes[open_[0].name]
        found = fits(shape) if shape[:1] == (case.shapes.batch,) else None
        if found is not None:
            return open_[0], found
    taken = ", ".join(f"{t.name} {list(shapes[t.name])}" for t in open_) or "nothing that is open"
    raise CaseError(
        "data_mismatch",
        f"{case.model.id} takes {taken}, which no {what} is.",
        "Store its inputs and labels in an .npz file, and name that with --data.",
    )


def _recipe(case: Case, settings: JobSettings, view: View) -> PictureRecipe:
    model = case.model
    found = recipe_of(settings.preprocessing, folders_beside(model, settings))
    published = None if model.is_user_model else pictures.preprocessing(model)
    if found is None and published is not None:
        found = replace(published, name=f"its publishers of {model.id}")
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


#: The setting of who feeds a file of arrays as it is, whatever labels it has.
OFF = "off"


def is_labelled(settings: JobSettings, case: Case) -> bool:
    """Return whether labelled samples are timed, instead of inputs without labels."""
    data = settings.data
    if data is None:
        return False
    if is_text_table(Path(data)):
        return case.model.is_user_model or Path(data).suffix.lower() in TABLES
    if settings.accuracy == OFF:
        return False
    if data.lower().endswith(SUFFIX):
        return True
    return case.model.is_user_model and _has_labels(look(data), settings.accuracy)


def labelled_data(settings: JobSettings, case: Case) -> LabelledData | None:
    """Return the samples of a job as a case's model takes them, or None without labels.

    Raises CaseError if the labels are not this model's.
    """
    return None if settings.accuracy == OFF else _samples(settings, case)


def _samples(settings: JobSettings, case: Case) -> LabelledData | None:
    data = settings.data
    if data is None:
        return None
    if data.lower().endswith(SUFFIX):
        return LabelledArrays(data, case, settings.seed, settings.accuracy_samples)
    predicts = settings.accuracy == AccuracyMetric.PERPLEXITY
    if is_text_table(Path(data)):
        table = TextTable(Path(data))
        return (TextWindows if predicts else LabelledTexts)(table, case, settings)
    folder = look(data)
    if classes_of(folder.images):
        return LabelledPictures(folder, case, settings)
    if classes_of(folder.sounds):
        return LabelledSounds(folder, case, settings)
    if predicts and folder.texts:
        return TextWindows(TextFiles(folder), case, settings)
    if classes_of(folder.texts):
        return LabelledTexts(TextFiles(folder), case, settings)
    return None


def _has_labels(folder: Folder, accuracy: str) -> bool:
    kinds = (folder.images, folder.sounds, folder.texts)
    predicts = accuracy == AccuracyMetric.PERPLEXITY and bool(folder.texts)
    return predicts or any(classes_of(entries) for entries in kinds)


class LabelledFeed(DataFeed):
    """The first samples of labelled data, as the inputs that are timed."""

    def __init__(self, settings: JobSettings, now_ns: Callable[[], int]) -> None:
        super().__init__(now_ns)
        self._settings = settings

    def batch(self, case: Case) -> Mapping[str, np.ndarray[Any, Any]]:
        start = self._now_ns()
        table = is_text_table(Path(self._settings.data or ""))
        if table and (case.generates or case.mode is Mode.TRAINING):
            raise CaseError(
                "data_mismatch",
                "A table of labelled texts is fed to a forward pass of inference alone.",
                "Use --new-tokens 0 and no training, or a folder of text.",
            )
        data = _samples(self._settings, case)
        assert data is not None  # else there were no such feed
        rows = [row for row, _ in islice(data.rows(), case.shapes.batch)]
        fed = batch_of(case, rows, self._settings.seed)
        whole = hashlib.sha256()
        for row in rows:
            for name in sorted(row):
                whole.update(name.encode() + row[name].tobytes())
        self._columns = {
            "data_load_ms": (self._now_ns() - start) / 1e6,
            "data_digest": whole.hexdigest()[:16],
        }
        notes = []
        if len(rows) < case.shapes.batch:
            notes = [f"The batch is larger than the {len(rows)} samples: the last one fills it."]
        counted = {} if data.count is None else {"samples": data.count}
        self._details = {**data.facts, **counted, "notes": notes}
        return fed

"""Labelled samples of a job: which data a case's model takes, and what of it is timed.

Labelled pictures: a folder per class, as torchvision's ImageFolder and ImageNet have it.

Labelled sounds: a folder per class.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from accelbench.catalog.data import pictures
from accelbench.catalog.data.folder import Entry, Folder, classes_of, folders_beside, look, numbered
from accelbench.catalog.data.labelled import LabelledArrays, LabelledData, batch_of, chosen, settled
from accelbench.catalog.data.labelled_text import LabelledTexts, TextWindows
from accelbench.catalog.data.pictures import ADVICE, CONFIG, PictureRecipe, recipe_of
from accelbench.catalog.data.rows import SUFFIX, UnreadableError, contents, need
from accelbench.catalog.data.sounds import sound_recipe
from accelbench.catalog.data.text import TABLES, TextFiles, TextTable, is_text_table
from accelbench.catalog.inputs import input_shapes, tensors
from accelbench.core.case import Case
from accelbench.core.columns import AccuracyMetric
from accelbench.core.errors import CaseError
from accelbench.core.run_spec import JobSettings
from accelbench.core.vocabulary import Mode

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]


#: Names of skipped files that a result carries; all are counted.
_NAMED = 5


class LabelledSounds:
    """The sounds of a folder, each the input of one sample.

    Args:
        folder: whose sounds all lie in class folders.
        case: whose model is fed.
        settings: of the job.
    """

    def __init__(self, folder: Folder, case: Case, settings: JobSettings) -> None:
        need("soundfile", "soundfile", "data", "Reading sound")
        self._name, self._dtype, self._shape = _sound_input(case)
        folders = folders_beside(case.model, settings)
        self._recipe = sound_recipe(settings.preprocessing, folders, case, self._shape)
        entries = folder.sounds
        names = classes_of(entries)
        self._numbers, self.classes, self._by = numbered(folder.path, names, case.model, folders)
        places = chosen(len(entries), settings.accuracy_samples, settings.seed)
        self._entries: Sequence[Entry] = [entries[place] for place in places]
        self._all = len(entries)
        self.count: int | None = len(places)
        self._skipped: dict[str, str] = {}
        self._sum = hashlib.sha256()

    @property
    def notes(self) -> list[str]:
        """What a reader of the result should know; what was skipped is known once all was read."""
        notes = [self._recipe.note, f"Classes are numbered by {self._by}."]
        if self.count != self._all:
            notes.append(f"{self.count} of {self._all} samples were drawn for accuracy.")
        if self._skipped:
            notes.append(f"Skipped, as unreadable: {len(self._skipped)} of {self.count} sounds.")
        return notes

    @property
    def facts(self) -> Mapping[str, Any]:
        """How they were made into inputs."""
        recipe = self._recipe
        return {
            "kind": "sound",
            "files": self._all,
            "classes_in_folder": len(self._numbers),
            "classes_by": self._by,
            "preprocessing": {"by": recipe.name, "rate": recipe.rate, "does": recipe.does},
            "skipped": dict(list(self._skipped.items())[:_NAMED]),
        }

    def rows(self) -> Iterator[tuple[Mapping[str, Array], Array]]:
        import numpy as np

        self._sum = hashlib.sha256(f"{self._recipe.note} {self._shape}".encode())
        self._skipped = {}
        for entry in self._entries:
            number = self._numbers[entry.label]
            try:
                data = contents(entry.path)
                values = self._recipe.input(data)
            except UnreadableError as error:
                self._skipped[entry.name] = str(error)
                continue
            self._sum.update(hashlib.sha256(data).digest() + number.to_bytes(8, "big"))
            yield {self._name: values.astype(self._dtype)}, np.asarray(number, np.int64)
        if len(self._skipped) == len(self._entries):
            name, why = next(iter(self._skipped.items()))
            raise CaseError(
                "data_unreadable",
                f"None of the {len(self._entries)} sounds can be read; {name}: {why}.",
                "Check that the files are whole.",
            )

    def digest(self) -> str:
        return self._sum.hexdigest()[:16]


def _sound_input(case: Case) -> tuple[str, str, tuple[int, ...]]:
    """The input that takes sounds, its type, and its shape without the batch.

    Raises:
        CaseError: there is none, or another input whose values matter.
    """
    shapes = input_shapes(case.model, case.shapes, case.mode)
    open_ = [t for t in tensors(case.model, case.shapes, case.mode) if not settled(t)]
    if len(open_) == 1 and open_[0].dtype in ("float", "float32", "float16"):
        shape = shapes[open_[0].name]
        if 2 <= len(shape) <= 4 and shape[0] == case.shapes.batch:
            dtype = "float16" if open_[0].dtype == "float16" else "float32"
            return open_[0].name, dtype, shape[1:]
    taken = ", ".join(f"{t.name} {list(shapes[t.name])}" for t in open_) or "nothing that is open"
    raise CaseError(
        "data_mismatch",
        f"{case.model.id} takes {taken}, which no sound is.",
        "Store its inputs and labels in an .npz file, and name that with --data.",
    )


#: Names of skipped files that a result carries; all are counted.


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
                pixels = self._recipe.pixels(pictures.decode(data), height, width, channels)
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
    published = None if model.is_own else pictures.preprocessing(model)
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


#: The setting of who feeds a file of arrays as it is, whatever labels it has.
OFF = "off"


def is_labelled(settings: JobSettings, case: Case) -> bool:
    """Whether what is timed are labelled samples: else it is inputs alone, or drawn."""
    data = settings.data
    if data is None:
        return False
    if is_text_table(Path(data)):
        return case.model.is_own or Path(data).suffix.lower() in TABLES
    if settings.accuracy == OFF:
        return False
    if data.lower().endswith(SUFFIX):
        return True
    return case.model.is_own and _has_labels(look(data), settings.accuracy)


def labelled_data(settings: JobSettings, case: Case) -> LabelledData | None:
    """The samples of a job as a case's model takes them; None where its data has no labels.

    Raises:
        CaseError: they have labels, and are none of this model's.
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


class LabelledFeed:
    """The first samples of labelled data, as the inputs that are timed."""

    def __init__(self, settings: JobSettings, now_ns: Callable[[], int]) -> None:
        self._settings = settings
        self._now_ns = now_ns
        self._columns: Mapping[str, Any] = {}
        self._details: Mapping[str, Any] = {}

    def batch(self, case: Case) -> Mapping[str, np.ndarray[Any, Any]]:
        """A case's inputs. Raises CaseError where the data is none of its model's."""
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

    def columns(self) -> Mapping[str, Any]:
        """Columns of a result about what was read last."""
        return self._columns

    def details(self) -> Mapping[str, Any]:
        """Evidence of it."""
        return self._details

"""Labelled sounds: a folder per class."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from accelbench.catalog.data.beside import folders_beside, numbered
from accelbench.catalog.data.folder import Entry, Folder, classes_of
from accelbench.catalog.data.labelled import chosen, settled
from accelbench.catalog.data.rows import UnreadableError, contents, need
from accelbench.catalog.data.sound_recipe import sound_recipe
from accelbench.catalog.inputs import input_shapes, tensors
from accelbench.core.case import Case
from accelbench.core.errors import CaseError
from accelbench.core.job_settings import JobSettings

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

"""Rows of sound, with what was said or what it is of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from accelbench.catalog.data import audio
from accelbench.catalog.data.captions import Captions, Fed, letters, targets
from accelbench.catalog.data.folder import Entry, Folder, classes_of
from accelbench.catalog.data.rows import Saw, UnreadableError, contents, label_of, number
from accelbench.core.errors import UnsupportedError
from accelbench.core.model import InputSpec, ModelSpec

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

#: wav2vec2's published vocabulary.
_LETTERS = 32


class Written:
    """The text of each sound: the .txt of the same name beside it, else its class in words.

    One of the two for all of a folder; where a sound has neither, none has a text.
    """

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self.spoken = all(_transcript(e).is_file() for e in folder.sounds)
        self.known = self.spoken or bool(classes_of(folder.sounds))

    def of(self, entry: Entry) -> str:
        """A sound's text. Raises UnreadableError."""
        if not self.spoken:
            return f"the sound of a {self._folder.title(entry.label)}"
        try:
            return _transcript(entry).read_text(encoding="utf-8").strip()
        except (OSError, ValueError) as error:
            raise UnreadableError(f"its transcript: {error}") from error

    def all(self) -> Iterator[str]:
        """Every text that can be read."""
        for entry in self._folder.sounds:
            with suppress(UnreadableError):  # skipped, and counted, when its turn comes
                yield self.of(entry)


def _transcript(entry: Entry) -> Path:
    return entry.path.with_suffix(".txt")


class SoundReader:
    """One item is one file of sound."""

    def __init__(
        self,
        folder: Folder,
        spec: ModelSpec,
        fed: Fed,
        seconds: int,
        written: Written,
        captions: Captions | None,
    ) -> None:
        self.notes: list[str] = []
        self.classes = classes_of(folder.sounds)
        self._entries = folder.sounds
        self.count = len(self._entries)
        self._written = written
        self._name = "input_values" if "input_values" in fed else "input_features"
        if spec.sampling_rate is None:
            raise UnsupportedError(
                "no_real_inputs", f"{spec.id} does not say its sampling rate.",
                "State sampling_rate with the model.",
            )  # fmt: skip
        self._seconds, self._rate = seconds, spec.sampling_rate
        self._features = audio.features(spec, fed[self._name][1][1:], seconds, self._rate)
        self._captions = captions
        self._labels: dict[str, int] = {}
        self._letters = 0
        if "labels" in fed:
            self._learn(spec, *fed["labels"])
        self.gives = frozenset(
            {self._name}
            | (set(self._captions.gives) if self._captions else set())
            | ({"labels"} if self._labels or self._letters else set())
        )
        self.facts: Mapping[str, Any] = {
            "kind": "sound",
            "files": len(self._entries),
            "classes": len(self.classes),
            "transcripts": self._written.spoken,
            "sampling_rate": self._rate,
        }

    def _learn(self, spec: ModelSpec, labels: InputSpec, shape: tuple[int, ...]) -> None:
        if len(shape) == 1:
            self._labels = label_of(labels, self.classes, "sounds", self.notes)
        elif spec.training is None or spec.training.loss != "ctc":
            return  # the words of a caption, which has them
        elif not self._written.spoken:
            self.notes.append("The labels are drawn: not every sound has a .txt beside it.")
        elif labels.high < _LETTERS:
            self.notes.append(f"The labels are drawn: {labels.high} ids are too few for letters.")
        else:
            self._letters = shape[1]
            self.notes.append(f"Of each transcript, up to {shape[1]} letters are learned.")

    def name(self, index: int) -> str:
        return self._entries[index].name

    def read(self, index: int, saw: Saw) -> dict[str, Array]:
        entry = self._entries[index]
        data = contents(entry.path)
        row = {self._name: self._features(audio.decode(data, self._seconds, self._rate))}
        if self._captions is not None:
            row |= self._captions.rows(self._written.of(entry))
        if self._letters:
            row["labels"] = targets(letters(self._written.of(entry)), self._letters)
        if self._labels:
            row["labels"] = number(self._labels[entry.label])
        saw(data)
        return row

"""Which reader a model needs of a folder, as its inputs say."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from accelbench.catalog.data.captions import Captions, Fed, captioned
from accelbench.catalog.data.encoding import Encoder, encoder_for
from accelbench.catalog.data.folder import Folder, classes_of
from accelbench.catalog.data.pictures import PictureReader
from accelbench.catalog.data.rows import Reader
from accelbench.catalog.data.sounds import SoundReader, Written
from accelbench.catalog.data.text import Corpus, TextReader
from accelbench.core.case import Shapes
from accelbench.core.errors import UnsupportedError
from accelbench.core.model import InputSpec, ModelSpec

#: What sound is called where a model takes it.
SOUND_INPUTS = frozenset({"input_values", "input_features"})


@dataclass
class Library:
    """A folder and what was learned of it, kept for all cases of a session."""

    folder: Folder
    weights: str = "random"
    corpus: Corpus | None = None
    encoders: dict[tuple[str, int, int, int], Encoder] = field(default_factory=dict)

    def text(self) -> Corpus:
        """The folder's lines of text, indexed once."""
        if self.corpus is None:
            self.corpus = Corpus(self.folder)
        return self.corpus

    def encoder(self, what: str, text: Iterable[str], spec: ModelSpec, ids: InputSpec) -> Encoder:
        """An encoder into a model's ids, made once for what it is made from."""
        size = spec.config.get("vocab_size")
        marks = max(ids.high, (ids.last or 0) + 1, size if isinstance(size, int) else 0)
        key = (what, ids.low, ids.high, marks)
        if key not in self.encoders:
            self.encoders[key] = encoder_for(self.weights, text, ids.low, ids.high, marks)
        return self.encoders[key]


def reader_for(library: Library, spec: ModelSpec, shapes: Shapes, fed: Fed) -> Reader:
    """The reader of a folder for a model's inputs.

    Args:
        library: the folder.
        spec: the model.
        shapes: settled.
        fed: every input with its full shape.

    Raises:
        UnsupportedError: the folder does not hold what the model takes, or no
            recipe is known that makes its inputs of files.
        CaseError: none of it can be read.
    """
    folder = library.folder
    if "pixel_values" in fed:
        _demand(folder, spec, "images", bool(folder.images))
        words = [f"a photo of a {folder.title(c)}" for c in classes_of(folder.images)] or None
        captions = _captions(library, spec, fed, "images", words)
        return _noted(PictureReader(folder, spec, fed, captions[0]), captions[1])
    if fed.keys() & SOUND_INPUTS:
        _demand(folder, spec, "sound", bool(folder.sounds))
        written = Written(folder)
        captions = _captions(library, spec, fed, "sound", written.all() if written.known else None)
        seconds = shapes.audio or 0
        return _noted(SoundReader(folder, spec, fed, seconds, written, captions[0]), captions[1])
    if "input_ids" in fed and len(fed["input_ids"][1]) == 2:
        _demand(folder, spec, "text", bool(folder.texts))
        corpus = library.text()
        encoder = library.encoder("text", corpus.sample(), spec, fed["input_ids"][0])
        return TextReader(folder, corpus, spec, fed, encoder)
    raise UnsupportedError(
        "no_real_inputs",
        f"{spec.id} takes {', '.join(fed)}, which no file of images, sound or text holds.",
        "Leave out --data.",
    )


def _captions(
    library: Library, spec: ModelSpec, fed: Fed, what: str, words: Iterable[str] | None
) -> tuple[Captions | None, list[str]]:
    """What makes captions of words, and what is to be said of it; None where there is no need."""
    ids = captioned(fed)
    if ids is None:
        return None, []
    if words is None:
        return None, [f"The texts are drawn: the {what} come without any."]
    encoder = library.encoder(what, words, spec, ids)
    return Captions(spec, fed, encoder), [encoder.note]


def _noted(reader: Reader, notes: list[str]) -> Reader:
    reader.notes += notes
    return reader


def _demand(folder: Folder, spec: ModelSpec, what: str, present: bool) -> None:
    if not present:
        raise UnsupportedError(
            "data_mismatch",
            f"{spec.id} takes {what}, but {folder.path} holds {folder.holds} only.",
            f"Name a folder of {what}, or leave out --data.",
        )


def fed_with(tensors: Iterable[InputSpec], shapes: Mapping[str, tuple[int, ...]]) -> Fed:
    """Every input with its full shape."""
    return {t.name: (t, shapes[t.name]) for t in tensors}


def drawn(fed: Fed, reader: Reader) -> list[str]:
    """The inputs that the files do not give and whose values are not settled by their spec."""

    def settled(tensor: InputSpec, shape: tuple[int, ...]) -> bool:
        placed = tensor.lead is not None and tensor.lead[1] >= shape[-1]
        return tensor.constant is not None or tensor.row is not None or placed

    return [name for name, pair in fed.items() if name not in reader.gives and not settled(*pair)]

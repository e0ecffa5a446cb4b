"""Real inputs for the cases of a session, and the data loader of the Python API."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from accelbench.core.case import Case, Shapes
from accelbench.core.errors import UnsupportedError, UsageError
from accelbench.core.model import InputSpec, ModelSpec
from accelbench.models.data.captions import Captions, Encoder, Fed, encoder_for, tokenize_caption
from accelbench.models.data.folder import Folder, classes_of, look
from accelbench.models.data.pictures import PictureReader
from accelbench.models.data.rows import DataFeed, Reader, Walk
from accelbench.models.data.sounds import SoundReader, Written
from accelbench.models.data.text import Corpus, TextReader
from accelbench.models.find import find
from accelbench.models.inputs import draw, input_shapes, refuse_absurd, settle, tensors

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]


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
        if self.corpus is None:
            self.corpus = Corpus(self.folder)
        return self.corpus

    def encoder(self, what: str, text: Iterable[str], spec: ModelSpec, ids: InputSpec) -> Encoder:
        size = spec.config.get("vocab_size")
        marks = max(ids.high, (ids.last or 0) + 1, size if isinstance(size, int) else 0)
        key = (what, ids.low, ids.high, marks)
        if key not in self.encoders:
            self.encoders[key] = encoder_for(self.weights, text, ids.low, ids.high, marks)
        return self.encoders[key]


def reader_for(library: Library, spec: ModelSpec, shapes: Shapes, fed: Fed) -> Reader:
    """Return the reader of a folder for a model's inputs; `fed` has each one's full shape."""
    folder = library.folder
    if "pixel_values" in fed:
        _demand(folder, spec, "images", bool(folder.images))
        words = [f"a photo of a {folder.title(c)}" for c in classes_of(folder.images)] or None
        captions = _captions(library, spec, fed, "images", words)
        return _add_notes(PictureReader(folder, spec, fed, captions[0]), captions[1])
    if fed.keys() & SOUND_INPUTS:
        _demand(folder, spec, "sound", bool(folder.sounds))
        written = Written(folder)
        captions = _captions(library, spec, fed, "sound", written.all() if written.known else None)
        seconds = shapes.audio or 0
        return _add_notes(
            SoundReader(folder, spec, fed, seconds, written, captions[0]), captions[1]
        )
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
    ids = tokenize_caption(fed)
    if ids is None:
        return None, []
    if words is None:
        return None, [f"The texts are drawn: the {what} come without any."]
    encoder = library.encoder(what, words, spec, ids)
    return Captions(spec, fed, encoder), [encoder.note]


def _add_notes(reader: Reader, notes: list[str]) -> Reader:
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
    """Return every input with its full shape."""
    return {t.name: (t, shapes[t.name]) for t in tensors}


def drawn(fed: Fed, reader: Reader) -> list[str]:
    """Return inputs that the files do not give and whose values their spec leaves open."""

    def settled(tensor: InputSpec, shape: tuple[int, ...]) -> bool:
        placed = tensor.lead is not None and tensor.lead[1] >= shape[-1]
        return tensor.constant is not None or tensor.row is not None or placed

    return [name for name, pair in fed.items() if name not in reader.gives and not settled(*pair)]


#: Loading is timed over other batches than the measured one: at least three, and more of them
#: (up to ten) while they fit in two seconds.
_FEWEST, _MOST, _PATIENCE_NS = 3, 10, 2_000_000_000
#: Names of skipped files that a result carries; all are counted.
_NAMED = 5


class _Digest:
    def __init__(self) -> None:
        self._sum = hashlib.sha256()
        self.listening = True

    def __call__(self, data: bytes) -> None:
        # Each file by its own digest: so the border between two of them counts.
        if self.listening:
            self._sum.update(hashlib.sha256(data).digest())

    def hex(self) -> str:
        return self._sum.hexdigest()[:16]


class Feed(DataFeed):
    """Reads a folder for whatever case is prepared."""

    def __init__(self, path: str, seed: int, weights: str, now_ns: Callable[[], int]) -> None:
        super().__init__(now_ns)
        self._library = Library(look(path), weights)
        self._seed = seed
        self._timed: dict[str, list[int]] = {}  # by case: loading is timed once

    def batch(self, case: Case) -> dict[str, Array]:
        """Return one batch for a case: the same for the same seed, on every machine.

        Inputs that the files cannot give are drawn.
        """
        model, mode = case.model, case.mode
        shapes = settle(model, case.shapes)
        refuse_absurd(model, shapes, mode)
        fed = fed_with(tensors(model, shapes, mode), input_shapes(model, shapes, mode))
        reader = reader_for(self._library, model, shapes, fed)
        digest = _Digest()
        walk = Walk(reader, self._seed)
        rows = walk.rows(digest, rounds=True)
        made = walk.batch(rows, shapes.batch) or {}  # rows never end
        digest.listening = False
        if case.case_id not in self._timed:
            self._timed[case.case_id] = self._time(walk, rows, shapes.batch)
        times = self._timed[case.case_id]
        self._columns = {"data_load_ms": median(times) / 1e6, "data_digest": digest.hex()}
        notes = list(reader.notes)
        synthetic = drawn(fed, reader)
        if synthetic:
            notes.append(f"Drawn, as the files do not give them: {', '.join(synthetic)}.")
        if reader.count < shapes.batch:
            notes.append(f"The batch is larger than the {reader.count} in the folder: some twice.")
        if walk.skipped:
            notes.append(f"Skipped, as unreadable: {len(walk.skipped)} of {reader.count} inputs.")
        self._details = {
            **reader.facts,
            "inputs": reader.count,
            "skipped": dict(list(walk.skipped.items())[:_NAMED]),
            "skipped_count": len(walk.skipped),
            "loads_ms": [time / 1e6 for time in times],
            "drawn": synthetic,
            "notes": notes,
        }
        return {
            name: made[name] if name in made else draw(tensor, shape, self._seed)
            for name, (tensor, shape) in fed.items()
        }

    def _time(self, walk: Walk, rows: Iterator[dict[str, Array]], size: int) -> list[int]:
        times: list[int] = []
        while len(times) < _FEWEST or (len(times) < _MOST and sum(times) < _PATIENCE_NS):
            start = self._now_ns()
            walk.batch(rows, size)
            times.append(self._now_ns() - start)
        return times


SYNTHETIC = "synthetic"
#: Batches of one round of synthetic inputs where no limit is named.
_SYNTHETIC_BATCHES = 10


class DataLoader:
    """Batches as dictionaries of NumPy arrays, by the names of a model's inputs.

    Every iteration gives the same batches again. A last incomplete batch is left out; files that
    cannot be read are skipped, and shorten the round.

    Attributes:
        batch_size: items of a batch.
        class_names: the class folders, in the order of their labels.
        notes: sentences about the inputs.
        skipped: why files could not be read, by name; filled while iterating.
    """

    def __init__(
        self, fed: Fed, items: int, batch_size: int, seed: int, shuffle: bool, reader: Reader | None
    ) -> None:
        self._fed, self._seed, self._shuffle, self._reader = fed, seed, shuffle, reader
        self._items = items
        self.batch_size = batch_size
        self.class_names: tuple[str, ...] = reader.classes if reader else ()
        self.notes: list[str] = list(reader.notes) if reader else []
        self.skipped: dict[str, str] = {}

    def __len__(self) -> int:
        return (self._items - len(self.skipped)) // self.batch_size

    def __iter__(self) -> Iterator[dict[str, Array]]:
        if self._reader is None:
            for number in range(len(self)):
                yield self._synthetic(self._seed + number)
            return
        walk = Walk(self._reader, self._seed, self._shuffle)
        del walk.order[self._items :]
        self.skipped = walk.skipped
        rows = walk.rows(lambda _: None, rounds=False)
        number = 0
        while (made := walk.batch(rows, self.batch_size)) is not None:
            rest = self._synthetic(self._seed + number, leave=frozenset(made))
            yield {name: made[name] if name in made else rest[name] for name in self._fed}
            number += 1

    def _synthetic(self, seed: int, leave: frozenset[str] = frozenset()) -> dict[str, Array]:
        return {
            name: draw(tensor, shape, seed)
            for name, (tensor, shape) in self._fed.items()
            if name not in leave
        }


def create_dataloader(
    data_source: str = SYNTHETIC,
    model_name: str = "resnet50",
    batch_size: int = 1,
    *,
    input_shape: Sequence[int] | None = None,
    seed: int = 0,
    shuffle: bool = True,
    weights: str = "random",
    limit: int | None = None,
) -> DataLoader:
    """Return batches of inputs for a model: drawn, or decoded and preprocessed from files.

    A row of text begins at one of its lines and reads on. Images and sounds in class folders come
    with their `labels`.

    Args:
        data_source: "synthetic", or a folder of images in class folders, of sound, or of text.
        model_name: any name of a model in the catalogue.
        batch_size: items of a batch.
        input_shape: another size than the model's: (3, 224, 224), (8, 3, 224, 224) or (128,).
        seed: decides what is drawn and in which order files are read.
        shuffle: False keeps the order of names.
        weights: a folder whose tokenizer.json turns text into ids.
        limit: most items of one round; synthetic inputs have ten batches otherwise.

    Raises:
        UsageError: nothing of use is at the path, or a size is impossible.
        UnsupportedError: the files are not what the model takes.
        MissingExtraError: a package that decodes them is not installed.
    """
    spec = find(model_name)
    for what, size in (("batch size", batch_size), ("limit", limit)):
        if size is not None and size < 1:
            raise UsageError(f"A {what} of {size} is impossible.", "Use 1 or more.")
    shapes = settle(spec, shapes_of(spec, batch_size, input_shape))
    refuse_absurd(spec, shapes)
    fed = dict(fed_with(tensors(spec, shapes), input_shapes(spec, shapes)))
    library = None if data_source == SYNTHETIC else Library(_folder(data_source), weights)
    labels = _labels(spec, library, fed)
    if labels is not None:
        fed["labels"] = (labels, (batch_size,))
    if library is None:
        items = batch_size * _SYNTHETIC_BATCHES if limit is None else limit
        return DataLoader(fed, items, batch_size, seed, shuffle, None)
    reader = reader_for(library, spec, shapes, fed)
    items = reader.count if limit is None else min(limit, reader.count)
    loader = DataLoader(fed, items, batch_size, seed, shuffle, reader)
    synthetic = drawn(fed, reader)
    if synthetic:
        loader.notes.append(f"Drawn, as the files do not give them: {', '.join(synthetic)}.")
    return loader


def _folder(data_source: str) -> Folder:
    if not Path(data_source).expanduser().exists():
        raise UsageError(
            f"There is nothing at {data_source}.",
            'The first argument is data_source: "synthetic", or the path of a folder of images,'
            " sound or text; a model is named by model_name.",
        )
    return look(data_source)


def _labels(spec: ModelSpec, library: Library | None, fed: Fed) -> InputSpec | None:
    own = {t.name: t for t in (spec.training.labels if spec.training else ())}.get("labels")
    sorts = own if own is not None and own.shape == ("batch",) else None
    if library is None:
        return sorts
    folder = library.folder
    if "pixel_values" in fed:
        classes = classes_of(folder.images)
    elif fed.keys() & SOUND_INPUTS:
        classes = classes_of(folder.sounds)
    else:
        classes = classes_of(folder.texts)
    if not classes:
        return None
    return InputSpec(
        "labels", ("batch",), "int64", 0, max(len(classes), sorts.high if sorts else 0)
    )


def shapes_of(spec: ModelSpec, batch_size: int, input_shape: Sequence[int] | None) -> Shapes:
    """Return the sizes of an input shape; raise UsageError if the model takes no such input."""
    if input_shape is None:
        return Shapes(batch_size)
    sizes = tuple(input_shape)
    if spec.image is not None and len(sizes) in (3, 4):
        *batch, channels, height, width = sizes
        if channels == 3 and height == width and batch in ([], [batch_size]):
            return Shapes(batch_size, image=height)
    if spec.image is None and spec.sequence is not None and len(sizes) in (1, 2):
        *batch, length = sizes
        if batch in ([], [batch_size]):
            return Shapes(batch_size, sequence=length)
    fits = "(3, side, side)" if spec.image is not None else "(tokens,)"
    if spec.image is None and spec.sequence is None:
        fits = "no other shape than its own"
    raise UsageError(
        f"{spec.id} takes no input of shape {sizes} at batch size {batch_size}.",
        f"Use {fits}, with the batch size in front if at all.",
    )

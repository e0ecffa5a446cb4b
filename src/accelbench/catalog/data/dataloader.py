"""A loader of batches, real or synthetic, as document 004 promises it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from accelbench.catalog.data.captions import Fed
from accelbench.catalog.data.folder import Folder, classes_of, look
from accelbench.catalog.data.reading import SOUND_INPUTS, Library, drawn, fed_with, reader_for
from accelbench.catalog.data.rows import Reader, Walk
from accelbench.catalog.find import find
from accelbench.catalog.inputs import draw, input_shapes, refuse_absurd, settle, tensors
from accelbench.core.case import Shapes
from accelbench.core.errors import UsageError
from accelbench.core.model import InputSpec, ModelSpec

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

SYNTHETIC = "synthetic"
#: Batches of one round of synthetic inputs where no limit is named.
_SYNTHETIC_BATCHES = 10


class DataLoader:
    """Batches as dictionaries of NumPy arrays, by the names of a model's inputs.

    Every iteration gives the same batches again. A last incomplete batch is
    left out; files that cannot be read are skipped, and shorten the round.

    Attributes:
        batch_size: items of a batch.
        class_names: the class folders, in the order of their labels.
        notes: what a user should know of the inputs, in sentences.
        skipped: why files could not be read, by name; filled while iterating.
    """

    def __init__(
        self,
        fed: Fed,
        items: int,
        batch_size: int,
        seed: int,
        shuffle: bool,
        reader: Reader | None,
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
    """Batches of inputs for a model: drawn, or decoded and preprocessed from files.

    A row of text begins at one of its lines and reads on. Images and sounds in
    class folders come with their `labels`.

    Args:
        data_source: "synthetic", or the path of a folder of images in class
            folders, of sound, or of text.
        model_name: any name of a model in the catalogue.
        batch_size: items of a batch.
        input_shape: another size than the model's own: (3, 224, 224),
            (8, 3, 224, 224) or (128,) tokens.
        seed: decides what is drawn and in which order files are read.
        shuffle: False keeps the order of names.
        weights: a folder whose tokenizer.json turns text into ids.
        limit: items of one round at most; synthetic ones have ten batches else.

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
    """A label an item: of the class folders, or drawn where the inputs are drawn too."""
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
    """The sizes that an input shape means for a model.

    Raises:
        UsageError: the model takes no input of this shape.
    """
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

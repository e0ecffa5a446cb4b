"""Kinds of model files, identified by name and first bytes, with their readers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from accelbench.core.devices import cards
from accelbench.core.errors import AccelbenchError, MissingExtraError
from accelbench.core.model import FileFormat
from accelbench.core.protocols import RuntimeInfo

#: Shapes of every result of one item, by name: of a file, and the type and shape of each input.
ItemShapes = Callable[
    [Path, Mapping[str, tuple[str, tuple[int, ...]]]], Mapping[str, tuple[int, ...]]
]
#: Packages that the readers here need, and the extras that bring them.
_NEEDS = {
    FileFormat.ONNX: ("onnx", "onnx"),
    FileFormat.OPENVINO: ("openvino", "openvino"),
    FileFormat.TFLITE: ("ai_edge_litert", "litert"),
    FileFormat.PT2: ("torch", "torch"),
}

#: Files that plugins of this project measure, and the extras that bring them.
_OF_PLUGINS = {".param": "ncnn", ".pte": "executorch"}
_EXPORT = "Export the model to ONNX (torch.onnx.export), and name that file."
_BY_TENSORRT = (
    "Name the ONNX file it is of, which TensorRT compiles here by --hardware cuda"
    " --option onnxruntime.provider=tensorrt"
)
_BY_CORE_ML = (
    "Export the model to ONNX (torch.onnx.export), and name that file: on a Mac, Core ML runs it"
    " by --hardware mps --framework onnxruntime"
)
#: Files of models that are not measured: why, and what to do instead.
_OTHERS: dict[str, tuple[str, str]] = {
    **dict.fromkeys(
        (".pt", ".pth", ".pkl", ".pickle", ".ckpt", ".bin", ".joblib"),
        (
            "it may be pickled, and whoever reads a pickle runs the code in it",
            "Export the model to ONNX, or save its weights as safetensors beside its config.json.",
        ),
    ),
    ".safetensors": ("it holds weights without the model that they are of",
                     "Name the folder that has config.json beside it."),
    ".gguf": ("it holds weights, and each engine builds the model for itself", _EXPORT),
    ".pb": ("graphs of TensorFlow are not read", _EXPORT),
    ".h5": ("models of Keras are not read", _EXPORT),
    ".keras": ("models of Keras are not read", _EXPORT),
    **dict.fromkeys(
        (".engine", ".plan", ".trt"),
        (
            "it is code that TensorRT compiled, as a rule for one kind of card and one version",
            _BY_TENSORRT,
        ),
    ),
    **dict.fromkeys((".mlmodel", ".mlpackage", ".mlmodelc"),
                    ("Apple's own framework alone runs it, and no engine here hands it over",
                     _BY_CORE_ML)),
}  # fmt: skip
_LFS_POINTER = b"version https://git-lfs"
#: How files begin that a graph's name was put on.
_OTHER_BEGINNINGS = {
    b"PK\x03\x04": "a zip archive", b"\x80\x02": "a pickle", b"\x80\x03": "a pickle",
    b"\x80\x04": "a pickle", b"\x80\x05": "a pickle", b"\x1f\x8b": "a gzip archive",
    b"<": "XML or HTML", b"{": "JSON", b"\x89HDF": "an HDF5 file", b"GGUF": "a GGUF file",
}  # fmt: skip


class FileRefusedError(AccelbenchError):
    """A file that cannot be measured: the reason as a sentence, and what to do."""

    @property
    def within(self) -> str:
        """The sentence as it continues after a colon; a name such as OpenVINO stays as it is."""
        first = self.message.split(" ", 1)[0]
        plain = first[1:] == first[1:].lower()
        return self.message[:1].lower() + self.message[1:] if plain else self.message


def formats_by_suffix() -> dict[str, FileFormat]:
    """Return the formats that are measured, plugins' included, by how their files end."""
    cards()  # plugins declare theirs where their cards are
    return {kind.suffix: kind for kind in FileFormat.all_formats() if kind.suffix}


def is_file_word(word: str) -> bool:
    """Return whether a word means a file: by its suffix, or because the file exists."""
    path = Path(word).expanduser()
    known = {*formats_by_suffix(), *_OF_PLUGINS, *_OTHERS}
    return path.suffix.lower() in known or path.is_file()


def format_of(path: Path) -> FileFormat:
    """Return the format of a file by its name and first bytes, or raise FileRefusedError."""
    suffix = path.suffix.lower()
    if not path.exists():
        raise FileRefusedError("There is no such file.", "Check its path.")
    if suffix == ".bin" and path.with_suffix(".param").is_file():
        graph = path.with_suffix(".param").name
        raise FileRefusedError(
            f"It holds the weights of {graph}.", f"Name {graph}: its weights are found beside it."
        )
    if suffix in _OTHERS:
        why, advice = _OTHERS[suffix]
        raise FileRefusedError(f"Files of {suffix} are not read: {why}.", advice)
    kind = formats_by_suffix().get(suffix)
    if kind is None and suffix in _OF_PLUGINS:
        extra = _OF_PLUGINS[suffix]
        raise MissingExtraError(f"accelbench-{extra}", extra, f"Measuring {suffix} files")
    if kind is None:
        known = ", ".join({**formats_by_suffix(), **_OF_PLUGINS})
        raise FileRefusedError("It is no model's file.", f"Files of {known} are read.")
    if not path.is_file():
        raise FileRefusedError("It is no file.", "Name the file itself.")
    _refuse_content(path, kind)
    return kind


def _refuse_content(path: Path, kind: FileFormat) -> None:
    try:
        with path.open("rb") as file:
            begins, size = file.read(64), path.stat().st_size
    except OSError as error:
        raise FileRefusedError(
            f"It cannot be read: {error.strerror}.", "Check its permissions."
        ) from error
    if not size:
        raise FileRefusedError("It is empty.", "Write it again.")
    if begins.startswith(_LFS_POINTER):
        raise FileRefusedError(
            "It is a pointer of Git LFS, not the file itself.", "Fetch the file: git lfs pull"
        )
    # Four bytes of an offset come before it: any, such as the "<" of 60.
    marked = bool(kind.mark) and begins[4:8] == kind.mark
    others = {} if marked else dict(_OTHER_BEGINNINGS)
    if kind is FileFormat.PT2:
        del others[b"PK\x03\x04"]
    if kind is FileFormat.OPENVINO:
        del others[b"<"]
        begins = begins.lstrip(b"\xef\xbb\xbf \r\n\t")
    for beginning, what in others.items():
        if begins.startswith(beginning):
            raise FileRefusedError(
                f"It begins as {what} does, and is no {kind.graph} whatever its name says.", _EXPORT
            )
    unlike = kind is FileFormat.OPENVINO and not begins.startswith(b"<")
    if unlike or (kind.mark and not marked):
        raise FileRefusedError(f"It is no {kind.graph}, whatever its name says.", _EXPORT)
    if size > kind.largest:
        raise FileRefusedError(
            f"It is larger than {kind.largest / 2**30:g} GiB, which no {kind.graph} is.",
            "Keep the weights in a file beside the graph.",
        )


def weights_beside(path: Path) -> Path:
    """Return the file of weights that a graph has beside it, which may be absent."""
    weights = path.with_suffix(".bin")
    if not weights.resolve().is_relative_to(path.parent.resolve()):
        raise FileRefusedError(
            f"Its weights {weights.name} lie outside its own folder: they are not read.",
            "Put the file of weights beside the graph.",
        )
    return weights


def _card_reading(kind: FileFormat) -> RuntimeInfo | None:
    return next((card for card in cards().values() if card.reader and kind in card.files), None)


def refuse_missing_reader(kind: FileFormat, needed_for: str) -> None:
    """Raise MissingExtraError if the package that reads a format is not installed."""
    if kind in _NEEDS:
        package, extra = _NEEDS[kind]
    elif (card := _card_reading(kind)) is not None:
        package, extra = card.package, card.extra
    else:
        raise MissingExtraError(f"accelbench-{kind}", kind, needed_for)
    if find_spec(package) is None:
        raise MissingExtraError(package, extra, needed_for)


def reader_of(kind: FileFormat) -> Any:
    """Import the module that reads a format, and return it."""
    card = None if kind in _NEEDS else _card_reading(kind)
    return import_module(
        f"accelbench.models.file_models.{kind}_file" if card is None else card.reader
    )


def shapes_reader(kind: FileFormat) -> ItemShapes | None:
    """Return what finds the sizes of results; None if files of this format state them."""
    if kind in _NEEDS:
        return None
    found: ItemShapes | None = getattr(reader_of(kind), "item_shapes", None)
    return found

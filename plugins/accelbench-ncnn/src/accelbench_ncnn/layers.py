"""The layers of an ncnn network, read from its text without the engine, and what they take. Pure.

ncnn's own reader writes past its tables if the text says less than it holds. This one looks first:
counts that are true, names that are there, results that are made before they are used. Nor does
ncnn check inputs: if a channel is missing, a layer reads what lies behind its input.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from accelbench.core.safe_text import in_quotes
from accelbench.models.file_models.kinds import FileRefusedError

MAGIC = "7767517"
#: How the same network begins without its names, as ncnn2mem writes it.
BINARY = int(MAGIC).to_bytes(4, "little")
_LONGEST_NAME = 255
_LARGEST = 2**31
_PARAMETERS = re.compile(r'(-?\d{1,9})=("[^"\n]*"|[^\s"]+)(?:\s+|$)')
_WHOLE = re.compile(r"-?\d{1,10}")
_KEYS, _ARRAYS = 32, -23300
#: Axes of a stack of planes: columns, rows, channels.
_PLANES = 3
#: Of a layer's parameters: the sizes of its results, which ncnn's reader takes without counting.
_HINTS = 30


@dataclass(frozen=True)
class NcnnLayer:
    """One layer: what it takes and makes by name, and its parameters as they are written."""

    type: str
    name: str
    takes: tuple[str, ...]
    makes: tuple[str, ...]
    parameters: Mapping[int, str]

    def number(self, key: int, default: int = 0) -> int:
        """A parameter that is a whole number."""
        text = self.parameters.get(key, "")
        return int(text) if _WHOLE.fullmatch(text) else default

    def numbers(self, key: int) -> tuple[int, ...]:
        """A parameter that is a list of whole numbers; empty of any other."""
        words = self.parameters.get(key, "").split(",")
        return tuple(map(int, words)) if all(map(_WHOLE.fullmatch, words)) else ()

    @property
    def hint(self) -> tuple[int, ...]:
        """Sizes of its first result as the file states them: channels, then rows, then columns."""
        hints, results = self.numbers(_HINTS), len(self.makes)
        if not hints:
            return ()
        axes, *sizes = hints[: len(hints) // results]
        if axes == _PLANES and len(sizes) > _PLANES:
            del sizes[_PLANES - 1]  # depth, which planes have not
        return tuple(reversed(sizes[:axes]))


def layers_of(content: bytes) -> tuple[NcnnLayer, ...]:
    """Return the layers; raise FileRefusedError if it is no network, or contradicts itself."""
    if content.startswith(BINARY):
        raise FileRefusedError(
            "It is an ncnn network in binary, whose inputs have no names.",
            "Name the .param in text that it was made of.",
        )
    try:
        texts = [line for line in content.decode("utf-8").split("\n") if line.strip()]
    except UnicodeDecodeError as error:
        raise FileRefusedError("It is no text, and no ncnn network.") from error
    head = [line.split() for line in texts[:2]]
    if not head or head[0] != [MAGIC]:
        raise FileRefusedError(f"It is no ncnn network: those begin with {MAGIC}.")
    if len(head) < 2 or len(head[1]) != 2 or not all(map(_is_count, head[1])):
        raise _broken("it does not say how many layers and results it has")
    layer_count, blob_count = map(int, head[1])
    # The engine reads as many as it says: networks are about that have a line more.
    lines = texts[2 : 2 + layer_count]
    if not layer_count or layer_count > len(lines):
        raise _broken(f"it says {layer_count} layers, and has {len(lines)}")
    layers = tuple(map(_layer, lines))
    made = _refuse_loose_ends(layers)
    if not made <= blob_count <= made + layer_count:
        raise _broken(f"it says {blob_count} results of layers, and has {made}")
    return layers


def _layer(text: str) -> NcnnLayer:
    kind, name, takes, makes, *rest = [*text.split(maxsplit=4), "", "", "", ""][:5]
    if not (_is_count(takes) and _is_count(makes)):
        raise _broken(f"{in_quotes(text[:60])} is no layer")
    names, tail = [], rest[0]
    for _ in range(int(takes) + int(makes)):
        word, *further = tail.split(maxsplit=1)[:2] or [""]
        if not word or "=" in word:
            raise _broken(f"layer {in_quotes(name)} names fewer results than it says")
        names.append(word)
        tail = further[0] if further else ""
    if any(len(word.encode()) > _LONGEST_NAME for word in (kind, name, *names)):
        raise _broken(f"a name in it is longer than {_LONGEST_NAME} bytes")
    split = int(takes)
    layer = NcnnLayer(
        kind, name, tuple(names[:split]), tuple(names[split:]), dict(_parameters(name, tail))
    )
    if _HINTS in layer.parameters:
        _refuse_hints(layer)
    return layer


def _parameters(name: str, text: str) -> Iterator[tuple[int, str]]:
    place = 0
    while place < len(text):
        found = _PARAMETERS.match(text, place)
        if found is None:
            raise _broken(f"what layer {in_quotes(name)} is set to is not of the form key=value")
        key, value, place = int(found[1]), found[2], found.end()
        if key <= _ARRAYS:
            key = _ARRAYS - key
            count, *entries = value.split(",")
            if not _is_count(count) or int(count) != len(entries):
                raise _broken(f"a list of layer {in_quotes(name)} is not as long as it says")
            value = ",".join(entries)
        if not 0 <= key < _KEYS:
            raise _broken(f"layer {in_quotes(name)} has a key {key}, which ncnn has not")
        yield key, value


def _refuse_hints(layer: NcnnLayer) -> None:
    """Refuse sizes of results that are fewer than ncnn's reader would take."""
    hints, results = layer.numbers(_HINTS), len(layer.makes)
    each = len(hints) // results if results else 0
    whole = each in (4, 5) and len(hints) == each * results
    if not whole or any(not 1 <= axes < each for axes in hints[::each]):
        raise _broken(f"the sizes that layer {in_quotes(layer.name)} states are not of its results")


def _refuse_loose_ends(layers: Sequence[NcnnLayer]) -> int:
    """How many results there are; each is made once, before it is used."""
    made: set[str] = set()
    for layer in layers:
        for name in layer.takes:
            if name not in made:
                raise _broken(
                    f"layer {in_quotes(layer.name)} takes {in_quotes(name)}, which no layer before"
                    " it makes"
                )
        for name in layer.makes:
            if name in made:
                raise _broken(f"{in_quotes(name)} is made twice")
            made.add(name)
    return len(made)


def _is_count(word: str) -> bool:
    return word.isascii() and word.isdecimal() and len(word) <= 10 and int(word) < _LARGEST


def _broken(why: str) -> FileRefusedError:
    return FileRefusedError(
        f"Its text is not whole: {why}.", "Copy it and its .bin again, or convert it again."
    )


#: Layers of weights and products, by the keys of: results, kernel, weights; and the axis of
#: channels from the end, where the layer has a kernel.
_WINDOWED = {
    "Convolution": 3, "Deconvolution": 3, "ConvolutionDepthWise": 3, "DeconvolutionDepthWise": 3,
    "Convolution1D": 2, "Deconvolution1D": 2, "ConvolutionDepthWise1D": 2,
    "DeconvolutionDepthWise1D": 2,
    "Convolution3D": 4, "Deconvolution3D": 4, "ConvolutionDepthWise3D": 4,
    "DeconvolutionDepthWise3D": 4,
}  # fmt: skip
_RECURRENT = {"LSTM": 4, "GRU": 3, "RNN": 1}
#: Where a layer says that its weights are quantised.
_QUANTISED = {
    "Convolution": 8, "ConvolutionDepthWise": 8, "InnerProduct": 8, "LSTM": 8, "GRU": 8, "RNN": 8,
    "Gemm": 18, "MultiHeadAttention": 18,
}  # fmt: skip
PRODUCTS = frozenset(
    {*_WINDOWED, *_RECURRENT, "InnerProduct", "Gemm", "MatMul", "MultiHeadAttention", "SDPA"}
)
#: Layers that leave the sizes of what they take as they are.
KEEPS_SIZES = frozenset(
    {
        "Split", "Noop", "Dropout", "DeepCopy", "ReLU", "Sigmoid", "TanH", "Clip", "HardSwish",
        "HardSigmoid", "Swish", "Mish", "ELU", "SELU", "GELU", "UnaryOp", "Cast", "Scale",
        "BatchNorm", "Bias",
    }
)  # fmt: skip
#: Layers that make as many rows as they find in what they are given.
FINDS_SO_MANY = frozenset(
    {"DetectionOutput", "YoloDetectionOutput", "Yolov3DetectionOutput", "Proposal"}
)
#: Of the key that holds how many channels are normalised.
_PER_CHANNEL = {"BatchNorm": 0, "Bias": 0, "InstanceNorm": 0, "GroupNorm": 1}


def is_quantised(layer: NcnnLayer) -> bool:
    """Whether a layer computes with whole numbers."""
    return bool(layer.number(_QUANTISED[layer.type])) if layer.type in _QUANTISED else False


def rows_of(layer: NcnnLayer) -> int | None:
    """Rows of the table that a layer looks up; None of those that look nothing up."""
    return layer.number(1) or None if layer.type == "Embed" else None


def shape_taken(layer: NcnnLayer) -> tuple[int | str, ...] | None:
    """The shape that a layer's weights ask of its input, free sizes as ""; None if they do not."""
    if layer.type in _WINDOWED:
        channels = _channels(layer)
        return (channels, *[""] * (_WINDOWED[layer.type] - 1)) if channels else None
    if layer.type in _RECURRENT:
        size = _recurrent_size(layer)
        return ("", size) if size else None
    if layer.type == "InnerProduct":
        size = _flat_size(layer)
        return (size,) if size else None
    if layer.type == "Embed":
        return ("",)
    return None


def mismatch(layer: NcnnLayer, shape: Sequence[int]) -> str:
    """Why a layer cannot take an input of a shape, as the rest of a sentence; "" where it can.

    The shape is that of an item, channels first; of layers without weights nothing is known.
    """
    if layer.type in _WINDOWED:
        channels, axes = _channels(layer), _WINDOWED[layer.type]
        if channels and len(shape) == 1 and layer.type == "Convolution":
            return _unequal(channels, shape[0], "values")  # taken as a product of a row
        if channels and len(shape) != axes:
            return f"takes {axes} axes, and is given {len(shape)}"
        return _unequal(channels, shape[0], "channels") if channels else ""
    if layer.type == "InnerProduct":
        size = _flat_size(layer)
        if not size or (len(shape) == 2 and shape[-1] == size):
            return ""
        return _unequal(size, math.prod(shape), "values")
    if layer.type in _RECURRENT:
        size = _recurrent_size(layer)
        return _unequal(size, shape[-1], "values a step") if size else ""
    if layer.type in _PER_CHANNEL:
        channels = layer.number(_PER_CHANNEL[layer.type])
        return _unequal(channels, shape[0], "channels") if channels else ""
    if layer.type == "LayerNorm" and layer.number(2, 1):
        size = layer.number(0)
        fits = size in {math.prod(shape[place:]) for place in range(len(shape))}
        return "" if fits or not size else f"normalises {size} values, and is given {list(shape)}"
    return ""


def _unequal(wanted: int, given: int, what: str) -> str:
    return "" if wanted == given else f"takes {wanted} {what}, and is given {given}"


def _channels(layer: NcnnLayer) -> int:
    """Channels that a window is laid over; 0 where its weights are an input, or make no sense."""
    results, wide = layer.number(0), layer.number(1)
    window = wide
    if _WINDOWED[layer.type] > 2:
        window *= layer.number(11, wide)
    if _WINDOWED[layer.type] > 3:
        window *= layer.number(21, wide)
    groups = layer.number(7, 1) if "DepthWise" in layer.type else 1
    each = results * window
    whole = layer.number(6) * groups
    return whole // each if each > 0 and whole > 0 and whole % each == 0 else 0


def _flat_size(layer: NcnnLayer) -> int:
    results, weights = layer.number(0), layer.number(2)
    return weights // results if results > 0 and weights > 0 and weights % results == 0 else 0


def _recurrent_size(layer: NcnnLayer) -> int:
    """Values that a step of it reads."""
    results, weights = layer.number(0), layer.number(1)
    hidden = layer.number(3, results) if layer.type == "LSTM" else results
    ways = 2 if layer.number(2) == 2 else 1
    each = ways * hidden * _RECURRENT[layer.type]
    return weights // each if each > 0 and weights > 0 and weights % each == 0 else 0

"""What an ncnn network is: its inputs and outputs, what they may hold, what it is stored in.

A file states no sizes that bind: those of an item follow from the weights of the layers that take
it, or its owner says them. The batch is ncnn's own axis beside them. ncnn has numbers alone: which
of them name rows of a table, and which mask, follows from the layers that take them.

Imports ncnn: import this module only where a file is read.
"""

from __future__ import annotations

import ctypes
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import ncnn
import numpy as np

from accelbench.core.errors import CaseError
from accelbench.core.safe_text import in_quotes
from accelbench.models.file_models.given_inputs import (
    BATCH,
    MaskEffect,
    factor_effect,
    lets_through,
    values_of_type,
)
from accelbench.models.file_models.kinds import FileRefusedError, weights_beside
from accelbench.models.graph_files.costs import FileGraph
from accelbench_ncnn.layers import (
    FINDS_SO_MANY,
    KEEPS_SIZES,
    PRODUCTS,
    NcnnLayer,
    is_quantised,
    layers_of,
    mismatch,
    rows_of,
    shape_taken,
)

#: Layers whose results hold nothing but values of what they take.
_PASSES_ON = frozenset(
    {
        "Split", "Noop", "Dropout", "DeepCopy", "Cast", "Reshape", "ExpandDims", "Squeeze",
        "Permute", "Flatten", "Slice", "Crop", "Tile",
    }
)  # fmt: skip
#: Arithmetic with a number: which, whether there is one, and the number.
_KIND, _WITH_NUMBER, _NUMBER = 0, 1, 2
_TIMES, _FROM = 2, 7
#: Where attention says that what it is given last is added to its scores, and that it keeps more.
_ATTENTION = {"MultiHeadAttention", "SDPA"}
_MASKED, _CACHED = 5, 7
_FLOAT = re.compile(r"-?\d{1,20}(\.\d{0,20})?([eE][+-]?\d{1,3})?")
_ADDED = "zeros: attention adds it to its scores, and they leave nothing out"
_MULTIPLIED = "ones: the network uses it as a mask, and they leave nothing out"


def range_of(name: str, layers: Sequence[NcnnLayer]) -> dict[str, Any]:
    """Type and values of an input: `dtype`, and what `drawn_of_type` says."""
    followed = {name}
    rows: list[int] = []
    for layer in layers:
        if followed.intersection(layer.takes):
            if found := rows_of(layer):
                rows.append(found)
            elif layer.type in _PASSES_ON or layer.type in KEEPS_SIZES:
                followed.update(layer.makes)
    if rows:
        return {"dtype": "int32", **values_of_type(name, "int32", min(rows))}
    return {"dtype": "float32", **(_as_mask(name, layers) or values_of_type(name, "float32", None))}


def _as_mask(name: str, layers: Sequence[NcnnLayer]) -> Mapping[str, Any] | None:
    followed = {name}
    for layer in layers:
        if layer.type in _PASSES_ON and followed.intersection(layer.takes):
            followed.update(layer.makes)
        masked = layer.type in _ATTENTION and layer.number(_MASKED) and not layer.number(_CACHED)
        if masked and layer.takes[-1] in followed:
            return {"constant": 0, "drawn": _ADDED}

    def effects(read: str) -> Iterator[tuple[MaskEffect | None, Sequence[str]]]:
        for layer in layers:
            if read in layer.takes:
                yield _effect(layer), layer.makes

    # Numbers that are multiplied by a large one may be no mask: 1 - mask is one.
    if lets_through(name, effects) == 1:
        return {"constant": 1, "drawn": _MULTIPLIED}
    return None


def _effect(layer: NcnnLayer) -> MaskEffect | None:
    """What a layer does with what it takes."""
    if layer.type in _PASSES_ON:
        return MaskEffect.SAME
    if layer.type != "BinaryOp" or not layer.number(_WITH_NUMBER):
        return None
    text = layer.parameters.get(_NUMBER, "")
    number = float(text) if _FLOAT.fullmatch(text) else None
    if layer.number(_KIND) == _FROM and number == 1.0:
        return MaskEffect.TURNED
    return factor_effect(number) if layer.number(_KIND) == _TIMES else None


_AGAIN = "Copy both files again, or convert the model again."
#: How a weight begins that is not stored as floats, and the bytes that a value of it takes.
_STORED = {0x01306B47: 2, 0x000D4B38: 1}
_TAG = 4
_POINTER = ctypes.pythonapi.PyCapsule_GetPointer
_POINTER.restype, _POINTER.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


class _CountedWeights(ncnn.DataReader):  # type: ignore[misc]
    """Weights as the engine reads them: how many they are, and whether all of them are there."""

    def __init__(self, content: bytes) -> None:
        super().__init__()
        self._content, self._each = memoryview(content), 4
        self.place = self.values = 0
        self.short = False

    def read(self, buffer: Any, size: int) -> int:
        """Give the next bytes to the engine; none where they are not all there."""
        if size > len(self._content) - self.place:
            self.short = True
            return 0
        part = bytes(self._content[self.place : self.place + size])
        self.place += size
        ctypes.memmove(_POINTER(buffer, None), part, size)
        tag = int.from_bytes(part, "little") if size == _TAG else -1
        if tag == 0 or tag in _STORED:
            self._each = _STORED.get(tag, 4)
        else:
            self.values += size // self._each
            self._each = 4
        return size


def look(path: Path) -> dict[str, Any]:
    """Describe a file; raise FileRefusedError if it is no whole network, or cannot be fed."""
    weights = weights_beside(path)
    layers = layers_of(path.read_bytes())
    _refuse_unknown(layers)
    entries = [layer for layer in layers if layer.type == "Input"]
    used = {name for layer in layers for name in layer.takes}
    outputs = [name for layer in layers for name in layer.makes if name not in used]
    if all(layer.type in {"Input", "Split", "MemoryData"} for layer in layers):
        raise FileRefusedError("There is no layer in it that computes: nothing would be measured.")
    read = _loaded(path, _content(weights))
    return {
        "inputs": [_input(layer, name, layers) for layer in entries for name in layer.makes],
        # Their sizes are those of a case's inputs: they are found when it is opened for them.
        "outputs": [{"name": name, "dtype": "float32", "shape": []} for name in outputs],
        "weights": read.values,
        "precision": _precision(layers),
        "operators": len(layers) - len(entries),
        "beside": [str(weights)],
        # The engine joins what items come to, which must then be of one size.
        **({"fixed_batch": 1} if any(layer.type in FINDS_SO_MANY for layer in layers) else {}),
    }


def graph(path: Path) -> FileGraph:
    """Return the network with what its layers take."""
    from accelbench_ncnn.graph import NcnnGraph

    return NcnnGraph(path)


def _refuse_unknown(layers: Iterable[NcnnLayer]) -> None:
    for layer in layers:
        if ncnn.layer_to_index(layer.type) < 0:
            raise FileRefusedError(
                f"Its layer {in_quotes(layer.name)} is a {in_quotes(layer.type)}, which ncnn"
                f" {ncnn.__version__} has not.",
                "Convert the model without it: layers of an application's own are not loaded.",
            )


def _content(weights: Path) -> bytes:
    if not weights.is_file():
        raise FileRefusedError(
            f"The file {weights.name} with its weights is not beside it.",
            "Copy it into the same folder; one without weights has an empty one.",
        )
    return weights.read_bytes()


def _loaded(path: Path, weights: bytes) -> _CountedWeights:
    """The weights of a network, all of which the engine has read."""
    net, reader = ncnn.Net(), _CountedWeights(weights)
    net.opt.use_vulkan_compute = False
    net.opt.use_packing_layout = net.opt.use_winograd_convolution = False
    if net.load_param(str(path)) != 0:
        raise FileRefusedError(f"ncnn {ncnn.__version__} cannot read its layers.", _AGAIN)
    failed = net.load_model(reader) != 0
    if reader.short:
        raise FileRefusedError(
            f"Its layers have more weights than the {len(weights):,} bytes beside it.", _AGAIN
        )
    if failed:
        raise FileRefusedError(f"ncnn {ncnn.__version__} cannot read its weights.", _AGAIN)
    if reader.place != len(weights):
        raise FileRefusedError(
            f"Of the {len(weights):,} bytes of weights beside it, its layers take"
            f" {reader.place:,}: they are another network's.",
            _AGAIN,
        )
    return reader


def _input(entry: NcnnLayer, name: str, layers: Sequence[NcnnLayer]) -> dict[str, Any]:
    takers = list(_takers(name, layers))
    item = _stated(entry) or next(filter(None, map(shape_taken, takers)), None)
    return {
        "name": name,
        "shape": None if item is None else [BATCH, *item],
        "sizes_free": True,
        **range_of(name, layers),
    }


def _stated(entry: NcnnLayer) -> tuple[int, ...] | None:
    """The sizes that an input's own line has: channels, then rows, then columns."""
    columns, rows, channels, depth = (entry.number(key) for key in (0, 1, 2, 11))
    sizes = [size for size in (channels, depth, rows, columns) if size > 0]
    return tuple(sizes) or entry.hint or None


def _takers(name: str, layers: Sequence[NcnnLayer]) -> Iterable[NcnnLayer]:
    """The layers that take a result, or what has its sizes still."""
    same = {name}
    for layer in layers:
        if same.intersection(layer.takes):
            yield layer
            if layer.type in KEEPS_SIZES:
                same.update(layer.makes)


def _precision(layers: Iterable[NcnnLayer]) -> str:
    """int8 where most products are quantised; weights in 16 bits are widened as they are read."""
    counted = Counter(is_quantised(layer) for layer in layers if layer.type in PRODUCTS)
    return "int8" if counted[True] > counted[False] else "fp32"


#: ncnn asks no layer whether its input fits: it reads past what is there. Layers are therefore
#: gone through one by one, and none is run before what it takes was compared with its weights.
_SAY_SIZES = "Say the sizes of one item: --input NAME=[3,224,224]."


def item_shapes(
    path: Path, inputs: Mapping[str, tuple[str, tuple[int, ...]]]
) -> dict[str, tuple[int, ...]]:
    """Return the sizes of every result of a network, of one item.

    `inputs` are the type of each, by NumPy's name, and the sizes of an item. Raises CaseError if a
    layer cannot take what it would be given.
    """
    net = ncnn.Net()
    net.opt.use_vulkan_compute = net.opt.use_fp16_storage = net.opt.use_bf16_storage = False
    net.opt.num_threads = 1
    if net.load_param(str(path)) != 0 or net.load_model(str(path.with_suffix(".bin"))) != 0:
        raise CaseError("session_failed", f"ncnn cannot read {path}", "Convert it again.")
    extractor = net.create_extractor()
    extractor.set_light_mode(False)  # what a layer has taken is looked at again
    for name, (dtype, shape) in inputs.items():
        zeros = np.zeros(shape, dtype)  # a matrix of it keeps it neither alive nor mapped
        extractor.input(name, ncnn.Mat(zeros).clone())
    shapes: dict[str, tuple[int, ...]] = {}
    for layer in layers_of(path.read_bytes()):
        if layer.takes and (why := mismatch(layer, shapes[layer.takes[0]])):
            raise CaseError(
                "format", f"the layer {in_quotes(layer.name)} of its network {why}", _SAY_SIZES
            )
        for name in layer.makes:
            code, made = extractor.extract(name)
            shape = _shape(made)
            if code != 0 or not math.prod(shape):
                raise CaseError(
                    "format",
                    f"the layer {in_quotes(layer.name)} of its network makes nothing of inputs of"
                    f" these sizes",
                    _SAY_SIZES,
                )
            shapes[name] = shape
    return shapes


def _shape(made: Any) -> tuple[int, ...]:
    """Channels, then depth, rows and columns, as far as a matrix of ncnn has them."""
    axes: dict[int, tuple[int, ...]] = {
        1: (made.w,),
        2: (made.h, made.w),
        3: (made.c, made.h, made.w),
        4: (made.c, made.d, made.h, made.w),
    }
    return axes.get(made.dims, (0,))

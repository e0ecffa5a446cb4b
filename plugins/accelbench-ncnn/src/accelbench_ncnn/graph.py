"""Steps of an ncnn network: its layers, with the sizes that the engine makes of zeros.

A network's text has no sizes of results, and ncnn tells none before it has run: layers are gone
through one by one on zeros of the sizes asked for, each compared with its weights before.

Imports ncnn: import this module only where a file is read.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path

from accelbench.core.errors import CaseError
from accelbench.models.graph_files.steps import (
    FileInput,
    GraphSizes,
    GraphStep,
    GraphValue,
    OperatorSignature,
    UntracedError,
    convolution,
    moving,
    product,
    refuse_uncounted,
    step,
)
from accelbench_ncnn.layers import NcnnLayer, layers_of
from accelbench_ncnn.reader import item_shapes, look

_VIEWS = {
    "Input", "MemoryData", "Split", "Noop", "Dropout", "DeepCopy", "Reshape", "Flatten", "Permute",
    "ExpandDims", "Squeeze", "Slice", "Crop", "Quantize", "Dequantize",
}  # fmt: skip
_CLASSES = {
    "bn": ("BatchNorm", "Scale", "Bias"),
    "ln": ("LayerNorm", "GroupNorm", "InstanceNorm", "RMSNorm", "Normalize", "LRN", "MVN"),
    "act": (
        "ReLU", "Sigmoid", "TanH", "Clip", "HardSwish", "HardSigmoid", "Swish", "Mish", "ELU",
        "SELU", "GELU", "PReLU", "CELU", "Erf",
    ),
    "pool": ("Pooling", "Pooling1D", "Pooling3D", "Reduction", "CumulativeSum"),
    "softmax": ("Softmax",),
    "copy": (
        "Concat", "Interp", "Padding", "PixelShuffle", "ShuffleChannel", "Reorg", "Embed", "Tile",
        "Cast", "CopyTo", "Fold", "Unfold",
    ),
    "elt": ("BinaryOp", "UnaryOp", "Eltwise", "Power", "Exp", "Log", "AbsVal"),
}  # fmt: skip
_CLASS_OF = {name: op_class for op_class, names in _CLASSES.items() for name in names}
#: Convolutions, by how many axes their kernels have.
_CONVOLUTIONS = {
    f"{name}{suffix}": axes
    for name in ("Convolution", "Deconvolution", "ConvolutionDepthWise", "DeconvolutionDepthWise")
    for suffix, axes in (("", 2), ("1D", 1), ("3D", 3))
}
_COUNTED = {*_VIEWS, *_CLASS_OF, *_CONVOLUTIONS, "InnerProduct", "MatMul"}
#: The keys of a layer: its results, its kernel's sides, how it steps, weights, groups, activation.
_RESULTS, _SIDES, _STRIDE, _WEIGHTS, _GROUPS, _ACTIVATION = 0, (1, 11, 21), 3, 6, 7, 9
_FLAT_WEIGHTS = 2
#: What its weights are stored in, as readers of graphs call it.
_STORED = {"fp32": "float", "int8": "int8"}


class NcnnGraph:
    """An ncnn network: a `FileGraph`, its batch before the sizes of an item."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._layers = layers_of(path.read_bytes())
        told = look(path)
        refuse_uncounted({layer.type for layer in self._layers} - _COUNTED)
        self._types = {entry["name"]: entry["dtype"] for entry in told["inputs"]}
        self.inputs = tuple(
            FileInput(entry["name"], tuple(entry["shape"]))
            for entry in told["inputs"]
            if entry["shape"] is not None
        )
        if len(self.inputs) < len(self._types):
            raise UntracedError(
                "It does not say how many axes an input has.",
                "Write the sizes in its layer Input, such as 0=224 1=224 2=3 for [3,224,224].",
            )
        self.weights, self.operators = told["weights"], told["operators"]
        self.precision = _STORED[told["precision"]]

    def steps(self, sizes: GraphSizes) -> tuple[list[GraphStep], set[str]]:
        """Its steps at some sizes, and the names of what it gives."""
        items = {name: (self._types[name], shape[1:]) for name, shape in sizes.shapes.items()}
        try:
            shapes = item_shapes(self._path, items)
        except CaseError as error:
            raise UntracedError(f"{error.message[:1].upper()}{error.message[1:]}.") from error
        batch = next(iter(sizes.shapes.values()))[0]
        constants = {
            name for layer in self._layers if layer.type == "MemoryData" for name in layer.makes
        }

        def value(name: str) -> GraphValue:
            fixed = name in constants
            return GraphValue(name, shapes[name] if fixed else (batch, *shapes[name]), fixed)

        steps: list[GraphStep] = []
        for layer in self._layers:
            if layer.type not in {"Input", "MemoryData"}:
                takes, makes = list(map(value, layer.takes)), list(map(value, layer.makes))
                steps += _steps(layer, takes, makes)
        read = {name for layer in self._layers for name in layer.takes}
        return steps, {name for layer in self._layers for name in layer.makes if name not in read}


def _steps(
    layer: NcnnLayer, inputs: Sequence[GraphValue], outputs: Sequence[GraphValue]
) -> Iterator[GraphStep]:
    """A layer, and the activation that it puts on its result as a step of its own."""
    fused = layer.number(_ACTIVATION) if layer.type in {*_CONVOLUTIONS, "InnerProduct"} else 0
    made = list(outputs)
    if fused:
        made[0] = GraphValue(f"{outputs[0].name} before its activation", outputs[0].shape)
    yield step(layer.type, inputs, made, _signature(layer, inputs, made))
    if fused:
        yield step("ReLU", made[:1], outputs[:1], moving("act", made[:1], outputs[:1]))


def _signature(
    layer: NcnnLayer, inputs: Sequence[GraphValue], outputs: Sequence[GraphValue]
) -> OperatorSignature | None:
    made = outputs[0]
    if layer.type in _VIEWS or not made.elements:
        return None
    if layer.type == "InnerProduct" or _is_product(layer, inputs):
        flat = layer.type == "InnerProduct"
        results = layer.number(_RESULTS)
        deep = layer.number(_FLAT_WEIGHTS if flat else _WEIGHTS) // max(results, 1)
        weight = GraphValue(f"{layer.name} weights", (results, deep), constant=True)
        return product(inputs[0], weight, made, deep)
    if layer.type in _CONVOLUTIONS:
        return _convolution(layer, inputs[0], made)
    if layer.type == "MatMul":
        return product(inputs[0], inputs[1], made, inputs[0].shape[-1])
    return moving(_CLASS_OF[layer.type], inputs, outputs, looked_up=layer.type == "Embed")


def _is_product(layer: NcnnLayer, inputs: Sequence[GraphValue]) -> bool:
    """Whether a convolution is given a row of values: ncnn takes it as a product."""
    return layer.type == "Convolution" and len(inputs[0].shape) == 2


def _convolution(layer: NcnnLayer, values: GraphValue, made: GraphValue) -> OperatorSignature:
    axes, groups = _CONVOLUTIONS[layer.type], 1
    if "DepthWise" in layer.type:
        groups = max(layer.number(_GROUPS, 1), 1)
    wide = layer.number(_SIDES[0])
    kernel = math.prod(layer.number(key, wide) for key in _SIDES[:axes])
    channels, results = values.shape[1], layer.number(_RESULTS)
    whole = layer.number(_WEIGHTS)
    if layer.type.startswith("Deconvolution"):
        shape = (channels, results // groups, kernel)
    else:
        shape = (results, channels // groups, kernel)
    if math.prod(shape) != whole:
        raise UntracedError(f"The weights of its layer {layer.type} are not those of its input.")
    return convolution(
        values, GraphValue(f"{layer.name} weights", shape, constant=True), made, groups=groups,
        stride=layer.number(_STRIDE, 1), transposed=layer.type.startswith("Deconvolution"),
    )  # fmt: skip

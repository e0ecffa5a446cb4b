"""int8 for ONNX Runtime and QNN: static QDQ, calibrated with seeded inputs. And fp16.

Activations are unsigned and weights signed and a channel each (U8S8): with signed
activations six of BERT's products stayed in fp32 on x86. QNN wants unsigned weights, one
scale a tensor: with a scale a channel it leaves layer norms to the CPU.

What is done to an ONNX graph before its numbers are quantised.

Folded: what does not depend on the inputs is computed once, by ONNX Runtime. Softened:
masks hold the lowest number there is, and a range that reaches there has no step left for
anything else; constants below -1e9 become -30, which is as good as never under a softmax
(GPT-2's error then falls from 0.31 to 0.04). Spared: floats that become an index or a size
are exact or wrong: quantised, T5 looked up the distance -9223372036854775784, and a
denoiser doubled 32 pixels to 63.

Chosen: where tokens attend to each other, products with weights are quantised and the rest
is left in float. Quantising residual sums and attention too moved ViT's logits by 0.71 of
what another image moves them, against 0.10, and was no faster: 0.56 ms against 0.54 for
ViT's tiny size, 1.15 against 1.09 for BERT's. A graph of convolutions alone is quantised
whole: there every sum that stays in float is two conversions more.

Graphs of any size: weights travel beside the graph, never inside it, where 2 GB is the end.
"""

from __future__ import annotations

import logging
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count, islice
from pathlib import Path
from typing import Any

import numpy as np

from accelbench.engines.artifacts.external import save, tidy
from accelbench.engines.artifacts.recipe import GRAPH, WEIGHTS, Manifest, Recipe
from accelbench.models.inputs import make_inputs

_FLOOR, _MASK = -30.0, -1e9

#: A value that went through one of these is a product's, and no size or index any more.
_ACTIVATIONS = frozenset(
    (
    "MatMul", "Gemm", "Conv", "ConvTranspose", "Einsum", "Softmax", "LayerNormalization",
    "BatchNormalization", "InstanceNormalization",
    )
)  # fmt: skip

#: What moves numbers and computes none.
_MOVES = frozenset(
    ("Gather", "Transpose", "Reshape", "Unsqueeze", "Squeeze", "Slice", "Split", "Identity")
)

#: What is quantised where attention is: products with weights, and tables of them.
_WEIGHTED = ("MatMul", "Gemm", "Conv", "ConvTranspose", "Gather")

#: Which inputs of an operator are sizes, though they may be floats: Resize's roi and scales.
_SIZES = {"Resize": (1, 2), "Range": (0, 1, 2)}


def fold(source: Path, target: Path) -> None:
    """Write a graph with its constants computed and its shapes inferred."""
    from onnxruntime.quantization.shape_inference import quant_pre_process

    # Where folding fails, the tool logs a traceback and goes on with the graph as it is.
    logging.getLogger("onnxruntime.quantization.shape_inference").setLevel(logging.CRITICAL)
    quant_pre_process(
        str(source),
        str(target),
        skip_symbolic_shape=True,  # it raises TypeError on wav2vec2, and nothing here needs it
        save_as_external_data=True,
        all_tensors_to_one_file=True,
        external_data_location=f"{target.stem}.data",
    )


def soften(model: Any) -> int:
    """Make a graph's mask constants mild; return how many there were."""
    import onnx
    from onnx import numpy_helper

    count = 0
    for tensor in _constants(model):
        if tensor.data_type != onnx.TensorProto.FLOAT:
            continue
        values = numpy_helper.to_array(tensor)
        if not values.size or not np.any(values < _MASK):
            continue
        mild = np.maximum(values, np.float32(_FLOOR)).astype(np.float32)
        tensor.CopyFrom(numpy_helper.from_array(mild, tensor.name))
        count += 1
    return count


def _constants(model: Any) -> Iterator[Any]:
    yield from model.graph.initializer
    for node in model.graph.node:
        for attribute in node.attribute:
            if attribute.HasField("t"):
                yield attribute.t


def unshare(model: Any) -> int:
    """Give each product a bias of its own; return how many were another's too.

    Folding keeps equal constants once. A product's bias is quantised to 32 bits, and whoever
    else reads it then reads it through a DequantizeLinear that QNN leaves to the CPU.
    """
    biases = {tensor.name: tensor for tensor in model.graph.initializer}
    readers = Counter(name for node in model.graph.node for name in node.input)
    count = 0
    for node in model.graph.node:
        if node.op_type not in ("Gemm", "Conv", "ConvTranspose") or len(node.input) < 3:
            continue
        name = node.input[2]
        if name not in biases or readers[name] < 2:
            continue
        own = model.graph.initializer.add()
        own.CopyFrom(biases[name])
        own.name = node.input[2] = f"{name}_own_{count}"
        readers[name] -= 1
        count += 1
    return count


def transpose_weights(model: Any) -> int:
    """Store the constant weights of each Gemm with output channels first; return their number.

    Folding makes Gemms of [input, output] weights. With a scale for each channel of the second
    axis, Chromium's WebNN fails to build the graph ("Failed to build TFL interpreter").
    """
    import onnx
    from onnx import numpy_helper

    weights = {tensor.name: tensor for tensor in model.graph.initializer}
    readers = Counter(name for node in model.graph.node for name in node.input)
    count = 0
    for node in model.graph.node:
        if node.op_type != "Gemm" or node.input[1] not in weights or readers[node.input[1]] > 1:
            continue
        held = {attribute.name: attribute for attribute in node.attribute}
        if "transB" in held and held["transB"].i:
            continue
        tensor = weights[node.input[1]]
        turned = numpy_helper.to_array(tensor).T.copy()
        tensor.CopyFrom(numpy_helper.from_array(turned, tensor.name))
        if "transB" in held:
            node.attribute.remove(held["transB"])
        node.attribute.append(onnx.helper.make_attribute("transB", 1))
        count += 1
    return count


def spared(model: Any) -> list[str]:
    """Return the nodes whose numbers become an index or a size; give each node a name."""
    import onnx

    makers = {}
    for number, node in enumerate(model.graph.node):
        node.name = node.name or f"{node.op_type}_{number}"
        makers.update(dict.fromkeys(node.output, node))
    names: dict[str, None] = {}
    waiting = []
    for node in model.graph.node:
        if node.op_type == "Cast" and onnx.helper.get_node_attr_value(node, "to") in (
            onnx.TensorProto.INT32,
            onnx.TensorProto.INT64,
        ):
            waiting.append(node.input[0])
        elif node.op_type in _SIZES:
            waiting += [node.input[i] for i in _SIZES[node.op_type] if i < len(node.input)]
    while waiting:
        node = makers.get(waiting.pop())
        if node is None or node.name in names or node.op_type in _ACTIVATIONS:
            continue
        names[node.name] = None
        waiting += node.input
    return list(names)


def attention(model: Any) -> list[str]:
    """Return the names of products of two values that are computed: no weight is in them."""
    weights = {tensor.name for tensor in model.graph.initializer}
    # A mixture's experts are weights too, picked and turned before they are multiplied.
    for node in model.graph.node:
        if node.op_type in _MOVES and node.input[0] in weights:
            weights.update(node.output)
    return [
        node.name
        for node in model.graph.node
        if node.op_type in ("MatMul", "Einsum") and not weights.intersection(node.input)
    ]


@dataclass(frozen=True)
class Choice:
    """What of a graph is quantised."""

    operators: Sequence[str] | None  # None: all
    without: Sequence[str]  # names of nodes

    @property
    def words(self) -> str:
        return "everything" if self.operators is None else "products with weights"


def chosen(model: Any) -> Choice:
    """Return what to quantise; see the module's reasons."""
    sizes, attending = spared(model), attention(model)
    return Choice(_WEIGHTED if attending else None, [*sizes, *attending])


#: Batches that ranges are read from.
CALIBRATION_BATCHES = 8
_CALIBRATION_ITEMS = 2
#: Other draws than those that are measured and verified.
_CALIBRATION_SEED = 0xCA11B


class Seeded:
    """Calibration inputs, as the quantiser reads them."""

    def __init__(self, recipe: Recipe, manifest: Manifest) -> None:
        self._batches = calibration(recipe, manifest)

    def get_next(self) -> dict[str, Any] | None:
        return next(self._batches, None)


def calibration(recipe: Recipe, manifest: Manifest) -> Iterator[dict[str, Any]]:
    """Yield seeded batches by the file's input names."""
    items = manifest.batch or _CALIBRATION_ITEMS
    shapes = replace(recipe.case.shapes, batch=items)
    for seed in seeds(recipe):
        arrays = make_inputs(recipe.case.model, shapes, seed)
        yield {input_.file_name: arrays[input_.name] for input_ in manifest.inputs}


def seeds(recipe: Recipe) -> list[int]:
    """Return the seeds of the calibration batches; never the one that is measured."""
    drawn = (seed for seed in count(_CALIBRATION_SEED) if seed != recipe.seed)
    return list(islice(drawn, CALIBRATION_BATCHES))


def described(method: str, batches: int, items: int, **more: Any) -> dict[str, Any]:
    """Return what a result says of its quantiser."""
    return {
        "method": method,
        "calibration": {
            "source": "seeded",
            "seed": _CALIBRATION_SEED,
            "batches": batches,
            "items": items,
        },
        **more,
    }


def quantise(recipe: Recipe, base: Path, manifest: Manifest, folder: Path) -> dict[str, Any]:
    """Write a quantised graph beside its weights; return the manifest's fields that change."""
    import onnx

    quiet = logging.getLogger()
    before = quiet.level
    quiet.setLevel(logging.ERROR)  # it advises to prepare what is prepared
    try:
        with tempfile.TemporaryDirectory(dir=folder, prefix="preparing-") as rough:
            folded, ready = Path(rough) / "folded.onnx", Path(rough) / "ready.onnx"
            fold(base / manifest.file, folded)
            model = onnx.load(str(folded))
            del model.metadata_props[:]  # qnn_preprocess_model stumbles over other tools' entries
            softened, choice = soften(model), chosen(model)
            unshare(model)
            if recipe.wanted.format != "onnx-qnn-int8":
                transpose_weights(model)
            save(model, ready, "ready.data")
            reader = Seeded(recipe, manifest)
            if recipe.wanted.format == "onnx-qnn-int8":
                how = "QDQ u8 activations, u8 weights, a scale a tensor"
                _for_qnn(ready, folder / GRAPH, reader, choice)
            else:
                how = "QDQ u8 activations, s8 weights, a scale a channel"
                _for_cpu(ready, folder / GRAPH, reader, choice)
    finally:
        quiet.setLevel(before)
    return {
        "file": GRAPH,
        "quantiser": described(
            f"onnxruntime static {how}",
            CALIBRATION_BATCHES,
            manifest.batch or _CALIBRATION_ITEMS,
            ranges="minimum and maximum",
            quantised=choice.words,
            softened_masks=softened,
        ),
    }


def _for_cpu(source: Path, target: Path, reader: Seeded, choice: Choice) -> None:
    from onnxruntime.quantization import CalibrationMethod, QuantFormat, QuantType, quantize_static

    quantize_static(
        str(source),
        str(target),
        reader,
        quant_format=QuantFormat.QDQ,
        activation_type=QuantType.QUInt8,
        weight_type=QuantType.QInt8,
        per_channel=True,
        calibrate_method=CalibrationMethod.MinMax,
        use_external_data_format=True,
        **_limits(choice),
    )


def _limits(choice: Choice) -> dict[str, Any]:
    operators = None if choice.operators is None else list(choice.operators)
    return {"op_types_to_quantize": operators, "nodes_to_exclude": list(choice.without)}


def _for_qnn(source: Path, target: Path, reader: Seeded, choice: Choice) -> None:
    from onnxruntime.quantization import QuantType, quantize
    from onnxruntime.quantization.execution_providers.qnn import (
        get_qnn_qdq_config,
        qnn_preprocess_model,
    )

    fused = source.with_name("fused.onnx")
    changed = qnn_preprocess_model(
        str(source),
        str(fused),
        save_as_external_data=True,
        all_tensors_to_one_file=True,
        external_data_location="fused.data",
    )
    config = get_qnn_qdq_config(
        str(fused if changed else source),
        reader,
        activation_type=QuantType.QUInt8,
        weight_type=QuantType.QUInt8,
        **_limits(choice),
    )
    quantize(str(fused if changed else source), str(target), config)


def halve(base: Path, manifest: Manifest, folder: Path) -> dict[str, Any]:
    """Write the graph with fp16 weights and arithmetic; inputs and outputs stay fp32."""
    import onnx
    from onnxruntime.transformers.float16 import convert_float_to_float16

    with tempfile.TemporaryDirectory(dir=folder, prefix="preparing-") as rough:
        folded = Path(rough) / "folded.onnx"
        fold(base / manifest.file, folded)  # the NPU has no Trilu: masks are made here
        model = onnx.load(str(folded))
    model = convert_float_to_float16(model, keep_io_types=True, disable_shape_infer=True)
    tidy(model)
    save(model, folder / GRAPH, WEIGHTS)
    return {"file": GRAPH}

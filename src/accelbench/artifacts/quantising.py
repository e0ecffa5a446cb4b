"""int8 for ONNX Runtime and QNN: static QDQ, calibrated with seeded inputs.

Activations are unsigned and weights signed and a channel each (U8S8): with signed
activations six of BERT's products stayed in fp32 on x86. QNN wants unsigned weights, one
scale a tensor: with a scale a channel it leaves layer norms to the CPU.

Masks hold the lowest number there is, and a range that reaches there has no step left
for anything else: constants below -1e9 become -30, which is as good as never under a
softmax. GPT-2's error then falls from 0.31 to 0.04.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from accelbench.artifacts.exporting import GRAPH, WEIGHTS
from accelbench.artifacts.manifest import Manifest
from accelbench.artifacts.recipe import Recipe
from accelbench.catalog.inputs import make_inputs

#: Batches that ranges are read from.
CALIBRATION_BATCHES = 8
_CALIBRATION_ITEMS = 2
#: Other draws than those that are measured and verified.
_CALIBRATION_SEED = 0xCA11B

_FLOOR, _MASK = -30.0, -1e9


class Seeded:
    """Calibration inputs, as the quantiser reads them."""

    def __init__(self, recipe: Recipe, manifest: Manifest) -> None:
        self._batches = calibration(recipe, manifest)

    def get_next(self) -> dict[str, Any] | None:
        """The next batch, None after the last."""
        return next(self._batches, None)


def calibration(recipe: Recipe, manifest: Manifest) -> Iterator[dict[str, Any]]:
    """Seeded batches by the file's input names."""
    items = manifest.batch or _CALIBRATION_ITEMS
    shapes = replace(recipe.case.shapes, batch=items)
    for number in range(CALIBRATION_BATCHES):
        seed = _CALIBRATION_SEED + number
        arrays = make_inputs(recipe.case.model, shapes, seed)
        yield {one.file_name: arrays[one.name] for one in manifest.inputs}


def described(method: str, batches: int, items: int, **more: Any) -> dict[str, Any]:
    """What a result says of its quantiser."""
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
    """Write a quantised graph beside its weights; the manifest's fields that change."""
    from onnxruntime.quantization import CalibrationMethod, QuantFormat, QuantType, quantize_static

    soft = folder / "soft.onnx"
    softened = soften(base / manifest.file, soft)
    reader = Seeded(recipe, manifest)
    target = folder / GRAPH
    if recipe.wanted.format == "onnx-qnn-int8":
        how = "QDQ u8 activations, u8 weights, a scale a tensor"
        _for_qnn(soft, target, reader)
    else:
        how = "QDQ u8 activations, s8 weights, a scale a channel"
        quantize_static(
            str(soft),
            str(target),
            reader,
            quant_format=QuantFormat.QDQ,
            activation_type=QuantType.QUInt8,
            weight_type=QuantType.QInt8,
            per_channel=True,
            calibrate_method=CalibrationMethod.MinMax,
            use_external_data_format=True,
        )
    for left in folder.glob("soft*"):
        left.unlink()
    items = manifest.batch or _CALIBRATION_ITEMS
    return {
        "file": GRAPH,
        "quantiser": described(
            f"onnxruntime static {how}",
            CALIBRATION_BATCHES,
            items,
            ranges="minimum and maximum",
            softened_masks=softened,
        ),
    }


def _for_qnn(source: Path, target: Path, reader: Seeded) -> None:
    import onnx
    from onnxruntime.quantization import QuantType, quantize
    from onnxruntime.quantization.execution_providers.qnn import (
        get_qnn_qdq_config,
        qnn_preprocess_model,
    )

    model = onnx.load(str(source))
    del model.metadata_props[:]  # qnn_preprocess_model stumbles over those of other tools
    prepared = source.with_name("soft-prepared.onnx")
    if not qnn_preprocess_model(model, str(prepared)):
        prepared = source
    config = get_qnn_qdq_config(
        str(prepared), reader, activation_type=QuantType.QUInt8, weight_type=QuantType.QUInt8
    )
    quantize(str(prepared), str(target), config)


def soften(source: Path, target: Path) -> int:
    """Copy a graph with its mask constants made mild; how many there were.

    The copy has its weights inline: the quantiser loads it whole anyway.
    """
    import onnx
    from onnx import numpy_helper

    model = onnx.load(str(source))
    count = 0

    def mild(tensor: Any) -> int:
        if tensor.data_type != onnx.TensorProto.FLOAT:
            return 0
        values = numpy_helper.to_array(tensor)
        if not values.size or values.size > 1e6 or values.min() >= _MASK:
            return 0
        tensor.CopyFrom(
            numpy_helper.from_array(np.maximum(values, _FLOOR).astype(np.float32), tensor.name)
        )
        return 1

    for tensor in model.graph.initializer:
        count += mild(tensor)
    for node in model.graph.node:
        for attribute in node.attribute:
            if attribute.HasField("t"):
                count += mild(attribute.t)
    onnx.save_model(
        model,
        str(target),
        save_as_external_data=True,
        location=f"soft-{WEIGHTS}",
        size_threshold=1024,
    )
    return count


def halve(base: Path, manifest: Manifest, folder: Path) -> dict[str, Any]:
    """Write the graph with fp16 weights and arithmetic; inputs and outputs stay fp32."""
    import onnx
    from onnxruntime.transformers.float16 import convert_float_to_float16

    model = convert_float_to_float16(
        onnx.load(str(base / manifest.file)), keep_io_types=True, disable_shape_infer=True
    )
    onnx.save_model(
        model,
        str(folder / GRAPH),
        save_as_external_data=True,
        all_tensors_to_one_file=True,
        location=WEIGHTS,
        size_threshold=1024,
    )
    return {"file": GRAPH}

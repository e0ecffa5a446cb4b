"""int8 for ONNX Runtime and QNN: static QDQ, calibrated with seeded inputs. And fp16.

Activations are unsigned and weights signed and a channel each (U8S8): with signed
activations six of BERT's products stayed in fp32 on x86. QNN wants unsigned weights, one
scale a tensor: with a scale a channel it leaves layer norms to the CPU.
"""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from itertools import count, islice
from pathlib import Path
from typing import Any

from accelbench.artifacts.external import save
from accelbench.artifacts.graphs import Choice, chosen, fold, soften, transpose_weights, unshare
from accelbench.artifacts.manifest import GRAPH, WEIGHTS, Manifest
from accelbench.artifacts.names import tidy
from accelbench.artifacts.recipe import Recipe
from accelbench.catalog.inputs import make_inputs

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
        """The next batch, None after the last."""
        return next(self._batches, None)


def calibration(recipe: Recipe, manifest: Manifest) -> Iterator[dict[str, Any]]:
    """Seeded batches by the file's input names."""
    items = manifest.batch or _CALIBRATION_ITEMS
    shapes = replace(recipe.case.shapes, batch=items)
    for seed in seeds(recipe):
        arrays = make_inputs(recipe.case.model, shapes, seed)
        yield {input_.file_name: arrays[input_.name] for input_ in manifest.inputs}


def seeds(recipe: Recipe) -> list[int]:
    """Those of the calibration batches; never the one that is measured."""
    drawn = (seed for seed in count(_CALIBRATION_SEED) if seed != recipe.seed)
    return list(islice(drawn, CALIBRATION_BATCHES))


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
    """A choice as the tool wants it: lists, and None where it may take everything."""
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

"""ONNX → OpenVINO IR, in fp32 or quantised by nncf."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from accelbench.artifacts.manifest import Manifest
from accelbench.artifacts.quantising import CALIBRATION_BATCHES, calibration, described
from accelbench.artifacts.recipe import Recipe
from accelbench.hardware.openvino import without_telemetry

IR = "model.xml"


def convert(base: Path, manifest: Manifest, folder: Path) -> dict[str, Any]:
    """Write model.xml and model.bin, weights as they are: fp32."""
    without_telemetry()
    import openvino

    model = openvino.convert_model(str(base / manifest.file))
    openvino.save_model(model, str(folder / IR), compress_to_fp16=False)
    return {"file": IR}


def quantise(recipe: Recipe, base: Path, manifest: Manifest, folder: Path) -> dict[str, Any]:
    """Write a model whose products are int8, calibrated with seeded inputs."""
    without_telemetry()
    import logging

    import nncf
    import openvino

    logging.getLogger("nncf").setLevel(logging.ERROR)
    batches = list(calibration(recipe, manifest))
    # Softmax and layer norms of transformers want care that convolutions do not.
    transformer = recipe.case.model.architecture.value != "vision" or bool(
        recipe.case.model.config.get("num_attention_heads")
    )
    model = nncf.quantize(
        # Converted, not read: in a graph as it was exported most weights are behind a transpose,
        # where nncf does not see them. BERT's products then ran in fp32, 95 % of their time.
        openvino.convert_model(str(base / manifest.file)),
        nncf.Dataset(batches),
        subset_size=CALIBRATION_BATCHES,
        model_type=nncf.ModelType.TRANSFORMER if transformer else None,
    )
    openvino.save_model(model, str(folder / IR), compress_to_fp16=False)
    items = next(iter(batches[0].values())).shape[0]
    return {
        "file": IR,
        "quantiser": described(
            "nncf post-training quantisation",
            len(batches),
            items,
            model_type="transformer" if transformer else "plain",
        ),
    }

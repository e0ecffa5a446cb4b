"""A graph for one batch, in which nothing about sizes is left to be computed.

Browsers' providers take no sizes that may vary, and leave what computes them to the CPU.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from accelbench.artifacts.manifest import GRAPH, WEIGHTS, Manifest, Tensor
from accelbench.artifacts.names import renamed

_SMALLEST = 1024  # bytes: what is smaller stays in the graph


def settle(base: Path, manifest: Manifest, folder: Path, batch: int) -> Mapping[str, Any]:
    """Write it, by ONNX Runtime's own folding; which fields of the manifest are then others."""
    import onnx
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3  # that the file may run on this machine alone is not so here
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.add_free_dimension_override_by_name("batch", batch)
    options.optimized_model_filepath = str(folder / GRAPH)
    # Beside the graph, and all of them: those that nothing was done to are the base's otherwise.
    for name, value in (("file_name", WEIGHTS), ("min_size_in_bytes", str(_SMALLEST))):
        key = f"session.optimized_model_external_initializers_{name}"
        options.add_session_config_entry(key, value)
    onnxruntime.InferenceSession(
        str(base / manifest.file), options, providers=["CPUExecutionProvider"]
    )
    # The weights stay where they are: names alone are changed.
    model = onnx.load(str(folder / GRAPH), load_external_data=False)
    renamed(model)
    onnx.save(model, str(folder / GRAPH))
    return {
        "file": GRAPH,
        "batch": batch,
        "inputs": tuple(_fixed(manifest.inputs, batch)),
        "outputs": tuple(_fixed(manifest.outputs, batch)),
    }


def _fixed(tensors: Iterable[Tensor], batch: int) -> Iterable[Tensor]:
    for tensor in tensors:
        yield replace(
            tensor, shape=tuple(batch if size == "batch" else size for size in tensor.shape)
        )

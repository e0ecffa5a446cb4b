"""ONNX graphs beside their weights: in one file, for one batch, under names engines can open.

Inside a graph, 2 GB of weights is the end.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from accelbench.engines.artifacts.recipe import GRAPH, WEIGHTS, Manifest, Tensor


def tidy(model: Any) -> None:
    """Drop what is there twice, and give constants names that no engine makes."""
    once(model)
    renamed(model)


def once(model: Any) -> int:
    """Drop nodes whose outputs are there already; return how many.

    Of a value that two nodes read in fp32, the converter to fp16 writes the same cast twice,
    and ONNX Runtime calls the graph invalid: two nodes with same node name (DETR's, whose
    positions are sums over the image).
    """
    made: set[str] = set()
    twice = []
    for node in model.graph.node:
        names = {name for name in node.output if name}
        if names and names <= made:
            twice.append(node)
        made |= names
    for node in twice:
        model.graph.node.remove(node)
    return len(twice)


def renamed(model: Any) -> int:
    """Give the constants of a folded graph new names; return how many.

    ONNX Runtime folds by its own optimiser, which calls what it adds gemm_input_shape. Opening
    what it has written, it adds others of that name and stops: "Attempt to replace the existing
    tensor" (BERT's and RAG's, in fp16 for one batch size).
    """
    graph = model.graph
    shown = {value.name for value in (*graph.input, *graph.output)}
    new = {
        tensor.name: f"{tensor.name}_kept"
        for tensor in graph.initializer
        if tensor.name not in shown
    }
    for entry in (*graph.initializer, *graph.value_info):
        entry.name = new.get(entry.name, entry.name)
    for node in _nodes(graph):
        for place, name in enumerate(node.input):
            if name in new:
                node.input[place] = new[name]
    return len(new)


def _nodes(graph: Any) -> Iterator[Any]:
    # Of branches and loops within it, too.
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            for inner in (attribute.g, *attribute.graphs):
                yield from _nodes(inner)


#: Smaller ones stay in the graph, where tools look for sizes and axes.
SMALLEST = 1024

#: Where each begins in the file: an engine maps whole pages.
_PAGE = 4096


def save(model: Any, path: Path, weights: str) -> None:
    """Write a graph with its weights in a file beside it, each once."""
    import onnx

    onnx.save_model(
        model,
        str(path),
        save_as_external_data=True,
        all_tensors_to_one_file=True,
        location=weights,
        size_threshold=SMALLEST,
    )


def gather(model: Any, path: Path, weights: str) -> None:
    """Join the files that a graph's weights are in, without reading them into memory.

    Each goes as soon as it is in the one file: the disk never holds the weights twice. The
    model is loaded without them.
    """
    import onnx
    from onnx.external_data_helper import ExternalDataInfo, set_external_data, uses_external_data

    tensors = list(model.graph.initializer)
    where = {
        tensor.name: ExternalDataInfo(tensor).location
        for tensor in tensors
        if uses_external_data(tensor)
    }
    left = Counter(where.values())
    with (path.parent / weights).open("wb") as target:
        for tensor in tensors:
            if tensor.name not in where and len(tensor.raw_data) < SMALLEST:
                continue
            offset = -(-target.tell() // _PAGE) * _PAGE
            target.seek(offset)
            if tensor.name in where:
                _append(ExternalDataInfo(tensor), path.parent, target)
                left[where[tensor.name]] -= 1
                if not left[where[tensor.name]]:
                    (path.parent / where[tensor.name]).unlink()
            else:
                target.write(tensor.raw_data)
            length = target.tell() - offset
            tensor.raw_data = b""  # what marks it as external wants the field to be there
            set_external_data(tensor, weights, offset, length)
            tensor.ClearField("raw_data")
    onnx.save_model(model, str(path))


def _append(info: Any, folder: Path, target: Any) -> None:
    source = folder / info.location
    with source.open("rb") as file:
        file.seek(info.offset or 0)
        if info.length is None:
            shutil.copyfileobj(file, target, 1 << 24)
            return
        remaining = int(info.length)
        while remaining > 0:
            part = file.read(min(remaining, 1 << 24))
            if not part:
                raise OSError(f"{source} ends before its tensor does")
            target.write(part)
            remaining -= len(part)


def settle(base: Path, manifest: Manifest, folder: Path, batch: int) -> Mapping[str, Any]:
    """Write a graph for one batch, by ONNX Runtime's own folding; return the changed fields.

    Browsers' providers take no sizes that may vary, and leave what computes them to the CPU.
    """
    import onnx
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3  # that the file may run on this machine alone is not so here
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.add_free_dimension_override_by_name("batch", batch)
    options.optimized_model_filepath = str(folder / GRAPH)
    # Beside the graph, and all of them: those that nothing was done to are the base's otherwise.
    for name, value in (("file_name", WEIGHTS), ("min_size_in_bytes", str(SMALLEST))):
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

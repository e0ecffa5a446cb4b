"""An ONNX graph's weights in one file beside it, each once: inside it, 2 GB is the end."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path
from typing import Any

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

    Each goes as soon as it is in the one file: the disk never holds the weights twice.

    Args:
        model: the graph, loaded without them.
        path: where the graph is written again.
        weights: the one file's name.
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
    """Copy one tensor's bytes from the file that they are in."""
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

"""The graph in a file, by its format; readers are imported on use."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Protocol

from accelbench.core.model import FileFormat
from accelbench.models.file_models.kinds import FileRefusedError, reader_of
from accelbench.models.graph_files.steps import FileInput, GraphSizes, GraphStep, UntracedError

TORCH_EXPORT = "torch.export"
_GRAPHS = {
    "onnx": "onnx_graph:OnnxGraph",
    "openvino": "openvino_graph:OpenvinoGraph",
    "tflite": "tflite_graph:TfliteGraph",
    TORCH_EXPORT: "torch_export_graph:TorchExportGraph",
}


def graph_name(kind: FileFormat) -> str:
    """Return what graphs of a format are called in answers."""
    return TORCH_EXPORT if kind is FileFormat.PT2 else kind


class FileGraph(Protocol):
    """A graph of any format."""

    inputs: tuple[FileInput, ...]  # what it is fed
    weights: int  # elements of its weights
    precision: str  # what most of them are stored in
    operators: int  # how many it has

    def steps(self, sizes: GraphSizes) -> tuple[list[GraphStep], set[str]]:
        """Return its steps at some sizes, and the names of its results."""


def opened(path: Path, kind: str) -> FileGraph:
    """Return the graph of a file, or raise UntracedError if its operators are not known."""
    module, _, name = _GRAPHS.get(kind, "").partition(":")
    read = (
        getattr(import_module(f"accelbench.models.graph_files.{module}"), name)
        if module
        else reader_of(FileFormat(kind)).graph
    )
    try:
        made: FileGraph = read(path)
    except FileRefusedError as error:
        raise UntracedError(error.message, error.advice) from error
    return made

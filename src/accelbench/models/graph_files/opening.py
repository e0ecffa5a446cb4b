"""The graph in a file, by its format; readers are imported on use."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from accelbench.core.model import FileFormat
from accelbench.models.file_models.kinds import reader_of
from accelbench.models.graph_files.steps import FileInput, GraphSizes, GraphStep

ONNX, OPENVINO, TFLITE, TORCH_EXPORT = "onnx", "openvino", "tflite", "torch.export"


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
    if kind == ONNX:
        from accelbench.models.graph_files.onnx_graph import OnnxGraph

        return OnnxGraph(path)
    if kind == OPENVINO:
        from accelbench.models.graph_files.openvino_graph import OpenvinoGraph

        return OpenvinoGraph(path)
    if kind == TFLITE:
        from accelbench.models.graph_files.tflite_graph import TfliteGraph

        return TfliteGraph(path)
    if kind == TORCH_EXPORT:
        from accelbench.models.graph_files.torch_export_graph import TorchExportGraph

        return TorchExportGraph(path)
    made: FileGraph = reader_of(FileFormat(kind)).graph(path)
    return made

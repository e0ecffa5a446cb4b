"""What the NPU's nodes took: read from the file that QNN's own profiler writes.

ONNX Runtime sees the whole graph as one node. QNN counts the cycles of each of its own, and
says what the whole took in cycles and in time: a node's share of the cycles is its share of
that time.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from accelbench.core.profile import Spent

NAME = "QNN's profiler"
REMARK = (
    "Shares of the NPU's cycles, in parts of the time that QNN says its graph took. What they"
    " leave of the step is ONNX Runtime's and the way to the NPU and back."
)
EMULATED = " The NPU is emulated: these cycles are the emulation's, and no device's."

_CYCLES, _MICROSECONDS = "CYCLES", "US"
_WHOLE_CYCLES = "Accelerator (execute) time (cycles)"
_WHOLE_TIME = "Accelerator (execute) time"


def options(path: Path) -> dict[str, str]:
    """The provider's options that have the file written."""
    return {"profiling_level": "detailed", "profiling_file_path": str(path)}


def types_of(folder: Path) -> dict[str, str]:
    """What each node of the graphs does that were dumped into a folder."""
    bodies = (json.loads(path.read_text(encoding="utf-8")) for path in folder.rglob("*.json"))
    graphs = (body["graph"]["nodes"] for body in bodies if "nodes" in body.get("graph", ()))
    return {name: str(node["type"]) for graph in graphs for name, node in graph.items()}


def read(path: Path, types: Mapping[str, str], steps: int, device: str) -> list[Spent]:
    """The nodes of the last so many runs of a file."""
    with path.open(newline="", encoding="utf-8") as stream:
        runs = list(understood(csv.DictReader(stream), types, device))
    return [node for run in runs[-steps:] for node in run]


def understood(
    rows: Iterable[Mapping[str, str]], types: Mapping[str, str], device: str
) -> Iterator[list[Spent]]:
    """The nodes of each run: rows of cycles, and then the run's whole time."""
    nodes: list[tuple[str, int]] = []
    whole = 0
    for row in rows:
        event, unit, value = row["Event Identifier"], row["Unit of Measurement"], int(row["Time"])
        if row["Message"] == "NODE" and unit == _CYCLES:
            nodes.append((_name(event), value))
        elif event == _WHOLE_CYCLES:
            nodes, whole = [], value  # another run begins
        elif event == _WHOLE_TIME and unit == _MICROSECONDS and whole:
            ns = value * 1e3 / whole
            yield [
                Spent(name, types.get(name, name), cycles * ns, where=device)
                for name, cycles in nodes
            ]


def _name(event: str) -> str:
    """Whose cycles these are: "/encoder/Conv:OpId_146 (cycles)" is /encoder/Conv.

    What QNN put between the graph and the outside has no name of the graph's: "Input OpId_2".
    """
    name, _, _ = event.partition("OpId_")
    return name.strip(": ") or "unnamed"

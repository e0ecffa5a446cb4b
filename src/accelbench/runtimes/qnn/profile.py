"""What the NPU's nodes took: read from the file that QNN's own profiler writes.

ONNX Runtime sees the whole graph as one node. QNN counts the cycles of each of its own, and
says what the whole took in cycles and in time: a node's share of the cycles is its share of
that time.
"""

from __future__ import annotations

import csv
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


def read(path: Path, steps: int, device: str) -> list[Spent]:
    """The nodes of the last so many runs of a file."""
    with path.open(newline="", encoding="utf-8") as stream:
        runs = list(understood(csv.DictReader(stream), device))
    return [node for run in runs[-steps:] for node in run]


def understood(rows: Iterable[Mapping[str, str]], device: str) -> Iterator[list[Spent]]:
    """The nodes of each run: rows of cycles, and then the run's whole time."""
    nodes: list[tuple[str, int]] = []
    whole = 0
    for row in rows:
        event, unit, value = row["Event Identifier"], row["Unit of Measurement"], int(row["Time"])
        if row["Message"] == "NODE" and unit == _CYCLES:
            nodes.append((event, value))
        elif event == _WHOLE_CYCLES:
            nodes, whole = [], value  # another run begins
        elif event == _WHOLE_TIME and unit == _MICROSECONDS and whole:
            ns = value * 1e3 / whole
            yield [Spent(*_named(event), cycles * ns, where=device) for event, cycles in nodes]


def _named(event: str) -> tuple[str, str]:
    """A node's name and kind: "/encoder/Conv_token_1:OpId_146 (cycles)" is a Conv."""
    name = event.partition(":OpId_")[0].partition(" (cycles)")[0]
    kind = name.rpartition("/")[2].partition("_token_")[0]
    for made in ("QuantizeLinear", "DequantizeLinear"):  # a tensor's own name is before it
        if kind.endswith(f"_{made}"):
            kind = made
    return name, "Input/Output" if kind.startswith(("Input OpId", "Output OpId")) else kind

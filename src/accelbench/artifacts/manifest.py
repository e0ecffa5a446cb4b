"""What an artefact is: which tensors go in and come out, and what it was made of and with."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from accelbench.core.identity import plain

FILE = "manifest.json"
#: What a graph in ONNX is called, and its weights beside it.
GRAPH, WEIGHTS = "model.onnx", "model.data"


@dataclass(frozen=True)
class Tensor:
    """One input or output: its name in the catalogue, and what the file calls it."""

    name: str
    file_name: str
    dtype: str  # NumPy's name
    shape: Sequence[int | str]  # "batch" where it may be any


@dataclass(frozen=True)
class Manifest:
    """An artefact as its readers need it."""

    key: str
    format: str
    model: str
    file: str  # within the folder
    inputs: Sequence[Tensor]
    outputs: Sequence[Tensor]
    batch: int | None  # what it is fixed to; None: any
    weights_digest: str
    workarounds: Sequence[str] = ()
    other_way: str = ""  # the line of code whose value decides for another way, not in the graph
    quantiser: Mapping[str, Any] | None = None  # which, how calibrated
    versions: Mapping[str, str] = field(default_factory=dict)
    seconds: Mapping[str, float] = field(default_factory=dict)  # of each stage

    def save(self, folder: Path) -> None:
        """Write it beside what it describes."""
        text = json.dumps(plain(self), indent=1, sort_keys=True)
        (folder / FILE).write_text(text + "\n", encoding="utf-8")


def load(folder: Path) -> Manifest:
    """The manifest of a folder."""
    body = json.loads((folder / FILE).read_text(encoding="utf-8"))
    for side in ("inputs", "outputs"):
        body[side] = tuple(Tensor(**entry) for entry in body[side])
    return Manifest(**body)

"""What a traced session printed: which provider ran which nodes, and how WebNN cut the graph."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from accelbench.runtimes.onnxruntime import profile

#: What each platform's provider calls itself. WebAssembly is ONNX Runtime's own CPU code.
PROVIDERS = {
    "wasm": "CPUExecutionProvider",
    "webgpu": "WebGpuExecutionProvider",
    "webnn": "WebNNExecutionProvider",
}
_PARTITIONS = re.compile(
    r"number of partitions supported by WebNN: (\d+) number of nodes in the graph: (\d+)"
    r" number of nodes supported by WebNN: (\d+)"
)


@dataclass(frozen=True)
class Proof:
    """What ran where."""

    provider: str
    time_share: Mapping[str, float]
    details: Mapping[str, Any]

    def shares(self, device: str) -> dict[str, float]:
        """Of the time, by device: the asked one's where its own provider ran, else the CPU's."""
        totals: dict[str, float] = {}
        for name, share in self.time_share.items():
            place = device if name == PROVIDERS[self.provider] else "cpu:0"
            totals[place] = totals.get(place, 0.0) + share
        return totals


def understood(lines: Sequence[str], provider: str) -> Proof:
    """The story of what was printed."""
    ort_profile = profile.understood(list(events(lines)))
    details = {**ort_profile.as_details(), **partitions(lines)}
    return Proof(provider, ort_profile.time_share, details)


def events(lines: Sequence[str]) -> list[dict[str, Any]]:
    """The profile's events: each is printed as a line of JSON."""
    records = []
    for line in lines:
        text = line.strip().rstrip(",")
        if text.startswith('{"cat"'):
            records.append(json.loads(text))
    return records


def partitions(lines: Sequence[str]) -> dict[str, Any]:
    """How much of the graph WebNN took, and in how many pieces."""
    for line in lines:
        if match := _PARTITIONS.search(line):
            pieces, nodes, taken = map(int, match.groups())
            return {"webnn_partitions": pieces, "graph_nodes": nodes, "webnn_nodes": taken}
    return {}

"""Which provider ran which share of a graph: read from a profile of a session of its own.

The session that is measured is not profiled. A second one, with the same file, options and
inputs, runs a few times, and its profile says a node's provider, duration and types.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

#: Of these operators the type of their inputs says what the arithmetic was done in.
_PRODUCTS = (
    "MatMul", "Gemm", "Conv", "FusedConv", "FusedMatMul", "FusedGemm", "Attention", "QGemm",
    "QLinearMatMul", "QLinearConv", "MatMulInteger", "DynamicQuantizeMatMul", "ConvInteger",
    "MatMulIntegerToFloat", "QAttention", "MultiHeadAttention", "NhwcFusedConv", "Einsum",
)  # fmt: skip
_INTEGER = ("QGemm", "QLinear", "Integer", "DynamicQuantize", "QAttention")


@dataclass(frozen=True)
class Profile:
    """What ran where, and in what."""

    nodes: Mapping[str, int]  # by provider
    time_share: Mapping[str, float]
    computed_in: Mapping[str, float]  # share of the time of products, by type

    def as_details(self) -> dict[str, Any]:
        """For the evidence."""
        return {
            "provider_nodes": dict(self.nodes),
            "provider_time_share": {k: round(v, 4) for k, v in self.time_share.items()},
            "computed_in": {k: round(v, 4) for k, v in self.computed_in.items()},
        }


def read(path: Path, warm: int = 1) -> Profile:
    """A profile file's story, without its first runs."""
    return understood(json.loads(path.read_text(encoding="utf-8")), warm)


def understood(events: Sequence[Mapping[str, Any]], warm: int = 1) -> Profile:
    """The same of its events."""
    runs = sorted(event["ts"] for event in events if event.get("name") == "model_run")
    since = runs[min(warm, len(runs) - 1)] if runs else 0
    spent: Counter[str] = Counter()
    nodes: dict[str, set[Any]] = {}
    products: Counter[str] = Counter()
    for event in events:
        if event.get("cat") != "Node" or not event["name"].endswith("_kernel_time"):
            continue
        said = event["args"]
        provider = said.get("provider", "")
        nodes.setdefault(provider, set()).add(said.get("node_index", event["name"]))
        if event["ts"] < since:
            continue
        spent[provider] += event["dur"]
        if said.get("op_name") in _PRODUCTS:
            products[_type(said)] += event["dur"]
    return Profile(
        nodes={provider: len(found) for provider, found in nodes.items()},
        time_share=_shares(spent),
        computed_in=_shares(products),
    )


def _type(said: Mapping[str, Any]) -> str:
    """What a product was computed in."""
    if any(part in said["op_name"] for part in _INTEGER):
        return "int8"
    types = [name for one in said.get("input_type_shape", ()) for name in one]
    return types[0] if types else "unknown"


def _shares(counted: Counter[str]) -> dict[str, float]:
    total = sum(counted.values())
    return {name: value / total for name, value in counted.items()} if total else {}

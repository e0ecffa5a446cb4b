"""Which provider ran which share of a graph, and what each node took: read from a profile.

The session that is measured is not profiled. A second one, with the same file, options and
inputs, runs a few times, and its profile says a node's provider, duration and types.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from accelbench.core.profile import Spent
from accelbench.runtimes.onnxruntime.providers import place_of
from accelbench.runtimes.profiling import own

NAME = "ONNX Runtime's profiler"
REMARK = (
    "Times of nodes as ONNX Runtime's executor saw them, one after another, in whole microseconds."
)

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
    first = min(warm, max(len(runs) - 1, 0))
    nodes: dict[str, set[Any]] = {}
    took: dict[tuple[Any, ...], Counter[int]] = {}  # of a node, in each run
    said: dict[tuple[Any, ...], Mapping[str, Any]] = {}
    for event in events:
        if not _is_node(event):
            continue
        args = event["args"]
        provider = args.get("provider", "")
        # A loop's body counts its nodes anew: an index alone is no name.
        node = (provider, args.get("node_index"), event["name"])
        nodes.setdefault(provider, set()).add(node)
        run = bisect_right(runs, event["ts"]) - 1
        if run >= first or not runs:
            took.setdefault(node, Counter())[run] += event["dur"]
            said[node] = args
    spent: Counter[str] = Counter()
    products: Counter[str] = Counter()
    for node, durations in took.items():
        # Its shortest run: a process that took the core meanwhile would count as the node's.
        shortest = min(durations.values())
        spent[node[0]] += shortest
        if said[node].get("op_name") in _PRODUCTS:
            products[_type(said[node])] += shortest
    return Profile(
        nodes={provider: len(found) for provider, found in nodes.items()},
        time_share=_shares(spent),
        computed_in=_shares(products),
    )


def spent(events: Sequence[Mapping[str, Any]], steps: int, of: int, device: str) -> Iterator[Spent]:
    """What each node took in the last `steps` of `of` steps; a loop without its body."""
    runs = sorted(event["ts"] for event in events if event.get("name") == "model_run")
    first = runs[len(runs) * (of - steps) // of] if runs else 0
    nodes = [one for one in events if _is_node(one) and one["ts"] >= first]
    times = own([(one.get("tid"), one["ts"], one["dur"]) for one in nodes])
    for node, us in zip(nodes, times, strict=True):
        said = node["args"]
        name = node["name"].removesuffix("_kernel_time")
        place = place_of(said.get("provider", ""), device)
        yield Spent(name, said.get("op_name", ""), us * 1e3, where=place)


def _is_node(event: Mapping[str, Any]) -> bool:
    return event.get("cat") == "Node" and event["name"].endswith("_kernel_time")


def _type(said: Mapping[str, Any]) -> str:
    """What a product was computed in."""
    if any(part in said["op_name"] for part in _INTEGER):
        return "int8"
    types = [name for one in said.get("input_type_shape", ()) for name in one]
    return types[0] if types else "unknown"


def _shares(counted: Counter[str]) -> dict[str, float]:
    total = sum(counted.values())
    return {name: value / total for name, value in counted.items()} if total else {}

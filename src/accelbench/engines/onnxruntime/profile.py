"""Which provider ran which share of a graph, and what each node took: read from a profile.

The session that is measured is not profiled: a second one, with the same file, options and inputs,
runs a few times.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from accelbench.core.profile import OperatorTime
from accelbench.engines.onnxruntime.providers import place_of
from accelbench.engines.shared.local import listed, own, rounded_shares, shares

NAME = "ONNX Runtime's profiler"
REMARK = (
    "Times of nodes as ONNX Runtime's executor saw them, one after another, in whole microseconds."
)

_CPU = "CPUExecutionProvider"
#: Of these operators the type of their inputs says what the arithmetic was done in.
_PRODUCTS = (
    "MatMul", "Gemm", "Conv", "FusedConv", "FusedMatMul", "FusedGemm", "Attention", "QGemm",
    "QLinearMatMul", "QLinearConv", "MatMulInteger", "DynamicQuantizeMatMul", "ConvInteger",
    "MatMulIntegerToFloat", "QAttention", "MultiHeadAttention", "NhwcFusedConv", "Einsum",
)  # fmt: skip
_INTEGER = ("QGemm", "QLinear", "Integer", "DynamicQuantize", "QAttention")


@dataclass(frozen=True)
class Profile:
    """The record of what ran where, and in what type."""

    nodes: Mapping[str, int]  # by provider
    time_share: Mapping[str, float]
    computed_in: Mapping[str, float]  # share of the time of products, by type
    operators: Mapping[str, Mapping[str, int]] = field(default_factory=dict)  # by provider

    @property
    def left_over(self) -> str:
        if len(self.operators) < 2:
            return ""
        return listed(Counter(self.operators.get(_CPU, {})))

    def as_details(self) -> dict[str, Any]:
        details: dict[str, Any] = {
            "provider_nodes": dict(self.nodes),
            "provider_time_share": rounded_shares(self.time_share),
            "computed_in": rounded_shares(self.computed_in),
        }
        if self.left_over:
            details["left_to_the_cpu"] = self.left_over
        if not self.computed_in:
            # TensorRT, MIGraphX, CoreML and DirectML put a graph's nodes into one of their own.
            details["computed_in_unknown"] = "the provider shows none of the products it computed"
        return details


def read(path: Path, warm: int = 1) -> Profile:
    """Read a profile file without its first runs."""
    return understood(json.loads(path.read_text(encoding="utf-8")), warm)


def understood(events: Sequence[Mapping[str, Any]], warm: int = 1) -> Profile:
    """Read a profile's events; what a loop or a branch took is without its body."""
    runs = sorted(event["ts"] for event in events if event.get("name") == "model_run")
    first = min(warm, max(len(runs) - 1, 0))
    nodes: dict[str, set[Any]] = {}
    took: dict[tuple[Any, ...], dict[int, float]] = {}  # of a node, in each run
    node_args: dict[tuple[Any, ...], Mapping[str, Any]] = {}
    for event, own_us in _own(events):
        args = event["args"]
        provider = args.get("provider", "")
        # A loop's body counts its nodes anew: an index alone is no name.
        node = (provider, args.get("node_index"), event["name"])
        nodes.setdefault(provider, set()).add(node)
        run = bisect_right(runs, event["ts"]) - 1
        if run >= first or not runs:
            of_run = took.setdefault(node, {})
            of_run[run] = of_run.get(run, 0.0) + own_us
            node_args[node] = args
    spent: dict[str, float] = defaultdict(float)
    products: dict[str, float] = defaultdict(float)
    operators: dict[str, Counter[str]] = {}
    for node, durations in took.items():
        # Its shortest run: a process that took the core meanwhile would count as the node's.
        shortest = min(durations.values())
        spent[node[0]] += shortest
        operators.setdefault(node[0], Counter())[node_args[node].get("op_name", "")] += 1
        if node_args[node].get("op_name") in _PRODUCTS:
            products[_type(node_args[node])] += shortest
    return Profile(
        nodes={provider: len(members) for provider, members in nodes.items()},
        time_share=shares(spent),
        computed_in=shares(products),
        operators=operators,
    )


def spent(
    events: Sequence[Mapping[str, Any]], steps: int, of: int, device: str
) -> Iterator[OperatorTime]:
    """Yield the time of each node in the last `steps` of `of` steps; of a loop without its body."""
    runs = sorted(event["ts"] for event in events if event.get("name") == "model_run")
    first = runs[len(runs) * (of - steps) // of] if runs else 0
    for node, us in _own([event for event in events if event.get("ts", 0) >= first]):
        args = node["args"]
        name = node["name"].removesuffix("_kernel_time")
        place = place_of(args.get("provider", ""), device)
        yield OperatorTime(name, args.get("op_name", ""), us * 1e3, where=place)


def _own(events: Sequence[Mapping[str, Any]]) -> Iterator[tuple[Mapping[str, Any], float]]:
    nodes = [event for event in events if _is_node(event)]
    times = own([(node.get("tid"), node["ts"], node["dur"]) for node in nodes])
    yield from zip(nodes, times, strict=True)


def _is_node(event: Mapping[str, Any]) -> bool:
    return event.get("cat") == "Node" and event["name"].endswith("_kernel_time")


def _type(args: Mapping[str, Any]) -> str:
    if any(part in args["op_name"] for part in _INTEGER):
        return "int8"
    types = [name for entry in args.get("input_type_shape", ()) for name in entry]
    return types[0] if types else "unknown"

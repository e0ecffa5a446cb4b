"""What types a compiled model computes in, and what each of its nodes takes.

A node's kernel is what tells: `brgemm_avx512_bf16`. Its `runtimePrecision` names the type
of what comes out, which after a comparison is u8, whatever was multiplied before.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from accelbench.core.profile import Spent

#: Nodes whose arithmetic is what a precision is asked for.
_PRODUCTS = frozenset(
    {
        "FullyConnected", "MatMul", "Gemm", "Convolution", "GroupConvolution", "BinaryConvolution",
        "Deconvolution", "ScaledDotProductAttention", "ScaledDotProductAttentionWithKVCache",
        "MHA", "QKVProjection", "LLMMLP", "LSTMSequence", "GRUSequence", "RNNSeq", "RNNCell",
    }
)  # fmt: skip
_NO_WORK = frozenset({"Input", "Output", "Const", "Constant", "Parameter", "Result"})
_WORDS = {"f32": "fp32", "bf16": "bf16", "f16": "fp16", "i8": "int8", "u8": "int8"}
_KERNELS = 6


@dataclass(frozen=True)
class Profile:
    """Shares of the time of a few runs."""

    computed_in: Mapping[str, float]  # of products, by precision
    by_type: Mapping[str, float]  # of everything, by the kernels' own words
    kernels: tuple[str, ...] = ()  # those that took longest
    why: str = ""  # why nothing is told

    def as_details(self) -> dict[str, Any]:
        if self.why:
            return {"computed_in": None, "computed_in_unknown": self.why}
        unknown = (
            {} if self.computed_in else {"computed_in_unknown": "the profile names no product"}
        )
        return {
            **unknown,
            "computed_in": {k: round(v, 4) for k, v in self.computed_in.items()},
            "time_by_type": {k: round(v, 4) for k, v in self.by_type.items()},
            "kernels": list(self.kernels),
        }


def understood(nodes: Iterable[Mapping[str, str]]) -> Profile:
    """The story of a model's nodes, each by its runtime information."""
    spent: Counter[str] = Counter()
    products: Counter[str] = Counter()
    counted: Counter[str] = Counter()
    kernels: Counter[str] = Counter()
    for node in nodes:
        layer = node.get("layerType")
        if layer is None or layer in _NO_WORK:
            continue
        kernel = node.get("primitiveType", "unknown")
        type_ = kernel.rpartition("_")[2].lower()
        text = node.get("execTimeMcs", "")
        time = int(text) if text.isdecimal() else 0  # "not_executed": folded, or done in place
        spent[type_] += time
        kernels[kernel] += time
        if layer in _PRODUCTS:
            word = _WORDS.get(type_, type_)
            products[word] += time
            counted[word] += 1
    # Products of a model so small that none of them takes a microsecond are counted.
    return Profile(
        computed_in=_shares(products) or _shares(counted),
        by_type=_shares(spent),
        kernels=tuple(name for name, time in kernels.most_common(_KERNELS) if time),
    )


def _shares(counted: Counter[str]) -> dict[str, float]:
    total = sum(counted.values())
    return {k: v / total for k, v in counted.most_common() if v} if total else {}


def nodes_of(compiled: Any) -> list[dict[str, str]]:
    """The nodes of a model that was compiled with PERF_COUNT and has run."""
    nodes = []
    for node in compiled.get_runtime_model().get_ordered_ops():
        info = node.get_rt_info()
        nodes.append({k: str(v.astype(str)) for k, v in info.items() if hasattr(v, "astype")})
    return nodes


_MICROSECOND = timedelta(microseconds=1)

NAME = "OpenVINO's performance counters"
REMARK = (
    "Times of the nodes that the model was compiled to, in whole microseconds; those that were"
    " folded into others, or that take less than one, are not among them."
)


@dataclass
class CountedRequest:
    """An infer request whose counters are read after every inference.

    Attributes:
        averages: whether a counter is the mean of all inferences so far, as the CPU's is (seen
            in 2026.4: after one of 199 ms and one of 225 ms it says 212 ms), or the last one's.
        reading_ns: what reading took so far, which is no part of a step.
    """

    request: Any
    where: str
    averages: bool
    spent: list[Spent] = field(default_factory=list)
    reading_ns: int = 0
    _totals: dict[str, float] = field(default_factory=dict)
    _count: int = 0

    def infer(self, share_outputs: bool) -> None:
        """One inference; what its nodes took is added to what was spent."""
        self.request.infer(share_outputs=share_outputs)
        start = time.perf_counter_ns()
        self._count += 1
        for info in self.request.get_profiling_info():
            ns = info.real_time / _MICROSECOND * 1e3
            if self.averages:
                total = ns * self._count
                ns = total - self._totals.get(info.node_name, 0.0)
                self._totals[info.node_name] = total
            self.spent.append(Spent(info.node_name, info.node_type, ns, where=self.where))
        self.reading_ns += time.perf_counter_ns() - start

    def __getattr__(self, name: str) -> Any:
        return getattr(self.request, name)

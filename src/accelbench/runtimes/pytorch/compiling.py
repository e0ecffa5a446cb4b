"""What torch.compile is told, and what it tells of its work."""

from __future__ import annotations


def allow_many_graphs() -> None:
    """One a batch size, and in training another without dropout.

    After eight of one module Dynamo would go on without compiling, and not say so.
    """
    import torch._dynamo.config as dynamo

    dynamo.cache_size_limit = max(dynamo.cache_size_limit, 64)


def compile_totals() -> tuple[int, int]:
    """How many graphs Dynamo has compiled in this process, and the nanoseconds spent."""
    from torch._dynamo import utils

    graphs = int(utils.counters["stats"]["unique_graphs"])
    # What the backward pass needs is compiled when it is first called, and timed apart.
    parts = ("_compile.compile_inner", "backward._backward_impl")
    seconds = sum(sum(utils.compilation_time_metrics.get(part, ())) for part in parts)
    return graphs, round(seconds * 1e9)

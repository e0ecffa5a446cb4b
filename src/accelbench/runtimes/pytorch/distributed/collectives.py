"""Collectives by themselves: one of a size, its result checked, then timed in blocks.

Sizes are nccl-tests': of the whole buffer, that of all ranks together where each has a part of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.distributed as dist

from accelbench.core.clock import Clock
from accelbench.core.errors import CaseError

_BYTES = 4  # of a value in fp32


@dataclass(frozen=True)
class Exchange:
    """A collective with its buffers.

    Attributes:
        step: carries it out once.
        given: what the rank gives.
        taken: where the result is.
        expected: what the result has to be where each rank gives its number, from 1 on.
    """

    step: Callable[[], object]
    given: torch.Tensor
    taken: torch.Tensor
    expected: torch.Tensor


def opened_collective(name: str, size: int, backend: str, clock: Clock) -> Callable[[int], int]:
    """A collective that was carried out once and was right; so many steps of it in nanoseconds.

    Args:
        name: of the collective.
        size: bytes of the whole buffer.
        backend: gloo on the host, else the rank's own GPU.
        clock: what times it.

    Raises:
        CaseError: its result is wrong.
    """
    on_device = backend != "gloo"
    device = torch.device("cuda", torch.cuda.current_device()) if on_device else torch.device("cpu")
    exchange = _EXCHANGES[name](size // _BYTES, device)
    exchange.given.fill_(dist.get_rank() + 1.0)
    exchange.step()
    if not torch.equal(exchange.taken, exchange.expected):
        raise CaseError(
            "wrong_outputs", f"the result of {name} over {size:,} bytes is wrong", "Do not use it."
        )
    exchange.given.zero_()  # sums of zeros stay finite, however often they are taken

    def block(steps: int) -> int:
        begin = clock.now_ns()
        for _ in range(steps):
            exchange.step()
        if on_device:
            torch.cuda.synchronize(device)
        return clock.now_ns() - begin

    return block


def _all_reduce(count: int, device: torch.device) -> Exchange:
    values, ranks = torch.empty(count, device=device), dist.get_world_size()
    total = torch.full_like(values, ranks * (ranks + 1) / 2)
    return Exchange(lambda: dist.all_reduce(values), values, values, total)


def _all_gather(count: int, device: torch.device) -> Exchange:
    ranks = dist.get_world_size()
    given = torch.empty(count // ranks, device=device)
    taken = torch.empty(len(given) * ranks, device=device)
    step = dist.all_gather_into_tensor
    return Exchange(lambda: step(taken, given), given, taken, _by_rank(taken, ranks))


def _reduce_scatter(count: int, device: torch.device) -> Exchange:
    ranks = dist.get_world_size()
    taken = torch.empty(count // ranks, device=device)
    given = torch.empty(len(taken) * ranks, device=device)
    total = torch.full_like(taken, ranks * (ranks + 1) / 2)
    return Exchange(lambda: dist.reduce_scatter_tensor(taken, given), given, taken, total)


def _broadcast(count: int, device: torch.device) -> Exchange:
    values = torch.empty(count, device=device)
    first = torch.ones_like(values)
    return Exchange(lambda: dist.broadcast(values, src=0), values, values, first)


def _by_rank(whole: torch.Tensor, ranks: int) -> torch.Tensor:
    numbers = torch.arange(1.0, ranks + 1, device=whole.device)
    return numbers.repeat_interleave(len(whole) // ranks)


_EXCHANGES: dict[str, Callable[[int, torch.device], Exchange]] = {
    "all_reduce": _all_reduce,
    "all_gather": _all_gather,
    "reduce_scatter": _reduce_scatter,
    "broadcast": _broadcast,
}

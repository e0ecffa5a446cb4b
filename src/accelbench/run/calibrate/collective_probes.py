"""Collectives of several processes as probes: which there are, and how a group is timed.

    algorithm bandwidth = bytes ÷ time of a collective
    bus bandwidth       = algorithm bandwidth × what each byte crosses of the links (nccl-tests)

https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, Protocol

from accelbench.core.calibration import ProbeFigure, ProbeKind, ProbeRefusal, ProbeSpec
from accelbench.core.clock import Clock, MonotonicClock
from accelbench.core.errors import CaseError
from accelbench.hardware.machine import threads_of_each
from accelbench.run.calibrate.block_timing import time_blocks
from accelbench.run.calibrate.probe_figures import figure_of
from accelbench.run.conduct.surroundings import Surroundings
from accelbench.runtimes.pytorch.distributed.group import RankGroup
from accelbench.runtimes.pytorch.distributed.launch import backend_of

#: By what nccl-tests multiply an algorithm's bandwidth, of n ranks.
BUS_FACTORS: Mapping[str, Callable[[int], float]] = {
    "all_reduce": lambda n: 2 * (n - 1) / n,
    "all_gather": lambda n: (n - 1) / n,
    "reduce_scatter": lambda n: (n - 1) / n,
    "broadcast": lambda _n: 1.0,
}
#: Bytes: from what latency decides to what bandwidth does.
_SIZES = (2**10, 2**14, 2**18, 2**20, 2**22, 2**24)
_SECONDS = 0.4  # of each
_VALUE = 4


class Asked(Protocol):
    """A group of ranks that answers questions."""

    def ask(self, do: str, **what: object) -> list[object]:
        """Every rank's answer."""


def collective_specs(ranks: int) -> list[ProbeSpec]:
    """Each collective at each size: whole values for every rank, so some bytes less than named."""
    return [
        ProbeSpec(
            ProbeKind.COLLECTIVE,
            f"probe/{name}-{_named(size)}-{ranks}-ranks",
            "fp32",
            whole,
            whole * factor(ranks),
        )
        for name, factor in BUS_FACTORS.items()
        for size in _SIZES
        for whole in (size // (_VALUE * ranks) * _VALUE * ranks,)
    ]


def _named(size: int) -> str:
    return f"{size // 2**20}MiB" if size >= 2**20 else f"{size // 2**10}KiB"


@dataclass(frozen=True)
class CollectiveAnswers:
    """What came of collectives.

    Attributes:
        figures: of those that were timed.
        refusals: why others were not.
        environment: the machine meanwhile; empty where ranks were lost.
    """

    figures: Sequence[ProbeFigure] = ()
    refusals: Sequence[ProbeRefusal] = ()
    environment: Mapping[str, Any] = field(default_factory=dict)


def time_collectives(
    hardware: str, ranks: int, hear: Callable[[int, int], None]
) -> CollectiveAnswers:
    """Start ranks, time every collective among them, and end them.

    Args:
        hardware: the platform, of which each rank has a device; of a CPU a share of the threads.
        ranks: how many.
        hear: told of each probe, and of how many.
    """
    specs = collective_specs(ranks)
    try:
        group = RankGroup(ranks, backend_of(hardware), threads_of_each(None, ranks))
    except CaseError as error:
        return CollectiveAnswers(refusals=[_refusal("probe/collectives", error)])
    with closing(group):
        worked, before = _cpu_seconds(group), Surroundings().before()
        figures, refusals = timed_on(group, specs, MonotonicClock(), hear)
        done = _cpu_seconds(group)
        if worked is None or done is None:
            return CollectiveAnswers(figures, refusals)
        around, _ = Surroundings().after(before, done - worked)
        return CollectiveAnswers(figures, refusals, dict(around))


def _cpu_seconds(group: Asked) -> float | None:
    """What the ranks have worked, all together; None where they are lost."""
    try:
        return sum(float(str(seconds)) for seconds in group.ask("cpu_seconds"))
    except CaseError:
        return None


def timed_on(
    group: Asked, specs: list[ProbeSpec], clock: Clock, hear: Callable[[int, int], None]
) -> tuple[list[ProbeFigure], list[ProbeRefusal]]:
    """The figures of probes on a group; where it is lost, why nothing came after."""
    figures: list[ProbeFigure] = []

    def block(steps: int) -> int:
        # A collective is over when its last rank has its result.
        return max(int(str(took)) for took in group.ask("time_collective", steps=steps))

    for done, spec in enumerate(specs):
        hear(done, len(specs))
        try:
            group.ask("open_collective", name=spec.collective, size=spec.size)
            blocks = time_blocks(block, _SECONDS, clock)
        except CaseError as error:
            return figures, [_refusal(spec.name, error)]  # all ranks are gone with it
        figures.append(figure_of(spec, blocks.steps, blocks.samples_ns))
    hear(len(specs), len(specs))
    return figures, []


def _refusal(name: str, error: CaseError) -> ProbeRefusal:
    return ProbeRefusal(name, "fp32", error.message)

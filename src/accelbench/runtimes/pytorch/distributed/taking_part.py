"""A machine that takes part in what another measures: its processes of one group after another."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

from accelbench.hardware.machine import threads_of_each
from accelbench.runtimes.pytorch.distributed.group import ONE_RUN, take_part
from accelbench.runtimes.pytorch.distributed.launch import RankLaunch, backend_of

#: Between two tries to meet a machine that is not there yet.
_PAUSE_SECONDS = 1.0


@dataclass(frozen=True)
class MachinePart:
    """The part of one machine in steps that several make together.

    Attributes:
        hardware: the platform.
        processes: of this machine, as of each other.
        nodes: machines.
        node: which of them this is; 0 measures.
        rendezvous: host:port of machine 0.
        threads: of this machine's processes together; None for the engine's default.
    """

    hardware: str
    processes: int
    nodes: int
    node: int
    rendezvous: str
    threads: int | None = None

    def launch(self, seconds: float, collective_seconds: float) -> RankLaunch:
        """One group of this machine's processes."""
        return RankLaunch(
            run_id=ONE_RUN,
            here=self.processes,
            backend=backend_of(self.hardware),
            threads=threads_of_each(self.threads, self.processes),
            seconds=seconds,
            collective_seconds=collective_seconds,
            nodes=self.nodes,
            node=self.node,
            rendezvous=self.rendezvous,
        )


def groups_taken_part_in(
    part: MachinePart, patience: float, collective_seconds: float
) -> Iterator[str]:
    """Take part in every group that machine 0 starts; of each why it ended early, "" where not.

    Args:
        part: this machine's.
        patience: seconds without any group after which there are taken to be no more.
        collective_seconds: how long a collective waits for a process that does not come.
    """
    last = time.monotonic()
    while (left := patience - (time.monotonic() - last)) > 0:
        trouble = take_part(part.launch(left, collective_seconds))
        if trouble is None or trouble.startswith("rank "):
            yield trouble or ""
            last = time.monotonic()
        else:
            time.sleep(_PAUSE_SECONDS)

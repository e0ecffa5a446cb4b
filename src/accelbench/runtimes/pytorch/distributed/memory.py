"""Memory of ranks: the largest rank's is what has to fit."""

from __future__ import annotations

from collections.abc import Callable

from accelbench.hardware.hostmemory import HostMemory
from accelbench.runtimes.pytorch.distributed.group import RankGroup


class RankMemory(HostMemory):
    """Host memory of the ranks of a group, each counted by itself; the largest is told."""

    def __init__(self, group: RankGroup) -> None:
        super().__init__(0, "of the largest rank")
        self._group = group
        self.peaks: list[int | None] = []  # by rank, as last read

    def reset_peak(self) -> None:
        self._group.ask("reset_memory")

    def peak_bytes(self) -> int | None:
        answers = self._group.ask("memory_peak")
        self.source = f"of the largest rank: {answers[0]['source']}"
        self.peaks = [answer["bytes"] for answer in answers]
        known = [peak for peak in self.peaks if peak is not None]
        return max(known, default=None)

    def current_bytes(self) -> int:
        return self.reader()()

    def reader(self) -> Callable[[], int]:
        """Return a reader of other processes' memory that asks no rank while steps run."""
        import psutil

        seen = [
            (psutil.Process(answer["pid"]), answer["hidden"])
            for answer in self._group.ask("memory_now")
            if psutil.pid_exists(answer["pid"])
        ]
        return lambda: max(max(0, p.memory_info().rss - hidden) for p, hidden in seen)

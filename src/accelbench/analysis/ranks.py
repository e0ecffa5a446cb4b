"""Ranks of a distributed step: what the evidence of a result has of each process. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from accelbench.core.rows import Json, Row, number, record, text
from accelbench.core.vocabulary import MIB


@dataclass(frozen=True)
class RankFigures:
    """What one rank took; None is what its result does not know.

    Of several devices of one process each is one: a device's steps are not timed by themselves, and
    of a processor its memory is not its own.

    Attributes:
        rank: its number.
        host: the machine that it ran on.
        device: the device as the engine names it.
        threads: of its own.
        step_ms: its median step, up to its own end: it has waited for the others' gradients.
        memory_mb: its peak: the device's where it has a device of its own, else the process's.
        communication_ms: of a profiled step, while a collective was under way.
        exposed_ms: of that time, while nothing was computed.
        profiled_ms: what the profiled step took.
    """

    rank: int
    host: str
    device: str
    threads: int | None
    step_ms: float | None
    memory_mb: float | None
    communication_ms: float | None
    exposed_ms: float | None
    profiled_ms: float | None

    @property
    def known(self) -> bool:
        """Whether it has any figure of its own."""
        times = (self.step_ms, self.communication_ms, self.profiled_ms)
        return any(figure is not None for figure in (*times, self.memory_mb))

    @property
    def work_ms(self) -> float | None:
        """The profiled step without exposed communication: what tells a slow rank.

        Steps of all ranks take as long as the slowest, which the others wait for.
        """
        if self.profiled_ms is None or self.exposed_ms is None:
            return None
        return self.profiled_ms - self.exposed_ms


def ranks_of(row: Row) -> list[RankFigures]:
    """The ranks of a result, by its evidence; none where it has none of them."""
    together = record(record(record(row, "evidence"), "details"), "distributed")
    exchanged = [*_objects(together, "communication")]
    ranks = []
    for place, facts in enumerate(_objects(together, "ranks")):
        profiled: Json = exchanged[place] if place < len(exchanged) else {}
        on_device = number(facts, "device_memory_peak_bytes")
        threads = number(facts, "threads")
        ranks.append(
            RankFigures(
                rank=int(number(facts, "rank") or place),
                host=text(facts, "host"),
                device=text(facts, "device"),
                threads=None if threads is None else int(threads),
                step_ms=number(facts, "step_ms"),
                memory_mb=(
                    number(facts, "host_memory_peak_mb") if on_device is None else on_device / MIB
                ),
                communication_ms=number(profiled, "communication_ms"),
                exposed_ms=number(profiled, "exposed_ms"),
                profiled_ms=number(profiled, "wall_ms"),
            )
        )
    return ranks


def _objects(whole: Json, name: str) -> Iterator[Json]:
    members = whole.get(name)
    for member in members if isinstance(members, Sequence) else ():
        if isinstance(member, Mapping):
            yield member


@dataclass(frozen=True)
class StepParts:
    """A profiled step in three parts that add up to it, the mean of the ranks, in milliseconds."""

    computation: float  # no collective under way
    overlapped: float  # a collective under way, and an operator computed
    exposed: float  # a collective under way, and nothing computed

    @property
    def step(self) -> float:
        """All of it."""
        return self.computation + self.overlapped + self.exposed


def step_parts(rows: Sequence[Row]) -> StepParts | None:
    """The parts of a step, the mean over launches; None where none was profiled."""
    parts = [known for row in rows if (known := _parts(row)) is not None]
    if not parts:
        return None
    return StepParts(
        fmean(part.computation for part in parts),
        fmean(part.overlapped for part in parts),
        fmean(part.exposed for part in parts),
    )


def _parts(row: Row) -> StepParts | None:
    communication, share = number(row, "communication_ms"), number(row, "communication_share")
    exposed = number(row, "exposed_communication_ms")
    if not communication or not share or exposed is None:
        return None
    return StepParts(communication / share - communication, communication - exposed, exposed)

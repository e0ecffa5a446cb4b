"""What is known of a model somewhere: one question at one place, by the launches of its newest run.

Plain values, whatever they were read from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from accelbench.measure.launches import interval_of, typical

#: The sizes of a step's inputs: with the batch, what a figure is of.
SHAPES = (
    *("sequence_length", "image_size", "audio_seconds", "denoising_steps"),
    *("prompt_tokens", "new_tokens"),
)
#: What else has to be alike for two figures to answer one question.
CIRCUMSTANCES = ("scenario", "world_size", "weights", "data_source", "optimizer")
#: A launch of one and the same thing differs by so much from the next: what a single figure, which
#: cannot say it itself, is taken to be uncertain by.
SINGLE = 0.03
#: Figures at up to so many times the batch, or that part of it, are of the same kind of work.
NEAR_BATCH = 4.0


@dataclass(frozen=True)
class Cell:
    """A figure: a model at a batch and shapes, at one place by one way.

    Attributes:
        row: what its launches have in common, by the store's column names.
        latencies: milliseconds of a step, one a launch.
        rates: items a second, one a launch that says it.
    """

    row: Mapping[str, Any] = field(hash=False)
    latencies: tuple[float, ...]
    rates: tuple[float, ...] = ()

    @cached_property
    def latency(self) -> float:
        return typical(self.latencies)

    @cached_property
    def throughput(self) -> float:
        return typical(self.rates) if self.rates else 1e3 * self.batch / self.latency

    @cached_property
    def bounds(self) -> tuple[float, float]:
        """Between which the latency lies: by its launches, else by what launches mostly differ."""
        known = interval_of(self.latencies)
        low, high = known or (self.latency, self.latency)
        return min(low, self.latency / (1 + SINGLE)), max(high, self.latency * (1 + SINGLE))

    @property
    def model(self) -> str:
        return str(self.row["model"])

    @property
    def hardware(self) -> str:
        return str(self.row["hardware"])

    @property
    def device(self) -> str:
        return str(self.row.get("device_name") or "")

    @property
    def precision(self) -> str:
        return str(self.row.get("precision") or "")

    @property
    def mode(self) -> str:
        return str(self.row.get("mode") or "")

    @property
    def batch(self) -> int:
        return int(self.row.get("batch_size") or 1)

    @cached_property
    def context(self) -> tuple[Any, ...]:
        """What has to be alike beside model, mode and batch."""
        return tuple(self.row.get(name) for name in (*SHAPES, *CIRCUMSTANCES))

    @cached_property
    def way(self) -> tuple[str, ...]:
        """How it was run: where, by which engine and version of it, in which precision."""
        row = self.row
        names = ("hardware", "device_name", "runtime", "precision", "compiled", "threads")
        return (*(str(row.get(name)) for name in (*names, "options")), str(row.get("versions")))

    @cached_property
    def order(self) -> tuple[str, ...]:
        """Tells any two cells apart, the same way every time."""
        return (*self.way, self.model, f"{self.batch:09d}", *map(str, self.context), self.mode)


@dataclass(frozen=True)
class Tried:
    """What became of a family's models on a platform, over all results that count."""

    family: str
    hardware: str
    mode: str
    models: int  # that were tried
    through: int  # that went through
    refused: int  # that the platform itself refused, or failed at
    speed: float | None = None  # times the CPU's throughput where both answered
    best: bool = False  # no other platform was clearly faster on what both answered
    reason: str = ""


@dataclass(frozen=True)
class Known:
    """What is known of a model whatever it was measured on.

    Attributes:
        parameters: number of weights.
        flops: operations of an item at the shapes asked, where they were counted.
        kin: the name of the architecture's kind, where a source has said it.
    """

    parameters: int | None = None
    flops: float | None = None
    kin: str = ""


def best(cells: Sequence[Cell]) -> Cell:
    """The one that does most in a second; of equals, the same every time."""
    return min(cells, key=lambda one: (-one.throughput, one.latency, one.order))

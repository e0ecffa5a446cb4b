"""What is known of a model somewhere: one question at one place, by the launches of its newest run.

Plain values, whatever they were read from.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from accelbench.analysis.launch_intervals import interval_within
from accelbench.analysis.questions import SHAPES
from accelbench.core.case import Option as Setting
from accelbench.core.devices import devices_in
from accelbench.core.exactness import is_exact
from accelbench.core.figures import MEANS, TAILS, Statistic
from accelbench.core.rows import ResultRow, Row
from accelbench.core.spreads import ends_document
from accelbench.measure.launches import interval_of, spread_of, typical

#: What else has to be alike for two figures to answer one question. Which weights and which data
#: went in is no part of it: what a step takes does not depend on them.
CIRCUMSTANCES = ("scenario", "world_size", "optimizer")
#: A launch of one and the same thing differs by so much from the next: what a single figure, which
#: cannot say it itself, is taken to be uncertain by.
SINGLE = 0.03
#: Figures at up to so many times the batch, or that part of it, are of the same kind of work.
NEAR_BATCH = 4.0
#: An efficiency wants so many figures.
FEWEST_FITTED = 5


class EvidenceRow(ResultRow, total=False):
    """What launches have in common, by the store's columns and what choosing asks beside them.

    Attributes:
        machine: that it was made on, by name; "" where that is not known.
        unit: the kind of unit that its device is, where a platform has several.
        moment: when the newest of its launches was started.
        kin: the name of the architecture's kind, where a source has said it.
        source: who measured it, where it was imported.
        versions: of the software that it ran with.
        memory_highest_mb: of the launch that took most.
        failed_launches: how many of `launches_tried` came to nothing.
    """

    machine: str | None
    unit: str | None
    moment: str | None
    kin: str | None
    source: str | None
    versions: str | None
    engine_version: str | None
    memory_highest_mb: float | None
    failed_launches: int | None
    launches_tried: int | None


def sizes_of(row: Row) -> dict[str, int]:
    """The sizes that were said."""
    return {name: size for name in SHAPES if isinstance(size := row.get(name), int)}


def settings_of(row: Row) -> dict[str, Setting]:
    """Return the options that were set on purpose; none if the source records none."""
    raw_options = row.get("options") or {}
    settings = json.loads(raw_options) if isinstance(raw_options, str) else raw_options
    return dict(settings) if isinstance(settings, Mapping) else {}


@dataclass(frozen=True)
class EvidenceAttempt:
    """Something that was tried at one place.

    Attributes:
        row: what its launches have in common, by the store's column names.
    """

    row: EvidenceRow = field(hash=False)

    @cached_property
    def hardware(self) -> str:
        return str(self.row["hardware"])

    @property
    def device(self) -> str:
        return str(self.row.get("device_name") or "")

    @property
    def precision(self) -> str:
        return str(self.row.get("precision") or "")

    @cached_property
    def mode(self) -> str:
        return str(self.row.get("mode") or "")

    @property
    def machine(self) -> str:
        """The machine that it was made on; "" where that is not known."""
        return str(self.row.get("machine") or "")


@dataclass(frozen=True)
class EvidenceCell(EvidenceAttempt):
    """A figure: a model at a batch and shapes, at one place by one way.

    Attributes:
        latencies: milliseconds of a step, one a launch; none where no step was timed.
        rates: items a second, one a launch that says it.
        order: its number among all that was read, the same every time: of equals it decides.
        statistic: of a launch's steps, which figure its latency is.
        usable: whether anything may be chosen by its times.
    """

    latencies: tuple[float, ...]
    rates: tuple[float, ...] = ()
    order: int = 0
    statistic: Statistic = Statistic.MEAN
    usable: bool = True

    @property
    def launches(self) -> int:
        """How many its figures are of."""
        return max(len(self.latencies), len(self.rates))

    @cached_property
    def latency(self) -> float:
        return typical(self.latencies)

    @cached_property
    def throughput(self) -> float:
        return typical(self.rates) if self.rates else 1e3 * self.batch / self.latency

    @cached_property
    def batch(self) -> int:
        """Of what is timed: only that is compared with anything."""
        size = self.row["batch_size"]
        assert size is not None
        return int(size)

    @property
    def has_rate(self) -> bool:
        """Whether its throughput is known; of a median or a percentile nobody makes one."""
        return bool(self.rates) or self.statistic in MEANS

    @cached_property
    def bounds(self) -> tuple[float, float]:
        """Between which the latency lies: by what was measured, else by what launches differ."""
        low, high = self.interval or (self.latency, self.latency)
        return min(low, self.latency / (1 + SINGLE)), max(high, self.latency * (1 + SINGLE))

    @cached_property
    def interval(self) -> tuple[float, float] | None:
        """Of its launches; of a single one that of its samples, which is the least there is."""
        if len(self.latencies) > 1:
            known = interval_of(self.latencies)
            return None if known is None else (known[0], known[1])
        known = interval_within(self.row, self.statistic) if self.timed else None
        return None if known is None or known[0] <= 0.0 else known

    def interval_told(self) -> dict[str, object] | None:
        """The interval that was measured, and of what; None of a figure that has none."""
        spread = spread_of(self.latencies, self.interval)
        if spread is None:
            return None
        return {
            "of": "launches" if len(self.latencies) > 1 else "samples",
            **ends_document(spread),
            "count": spread.count,
        }

    @cached_property
    def model(self) -> str:
        return str(self.row["model"])

    @cached_property
    def context(self) -> tuple[object, ...]:
        """What has to be alike beside model, mode and batch."""
        row = {**self.row, "world_size": self.devices}
        return tuple(row.get(name) for name in (*SHAPES, *CIRCUMSTANCES))

    @cached_property
    def devices(self) -> int | None:
        """How many worked on a step: a name may say it where the column does not."""
        named, world_size = devices_in(self.device)[0], self.row.get("world_size")
        return named if named > 1 and named > (world_size or 1) else world_size

    @property
    def timed(self) -> bool:
        """Whether the time of a step is known, and of how many items it is.

        Of some there is nothing but a throughput; a step of an unknown batch is of no question.
        """
        return bool(self.latencies) and self.row.get("batch_size") is not None

    @cached_property
    def exact(self) -> bool:
        """Whether it counts where nobody named a precision."""
        return is_exact(self.row)

    @property
    def imported(self) -> bool:
        """Whether somebody else measured it: what it does not say is not known."""
        return self.row.get("provenance") == "imported"

    @cached_property
    def question(self) -> tuple[object, ...]:
        """What was asked, wherever and however it was answered."""
        return self.model, self.batch, self.context

    @cached_property
    def work(self) -> float | None:
        """The logarithm of an item's operations, where they were counted."""
        flops = self.row.get("flops")
        return math.log(flops / self.batch) if flops else None

    @cached_property
    def weights(self) -> float | None:
        """The logarithm of the model's number of weights, where it is known."""
        parameters = self.row.get("parameters")
        return math.log(parameters) if parameters else None

    @cached_property
    def way(self) -> tuple[str, ...]:
        """How it was run: where, by which engine and version of it, in which precision."""
        row = self.row
        names = ("hardware", "device_name", "runtime", "precision", "compiled", "threads")
        more = ("options", "versions", "device_fingerprint")
        return (*(str(row.get(name)) for name in (*names, *more)), self.machine)


@dataclass(frozen=True)
class Tried:
    """What became of a family's models on a platform, over all results that count."""

    family: str
    hardware: str
    mode: str
    models: int  # that were tried
    through: int  # that went through
    refused_by: frozenset[str | None]  # engines that refused one of them at any size
    speed: float | None = None  # times the CPU's throughput where both answered
    best: bool = False  # no other platform was clearly faster on what both answered
    reason: str = ""


@dataclass(frozen=True)
class ModelKnowledge:
    """What is known of a model whatever it was measured on.

    Attributes:
        parameters: number of weights.
        flops: operations of an item at the shapes asked, where they were counted.
        kin: the name of the architecture's kind, where a source has said it.
    """

    parameters: int | None = None
    flops: float | None = None
    kin: str = ""


@dataclass(frozen=True)
class EvidencePlace:
    """Where, and in which way of asking, other models' figures are of use.

    Attributes:
        device: its name; "" stands for any of the platform.
        precisions: by their stored names; nothing stands for any that may be chosen unasked.
        scenario: how requests came; None stands for any.
        without: engines that the model failed in there.
    """

    family: str
    mode: str
    hardware: str
    device: str = ""
    precisions: Sequence[str] = ()
    scenario: str | None = None
    without: frozenset[str | None] = frozenset()

    def counts(self, cell: EvidenceCell) -> bool:
        """Whether a figure of the family is of use."""
        row = cell.row
        return (
            row["hardware"] == self.hardware
            and row.get("mode") == self.mode
            and row.get("runtime") not in self.without
            and cell.timed
            and cell.statistic not in TAILS
            and (not self.device or is_on(cell, self.device))
            and (cell.precision in self.precisions if self.precisions else cell.exact)
            and cell.devices in (None, 1)
            and self.scenario in (None, row.get("scenario"))
        )

    def best_of_each(self, cells: Iterable[EvidenceCell]) -> list[EvidenceCell]:
        """Of each question that was asked there the best answer, by batch."""
        answers: dict[tuple[object, ...], EvidenceCell] = {}
        for cell in cells:
            if self.counts(cell):
                known = answers.get(cell.question)
                if known is None or (cell.latency, cell.order) < (known.latency, known.order):
                    answers[cell.question] = cell
        return sorted(answers.values(), key=lambda cell: (cell.batch, cell.order))


def is_on(attempt: EvidenceAttempt, device: str) -> bool:
    """Whether it was tried on a device, by its name, its number or the kind of unit that it is."""
    number = str(attempt.row.get("device") or "").rpartition(":")[2]
    unit = str(attempt.row.get("unit") or "")
    return device in ("", attempt.device, number) or device.lower() in (
        unit,
        unit.partition(".")[0],
    )


def best(cells: Sequence[EvidenceCell]) -> EvidenceCell:
    """The one that does most in a second; of equals, the same every time."""
    return min(cells, key=lambda cell: (-cell.throughput, cell.latency, cell.order))

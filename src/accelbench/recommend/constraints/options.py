"""Configurations under limits, each at a batch, with their probabilities. Pure."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from accelbench.core.case import Option as Setting
from accelbench.core.precision import error_of
from accelbench.core.result_statistics import Statistic
from accelbench.recommend.choosing import (
    COST,
    ENERGY,
    LATENCY,
    AnswerBasis,
    cost_of,
    figures_of,
)
from accelbench.recommend.constraints.limits import (
    LimitReason,
    Limits,
    kept,
)
from accelbench.recommend.evidence.candidates import Candidate
from accelbench.recommend.evidence.cells import (
    ITEMS,
    EvidenceRow,
    FigureOrigin,
    counted,
    settings_of,
    sizes_of,
    way_of,
)
from accelbench.recommend.evidence.model_evidence import ModelEvidence
from accelbench.recommend.figures import (
    MEASURED,
    Bounds,
    Figure,
    counted_memory,
    with_memory_of,
)
from accelbench.recommend.query import Query
from accelbench.recommend.ranking import (
    Limited,
    RankedOption,
    place_of,
    probabilities,
)

if TYPE_CHECKING:
    from accelbench.predict.signatures import Floats

#: The basis of memory that the catalogue counts.
ESTIMATED = "estimated"
#: Where a way ran, next to its platform and its device's name.
_WHERE = ("machine", "device_fingerprint")
#: An option that keeps the limits with less is among those that do not.
LIKELY = 0.5


@dataclass(frozen=True)
class Option:
    """A way at a batch with its values; `why` has the limits that it does not keep."""

    hardware: str
    batch_size: int
    basis: str
    latency: Bounds
    rate: Bounds
    unit: str = ITEMS  # of its rate, in the plural
    statistic: Statistic = Statistic.MEAN
    has_rate: bool = True  # else the rate only follows from the time of a step
    memory: Bounds | None = None
    memory_basis: str | None = None
    cost: Bounds | None = None
    error: float | None = None
    #: of its cell, or of the cell that it is estimated from
    row: EvidenceRow = field(default_factory=EvidenceRow, hash=False, repr=False)
    why: tuple[LimitReason, ...] = ()
    origin: FigureOrigin = field(default_factory=FigureOrigin)  # the provenance of what it rests on
    figure: Figure | None = field(default=None, repr=False)
    probability: float = 0.0  # of being the best of those that keep the limits
    fits: float = 1.0  # the probability that it keeps all limits
    log_merit: float = 0.0  # the logarithm of what the objective minimises

    @property
    def measured(self) -> bool:
        return self.basis == MEASURED

    @property
    def device(self) -> str | None:
        return self.row.get("device_name")

    @property
    def runtime(self) -> str:
        return str(self.row.get("runtime") or "")

    @property
    def precision(self) -> str:
        return str(self.row.get("precision") or "")

    @property
    def power_watts(self) -> float | None:
        return self.row.get("power_watts") if self.measured else None

    @property
    def energy_per_item(self) -> float | None:
        return self.row.get("energy_per_item_joules") if self.measured else None

    @cached_property
    def settings(self) -> dict[str, Setting]:
        return settings_of(self.row)

    @property
    def name(self) -> tuple[object, ...]:
        """What identifies an option in an answer; versions of an engine share it."""
        settings = json.dumps(self.settings, sort_keys=True, default=str)
        ran = (
            *(str(self.row.get(name) or "") for name in ("compiled", "threads", *_WHERE)),
            settings,
        )
        way = (self.hardware, self.device or "", self.runtime, self.precision, *ran)
        return (*way, self.batch_size)

    @property
    def pace(self) -> float:
        """Items of the batch a second."""
        return 1e3 * self.batch_size / self.time

    @property
    def time(self) -> float:
        """Milliseconds of a step."""
        return self.latency.middle

    @property
    def throughput(self) -> float:
        return self.rate.middle

    @property
    def order(self) -> tuple[object, ...]:
        """The sort key: the most probable first, equals by their value."""
        return (*place_of(self.probability, self.log_merit), not self.measured, *self.name)

    def to_dict(self, command: str | None, unmeasurable: str | None = None) -> dict[str, object]:
        entry: dict[str, object] = {
            "hardware": self.hardware,
            **way_of(self.row),
            "batch_size": self.batch_size,
            "basis": self.basis,
            "probability": self.probability,
            "fits_probability": self.fits,
            "provenance": self.row.get("provenance"),
            **self.origin.to_dict(),
            "latency_ms": self.latency.middle,
            "latency_low": self.latency.low,
            "latency_high": self.latency.high,
            "figure": str(self.statistic),
            "throughput": self.rate.middle if self.has_rate else None,
            "throughput_low": self.rate.low if self.has_rate else None,
            "throughput_unit": self.unit,
            "memory_mb": self.memory and self.memory.middle,
            "memory_high": self.memory and self.memory.high,
            "memory_basis": self.memory_basis,
            "error": self.error,
            "power_watts": self.power_watts,
            "energy_per_item_joules": self.energy_per_item,
            "cost_per_million": self.cost and self.cost.middle,
            "cost_per_million_low": self.cost and self.cost.low,
            "cost_per_million_high": self.cost and self.cost.high,
            "measured_at": self.row.get("moment") if self.measured else None,
            "run_id": self.row.get("run_id") if self.measured else None,
            "command": command,
        }
        if unmeasurable:
            entry["unmeasurable"] = unmeasurable
        return {**entry, "why": [reason.text for reason in self.why]} if self.why else entry


def options(
    query: Query,
    own: ModelEvidence,
    candidates: Sequence[Candidate],
    predicted: Mapping[str, Sequence[Figure]],
    ground: AnswerBasis,
) -> Iterator[Option]:
    """Yield each configuration at each batch that was measured or predicted."""
    for candidate in candidates:
        evidence = own.of(candidate)
        for figure in figures_of(None, evidence, predicted.get(candidate.name, ())):
            yield _option(query, candidate.name, with_memory_of(figure, evidence.unusable), ground)


def _option(query: Query, name: str, figure: Figure, ground: AnswerBasis) -> Option:
    row = figure.cell.row
    # A measured result without an interval is taken as exact.
    measured = figure.cell.interval or (figure.latency, figure.latency)
    low, high = measured if figure.measured else (figure.low, figure.high)
    latency = Bounds(figure.latency, min(low, figure.latency), max(high, figure.latency))
    rate = Bounds(
        figure.throughput,
        figure.throughput * figure.latency / latency.high,
        figure.throughput * figure.latency / latency.low,
    )
    memory, basis = figure.memory, figure.memory_basis
    if memory is None:
        sizes, settings = {**query.shapes, **sizes_of(row)}, settings_of(row)
        amount = counted_memory(query, figure.batch, figure.cell.precision, sizes, settings)
        memory, basis = Bounds.exact(amount), None if amount is None else ESTIMATED
    return Option(
        hardware=name,
        batch_size=figure.batch,
        basis=figure.basis,
        latency=latency,
        rate=rate,
        unit=figure.unit,
        statistic=figure.statistic,
        has_rate=figure.rate is not None,
        memory=memory,
        memory_basis=basis,
        cost=cost_of(figure, ground.prices),
        error=error_of(row),
        row=row,
        origin=figure.origin,
        figure=replace(
            figure,
            # The launch that took most counts, and no error is left.
            memory=Bounds.exact(memory.high) if memory and basis == MEASURED else memory,
            memory_basis=basis,
        ),
    )


def judged(
    several: Iterable[Option],
    limits: Limits,
    ground: AnswerBasis,
    correlation: Floats | None,
    counts: str,
    *,
    any_error: bool,
) -> list[Option]:
    """Return options with their probabilities and the limits that they probably do not keep."""
    every = list(several)
    mixed = len({counted(option.unit) for option in every}) > 1
    reasons = [kept(option, limits, counts, any_error=any_error) for option in every]
    ranked, merits = [], []
    for option, why in zip(every, reasons, strict=True):
        bands = dict(_bands(option, limits, counts))
        merit = _merit(option, ground.objective, mixed=mixed)
        merits.append(merit)
        possible = merit is not None and not any(reason.limit not in bands for reason in why)
        assert option.figure is not None
        room = ground.room(option.figure.cell.hardware, option.figure.cell.device)
        ranked.append(
            RankedOption(option.figure, merit or 0.0, room, tuple(bands.values()), possible)
        )
    shares = probabilities(ranked, correlation)
    made = []
    for option, merit, why, best, fits, kept_each in zip(
        every, merits, reasons, shares.best, shares.fits, shares.kept, strict=True
    ):
        missed = [reason for reason in why if kept_each.get(reason.limit, 0.0) < LIKELY]
        if fits < LIKELY and not missed:
            missed = list(why) or [LimitReason("room", "its memory does not fit its device")]
        log_merit = math.inf if merit is None else merit
        made.append(
            replace(option, why=tuple(missed), probability=best, fits=fits, log_merit=log_merit)
        )
    return made


def _bands(option: Option, limits: Limits, counts: str) -> Iterator[tuple[str, Limited]]:
    """Yield the limits of values that change with time or with memory."""

    def limited(name: str, middle: float, most: float, *, of_memory: bool = False) -> None:
        bands[name] = Limited(name, middle, most, of_memory)

    bands: dict[str, Limited] = {}
    given, alike = limits.given, counted(option.unit) == counts
    if "memory_mb" in given and option.memory:
        exact = option.memory_basis == MEASURED
        took = option.memory.high if exact else option.memory.middle
        limited("memory_mb", took, given["memory_mb"], of_memory=True)
    if "max_latency_ms" in given:
        limited("max_latency_ms", option.latency.middle, given["max_latency_ms"])
    if "min_throughput" in given and option.has_rate and alike:
        limited("min_throughput", 1.0 / option.rate.middle, 1.0 / given["min_throughput"])
    if "max_cost" in given and option.cost and alike:
        limited("max_cost", option.cost.middle, given["max_cost"])
    yield from bands.items()


def _merit(option: Option, objective: str, *, mixed: bool) -> float | None:
    """Return the logarithm of what the objective minimises; None if it is unknown."""
    if objective == LATENCY:
        return math.log(option.time)
    if objective == COST:
        return math.log(option.cost.middle) if option.cost else None
    if objective == ENERGY:
        return math.log(option.energy_per_item) if option.energy_per_item else None
    return -math.log(option.pace if mixed else option.throughput)

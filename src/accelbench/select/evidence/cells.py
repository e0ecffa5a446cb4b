"""What is known of a model somewhere: one question at one place, by the launches of its newest run.

Plain values, whatever they were read from.

What a rate counts: the word for it, and whether two rates count the same. Pure.

How a figure was run, in words: by which engine and version of it, compiled, by how many threads.

An answer in full says all that is known; a table says what tells apart two ways that were measured.

Who measured what a figure is, or what it is estimated from: here, or others. Pure.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from statistics import median
from typing import Any

from accelbench.analysis.costs import items_of
from accelbench.analysis.questions import SHAPES
from accelbench.analysis.ratios import interval_within
from accelbench.core.case import Option as Setting
from accelbench.core.devices import cards, devices_in
from accelbench.core.figures import MEANS, TAILS, Statistic, ends_document, kind_of_unit
from accelbench.core.nouns import listed
from accelbench.core.precision import is_exact
from accelbench.core.protocols import RuntimeInfo
from accelbench.core.rows import ResultRow, Row
from accelbench.core.vocabulary import Provenance
from accelbench.measure.launches import interval_of, spread_of, typical
from accelbench.store.duck import quoted

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
        unusable_reason: why its times are unusable, as the view `launches` has it.
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
    unusable_reason: str | None


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


#: What is said of a rate whose source names no unit.
ITEMS = "items"
#: From here on a figure's digits are all before the point.
_LONG = 1e4


def unit_of(row: Row) -> str:
    """What a figure's rate counts, in the plural: tokens, images, seconds of sound."""
    unit = row.get("throughput_unit")
    # A cell has its rates apart from its row, and without a rate nobody says its unit.
    return items_of({"throughput_unit": unit, "throughput": 1.0}) or ITEMS if unit else ITEMS


def counted(unit: str) -> str:
    """The same word for units whose rates can be held together."""
    return unit if kind_of_unit(unit) else ITEMS


def items_a_step(cells: Sequence[EvidenceCell]) -> float:
    """How many a step does for each item of its batch: 1 of images, and of tokens many."""
    return median(cell.throughput * cell.latency / (1e3 * cell.batch) for cell in cells)


def rounded(value: float) -> str:
    """A figure in four digits, and never with an exponent for its being large."""
    return f"{value:,.0f}" if abs(value) >= _LONG else f"{value:.4g}"


#: What of a way no cell of a table says by itself.
SETTINGS = ("compiled", "threads", "options", "machine", "device_fingerprint")
#: Which of several machines' figures stands for a device.
BY_FASTEST = ", each device by its fastest"


def engine_said(row: Row) -> str:
    """An engine with its version, where that is known."""
    engine, version = str(row.get("runtime") or ""), str(row.get("engine_version") or "")
    if not version or version.lower().startswith(engine.lower()):
        return version or engine
    return f"{engine} ({version})"


def way_said(row: Row) -> Iterator[str]:
    """A way in full, part by part."""
    yield from (str(row[name]) for name in ("device_name",) if row.get(name))
    yield from filter(None, (engine_said(row), str(row.get("precision") or "")))
    if row.get("compiled"):
        yield "compiled"
    if threads := threads_said(row):
        yield threads


def threads_said(row: Row) -> str:
    """Of how many threads a figure is; "" where nobody says."""
    count = row.get("threads")
    return "" if not count else f"{count} thread{'' if count == 1 else 's'}"


def told_apart_by(cell: EvidenceCell, among: Iterable[EvidenceCell]) -> tuple[str, ...]:
    """The settings in which others of its place, engine, precision and batch differ from it."""

    def named(evidence: EvidenceCell) -> tuple[object, ...]:
        row = evidence.row
        return (
            evidence.hardware,
            evidence.device,
            row.get("runtime"),
            evidence.precision,
            row.get("batch_size"),
        )

    return differing([other.row for other in among if named(other) == named(cell)])


def differing(rows: Sequence[Row]) -> tuple[str, ...]:
    """The settings that are not the same in all."""
    return tuple(name for name in SETTINGS if len({str(row.get(name)) for row in rows}) > 1)


def of_machines(machines: Mapping[str, Sequence[str]], how: str = "") -> str:
    """That figures are of several machines, and which is of which.

    Args:
        machines: each with the hardware whose figures are of it.
        how: which of its figures stands for a device.
    """
    parts = "; ".join(
        f"{', '.join(names) or 'nothing that is faster'} on {machine}"
        for machine, names in machines.items()
    )
    return (
        f"These are results of {len(machines)} machines{how}: {parts}. --machine answers by one of"
        " them."
    )


def engine_sql(runtime: str, conditions: str) -> str:
    """The engine's version in SQL, as conditions have it: by the source, or as a package.

    Args:
        runtime: SQL for the engine's name.
        conditions: SQL for the conditions' text.
    """
    packages = {name: card.engine_packages[0] for name, card in cards().items() if _renamed(card)}
    named = " ".join(
        f"WHEN {quoted(engine)} THEN {quoted(name)}" for engine, name in packages.items()
    )
    called = f"CASE {runtime} {named} ELSE {runtime} END" if named else runtime
    package = f"""replace({called}, '"', '')"""
    paths = (f"""'$.{before}"' || {package} || '"'""" for before in ("packages.", ""))
    versions = ", ".join(f"json_extract_string({conditions}, {path})" for path in paths)
    return (
        f"coalesce(json_extract_string({conditions}, '$.engine'),"
        f" {package} || ' ' || coalesce({versions}))"
    )


def _renamed(card: RuntimeInfo) -> bool:
    """Whether an engine is called otherwise as a package."""
    return bool(card.engine_packages) and card.engine_packages[0] != card.name


#: Names of sources that are told in one sentence.
_MOST_NAMED = 4
BY_OTHERS = "measured by others"


@dataclass(frozen=True)
class FigureOrigin:
    """Whose measurements a figure rests on.

    Attributes:
        rests_on: the provenances of them, each once.
        sources: who measured those that were imported.
    """

    rests_on: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()

    @classmethod
    def of(cls, cells: Iterable[EvidenceCell]) -> FigureOrigin:
        """Of a figure's cells."""
        several = list(cells)
        known = {str(cell.row.get("provenance") or "") for cell in several} - {""}
        names = {str(cell.row.get("source") or "") for cell in several if cell.imported} - {""}
        return cls(tuple(sorted(known, reverse=True)), tuple(sorted(names)))

    @property
    def by_others(self) -> bool:
        """Whether nothing of it was measured here."""
        return self.rests_on == (Provenance.IMPORTED,)

    @property
    def named(self) -> str:
        """The sources in words; what stands for them where none is named."""
        return listed(list(self.sources), _MOST_NAMED) or "imported"

    def to_dict(self) -> dict[str, object]:
        """As answers have it."""
        return {"rests_on": list(self.rests_on), "sources": list(self.sources)}


def is_imported(entry: Mapping[str, Any]) -> bool:
    """Whether an answer's figure is one that others measured."""
    return entry.get("provenance") == Provenance.IMPORTED


def of_others(entries: Iterable[Mapping[str, Any]]) -> str:
    """The sentence that figures of answers are of others, or rest on theirs; "" where none is."""
    several = [entry for entry in entries if Provenance.IMPORTED in (entry.get("rests_on") or ())]
    if not several:
        return ""
    names = sorted({str(name) for entry in several for name in entry.get("sources") or ()})
    whose = f" ({listed(names, _MOST_NAMED)})" if names else ""
    is_a_figure = any(map(is_imported, several))
    if not is_a_figure:
        return f"Estimated from what was {BY_OTHERS}{whose}, not here."
    return f"imported: {BY_OTHERS}{whose}, not here."

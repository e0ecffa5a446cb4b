"""The current measurement of a configuration as choosing reads it, and texts about it. Pure.

Configurations that failed when they were last tried, and what they rule out. Pure.

Only failures of model, platform, engine and precision count: a missing card or a timeout says
nothing about other machines.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from accelbench.core.case import Option as Setting
from accelbench.core.devices import cards, default_precision, parse_device_count
from accelbench.core.formatting import join_first
from accelbench.core.plausible_values import reason_subject
from accelbench.core.precision import is_exact
from accelbench.core.protocols import RuntimeInfo
from accelbench.core.result_statistics import MEANS, Statistic, ends_document, unit_kind
from accelbench.core.rows import ResultRow, Row
from accelbench.core.vocabulary import Belongs, Provenance, Status
from accelbench.judge.costs import items_of
from accelbench.judge.questions import SHAPES
from accelbench.judge.ratios import interval_within
from accelbench.measure.launch_verdicts import geometric_mean, interval_of, spread_of
from accelbench.store.duck import quote_sql

#: What else must be equal for two results to answer one question. Weights and data are left out:
#: the time of a step does not depend on them.
CIRCUMSTANCES = ("scenario", "world_size", "optimizer")
#: The uncertainty of a single launch: so much do two launches of the same differ.
SINGLE = 0.03


class EvidenceRow(ResultRow, total=False):
    """What the launches of a measurement have in common, by the store's columns and these."""

    machine: str | None  # its name
    unit: str | None  # the kind of the device, if a platform has several
    moment: str | None  # when the newest launch started
    source: str | None  # who measured it, if it was imported
    versions: str | None  # of an import, what distinguishes its versions
    engine_version: str | None
    memory_highest_mb: float | None  # of the launch that took most
    failed_launches: int | None  # how many of `launches_tried` failed
    launches_tried: int | None
    unusable_reason: str | None  # as in the relation `launches`


def sizes_of(row: Row) -> dict[str, int]:
    """Return the sizes that a row records."""
    return {name: size for name in SHAPES if isinstance(size := row.get(name), int)}


def settings_of(row: Row) -> dict[str, Setting]:
    """Return the options that were set on purpose; none if the source records none."""
    raw_options = row.get("options") or {}
    settings = json.loads(raw_options) if isinstance(raw_options, str) else raw_options
    return dict(settings) if isinstance(settings, Mapping) else {}


def way_of(row: Row) -> dict[str, object]:
    """Return how a result was run, for JSON."""
    names = ("runtime", "precision", "compiled", "threads", "engine_version", "device_fingerprint")
    return {
        "device": row.get("device_name"),
        **{name: row.get(name) for name in names},
        "options": settings_of(row),
        "machine": row.get("machine") or None,
    }


@dataclass(frozen=True)
class EvidenceAttempt:
    """A configuration that was tried: what its launches have in common."""

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
        return str(self.row.get("machine") or "")


@dataclass(frozen=True)
class EvidenceCell(EvidenceAttempt):
    """The current measurement of a configuration."""

    latencies: tuple[float, ...]  # milliseconds of a step, one a launch; empty if no step was timed
    rates: tuple[float, ...] = ()  # items a second, one for each launch that records them
    order: int = 0  # its number among everything that was read: it decides between equals
    statistic: Statistic = Statistic.MEAN  # of the latencies
    usable: bool = True  # whether its times may decide anything

    @property
    def launches(self) -> int:
        return max(len(self.latencies), len(self.rates))

    @cached_property
    def latency(self) -> float:
        return geometric_mean(self.latencies)

    @cached_property
    def throughput(self) -> float:
        return geometric_mean(self.rates) if self.rates else 1e3 * self.batch / self.latency

    @cached_property
    def batch(self) -> int:
        size = self.row["batch_size"]
        assert size is not None
        return int(size)

    @property
    def has_rate(self) -> bool:
        """Whether its throughput is known; a median or a percentile gives none."""
        return bool(self.rates) or self.statistic in MEANS

    @cached_property
    def bounds(self) -> tuple[float, float]:
        """The bounds of the latency, at least as wide as launches differ."""
        low, high = self.interval or (self.latency, self.latency)
        return min(low, self.latency / (1 + SINGLE)), max(high, self.latency * (1 + SINGLE))

    @cached_property
    def interval(self) -> tuple[float, float] | None:
        """The interval of the launches; of a single one that of its samples."""
        if len(self.latencies) > 1:
            known = interval_of(self.latencies)
            return None if known is None else (known[0], known[1])
        known = interval_within(self.row, self.statistic) if self.timed else None
        return None if known is None or known[0] <= 0.0 else known

    def interval_told(self) -> dict[str, object] | None:
        """Return the measured interval and what it is of, for JSON; None if there is none."""
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
        row = {**self.row, "world_size": self.devices}
        return tuple(row.get(name) for name in (*SHAPES, *CIRCUMSTANCES))

    @cached_property
    def devices(self) -> int | None:
        """How many devices share a step: a device's name may tell it."""
        named, world_size = parse_device_count(self.device)[0], self.row.get("world_size")
        return named if named > 1 and named > (world_size or 1) else world_size

    @property
    def timed(self) -> bool:
        return bool(self.latencies) and self.row.get("batch_size") is not None

    @cached_property
    def exact(self) -> bool:
        return is_exact(self.row)

    @property
    def imported(self) -> bool:
        """Whether somebody else measured it, so that missing values are unknown."""
        return self.row.get("provenance") == "imported"

    def facts(self) -> dict[str, object]:
        names = ("runtime", "precision", "engine_version", "batch_size", "provenance", "source")
        return {
            "device": self.row.get("device_name"),
            **{name: self.row.get(name) for name in names},
            "measured_at": self.row.get("moment"),
            "run_id": self.row.get("run_id"),
        }

    @cached_property
    def way(self) -> tuple[str, ...]:
        """What identifies its configuration next to the batch."""
        row = self.row
        names = ("hardware", "device_name", "runtime", "precision", "compiled", "threads")
        more = ("options", "versions", "device_fingerprint")
        return (*(str(row.get(name)) for name in (*names, *more)), self.machine)


@dataclass(frozen=True)
class Tried:
    """The outcomes of a family's models on a platform, over all comparable results."""

    family: str
    hardware: str
    mode: str
    models: int  # that were tried
    through: int  # that succeeded
    refused_by: frozenset[str | None]  # engines that refused one of them at any size
    speed: float | None = None  # throughput relative to the CPU's, if both have results
    best: bool = False  # no other platform was clearly faster
    reason: str = ""


def is_on(attempt: EvidenceAttempt, device: str) -> bool:
    """Return whether it ran on a device, given by its name, its number or its kind of unit."""
    number = str(attempt.row.get("device") or "").rpartition(":")[2]
    unit = str(attempt.row.get("unit") or "")
    return device in ("", attempt.device, number) or device.lower() in (
        unit,
        unit.partition(".")[0],
    )


def best(cells: Sequence[EvidenceCell]) -> EvidenceCell:
    """Return the one with the highest throughput; `order` decides between equals."""
    return min(cells, key=lambda cell: (-cell.throughput, cell.latency, cell.order))


#: The unit of a rate whose source names none.
ITEMS = "items"
#: From here on a value is shown without decimals.
_LONG = 1e4


def unit_of(row: Row) -> str:
    """Return what the rate of a result counts, in the plural: tokens, images, seconds of sound."""
    unit = row.get("throughput_unit")
    # The rates of a cell are not in its row, and a row without a rate has no unit.
    return items_of({"throughput_unit": unit, "throughput": 1.0}) or ITEMS if unit else ITEMS


def counted(unit: str) -> str:
    """Return the same word for units whose rates can be compared."""
    return unit if unit_kind(unit) else ITEMS


def rounded(value: float) -> str:
    """Format a value with four digits and without an exponent."""
    return f"{value:,.0f}" if abs(value) >= _LONG else f"{value:.4g}"


#: Settings that have no column of their own in a table.
SETTINGS = ("compiled", "threads", "options", "machine", "device_fingerprint")
_OF_A_MACHINE = ("machine", "device_fingerprint", "threads")
#: Which result of several machines represents a device.
BY_FASTEST = ", each device by its fastest"


def engine_said(row: Row) -> str:
    """Return an engine with its version, if that is known."""
    engine, version = str(row.get("runtime") or ""), str(row.get("engine_version") or "")
    if not version or version.lower().startswith(engine.lower()):
        return version or engine
    return f"{engine} ({version})"


def way_said(row: Row) -> Iterator[str]:
    """Yield device, engine, precision and settings of a result, as texts."""
    yield from (str(row[name]) for name in ("device_name",) if row.get(name))
    yield from filter(None, (engine_said(row), str(row.get("precision") or "")))
    if row.get("compiled"):
        yield "compiled"
    if threads := threads_said(row):
        yield threads


def threads_said(row: Row) -> str:
    """Return the number of threads as a text; "" if it is unknown."""
    count = row.get("threads")
    return "" if not count else f"{count} thread{'' if count == 1 else 's'}"


def told_apart_by(cell: EvidenceCell, among: Iterable[EvidenceCell]) -> tuple[str, ...]:
    """Return the settings in which cells of its device, engine, precision and batch differ."""

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
    """Return the settings that are not equal in all rows; a prediction has no machine."""

    def values(name: str) -> set[str]:
        known = [row for row in rows if row.get(name) is not None or name not in _OF_A_MACHINE]
        return {str(row.get(name)) for row in known}

    return tuple(name for name in SETTINGS if len(values(name)) > 1)


def of_machines(machines: Mapping[str, Sequence[str]], how: str = "") -> str:
    """Return the note that results are of several machines."""
    parts = "; ".join(
        f"{', '.join(names) or 'nothing that is faster'} on {machine}"
        for machine, names in machines.items()
    )
    return (
        f"These are results of {len(machines)} machines{how}: {parts}. --machine answers by one of"
        " them."
    )


def engine_sql(runtime: str, conditions: str) -> str:
    """Return SQL for the engine's version, given SQL for its name and for the conditions."""
    packages = {name: card.engine_packages[0] for name, card in cards().items() if _renamed(card)}
    named = " ".join(
        f"WHEN {quote_sql(engine)} THEN {quote_sql(name)}" for engine, name in packages.items()
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
    return bool(card.engine_packages) and card.engine_packages[0] != card.name


#: Names of sources in one sentence.
_MOST_NAMED = 4
BY_OTHERS = "measured by others"


@dataclass(frozen=True)
class FigureOrigin:
    """The provenances that a value rests on, and who measured what was imported."""

    rests_on: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()

    @classmethod
    def of(cls, cells: Iterable[EvidenceCell]) -> FigureOrigin:
        several = list(cells)
        known = {str(cell.row.get("provenance") or "") for cell in several} - {""}
        names = {str(cell.row.get("source") or "") for cell in several if cell.imported} - {""}
        return cls(tuple(sorted(known, reverse=True)), tuple(sorted(names)))

    @property
    def by_others(self) -> bool:
        return self.rests_on == (Provenance.IMPORTED,)

    @property
    def named(self) -> str:
        """The sources as a list in words."""
        return join_first(list(self.sources), _MOST_NAMED) or "imported"

    def to_dict(self) -> dict[str, object]:
        return {"rests_on": list(self.rests_on), "sources": list(self.sources)}


def is_imported(entry: Mapping[str, Any]) -> bool:
    """Return whether an entry of an answer was measured by others."""
    return entry.get("provenance") == Provenance.IMPORTED


def of_others(entries: Iterable[Mapping[str, Any]]) -> str:
    """Return the note that values of answers rest on imported results; "" if none does."""
    several = [entry for entry in entries if Provenance.IMPORTED in (entry.get("rests_on") or ())]
    if not several:
        return ""
    names = sorted({str(name) for entry in several for name in entry.get("sources") or ()})
    whose = f" ({join_first(names, _MOST_NAMED)})" if names else ""
    is_a_figure = any(map(is_imported, several))
    if not is_a_figure:
        return f"Estimated from what was {BY_OTHERS}{whose}, not here."
    return f"imported: {BY_OTHERS}{whose}, not here."


#: How it was tried. A failure before there was a device records only some of it.
_WAY = (
    *("hardware", "device_name", "device_fingerprint", "runtime", "precision", "compiled"),
    "options",
)
_WRONG_OUTPUTS = "wrong_outputs"


@dataclass(frozen=True)
class Failure(EvidenceAttempt):
    """The newest failed attempt at a configuration."""

    @property
    def batch(self) -> int | None:
        size = self.row.get("batch_size")
        return None if size is None else int(size)

    @property
    def reason(self) -> str:
        known = str(self.row.get("reason") or "")
        return known or (
            _WRONG_OUTPUTS if self.has_wrong_outputs else str(self.row.get("status") or "")
        )

    @property
    def has_wrong_outputs(self) -> bool:
        return self.row.get("status") == Status.OK or self.row.get("reason") == _WRONG_OUTPUTS

    @property
    def counts(self) -> bool:
        """Whether the configuration caused it, not a machine or the request."""
        return reason_subject(self.reason) is Belongs.CELL

    @property
    def of_memory(self) -> bool:
        return self.row.get("status") == Status.OUT_OF_MEMORY or "memory" in self.reason

    @property
    def refused(self) -> bool:
        """Whether it was refused at any batch."""
        return self.row.get("status") == Status.UNSUPPORTED

    def is_of_way(self, cell: EvidenceCell) -> bool:
        return all(self.row.get(name) in (None, cell.row.get(name)) for name in _WAY)

    def is_of_question(self, cell: EvidenceCell) -> bool:
        names = ("model", "mode", *SHAPES, *CIRCUMSTANCES)
        return all(self.row.get(name) == cell.row.get(name) for name in names)

    def overtakes(self, cell: EvidenceCell) -> bool:
        """Return whether it is newer than a cell of the same or, for memory, a larger batch."""
        if not (self.is_of_way(cell) and self.is_of_question(cell) and self._is_later_than(cell)):
            return False
        return self.batch == cell.batch or self._fits_no(cell.batch - 1)

    def is_overtaken_by(self, cell: EvidenceCell) -> bool:
        """Return whether the same worked in a later run, or in another launch of its run."""
        same = self.is_of_way(cell) and self.is_of_question(cell)
        worked = cell.batch == self.batch or self._fits_no(cell.batch - 1)
        return same and worked and not self._is_later_than(cell)

    def follows(self, cell: EvidenceCell) -> bool:
        """Return whether it is a newer run of a cell that failed because of machine or request.

        The cell counts nevertheless, with a note.
        """
        same = self.is_of_way(cell) and self.is_of_question(cell) and self.batch == cell.batch
        return same and not self.counts and self._is_later_than(cell)

    def stands_in_the_way(self, batch: int, cells: Sequence[EvidenceCell]) -> bool:
        """Return whether it rules out a batch, given the cells of the same way at any batch."""
        if self._fits_no(batch):
            return True
        return self.batch == batch or (self.refused and not cells)

    @property
    def engine(self) -> str | None:
        return self.row.get("runtime")

    def is_of_engine(self, precisions: Sequence[str]) -> bool:
        """Return whether its engine failed without options in one of these precisions.

        Without any, it is the default precision of the engine.
        """
        usual = precisions or (default_precision(self.hardware, self.engine),)
        return self.row.get("precision") in (None, *usual) and not settings_of(self.row)

    def explanation(self) -> str:
        """Return a text: out_of_memory at batch 64, sequence length 128 (pytorch, fp32, A card)."""
        parts = (self.engine, self.row.get("precision"), *settings_of(self.row), self.device)
        way = ", ".join(str(part) for part in parts if part)
        batch = "an unknown batch" if self.batch is None else f"batch {self.batch}"
        sizes = (f"{name.replace('_', ' ')} {size}" for name, size in sizes_of(self.row).items())
        return f"{self.reason} at {', '.join((batch, *sizes))} ({way})"

    def to_dict(self) -> dict[str, object]:
        return {
            "runtime": self.engine,
            "device": self.device or None,
            "precision": self.row.get("precision"),
            "batch_size": self.batch,
            "shapes": sizes_of(self.row),
            "options": settings_of(self.row),
            "reason": self.reason,
            "run_id": self.row.get("run_id"),
        }

    def _fits_no(self, batch: int) -> bool:
        return self.of_memory and self.batch is not None and self.batch <= batch

    def _is_later_than(self, cell: EvidenceCell) -> bool:
        if self.row.get("run_id") == cell.row.get("run_id"):
            # Out of memory once may be chance; wrong outputs of one launch concern all.
            return self.has_wrong_outputs
        return str(self.row.get("moment") or "") > str(cell.row.get("moment") or "")


def lasting(cells: Sequence[EvidenceCell], failures: Sequence[Failure]) -> list[EvidenceCell]:
    """Return the cells that no later failure overtakes."""
    return [cell for cell in cells if not any(failure.overtakes(cell) for failure in failures)]


def standing(failures: Iterable[Failure], cells: Sequence[EvidenceCell]) -> list[Failure]:
    """Return the failures that no later cell overtakes."""
    return [
        failure
        for failure in failures
        if failure.counts and not any(failure.is_overtaken_by(cell) for cell in cells)
    ]


def in_the_way(
    batch: int, cells: Sequence[EvidenceCell], failures: Sequence[Failure]
) -> tuple[list[EvidenceCell], list[Failure]]:
    """Return the cells of ways that may run a batch, and the failures of the others."""
    against = [
        failure
        for failure in failures
        if failure.stands_in_the_way(batch, [cell for cell in cells if failure.is_of_way(cell)])
    ]
    free = [cell for cell in cells if not any(failure.is_of_way(cell) for failure in against)]
    return free, against


def engines_of(failures: Iterable[Failure]) -> frozenset[str | None]:
    """Return the engines that failed."""
    return frozenset(failure.engine for failure in failures)


def ruled_out(against: Sequence[Failure], precisions: Sequence[str]) -> list[Failure]:
    """Return the newest failure of each engine that cannot run a batch.

    A failure of one engine does not affect another one, nor one in int8 fp32.
    """
    newest: dict[str | None, Failure] = {}
    for failure in sorted(against, key=lambda each: str(each.row.get("moment") or "")):
        if failure.is_of_engine(precisions):
            newest[failure.engine] = failure
    return [newest[engine] for engine in sorted(newest, key=str)]

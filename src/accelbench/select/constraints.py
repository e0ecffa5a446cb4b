"""The best batch size and precision under limits, of everything known of a model. Pure.

What is not known does not fit: a limit that nobody can show to be kept is not kept.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from accelbench.catalog.memory import memory_estimate_bytes
from accelbench.core.case import Shapes
from accelbench.core.errors import AccelbenchError, UsageError
from accelbench.core.words import MIB
from accelbench.select.asking import Asked
from accelbench.select.candidates import Candidate
from accelbench.select.choosing import Prices
from accelbench.select.evidence import Cell, Known
from accelbench.select.failures import Failure
from accelbench.select.figures import MEASURED, Figure, Question, figure
from accelbench.select.own import Own
from accelbench.select.words import command

#: Tried where nothing was measured: as far as memory is estimated to allow.
BATCHES = (1, 2, 4, 8, 16, 32, 64, 128)
_ESTIMATED = "estimated"
#: Other batches of the same way are all that an option is estimated from.
_NOTHING = Known()


@dataclass(frozen=True)
class Limits:
    """What an answer may not exceed, or fall below; None is no limit."""

    memory_mb: float | None = None
    max_latency_ms: float | None = None
    min_throughput: float | None = None
    max_error: float | None = None
    max_cost: float | None = None
    max_power: float | None = None

    def __post_init__(self) -> None:
        for one in fields(self):
            value = getattr(self, one.name)
            if value is not None and not value > 0:
                raise UsageError(f"A limit of {value:g} for {one.name} leaves nothing.")


def limits_named(given: Mapping[str, float | None]) -> Limits:
    """Limits from their names.

    Raises:
        UsageError: there is no such limit.
    """
    known = [one.name for one in fields(Limits)]
    for name in given:
        if name not in known:
            raise UsageError(f"There is no limit {name!r}.", f"Limits: {', '.join(known)}.")
    return Limits(**given)


@dataclass(frozen=True)
class Option:
    """A way, a batch and a precision with its figures; `why` says what speaks against it."""

    hardware: str
    device: str | None
    runtime: str
    precision: str
    batch_size: int
    basis: str
    latency_ms: float
    throughput: float
    throughput_low: float  # at the slow end of an estimate's bounds
    memory_mb: float | None
    memory_basis: str | None
    error: float | None
    power_watts: float | None
    cost_per_million: float | None
    measured_at: str | None
    command: str
    why: tuple[str, ...] = ()

    @property
    def measured(self) -> bool:
        return self.basis == MEASURED

    def told(self) -> dict[str, Any]:
        """As the answer has it."""
        found = asdict(self)
        if not found.pop("why"):
            return found
        return {**found, "why": list(self.why)}


def under(
    asked: Asked,
    limits: Limits,
    own: Own,
    candidates: Sequence[Candidate],
    batches: Iterable[int] = (),
    prices: Prices | None = None,
) -> dict[str, Any]:
    """What keeps to the limits, the best of it, and why the rest does not.

    Args:
        asked: the question; its batch is none of it.
        limits: what has to be kept.
        own: cells of the model in one context.
        candidates: the hardware that counts.
        batches: batch sizes that are estimated where they were not measured.
        prices: dollars per million of a result.
    """
    options = [
        _judged(one, limits)
        for one in _options(asked, own, candidates, sorted(set(batches)), prices)
    ]
    fits = sorted((one for one in options if not one.why), key=_merit)
    best = fits[0] if fits else None
    return {
        "model": asked.model,
        "mode": asked.mode,
        "limits": {name: value for name, value in asdict(limits).items() if value is not None},
        "best": best.told() if best else None,
        "fits": [one.told() for one in fits],
        "does_not_fit": [one.told() for one in sorted(options, key=_merit) if one.why],
        "pareto": [one.told() for one in pareto(fits)],
        "to_verify": to_verify(asked, limits, options, candidates),
        "explanation": _explained(asked, limits, best, options),
    }


def pareto(options: Sequence[Option]) -> list[Option]:
    """Those that no other beats in latency, throughput, and memory where all know theirs."""
    by_memory = all(one.memory_mb is not None for one in options)

    def figures(one: Option) -> tuple[float, ...]:
        memory = (one.memory_mb or 0.0,) if by_memory else ()
        return (one.latency_ms, -one.throughput, *memory)

    def beaten(one: Option) -> bool:
        mine = figures(one)
        return any(
            all(a <= b for a, b in zip(theirs, mine, strict=True)) and theirs != mine
            for theirs in map(figures, options)
        )

    return sorted((one for one in options if not beaten(one)), key=lambda one: one.latency_ms)


def to_verify(
    asked: Asked, limits: Limits, options: Sequence[Option], candidates: Sequence[Candidate]
) -> list[dict[str, Any]]:
    """What is worth measuring, as words of cases: the best that fits, and what may be better.

    Where nothing is known of a model of the catalogue, it is each hardware's largest batch whose
    estimated memory fits.
    """
    fits = sorted((one for one in options if not one.why), key=_merit)
    wanted = fits[:1]
    wanted += [one for one in fits[1:] if not one.measured and one.throughput > fits[0].throughput][
        :3
    ]
    found = [_words(asked, o.hardware, o.precision, o.batch_size, o.runtime) for o in wanted]
    if options:
        return found
    precision = asked.precision or "fp32"
    batch = _largest(asked, limits, precision)
    if batch is None:
        return []
    return [_words(asked, one.name, precision, batch, None) for one in candidates]


def _words(
    asked: Asked, hardware: str, precision: str, batch: int, runtime: str | None
) -> dict[str, Any]:
    platform, _, device = hardware.partition(":")
    one = replace(asked, batch=batch, precision=precision)
    return {
        "model": asked.names[0],
        "hardware": hardware,
        "runtime": runtime,
        "precision": precision,
        "batch_size": batch,
        "mode": asked.mode,
        "command": command(one, Candidate(platform, device)),
    }


def _largest(asked: Asked, limits: Limits, precision: str) -> int | None:
    for batch in reversed(BATCHES):
        memory = _estimated_memory(asked, batch, precision)
        if memory is None:
            return 1
        if limits.memory_mb is None or memory <= limits.memory_mb:
            return batch
    return None


def _options(
    asked: Asked,
    own: Own,
    candidates: Sequence[Candidate],
    batches: Sequence[int],
    prices: Prices | None,
) -> list[Option]:
    """Each way at each of its batches, and at those that are asked for besides."""
    ways: dict[tuple[str, tuple[str, ...]], list[Cell]] = defaultdict(list)
    failures: dict[str, Sequence[Failure]] = {}
    for candidate in candidates:
        for cell in own.cells:
            if candidate.has(cell):
                ways[(candidate.name, cell.way)].append(cell)
                failures[candidate.name] = own.of(candidate).failures
    best: dict[tuple[Any, ...], Option] = {}
    for (name, _), cells in sorted(ways.items()):
        for batch in sorted({*batches, *(cell.batch for cell in cells)}):
            question = Question(asked.names[0], asked.family, batch, asked.mode)
            found = figure(question, cells, (), _NOTHING, failures[name])
            if found is not None:
                one = _option(asked, name, batch, found, prices)
                key = (name, one.device, one.runtime, one.precision, batch)
                # Versions and options of an engine have one name here: the best of them counts.
                if key not in best or _merit(one) < _merit(best[key]):
                    best[key] = one
    return list(best.values())


def _option(asked: Asked, name: str, batch: int, found: Figure, prices: Prices | None) -> Option:
    row = found.cell.row
    memory = row.get("memory_peak_mb") if found.measured else None
    basis = MEASURED if memory is not None else None
    if memory is None:
        memory = _estimated_memory(asked, batch, found.cell.precision)
        basis = _ESTIMATED if memory is not None else None
    cost = prices({**row, "throughput": found.throughput}) if prices else None
    return Option(
        hardware=name,
        device=row.get("device_name"),
        runtime=str(row.get("runtime") or ""),
        precision=found.cell.precision,
        batch_size=batch,
        basis=found.basis,
        latency_ms=found.latency,
        throughput=found.throughput,
        throughput_low=found.throughput * found.latency / found.high,
        memory_mb=memory,
        memory_basis=basis,
        error=row.get("verification_error"),
        power_watts=row.get("power_watts") if found.measured else None,
        cost_per_million=cost,
        measured_at=row.get("moment") if found.measured else None,
        command=_words(asked, name, found.cell.precision, batch, None)["command"],
    )


def _estimated_memory(asked: Asked, batch: int, precision: str) -> float | None:
    if asked.spec is None:
        return None
    try:
        found = memory_estimate_bytes(asked.spec, Shapes(batch), precision or "fp32", asked.mode)
    except AccelbenchError:
        return None
    return None if found is None else found / MIB


def _judged(one: Option, limits: Limits) -> Option:
    """The same with every limit that it does not keep, or of which that is not known."""
    most = (
        ("memory_mb", limits.memory_mb, "memory", "MB"),
        ("latency_ms", limits.max_latency_ms, "latency", "ms"),
        ("error", limits.max_error, "error", ""),
        ("cost_per_million", limits.max_cost, "cost", "per million"),
        ("power_watts", limits.max_power, "power", "W"),
    )
    why = []
    for name, limit, word, unit in most:
        value = getattr(one, name)
        if limit is not None and value is None:
            why.append(f"its {word} was not measured" if word != "cost" else "no price is known")
        elif limit is not None and value > limit:
            why.append(f"{word} {value:.4g} {unit}".rstrip() + f" is above {limit:g}")
    least = limits.min_throughput
    if least is not None and one.throughput < least:
        why.append(f"{one.throughput:.4g} items/s is below {least:g}")
    return replace(one, why=tuple(why))


def _merit(one: Option) -> tuple[Any, ...]:
    """The most items a second first, an estimate by its slow end; the same order every time."""
    rate = one.throughput if one.measured else one.throughput_low
    return (
        -rate, not one.measured, one.latency_ms, one.hardware, one.device or "", one.runtime,
        one.precision, one.batch_size,
    )  # fmt: skip


def _explained(asked: Asked, limits: Limits, best: Option | None, options: Sequence[Option]) -> str:
    said = ", ".join(
        f"{name} {value:g}" for name, value in asdict(limits).items() if value is not None
    )
    under_what = f" under {said}" if said else ""
    if not options:
        return f"Nothing is measured of {asked.model}, so nothing is known to fit{under_what}."
    if best is None:
        counts: dict[str, int] = defaultdict(int)
        for one in options:
            for why in one.why:
                counts[why] += 1
        first = max(sorted(counts), key=lambda why: counts[why])
        return f"Nothing fits{under_what}: of {len(options)} ways {counts[first]} do not: {first}."
    fitting = sum(not one.why for one in options)
    memory = f", {best.memory_mb:.4g} MB ({best.memory_basis})" if best.memory_mb else ""
    where = " · ".join(part for part in (best.device, best.runtime, best.precision) if part)
    return (
        f"{best.hardware} at batch {best.batch_size} in {best.precision}{under_what}: {best.basis},"
        f" {best.throughput:.4g} items/s, {best.latency_ms:.4g} ms a step{memory} ({where})."
        f" {fitting} of {len(options)} ways fit."
    )

"""Limits, and whether an option is known to keep them. Pure.

Measured results are judged by their intervals, estimates by their bounds: launches at 3 and 30 ms
are not known to keep 20 ms.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING

from accelbench.core.errors import UsageError
from accelbench.core.precision import MAX_ERROR, error_of, is_exact, why_inexact
from accelbench.core.result_statistics import statistic_name
from accelbench.core.safe_text import in_quotes
from accelbench.recommend import validation
from accelbench.recommend.evidence.cells import counted, rounded
from accelbench.recommend.figures import MEASURED, Bounds

if TYPE_CHECKING:
    from accelbench.recommend.constraints.options import Option

#: The end of a reason that a measurement may remove.
UNMEASURED = "was not measured"
_NO_PRICE = "no price is known"
#: The default limit of the error of quantised outputs.
PRECISION = "precision"
#: Limits that require a run with --energy.
METERED = ("max_power", "max_energy")
#: Limits that concern items.
OF_ITEMS = ("min_throughput", "max_cost", "max_energy")


@dataclass(frozen=True)
class Limits:
    """Limits of an answer; None is no limit."""

    memory_mb: float | None = None
    max_latency_ms: float | None = None
    min_throughput: float | None = None
    max_error: float | None = None
    max_cost: float | None = None
    max_power: float | None = None
    max_energy: float | None = None

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if value is not None:
                # Plain numbers, so that an answer can be written as JSON.
                number = validation.amount(field.name, value, "Leave out what has no limit.")
                object.__setattr__(self, field.name, value if type(value) is int else number)

    @property
    def given(self) -> dict[str, float]:
        return {name: value for name, value in asdict(self).items() if value is not None}

    def __str__(self) -> str:
        return ", ".join(f"{name} {spelled(value)}" for name, value in self.given.items())


@dataclass(frozen=True)
class LimitReason:
    """Why an option is not known to keep a limit."""

    limit: str
    text: str
    by: float = math.inf  # its middle relative to the limit
    open: bool = False  # it may keep the limit


def limits_named(given: Mapping[str, float | None]) -> Limits:
    """Return limits by their names; refuse unknown ones."""
    known = [field.name for field in fields(Limits)]
    if not isinstance(given, Mapping):
        raise UsageError(
            f"limits takes a mapping, not {in_quotes(given)}.", f"Limits: {', '.join(known)}."
        )
    for name in given:
        if name not in known:
            raise UsageError(
                f"There is no limit {in_quotes(name)}.", f"Limits: {', '.join(known)}."
            )
    return Limits(**given)


def spelled(value: float) -> str:
    """Format a limit."""
    return f"{value:.10g}"


def kept(
    option: Option, limits: Limits, counts: str, *, any_error: bool
) -> tuple[LimitReason, ...]:
    """Return every limit that an option is not known to keep."""
    reasons = tuple(_reasons(option, limits, counts))
    if any_error or limits.max_error is not None or is_exact(option.row):
        return reasons
    error = error_of(option.row)
    by = math.inf if error is None else error / MAX_ERROR
    return (*reasons, LimitReason(PRECISION, why_inexact(option.row), by, open=error is None))


def _reasons(option: Option, limits: Limits, counts: str) -> Iterator[LimitReason]:
    yield from _memory(option, limits.memory_mb)
    latency = f"{statistic_name(option.statistic)} latency"
    reasons = _most(
        "max_latency_ms", latency, "ms", limits.max_latency_ms, option.latency, option.measured
    )
    yield from reasons
    yield from _most("max_error", "error", "", limits.max_error, Bounds.exact(option.error))
    yield from _most("max_power", "power", "W", limits.max_power, Bounds.exact(option.power_watts))
    if counted(option.unit) == counts:
        energy, joules = Bounds.exact(option.energy_per_item), "J per item"
        yield from _most("max_energy", "energy", joules, limits.max_energy, energy)
        cost = limits.max_cost
        yield from _most("max_cost", "cost", "per million", cost, option.cost, option.measured)
        rate, unit = option.rate if option.has_rate else None, f"{option.unit}/s"
        least, is_measured = limits.min_throughput, option.measured
        yield from _most("min_throughput", "", unit, least, rate, is_measured, is_least=True)
        return
    for name in OF_ITEMS:
        if name in limits.given:
            yield LimitReason(
                name, f"it counts {option.unit}, and {name} is taken to be of {counts}"
            )


def _memory(option: Option, limit: float | None) -> Iterator[LimitReason]:
    """Yield why memory is not known to keep a limit; the launch that took most counts."""
    known = option.memory
    launches = option.measured and option.memory_basis == MEASURED and known is not None
    if launches and known and limit is not None and known.high > max(limit, known.middle):
        text = f"memory of a launch {rounded(known.high)} MB is above {spelled(limit)}"
        yield LimitReason("memory_mb", text, known.high / limit)
        return
    word = "memory" if option.memory_basis == MEASURED else "estimated memory"
    exact = Bounds.exact(known.middle) if launches and known else known
    yield from _most("memory_mb", word, "MB", limit, exact)


def _most(
    name: str,
    word: str,
    unit: str,
    limit: float | None,
    known: Bounds | None,
    is_measured: bool = False,
    *,
    is_least: bool = False,
) -> Iterator[LimitReason]:
    """Yield why a value is not known to be below a limit, or above one that it must reach."""
    if limit is None:
        return
    if known is None:
        what = (word or "throughput").split()[-1]
        yield LimitReason(
            name, _NO_PRICE if word == "cost" else f"its {what} {UNMEASURED}", open=True
        )
        return
    worst, best = (known.low, known.high) if is_least else (known.high, known.low)
    if worst >= limit if is_least else worst <= limit:
        return
    is_open = best >= limit if is_least else best <= limit
    verdict = f"{'below' if is_least else 'above'} {spelled(limit)}"
    if is_measured:
        text = _measured(word, unit, verdict, known, is_open=is_open)
    else:
        text = _missed(word, unit, f"is {verdict}", worst, best, is_open=is_open)
    by = limit / known.middle if is_least else known.middle / limit
    yield LimitReason(name, text, by, is_open)


def _measured(word: str, unit: str, limit: str, known: Bounds, *, is_open: bool) -> str:
    """Return how a measured value relates to a limit, with its interval if that is open."""
    figure = f"{word} {rounded(known.middle)} {unit}".strip()
    if not is_open:
        return f"{figure} is {limit}"
    ends = f"{rounded(known.low)} to {rounded(known.high)}"
    return f"{figure} may be {limit}: its interval is {ends}, which more launches narrow"


def _missed(word: str, unit: str, limit: str, worst: float, best: float, *, is_open: bool) -> str:
    """Return how the worse end of an estimate, or even the better one, misses a limit."""
    measured = worst == best
    end = "" if measured else "at worst" if is_open else "at best"
    amount = f"{rounded(worst if is_open else best)} {unit}".rstrip()
    text = " ".join(part for part in (word, end, amount, limit) if part)
    return f"{text}, and it {UNMEASURED}" if is_open else text

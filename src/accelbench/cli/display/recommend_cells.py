"""What stands in a cell of a table of recommendations, and its heading."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from typing import Any

from accelbench.analysis.cost_words import money
from accelbench.cli.display.words import figure
from accelbench.core.case import runtimes_own
from accelbench.core.devices import mark_of
from accelbench.core.figures import Statistic, name_of
from accelbench.core.worth import interval_text
from accelbench.select.evidence.ways import threads_said

Answer = Mapping[str, Any]

#: The heading of times that are of several figures.
MIXED = "ms"


def time_head(several: Iterable[Answer]) -> str:
    """The heading of times, with their figure; each time has its own where they differ."""
    known = {one for said in several if (one := statistic_said(said))}
    return f"{known.pop()} ms" if len(known) == 1 else MIXED


def statistic_said(one: Answer) -> str:
    """Which figure of its steps a time is; "" where there is none."""
    said = (one.get("predictions") or one).get("figure")
    return name_of(Statistic(said)) if said else ""


def a_million(sign: str) -> str:
    """The heading of costs, in two lines where a currency has letters for a sign."""
    return f"{sign}/million" if len(sign) == 1 else f"{sign.strip()}\n/million"


def where(name: str | None, one: Answer) -> str:
    """A platform, with the device that its figure is of."""
    device = one.get("device")
    if name is None or not device or device in name:
        return name or "none"
    return f"{name} ({device})"


def way(one: Answer, apart: Container[str] | None = None) -> str:
    """The engine and its precision; of PyTorch, which also runs as it is, whether it compiled.

    Beside them stand the options and threads by which other ways there were measured too.

    Args:
        one: an answer's candidate, or an option under limits.
        apart: the settings that tell ways apart; those of the answer's own without it.
    """
    known = one.get("told_apart_by") or () if apart is None else apart
    is_compiled = one.get("compiled") and (one.get("runtime") == "pytorch" or "compiled" in known)
    parts = (one.get("runtime"), "compiled" if is_compiled else None, one.get("precision"))
    options = one.get("options") or {}
    more = [f"{name}={value}" for name, value in sorted(runtimes_own(options).items())]
    said = [*parts, *(more if "options" in known else ())]
    said += [threads_said(one)] if "threads" in known else []
    if "device_fingerprint" in known and one.get("device_fingerprint"):
        said.append(f"({mark_of(one)})")
    if "machine" in known and one.get("machine"):
        said.append(f"on {str(one['machine']).partition(' (')[0]}")
    return " ".join(str(part) for part in said if part)


def figures(one: Answer, several: bool = False) -> tuple[str, str, str]:
    """Latency, where it lies, and throughput; an estimate is marked, and what is ruled has none."""
    known = one.get("predictions") or {}
    about = "" if _is_of_a_measurement(one) else "≈"
    time, rate = (
        f"{about}{figure(known[name])}" if known.get(name) is not None else ""
        for name in ("latency", "throughput")
    )
    return f"{time} {statistic_said(one)}" if several and time else time, within(one), rate


def within(one: Answer) -> str:
    """Where its time lies: the interval of what was measured, the bounds of an estimate.

    A figure alone has none: that it is judged as if it might be 3 % off was not measured.
    """
    known = one.get("predictions") or {}
    if known.get("latency") is None:
        return ""
    if _is_of_a_measurement(one):
        measured = known.get("latency_interval") or {}
        low, high = measured.get("low"), measured.get("high")
    else:
        low, high = known.get("latency_low"), known.get("latency_high")
    return interval_text(low, known["latency"], high, figure)


def units_of(several: Iterable[Answer]) -> set[str]:
    """What throughputs count."""
    known = (answer.get("predictions") or {} for answer in several)
    return {
        str(one.get("throughput_unit") or "items")
        for one in known
        if one.get("throughput") is not None
    }


def rate_head(units: set[str]) -> str:
    """The heading of throughputs: where they count different things, a column says which."""
    return f"{next(iter(units), 'items')}/s" if len(units) < 2 else "a second"


def counts(one: Answer, units: set[str]) -> str:
    """What a throughput counts, where others beside it count something else."""
    known = one.get("predictions") or {}
    several = len(units) > 1 and known.get("throughput") is not None
    return str(known.get("throughput_unit") or "items") if several else ""


def memory(one: Answer) -> str:
    """Megabytes at the peak, as measured."""
    known = (one.get("predictions") or {}).get("memory_peak_mb")
    return "" if known is None else figure(known)


def error(one: Answer) -> str:
    """How far its outputs are from fp32's, as verified; empty where nobody compared them."""
    known = (one.get("predictions") or {}).get("verification_error")
    return "" if known is None else f"{known:.2g}"


def cost(one: Answer) -> str:
    """Of a million items."""
    known = one.get("cost_per_million")
    return "" if known is None else money(known)


def basis(one: Answer) -> str:
    """The rung of a figure, or how a rule rates the platform; and whether that is not here."""
    known = str(one.get("basis") or "")
    rating = f": {one['performance_rating']}" if known == "rule" and "score" in one else ""
    return f"{known}{rating}{', not here' if one.get('present') is False else ''}"


def in_a_word(one: Answer) -> str:
    """Measured, estimated or ruled, where there is no room for more."""
    known = str(one.get("basis") or "")
    return known if known in ("measured", "rule", "") else "estimated"


def is_measured(one: Answer) -> bool:
    """Whether it is a figure of the very question."""
    return bool(one.get("basis") == "measured")


def _is_of_a_measurement(one: Answer) -> bool:
    """Of an answer's candidate, or of what a ranking says of a model."""
    return is_measured(one) or (one.get("predictions") or {}).get("basis") == "measured"

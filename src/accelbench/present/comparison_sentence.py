"""A comparison in a sentence: who is faster, by how much, at what memory; or that it is open. Pure.

The faster one comes first, so that a factor is above 1 wherever one is told. Its ends are rounded
outwards: what is said holds of the interval as well.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, floor

from accelbench.core.axes import AS_TOLD, axes_of
from accelbench.core.devices import title_of
from accelbench.core.figures import is_too_wide
from accelbench.core.nouns import NOT_KNOWN, counted, digits
from accelbench.core.rows import Row, text
from accelbench.judge.ratios import SAMPLES, Faster, Ratio
from accelbench.present.charts.words import short_device
from accelbench.present.texts import phrase

#: Rounding may make an interval so many times as wide, before more digits are written.
_WIDER = 1.5
_MOST_DIGITS = 3
#: Memory that differs by less is said to be alike.
_AS_MUCH = 0.02
_LISTED = 3
#: Words of ours that the name of a side may begin with; models, engines and precisions have names.
_OURS = frozenset(("batch", "compiled", "not", "training", "inference", "measured", "imported"))
_TEN = 9.95


@dataclass(frozen=True)
class SideOfRatio:
    """What is compared with the base."""

    name: str  # what it is called
    ratio: Ratio | None = None  # items in the same time
    memory: float | None = None  # how many times as much
    refused: str = ""  # why nothing is told of it
    doubts: Sequence[str] = ()  # what else is not alike


def sentence(base: str, others: Sequence[SideOfRatio]) -> str:
    """What a comparison comes to."""
    compared = [side for side in others if side.ratio is not None and not side.refused]
    if not others:
        return ""
    refused = [side for side in others if side not in compared]
    alone = len(refused) == 1
    if not compared:
        what = f"{refused[0].name} is not" if len(others) == 1 else "Nothing is"
        return _begun(
            phrase("compare.not-compared", what=what, base=base, reasons=_reasons(others))
        )
    if len(others) == 1:
        return _begun(_pair(base, compared[0]))
    which = f"{refused[0].name} is" if alone else f"{len(refused)} are"
    more = f" {_begun(f'{which} not compared: {_reasons(refused)}.')}" if refused else ""
    return _begun(_several(base, compared)) + more


def _begun(text: str) -> str:
    first = text.partition(" ")[0]
    return text[:1].upper() + text[1:] if first in _OURS else text


def times(low: float, high: float) -> str:
    """A factor and its interval: 1.1–1.3×."""
    narrow = high - low
    for many in range(1, _MOST_DIGITS + 1):
        down, up = _rounded(low, many, floor, 1e-9), _rounded(high, many, ceil, -1e-9)
        crosses = (low > 1.0 >= down) or (high < 1.0 <= up) or down <= 0.0
        if not crosses and up - down <= _WIDER * narrow:
            break
    first, last = (f"{end:,.{_places(end, many)}f}" for end in (down, up))
    return f"{first}×" if first == last else f"{first}–{last}×"


def _rounded(end: float, digits: int, way: Callable[[float], int], little: float) -> float:
    step = 10.0 ** -_places(end, digits)
    return way(end / step + little) * step


def _places(end: float, digits: int) -> int:
    return max(0, digits - (end >= _TEN))


def names_of(rows: Sequence[Row], machines: Mapping[str, str]) -> list[str]:
    """Name each of several configurations by what tells it from the others."""
    several = [_parts(row, machines) for row in rows]
    differ = [n for n in several[0] if len({parts[n] for parts in several}) > 1] if several else []
    usuals = [_name([parts[n] for n in differ if parts[n]]) for parts in several]
    names = list(usuals)
    for n, row in enumerate(rows):
        apart = text(row, "apart")
        if usuals.count(usuals[n]) > 1 or not usuals[n]:
            usual = usuals[n] or " ".join(part for part in several[n].values() if part)
            names[n] = f"{usual} ({apart})" if apart else usual
    counts: dict[str, int] = {}
    for n, name in enumerate(names):
        counts[name] = counts.get(name, 0) + 1
        if counts[name] > 1:
            names[n] = f"{name} ({counts[name]})"
    return names


def _name(parts: Sequence[str]) -> str:
    name = " ".join(parts)
    return name.removeprefix("on ").removeprefix("(").removesuffix(")") if len(parts) == 1 else name


def _parts(row: Row, machines: Mapping[str, str]) -> dict[str, str]:
    sizes = ((axis.column, axis.page_label) for axis in axes_of(*AS_TOLD))
    places = [short_device(str(row["device_name"]))] if row.get("device_name") else []
    machine = machines.get(text(row, "machine"), "")
    number = row.get("threads")
    return {
        "model": text(row, "model"),
        "runtime": title_of(text(row, "runtime")),
        "hardware": f"on {text(row, 'hardware')}",
        "device": f"({places[0]})" if places else "",
        "machine": f"on {machine}" if machine else "",
        "precision": text(row, "precision"),
        "batch": f"batch {row['batch_size']}" if row.get("batch_size") else "",
        "size": " ".join(label.format(row[name]) for name, label in sizes if row.get(name)),
        "mode": text(row, "mode"),
        "compiled": {True: "compiled", False: "not compiled"}.get(row.get("compiled"), ""),  # type: ignore[call-overload]
        "threads": counted(int(str(number)), "thread") if number else "",
        "processes": f"{row['world_size']} processes" if row.get("world_size") else "",
        "kind": text(row, "kind"),
    }


def _pair(base: str, side: SideOfRatio) -> str:
    ratio = side.ratio
    if ratio is None:
        return ""
    if covers_one(ratio):
        return phrase(
            "compare.pair-inconclusive",
            name=side.name,
            base=base,
            factor=_factor(ratio),
            single=_single(ratio),
            memory=_memory(side.memory),
            doubts=_doubts(side),
        )
    slower = ratio.value < 1.0
    first, second = (base, side.name) if slower else (side.name, base)
    factor, memory = _factor(_turned(ratio) if slower else ratio), side.memory
    if not ratio.told:
        told = phrase("compare.faster-without-factor", first=first, second=second, factor=factor)
        return f"{told}{_single(ratio)}{_doubts(side)}."
    if slower:
        memory = 1.0 / memory if memory else None
    told = phrase("compare.times-as-fast", first=first, factor=factor, second=second)
    return f"{told}{_single(ratio)}{_memory(memory)}{_doubts(side)}."


def _several(base: str, compared: Sequence[SideOfRatio]) -> str:
    itself = SideOfRatio(base)
    values = {id(side): side.ratio.value for side in compared if side.ratio}
    every = sorted([itself, *compared], key=lambda one: values.get(id(one), 1.0), reverse=True)
    best = every[0]
    rivals = [side for side in every if side is best or _ends(side)[1] >= _ends(best)[0]]
    unknown = [side for side in compared if side.ratio is not None and not side.ratio.told]
    alone = _resting_on(compared)
    if len(rivals) > 1:
        told = phrase("compare.fastest-inconclusive", named=_named(rivals))
        if best is not itself and best.ratio is not None and best.ratio.told:
            told += phrase(
                "compare.best-times-as-fast", name=best.name, factor=_factor(best.ratio), base=base
            )
    elif best is itself:
        next_one = every[1]
        turned = _factor(_turned(next_one.ratio)) if next_one.ratio else ""
        told = phrase(
            "compare.base-is-fastest",
            base=base,
            every=len(every),
            turned=turned,
            name=next_one.name,
        )
        told += _doubts(next_one)
    else:
        factor = _factor(best.ratio) if best.ratio else ""
        told = phrase(
            "compare.other-is-fastest", name=best.name, every=len(every), factor=factor, base=base
        )
        told += _memory(best.memory) + _doubts(best)
    last = every[-1]
    slowest = all(_ends(last)[1] < _ends(side)[0] for side in every[:-1])
    if slowest and last not in rivals and last not in unknown and last.ratio:
        told += phrase("compare.slowest", name=last.name, factor=_factor(last.ratio), base=base)
    return f"{told}{alone}."


def _resting_on(compared: Sequence[SideOfRatio]) -> str:
    single = sum(bool(side.ratio and side.ratio.no_interval) for side in compared)
    within = sum(bool(side.ratio and side.ratio.of == SAMPLES) for side in compared)
    many = len(compared)
    parts = [
        f"{'all' if count == many else f'{count} of {many} ratios'} {what}"
        for count, what in (
            (single, phrase("compare.ratios-of-single-figures")),
            (within, "within single launches"),
        )
        if count
    ]
    return f" ({'; '.join(parts)})" if parts else ""


def _reasons(sides: Sequence[SideOfRatio]) -> str:
    return "; ".join(dict.fromkeys(side.refused for side in sides))


def _named(sides: Sequence[SideOfRatio]) -> str:
    names = [side.name for side in sides]
    if len(names) > _LISTED + 1:
        return f"{', '.join(names[:_LISTED])} and {counted(len(names) - _LISTED, 'other')}"
    return f"{', '.join(names[:-1])} and {names[-1]}"


def _ends(side: SideOfRatio) -> tuple[float, float]:
    ratio = side.ratio
    if ratio is None:
        return 1.0, 1.0
    # By single figures something is the fastest all the same, and the sentence says what they are.
    return ratio.ends if ratio.low and ratio.high else (ratio.value, ratio.value)


def covers_one(ratio: Ratio) -> bool:
    """Whether the interval leaves open which is faster."""
    return ratio.low is not None and ratio.direction is Faster.UNSURE


def _turned(ratio: Ratio) -> Ratio:
    low, high = (None if end is None else 1.0 / end for end in (ratio.high, ratio.low))
    return Ratio(1.0 / ratio.value, ratio.statistic, ratio.launches[::-1], low, high, ratio.of)


def _factor(ratio: Ratio) -> str:
    if ratio.low is None or ratio.high is None:
        return f"{digits(ratio.value)}×"
    if is_too_wide(ratio.low, ratio.high):
        return f"{digits(ratio.value)}× (interval {NOT_KNOWN})"
    return times(ratio.low, ratio.high)


def _single(ratio: Ratio) -> str:
    what = "within single launches" if ratio.of == SAMPLES else ratio.no_interval
    return f" ({what})" if what else ""


def _memory(factor: float | None) -> str:
    if factor is None:
        return ""
    return "; memory alike" if abs(factor - 1.0) < _AS_MUCH else f"; memory {digits(factor)}×"


def _doubts(side: SideOfRatio) -> str:
    return f"; not alike: {', '.join(side.doubts[:_LISTED])}" if side.doubts else ""

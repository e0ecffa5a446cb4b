"""The devices of a result, and the cards of all registered engines. Pure.

Cards are found by entry point and import no engine.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache, lru_cache
from typing import TypeVar, cast

from accelbench.core.plugins import ENGINES, PluginError, load, registered, warn_once
from accelbench.core.protocols import RuntimeInfo
from accelbench.core.rows import Row, number, text

#: The precision of `run` if none is named.
FP32 = "fp32"


@cache
def cards() -> Mapping[str, RuntimeInfo]:
    """Every card by its runtime's name, in the order of lists; what cannot be loaded has none."""
    infos = {name: info for name in registered(ENGINES) if (info := card_of(name)) is not None}
    return dict(sorted(infos.items(), key=lambda pair: (pair[1].place, pair[0])))


@cache
def card_of(runtime: str) -> RuntimeInfo | None:
    """Return the card of one engine, whose module alone is imported; None if there is none."""
    point = registered(ENGINES).get(runtime)
    if point is None:
        return None
    try:
        info: RuntimeInfo = load(point).info
    except PluginError as error:
        warn_once(str(error), error)
        return None
    return info


def title_of(runtime: str) -> str:
    """A runtime's name as people write it; one that nobody registered is called as it is stored."""
    card = card_of(runtime)
    return card.title if card and card.title else runtime


def short_of(runtime: str) -> str:
    """A runtime's name where a table is narrow."""
    card = card_of(runtime)
    return card.short if card and card.short else runtime


def default_precision(hardware: str, runtime: str | None = None) -> str:
    """Return the precision to measure in if none is named.

    It is fp32, which `run` takes by default, or else the engine's first: the NPU of Qualcomm
    refuses fp32. Without an engine the platform's default engines decide.
    """
    known = cards().items()
    named = [card for name, card in known if name == runtime]
    engines = named or [card for _, card in known if hardware in card.default_for]
    if not engines or any(FP32 in card.precisions for card in engines):
        return FP32
    return next((card.precisions[0] for card in engines if card.precisions), FP32)


def engine_package(runtime: str) -> str:
    """The distribution whose version is the engine's; mostly called as the runtime is."""
    card = card_of(runtime)
    return card.engine_packages[0] if card and card.engine_packages else runtime


@cache
def engine_packages() -> tuple[str, ...]:
    """The distributions that are engines, in the order of lists."""
    return tuple(dict.fromkeys(name for card in cards().values() for name in card.engine_packages))


def recorded_packages() -> tuple[str, ...]:
    """The distributions whose versions belong to a result of any runtime.

    A card that names none stands for the package it is read by.
    """
    packages: dict[str, None] = {}
    for card in cards().values():
        named = (*card.engine_packages, *card.packages)
        packages |= dict.fromkeys(named or filter(None, (card.package.replace("_", "-"),)))
    return tuple(packages)


def aliases() -> Mapping[str, str]:
    """What people type instead of a runtime's name → that name."""
    return {word: name for name, card in cards().items() for word in card.aliases}


#: Several devices under one name, as MLPerf writes them: 8x NVIDIA H200.
_COUNTED = re.compile(r"(\d+)\s*x\s+(.+)", re.IGNORECASE)

#: A platform whose device several processes use at once.
_SHARED = "cpu"

#: What several share a step as, where that is not known.
EITHER = "devices or processes"

Named = TypeVar("Named", bound=Row)


@lru_cache(maxsize=1024)  # thousands of results are of a handful of devices
def devices_in(name: str) -> tuple[int, str]:
    """How many devices a name is of, and of which: eight of "8x NVIDIA H200"."""
    counted = _COUNTED.fullmatch(name)
    return (int(counted[1]), counted[2]) if counted else (1, name)


def devices_of(row: Row) -> int:
    """How many worked on a step; a name may say it where the column does not."""
    number_named, _ = devices_in(text(row, "device_name"))
    return max(number_named, int(number(row, "world_size") or 1))


def devices_beside(row: Row, name: str) -> str:
    """Return "4 devices", to stand beside a name; "" of one, or if the name has their number."""
    count = devices_of(row)
    if count == 1:
        return ""
    mention = re.search(rf"(?<!\w){count}\s*x\s", name, re.IGNORECASE)
    return "" if mention else f"{count} {sharing(row)}"


def sharing(row: Row) -> str:
    """What several share a step of a result as."""
    return sharing_on(text(row, "hardware"), text(row, "runtime"))


def sharing_of(rows: Iterable[Row]) -> str:
    """What several share the steps of results as: "processes"; both words of some or of none."""
    return " or ".join(sorted({sharing(row) for row in rows})) or EITHER


def sharing_on(hardware: str, runtime: str) -> str:
    """What several share a step as: devices, and on a CPU, which they share too, processes.

    Unless the runtime has one process see a processor as several devices.
    """
    if hardware != _SHARED:
        return "devices"
    card = card_of(runtime)
    return "processes" if card is None else card.ranks


def named_apart(rows: Iterable[Named], sides: Iterable[Row] = ()) -> list[Named]:
    """Return rows of one machine in which several devices of one name are told apart.

    Two cards of one kind, or one under two power limits, are two devices: their fingerprints
    differ, and a mean over both is the time of neither. Names are told apart over all `sides`.
    """
    every = list(rows)
    known: dict[tuple[object, object], set[str]] = {}
    both: list[Row] = [*every, *sides]
    for row in both:
        if row.get("device_fingerprint"):
            known.setdefault(_device(row), set()).add(str(row["device_fingerprint"]))
    several = {device for device, prints in known.items() if len(prints) > 1}
    if not several:
        return every
    return [
        # A row with another name of its device is of the same kind.
        cast("Named", {**row, "device_name": f"{row.get('device_name')} ({mark_of(row)})"})
        if row.get("device_fingerprint") and _device(row) in several
        else row
        for row in every
    ]


def mark_of(row: Row) -> str:
    """What tells a device from another of its name: the beginning of its fingerprint."""
    return f"device {str(row.get('device_fingerprint'))[:8]}"


def _device(row: Row) -> tuple[object, object]:
    return row.get("hardware"), row.get("device_name")


def engine_at(engine: str, place: str) -> str:
    """An engine and where it ran; once where it has its platform's name, as openvino has."""
    return engine if engine == place else f"{engine} on {place}"

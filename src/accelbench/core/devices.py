"""Devices of a result, and the cards of all registered engines.

Cards are found by entry point, which imports no engine.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache, lru_cache
from typing import TypeVar, cast

from accelbench.core.plugins import ENGINES, PluginError, find_entry_points, load, warn_once
from accelbench.core.protocols import RuntimeInfo
from accelbench.core.rows import Row, number, text

#: The precision of `run` if none is named.
FP32 = "fp32"


@cache
def cards() -> Mapping[str, RuntimeInfo]:
    """Return every card by its engine's name, in list order, without engines that fail to load."""
    infos = {
        name: info for name in find_entry_points(ENGINES) if (info := card_of(name)) is not None
    }
    return dict(sorted(infos.items(), key=lambda pair: (pair[1].place, pair[0])))


@cache
def card_of(runtime: str) -> RuntimeInfo | None:
    """Return the card of one engine, importing only its module; None if there is none."""
    point = find_entry_points(ENGINES).get(runtime)
    if point is None:
        return None
    try:
        info: RuntimeInfo = load(point).info
    except PluginError as error:
        warn_once(str(error), error)
        return None
    return info


def title_of(runtime: str) -> str:
    """Return an engine's display name, or its stored name if it is not registered."""
    card = card_of(runtime)
    return card.title if card and card.title else runtime


def short_of(runtime: str) -> str:
    """Return an engine's name for narrow tables."""
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
    """Return the distribution whose version is the engine's; usually the engine's own name."""
    card = card_of(runtime)
    return card.engine_packages[0] if card and card.engine_packages else runtime


@cache
def engine_packages() -> tuple[str, ...]:
    """Return the distributions that are engines, in list order."""
    return tuple(dict.fromkeys(name for card in cards().values() for name in card.engine_packages))


def recorded_packages() -> tuple[str, ...]:
    """Return the distributions whose versions belong to a result of any engine.

    A card that names no distribution contributes its package.
    """
    packages: dict[str, None] = {}
    for card in cards().values():
        named = (*card.engine_packages, *card.packages)
        packages |= dict.fromkeys(named or filter(None, (card.package.replace("_", "-"),)))
    return tuple(packages)


def aliases() -> Mapping[str, str]:
    """Return the engine's name for each alias that people type."""
    return {word: name for name, card in cards().items() for word in card.aliases}


#: Several devices under one name, as MLPerf writes them: 8x NVIDIA H200.
_COUNTED = re.compile(r"(\d+)\s*x\s+(.+)", re.IGNORECASE)

#: A platform whose device several processes use at once.
_SHARED = "cpu"

#: Used if it is not known whether devices or processes share a step.
EITHER = "devices or processes"

Named = TypeVar("Named", bound=Row)


@lru_cache(maxsize=1024)  # thousands of results are of a handful of devices
def parse_device_count(name: str) -> tuple[int, str]:
    """Return the number and the name of devices: 8 and "NVIDIA H200" for "8x NVIDIA H200"."""
    counted = _COUNTED.fullmatch(name)
    return (int(counted[1]), counted[2]) if counted else (1, name)


def device_count(row: Row) -> int:
    """Return the number of devices of a result, from its name or its column."""
    number_named, _ = parse_device_count(text(row, "device_name"))
    return max(number_named, int(number(row, "world_size") or 1))


def device_count_text(row: Row, name: str) -> str:
    """Return "4 devices" to show next to a name; "" for one, or if the name has the number."""
    count = device_count(row)
    if count == 1:
        return ""
    mention = re.search(rf"(?<!\w){count}\s*x\s", name, re.IGNORECASE)
    return "" if mention else f"{count} {sharing_unit(row)}"


def sharing_unit(row: Row) -> str:
    """Return what shares the step of a result: "devices" or "processes"."""
    return sharing_unit_on(text(row, "hardware"), text(row, "runtime"))


def sharing_units(rows: Iterable[Row]) -> str:
    """Return what shares the steps of results: "processes", or both words for a mixture."""
    return " or ".join(sorted({sharing_unit(row) for row in rows})) or EITHER


def sharing_unit_on(hardware: str, runtime: str) -> str:
    """Return what shares a step: devices, or on a CPU processes.

    Some engines present one processor as several devices to one process.
    """
    if hardware != _SHARED:
        return "devices"
    card = card_of(runtime)
    return "processes" if card is None else card.ranks


def disambiguate_devices(rows: Iterable[Named], others: Iterable[Row] = ()) -> list[Named]:
    """Return rows of one machine with distinct names for different devices of one name.

    Two cards of one kind, or one under two power limits, are two devices: their fingerprints
    differ, and a mean over both is the time of neither. Names are distinct over all `sides`.
    """
    every = list(rows)
    known: dict[tuple[object, object], set[str]] = {}
    both: list[Row] = [*every, *others]
    for row in both:
        if row.get("device_fingerprint"):
            known.setdefault(_device(row), set()).add(str(row["device_fingerprint"]))
    several = {device for device, prints in known.items() if len(prints) > 1}
    if not several:
        return every
    return [
        # A row with another name of its device is of the same kind.
        cast(
            "Named", {**row, "device_name": f"{row.get('device_name')} ({fingerprint_label(row)})"}
        )
        if row.get("device_fingerprint") and _device(row) in several
        else row
        for row in every
    ]


def fingerprint_label(row: Row) -> str:
    """Return a label that distinguishes devices of one name: the start of the fingerprint."""
    return f"device {str(row.get('device_fingerprint'))[:8]}"


def _device(row: Row) -> tuple[object, object]:
    return row.get("hardware"), row.get("device_name")


def engine_at(engine: str, hardware: str) -> str:
    """Return an engine and its hardware; once if both have one name, as openvino has."""
    return engine if engine == hardware else f"{engine} on {hardware}"

"""The cards of all registered runtimes: what any room may ask about an engine.

They are found by entry point, so that a runtime of another package is known wherever one of our
own is, and nothing but its own module names it. Cards import no engine.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import cache

from accelbench.core.plugins import RUNTIMES, PluginError, load_all, warn_once
from accelbench.core.protocols import RuntimeInfo

#: The precision of `run` if none is named.
FP32 = "fp32"
_log = logging.getLogger(__name__)


@cache
def cards() -> Mapping[str, RuntimeInfo]:
    """Every card by its runtime's name, in the order of lists; what cannot be loaded has none."""
    infos: dict[str, RuntimeInfo] = {}
    for name, made in load_all(RUNTIMES):
        info = getattr(made, "info", None)
        if isinstance(info, RuntimeInfo):
            infos[name] = info
        elif isinstance(made, PluginError):
            warn_once(str(made), made)
        else:
            _log.debug("runtime %s has no card: %r", name, made)
    return dict(sorted(infos.items(), key=lambda pair: (pair[1].place, pair[0])))


def title_of(runtime: str) -> str:
    """A runtime's name as people write it; one that nobody registered is called as it is stored."""
    card = cards().get(runtime)
    return card.title if card and card.title else runtime


def short_of(runtime: str) -> str:
    """A runtime's name where a table is narrow."""
    card = cards().get(runtime)
    return card.short if card and card.short else runtime


def default_precision(hardware: str, runtime: str | None = None) -> str:
    """Return the precision to measure in if none is named.

    It is fp32, which `run` takes by default, or else the engine's first: the NPU of Qualcomm
    refuses fp32.

    Args:
        hardware: the platform.
        runtime: the engine; None stands for the platform's default engines.
    """
    known = cards().items()
    named = [card for name, card in known if name == runtime]
    engines = named or [card for _, card in known if hardware in card.default_for]
    if not engines or any(FP32 in card.precisions for card in engines):
        return FP32
    return next((card.precisions[0] for card in engines if card.precisions), FP32)


def engine_package(runtime: str) -> str:
    """The distribution whose version is the engine's; mostly called as the runtime is."""
    card = cards().get(runtime)
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

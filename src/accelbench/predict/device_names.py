"""Names of documented devices, as people type them where a platform is asked for. Pure."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

from accelbench.core.device_facts import known_devices
from accelbench.core.devices import cards
from accelbench.core.errors import UsageError
from accelbench.core.visible import in_quotes
from accelbench.hardware.detect import known
from accelbench.hardware.rooflines import documented_devices

_MAKERS = re.compile(
    r"\b(nvidia|geforce|tesla|amd|radeon|instinct|intel|apple|hexagon|npu|gpu|cpu)\b"
)

#: A word without its number has at least so many letters: S is not S24, nor RTX a card.
_SHORTEST = 3


def hardware_of(word: str) -> str:
    """A word of `--hardware` as PLATFORM or PLATFORM:NAME; a bare name becomes one of the latter.

    Args:
        word: as typed.

    Raises:
        UsageError: several documented devices are called so; they are named.
    """
    if ":" in word or word.lower() in platforms():
        return word
    devices = devices_called(word)
    if len(devices) == 1:
        platform, name = devices[0]
        return f"{platform}:{name}"
    if not devices:
        raise UsageError(
            f"There is no platform and no documented device called {in_quotes(word)}.",
            _meant(word),
        )
    raise several_called(word, devices)


def several_called(word: str, devices: Iterable[tuple[str, str]]) -> UsageError:
    """That a word may be any of several devices, which are named."""
    names = ", ".join(f"{platform}:{name}" for platform, name in devices)
    return UsageError(
        f"Several documented devices are called {in_quotes(word)}.", f"Name one: {names}."
    )


def platforms() -> frozenset[str]:
    """Every platform that a runtime runs on, or that is looked for here."""
    of_runtimes = (platform for card in cards().values() for platform in card.hardware)
    return frozenset({*of_runtimes, *known()})


def devices_called(word: str) -> list[tuple[str, str]]:
    """Documented devices of that name, or else those whose names have all of its words.

    Returns:
        Platform and name of each.
    """
    wanted, devices = _bare(word), _devices()
    joined = wanted.replace(" ", "")
    exact = [d for d, names in devices if any(n.replace(" ", "") == joined for n in names)]
    parts = set(wanted.split())
    return exact or [
        device for device, names in devices
        if parts and any(_has_words(name, parts) for name in names)
    ]  # fmt: skip


def _has_words(name: str, parts: set[str]) -> bool:
    """Whether a name has all of some words; SXM is also SXM4 and SXM5."""
    words = set(name.split())
    words |= {short for word in words if len(short := word.rstrip("0123456789")) >= _SHORTEST}
    return parts <= words


def _devices() -> list[tuple[tuple[str, str], frozenset[str]]]:
    """Each documented device as its platform and name, with what it is called."""
    listed = [
        ((facts.kind, facts.name), frozenset({_bare(facts.name)})) for facts in known_devices()
    ]
    called = {bare for _, names in listed for bare in names}
    for entry in documented_devices():
        names = frozenset({_bare(entry.name), _bare(entry.device)})
        if not names & called:
            listed.append(((entry.platforms[0], entry.name), names))
    return listed


def _bare(name: str) -> str:
    text = re.sub(r"\((r|tm|c)\)", " ", name.lower())
    return " ".join(re.sub(r"[^a-z0-9]+", " ", _MAKERS.sub(" ", text)).split())


def _meant(word: str) -> str:
    names = {bare: device for device, several in _devices() for bare in several}
    near = difflib.get_close_matches(_bare(word), list(names), n=3, cutoff=0.6)
    meant = ", ".join(dict.fromkeys(names[bare][1] for bare in near))
    every = f"Platforms: {', '.join(sorted(platforms()))}."
    return f"Did you mean {meant}? {every}" if meant else every

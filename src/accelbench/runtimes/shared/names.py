"""Runtimes by the names that people type, on the command line and in the API. Imports no engine.

Environment variables that several engines are started with.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable

from accelbench.core.devices import aliases
from accelbench.core.errors import EXIT_ENVIRONMENT, SurroundingsError, UsageError, setting_up
from accelbench.core.nouns import meant
from accelbench.core.plugins import ENGINES, registered
from accelbench.core.visible import in_quotes

#: What the guide means by both.
BOTH = ("pytorch", "jax")
#: The runtime that tests script; its script is named in this variable.
_SCRIPTED, _SCRIPT = "scripted", "ACCELBENCH_SCRIPT"


class EngineNotInstalledError(UsageError):
    """An engine is named whose own package is not here."""

    exit_code = EXIT_ENVIRONMENT


def known_runtimes() -> tuple[str, ...]:
    """Registered runtimes; the one that tests script only where a script is named."""
    script = bool(os.environ.get(_SCRIPT))
    return tuple(sorted(n for n in registered(ENGINES) if n != _SCRIPTED or script))


def runtime_named(word: str, what: str = "runtime") -> str:
    """The runtime that a word stands for.

    Args:
        word: what was typed.
        what: what the caller calls such a thing.

    Raises:
        UsageError: there is none.
    """
    low, names = word.lower(), known_runtimes()
    for name in (low, word):  # somebody's own may be in capitals
        if name in names:
            return name
    if (name := aliases().get(low, low)) in names:
        return name
    raise no_such_runtime(word, names, what)


def no_such_runtime(word: str, names: Iterable[str], what: str = "runtime") -> UsageError:
    """The error where a word stands for none of these."""
    if (low := word.lower()) in _offered():
        return EngineNotInstalledError(
            f"The engine {low} is not installed.", f"Install it with: {setting_up(low)}"
        )
    advice = meant(word, names, "Installed here")
    return UsageError(f"There is no {what} named {in_quotes(word)}.", advice)


def _offered() -> Collection[str]:
    """Return the engines that packages of their own bring."""
    from accelbench.hardware.installing import installed

    try:
        return installed().engine_packages
    except SurroundingsError:
        return ()


def runtimes_named(words: Iterable[str]) -> tuple[str, ...]:
    """Those that several words stand for, each once; `both` is the guide's two.

    Raises:
        UsageError: a word stands for none.
    """
    names = (
        name
        for word in words
        for name in (BOTH if word.lower() == "both" else (runtime_named(word),))
    )
    return tuple(dict.fromkeys(names))


#: NVML counts devices in this order; CUDA's own default puts the fastest first, and cuda:1
#: would then be another card than the one that was named.
CARDS_IN_ORDER = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}

#: The libraries that torch's modules come from say nothing and report nothing home.
MODULES_QUIET = {
    "TRANSFORMERS_VERBOSITY": "error",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "TOKENIZERS_PARALLELISM": "false",
}

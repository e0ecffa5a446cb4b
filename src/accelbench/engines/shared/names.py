"""Engines by the names that people type, and variables that several are started with."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable

from accelbench.core.devices import aliases
from accelbench.core.errors import EXIT_ENVIRONMENT, SurroundingsError, UsageError, setup_command
from accelbench.core.formatting import suggest
from accelbench.core.plugins import ENGINES, find_entry_points
from accelbench.core.safe_text import in_quotes

#: What the guide means by both.
BOTH = ("pytorch", "jax")
#: The runtime that tests script; its script is named in this variable.
_SCRIPTED, _SCRIPT = "scripted", "ACCELBENCH_SCRIPT"


class EngineNotInstalledError(UsageError):
    """The error of an engine that is named and whose own package is not here."""

    exit_code = EXIT_ENVIRONMENT


def known_runtimes() -> tuple[str, ...]:
    """Return registered engines; the one that tests script only if a script is named."""
    script = bool(os.environ.get(_SCRIPT))
    return tuple(sorted(n for n in find_entry_points(ENGINES) if n != _SCRIPTED or script))


def runtime_named(word: str, what: str = "runtime") -> str:
    """Return the engine that a word stands for; raise UsageError if there is none.

    `what` is how the caller calls such a thing.
    """
    low, names = word.lower(), known_runtimes()
    for name in (low, word):  # somebody's own may be in capitals
        if name in names:
            return name
    if (name := aliases().get(low, low)) in names:
        return name
    raise no_such_runtime(word, names, what)


def no_such_runtime(word: str, names: Iterable[str], what: str = "runtime") -> UsageError:
    """Return the error for a word that stands for none of these."""
    if (low := word.lower()) in _offered():
        return EngineNotInstalledError(
            f"The engine {low} is not installed.", f"Install it with: {setup_command(low)}"
        )
    advice = suggest(word, names, "Installed here")
    return UsageError(f"There is no {what} named {in_quotes(word)}.", advice)


def _offered() -> Collection[str]:
    from accelbench.hardware.installing import installed_extras

    try:
        return installed_extras().engine_packages
    except SurroundingsError:
        return ()


def runtimes_named(words: Iterable[str]) -> tuple[str, ...]:
    """Return the engines that several words stand for, each once; `both` is the guide's two."""
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

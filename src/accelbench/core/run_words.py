"""The words of an `accelbench run` command that measures a case. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping

from accelbench.core.axes import AXES
from accelbench.core.devices import FP32, default_precision
from accelbench.core.vocabulary import Mode

#: How `run` is told each size, by the store's columns.
OPTIONS = {axis.column: axis.option for axis in AXES}


def run_command(model: str, hardware: str, *options: Iterable[str]) -> str:
    """The command of a model on hardware, with further words, as a shell takes it."""
    words = [word for several in options for word in several]
    return shlex.join(["accelbench", "run", model, "--hardware", hardware, *words])


def batch_words(batch: int) -> tuple[str, ...]:
    """The words of a batch."""
    return ("--batch-sizes", str(batch))


def precision_words(precision: str) -> tuple[str, ...]:
    """The words of a precision."""
    return ("--precision", precision)


def default_precision_words(hardware: str, runtime: str | None = None) -> tuple[str, ...]:
    """Return the words of the precision that a platform needs; none if it takes fp32."""
    precision = default_precision(hardware, runtime)
    return () if precision == FP32 else precision_words(precision)


def framework_words(runtime: str | None) -> tuple[str, ...]:
    """Return the words of an engine; none if the platform's default engine is meant."""
    return ("--framework", runtime) if runtime else ()


def mode_words(mode: str) -> tuple[str, ...]:
    """The words of a mode; none of inference, which `run` measures anyway."""
    return () if mode == Mode.INFERENCE else ("--mode", mode)


def size_words(sizes: Mapping[str, int]) -> tuple[str, ...]:
    """The words of sizes by the store's columns, in their order."""
    return tuple(word for name, size in sizes.items() for word in (OPTIONS[name], str(size)))

"""Arguments of an `accelbench run` command that measures a case."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping

from accelbench.core.axes import AXES
from accelbench.core.devices import FP32, default_precision
from accelbench.core.vocabulary import Mode

#: The option of `run` for each column of sizes.
OPTIONS = {axis.column: axis.option for axis in AXES}


def run_command(model: str, hardware: str, *options: Iterable[str]) -> str:
    """Return the command that runs a model on hardware, quoted for a shell."""
    words = [word for several in options for word in several]
    return shlex.join(["accelbench", "run", model, "--hardware", hardware, *words])


def batch_arguments(batch: int) -> tuple[str, ...]:
    return ("--batch-sizes", str(batch))


def precision_arguments(precision: str) -> tuple[str, ...]:
    return ("--precision", precision)


def default_precision_arguments(hardware: str, runtime: str | None = None) -> tuple[str, ...]:
    """Return the precision that a platform needs; empty if it accepts fp32."""
    precision = default_precision(hardware, runtime)
    return () if precision == FP32 else precision_arguments(precision)


def framework_arguments(runtime: str | None) -> tuple[str, ...]:
    """Return the engine; empty for the platform's default engine."""
    return ("--framework", runtime) if runtime else ()


def mode_arguments(mode: str) -> tuple[str, ...]:
    """Return the mode; empty for inference, the default."""
    return () if mode == Mode.INFERENCE else ("--mode", mode)


def size_arguments(sizes: Mapping[str, int]) -> tuple[str, ...]:
    """Return the sizes by the store's columns, in their order."""
    return tuple(word for name, size in sizes.items() for word in (OPTIONS[name], str(size)))

"""The Python that the workers of an arm run in: another environment's, or ours with other paths.

It is asked to introduce itself before anything is measured (`run/process/introduction.py`):
conductor and workers have to speak the same protocol, and to measure by the same rules.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from accelbench import __version__
from accelbench.core import processes
from accelbench.core.case import PROTOCOL_VERSION
from accelbench.core.errors import SurroundingsError
from accelbench.run.process.wire import WIRE_VERSION

#: An environment on a cold disk imports for a while before it can answer.
INTRODUCTION_SECONDS = 120.0


@dataclass(frozen=True)
class Interpreter:
    """How it is started.

    Attributes:
        program: what starts it, to which a module's name is added.
        alone: it is started by a command of its own, such as a container's: its processes have
            numbers that mean nothing here, and each worker is started afresh.
        variables: what its environment has beside ours.
        folder: where it runs; here where not given.
    """

    program: Sequence[str]
    alone: bool = False
    variables: Mapping[str, str] = field(default_factory=dict)
    folder: Path | None = None

    def environment(self, ours: Mapping[str, str]) -> dict[str, str]:
        """The variables that its processes see."""
        return {**ours, **self.variables}


def introduced(
    interpreter: Interpreter,
    called: str,
    note: Callable[[str], None] = lambda _: None,
    limit: float = INTRODUCTION_SECONDS,
) -> dict[str, Any]:
    """Return what an interpreter reports of itself: versions and surroundings.

    Args:
        interpreter: which one.
        called: what the user named it.
        note: hears what is waited for, if the answer takes seconds.
        limit: seconds until it is killed.

    Raises:
        SurroundingsError: it cannot be started, does not answer in time, or does not fit.
    """
    program = [*interpreter.program, "-P", "-m", "accelbench.run.process.introduction"]
    install = f"Install accelbench {__version__} there."
    try:
        ended = processes.run(
            program,
            limit,
            environment=interpreter.environment(os.environ),
            folder=interpreter.folder,
            on_wait=lambda: note(
                f"Waiting for {called} to report its versions, as a Python with accelbench does;"
                f" for {limit:g} s at most (--timeout)."
            ),
        )
    except OSError as error:
        raise SurroundingsError(f"{called} starts no Python: {error}.", install) from error
    except processes.TimeoutExpired as error:
        raise SurroundingsError(
            f"{called} did not report its versions within {limit:g} s, as a Python with accelbench"
            " does.",
            "Name a Python, an environment or a command that starts one, or raise --timeout.",
        ) from error
    try:
        introduction: dict[str, Any] = json.loads(ended.stdout.strip().splitlines()[-1])
        theirs = introduction["wire"], introduction["rules"]
    except (ValueError, KeyError, IndexError, TypeError) as error:
        last = ended.last_line or "it said nothing"
        raise SurroundingsError(
            f"{called} has no accelbench that goes with this one: {last}.", install
        ) from error
    if theirs != (WIRE_VERSION, PROTOCOL_VERSION):
        raise SurroundingsError(
            f"{called} has accelbench {introduction.get('accelbench')}, whose workers speak"
            f" protocol {theirs[0]} and measure by rules {theirs[1]}; this one has"
            f" {WIRE_VERSION} and {PROTOCOL_VERSION}.",
            install,
        )
    return introduction

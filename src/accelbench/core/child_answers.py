"""Asking a module of ours in a process of its own: what it looks at may end it, not the command.

The module tells each answer as soon as it has it. What came before it ended stands.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from accelbench.core import processes
from accelbench.core.jsonc import JsonError, loads

#: Before each answer: whatever else is printed there is not mistaken for one.
_MARK = "accelbench-answer: "


#: Seconds that a process may take, if the user set a limit.
_limit: ContextVar[float | None] = ContextVar("limit", default=None)


class NoAnswerError(Exception):
    """A process that ended without an answer; its text is a sentence.

    Attributes:
        advice: what to do if it took too long; else empty.
    """

    def __init__(self, sentence: str, advice: str = "") -> None:
        super().__init__(sentence)
        self.advice = advice


@contextmanager
def limited_to(seconds: float | None) -> Iterator[None]:
    """Give every process that is asked so many seconds; None leaves it to whoever asks."""
    token = _limit.set(seconds)
    try:
        yield
    finally:
        _limit.reset(token)


def tell(answer: Any) -> None:
    """Say something to whoever asked, in the process that was asked."""
    sys.stdout.write(f"\n{_MARK}{json.dumps(answer)}\n")
    sys.stdout.flush()


def answers_of(
    module: str,
    arguments: Sequence[str],
    patience: float,
    doing: str,
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> list[Any]:
    """What a module tells, in its order: one answer or more.

    Args:
        module: is run to its end.
        arguments: of its command line.
        patience: seconds that it may take, if `limited_to` gives it no others.
        doing: what it does, as a sentence about it begins: "Looking at it".
        environment: this process's own where not given.
        folder: where it runs; here where not given.

    Raises:
        NoAnswerError: there is none.
    """
    limit = _limit.get()
    patience = patience if limit is None else limit
    try:
        done = processes.run_python(
            module, arguments, timeout=patience, environment=environment, folder=folder
        )
    except processes.TimeoutExpired as error:
        raise NoAnswerError(
            f"{doing} took more than {patience:g} s, and was given up.",
            "--timeout gives it longer."
            if limit is not None
            else f"It has to be done within {patience:g} s; accelbench run --timeout gives it"
            " longer.",
        ) from error
    lines = [line for line in done.stdout.splitlines() if line.startswith(_MARK)]
    if not lines:
        words = f"; it said: {done.last_line.rstrip('.')}" if done.last_line else ""
        end = processes.describe_end(done.returncode)
        raise NoAnswerError(f"{doing} failed: its process ended ({end}){words}.")
    try:
        answers = [loads(line.removeprefix(_MARK)) for line in lines]
    except JsonError as error:  # of what it looked at, which can print anything
        raise NoAnswerError(f"{doing} gave an answer that is none.") from error
    if not all(isinstance(answer, (dict, list)) for answer in answers):
        raise NoAnswerError(f"{doing} gave an answer that is none.")
    return answers

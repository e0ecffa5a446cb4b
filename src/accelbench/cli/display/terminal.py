"""The way to a terminal: every line for people goes through here, and none of it is obeyed.

`print_line` is for a line whose words others may have chosen. What the program itself draws with
escape sequences (rich's tables, the live bar) is written past the guard, by `unguarded`; a test of
the house names who may.
"""

from __future__ import annotations

import logging
import sys
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import IO, Any

from accelbench.core.visible import visible, visible_lines


def print_line(text: str = "", stream: IO[str] | None = None) -> None:
    """A line for people: what a terminal would obey is shown as its code point."""
    (stream or sys.stdout).write(f"{visible(text)}\n")


def asked_line(prompt: str) -> str:
    """What a person types after a prompt of ours; empty at the end of the input."""
    sys.stdout.write(prompt)
    sys.stdout.flush()
    line = sys.stdin.readline()
    if not line.endswith("\n"):
        print_line()  # the end of the input leaves the prompt standing
    return line.strip()


def print_lines(lines: Iterable[str], stream: IO[str] | None = None) -> None:
    """Several of them at once."""
    (stream or sys.stdout).write("".join(f"{visible(line)}\n" for line in lines))


def complain(text: str) -> None:
    """What is wrong or worth knowing, on standard error."""
    print_line(f"accelbench: {text}", sys.stderr)


class Guarded:
    """A standard stream in which text of whatever origin stays text: libraries write to it too.

    Lines are kept apart, since most of them are ours; what stands in one is shown.
    """

    def __init__(self, stream: IO[str]) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        self.stream.write(visible_lines(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


@contextmanager
def guarded() -> Iterator[None]:
    """While it lasts, nothing that is printed acts on a terminal."""
    streams = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = map(Guarded, streams)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = streams


def unguarded(stream: IO[str]) -> IO[str]:
    """The stream itself, for who draws and has made every name in it visible."""
    return stream.stream if isinstance(stream, Guarded) else stream


class VisibleFormatter(logging.Formatter):
    """A record in a line of its own, and below it where it came from."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 — logging's name
        return visible(super().formatMessage(record))

    def formatException(self, ei: Any) -> str:  # noqa: N802 — logging's name
        return visible_lines(super().formatException(ei))


def log_everything() -> None:
    """Each detection and fallback as a line on standard error."""
    handler = logging.StreamHandler()
    handler.setFormatter(VisibleFormatter("%(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=logging.DEBUG, handlers=[handler])


def print_traceback() -> None:
    """Where the error that is being handled came from; its own words in lines of the traceback."""
    sys.stderr.write(visible_lines(traceback.format_exc()))

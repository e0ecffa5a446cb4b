"""Output of lines, files and JSON documents; control characters are shown, not executed.

rich's tables and the live bar write past this guard, through `unguarded`.
"""

from __future__ import annotations

import json
import logging
import sys
import traceback
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from accelbench.core.safe_text import visible, visible_lines


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


#: Of `recommend` and `predict`, hidden: where the JSON document goes beside what people read. The
#: dashboard shows both, and asked twice for them.
BESIDE = "--document"


def deliver(text: str, output: Path | None) -> None:
    """Print it, or write it and say where it is."""
    if output is None:
        sys.stdout.write(text)
        return
    from accelbench.exchange.writing import write_exactly

    path = output.expanduser()
    write_exactly(path, lambda place: place.write_text(text, encoding="utf-8"))
    print_line(f"Wrote {path}", sys.stderr)


#: More records than people read: each is written in a line, in an eighth of the time.
_MANY = 1000


def print_document(whole: Mapping[str, Any]) -> None:
    """Print it; lists of objects a line each. Indented throughout, it takes ten times as long."""
    parts = ",\n".join(f" {json.dumps(name)}: {_lines(value)}" for name, value in whole.items())
    sys.stdout.write(f"{{\n{parts}\n}}\n")


def print_json(content: Any) -> None:
    """One document on standard output, as `json_text` has it."""
    sys.stdout.write(json_text(content))


def json_text(content: Any) -> str:
    """A document as JSON, indented; of a list of more than a thousand each record is a line."""
    if not isinstance(content, dict) or not any(map(_is_long, content.values())):
        return json.dumps(content, indent=2, allow_nan=False) + "\n"
    entries = (f"  {json.dumps(key)}: {_indented(value)}" for key, value in content.items())
    return "{\n" + ",\n".join(entries) + "\n}\n"


def _is_long(value: object) -> bool:
    return isinstance(value, list) and len(value) > _MANY


def _indented(value: Any) -> str:
    if _is_long(value):
        return _a_line_each(value, "  ", "  ")
    # No text of JSON has a line break within it.
    return json.dumps(value, indent=2, allow_nan=False).replace("\n", "\n  ")


def _lines(value: Any) -> str:
    if not (isinstance(value, list) and value and isinstance(value[0], dict)):
        return json.dumps(value, allow_nan=False)
    return _a_line_each(value, " ", " ")


def _a_line_each(records: Iterable[Any], margin: str, step: str) -> str:
    encode = json.JSONEncoder(allow_nan=False).encode
    inner = ",\n".join(f"{margin}{step}{encode(record)}" for record in records)
    return f"[\n{inner}\n{margin}]"

"""A text that somebody asked for: on standard output, or in a file that is new."""

from __future__ import annotations

import sys
from pathlib import Path

from accelbench.cli.display.terminal import print_line

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
    write_exactly(path, lambda place: _write(place, text))
    print_line(f"Wrote {path}", sys.stderr)


def _write(place: Path, text: str) -> None:
    place.write_text(text, encoding="utf-8")

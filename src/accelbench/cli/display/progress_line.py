"""What a terminal says while something goes on: one line, drawn anew, that goes when it is done."""

from __future__ import annotations

import os
from types import TracebackType
from typing import IO

from accelbench.cli.display.terminal import print_line, unguarded
from accelbench.core.visible import visible

_WIPE = "\r\x1b[2K"


class StatusLine:
    """The line below all others, drawn anew as things move on, no wider than the terminal.

    Args:
        stream: of a terminal, unguarded; what is drawn is made visible before.
    """

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream
        self._drawn = False

    @property
    def width(self) -> int:
        """Columns of the terminal."""
        try:
            # A terminal that nobody gave a size says 0.
            return os.get_terminal_size(self._stream.fileno()).columns or 80
        except OSError:
            return 80

    def draw(self, text: str) -> None:
        """Put a text in the place of the one before."""
        self._stream.write(_WIPE + text[: self.width - 1])
        self._stream.flush()
        self._drawn = True

    def wipe(self) -> None:
        """Leave the place to others."""
        if self._drawn:
            self._stream.write(_WIPE)
            self._stream.flush()
            self._drawn = False


class ProgressLine:
    """Line that says what is being done.

    Args:
        stream: where to; what is no terminal gets a line for each thing.
    """

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream
        self._line = StatusLine(unguarded(stream))

    def __enter__(self) -> ProgressLine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        self._line.wipe()

    def say(self, text: str) -> None:
        """What is begun now."""
        if not self._stream.isatty():
            print_line(text, self._stream)
            return
        self._line.draw(visible(text))

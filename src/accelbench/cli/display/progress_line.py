"""What takes a while: one line of a terminal that goes when it is done, elsewhere a line each."""

from __future__ import annotations

import os
from types import TracebackType
from typing import IO

from accelbench.cli.display.terminal import print_line, unguarded
from accelbench.core.visible import visible

_WIPE = "\r\x1b[2K"


class ProgressLine:
    """Line that says what is being done.

    Args:
        stream: where to; what is no terminal gets a line for each thing.
    """

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream
        self._drawn = False

    def __enter__(self) -> ProgressLine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        if self._drawn:
            plain = unguarded(self._stream)
            plain.write(_WIPE)
            plain.flush()
            self._drawn = False

    def say(self, text: str) -> None:
        """What is begun now."""
        if not self._stream.isatty():
            print_line(text, self._stream)
            return
        plain = unguarded(self._stream)
        plain.write(_WIPE + visible(text)[: _width(self._stream) - 1])
        plain.flush()
        self._drawn = True


def _width(stream: IO[str]) -> int:
    try:
        return os.get_terminal_size(stream.fileno()).columns or 80
    except OSError:
        return 80

"""How far `accelbench publish` is: one line on a terminal, now and then one where there is none."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import TracebackType
from typing import IO, TYPE_CHECKING

from accelbench.cli.display.progress_line import ProgressLine
from accelbench.cli.display.words import duration

if TYPE_CHECKING:
    from accelbench.report.publishing.pace import CrawlPace

#: Seconds from one line to the next, on a terminal and in a log; the first of a log comes late, so
#: that what is quick says nothing.
_DRAWN_EVERY, _SAID_EVERY = 0.5, 30.0


class StatusOfPages:
    """What is told of the pages while they are made.

    Args:
        stream: where to.
        now: a clock of seconds.
    """

    def __init__(self, stream: IO[str], now: Callable[[], float] = time.monotonic) -> None:
        self._line, self._now = ProgressLine(stream), now
        self._every = _DRAWN_EVERY if stream.isatty() else _SAID_EVERY
        self._last = now()

    def __enter__(self) -> StatusOfPages:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        self._line.__exit__(kind, error, trace)

    def told(self, pace: CrawlPace) -> None:
        """How far it is, if the last was told long enough ago."""
        now = self._now()
        if now - self._last >= self._every:
            self._last = now
            self._line.say(words_of(pace))


def words_of(pace: CrawlPace) -> str:
    """Pages, and about how long the rest takes."""
    left = pace.seconds_left
    rest = f", about {duration(left)} left" if left is not None else ""
    return f"page {pace.pages:,} of {pace.known:,} known, {duration(pace.seconds)} so far{rest}"

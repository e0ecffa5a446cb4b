"""How far the pages of a bundle are, and about how long the rest takes. Pure."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable

from accelbench.report.publishing.addresses import Address

#: Nothing is said of the rest before so many pages were timed.
_FEWEST = 12


#: The family of a page, and by what it is filtered.
_Kind = tuple[str, ...]


def _kind(address: Address) -> _Kind:
    return address.family, *(name for name, _ in address.query)


class CrawlPace:
    """The pages so far by their kind, each with the time that its pictures took.

    A page of a model with a dozen pictures takes ten times as long as one of a device: what is left
    is told kind by kind.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._begun = now()
        self._page: Address | None = None
        self._page_begun = self._begun
        self._seconds: defaultdict[_Kind, list[float]] = defaultdict(list)
        self._waiting: Counter[_Kind] = Counter()
        self.pages = 0

    def begun(self, address: Address, waiting: Iterable[Address]) -> None:
        """The next address is asked for, and these wait.

        Args:
            address: a page, or a picture of the page before.
            waiting: what comes after it.
        """
        if address.form:
            return
        now = self._now()
        if self._page is not None:
            self._seconds[_kind(self._page)].append(now - self._page_begun)
        self._page, self._page_begun = address, now
        self._waiting = Counter(_kind(other) for other in waiting if not other.form)
        self._waiting[_kind(address)] += 1
        self.pages += 1

    @property
    def known(self) -> int:
        """Pages that are done and that are still to be made; more may be found."""
        return self.pages - 1 + sum(self._waiting.values())

    @property
    def seconds(self) -> float:
        """Since it was begun."""
        return self._now() - self._begun

    @property
    def seconds_left(self) -> float | None:
        """About how long the pages that are known take yet; None before enough were timed."""
        # The first of a kind has what is worked out once in it: findings, or which lines changed.
        timed = {kind: each[1:] for kind, each in self._seconds.items() if len(each) > 1}
        every = [seconds for several in timed.values() for seconds in several]
        if sum(map(len, self._seconds.values())) < _FEWEST or not every:
            return None
        usual = sum(every) / len(every)
        means = {kind: sum(each) / len(each) for kind, each in timed.items()}
        left = sum(means.get(kind, usual) * n for kind, n in self._waiting.items())
        page = means.get(_kind(self._page), usual) if self._page else 0.0
        return left - min(page, self._now() - self._page_begun)

"""Questions that take a while: worked on one after the other, beside the pages that wait."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from typing import Generic, TypeVar

from accelbench.core.errors import AccelbenchError, UsageError

T = TypeVar("T")
#: Questions that may wait, and answers that are kept.
_MOST_WAITING, _KEPT = 4, 64


class BusyError(AccelbenchError):
    """Other questions are being worked on."""


class QuestionJobs(Generic[T]):
    """What was asked, by what it was asked as.

    A thread of its own works on a question, and the process that it starts dies with it: nobody
    waits for either where the dashboard ends.
    """

    def __init__(self) -> None:
        self._jobs: OrderedDict[Hashable, Future[T]] = OrderedDict()
        self._lock, self._turn = threading.Lock(), threading.Lock()

    def of(self, key: Hashable, make: Callable[[], T]) -> Future[T]:
        """The answer of a question, which may be on its way; a slip is remembered as one.

        Raises:
            BusyError: Too many others are waiting.
        """
        with self._lock:
            job = self._jobs.get(key)
            if job is not None and not _is_lost(job):
                return job
            if sum(not other.done() for other in self._jobs.values()) >= _MOST_WAITING:
                raise BusyError("Other questions are being worked on.", "Ask again in a minute.")
            job = self._jobs[key] = Future()
            while len(self._jobs) > _KEPT:
                self._jobs.popitem(last=False)
        threading.Thread(target=self._work, args=(job, make), daemon=True).start()
        return job

    def _work(self, job: Future[T], make: Callable[[], T]) -> None:
        with self._turn:
            try:
                job.set_result(make())
            except BaseException as error:
                job.set_exception(error)


def _is_lost(job: Future[T]) -> bool:
    """Whether it came to nothing for a reason that may be gone by now."""
    error = job.exception() if job.done() else None
    return error is not None and not isinstance(error, UsageError)

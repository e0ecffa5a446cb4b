"""Questions that take a while: worked on one after the other, beside the pages that wait."""

from __future__ import annotations

import threading
import time
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


class StoppedError(AccelbenchError):
    """Somebody stopped the work on a question."""


class QuestionJob(Generic[T]):
    """A question, and how far the work on it is.

    Args:
        make: works on it, and tells `hear` of the job what it does.

    Attributes:
        stage: what is being done, in the words of whoever does it; "" where nothing was said.
    """

    def __init__(self, make: Callable[[QuestionJob[T]], T]) -> None:
        self._make = make
        self._answer = Future[T]()
        self._lock = threading.Lock()
        self._stopped = False
        self._asked, self._ended = time.monotonic(), 0.0
        self._begun = False
        self.stage = ""

    @property
    def waits(self) -> bool:
        """Whether others are worked on before it."""
        return not self._begun

    @property
    def seconds(self) -> float:
        """Since it was asked, until it was answered."""
        return (self._ended or time.monotonic()) - self._asked

    @property
    def done(self) -> bool:
        """Whether there is an answer, or why there is none."""
        return self._answer.done()

    @property
    def is_lost(self) -> bool:
        """Whether it came to nothing for a reason that may be gone by now."""
        error = self._answer.exception() if self.done else None
        return error is not None and not isinstance(error, UsageError)

    def result(self, seconds: float | None = None) -> T:
        """The answer.

        Raises:
            TimeoutError: It is not there yet.
        """
        return self._answer.result(seconds)

    def hear(self, words: str) -> None:
        """Be told what is being done.

        Raises:
            StoppedError: It is not to be gone on with.
        """
        self.stage = words
        self._refuse_stopped()

    def stop(self) -> None:
        """End the work on it, or never begin."""
        self._stopped = True
        if self.waits:
            self._settle(None, _stopped())

    def work(self) -> None:
        """Answer it, in the thread that calls."""
        self._begun = True
        answer, trouble = None, None
        try:
            self._refuse_stopped()
            answer = self._make(self)
        except BaseException as error:
            trouble = error
        self._settle(answer, trouble)

    def _refuse_stopped(self) -> None:
        if self._stopped:
            raise _stopped()

    def _settle(self, answer: T | None, trouble: BaseException | None) -> None:
        """Only the first counts: what was stopped while it waited is not answered after all."""
        with self._lock:
            if self._answer.done():
                return
            self._ended = time.monotonic()
            if trouble is not None:
                self._answer.set_exception(trouble)
            else:
                self._answer.set_result(answer)  # type: ignore[arg-type]  # None where T has it


def _stopped() -> StoppedError:
    return StoppedError("It was stopped.", "Ask again to begin anew.")


class QuestionJobs(Generic[T]):
    """What was asked, by what it was asked as.

    A thread of its own works on a question, and the process that it starts dies with it: nobody
    waits for either where the dashboard ends.
    """

    def __init__(self) -> None:
        self._jobs: OrderedDict[Hashable, QuestionJob[T]] = OrderedDict()
        self._lock, self._turn = threading.Lock(), threading.Lock()

    def of(self, key: Hashable, make: Callable[[QuestionJob[T]], T]) -> QuestionJob[T]:
        """The work on a question, which may be on its way; a slip is remembered as one.

        Raises:
            BusyError: Too many others are waiting.
        """
        with self._lock:
            job = self._jobs.get(key)
            if job is not None and not job.is_lost:
                return job
            if sum(not other.done for other in self._jobs.values()) >= _MOST_WAITING:
                raise BusyError("Other questions are being worked on.", "Ask again in a minute.")
            job = self._jobs[key] = QuestionJob(make)
            while len(self._jobs) > _KEPT:
                self._jobs.popitem(last=False)
        threading.Thread(target=self._work, args=(job,), daemon=True).start()
        return job

    def stopped(self, key: Hashable) -> QuestionJob[T] | None:
        """End the work on a question; None where there is none to end."""
        with self._lock:
            job = self._jobs.get(key)
        if job is None or job.done:
            return None
        job.stop()
        return job

    def _work(self, job: QuestionJob[T]) -> None:
        with self._turn:
            job.work()

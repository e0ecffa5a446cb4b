"""What a session is fed with, the same for every engine: a folder's data or drawn inputs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Protocol

from accelbench.catalog.data import Feed
from accelbench.catalog.data.arrays import SUFFIX, ArraysFeed
from accelbench.catalog.data.labelled_feed import LabelledFeed, is_labelled
from accelbench.catalog.inputs import make_inputs
from accelbench.core.case import Case
from accelbench.core.clock import Clock
from accelbench.core.protocols import Job


@dataclass
class FedBatch:
    """A batch that is fed in place of a job's own, and whether any session has asked for it."""

    arrays: Mapping[str, Any]
    taken: bool = False


_fed: ContextVar[FedBatch | None] = ContextVar("_fed", default=None)


@contextmanager
def feeding(arrays: Mapping[str, Any]) -> Iterator[FedBatch]:
    """Whatever a session prepares here are these arrays, as accuracy goes through labelled data.

    A session of another package may draw its inputs by itself: then they are not taken.
    """
    batch = FedBatch(arrays)
    before = _fed.set(batch)
    try:
        yield batch
    finally:
        _fed.reset(before)


class _Fed(Protocol):
    """What reads a job's real inputs."""

    def batch(self, case: Case) -> Mapping[str, Any]: ...

    def columns(self) -> Mapping[str, Any]: ...

    def details(self) -> Mapping[str, Any]: ...


def _feed(job: Job, clock: Clock) -> _Fed | None:
    """What reads a job's real inputs; None where they are drawn."""
    settings = job.settings
    data, seed = settings.data, settings.seed
    if data is None:
        return None
    if is_labelled(settings, job.case):
        return LabelledFeed(settings, clock.now_ns)
    if data.lower().endswith(SUFFIX):
        return ArraysFeed(data, seed, clock.now_ns)
    return Feed(data, seed, job.case.model.weights_from(settings.weights), clock.now_ns)


class Inputs:
    """The inputs of a job's cases, as arrays by name."""

    def __init__(self, job: Job, clock: Clock) -> None:
        self._seed = job.settings.seed
        self._feed = _feed(job, clock)

    def arrays(self, case: Case, seed: int | None = None) -> Mapping[str, Any]:
        """Real inputs where the job has them; those of another seed are drawn all the same.

        They are asked for to see whether inputs matter, and a folder may hold no others.
        """
        fed = _fed.get()
        if fed is not None:
            fed.taken = True
            return fed.arrays
        if seed is None:
            seed = self._seed
        if self._feed is not None and seed == self._seed:
            return self._feed.batch(case)
        return make_inputs(case.model, case.shapes, seed, case.mode)

    def columns(self) -> Mapping[str, Any]:
        """Columns of a result about the data that was read last."""
        return {} if self._feed is None else self._feed.columns()

    def details(self) -> dict[str, Any]:
        """Evidence of it: what was read, skipped and drawn."""
        return {} if self._feed is None else {"data": self._feed.details()}

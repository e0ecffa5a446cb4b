"""Values that were made once for a key; the oldest are forgotten."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future, wait
from typing import Any, TypeVar

T = TypeVar("T")
_MOST = 192


class KeptValues:
    """Values by key, of which each is made by one thread while others wait for it."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Hashable, Future[Any]] = OrderedDict()
        self._lock = threading.Lock()

    def once(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return the value of a key, made now if there is none. A failure is not kept."""
        future, is_new = self._future(key)
        if is_new:
            self._make(key, future, make)
        value: T = future.result()
        return value

    def soon(self, key: Hashable, make: Callable[[], T], patience: float) -> T | None:
        """Return the value of a key, made in a thread, or None after `patience` seconds."""
        future, is_new = self._future(key)
        if is_new:
            # Not a daemon: an interpreter that ends under a reader of DuckDB aborts.
            threading.Thread(target=self._make, args=(key, future, make)).start()
        return future.result() if wait([future], patience).done else None

    def _future(self, key: Hashable) -> tuple[Future[Any], bool]:
        with self._lock:
            is_new = key not in self._kept
            future = self._kept.setdefault(key, Future())
            self._kept.move_to_end(key)
            while len(self._kept) > _MOST:
                self._kept.popitem(last=False)
        return future, is_new

    def _make(self, key: Hashable, future: Future[Any], make: Callable[[], object]) -> None:
        try:
            future.set_result(make())
        except BaseException as error:
            with self._lock:
                self._kept.pop(key, None)
            future.set_exception(error)

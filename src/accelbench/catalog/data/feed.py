"""Real inputs for the cases of a session: one batch to measure with, and what loading it takes."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from statistics import median
from typing import TYPE_CHECKING, Any

from accelbench.catalog.data.folder import look
from accelbench.catalog.data.reading import Library, drawn, fed_with, reader_for
from accelbench.catalog.data.rows import Walk
from accelbench.catalog.inputs import draw, input_shapes, refuse_absurd, settle, tensors
from accelbench.core.case import Case

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

#: Loading is timed over other batches than the measured one: at least three, and more of them
#: (up to ten) while they fit in two seconds.
_FEWEST, _MOST, _PATIENCE_NS = 3, 10, 2_000_000_000
#: Names of skipped files that a result carries; all are counted.
_NAMED = 5


class _Digest:
    """Of the bytes of every file that the measured batch was made of."""

    def __init__(self) -> None:
        self._sum = hashlib.sha256()
        self.listening = True

    def __call__(self, data: bytes) -> None:
        # Each file by its own digest: so the border between two of them counts.
        if self.listening:
            self._sum.update(hashlib.sha256(data).digest())

    def hex(self) -> str:
        return self._sum.hexdigest()[:16]


class Feed:
    """Reads a folder for whatever case is prepared."""

    def __init__(self, path: str, seed: int, weights: str, now_ns: Callable[[], int]) -> None:
        self._library = Library(look(path), weights)
        self._seed = seed
        self._now_ns = now_ns
        self._timed: dict[str, list[int]] = {}  # by case: loading is timed once
        self._columns: dict[str, Any] = {}
        self._details: dict[str, Any] = {}

    def batch(self, case: Case) -> dict[str, Array]:
        """One batch for a case: the same for the same seed, on every machine.

        What the files cannot give is drawn as synthetic inputs are.

        Raises:
            UnsupportedError: the folder does not hold what the model takes.
            CaseError: none of it can be read.
        """
        model, mode = case.model, case.mode
        shapes = settle(model, case.shapes)
        refuse_absurd(model, shapes, mode)
        fed = fed_with(tensors(model, shapes, mode), input_shapes(model, shapes, mode))
        reader = reader_for(self._library, model, shapes, fed)
        digest = _Digest()
        walk = Walk(reader, self._seed)
        rows = walk.rows(digest, rounds=True)
        made = walk.batch(rows, shapes.batch) or {}  # rows never end
        digest.listening = False
        if case.case_id not in self._timed:
            self._timed[case.case_id] = self._time(walk, rows, shapes.batch)
        times = self._timed[case.case_id]
        self._columns = {"data_load_ms": median(times) / 1e6, "data_digest": digest.hex()}
        notes = list(reader.notes)
        synthetic = drawn(fed, reader)
        if synthetic:
            notes.append(f"Drawn, as the files do not give them: {', '.join(synthetic)}.")
        if reader.count < shapes.batch:
            notes.append(f"The batch is larger than the {reader.count} in the folder: some twice.")
        if walk.skipped:
            notes.append(f"Skipped, as unreadable: {len(walk.skipped)} of {reader.count} inputs.")
        self._details = {
            **reader.facts,
            "inputs": reader.count,
            "skipped": dict(list(walk.skipped.items())[:_NAMED]),
            "skipped_count": len(walk.skipped),
            "loads_ms": [time / 1e6 for time in times],
            "drawn": synthetic,
            "notes": notes,
        }
        return {
            name: made[name] if name in made else draw(tensor, shape, self._seed)
            for name, (tensor, shape) in fed.items()
        }

    def _time(self, walk: Walk, rows: Iterator[dict[str, Array]], size: int) -> list[int]:
        times: list[int] = []
        while len(times) < _FEWEST or (len(times) < _MOST and sum(times) < _PATIENCE_NS):
            start = self._now_ns()
            walk.batch(rows, size)
            times.append(self._now_ns() - start)
        return times

    def columns(self) -> Mapping[str, Any]:
        """Columns of a result about the last batch."""
        return self._columns

    def details(self) -> Mapping[str, Any]:
        """Evidence of the last batch: what was read, skipped and drawn."""
        return self._details

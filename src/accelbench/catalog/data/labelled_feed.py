"""Labelled samples of a job: which data a case's model takes, and what of it is timed."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any

from accelbench.catalog.data.arrays import SUFFIX
from accelbench.catalog.data.folder import classes_of, look
from accelbench.catalog.data.labelled import LabelledArrays, LabelledData, batch_of
from accelbench.catalog.data.labelled_pictures import LabelledPictures
from accelbench.core.case import Case
from accelbench.core.job_settings import JobSettings

if TYPE_CHECKING:
    import numpy as np

#: The setting of who feeds a file of arrays as it is, whatever labels it has.
OFF = "off"


def is_labelled(settings: JobSettings, case: Case) -> bool:
    """Whether what is timed are labelled samples: else it is inputs alone, or drawn."""
    data = settings.data
    if data is None or settings.accuracy == OFF:
        return False
    if data.lower().endswith(SUFFIX):
        return True
    return case.model.is_own and bool(classes_of(look(data).images))


def labelled_data(settings: JobSettings, case: Case) -> LabelledData | None:
    """The samples of a job as a case's model takes them; None where its data has no labels.

    Raises:
        CaseError: they have labels, and are none of this model's.
    """
    data = settings.data
    if data is None or settings.accuracy == OFF:
        return None
    if data.lower().endswith(SUFFIX):
        return LabelledArrays(data, case, settings.seed, settings.accuracy_samples)
    folder = look(data)
    if not classes_of(folder.images):
        return None
    return LabelledPictures(folder, case, settings)


class LabelledFeed:
    """The first samples of labelled data, as the inputs that are timed."""

    def __init__(self, settings: JobSettings, now_ns: Callable[[], int]) -> None:
        self._settings = settings
        self._now_ns = now_ns
        self._columns: Mapping[str, Any] = {}
        self._details: Mapping[str, Any] = {}

    def batch(self, case: Case) -> Mapping[str, np.ndarray[Any, Any]]:
        """A case's inputs. Raises CaseError where the data is none of its model's."""
        start = self._now_ns()
        data = labelled_data(self._settings, case)
        assert data is not None  # else there were no such feed
        rows = [row for row, _ in islice(data.rows(), case.shapes.batch)]
        fed = batch_of(case, rows, self._settings.seed)
        whole = hashlib.sha256()
        for row in rows:
            for name in sorted(row):
                whole.update(name.encode() + row[name].tobytes())
        self._columns = {
            "data_load_ms": (self._now_ns() - start) / 1e6,
            "data_digest": whole.hexdigest()[:16],
        }
        notes = []
        if len(rows) < case.shapes.batch:
            notes = [f"The batch is larger than the {len(rows)} samples: the last one fills it."]
        self._details = {**data.facts, "samples": data.count, "notes": notes}
        return fed

    def columns(self) -> Mapping[str, Any]:
        """Columns of a result about what was read last."""
        return self._columns

    def details(self) -> Mapping[str, Any]:
        """Evidence of it."""
        return self._details

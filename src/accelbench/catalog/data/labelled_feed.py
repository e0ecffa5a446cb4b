"""Labelled samples of a job: which data a case's model takes, and what of it is timed."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from accelbench.catalog.data.arrays import SUFFIX
from accelbench.catalog.data.folder import Folder, classes_of, look
from accelbench.catalog.data.labelled import LabelledArrays, LabelledData, batch_of
from accelbench.catalog.data.labelled_pictures import LabelledPictures
from accelbench.catalog.data.labelled_sounds import LabelledSounds
from accelbench.catalog.data.labelled_text import LabelledTexts, TextWindows
from accelbench.catalog.data.text_documents import TABLES, TextFiles, TextTable, is_text_table
from accelbench.core.accuracy_columns import AccuracyMetric
from accelbench.core.case import Case
from accelbench.core.errors import CaseError
from accelbench.core.job_settings import JobSettings
from accelbench.core.vocabulary import Mode

if TYPE_CHECKING:
    import numpy as np

#: The setting of who feeds a file of arrays as it is, whatever labels it has.
OFF = "off"


def is_labelled(settings: JobSettings, case: Case) -> bool:
    """Whether what is timed are labelled samples: else it is inputs alone, or drawn."""
    data = settings.data
    if data is None:
        return False
    if is_text_table(Path(data)):
        return case.model.is_own or Path(data).suffix.lower() in TABLES
    if settings.accuracy == OFF:
        return False
    if data.lower().endswith(SUFFIX):
        return True
    return case.model.is_own and _has_labels(look(data), settings.accuracy)


def labelled_data(settings: JobSettings, case: Case) -> LabelledData | None:
    """The samples of a job as a case's model takes them; None where its data has no labels.

    Raises:
        CaseError: they have labels, and are none of this model's.
    """
    return None if settings.accuracy == OFF else _samples(settings, case)


def _samples(settings: JobSettings, case: Case) -> LabelledData | None:
    data = settings.data
    if data is None:
        return None
    if data.lower().endswith(SUFFIX):
        return LabelledArrays(data, case, settings.seed, settings.accuracy_samples)
    predicts = settings.accuracy == AccuracyMetric.PERPLEXITY
    if is_text_table(Path(data)):
        table = TextTable(Path(data))
        return (TextWindows if predicts else LabelledTexts)(table, case, settings)
    folder = look(data)
    if classes_of(folder.images):
        return LabelledPictures(folder, case, settings)
    if classes_of(folder.sounds):
        return LabelledSounds(folder, case, settings)
    if predicts and folder.texts:
        return TextWindows(TextFiles(folder), case, settings)
    if classes_of(folder.texts):
        return LabelledTexts(TextFiles(folder), case, settings)
    return None


def _has_labels(folder: Folder, accuracy: str) -> bool:
    kinds = (folder.images, folder.sounds, folder.texts)
    predicts = accuracy == AccuracyMetric.PERPLEXITY and bool(folder.texts)
    return predicts or any(classes_of(entries) for entries in kinds)


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
        table = is_text_table(Path(self._settings.data or ""))
        if table and (case.generates or case.mode is Mode.TRAINING):
            raise CaseError(
                "data_mismatch",
                "A table of labelled texts is fed to a forward pass of inference alone.",
                "Use --new-tokens 0 and no training, or a folder of text.",
            )
        data = _samples(self._settings, case)
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
        counted = {} if data.count is None else {"samples": data.count}
        self._details = {**data.facts, **counted, "notes": notes}
        return fed

    def columns(self) -> Mapping[str, Any]:
        """Columns of a result about what was read last."""
        return self._columns

    def details(self) -> Mapping[str, Any]:
        """Evidence of it."""
        return self._details

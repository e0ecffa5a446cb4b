"""In a worker: the session that was timed answers labelled samples, batch after batch.

Nothing here is timed. A last batch that is not full is filled with its last sample, whose further
answers are left out.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np

from accelbench.catalog.data.labelled import LabelledData, batch_of
from accelbench.catalog.data.labelled_feed import labelled_data
from accelbench.core.case import Case
from accelbench.core.errors import AccelbenchError, CaseError
from accelbench.core.job_settings import JobSettings
from accelbench.core.protocols import Session
from accelbench.measure.accuracy import figure_of
from accelbench.run.worker.sample_scores import SampleScores
from accelbench.run.worker.token_scores import scores_for
from accelbench.runtimes.shared.inputs import feeding

#: Nobody asked for accuracy: its columns say why they are empty.
NO_LABELS = "the data has no labels; plain text has its own with --accuracy perplexity"


def task_accuracy(session: Session, case: Case, settings: JobSettings) -> dict[str, Any]:
    """Columns and evidence of a session's accuracy, or the sentence that says why there is none."""
    try:
        data = labelled_data(settings, case)
        if data is None:
            return {"why": NO_LABELS}
        return _measured(session, case, settings, data)
    except AccelbenchError as error:
        return {"why": str(error), "wanted": True}


def _measured(
    session: Session, case: Case, settings: JobSettings, data: LabelledData
) -> dict[str, Any]:
    scores: SampleScores | None = None
    for rows, labels in _batches(data, case.shapes.batch):
        with feeding(batch_of(case, rows, settings.seed)) as batch:
            inputs = session.prepare(case)
        if not batch.taken:
            raise AccelbenchError(
                f"The runtime {case.target.runtime} draws its inputs by itself: it is fed with no"
                " labelled samples."
            )
        outputs = session.outputs(inputs)
        if scores is None:
            scores = scores_for(settings.accuracy, labels, case, data.classes)
        scores.add(outputs, rows, labels)
    if scores is None:
        raise CaseError("data_unreadable", "There is no sample that can be read.")
    values = scores.values()
    figure = figure_of(scores.metric, values)
    if not math.isfinite(figure.value):
        raise AccelbenchError("The model's outputs are no numbers that a loss can be made of.")
    columns = {
        "accuracy": figure.value,
        "accuracy_low": figure.low,
        "accuracy_high": _finite(figure.high),
        "accuracy_samples": len(values),
        "accuracy_metric": scores.metric.value,
        "accuracy_per_sample": values.tolist(),
        "accuracy_digest": data.digest(),
    }
    details = {**data.facts, **scores.details(), "batch_size": case.shapes.batch}
    return {
        "columns": columns,
        "details": details,
        "notes": [*data.notes, *scores.notes()],
    }


def _finite(value: float | None) -> float | None:
    return value if value is None or math.isfinite(value) else None


def _batches(
    data: LabelledData, size: int
) -> Iterator[tuple[Sequence[Mapping[str, Any]], np.ndarray[Any, Any]]]:
    """Samples, so many at a time, with their labels."""
    walk = data.rows()
    while taken := list(islice(walk, size)):
        yield [row for row, _ in taken], np.stack([label for _, label in taken])

"""The picture of an answer: which of the charts of predictions shows it. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from accelbench.report.charts.chart import Picture, pictured
from accelbench.report.charts.phrases import safe
from accelbench.report.charts.predicted_by_batch import PREDICTED_BY_BATCH, predicted_by_batch
from accelbench.report.charts.predicted_marks import by_work
from accelbench.report.charts.predicted_matrix import PREDICTED_MATRIX, predicted_matrix
from accelbench.report.charts.predicted_places import PREDICTED_PLACES, predicted_places

if TYPE_CHECKING:
    from accelbench.predict.answers import PredictionAnswer

#: More models, each with panels of its own, are a heat map.
_MOST_WITH_PANELS = 4
#: Letters of a line of notes.
_LONGEST = 120


def prediction_picture(answer: PredictionAnswer, notes: Sequence[str] = ()) -> Picture | None:
    """Lines over batches, rows at one batch, or a heat map of many models.

    Args:
        answer: what is drawn.
        notes: what is said below the title beside what the picture is of.

    Returns:
        None where there are no predictions.
    """
    from accelbench.predict.answers import devices_told

    devices = devices_told(answer.figures)
    learned = f"{answer.learned_said.capitalize()}."
    about = [*([safe(f"On {devices}.", _LONGEST)] if devices else []), learned, *notes]
    if len(by_work(answer.figures)) > _MOST_WITH_PANELS:
        drawn, label = predicted_matrix(answer.figures, about), PREDICTED_MATRIX
    elif (drawn := predicted_by_batch(answer.figures, answer.knees, about)) is not None:
        label = PREDICTED_BY_BATCH
    else:
        drawn, label = predicted_places(answer.figures, about), PREDICTED_PLACES
    return None if drawn is None else pictured(label, drawn)

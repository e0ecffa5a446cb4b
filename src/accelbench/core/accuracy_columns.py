"""Columns of task accuracy: what a model's outputs are worth against labels."""

from __future__ import annotations

from enum import StrEnum

from accelbench.core import ranges
from accelbench.core.column import Column


class AccuracyMetric(StrEnum):
    """What accuracy is measured as."""

    TOP1 = "top1"
    TOP5 = "top5"
    F1 = "f1"
    PERPLEXITY = "perplexity"

    @property
    def heading(self) -> str:
        """As people write it."""
        headings = {"top1": "top-1", "top5": "top-5", "f1": "F1"}
        return headings.get(self.value, self.value)

    @property
    def item(self) -> str:
        """What it is counted over."""
        return "sequences" if self is AccuracyMetric.PERPLEXITY else "samples"


ACCURACY_COLUMNS = (
    Column(
        "accuracy",
        "float",
        "metric",
        "what the outputs are worth against the labels of --data, as accuracy_metric says: a share "
        "of 1, or a perplexity; by the very session that was timed, after it was",
        header="accuracy",
        within=ranges.ACCURACY,
    ),
    Column(
        "accuracy_low",
        "float",
        "metric",
        "lower end of its 95 % interval over samples",
        within=ranges.ACCURACY,
    ),
    Column(
        "accuracy_high",
        "float",
        "metric",
        "upper end of it",
        within=ranges.ACCURACY,
    ),
    Column(
        "accuracy_samples",
        "int",
        "metric",
        "labelled samples that it is of",
        within=ranges.COUNT,
    ),
    Column(
        "accuracy_metric",
        "text",
        "outcome",
        "top1, top5, f1 (macro) or perplexity, of which less is better",
        words=tuple(map(str, AccuracyMetric)),
    ),
    Column(
        "accuracy_per_sample",
        "floats",
        "other",
        "score of every sample, in the order of the data: 1 where it is right, else 0; of f1 "
        "label × 2^20 + prediction + 1; of perplexity a sequence's log loss ÷ the mean number of "
        "tokens",
        within=ranges.ACCURACY,
    ),
)

ACCURACY_DIGEST = Column(
    "accuracy_digest",
    "text",
    "conditions",
    "digest of the labelled samples that accuracy is of, and of their labels",
)

#: All of them, by name.
OF_ACCURACY = tuple(column.name for column in (*ACCURACY_COLUMNS, ACCURACY_DIGEST))

"""Scores of samples, from a model's outputs and their labels; what they mean is asked, not guessed.

What is measured follows from the shapes: labels of one number a sample and outputs of [batch,
classes] are a classification. What does not follow is refused with the option that says it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from accelbench.core.accuracy_columns import AccuracyMetric
from accelbench.core.case import Case
from accelbench.core.errors import CaseError
from accelbench.measure.accuracy import (
    WIDTH,
    AccuracyFigure,
    cells_of,
    f1_of,
    predictions,
    wilson,
    within_top,
)

Array = np.ndarray[Any, Any]
Outputs = Mapping[str, Array]

#: What the outputs of a classification are called where there are others of their shape.
LOGITS = "logits"
#: Of all labels the share of one class from which on saying nothing else is a good answer.
UNBALANCED = 0.8
_TOP = 5


class SampleScores(Protocol):
    """The scores so far."""

    @property
    def metric(self) -> AccuracyMetric:
        """What they are scores of."""
        ...

    def add(self, outputs: Outputs, rows: Sequence[Mapping[str, Any]], labels: Array) -> None:
        """The answers to a batch, of which the first are those of its rows."""
        ...

    def values(self) -> Array:
        """A score of every sample."""
        ...

    def details(self) -> dict[str, Any]:
        """What else the same answers come to."""
        ...

    def notes(self) -> list[str]:
        """What a reader should know of them."""
        ...


class ClassScores:
    """Of a classification: one label a sample, an output of [batch, classes].

    Args:
        metric: top1, top5 or f1.
        case: whose answers they are.
        classes: how many the labels are of; None where their numbers are the model's own.
    """

    def __init__(self, metric: AccuracyMetric, case: Case, classes: int | None = None) -> None:
        self.metric = metric
        self._case = case
        self._labelled = classes
        self._output = ""
        self._classes = 0
        self._cells: list[Array] = []
        self._hits: list[Array] = []

    def add(self, outputs: Outputs, rows: Sequence[Mapping[str, Any]], labels: Array) -> None:
        """The answers to a batch, of which the first are those of its rows."""
        if not self._output:
            self._output = self._chosen(outputs)
        values = outputs[self._output][: len(rows)]
        self._classes = values.shape[1]
        if labels.ndim != 1:
            raise CaseError(
                "data_mismatch",
                f"{self.metric.heading} needs one label a sample, and here are"
                f" {list(labels.shape[1:])}.",
                "Name another metric with --accuracy, or store one label a sample.",
            )
        self._refuse_beyond(labels)
        wide = values.astype(np.float64) if values.dtype.kind == "f" else values
        self._cells.append(cells_of(labels, predictions(wide)))
        self._hits.append(within_top(wide, labels.astype(np.int64), _TOP))

    def _chosen(self, outputs: Outputs) -> str:
        """The output that tells classes apart. Raises CaseError where it is not clear which."""
        batch = self._case.shapes.batch
        fitting = [
            name
            for name, value in outputs.items()
            if value.ndim == 2 and value.shape[0] == batch and value.shape[1] > 1
            if value.dtype.kind in "fiu"
        ]
        if LOGITS in fitting:
            return LOGITS
        if len(fitting) == 1:
            return fitting[0]
        there = ", ".join(f"{name} {list(value.shape)}" for name, value in outputs.items())
        if fitting:
            raise CaseError(
                "data_mismatch",
                f"{self.metric.heading} is of one output of [{batch}, classes], and there are"
                f" several: {there}.",
                f"Call the one that is meant {LOGITS}.",
            )
        raise CaseError(
            "data_mismatch",
            f"{self.metric.heading} is of an output of [{batch}, classes], and there is none:"
            f" {there}.",
            "Use a model that ends in its classes, or leave out the labels.",
        )

    def _refuse_beyond(self, labels: Array) -> None:
        classes, labelled = self._classes, self._labelled
        if labelled is not None and labelled != classes:
            raise CaseError(
                "data_mismatch",
                f"The data has {labelled} classes and the model tells {classes} apart: which is"
                " which is not known.",
                "Write classes.txt into the folder: a line a class, in the order of the model's.",
            )
        wrong = (labels < 0) | (labels >= classes)
        if wrong.any():
            raise CaseError(
                "too_many_classes",
                f"A sample has the label {int(labels[wrong][0])}, and the model tells {classes}"
                " apart, from 0.",
                "Number the labels as the model numbers its classes.",
            )

    def values(self) -> Array:
        """A score of every sample."""
        cells = np.concatenate(self._cells)
        if self.metric is AccuracyMetric.F1:
            return cells.astype(np.float64)
        if self.metric is AccuracyMetric.TOP5:
            return np.concatenate(self._hits).astype(np.float64)
        return self._right(cells).astype(np.float64)

    @staticmethod
    def _right(cells: Array) -> Array:
        right: Array = cells % WIDTH == cells // WIDTH + 1
        return right

    def details(self) -> dict[str, Any]:
        """What else the same answers come to."""
        cells = np.concatenate(self._cells)
        figures: dict[AccuracyMetric, AccuracyFigure] = {
            AccuracyMetric.TOP1: wilson(int(self._right(cells).sum()), len(cells)),
            AccuracyMetric.F1: f1_of(cells),
        }
        if self._classes > _TOP:
            hits = np.concatenate(self._hits)
            figures[AccuracyMetric.TOP5] = wilson(int(hits.sum()), len(hits))
        return {
            "output": self._output,
            "classes": self._classes,
            "right": int(self._right(cells).sum()),
            "figures": {
                metric.value: [figure.value, figure.low, figure.high]
                for metric, figure in figures.items()
            },
        }

    def notes(self) -> list[str]:
        """What a reader should know of them."""
        cells = np.concatenate(self._cells)
        notes = []
        counts = np.unique(cells // WIDTH, return_counts=True)[1]
        share = counts.max() / counts.sum()
        if share >= UNBALANCED and self.metric is not AccuracyMetric.F1:
            notes.append(
                f"{share:.0%} of the samples are of one class: who always says it has that"
                f" accuracy. --accuracy f1 weighs classes alike."
            )
        nothing = int((cells % WIDTH == 0).sum())
        if nothing:
            notes.append(f"Of {nothing} samples outputs were no numbers: they count as wrong.")
        if self.metric is AccuracyMetric.TOP5 and self._classes <= _TOP:
            notes.append(f"The model tells {self._classes} classes apart: all are among five.")
        return notes

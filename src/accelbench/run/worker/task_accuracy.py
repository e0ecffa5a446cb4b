"""Task accuracy in a worker: the timed session answers labelled samples; nothing here is timed.

What is measured follows from the shapes: labels of one number a sample and outputs of [batch,
classes] are a classification. If it does not follow, the case is refused with the option to set. A
last batch that is not full repeats its last sample, whose further answers are left out.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Protocol

import numpy as np

from accelbench.core.case import Case
from accelbench.core.columns import AccuracyMetric
from accelbench.core.errors import AccelbenchError, CaseError
from accelbench.core.protocols import Session
from accelbench.core.run_options import JobSettings
from accelbench.engines.shared.arrays import feeding
from accelbench.measure.accuracy import (
    WIDTH,
    AccuracyEstimate,
    confusion_cells,
    estimate_accuracy,
    estimate_f1,
    is_in_top,
    perplexity_scores,
    predict_classes,
    token_losses,
    wilson_interval,
)
from accelbench.models.data.labelled import LabelledData, batch_of
from accelbench.models.data.labelled_feed import labelled_data

Array = np.ndarray[Any, Any]
Outputs = Mapping[str, Array]

#: What the outputs of a classification are called where there are others of their shape.
LOGITS = "logits"
#: Of all labels the share of one class from which on saying nothing else is a good answer.
UNBALANCED = 0.8
_TOP = 5


class SampleScores(Protocol):
    """Scores of samples, added batch by batch."""

    @property
    def metric(self) -> AccuracyMetric:
        """Their metric."""

    def add(self, outputs: Outputs, rows: Sequence[Mapping[str, Any]], labels: Array) -> None:
        """Add the answers to a batch; those of its rows come first."""

    def values(self) -> Array:
        """Return a score for every sample."""

    def details(self) -> dict[str, Any]:
        """Return further results of the same answers."""

    def notes(self) -> list[str]:
        """Return notes for readers."""


class ClassScores:
    """Scores of a classification: one label a sample, an output of [batch, classes].

    `classes` is the number that the labels are of; None if their numbers are the model's own.
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
        self._cells.append(confusion_cells(labels, predict_classes(wide)))
        self._hits.append(is_in_top(wide, labels.astype(np.int64), _TOP))

    def _chosen(self, outputs: Outputs) -> str:
        """Return the name of the output with the classes; raise CaseError if it is not clear
        which."""
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
        cells = np.concatenate(self._cells)
        figures: dict[AccuracyMetric, AccuracyEstimate] = {
            AccuracyMetric.TOP1: wilson_interval(int(self._right(cells).sum()), len(cells)),
            AccuracyMetric.F1: estimate_f1(cells),
        }
        if self._classes > _TOP:
            hits = np.concatenate(self._hits)
            figures[AccuracyMetric.TOP5] = wilson_interval(int(hits.sum()), len(hits))
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


AUTO = "auto"


def scores_for(asked: str, labels: Array, case: Case, classes: int | None) -> SampleScores:
    """Return scores by the metric that was asked for, or that follows from the labels' shape."""
    tokens = labels.ndim == 2
    if asked == AUTO and labels.ndim > 2:
        raise CaseError(
            "data_mismatch",
            f"The labels of a sample are {list(labels.shape[1:])}: what they are of is not known.",
            "Store one label a sample, or one a token.",
        )
    metric = AccuracyMetric(asked) if asked != AUTO else None
    if metric is AccuracyMetric.PERPLEXITY or (metric is None and tokens):
        return TokenScores(case)
    return ClassScores(metric or AccuracyMetric.TOP1, case, classes)


class TokenScores:
    """Scores of a language model: a label a token, an output of [batch, tokens, vocabulary].

    Labels below 0, such as padding, do not count. Labels are the tokens themselves, each of which
    the output before it predicts, or the next tokens; the data shows which.
    """

    metric = AccuracyMetric.PERPLEXITY

    def __init__(self, case: Case) -> None:
        self._case = case
        self._output = ""
        self._shifts: bool | None = None
        self._losses: list[float] = []
        self._tokens: list[int] = []
        self._empty = 0

    def add(self, outputs: Outputs, rows: Sequence[Mapping[str, Any]], labels: Array) -> None:
        if labels.ndim != 2:
            raise CaseError(
                "data_mismatch",
                f"Perplexity needs a label a token, and a sample has {list(labels.shape[1:])}.",
                "Store the tokens themselves as labels.",
            )
        self._output = self._output or self._chosen(outputs, labels.shape[1])
        for row, own, logits in zip(rows, labels, outputs[self._output], strict=False):
            if self._shifted(row, own):
                own, logits = own[1:], logits[:-1]
            counted = own >= 0
            if not counted.any():
                self._empty += 1
                continue
            if int(own.max()) >= logits.shape[1]:
                raise CaseError(
                    "data_mismatch",
                    f"A label is {int(own.max())}, and the model knows {logits.shape[1]} tokens.",
                    "Use the tokenizer that belongs to the model.",
                )
            self._losses.append(float(token_losses(logits[counted], own[counted]).sum()))
            self._tokens.append(int(counted.sum()))

    def _chosen(self, outputs: Outputs, tokens: int) -> str:
        fitting = [
            name
            for name, value in outputs.items()
            if value.ndim == 3 and value.shape[:2] == (self._case.shapes.batch, tokens)
            if value.dtype.kind == "f"
        ]
        if LOGITS in fitting:
            return LOGITS
        if len(fitting) == 1:
            return fitting[0]
        there = ", ".join(f"{name} {list(value.shape)}" for name, value in outputs.items())
        count = "several" if fitting else "none"
        raise CaseError(
            "data_mismatch",
            f"Perplexity is of one output of [{self._case.shapes.batch}, {tokens}, vocabulary], and"
            f" there are {count}: {there}.",
            f"Call it {LOGITS}, or name another metric with --accuracy.",
        )

    def _shifted(self, row: Mapping[str, Any], labels: Array) -> bool:
        """Return whether labels are the tokens of an input themselves, not the next ones."""
        ids = [v for v in row.values() if v.dtype.kind in "iu" and v.shape == labels.shape]
        counted = labels >= 0
        same = any((v == labels)[counted].all() for v in ids)
        following = any((v[1:] == labels[:-1])[counted[:-1]].all() for v in ids)
        known = True if same else False if following else None
        if known is None or (self._shifts is not None and known != self._shifts and counted.any()):
            raise CaseError(
                "data_mismatch",
                "The labels are neither the model's tokens themselves nor those that come next.",
                "Store the tokens themselves as labels, and -100 for what does not count.",
            )
        if counted.any() and not (same and following):
            self._shifts = known
        return known if self._shifts is None else self._shifts

    def values(self) -> Array:
        if not self._losses:
            raise CaseError(
                "data_mismatch", "No label is of a token that counts.", "Store others than -100."
            )
        return perplexity_scores(np.array(self._losses), np.array(self._tokens))

    def details(self) -> dict[str, Any]:
        return {
            "output": self._output,
            "tokens": sum(self._tokens),
            "loss": sum(self._losses) / sum(self._tokens),
            "labels": "the tokens themselves" if self._shifts else "those that come next",
        }

    def notes(self) -> list[str]:
        if not self._empty:
            return []
        return [f"{self._empty} sequences have no label that counts, and are left out."]


#: Nobody asked for accuracy: its columns say why they are empty.
NO_LABELS = "the data has no labels; plain text has its own with --accuracy perplexity"


def task_accuracy(session: Session, case: Case, settings: JobSettings) -> dict[str, Any]:
    """Return columns and evidence of a session's accuracy, or why there is none."""
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
    figure = estimate_accuracy(scores.metric, values)
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
    return {"columns": columns, "details": details, "notes": [*data.notes, *scores.notes()]}


def _finite(value: float | None) -> float | None:
    return value if value is None or math.isfinite(value) else None


def _batches(
    data: LabelledData, size: int
) -> Iterator[tuple[Sequence[Mapping[str, Any]], np.ndarray[Any, Any]]]:
    walk = data.rows()
    while taken := list(islice(walk, size)):
        yield [row for row, _ in taken], np.stack([label for _, label in taken])

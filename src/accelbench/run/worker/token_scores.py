"""Perplexity of sequences of tokens, and which scores a model's outputs and labels call for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from accelbench.core.accuracy_columns import AccuracyMetric
from accelbench.core.case import Case
from accelbench.core.errors import CaseError
from accelbench.measure.accuracy import perplexity_scores, token_losses
from accelbench.run.worker.sample_scores import (
    LOGITS,
    Array,
    ClassScores,
    Outputs,
    SampleScores,
)

AUTO = "auto"


def scores_for(asked: str, labels: Array, case: Case, classes: int | None) -> SampleScores:
    """What is measured: what was asked for, or what follows from the labels' shape.

    Raises:
        CaseError: neither says it.
    """
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
    """Of a language model: a label a token, an output of [batch, tokens, vocabulary].

    A label below 0 is of no token that counts, as padding has it. Labels are the tokens themselves,
    each of which the output before it predicts; or those that come next. Which of the two is read
    off the data.
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
        """The answers to a batch, of which the first are those of its rows."""
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
        """Whether labels are the tokens of an input themselves, and not those that come next."""
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
        """A score of every sequence."""
        if not self._losses:
            raise CaseError(
                "data_mismatch", "No label is of a token that counts.", "Store others than -100."
            )
        return perplexity_scores(np.array(self._losses), np.array(self._tokens))

    def details(self) -> dict[str, Any]:
        """What else the same answers come to."""
        return {
            "output": self._output,
            "tokens": sum(self._tokens),
            "loss": sum(self._losses) / sum(self._tokens),
            "labels": "the tokens themselves" if self._shifts else "those that come next",
        }

    def notes(self) -> list[str]:
        """What a reader should know of them."""
        if not self._empty:
            return []
        return [f"{self._empty} sequences have no label that counts, and are left out."]

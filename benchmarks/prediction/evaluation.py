"""`accelbench predict --evaluate`: train on one table, predict another, and score.

The measured columns of the test table are read for scoring, and where anchors are asked for those
of the anchors, which are not scored.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from accelbench.core.device_facts import facts_of
from accelbench.core.errors import UsageError
from accelbench.predict.cases import LATENCY, TARGETS
from accelbench.predict.scoring import EvaluatedCases, Predictions, score, score_by
from accelbench.predict.signatures import Ints
from accelbench.predict.traces import torch_is_here
from prediction.choice_regret import regrets
from prediction.graph_evaluation import predict_by_graph
from prediction.graph_predictor import GraphTable
from prediction.graphs import read_graphs
from prediction.grid_evaluation import GRID_METHODS, grid_rows, predict_by_grid
from prediction.measurements import TableMeasurement, read_measurements
from prediction.tabular import predict_by_table, tabular_method

#: Kinds of hardware whose rows are predicted from operator graphs.
_GRAPH_KINDS = ("cuda", "cpu")


@dataclass(frozen=True)
class EvaluationRequest:
    """What is trained on, what is predicted and how."""

    train: tuple[Path, ...]
    test: Path
    graph_features: Path | None = None
    anchors: int = 0
    target: str = LATENCY
    seed: int = 0


def evaluate(request: EvaluationRequest) -> dict[str, Any]:
    """The scores of a request, overall, by hardware and by basis, as JSON holds them.

    Raises:
        UsageError: a table cannot be read, or the request cannot be answered.
    """
    return evaluated_cases(request)[0]


def evaluated_cases(request: EvaluationRequest) -> tuple[dict[str, Any], EvaluatedCases]:
    """The scores of a request, and the cases that they are of.

    Raises:
        UsageError: a table cannot be read, or the request cannot be answered.
    """
    _refuse(request)
    started = time.monotonic()
    train = [m for path in request.train for m in read_measurements(path, request.target)]
    test = read_measurements(request.test, request.target)
    table = None
    if request.graph_features is not None:
        table = GraphTable.of(read_graphs(request.graph_features))
    evaluation = _Evaluation(request, train, test, table)
    scores = evaluation.answer(started)
    return scores, evaluation.cases


def _refuse(request: EvaluationRequest) -> None:
    if request.target not in TARGETS:
        raise UsageError("--target takes latency or memory.", "Leave it out for latency.")
    if request.anchors < 0:
        raise UsageError("--anchors takes a number of measurements, 0 or more.")


class _Evaluation:
    """One request at work."""

    def __init__(
        self,
        request: EvaluationRequest,
        train: Sequence[TableMeasurement],
        test: Sequence[TableMeasurement],
        table: GraphTable | None,
    ) -> None:
        self.request, self.train, self.test, self.table = request, train, test, table
        number = len(test)
        self.basis = ["none"] * number
        self.predictions = Predictions(
            np.full(number, np.nan),
            np.full(number, np.nan),
            self.basis,
            np.zeros(number, dtype=bool),
        )
        self.methods: dict[str, str] = {}
        self.notes: list[str] = []

    def answer(self, started: float) -> dict[str, Any]:
        kinds = [m.configuration.kind for m in self.test]
        for kind in dict.fromkeys(kinds):
            rows = np.flatnonzero(np.array(kinds) == kind)
            self._predict_kind(kind, rows)
        self._note_absent_facts()
        if self.table is not None and not torch_is_here():
            self.notes.append("torch is not installed: predicted without an operator network")
        measured = np.array([m.value for m in self.test])
        hardware = [m.configuration.hardware for m in self.test]
        return {
            "target": self.request.target,
            "anchors": self.request.anchors,
            **score(self.predictions, measured, np.arange(len(self.test))),
            "per_hardware": score_by(self.predictions, measured, hardware),
            "per_basis": score_by(self.predictions, measured, self.predictions.basis),
            "per_mode": score_by(
                self.predictions, measured, [m.configuration.mode for m in self.test]
            ),
            **self._regret(),
            "methods": self.methods,
            "notes": self.notes,
            "seconds": round(time.monotonic() - started, 2),
        }

    @property
    def cases(self) -> EvaluatedCases:
        """The rows of the test table, by hardware."""
        return EvaluatedCases(
            self.request.target,
            self.predictions,
            np.array([m.value for m in self.test]),
            [m.model for m in self.test],
            [m.configuration.hardware for m in self.test],
        )

    def _regret(self) -> dict[str, Any]:
        """What choosing by the predictions costs; of memory nothing is chosen by."""
        if self.request.target != LATENCY:
            return {}
        return {"regret": regrets(self.train, self.test, self.predictions)}

    def _predict_kind(self, kind: str, rows: Ints) -> None:
        left = rows
        if self.table is not None and self.request.target == LATENCY and kind in _GRAPH_KINDS:
            task = predict_by_graph(
                self.train, self.test, rows, self.table, self.request.anchors,
                seed=self.request.seed,
            )  # fmt: skip
            if task is not None:
                self._fill(task.rows, task.predictions)
                self.methods[kind] = task.method
                left = np.setdiff1d(rows, task.rows)
        like = [m for m in self.train if m.configuration.kind == kind]
        on_grid = grid_rows(like, self.test, left)
        if len(on_grid):
            some, method = predict_by_grid(
                like, self.test, on_grid, self.request.anchors, self.request.seed
            )
            self._fill(on_grid, some)
            self.methods.setdefault(kind, method)
            left = np.setdiff1d(left, on_grid)
        if len(left):
            some = predict_by_table(
                self.train, self.test, left, self.request.target, self.request.seed,
                anchors=self.request.anchors, measured=rows[self.predictions.anchor[rows]],
            )  # fmt: skip
            self._fill(left, some)
            self.methods.setdefault(kind, tabular_method())
            if len(left) < len(rows):
                self.notes.append(f"{len(left)} rows of {kind} by {tabular_method()}")
            if self.request.anchors:
                self.notes.append(
                    f"{len(left)} rows of {kind}: anchors give a device's shift alone"
                )

    def _fill(self, rows: Ints, some: Predictions) -> None:
        for place, basis in zip(rows, some.basis, strict=True):
            self.basis[int(place)] = basis
        self.predictions.log_value[rows] = some.log_value
        self.predictions.half_width[rows] = some.half_width
        self.predictions.anchor[rows] = some.anchor

    def _note_absent_facts(self) -> None:
        trained = {m.configuration.hardware for m in self.train}
        absent = {
            m.configuration.hardware
            for m in self.test
            if m.configuration.kind in _GRAPH_KINDS
            and self.methods.get(m.configuration.kind) not in GRID_METHODS
            and m.configuration.hardware not in trained
            and facts_of(m.configuration.hardware) is None
        }
        self.notes += [f"no vendor peaks of {name}: taken for a middle one" for name in
                       sorted(absent)]  # fmt: skip

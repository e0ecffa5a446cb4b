"""The scores of served predictions: what folds leave out, and the numbers of a score."""

from __future__ import annotations

import pytest

from accelbench.predict.serving.models import MeasuredServer, ServingQuestion
from prediction.serving import Fold, folds, score, with_anchors


def server(model: str, system: str, users: int) -> MeasuredServer:
    question = ServingQuestion(model, system, "vllm", "fp8", 1024, 1024, float(users))
    return MeasuredServer(question, 10.0 * users, 1.0 * users)


POINTS = [
    server(model, system, users)
    for model in ("Qwen/Qwen3-8B", "Qwen/Qwen3-32B")
    for system in ("h100_sxm", "h200_sxm")
    for users in (1, 2, 4)
]


@pytest.mark.parametrize(("by", "known", "asked"), [("system", 6, 6), ("both", 3, 3)])
def test_folds_keep_what_is_left_out_from_the_learner(by, known, asked):
    for fold in folds(POINTS, by):
        assert (len(fold.known), len(fold.asked)) == (known, asked)
        systems = {point.question.system for point in fold.asked}
        assert len(systems) == 1
        assert systems.isdisjoint(point.question.system for point in fold.known)


def test_half_of_a_small_configuration_is_anchors():
    fold = with_anchors(Fold([], POINTS), 0)
    assert (len(fold.known), len(fold.asked)) == (4, 8)


def test_a_score_counts_errors_and_bands():
    found = score([(10.0, (5.0, 10.0, 20.0)), (10.0, (1.0, 5.0, 9.0)), (10.0, (9.0, 12.0, 13.0))])
    assert found == {
        "median_error": 20.0, "within_2x": 66.7, "coverage90": 66.7, "n": 3,
    }  # fmt: skip

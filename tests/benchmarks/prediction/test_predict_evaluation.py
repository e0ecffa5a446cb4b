"""From two tables to scores, with the network and without."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from accelbench.core.errors import UsageError
from predict_tables import made_up
from prediction import boosting, cross_fits, graph_evaluation, graph_predictor
from prediction.evaluation import EvaluationRequest, evaluate

pytestmark = pytest.mark.full

NAMES = {"n", "mdape", "mape", "within25", "coverage90"}


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return made_up(tmp_path_factory.mktemp("tables"))


@pytest.fixture
def fast(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither torch nor scikit-learn: ridge regression on the roofline's residual."""
    monkeypatch.setattr(graph_predictor, "torch_is_here", lambda: False)
    monkeypatch.setattr(graph_predictor, "sklearn_is_here", lambda: False)
    monkeypatch.setattr(boosting, "sklearn_is_here", lambda: False)


def scores(tables: dict[str, Path], test: str, **more: Any) -> dict[str, Any]:
    request = EvaluationRequest((tables["train"],), tables[test], tables["signatures"], **more)
    return evaluate(request)


@pytest.mark.parametrize("test", ["new_family", "new_card", "both_new"])
def test_without_torch_and_scikit_learn(tables, fast, test):
    found = scores(tables, test)
    assert found["methods"] == {"cuda": "ridge"}
    assert found["mdape"] < 20
    assert set(found) >= NAMES
    assert all(set(one) >= NAMES for one in found["per_hardware"].values())
    assert sum(one["n"] for one in found["per_hardware"].values()) == found["n"]


def test_with_the_network(tables, monkeypatch):
    pytest.importorskip("torch")
    monkeypatch.setattr(graph_evaluation, "FOLDS", 2)
    monkeypatch.setattr(cross_fits, "FOLD_TREES", 20)
    monkeypatch.setattr(cross_fits, "FOLD_EPOCHS", 5)
    found = scores(tables, "both_new")
    assert "operator network" in found["methods"]["cuda"]
    assert found["mdape"] < 10
    assert list(found["per_basis"]) == ["new model, new hardware"]


def test_choosing_by_predictions_is_scored_too(tables, fast):
    found = scores(tables, "new_family")["regret"]
    assert found["choices"] == 0  # one configuration a card
    cards = found["any_device"]
    assert cards["choices"] == 8
    assert cards["mean"] == cards["constant_mean"] == 0.0  # one card is always faster
    request = EvaluationRequest((tables["train"],), tables["new_family"], target="memory")
    assert "regret" not in evaluate(request)


def test_anchors_are_not_scored(tables, fast):
    without, with_three = scores(tables, "new_card"), scores(tables, "new_card", anchors=3)
    assert with_three["n"] == without["n"] - 3
    assert with_three["mdape"] < without["mdape"] + 1


def test_measured_figures_of_the_test_table_only_score(tables, fast, tmp_path):
    table = pq.read_table(tables["new_card"])
    doubled = pa.array(np.array(table["latency_ms"]) * 2)
    place = table.column_names.index("latency_ms")
    other = tmp_path / "doubled.parquet"
    pq.write_table(table.set_column(place, "latency_ms", doubled), other)
    before = scores(tables, "new_card")
    after = scores({**tables, "new_card": other}, "new_card")
    assert after["bias"] == pytest.approx((1 + before["bias"] / 100) * 50 - 100, abs=0.02)


def test_rows_without_a_graph_are_predicted_from_counts(tables, fast):
    found = evaluate(EvaluationRequest((tables["train"],), tables["new_family"]))
    assert found["methods"] == {"cuda": "ridge on tabular counts"} or "tabular" in str(found)
    assert found["n"] == 16
    assert found["mdape"] < 60


def test_memory_is_predicted_from_counts(tables, fast):
    request = EvaluationRequest((tables["train"],), tables["new_family"], target="memory")
    assert evaluate(request)["mdape"] < 15


def test_hardware_without_facts_is_named(tables, fast, tmp_path):
    table = pq.read_table(tables["new_card"])
    place = table.column_names.index("hardware_name")
    other = tmp_path / "unheard.parquet"
    names = pa.array(["NVIDIA Unheard 1"] * table.num_rows)
    pq.write_table(table.set_column(place, "hardware_name", names), other)
    found = scores({**tables, "new_card": other}, "new_card")
    assert found["notes"][-1].startswith("no vendor peaks of NVIDIA Unheard 1") or any(
        "NVIDIA Unheard 1" in note for note in found["notes"]
    )


@pytest.mark.parametrize(
    ("change", "says"),
    [({"target": "beauty"}, "latency or memory"), ({"anchors": -1}, "0 or more")],
)
def test_what_is_refused(tables, change, says):
    with pytest.raises(UsageError, match=says):
        scores(tables, "new_card", **change)


def test_a_file_that_is_no_table_is_refused(tables, tmp_path):
    other = tmp_path / "text.parquet"
    with pytest.raises(UsageError, match=r"There is no file .*text\.parquet"):
        scores({**tables, "new_card": other}, "new_card")
    other.write_text("no table")
    with pytest.raises(UsageError, match="cannot be read as Parquet"):
        scores({**tables, "new_card": other}, "new_card")
    pq.write_table(pa.table({"model": ["a"]}), other)
    with pytest.raises(UsageError, match="has no column hardware_name"):
        scores({**tables, "new_card": other}, "new_card")

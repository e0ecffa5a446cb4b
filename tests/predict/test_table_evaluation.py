"""From two tables to scores of the predictor that users ask."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from accelbench.core.errors import UsageError
from accelbench.predict.evaluation import TableRequest, evaluate_tables
from accelbench.predict.graph_file_models import operator_models
from predict_tables import made_up


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return made_up(tmp_path_factory.mktemp("tables"), a_family=3)


def scores(tables: dict[str, Path], test: str, **more: Any) -> dict[str, Any]:
    request = TableRequest((tables["train"],), tables[test], tables["signatures"], **more)
    return evaluate_tables(request)[0]


@pytest.mark.parametrize(
    ("test", "basis"),
    [
        ("new_family", "other models in this configuration"),
        ("new_card", "other configurations"),
        ("both_new", "other configurations"),
    ],
)
def test_a_law_is_learned_from_one_table_and_predicts_another(tables, test, basis):
    found = scores(tables, test)
    assert found["mdape"] < 20
    assert found["learned_from"] == 30
    assert sum(one["n"] for one in found["per_hardware"].values()) == found["n"]
    assert found["per_mode"]["inference"]["n"] == found["n"]
    assert list(found["per_basis"]) == [basis]


def test_memory_and_anchors(tables):
    assert scores(tables, "new_family", target="memory")["mdape"] < 25
    # Anchors are learned from and not scored.
    without, with_three = scores(tables, "new_card"), scores(tables, "new_card", anchors=3)
    assert with_three["n"] == without["n"] - 3
    assert with_three["learned_from"] == without["learned_from"] + 3
    assert with_three["mdape"] < without["mdape"] + 1


def test_measured_values_of_the_test_table_only_score(tables, tmp_path):
    table = pq.read_table(tables["new_card"])
    for name, by in (("latency_ms", 2.0), ("throughput", 0.5)):
        changed = pa.array(np.array(table[name]) * by)
        table = table.set_column(table.column_names.index(name), name, changed)
    pq.write_table(table, other := tmp_path / "doubled.parquet")
    before, after = scores(tables, "new_card"), scores({**tables, "new_card": other}, "new_card")
    assert after["bias"] == pytest.approx((1 + before["bias"] / 100) * 50 - 100, abs=0.02)


def test_models_without_operators_and_tables_of_them(tables):
    # Models without operators are counted and not predicted.
    with pytest.raises(UsageError, match="operators are known") as error:
        evaluate_tables(TableRequest((tables["train"],), tables["new_family"]))
    assert "--graph-features" in error.value.advice
    # A table of operators describes a model at each size.
    model = operator_models(tables["signatures"])["wide_0"]
    assert model.passes is not None
    (passed,) = model.passes.values()
    rows = [row for row in pq.read_table(tables["signatures"]).to_pylist()
            if row["model"] == "wide_0"]  # fmt: skip
    assert passed.sums.macs.sum() == sum(row["macs"] * row["count"] for row in rows)
    assert passed.weights == sum(row["weight_elements"] * row["count"] for row in rows)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"target": "beauty"}, "latency or memory"),
        ({"anchors": -1}, "0 or more"),
        ({"test": "absent.parquet"}, "absent.parquet"),
        ({"graph_features": "absent.parquet"}, "no file"),
    ],
)
def test_what_cannot_be_evaluated_is_a_sentence(tables, change, says):
    given: dict[str, Any] = {"test": tables["new_card"], "graph_features": tables["signatures"]}
    given |= {name: Path(value) if name not in {"target", "anchors"} else value
              for name, value in change.items()}  # fmt: skip
    with pytest.raises(UsageError, match=says):
        evaluate_tables(TableRequest((tables["train"],), **given))

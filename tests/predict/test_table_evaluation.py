"""From two tables to scores of the predictor that users ask."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from made_up_cases import made_case, true_ms

from accelbench.core.errors import UsageError
from accelbench.predict.case_predictor import CaseFeatures, fit_predictors
from accelbench.predict.cases import CaseConfiguration, MeasuredCase, kind_of
from accelbench.predict.evaluation import TableRequest, evaluate_tables
from accelbench.predict.graph_file_models import (
    FOLDER,
    keep_operators,
    kept_operators,
    operator_models,
)
from predict_tables import made_up


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return made_up(tmp_path_factory.mktemp("tables"), a_family=3)


@pytest.fixture
def answer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., dict[str, Any]]:
    """The JSON document of a command over a database."""
    from accelbench.cli.main import app

    def ask(*words: str) -> dict[str, Any]:
        with pytest.raises(SystemExit) as ended:
            app([*words, "--json", "--db", str(tmp_path / "db.duckdb")])
        assert ended.value.code in (0, None)
        content: dict[str, Any] = json.loads(capsys.readouterr().out)
        return content

    return ask


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


def test_a_store_predicts_models_of_a_table_of_operators(tables, answer):
    """By the commands that a user types: import, then name an unseen model of the table."""
    answer("db", "import", "tidy", str(tables["train"]))
    hidden = pq.read_table(tables["new_family"]).to_pylist()
    named = [row["model"] for row in hidden[:3]]
    batch, card = hidden[0]["batch_size"], hidden[0]["hardware_name"]
    about = ("--hardware", card, "--batch-sizes", str(batch))
    first = answer("predict", *named, *about, "--graph-features", str(tables["signatures"]))
    again = answer("predict", *named, *about)
    assert again["predictions"] == first["predictions"]
    assert first["learned_from"] == 30
    here = [row for row in hidden if (row["batch_size"], row["hardware_name"]) == (batch, card)]
    true = {row["model"].split(".")[0]: row["latency_ms"] for row in here}
    for entry in first["predictions"]:
        assert entry["basis"] == "other models in this configuration"
        assert entry["latency_ms"] == pytest.approx(true[entry["model"]], rel=0.5)


def test_results_of_phones_do_not_move_predictions_of_cards():
    card = CaseConfiguration("cuda", "NVIDIA GeForce RTX 4090", "pytorch", "fp32", "inference")
    phone = CaseConfiguration("qnn", "Samsung Galaxy S24", "onnxruntime", "fp32", "inference")
    assert kind_of(card) != kind_of(phone)
    rng = np.random.default_rng(0)
    cards = [made_case(number, card, batch) for number in range(12) for batch in (1, 8)]
    phones = [made_case(number, phone) for number in range(12)]
    known = {entry.case: entry for entry in (*cards, *phones)}
    results = [MeasuredCase(entry.case, true_ms(entry), None) for entry in cards]
    noisy = [MeasuredCase(entry.case, float(rng.lognormal(3, 2)), None) for entry in phones]
    asked = CaseFeatures.of([made_case(30, card, 4)], "latency")
    alone, both = (
        fit_predictors(some, known, "latency").predict(asked)
        for some in (results, [*results, *noisy])
    )
    assert both.value == pytest.approx(alone.value)
    assert both.high == pytest.approx(alone.high)


def test_models_of_an_installed_package_are_traced_by_name(tables, tmp_path, answer, monkeypatch):
    torch = pytest.importorskip("torch")

    def create_model(name: str, pretrained: bool) -> Any:
        assert not pretrained
        if name == "unpicturable":
            raise RuntimeError("it takes no picture")
        return torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.ReLU())

    timm = ModuleType("timm")
    names = ["wide_0", "unseen_net", "unpicturable"]
    monkeypatch.setattr(timm, "list_models", lambda: names, raising=False)
    monkeypatch.setattr(timm, "create_model", create_model, raising=False)
    monkeypatch.setitem(sys.modules, "timm", timm)
    answer("db", "import", "tidy", str(tables["train"]))
    made = answer("predict", "Unseen-Net", "--hardware", "RTX 4090", "--graph-features", "timm")
    assert {entry["model"] for entry in made["predictions"]} == {"unseen_net"}
    # Of the table's models the package has one, and it is learned from.
    rows = pq.read_table(tables["train"]).to_pylist()
    assert made["learned_from"] == sum(row["model"].split(".")[0] == "wide_0" for row in rows)
    traced = kept_operators(tmp_path / "db.duckdb")
    assert set(traced) == {"wide_0", "unseen_net"}
    (passed,) = (traced["unseen_net"].passes or {}).values()
    side = 224 - 2
    assert passed.sums.macs.sum() == side * side * 8 * 3 * 9


@pytest.mark.parametrize(
    ("column", "value"),
    [("macs", -1), ("macs", None), ("count", 0), ("img_size", -5), ("op_class", "frobnicate"),
     ("model", None)],
)  # fmt: skip
def test_rows_that_are_no_operators_are_refused(tables, tmp_path, column, value):
    table = pq.read_table(tables["signatures"])
    values = [value, *table[column].to_pylist()[1:]]
    table = table.set_column(table.column_names.index(column), column, pa.array(values))
    pq.write_table(table, path := tmp_path / "ops.parquet")
    with pytest.raises(UsageError, match=r"Row 1 of ops\.parquet"):
        operator_models(path)
    pq.write_table(table.slice(0, 0), empty := tmp_path / "none.parquet")
    with pytest.raises(UsageError, match="no operators"):
        operator_models(empty)


def test_a_damaged_kept_table_is_named_with_a_remedy(tables, tmp_path):
    database = tmp_path / "db.duckdb"
    keep_operators(tables["signatures"], database)
    (kept,) = (tmp_path / FOLDER).glob("*.parquet")
    kept.write_bytes(kept.read_bytes()[:100])
    with pytest.raises(UsageError) as error:
        kept_operators(database)
    assert str(kept) in error.value.message
    assert "--graph-features" in error.value.advice

"""Models of which only the name is known: what their results on other devices tell."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from accelbench.cli.main import app
from accelbench.core.case import Shapes
from accelbench.core.errors import UsageError
from accelbench.predict.case_predictions import Basis
from accelbench.predict.case_predictor import PredictorsByKind, grids_of
from accelbench.predict.cases import NAME_ONLY, CaseConfiguration, MeasuredCase, PredictedCase
from accelbench.predict.evaluation import TableRequest, evaluate_tables
from predict_tables import made_up

MODELS, DEVICES, HIDDEN = 24, 12, 3


def row(model: int, device: int, latency: float) -> dict[str, Any]:
    return {
        "source": "made up", "model": f"net-{model}", "family": "nets",
        "hardware_name": f"board {device}", "hardware_kind": "cpu", "framework": "engine",
        "runtime": "engine", "precision": "fp32", "batch_size": 1, "img_size": 224,
        "mode": "inference", "latency_ms": latency, "throughput": 1e3 / latency,
        "memory_mb": latency * 3, "extra": json.dumps({"num_threads": 4}),
    }  # fmt: skip


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    """Two hidden traits of boards, to which models answer differently."""
    rng = np.random.default_rng(0)
    level, answer = rng.normal(3, 1, MODELS), rng.normal(0, 0.3, (MODELS, 2))
    shift, trait = rng.normal(0, 0.5, DEVICES), rng.normal(0, 1, (DEVICES, 2))
    log_ms = level[:, None] + shift + answer @ trait.T + rng.normal(0, 0.01, (MODELS, DEVICES))
    return [row(m, d, float(np.exp(log_ms[m, d]))) for m in range(MODELS) for d in range(DEVICES)]


def scores(rows: list[dict[str, Any]], out: set[int], folder: Path, **more: Any) -> dict[str, Any]:
    tables = {}
    for name, hidden in (("train", False), ("test", True)):
        some = [one for number, one in enumerate(rows) if (number in out) is hidden]
        pq.write_table(pa.Table.from_pylist(some), path := folder / f"{name}.parquet")
        tables[name] = path
    return evaluate_tables(TableRequest((tables["train"],), tables["test"], **more))[0]


def of_device(rows: list[dict[str, Any]], device: int) -> set[int]:
    name = f"board {device}"
    return {n for n, one in enumerate(rows) if one["hardware_name"] == name}


@pytest.mark.parametrize("target", ["latency", "memory"])
def test_empty_cells_are_predicted_from_other_devices(rows, tmp_path, target):
    out = set(np.random.default_rng(1).choice(len(rows), 40, replace=False).tolist())
    found = scores(rows, out, tmp_path, target=target)
    assert found["n"] == 40
    assert found["mdape"] < 12
    assert list(found["per_basis"]) == [Basis.ELSEWHERE]


def test_a_few_results_of_a_new_device_tell_the_others(rows, tmp_path):
    out = of_device(rows, HIDDEN)
    without, anchored = (scores(rows, out, tmp_path, anchors=count) for count in (0, 8))
    assert list(without["per_basis"]) == [Basis.OTHER_CONFIGURATIONS]
    assert anchored["n"] == MODELS - 8
    assert anchored["mdape"] < min(15, without["mdape"] / 2)
    assert anchored["coverage90"] > 60


def test_models_that_no_other_device_ran_are_counted_and_not_predicted(rows, tmp_path):
    alone = [*rows, row(99, HIDDEN, 5.0)]
    found = scores(alone, of_device(alone, HIDDEN), tmp_path)
    assert found["n"] == MODELS
    assert any(note.startswith("1 results") and "net-99" in note for note in found["notes"])
    with pytest.raises(UsageError, match="operators are known"):
        scores(rows, {n for n, one in enumerate(rows) if one["model"] == "net-1"}, tmp_path)


def named_cases(rows: list[dict[str, Any]], platform: str) -> list[MeasuredCase]:
    return [
        MeasuredCase(
            PredictedCase(
                one["model"], NAME_ONLY, Shapes(1, image=224),
                CaseConfiguration(platform, one["hardware_name"], "engine", "fp32", "inference"),
            ),
            one["latency_ms"], None,
        )
        for one in rows
    ]  # fmt: skip


def test_platforms_do_not_move_one_another(rows):
    boards = named_cases(rows, "cpu")
    cards = named_cases([{**one, "latency_ms": one["latency_ms"] ** 2} for one in rows], "cuda")
    hidden = [entry for entry in cards if entry.case.configuration.device == "board 3"]
    known = [entry for entry in cards if entry not in hidden[5:]]
    alone, both = (
        PredictorsByKind("latency", {}, grids_of(some, "latency"))
        for some in (known, [*known, *boards])
    )
    asked = [entry.case for entry in hidden[5:]]
    first, second = (one.grids["cuda"].predict(asked) for one in (alone, both))
    assert np.array_equal(first.value, second.value)
    assert np.array_equal(first.high, second.high)
    assert both.is_answerable([*asked, boards[0].case]) == [True] * (len(asked) + 1)
    assert alone.is_answerable([boards[0].case]) == [False]


def test_a_name_is_predicted_by_the_commands_of_a_user(rows, tmp_path, capsys):
    def answer(*words: str) -> dict[str, Any]:
        with pytest.raises(SystemExit) as ended:
            app([*words, "--json", "--db", str(tmp_path / "db.duckdb")])
        assert ended.value.code in (0, None)
        content: dict[str, Any] = json.loads(capsys.readouterr().out)
        return content

    kept = [one for n, one in enumerate(rows) if (n % DEVICES, n // DEVICES) != (HIDDEN, 7)]
    pq.write_table(pa.Table.from_pylist(kept), path := tmp_path / "table.parquet")
    answer("db", "import", "tidy", str(path))
    about = ("predict", "NET-7", "--hardware", f"board {HIDDEN}")
    first = answer(*about, "--batch-sizes", "1,8")
    (made,) = first["predictions"]
    assert made["basis"] == Basis.ELSEWHERE
    assert (made["model"], made["family"], made["batch_size"]) == ("net-7", NAME_ONLY, 1)
    true = rows[7 * DEVICES + HIDDEN]["latency_ms"]
    assert made["latency_ms"] == pytest.approx(true, rel=0.3)
    assert made["latency_low_ms"] < made["latency_ms"] < made["latency_high_ms"]
    assert made["memory_mb"] == pytest.approx(3 * true, rel=0.3)
    assert made["rests_on"] == ["imported"]
    assert made["held_out_of"].endswith("devices of cpu")
    assert first["learned_from"] == len(kept)
    assert answer(*about)["predictions"] == first["predictions"]
    other = [{**rows[7 * DEVICES + HIDDEN], "source": "another"}]
    pq.write_table(pa.Table.from_pylist(other), path)
    answer("db", "import", "tidy", str(path))
    (measured,) = answer(*about)["predictions"]
    assert measured["basis"] == "this case, measured by others"


def test_models_of_both_sorts_are_answered_together(rows, tmp_path, capsys):
    tables = made_up(tmp_path, a_family=3)
    pq.write_table(pa.Table.from_pylist(rows), boards := tmp_path / "boards.parquet")
    database = ("--db", str(tmp_path / "db.duckdb"), "--json")
    said = []
    for words in (
        ("db", "import", "tidy", str(tables["train"])),
        ("predict", "wide_0", "--graph-features", str(tables["signatures"])),
        ("db", "import", "tidy", str(boards)),
        ("predict", "wide_0"),
        ("predict", "wide_0", "net-7"),
    ):
        with pytest.raises(SystemExit):
            app([*words, *database])
        said.append(json.loads(capsys.readouterr().out))
    alone, after, both = said[1], said[3], said[4]
    assert after["predictions"] == alone["predictions"]
    assert {one["model"] for one in both["predictions"]} == {"wide_0", "net-7"}
    assert [one for one in both["predictions"] if one["model"] == "wide_0"] == alone["predictions"]

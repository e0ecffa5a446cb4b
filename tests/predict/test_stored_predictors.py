"""Trained predictors beside a database: kept, read, fitted anew when it has more to say."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from stored_results import measured_store

from accelbench.core.calibration import CalibratedLimits
from accelbench.predict import stored_predictors
from accelbench.predict import traces as traces_module
from accelbench.predict.case_predictor import CaseFeatures, CasePredictor
from accelbench.predict.evaluation import own_cases, own_scores
from accelbench.predict.graph_file_models import TableModels
from accelbench.predict.stored_cases import kept_cases, stored_cases
from accelbench.predict.stored_predictors import FOLDER, kept_predictors, predictors_of
from accelbench.predict.terms import TracedCase
from accelbench.predict.traces import Traces


@pytest.fixture(autouse=True)
def without_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Analytic costs stand in: these tests are of what is kept, not of what is traced."""
    monkeypatch.setattr(traces_module, "torch_is_here", lambda: False)


def test_what_counts_is_the_newest_usable_run_of_what_was_measured(tmp_path):
    database = measured_store(
        tmp_path / "db.duckdb",
        {"latency_mean_ms": 10.0, "started_at": "2026-01-01T00:00:00.000000Z", "run_id": "old"},
        {"latency_mean_ms": 6.0, "started_at": "2026-02-01T00:00:00.000000Z"},
        {"latency_mean_ms": 8.0, "started_at": "2026-02-01T00:00:01.000000Z", "launch": 1},
        {"model": "gpt2", "status": "failed"},
        {"model": "vit-base", "provenance": "simulated"},
        {"model": "t5-small", "quality": "unusable"},
        {"model": "somebody-elses"},
    )
    stored = stored_cases(database)
    assert [(m.case.model, m.latency_ms) for m in stored.cases] == [("bert-tiny", 7.0)]
    assert stored.without_operators == {"somebody-elses": 1}


def test_a_case_whose_launches_scatter_is_not_learned_from(tmp_path):
    def launches(model: str, *times: float) -> list[dict[str, Any]]:
        return [
            {"model": model, "sequence_length": None, "latency_mean_ms": ms, "launch": number}
            for number, ms in enumerate(times)
        ]

    database = measured_store(
        tmp_path / "db.duckdb",
        *launches("resnet-50", 10.0, 20.0),
        *launches("resnet-tiny", 10.0, 12.0),
        *launches("vit-base", 10.0, 10.1, 10.2, 10.3, 60.0),  # one outlier of five
        *launches("vit-tiny", 1.0, 2.0, 4.0, 8.0, 16.0),
    )
    stored = stored_cases(database)
    assert {case.case.model for case in stored.cases} == {"resnet-tiny", "vit-base"}
    assert stored.scattered == 2


def test_a_kept_predictor_says_the_same_without_learning_again(tmp_path):
    database = measured_store(tmp_path / "db.duckdb", *_batches(range(1, 9)))
    heard: list[str] = []
    kept = Traces(tmp_path / "traces")
    first = predictors_of(database, kept, hear=heard.append)
    second = predictors_of(database, kept, hear=heard.append)
    assert (first.fitted, second.fitted, len(heard)) == (True, False, 1)
    case = first.stored.cases[0].case
    features = CaseFeatures.of([TracedCase(case, kept.of(case.model, case.shapes))], "latency")
    before, after = (p.of["latency"].predict(features) for p in (first, second))
    assert after.value == pytest.approx(before.value)
    assert after.high == pytest.approx(before.high)


def test_what_is_learned_without_traces_is_kept_for_those_who_trace_nothing(tmp_path):
    rows = [{"batch_size": batch, "sequence_length": 77} for batch in range(1, 9)]
    database = measured_store(tmp_path / "db.duckdb", *rows)

    def learned(*, trace: bool) -> tuple[bool, set[str]]:
        traces = Traces(tmp_path / "traces", trace=trace)
        return predictors_of(database, traces).fitted, traces.left_out

    # That its operators are not known is said of a model as it was when it was learned from.
    assert learned(trace=False) == (True, {"bert-tiny"})
    assert learned(trace=False) == (False, {"bert-tiny"})
    assert learned(trace=True)[0]  # who can trace has none of it
    assert learned(trace=False) == (False, set())  # and what that was learned from goes before


def test_errors_on_unseen_models_are_kept_and_not_calculated_again(tmp_path, monkeypatch):
    rows = [
        {"model": model, "series_key": f"{model} {batch}", **row}
        for model in ("bert-tiny", "distilbert-tiny", "bert-base")
        for batch, row in zip((1, 4), _batches([1, 4]), strict=True)
    ]
    database = measured_store(tmp_path / "db.duckdb", *rows)
    kept = Traces(tmp_path / "traces")
    first = own_scores(own_cases(predictors_of(database, kept).of))
    monkeypatch.delattr(CasePredictor, "errors_of_unseen_models")
    same = kept_predictors(database, stored_cases(database))
    assert same is not None
    assert own_scores(own_cases(same.of)) == first
    assert first["latency"]["n"] == 6


def test_of_one_model_no_error_is_known(tmp_path):
    database = measured_store(tmp_path / "db.duckdb", *_batches([1, 2]))
    predictors_of(database, Traces(tmp_path / "traces"))
    same = kept_predictors(database, stored_cases(database))
    assert same is not None
    assert own_scores(own_cases(same.of))["latency"]["n"] == 0


def test_what_is_fitted_for_a_look_is_not_kept(tmp_path):
    database = measured_store(tmp_path / "db.duckdb", *_batches([1, 2]))
    kept = Traces(tmp_path / "traces")
    assert kept_predictors(database, stored_cases(database)) is None
    assert predictors_of(database, kept, keep=False).fitted
    assert not (tmp_path / FOLDER).exists()


def test_the_file_holds_no_code_and_names_what_it_learned_from(tmp_path):
    database = measured_store(tmp_path / "db.duckdb", *_batches(range(1, 4)))
    learned = predictors_of(database, Traces(tmp_path / "traces"))
    with np.load(tmp_path / FOLDER / "db.duckdb.npz", allow_pickle=False) as content:
        about = json.loads(bytes(content["about"]))
        assert about["learned_from"] == learned.learned_from
        assert [entry["kind"] for entry in about["predictors"]] == ["CPU", "CPU"]
        assert len(content["latency/CPU/terms"]) == 3


def test_new_measurements_are_learned_from(tmp_path):
    database = measured_store(tmp_path / "db.duckdb", *_batches(range(1, 4)))
    kept = Traces(tmp_path / "traces")
    first = predictors_of(database, kept)
    database = measured_store(tmp_path / "db.duckdb", *_batches([16]), run="later")
    second = predictors_of(database, kept)
    assert second.fitted
    assert second.learned_from != first.learned_from
    assert len(second.of["latency"]) == 4


@pytest.mark.parametrize("content", ["", "{", "[]", '{"version": 0}', '{"version": 1}'])
def test_a_file_that_is_none_is_fitted_anew(tmp_path, content):
    database = measured_store(tmp_path / "db.duckdb", *_batches([1, 2]))
    (tmp_path / FOLDER).mkdir()
    (tmp_path / FOLDER / "db.duckdb.npz").write_text(content)
    assert predictors_of(database, Traces(tmp_path / "traces")).fitted


def test_a_folder_that_cannot_be_written_is_said_and_nothing_is_lost(tmp_path):
    database = measured_store(tmp_path / "db.duckdb", *_batches([1, 2]))
    (tmp_path / FOLDER).write_text("a file stands where the folder would be")
    learned = predictors_of(database, Traces(tmp_path / "traces"))
    assert "could not be kept" in learned.notes[0]
    assert len(learned.of["memory"]) == 2


def _batches(batches: object) -> list[dict[str, object]]:
    return [
        {"batch_size": batch, "latency_mean_ms": 2.0 + batch, "memory_peak_mb": 100.0 + batch}
        for batch in batches
    ]


def test_sums_of_configurations_and_models_that_are_unlike_are_kept(tmp_path):
    database = measured_store(tmp_path / "db.duckdb", *_batches([1, 2, 4]))
    kept = Traces(tmp_path / "traces")
    first = predictors_of(database, kept).of["memory"].of["CPU"]
    second = predictors_of(database, kept)
    assert not second.fitted
    read = second.of["memory"].of["CPU"]
    (configuration,) = first.rooflines.of
    assert read.rooflines.of[configuration].theta == pytest.approx(
        first.rooflines.of[configuration].theta
    )
    assert read.unlike == first.unlike


@pytest.mark.parametrize("damage", ["cut", "changed"])
def test_a_damaged_file_is_learned_anew(tmp_path, damage):
    database = measured_store(tmp_path / "db.duckdb", *_batches([1, 2, 4]))
    kept = Traces(tmp_path / "traces")
    predictors_of(database, kept)
    path = tmp_path / FOLDER / "db.duckdb.npz"
    content = bytearray(path.read_bytes())
    at = content.index(b"learned_from") + 20
    content[at] ^= 1
    path.write_bytes(content[: len(content) // 2] if damage == "cut" else content)
    assert predictors_of(database, kept).fitted


def test_databases_of_one_stem_have_files_of_their_own(tmp_path):
    kept = Traces(tmp_path / "traces")
    for name in ("r.duckdb", "r.db"):
        predictors_of(measured_store(tmp_path / name, *_batches([1, 2])), kept)
    assert len(list((tmp_path / FOLDER).glob("*.npz"))) == 2


def test_cases_are_read_anew_after_each_change_of_the_store(tmp_path):
    database = measured_store(tmp_path / "db.duckdb", *_batches([1, 2]))
    read, kept = (kept_cases(database, TableModels()) for _ in range(2))
    assert kept.cases == read.cases
    assert kept.digest == read.digest
    (tmp_path / FOLDER / "db.duckdb-cases.json").write_text("{")
    assert kept_cases(database, TableModels()).cases == read.cases
    measured_store(tmp_path / "db.duckdb", *_batches([4]), run="later")
    assert len(kept_cases(database, TableModels()).cases) == 3


def test_what_is_said_of_the_learning_is_said_again(tmp_path, monkeypatch):
    monkeypatch.setattr(stored_predictors, "MOST_CASES", 2)
    database = measured_store(tmp_path / "db.duckdb", *_batches([1, 2, 4]))
    kept = Traces(tmp_path / "traces")
    first, second = predictors_of(database, kept), predictors_of(database, kept)
    assert not second.fitted
    assert first.notes == second.notes != ()


def test_a_stale_predictor_serves_only_with_the_limits_that_it_was_fitted_with(
    tmp_path, monkeypatch
):
    database = measured_store(tmp_path / "db.duckdb", *_batches([1, 2, 4]))
    kept = Traces(tmp_path / "traces")
    predictors_of(database, kept)
    measured_store(tmp_path / "db.duckdb", *_batches([8]), run="later")
    assert not predictors_of(database, kept, stale=True).fitted
    limits = CalibratedLimits("cpu", "A processor", "2026-01-01T00:00:00Z", {"fp32": 1e11}, 1e10)
    monkeypatch.setattr(
        stored_predictors, "stored_limits", lambda _: {("cpu", "A processor"): limits}
    )
    assert predictors_of(database, kept, stale=True).fitted


def test_one_case_that_is_stored_in_two_ways_is_one(tmp_path):
    database = measured_store(
        tmp_path / "db.duckdb",
        {"latency_mean_ms": 9.0},
        {"latency_mean_ms": 7.0, "sequence_length": None, "run_id": "later",
         "started_at": "2026-03-01T00:00:00.000000Z"},
    )  # fmt: skip
    (case,) = stored_cases(database).cases
    assert case.latency_ms == 7.0


def test_what_was_measured_here_goes_before_what_others_measured(tmp_path):
    database = measured_store(
        tmp_path / "db.duckdb",
        {"latency_mean_ms": 9.0, "device_fingerprint": "ours"},
        {"latency_mean_ms": 90.0, "device_fingerprint": "theirs", "provenance": "imported",
         "run_id": "later", "started_at": "2026-03-01T00:00:00.000000Z"},
    )  # fmt: skip
    stored = stored_cases(database)
    assert [case.latency_ms for case in stored.cases] == [9.0]
    assert stored.several == ("A processor",)


def test_a_result_without_a_moment_is_learned_from(tmp_path):
    database = measured_store(tmp_path / "db.duckdb", {"started_at": None})
    assert len(stored_cases(database).cases) == 1


def test_the_current_measurement_is_learned_from_and_not_the_newest_run(tmp_path):
    five = [{"latency_mean_ms": 8.0, "quality": "converged"} for _ in range(5)]
    later = {"run_id": "later", "started_at": "2026-03-01T00:00:00.000000Z", "latency_mean_ms": 2.0}
    database = measured_store(tmp_path / "db.duckdb", *five, later)
    assert [case.latency_ms for case in stored_cases(database).cases] == [8.0]
    newer = [{**later, "run_id": "newest", "quality": "converged"} for _ in range(5)]
    measured_store(tmp_path / "db.duckdb", *newer)
    assert [case.latency_ms for case in stored_cases(database).cases] == [2.0]

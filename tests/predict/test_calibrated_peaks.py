"""Measured peaks in predictions: before a vendor's, and before those of a typical device."""

from __future__ import annotations

from dataclasses import replace

import pytest
from made_up_cases import made_case
from stored_results import measured_store

from accelbench.core.calibration import CalibratedLimits
from accelbench.core.case import Shapes
from accelbench.core.protocols import Device
from accelbench.predict import traces as traces_module
from accelbench.predict.answers import PredictionAnswer, answer
from accelbench.predict.cases import CaseConfiguration, PredictedCase
from accelbench.predict.stored_predictors import predictors_of
from accelbench.predict.terms import PRODUCT_TERMS, facts_for, peaks_are_known, time_terms
from accelbench.predict.traces import Traces
from accelbench.store.database import Database
from made_up_calibration import calibrated_store, made_calibration

HERE = CaseConfiguration("cpu", "A processor", "pytorch", "fp32", "inference")
CARD = CaseConfiguration("cuda", "NVIDIA H100 80GB HBM3", "pytorch", "bf16", "inference")


@pytest.fixture(autouse=True)
def without_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(traces_module, "torch_is_here", lambda: False)


def limits(
    platform: str = "cpu", name: str = "A processor", **peaks: float
) -> dict[tuple[str, str], CalibratedLimits]:
    measured = CalibratedLimits(platform, name, "2026-03-04T05:06:07Z", peaks, 20e9)
    return {(platform, name): measured}


def test_whose_peaks_go_first():
    # Measured peaks go before a middle device.
    calibrated = limits(fp32=250e9)
    assert facts_for(HERE).peak("fp32") == 1.0
    facts = facts_for(HERE, calibrated)
    assert (facts.peak("fp32"), facts.bandwidth, facts.source) == (
        0.25,
        20.0,
        "measured 2026-03-04",
    )
    assert not peaks_are_known(HERE)
    assert peaks_are_known(HERE, calibrated)
    # Measured peaks go before a vendors.
    calibrated = limits("cuda", CARD.device, fp32=50e12, bf16=700e12)
    assert facts_for(CARD).peak("bf16") == 989.5
    assert facts_for(CARD, calibrated).peak("bf16") == 700.0
    assert facts_for(replace(CARD, precision="amp-bf16"), calibrated).peak("amp-bf16") == 700.0
    assert facts_for(replace(CARD, precision="fp32"), calibrated).peak("fp32") == 50.0
    # Another device and another platform keep theirs.
    calibrated = limits("cuda", CARD.device, fp32=50e12)
    for place in (HERE, replace(CARD, device="NVIDIA H200"), replace(CARD, hardware="rocm")):
        assert facts_for(place, calibrated) == facts_for(place)


def test_peaks_of_engines_and_precisions():
    # Engines on the same cpu have its peaks.
    calibrated = limits(fp32=250e9)
    openvino = replace(HERE, hardware="openvino", runtime="openvino")
    assert facts_for(openvino, calibrated).peak("fp32") == 0.25
    # fp16 without a unit for it: 1 % of fp32 in PyTorch, fp32 in ONNX Runtime.
    calibrated = limits(fp32=250e9, fp16=2e9)
    half = replace(HERE, precision="fp16")
    assert facts_for(half, calibrated).peak("fp16") == pytest.approx(0.002)
    other = replace(half, runtime="onnxruntime")
    assert facts_for(other, calibrated).peak("fp16") == 0.25
    int8 = replace(HERE, precision="int8")
    assert facts_for(int8, limits(fp32=250e9)).peak("int8") == 0.25


def test_terms_of_time_are_at_the_measured_peaks():
    case = made_case(1, HERE)
    middle, measured = (time_terms([case], known)[0] for known in ({}, limits(fp32=250e9)))
    assert measured[0] == pytest.approx(4 * middle[0])  # 1.0 and 0.25 TFLOP/s
    assert measured[-2] == pytest.approx(middle[-2] * 50 / 20)  # GB/s
    assert measured[-1] == middle[-1]  # launches


def answered(database: Database | None, place: CaseConfiguration) -> PredictionAnswer:
    traces = Traces(trace=False)
    known = predictors_of(database, traces)
    case = PredictedCase("bert-tiny", "embedding", Shapes(1, sequence=128), place)
    return answer([case], known.of, known.stored.cases, traces, known.calibrated)


def test_a_calibrated_device_is_no_middle_one_and_its_basis_says_so(tmp_path):
    before = answered(None, HERE)
    assert any(note.startswith("no peaks of A processor") for note in before.notes)
    assert before.figures[0]["basis"] == "peaks of a typical device"
    database = calibrated_store(tmp_path / "a.duckdb", made_calibration(fp32=1e9, bandwidth=1e9))
    after = answered(database, HERE)
    assert not any(note.startswith("no peaks") for note in after.notes)
    assert after.figures[0]["basis"] == "measured peaks alone"
    assert after.figures[0]["latency_ms"] > 3 * before.figures[0]["latency_ms"]


def test_another_device_of_that_database_is_still_a_middle_one(tmp_path):
    database = calibrated_store(tmp_path / "a.duckdb", made_calibration())
    elsewhere = answered(database, replace(HERE, device="Another"))
    assert any(note.startswith("no peaks of Another") for note in elsewhere.notes)
    assert elsewhere.figures[0]["basis"] == "peaks of a typical device"


def test_several_devices_without_peaks_are_counted_and_a_document_names_them():
    traces = Traces(trace=False)
    known = predictors_of(None, traces)
    places = [
        replace(HERE, hardware=kind, device=name)
        for kind, name in (("cpu", "One"), ("cpu", "Two"), ("npu", "Three"))
    ]
    cases = [PredictedCase("bert-tiny", "embedding", Shapes(1, sequence=128), p) for p in places]
    several = answer(cases, known.of, known.stored.cases, traces, known.calibrated)
    (brief,) = [note for note in several.brief_notes if note.startswith("no peaks of")]
    assert brief.startswith("no peaks of 3 devices are documented")
    assert "(2 on cpu, 1 on npu)" in brief
    named = [note for note in several.to_dict()["notes"] if note.startswith("no peaks of")]
    assert [note.split()[3] for note in named] == ["One", "Two", "Three"]
    assert brief not in several.notes
    alone = answer(cases[:1], known.of, known.stored.cases, traces, known.calibrated)
    assert alone.brief_notes == alone.notes


def test_a_kept_predictor_is_fitted_anew_after_a_calibration(tmp_path):
    rows = [{"batch_size": n, "latency_mean_ms": 2.0 + n} for n in range(1, 5)]
    database = measured_store(tmp_path / "db.duckdb", *rows)
    kept = Traces(tmp_path / "traces")
    first = predictors_of(database, kept)
    assert not predictors_of(database, kept).fitted
    calibrated_store(tmp_path / "db.duckdb", made_calibration(fp32=250e9))
    second = predictors_of(database, kept)
    assert second.fitted
    assert second.learned_from != first.learned_from
    # The terms that it keeps are at the measured peaks.
    terms = [known.of["latency"].of["CPU"].known.terms[0] for known in (first, second)]
    products = [values[:PRODUCT_TERMS].sum() for values in terms]
    assert products[1] == pytest.approx(4 * products[0])
    assert not predictors_of(database, kept).fitted


def test_a_calibration_of_the_same_limits_teaches_nothing_new(tmp_path):
    rows = [{"batch_size": n, "latency_mean_ms": 2.0 + n} for n in range(1, 5)]
    database = measured_store(tmp_path / "db.duckdb", *rows)
    kept = Traces(tmp_path / "traces")
    calibrated_store(tmp_path / "db.duckdb", made_calibration())
    predictors_of(database, kept)
    calibrated_store(tmp_path / "db.duckdb", made_calibration(day="2026-03-09"))
    assert not predictors_of(database, kept).fitted


def test_a_calibrated_card_without_a_document_can_be_predicted(tmp_path):
    card = Device("cuda", "A card of 2031")
    database = calibrated_store(
        tmp_path / "a.duckdb", made_calibration(card, fp32=90e12, bandwidth=3e12)
    )
    there = answered(database, replace(CARD, device=card.name, precision="fp32"))
    assert there.figures[0]["basis"] == "measured peaks alone"

"""First token and the tokens after it: predicted apart, from what was measured of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from stored_results import measured_store

from accelbench.core.case import Shapes
from accelbench.models.find import find
from accelbench.models.inputs import settle
from accelbench.predict.answers import RequestTerm, answer, brought_to
from accelbench.predict.cases import CaseConfiguration, PredictedCase
from accelbench.predict.evaluation import own_cases
from accelbench.predict.positive_sum import PositiveSum
from accelbench.predict.questions import PredictionQuestion, cases_of
from accelbench.predict.stored_cases import stored_cases
from accelbench.predict.stored_predictors import predictors_of
from accelbench.predict.terms import TIME_TERMS, TracedCase, time_terms, usual_time
from accelbench.predict.traces import Traces
from accelbench.store.database import Database

H100 = CaseConfiguration("cuda", "NVIDIA H100 80GB HBM3", "pytorch", "fp16", "inference")


def request(
    prompt: int = 128,
    new: int = 32,
    batch: int = 1,
    place: CaseConfiguration = H100,
    model: str = "gpt2",
) -> PredictedCase:
    spec = find(model)
    shapes = settle(spec, Shapes(batch, prompt_tokens=prompt, new_tokens=new))
    return PredictedCase(spec.id, spec.family, shapes, place)


def measured_requests(path: Path) -> Database:
    """Requests whose first token takes 3 ms for each sequence, and each after it 2 ms."""
    rows: list[dict[str, Any]] = [
        {
            "model": model, "family": "text_generation", "sequence_length": None, "batch_size": b,
            "prompt_tokens": 128, "new_tokens": 32, "ttft_ms": 3.0 * b, "tpot_ms": 2.0,
            "latency_mean_ms": 3.0 * b + 31 * 2.0,
        }
        for model in ("gpt2", "gpt2-tiny")
        for b in (1, 2, 4)
    ]  # fmt: skip
    return measured_store(path, *rows)


def parts_of(*cases: PredictedCase, database: Database | None = None) -> list[dict[str, Any]]:
    traces = Traces(Path("no such folder"), trace=False)  # what other tests traced changes nothing
    known = predictors_of(database, traces, keep=False)
    return list(answer(cases, known.of, known.stored.learnable, traces).figures)  # type: ignore[arg-type]


def test_parts_of_a_request():
    # The terms of a request are those of its prefill, and of decoding each further token.
    traced = TracedCase(request(new=33), Traces(trace=False).of("gpt2", request(new=33).shapes))
    parts = [
        TracedCase(part, traced.passes)
        for part in (traced.case.first_token, traced.case.next_token)
    ]
    whole, first, following = time_terms([traced, *parts])
    summed = first + 32 * following
    host = TIME_TERMS.index("dispatch")
    assert np.delete(whole, host) == pytest.approx(np.delete(summed, host))
    sums = PositiveSum(np.log(usual_time("GPU")))
    took, *parts_took = np.exp(sums(np.stack([whole, first, following])))
    assert took == pytest.approx(parts_took[0] + 32 * parts_took[1])
    # 124 million weights of two bytes at 3.35 TB/s, however many requests there are at once.
    single, several = parts_of(request(), request(batch=256))
    assert single["tpot_ms"] > 124e6 * 2 / 3.35e12 * 1e3
    assert several["ttft_ms"] > 4 * single["ttft_ms"] / 3
    # One of 256 still waits for the host: 237 operators of 36 µs.
    assert single["tpot_ms"] == pytest.approx(237 * 0.036, rel=0.01)
    assert single["tpot_ms"] <= several["tpot_ms"] < 4 * single["tpot_ms"]
    sum_of_parts = single["ttft_ms"] + 31 * single["tpot_ms"]
    assert single["latency_ms"] == pytest.approx(sum_of_parts, rel=1e-6)
    # What is no request has no parts.
    spec = find("bert-tiny")
    case = PredictedCase(spec.id, spec.family, settle(spec, Shapes(1)), H100)
    (figures,) = parts_of(case)
    assert figures["ttft_ms"] is figures["tpot_ms"] is figures["measured_ttft_ms"] is None


def test_a_longer_prompt_costs_the_first_token_its_work_and_the_others_its_cache(tmp_path):
    pytest.importorskip("torch")
    traces = Traces(tmp_path)
    cases = [request(prompt=prompt, model="gpt2-tiny") for prompt in (16, 120)]
    traced = [TracedCase(case, traces.of(case.model, case.shapes)) for case in cases]
    terms = time_terms(
        [
            TracedCase(part, entry.passes)
            for entry in traced
            for part in (entry.case.first_token, entry.case.next_token)
        ]
    )
    first, following, first_of_long, following_of_long = terms
    products = np.array([
        [term.startswith(f"products of {name},") for term in TIME_TERMS] for name in ("lin", "sdpa")
    ])  # fmt: skip
    cache = [term.startswith("values of sdpa,") for term in TIME_TERMS]
    assert first_of_long[products.any(axis=0)].sum() > 4 * first[products.any(axis=0)].sum()
    assert following_of_long[products[0]] == pytest.approx(following[products[0]])
    # Keys and values of 16 + 16 and of 120 + 16 positions.
    kept = following_of_long[cache].sum() / following[cache].sum()
    assert kept == pytest.approx(136 / 32, rel=0.15)


def test_parts_that_were_measured_are_learned_from(tmp_path):
    database = measured_requests(tmp_path / "db.duckdb")
    stored = stored_cases(database)
    assert (len(stored.cases), len(stored.parts)) == (6, 12)
    place = stored.cases[0].case.configuration
    here, larger, longer = parts_of(
        request(place=place), request(batch=8, place=place), request(new=64, place=place),
        database=database,
    )  # fmt: skip
    assert (here["measured_ttft_ms"], here["measured_tpot_ms"]) == (3.0, 2.0)
    assert (here["ttft_ms"], here["tpot_ms"]) == (3.0, 2.0)
    assert larger["ttft_low_ms"] < 24.0 < larger["ttft_high_ms"]
    assert larger["tpot_low_ms"] < 2.0 < larger["tpot_high_ms"]
    # How many tokens follow changes nothing of the first.
    assert (longer["ttft_ms"], longer["measured_ttft_ms"]) == (here["ttft_ms"], 3.0)
    assert here["ttft_low_ms"] < here["ttft_ms"] < here["ttft_high_ms"]


def test_parts_count_as_no_cases_and_are_scored_apart(tmp_path):
    known = predictors_of(
        measured_requests(tmp_path / "db.duckdb"), Traces(trace=False), keep=False
    )
    assert len(known.of["latency"].whole) == 6
    scored = own_cases(known.of)
    assert {name: len(entry.measured) for name, entry in scored.items()} == {
        "latency": 6, "memory": 6, "time to first token": 6, "time per token after it": 6,
    }  # fmt: skip
    assert set(scored["time per token after it"].measured.round(6)) == {2.0}


def test_a_model_that_generates_is_asked_for_requests_as_run_measures_it():
    def shapes_of(*runtimes: str, **sizes: int) -> list[Shapes]:
        question = PredictionQuestion(
            (find("gpt2"),), sizes=(Shapes(1, **sizes),), hardware=("cpu",), runtimes=runtimes
        )
        return [case.shapes for case in cases_of(question, (), lambda _: "A processor").cases]

    makes = find("gpt2").generation
    assert makes is not None
    usual = Shapes(1, prompt_tokens=makes.prompt_tokens, new_tokens=makes.new_tokens)
    assert shapes_of("pytorch") == [usual]
    (prompt,) = shapes_of("pytorch", sequence=64)
    assert (prompt.prompt_tokens, prompt.sequence) == (64, None)
    assert {s.new_tokens for s in shapes_of("pytorch", "onnxruntime")} == {None}
    assert shapes_of("pytorch", new_tokens=0)[0].new_tokens is None


def test_parts_come_to_the_whole_and_what_was_measured_stays(tmp_path):
    database = measured_requests(tmp_path / "db.duckdb")
    place = stored_cases(database).cases[0].case.configuration
    cases = [
        request(place=place, new=new, batch=batch, prompt=prompt)
        for new in (1, 32, 64, 200) for batch in (1, 2, 3, 16) for prompt in (128, 300)
    ]  # fmt: skip
    for case, entry in zip(cases, parts_of(*cases, database=database), strict=True):
        further = (case.shapes.new_tokens or 1) - 1
        whole = entry["ttft_ms"] + further * (entry["tpot_ms"] or 0.0)
        assert whole == pytest.approx(entry["latency_ms"], rel=1e-3), case.shapes
        assert entry["latency_low_ms"] <= entry["latency_ms"] <= entry["latency_high_ms"]
        assert entry["ttft_low_ms"] <= entry["ttft_ms"] <= entry["ttft_high_ms"]
        for name in ("latency_ms", "ttft_ms", "tpot_ms"):
            if entry[f"measured_{name}"] is not None:
                assert entry[name] == entry[f"measured_{name}"]


def test_parts_that_were_measured_apart_and_do_not_add_up_are_named(tmp_path):
    row = {
        "model": "gpt2", "family": "text_generation", "sequence_length": None, "batch_size": 1,
        "prompt_tokens": 128, "new_tokens": 32, "ttft_ms": 3.0, "tpot_ms": 2.0,
    }  # fmt: skip
    database = measured_store(tmp_path / "db.duckdb", {**row, "latency_mean_ms": 50.0})
    traces = Traces(Path("no such folder"), trace=False)  # what other tests traced changes nothing
    known = predictors_of(database, traces, keep=False)
    place = known.stored.cases[0].case.configuration
    found = answer([request(place=place)], known.of, known.stored.learnable, traces)
    (entry,) = found.figures
    assert (entry["latency_ms"], entry["ttft_ms"], entry["tpot_ms"]) == (50.0, 3.0, 2.0)
    assert any("measured apart" in note and "130.0%" in note for note in found.notes)


def test_what_is_amiss_is_of_what_was_not_measured():
    first, following = RequestTerm(10.0, 1), RequestTerm(2.0, 10)
    assert brought_to([first, following], 33.0) == ([11.0, pytest.approx(2.2)], 33.0)
    known = replace(first, measured=True)
    assert brought_to([known, following], 33.0)[0] == [10.0, pytest.approx(2.3)]
    # No token takes less than reading the weights: the first one makes up for it.
    heavy = replace(following, least=2.0)
    assert brought_to([first, heavy], 27.0)[0] == [pytest.approx(7.0), 2.0]
    # What remains is nothing like what was predicted of it: the whole gives way.
    assert brought_to([known, following], 100.0) == ([10.0, 2.0], 30.0)
    assert brought_to([known, following], 100.0, fixed=True)[0] == [10.0, 9.0]


@pytest.mark.parametrize(
    ("place", "waits"),
    [
        (H100, True),
        (replace(H100, runtime="onnxruntime"), False),  # runs a graph without Python
        (replace(H100, compiled=True), False),
        (replace(H100, hardware="cpu", device="AMD EPYC"), False),  # the host is the device
    ],
)
def test_a_small_step_waits_for_the_host_where_it_hands_over_each_operator(place, waits):
    spec = find("bert-base")
    passes = Traces(trace=False).of(spec.id, settle(spec, Shapes(1)))
    launches = passes["forward"].sums.launches
    small, large = (
        time_terms([TracedCase(PredictedCase(spec.id, spec.family, shapes, place), passes)])[0]
        for shapes in (settle(spec, Shapes(1)), settle(spec, Shapes(4096)))
    )
    sums = PositiveSum(np.log(usual_time("GPU")))
    ms_small, ms_large = np.exp(sums(np.stack([small, large])))
    handed_over = small[TIME_TERMS.index("dispatch")]
    assert handed_over == (pytest.approx(launches * 0.036) if waits else 0.0)
    if waits:
        assert ms_small == pytest.approx(handed_over, rel=0.05)
        # A large step hides it.
        assert ms_large == pytest.approx(large[:-3] @ usual_time("GPU")[:-3], rel=0.05)
    assert large[-1] == pytest.approx(launches * 0.005)

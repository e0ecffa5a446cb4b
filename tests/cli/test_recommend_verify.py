"""`recommend --verify`: the answer is measured here, for real, and the next one rests on it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from recommend_world import CARD, DB
from stored_rows import store

from accelbench.cli.services import searching
from accelbench.evidence.launches import launches_of
from accelbench.hardware.detect import detect
from accelbench.present.terminal.recommend import _searched
from accelbench.recommend.constraints import measurement_candidates
from accelbench.recommend.constraints.limits import Limits
from accelbench.recommend.constraints.measurement_candidates import largest, next_batch
from accelbench.run import execute
from accelbench.store.database import Database


def asked(journey: Any) -> list[tuple[str, str, str, int]]:
    return [
        (str(one.case.target), one.case.precision, one.case.mode.value, one.case.shapes.batch)
        for one in journey.plan.cases
    ]


def test_a_named_database_is_made(tmp_path, recommend, planned, monkeypatch):
    def measured(database: Database, planner: Any) -> list[str]:
        planned.extend(planner(*execute.here()))
        store(database.path, {"latency_p50_ms": 3.0, "throughput": 333.0})
        database.fill()
        return ["r"]

    monkeypatch.setattr(searching, "measured", measured)
    words = ("bert-tiny", "--hardware", "cpu", "--db", tmp_path / "new.duckdb")
    code, out, err = recommend(*words, "--verify")
    assert code == 0, err
    assert "measured" in out
    assert (tmp_path / "new.duckdb").exists()


def test_a_search_under_limits_measures_what_it_thinks_fits(recommend, planned):
    recommend("bert-tiny", "--hardware", "cpu", "--memory-mb", "2048", "--verify")
    (journey,) = planned
    first, *others = asked(journey)
    assert first[:3] == ("pytorch/cpu", "fp32", "inference")
    assert first[3] > 1  # the largest that is estimated to fit
    assert {precision for _, precision, *_ in others} <= {"fp16", "bf16", "int8"}


@pytest.fixture
def odd() -> dict[int, dict[str, Any]]:
    """Of some batches, what came out otherwise."""
    return {}


@pytest.fixture
def machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, odd: dict[int, dict[str, Any]]
) -> list[Any]:
    """A machine where an item takes 2 MB in fp32 and 1 in any other precision, beside 20."""
    rounds: list[Any] = []

    def found(planned: Any) -> dict[str, Any]:
        return {**measurement(planned), **odd.get(planned.case.shapes.batch, {})}

    def measured(database: Database, planner: Any) -> list[str]:
        made = []
        for journey in planner(*execute.here()):
            rounds.append(asked(journey))
            run = f"round-{len(rounds)}"
            store(database.path, *map(found, journey.plan.cases), run=run)
            database.fill()
            made.append(run)
        return made

    monkeypatch.setattr(searching, "measured", measured)
    monkeypatch.setattr(searching, "detect_all", lambda: {"cpu": detect("cpu")})
    return rounds


def measurement(planned: Any) -> dict[str, Any]:
    case = planned.case
    batch, error = case.shapes.batch, 0.05 if case.precision == "int8" else 1e-6
    step = 1.0 + 0.1 * batch
    return {
        "runtime": case.target.runtime, "precision": case.precision, "batch_size": batch,
        "memory_peak_mb": 20.0 + batch * (2.0 if case.precision == "fp32" else 1.0),
        "latency_p50_ms": step, "latency_mean_ms": step, "throughput": 1e3 * batch / step,
        "verification": "ok", "verification_error": error,
    }  # fmt: skip


def test_a_search_finds_the_largest_batch_that_fits_in_each_precision(recommend, machine):
    words = ("bert-tiny", "--hardware", "cpu", "--memory-mb", "128", "--verify")
    (found,) = recommend.json(*words)["recommendations"]
    ways = {one["precision"]: one for one in found["searched"]}
    assert {"fp32", "bf16"} <= set(ways)
    for precision, most in (("fp32", 54), ("bf16", 108)):
        assert most - most // 16 - 1 <= ways[precision]["largest_batch"] <= most
        assert ways[precision]["ended"] == "settled"
    # Each round asks each way for one batch, and all of them are one run.
    assert max(len(one) for one in machine) == len([w for w in found["searched"] if w["tried"]])
    assert found["best"]["memory_mb"] <= 128
    assert found["best"]["batch_size"] == max(
        w["largest_batch"] for w in found["searched"] if w["tried"]
    )


WILD = {"quality": "unusable"}
TIMED = ("bert-tiny", "--hardware", "cpu", "--precision", "fp32", "--max-latency-ms", "5")
SIZED = ("bert-tiny", "--hardware", "cpu", "--precision", "fp32", "--memory-mb", "128")


def test_a_time_that_is_of_no_use_is_no_batch_that_does_not_fit(recommend, machine, odd):
    odd[1] = WILD
    code, out, _ = recommend(*TIMED, "--verify", "--json")
    document = json.loads(out)
    assert code == 4  # nobody knows whether anything fits
    (way,) = document["recommendations"][0]["searched"]
    assert way["largest_batch"] is None
    (tried,) = way["tried"]
    assert (tried["batch_size"], tried["fits"]) == (1, None)
    assert "interval wider than ±25 %" in tried["why"]
    (now,) = document["measured_now"]
    assert "its times are not usable" in now["outcome"]
    out = " ".join(recommend(*TIMED, "--verify")[1].split())
    assert "no batch is known to fit" in out
    assert "batch 1: its times are not usable, interval wider than ±25 %" in out
    assert "no batch fits" not in out


def judged(*rows: dict[str, Any]) -> searching.SearchedConfiguration:
    """A configuration whose batch 4 came to these, one after the other, under 5 ms."""
    way = searching.SearchedConfiguration(None, 1)  # type: ignore[arg-type]
    every = launches_of([{"memory_peak_mb": None, "status": "ok", **row} for row in rows])
    for row in every:
        way.judge(4, row, Limits(max_latency_ms=5))
    return way


def test_what_a_search_knows():
    # A time that is of no use once is measured a second time.
    wild, good = {"latency_mean_ms": 3.0, **WILD}, {"latency_mean_ms": 3.0}
    assert judged(wild).tried == {}
    assert not judged(wild).ended
    assert judged(wild, good).tried == {4: pytest.approx(0.6)}
    assert judged(wild, wild).unknown
    # A time on both sides of its limit is not known to fit.
    spread = {"latency_p50_ms": 4.8, "latency_mean_ms": 4.9, "latency_std_ms": 0.5}
    spread["effective_sample_count"] = 20.0
    way = judged(spread)
    assert way.tried[4] > 1.0  # the search goes on below it
    told = way._told_of(4)
    assert told["fits"] is None
    assert "on both sides of the limit" in told["why"]
    # The largest that fits is the largest whatever a smaller one did.
    tried = {8: 4.0, 48: 0.9, 96: 1.6}  # batch 8 met a bad moment
    assert largest(tried) == 48
    assert next_batch(tried, 8) == 72
    assert next_batch({8: 4.0, 48: 0.9}, 8, (8, 16, 48, 64)) == 64
    said = _searched({
        "hardware": "cpu", "runtime": "pytorch", "precision": "fp32", "options": {"threads": 1},
        "largest_batch": 48,
        "tried": [{"batch_size": b, "fits": t <= 1.0} for b, t in tried.items()],
        "ended": "settled",
    })  # fmt: skip
    assert "batch 48 is the largest that fits, 96 does not; 8 did not, though smaller" in said
    assert said.startswith("cpu pytorch fp32 threads=1: ")


def test_what_cannot_be_measured_is_no_batch_that_does_not_fit(recommend, machine, odd):
    odd[2] = {"status": "failed", "reason": "implausible", "message": "faster than it can be"}
    out = " ".join(recommend(*TIMED, "--verify")[1].split())
    assert "batch 1 is the largest known to fit" in out
    assert "batch 2: faster than it can be" in out


def test_a_batch_that_fits_without_a_usable_time_is_said_not_to_be_in_the_answer(
    recommend, machine, odd
):
    odd[32] = WILD
    words = (*SIZED, "--batch-sizes", "32", "--verify")
    (found,) = json.loads(recommend(*words, "--json")[1])["recommendations"]
    assert found["best"] is None
    assert found["searched"][0]["largest_batch"] == 32
    out = " ".join(recommend(*words)[1].split())
    assert "batch 32 is the largest that fits" in out
    assert "batch 32: it fits, and its time is not in the answer: its times are not usable" in out
    assert "Nothing is measured" not in out


def test_the_document_says_whether_what_was_measured_is_in_the_answer(
    tmp_path, recommend, monkeypatch
):
    now: dict[str, Any] = {"latency_p50_ms": 20.0, "throughput": 50.0, "device_name": "This one"}

    def measured(database: Database, planner: Any) -> list[str]:
        run = f"now-{len(seen)}"
        seen.append(run)
        store(database.path, now, run=run)
        database.fill()
        return [run]

    seen: list[str] = []
    store(tmp_path / DB, {"latency_p50_ms": 8.0, "throughput": 125.0})
    monkeypatch.setattr(searching, "measured", measured)
    words = ("bert-tiny", "--hardware", "cpu", "--verify")
    (told,) = recommend.json(*words)["measured_now"]
    assert (told["device"], told["latency"], told["figure"]) == ("This one", 20.0, "mean")
    assert told["outcome"].startswith("cpu stands there by A processor pytorch fp32, 8 ms")
    out = " ".join(recommend(*words)[1].split())
    assert "Measured now: cpu (This one) pytorch fp32, batch 1, mean 20 ms; not in the" in out
    # Asked about by another name it is the same model.
    (told,) = recommend.json("prajjwal1/bert-tiny", *words[1:])["measured_now"]
    assert told["outcome"].startswith("cpu stands there by A processor")
    now |= {"latency_p50_ms": 2.0, "throughput": 500.0}
    (told,) = recommend.json(*words)["measured_now"]
    assert told["outcome"] == "in the answer"
    now |= {"quality": "unusable"}
    (told,) = recommend.json(*words)["measured_now"]
    assert told["outcome"] == "its times are not usable, interval wider than ±25 %"
    now |= {"status": "failed", "message": "It broke.", "quality": None}
    (told,) = recommend.json(*words)["measured_now"]
    assert told["outcome"] == "It broke"


def test_batches_that_are_named_are_the_only_ones(recommend, machine):
    words = ("bert-tiny", "--hardware", "cpu", "--precision", "fp32", "--memory-mb", "128")
    (found,) = recommend.json(*words, "--batch-sizes", "1,8,32,64,128", "--verify")[
        "recommendations"
    ]
    assert [one["largest_batch"] for one in found["searched"]] == [32]
    assert {one["batch_size"] for one in found["searched"][0]["tried"]} == {32, 64, 128}


def test_the_budget_ends_a_search(recommend, machine, monkeypatch):
    clock = iter(range(0, 10_000, 40))
    real = searching.BatchSearch

    def search(*given: Any) -> Any:
        return real(*given, now=lambda: float(next(clock)))

    monkeypatch.setattr(searching, "BatchSearch", search)
    words = ("bert-tiny", "--hardware", "cpu", "--precision", "fp32", "--memory-mb", "128")
    _, out, _ = recommend(*words, "--verify", "--budget", "2m", "--json")
    (found,) = json.loads(out)["recommendations"]
    (way,) = found["searched"]
    assert way["ended"] == "the budget ended the search"
    assert len(machine) == len(way["tried"]) == 1


@pytest.mark.parametrize(
    "words",
    [("--budget", "2m"), ("--budget", "2m", "--verify"), ("--memory-mb", "9", "--budget", "2m")],
)
def test_a_budget_without_a_search_is_refused(recommend, words):
    code, _, err = recommend("bert-tiny", *words)
    assert code == 2
    assert "--budget is of a search" in err


def test_power_that_nothing_measures_is_not_searched(recommend, machine, monkeypatch):
    monkeypatch.setattr(measurement_candidates, "host_unmetered", lambda: "there is no meter")
    words = ("bert-tiny", "--hardware", "cpu", "--max-power", "10")
    code, out, _ = recommend(*words)
    assert code == 4
    assert "max_power cannot be shown to be kept by measuring" in " ".join(out.split())
    code, _, err = recommend(*words, "--verify")
    assert (code, machine) == (4, [])
    assert "there is no meter" in err


def test_the_question_is_measured_as_it_was_asked(recommend, planned):
    words = ("--batch-size", "2", "--sequence-length", "32", "--task", "training")
    recommend("bert-tiny", "--hardware", "cpu", "--precision", "bf16", *words, "--verify")
    (journey,) = planned
    assert asked(journey) == [("pytorch/cpu", "bf16", "training", 2)]
    assert journey.plan.cases[0].case.shapes.sequence == 32
    assert journey.settings.launches == 1


def test_where_nothing_wins_clearly_both_are_measured_in_turns(tmp_path, recommend, planned):
    other = {"hardware": "openvino", "runtime": "openvino", "latency_p50_ms": 7.95}
    store(tmp_path / DB, {}, {**other, "throughput": 120.5, "device_name": "A processor"})
    (tmp_path / "time.json").write_text(
        '{"selection_criteria": {"inference": {"compatibility_weight": 0}}}'
    )
    words = ("--hardware", "cpu", "openvino", "--config", "time.json")
    _, _, err = recommend("bert-tiny", *words, "--verify")
    (journey,) = planned
    assert journey.settings.launches >= 5
    there = {target.partition("/")[0] for target, *_ in asked(journey)}
    assert "pytorch" in there
    assert "openvino" in there or "openvino is not present" in err


def test_what_is_not_here_is_said(tmp_path, recommend, planned):
    store(tmp_path / DB, {}, {**CARD, "hardware": "rocm"})
    code, _, err = recommend("bert-tiny", "--verify")
    assert (code, planned) == (3, [])
    assert "not measured here: rocm is not present" in err
    assert "Add --hardware here" in err


def test_a_model_that_no_catalogue_has_cannot_be_measured_by_name(recommend, planned):
    code, _, err = recommend("mine", "--model-family", "vision", "--hardware", "cpu", "--verify")
    assert (code, planned) == (3, [])
    assert "There is no model named 'mine'" in err
    assert "--hardware here" not in err  # the platform is here: it is the model that is not known


def test_what_is_measured_needs_a_database(tmp_path, recommend, planned):
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "notes.json").write_text("{}")
    code, _, err = recommend("bert-tiny", "--hardware", "cpu", "--db", "files", "--verify")
    assert (code, planned) == (2, [])
    assert "Name a database with --db" in err


def test_where_there_is_one_figure_the_others_are_measured(tmp_path, recommend, planned):
    store(tmp_path / DB, {"latency_p50_ms": 8.0, "throughput": 125.0})
    recommend("bert-tiny", "--hardware", "cpu", "openvino", "--verify")
    targets = {target for journey in planned for target, *_ in asked(journey)}
    assert {"cpu" in str(targets), any("openvino" in one for one in targets)} == {True}


def test_an_answer_that_nothing_was_measured_for_is_not_verified(tmp_path, recommend, monkeypatch):
    refused = {"status": "unsupported", "message": "the driver is too old", "run_id": "refused"}
    store(tmp_path / DB, {}, refused)
    monkeypatch.setattr(searching, "measured", lambda database, planner: ["refused"])
    code, _, err = recommend("bert-tiny", "--hardware", "cpu", "--verify")
    assert code == 3
    assert "Nothing was measured: the driver is too old." in err
    monkeypatch.setattr(searching, "measured", lambda database, planner: [])
    assert recommend("bert-tiny", "--hardware", "cpu", "--verify")[0] == 0

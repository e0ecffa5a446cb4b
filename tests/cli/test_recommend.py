"""`accelbench recommend`: answers, tables, JSON, exit codes and slips, over stored results."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from shells import Command
from stored_rows import store

from accelbench.core.protocols import Absent, Device

DB = "accelbench.duckdb"
CARD = {"hardware": "cuda", "device_name": "A card", "latency_p50_ms": 2.0, "throughput": 500.0}
BATCH_8 = {"batch_size": 8, "latency_p50_ms": 40.0, "throughput": 200.0, "memory_peak_mb": 300.0}
#: What a run says of its figures, and an import may not.
ASKED = {
    "scenario": "single_stream",
    "world_size": 1,
    "weights": "random",
    "data_source": "synthetic",
}
SIMULATED = {**CARD, "provenance": "simulated", "latency_p50_ms": 0.1}
EMULATED = {**CARD, "hardware": "webgpu", "emulated": True, "latency_p50_ms": 0.1}


@pytest.fixture
def measured(tmp_path: Path) -> None:
    """A CPU at two batches, and a card that is faster."""
    store(tmp_path / DB, *({**ASKED, **row} for row in ({}, BATCH_8, CARD)))


def answer(recommend: Command, *words: object) -> Any:
    (found,) = recommend.json(*words)["recommendations"]
    return found


# -- one model


@pytest.mark.usefixtures("measured")
def test_what_was_measured_is_recommended_with_its_figures(recommend: Command) -> None:
    code, out, err = recommend("bert-tiny")
    assert (code, err) == (0, "")
    assert out.splitlines()[0] == "bert-tiny at batch 1: take cuda"
    assert "cuda (A card)" in out
    assert "pytorch fp32" in out
    assert "measured" in out
    assert "To measure: accelbench run bert-tiny --hardware " in out
    assert "Data of 2026-01-02 03:04; compatibility by the database." in out
    assert all(len(line) <= 80 for line in out.splitlines())


@pytest.mark.usefixtures("measured")
def test_the_document_is_the_selectors_answer(recommend: Command) -> None:
    found = answer(recommend, "bert")  # by its alias, without any result
    assert found["question"]["model"] == "bert-base"
    found = answer(recommend, "bert-tiny")
    assert found["primary_recommendation"] == "cuda"
    assert found["fallback_options"][0] == "cpu"
    assert found["all_scores"]["cuda"]["predictions"]["throughput"] == 500.0


@pytest.mark.usefixtures("measured")
def test_explain_tells_weights_and_what_each_figure_rests_on(recommend: Command) -> None:
    _, short, _ = recommend("bert-tiny", "--batch-size", 8)
    _, whole, _ = recommend("bert-tiny", "--batch-size", 8, "--explain")
    assert "≈" in short
    assert "Weights: " not in short
    for said in ("Weights: latency", "Estimated (", "Size of the model: small, by the catalogue"):
        assert said in whole.replace("\n", " ")


@pytest.mark.parametrize("row", [SIMULATED, EMULATED])
def test_what_nobody_measured_never_wins(
    tmp_path: Path, recommend: Command, row: dict[str, Any]
) -> None:
    store(tmp_path / DB, {}, row)
    found = answer(recommend, "bert-tiny", "--hardware", "cpu", row["hardware"])
    assert found["primary_recommendation"] == "cpu"
    assert found["all_scores"][row["hardware"]]["basis"] == "rule"


def test_without_any_database_rules_answer(recommend: Command) -> None:
    found = answer(recommend, "bert-tiny", "--hardware", "cpu", "cuda")
    assert {one["basis"] for one in found["all_scores"].values()} == {"rule"}
    assert found["matrix_source"] == "the default"
    code, out, _ = recommend("bert-tiny", "--hardware", "cpu,cuda")
    assert code == 0
    assert "rule: high" in out
    assert " ms " not in out  # no figure is made up, nor a column for one


def test_no_clear_winner_is_an_answer(tmp_path: Path, recommend: Command) -> None:
    store(tmp_path / DB, {}, {**CARD, "latency_p50_ms": 7.95, "throughput": 120.5})
    code, out, _ = recommend("bert-tiny")
    assert code == 0
    assert "no clear winner between" in out.splitlines()[0]
    assert "--verify measures them in turns" in out


def test_a_launch_that_its_own_samples_do_not_settle_wins_nothing(
    tmp_path: Path, recommend: Command
) -> None:
    card = {**CARD, "latency_p50_ms": 4.0, "latency_mean_ms": 4.0, "throughput": 250.0}
    steady = {**card, "latency_ci_low_ms": 3.9, "latency_ci_high_ms": 4.1}
    store(tmp_path / DB, {}, steady)
    assert answer(recommend, "bert-tiny", "--hardware", "cpu,cuda")["clear_winner"]
    wild = {**card, "latency_ci_low_ms": 1.0, "latency_ci_high_ms": 16.0}
    store(tmp_path / DB, {**wild, "started_at": "2026-02-02T00:00:00Z"}, run="s")
    found = answer(recommend, "bert-tiny", "--hardware", "cpu,cuda")
    assert found["primary_recommendation"] == "cuda"
    assert found["no_clear_winner_between"] == ["cuda", "cpu"]
    assert found["all_scores"]["cuda"]["predictions"]["latency_high"] == 16.0


def test_what_has_a_figure_alone_is_not_shown_to_be_the_best(
    tmp_path: Path, recommend: Command
) -> None:
    store(tmp_path / DB, {})
    alone = "nothing shows that it is the best"
    for words in (("bert-tiny",), ("bert-tiny", "--batch-size", "1,8")):
        _, out, _ = recommend(*words)
        assert alone in out
        _, out, _ = recommend(*words, "--hardware", "cpu")  # there is nothing to hold it against
        assert alone not in out
    assert "* cpu" in recommend("bert-tiny", "--batch-size", "1,8")[1]
    store(tmp_path / DB, CARD, run="s")
    assert alone not in recommend("bert-tiny")[1]


def test_where_nothing_suits_it_ends_with_1(tmp_path: Path, recommend: Command) -> None:
    (tmp_path / "own.json").write_text(
        '{"compatibility": {"embedding": {"cpu": {"compatible": false}}}}'
    )
    code, out, _ = recommend("bert-tiny", "--hardware", "cpu", "--config", "own.json")
    assert code == 1
    assert "nothing suits" in out
    assert "cpu is out" in out


@pytest.mark.usefixtures("measured")
def test_batch_sizes_and_models_are_answered_side_by_side(recommend: Command) -> None:
    code, out, _ = recommend("bert-tiny", "resnet-tiny", "--batch-size", "1,8")
    assert code == 0
    assert out.count("bert-tiny ") >= 2
    assert "rest on no measurement of what they name" in out
    found = recommend.json("bert-tiny", "resnet-tiny", "--batch-size", "1,8")["recommendations"]
    assert [(a["question"]["model"], a["question"]["batch_size"]) for a in found] == [
        *(("bert-tiny", 1), ("bert-tiny", 8)),
        *(("resnet-tiny", 1), ("resnet-tiny", 8)),
    ]


@pytest.mark.usefixtures("measured")
@pytest.mark.parametrize(
    ("words", "key", "value"),
    [
        (("--mode", "training"), "mode", "training"),
        (("--task", "fine-tuning"), "mode", "training"),
        (("--task", "generation"), "task", "generation"),
        (("--precision", "float16"), "precision", "fp16"),
        (("--sequence-length", "64"), "shapes", {"sequence_length": 64}),
        (("--model-family", "embedding"), "family", "embedding"),
    ],
)
def test_every_part_of_a_question_is_asked(
    recommend: Command, words: tuple[str, ...], key: str, value: object
) -> None:
    assert answer(recommend, "bert-tiny", *words)["question"][key] == value


@pytest.mark.usefixtures("measured")
def test_the_documents_spellings_are_taken(recommend: Command) -> None:
    words = ("--model-name", "bert-tiny", "--model-family", "embedding", "--batch-size", "1")
    assert answer(recommend, *words, "--mode", "inference") == answer(recommend, "bert-tiny")
    limited = answer(recommend, "--model", "bert-tiny", "--memory-constrained", "2048")
    assert limited["limits"] == {"memory_mb": 2048}


@pytest.mark.usefixtures("measured")
def test_only_hardware_that_is_named_is_chosen_among(recommend: Command) -> None:
    found = answer(recommend, "bert-tiny", "--available-hardware", "cpu", "openvino")
    assert set(found["all_scores"]) == {"cpu", "openvino"}
    found = answer(recommend, "bert-tiny", "--hardware", "a card")
    assert found["primary_recommendation"] == "cuda:A card"


@pytest.mark.usefixtures("measured")
def test_here_is_what_this_machine_has_and_no_card_of_another(
    recommend: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = {
        "cpu": [Device("cpu", "A processor")],
        "cuda": [Device("cuda", "A car")],  # not the card that was measured, though like it
        "qnn": [Device("qnn", "a simulator", emulated=True)],
        "mps": [Absent("mps", "this is no Mac", "use one")],
    }
    monkeypatch.setattr("accelbench.hardware.detect.detect_all", lambda: found)
    scores = answer(recommend, "bert-tiny", "--hardware", "here")["all_scores"]
    assert set(scores) == {"cpu", "cuda:A car"}
    assert scores["cpu"]["basis"] == "measured"
    assert scores["cuda:A car"]["basis"] == "rule"


def test_several_devices_are_spoken_of_without_a_predicted_speed(recommend: Command) -> None:
    words = ("gpt2", "--task", "training", "--gpu-count", "4", "--max-memory-gb", "16")
    assert answer(recommend, *words)["distributed"]["gpu_count"] == 4
    _, out, _ = recommend(*words)
    assert "On 4 devices: " in out
    assert "Speed not predicted" in " ".join(out.split())


@pytest.mark.usefixtures("measured")
def test_the_command_that_is_named_plans_what_was_asked(
    recommend: Command, command: Callable[..., Command]
) -> None:
    words = ("--hardware", "cpu", "--sequence-length", "48", "--precision", "bf16")
    (missing,) = answer(recommend, "bert-tiny", *words, "--batch-size", "2")["missing"]
    named = shlex.split(missing["command"])
    assert named[:2] == ["accelbench", "run"]
    (case,) = command("run").json(*named[2:], "--dry-run")["cases"]
    assert (case["batch_size"], case["sequence_length"], case["precision"]) == (2, 48, "bf16")
    assert case["hardware"] == "cpu"


def test_where_no_command_measures_it_that_is_said(recommend: Command) -> None:
    words = ("of-ours", "--model-family", "vision", "--hardware", "cpu")
    for more in ((), ("--explain",)):
        _, out, _ = recommend(*words, *more)
        said = " ".join(out.split())
        assert "No command measures it as it stands: of-ours is in no catalogue" in said
    code, out, _ = recommend(*words, "--batch-size", "1,2")
    assert code == 0
    assert "None" not in out


# -- every model, a task, a map


@pytest.mark.usefixtures("measured")
def test_without_a_model_every_stored_one_is_answered(tmp_path: Path, recommend: Command) -> None:
    store(tmp_path / DB, {"model": "resnet-tiny", "family": "vision"}, run="s")
    code, out, _ = recommend()
    assert code == 0
    assert "bert-tiny" in out
    assert "resnet-tiny" in out
    assert all(len(line) <= 80 for line in out.splitlines())
    assert len(recommend.json()["recommendations"]) == 2


@pytest.mark.usefixtures("measured")
def test_a_family_without_a_model_is_of_the_stored_models(
    tmp_path: Path, recommend: Command
) -> None:
    vision = {"model": "resnet-tiny", "family": "vision"}
    store(tmp_path / DB, vision, {"family": "embedding", "model": "distilbert-tiny"}, run="s")

    def models(*words: str) -> list[str]:
        found = recommend.json("--model-family", *words)["recommendations"]
        return [one.get("question", one)["model"] for one in found]

    assert models("vision") == ["resnet-tiny"]
    assert models("embedding") == ["distilbert-tiny"]  # the other says no family
    assert models("Vision", "--memory-mb", "500") == ["resnet-tiny"]
    ranked = recommend.json("--task", "training", "--model-family", "vision")["ranking"]
    assert [one["model"] for one in ranked] == ["resnet-tiny"]
    code, _, err = recommend("--model-family", "audio")
    assert code in (2, 4)
    assert "audio" in err


def test_what_is_counted_differently_is_ranked_apart(tmp_path: Path, recommend: Command) -> None:
    tokens = {"family": "text_generation", "throughput": 9000.0, "throughput_unit": "tokens/s"}
    images = {"family": "vision", "throughput_unit": "images/s", "mode": "training"}
    store(
        tmp_path / DB,
        {**images, "model": "resnet-tiny", "throughput": 10.0},
        {**images, "model": "vit-tiny", "throughput": 20.0},
        {**tokens, "model": "gpt2-tiny", "mode": "training"},
    )
    found = recommend.json("--task", "training", "--hardware", "cpu")["ranking"]
    assert [one["model"] for one in found] == ["vit-tiny", "resnet-tiny", "gpt2-tiny"]
    _, out, _ = recommend("--task", "training", "--hardware", "cpu")
    assert "counts" in out
    assert "tokens" in out
    assert all(len(line) <= 80 for line in out.splitlines())


@pytest.mark.usefixtures("measured")
def test_models_are_ranked_for_a_task_on_some_hardware(tmp_path: Path, recommend: Command) -> None:
    store(
        tmp_path / DB,
        {"model": "resnet-tiny", "family": "vision", "throughput": 900.0, "latency_p50_ms": 1.1},
        {"model": "vit-tiny", "family": "vision", "throughput": 90.0, "latency_p50_ms": 11.0},
        run="s",
    )
    found = recommend.json("--task", "classification", "--hardware", "cpu")
    assert [one["model"] for one in found["ranking"]][:2] == ["resnet-tiny", "vit-tiny"]
    assert {one["hardware"] for one in found["ranking"]} == {"cpu"}
    # One processor may be of several platforms: its name alone does not say which.
    assert " cpu (" in recommend("--task", "classification", "--hardware", "cpu")[1]
    code, out, _ = recommend("--task", "classification", "--hardware", "cpu", "--explain")
    assert code == 0
    assert out.index("resnet-tiny") < out.index("vit-tiny")
    assert "measured before estimated" in out.replace("\n", " ")


@pytest.mark.usefixtures("measured")
def test_a_task_that_no_stored_model_is_for_cannot_be_told(recommend: Command) -> None:
    code, out, _ = recommend("--task", "speech_recognition")
    assert code == 4
    assert "No model with results is for speech_recognition" in out


def test_a_map_has_the_documents_nesting(tmp_path: Path, recommend: Command) -> None:
    code, out, err = recommend("--create-map", "--output", "map.json")
    assert (code, out, err) == (0, "", "Wrote map.json\n")
    found = json.loads((tmp_path / "map.json").read_text())
    assert set(found) == {"timestamp", "model_families"}
    embedding = found["model_families"]["embedding"]
    assert set(embedding["model_sizes"]) == {"small", "medium", "large"}
    assert set(embedding["inference"]["batch_sizes"]) == {"1", "4", "16", "32", "64"}
    assert set(embedding["model_sizes"]["small"]["training"]) == {"primary", "fallbacks"}
    code, _, err = recommend("--create-map", "--output", "map.json")
    assert code == 2
    assert "exists already" in err


@pytest.mark.usefixtures("measured")
def test_any_answer_can_be_written(tmp_path: Path, recommend: Command) -> None:
    code, _, _ = recommend("bert-tiny", "--output", "answer.json")
    assert code == 0
    assert json.loads((tmp_path / "answer.json").read_text())["recommendations"]


# -- limits


@pytest.mark.usefixtures("measured")
def test_the_best_batch_size_under_a_memory_limit(recommend: Command) -> None:
    found = answer(recommend, "bert-tiny", "--hardware", "cpu", "--memory-mb", 2048)
    assert (found["best"]["batch_size"], found["best"]["basis"]) == (8, "measured")
    found = answer(recommend, "bert-tiny", "--hardware", "cpu", "--memory-mb", 200)
    assert found["best"]["batch_size"] == 1
    assert [one["batch_size"] for one in found["does_not_fit"]] == [8]
    code, out, _ = recommend("bert-tiny", "--hardware", "cpu", "--memory-mb", 200)
    assert code == 0
    assert "bert-tiny (inference) under --memory-mb 200" in out
    assert "batch 8: memory 300 MB is above 200" in out
    assert all(len(line) <= 80 for line in out.splitlines())


@pytest.mark.usefixtures("measured")
def test_the_front_is_marked(recommend: Command) -> None:
    found = answer(recommend, "bert-tiny", "--max-latency-ms", 100)
    front = {(one["hardware"], one["batch_size"]) for one in found["pareto"]}
    assert front == {("cuda", 1)}  # as much memory, less time, more of it
    _, out, _ = recommend("bert-tiny", "--max-latency-ms", 100, "--explain")
    (starred,) = [line for line in out.splitlines() if line.rstrip().endswith("*")]
    assert "cuda" in starred


@pytest.mark.usefixtures("measured")
@pytest.mark.parametrize(
    ("words", "best"),
    [
        (("--max-latency-ms", "10"), ("cuda", 1)),
        (("--min-throughput", "300"), ("cuda", 1)),
        (("--max-latency-ms", "10", "--hardware", "cpu"), ("cpu", 1)),
    ],
)
def test_each_limit_is_kept(
    recommend: Command, words: tuple[str, ...], best: tuple[str, int]
) -> None:
    found = answer(recommend, "bert-tiny", *words)["best"]
    assert (found["hardware"], found["batch_size"]) == best


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("--memory-mb", "1"), 1),
        (("--min-throughput", "1e9"), 1),
        (("--max-power", "100"), 4),  # no power was measured: nobody can tell
        (("--max-power", "100", "--memory-mb", "1"), 1),
    ],
)
@pytest.mark.usefixtures("measured")
def test_where_nothing_fits_it_ends_with_1_and_with_4_where_nobody_knows(
    recommend: Command, words: tuple[str, ...], code: int
) -> None:
    found, out, _ = recommend("bert-tiny", *words)
    assert found == code
    assert "Nothing fits" in out


def test_a_model_that_was_never_measured_cannot_be_told(recommend: Command) -> None:
    code, out, _ = recommend("bert-tiny", "--memory-mb", "2048", "--hardware", "cpu")
    assert code == 4
    assert "To measure: accelbench run bert-tiny --hardware cpu" in out.replace("\n", " ")


# -- what it costs


@pytest.mark.usefixtures("measured")
def test_a_price_is_part_of_the_answer_and_may_change_it(
    tmp_path: Path, recommend: Command
) -> None:
    (tmp_path / "dear.json").write_text('{"per_hour": {"A card": 360.0, "cpu": 0.036}}')
    words = ("bert-tiny", "--hardware", "cpu,cuda")
    assert answer(recommend, *words)["primary_recommendation"] == "cuda"
    found = answer(recommend, *words, "--prices", "dear.json")
    assert found["primary_recommendation"] == "cpu"
    card = found["all_scores"]["cuda"]["cost_per_million"]
    assert card == pytest.approx(360.0 / 3600 / 500 * 1e6)
    assert (found["currency"], len(found["cost_notes"])) == ("USD", 1)
    _, out, _ = recommend(*words, "--prices", "dear.json")
    assert "$/million" in out
    assert "Priced by dear.json: A card at $360.00 an hour" in out
    (tmp_path / "euros.json").write_text('{"currency": "EUR", "per_hour": {"A card": 360.0}}')
    _, out, _ = recommend(*words, "--prices", "euros.json")
    assert "€/million" in out
    assert "Without a price: A processor (cpu)." in out
    assert "$" not in out


@pytest.mark.parametrize("currency", ["USD", "JPY"])
def test_a_price_cuts_no_figure_short(
    tmp_path: Path, recommend: Command, monkeypatch: pytest.MonkeyPatch, currency: str
) -> None:
    (tmp_path / "p.json").write_text(
        json.dumps({"currency": currency, "per_hour": {"A processor": 3}})
    )
    monkeypatch.setenv("ACCELBENCH_PRICES", "p.json")
    more = {"throughput_unit": "sequences", "memory_peak_mb": 31.4}
    ways = (("cpu", "pytorch", 16.6, 52.3), ("openvino", "openvino", 1.10, 760.0))
    store(
        tmp_path / DB,
        *(
            {**ASKED, **more, "hardware": h, "runtime": r, "latency_p50_ms": ms, "throughput": rate}
            for h, r, ms, rate in ways
        ),
    )
    words = ("bert-tiny", "--hardware", "cpu,openvino")
    _, out, _ = recommend(*words)
    for one in answer(recommend, *words)["all_scores"].values():
        assert f" {one['score']:.3f}" in out
    assert all(len(line) <= 80 for line in out.splitlines())
    _, out, _ = recommend(*words, "--max-cost", "100000")
    assert ("$ " if currency == "USD" else "JPY ") in out
    assert all(len(line) <= 80 for line in out.splitlines())


@pytest.mark.usefixtures("measured")
def test_a_machines_own_price_counts_first(tmp_path: Path, recommend: Command) -> None:
    (tmp_path / "lab.json").write_text('{"per_hour": {"lab": 3.6, "cpu": 36.0}}')
    found = answer(recommend, "bert-tiny", "--hardware", "cpu", "--prices", "lab.json")
    cost = found["all_scores"]["cpu"]["cost_per_million"]
    assert cost == pytest.approx(3.6 / 3600 / 120 * 1e6)


@pytest.mark.usefixtures("measured")
def test_a_limit_on_cost_is_kept(
    tmp_path: Path, recommend: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "p.json").write_text('{"per_hour": {"cuda": 360.0, "cpu": 0.36}}')
    monkeypatch.setenv("ACCELBENCH_PRICES", "p.json")
    best = answer(recommend, "bert-tiny", "--max-cost", "2")["best"]
    assert (best["hardware"], best["batch_size"]) == ("cpu", 8)
    assert best["cost_per_million"] == pytest.approx(0.36 / 3600 / 200 * 1e6)
    assert recommend("bert-tiny", "--max-cost", "0.001")[0] == 1


# -- what it rests on


def test_a_folder_with_a_database_and_a_lake_are_read(
    tmp_path: Path, recommend: Command, command: Callable[..., Command]
) -> None:
    store(tmp_path / "folder" / "other.duckdb", {}, {**CARD, "latency_mean_ms": 2.0})
    (tmp_path / "lake").mkdir()
    assert command("db")("merge", "folder/other.duckdb", "--db", "lake")[0] == 0
    for place in ("folder/other.duckdb", "folder", "lake"):
        found = answer(recommend, "bert-tiny", "--db", place)
        assert found["primary_recommendation"] == "cuda", place
        assert found["all_scores"]["cuda"]["basis"] == "measured", place


def test_a_configuration_changes_the_answer(tmp_path: Path, recommend: Command) -> None:
    store(tmp_path / DB, {}, {**CARD, "latency_p50_ms": 7.0, "throughput": 140.0})
    (tmp_path / "mine.json").write_text(
        '{"hardware_preferences": {"cuda": {"cost_factor": 0.2}}} // dear here\n'
    )
    assert answer(recommend, "bert-tiny")["primary_recommendation"] == "cuda"
    assert (
        answer(recommend, "bert-tiny", "--config", "mine.json")["primary_recommendation"] == "cpu"
    )


def test_a_matrix_of_ones_own_is_believed_first(tmp_path: Path, recommend: Command) -> None:
    (tmp_path / "matrix.md").write_text(
        "| Family | CPU | CUDA |\n| --- | --- | --- |\n| Embedding | ✅ High | ❌ N/A |\n"
    )
    found = answer(recommend, "bert-tiny", "--matrix-file", "matrix.md", "--hardware", "cpu,cuda")
    assert found["primary_recommendation"] == "cpu"
    assert found["all_scores"]["cuda"]["compatible"] is False
    assert "matrix.md" in found["matrix_source"]


# -- what is refused


@pytest.mark.usefixtures("measured")
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("bert-tny",), "No model is called 'bert-tny'. Did you mean bert-tiny"),
        (("mine",), "Of a model of your own say --model-family"),
        (("bert-tiny", "--hardware", "cdua"), "Did you mean cuda?"),
        (("bert-tiny", "--mode", "dreaming"), "Modes: inference, training."),
        (("bert-tiny", "--task", "trainin"), "There is no task 'trainin'"),
        (("bert-tiny", "--model-family", "visoin"), "There is no model family 'visoin'"),
        (("bert-tiny", "--precision", "fp7"), "There is no precision named 'fp7'"),
        (("bert-tiny", "--deployment", "moon"), "There is no deployment 'moon'"),
        (("bert-tiny", "--hardware", ""), "What follows --hardware is empty"),
        (("bert-tiny", "--hardware", ","), "A list is empty"),
        (("bert-tiny", "--batch-size", "0"), "--batch-size takes numbers from 1"),
        (("bert-tiny", "--batch-size", "-1"), "--batch-size takes numbers from 1"),
        (("bert-tiny", "--batch-size", "x"), "--batch-size takes whole numbers"),
        (("bert-tiny", "--gpu-count", "0"), "--gpu-count takes a number from 1, not 0"),
        (("bert-tiny", "--sequence-length", "0"), "--sequence-length takes a number from 1"),
        (("bert-tiny", "--image-size", "-5"), "--image-size takes a number from 1"),
        (
            ("bert-tiny", "--gpu-count", "2", "--max-memory-gb", "-3"),
            "--max-memory-gb takes a number above 0, not -3",
        ),
        (("bert-tiny", "--gpu-count", "2", "--max-memory-gb", "nan"), "above 0, not nan"),
        (("bert-tiny", "--memory-mb", "nan"), "memory_mb is nan, which limits nothing"),
        (("bert-tiny", "--max-latency-ms", "inf"), "max_latency_ms is inf, which limits nothing"),
        (("bert-tiny", "--hardware", "moon"), "There is no hardware 'moon'"),
        (("bert-tiny", "--model-family", "vision"), "is of the family embedding, not of vision"),
        (("--model-family", "poetry"), "There is no model family 'poetry'"),
        (("bert-tiny", "--memory-mb", "0"), "leaves nothing"),
        (("bert-tiny", "--max-cost", "1"), "Name a file of prices with --prices"),
        (("bert-tiny", "--prices", "none.json"), "none.json"),
        (("bert-tiny", "--task", "training", "--mode", "inference"), "Leave one out"),
        (("bert-tiny", "--max-memory-gb", "16"), "Say how many with --gpu-count"),
        (("bert-tiny", "--memory-mb", "9", "--deployment", "browser"), "are not asked together"),
        (("bert-tiny", "--create-map"), "MODEL means nothing."),
        (
            ("--create-map", "--model-family", "vision", "--batch-size", "4"),
            "--model-family, --batch-size means nothing.",
        ),
        (("--create-map", "--image-size", "64"), "a size means nothing."),
        (("--task", "embedding", "--verify"), "--verify needs a MODEL"),
        (("--task", "embedding", "--batch-size", "1,2"), "is of one batch size"),
        (("bert-tiny", "--config", "none.json"), "none.json cannot be read"),
        (("bert-tiny", "--matrix-file", "none.md"), "none.md cannot be read"),
    ],
)
def test_slips_are_told_in_one_sentence(
    recommend: Command, words: tuple[str, ...], said: str
) -> None:
    code, out, err = recommend(*words)
    assert (code, out) == (2, "")
    assert said in err
    assert len(err.splitlines()) == 1


def test_a_named_database_that_is_not_there_is_said(recommend: Command) -> None:
    code, _, err = recommend("bert-tiny", "--db", "none.duckdb")
    assert code == 3
    assert "There is no database at" in err


@pytest.mark.parametrize(
    ("words", "measures"),
    [
        (("recommend",), "--set small"),
        (("recommend", "--task", "training"), "--set small"),
        (("recommend", "--family", "vision"), "--category vision"),
        (("recommend", "--verify"), "--set small"),
        (("matrix", "--models", "bert-tiny"), "bert-tiny"),
        (("plot", "bert-tiny"), "bert-tiny"),
    ],
)
def test_where_nobody_has_measured_it_says_what_to_run(
    command: Callable[..., Command], words: tuple[str, ...], measures: str
) -> None:
    code, out, err = command(words[0])(*words[1:])
    assert (code, out) == (4, "")
    assert "Nothing is measured, as there is no database at" in err
    assert f"`accelbench run {measures}" in err


def test_what_nobody_measured_is_ruled_by_what_is_here(recommend: Command) -> None:
    code, out, _ = recommend("bert-tiny")
    assert code == 0
    assert "not here" in out  # nowhere is every platform
    assert "webgpu" not in out
    assert "webgpu" in recommend("bert-tiny", "--deployment", "browser")[1]
    assert "webgpu" in recommend("bert-tiny", "--hardware", "all")[1]


def test_an_empty_database_cannot_tell(recommend: Command, command: Callable[..., Command]) -> None:
    command("db")("init")
    code, _, err = recommend()
    assert code == 4
    assert "accelbench run --set small" in err

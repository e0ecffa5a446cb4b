"""`accelbench recommend` over stored results: every model, a ranking for a task, a map."""

from __future__ import annotations

import json

import pytest
from recommend_world import ASKED, CARD, DB, answer
from stored_rows import store


@pytest.mark.usefixtures("measured")
def test_without_a_model_every_stored_one_is_answered(tmp_path, recommend):
    store(tmp_path / DB, {"model": "resnet-tiny", "family": "vision"}, run="s")
    code, out, _ = recommend()
    assert code == 0
    assert "bert-tiny" in out
    assert "resnet-tiny" in out
    assert all(len(line) <= 80 for line in out.splitlines())
    assert len(recommend.json()["recommendations"]) == 2


@pytest.mark.usefixtures("measured")
def test_a_family_without_a_model_is_of_the_stored_models(tmp_path, recommend):
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


@pytest.mark.usefixtures("measured")
def test_models_are_ranked_for_a_task_on_some_hardware(tmp_path, recommend):
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
    assert "measured before predicted" in out.replace("\n", " ")


@pytest.mark.usefixtures("measured")
def test_a_task_that_no_stored_model_is_for_cannot_be_told(recommend):
    code, out, _ = recommend("--task", "speech_recognition")
    assert code == 4
    assert "No model with results is for speech_recognition" in out


def test_a_map_has_the_documents_nesting(tmp_path, recommend):
    code, out, err = recommend("--create-map", "--output", "map.json")
    assert (code, out, err) == (0, "", "Wrote map.json\n")
    found = json.loads((tmp_path / "map.json").read_text())
    assert set(found) == {"timestamp", "model_families"}
    embedding = found["model_families"]["embedding"]
    assert set(embedding["model_sizes"]) == {"small", "medium", "large"}
    assert set(embedding["inference"]["batch_sizes"]) == {"1", "4", "16", "32", "64"}
    cell = embedding["model_sizes"]["small"]["training"]
    assert set(cell) == {"primary", "fallbacks", "basis", "models"}
    assert cell["basis"] in ("measured", "predicted", "rule")
    code, _, err = recommend("--create-map", "--output", "map.json")
    assert code == 2
    assert "already exists" in err


@pytest.mark.usefixtures("measured")
def test_any_answer_can_be_written(tmp_path, recommend):
    code, _, _ = recommend("bert-tiny", "--output", "answer.json")
    assert code == 0
    assert json.loads((tmp_path / "answer.json").read_text())["recommendations"]


def test_of_several_answers_what_they_name_is_to_be_measured(tmp_path, recommend):
    card = {"batch_size": 8, "latency_p50_ms": 2.0, "throughput": 4000.0}
    store(tmp_path / DB, {**ASKED, **CARD, **card})
    words = ("bert-tiny", "--batch-size", "4,8", "--hardware", "cpu", "cuda")
    first = answer(recommend, "bert-tiny", "--batch-size", "4", "--hardware", "cpu", "cuda")
    command = first["decisive_measurement"]["command"]
    assert "--batch-sizes 4" in command
    assert command in " ".join(recommend(*words)[1].split())


@pytest.mark.usefixtures("measured")
def test_headings_and_lists_name_the_sizes(tmp_path, recommend):
    sizes = [{"sequence_length": n, "series_key": f"of {n}"} for n in (64, 128)]
    store(tmp_path / DB, *sizes, run="sizes")
    for words in (("bert-tiny",), ("bert-tiny", "--max-latency-ms", "1000")):
        assert "seq 128" in recommend(*words)[1].splitlines()[0]
    store(tmp_path / DB, {"model": "resnet-tiny", "family": "vision"}, run="s")
    assert "seq 128" in recommend()[1]

"""What `accelbench recommend` is given beside the question: prices, sources, and slips."""

import json

import pytest
from recommend_world import ASKED, CARD, DB, answer
from stored_rows import store

# -- what it costs


@pytest.mark.usefixtures("measured")
def test_a_price_is_part_of_the_answer_and_may_change_it(tmp_path, recommend):
    (tmp_path / "dear.json").write_text('{"per_hour": {"A card": 360.0, "cpu": 0.036}}')
    words = ("bert-tiny", "--hardware", "cpu,cuda")
    assert answer(recommend, *words)["primary_recommendation"] == "cuda"
    found = answer(recommend, *words, "--prices", "dear.json", "--objective", "cost")
    assert found["primary_recommendation"] == "cpu"
    assert recommend(*words, "--objective", "cost")[0] == 2
    card = found["all_scores"]["cuda"]["cost_per_million"]
    assert card == pytest.approx(360.0 / 3600 / 500 * 1e6)
    assert found["currency"] == "USD"
    _, out, _ = recommend(*words, "--prices", "dear.json")
    assert "$/million" in out
    assert "Priced by dear.json: A card at $360.00 an hour" in out
    (tmp_path / "euros.json").write_text('{"currency": "EUR", "per_hour": {"A card": 360.0}}')
    _, out, _ = recommend(*words, "--prices", "euros.json")
    assert "€/million" in out
    assert "Without a price: A processor (cpu)." in out
    assert "$" not in out


@pytest.mark.parametrize("currency", ["USD", "JPY"])
def test_a_price_cuts_no_figure_short(tmp_path, recommend, monkeypatch, currency):
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
    assert {"19.1", "1.32"} <= set(out.split())
    assert all(len(line) <= 80 for line in out.splitlines())
    _, out, _ = recommend(*words, "--max-cost", "100000")
    assert ("$" if currency == "USD" else "JPY ") in out
    assert all(len(line) <= 80 for line in out.splitlines())


@pytest.mark.usefixtures("measured")
def test_a_machines_own_price_counts_first(tmp_path, recommend):
    (tmp_path / "lab.json").write_text('{"per_hour": {"lab": 3.6, "cpu": 36.0}}')
    found = answer(recommend, "bert-tiny", "--hardware", "cpu", "--prices", "lab.json")
    cost = found["all_scores"]["cpu"]["cost_per_million"]
    assert cost == pytest.approx(3.6 / 3600 / 120 * 1e6)


@pytest.mark.usefixtures("measured")
def test_a_limit_on_cost_is_kept(tmp_path, recommend, monkeypatch):
    (tmp_path / "p.json").write_text('{"per_hour": {"cuda": 360.0, "cpu": 0.36}}')
    monkeypatch.setenv("ACCELBENCH_PRICES", "p.json")
    best = answer(recommend, "bert-tiny", "--max-cost", "2")["best"]
    assert (best["hardware"], best["batch_size"]) == ("cpu", 8)
    assert best["cost_per_million"] == pytest.approx(0.36 / 3600 / 200 * 1e6)
    assert recommend("bert-tiny", "--max-cost", "0.001")[0] == 1


# -- what it rests on


def test_a_folder_with_a_database_and_a_lake_are_read(tmp_path, recommend, command):
    store(tmp_path / "folder" / "other.duckdb", {}, {**CARD, "latency_mean_ms": 2.0})
    (tmp_path / "lake").mkdir()
    assert command("db")("merge", "folder/other.duckdb", "--db", "lake")[0] == 0
    for place in ("folder/other.duckdb", "folder", "lake"):
        found = answer(recommend, "bert-tiny", "--db", place)
        assert found["primary_recommendation"] == "cuda", place
        assert found["all_scores"]["cuda"]["basis"] == "measured", place


def test_a_configuration_changes_the_answer(tmp_path, recommend):
    store(tmp_path / DB, {}, {**CARD, "latency_p50_ms": 7.0, "throughput": 140.0})
    (tmp_path / "mine.json").write_text(
        '{"hardware_preferences": {"cuda": {"cost_factor": 0.2}}} // dear here\n'
    )
    assert answer(recommend, "bert-tiny")["primary_recommendation"] == "cuda"
    assert (
        answer(recommend, "bert-tiny", "--config", "mine.json")["primary_recommendation"] == "cpu"
    )


def test_a_matrix_of_ones_own_is_believed_first(tmp_path, recommend):
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
        (("bert-tiny", "--memory-mb", "nan"), "memory_mb takes a number above 0, not nan"),
        (("bert-tiny", "--max-latency-ms", "inf"), "takes a number above 0, not inf"),
        (("bert-tiny", "--hardware", "moon"), "There is no hardware 'moon'"),
        (("bert-tiny", "--model-family", "vision"), "is of the family embedding, not of vision"),
        (("--model-family", "poetry"), "There is no model family 'poetry'"),
        (("bert-tiny", "--memory-mb", "0"), "memory_mb takes a number above 0, not 0"),
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
def test_slips_are_told_in_one_sentence(recommend, words, said):
    code, out, err = recommend(*words)
    assert (code, out) == (2, "")
    assert said in err
    assert len(err.splitlines()) == 1


def test_a_named_database_that_is_not_there_is_said(recommend):
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
def test_where_nobody_has_measured_it_says_what_to_run(command, words, measures):
    code, out, err = command(words[0])(*words[1:])
    assert (code, out) == (4, "")
    assert "Nothing is measured, as there is no database at" in err
    assert f"`accelbench run {measures}" in err


def test_an_empty_database_cannot_tell(recommend, command):
    command("db")("init")
    code, _, err = recommend()
    assert code == 4
    assert "accelbench run --set small" in err


def test_a_model_of_ones_own_is_judged_by_what_was_measured_of_it(tmp_path, recommend):
    own = {**ASKED, "model": "mlp.onnx", "family": "unknown", "weights": "file"}
    store(
        tmp_path / DB,
        {**own, "hardware": "cpu", "latency_p50_ms": 2.0, "throughput": 500.0},
        {**own, "hardware": "openvino", "runtime": "openvino", "latency_p50_ms": 9.0,
         "throughput": 111.0},
    )  # fmt: skip
    found = answer(recommend, "mlp.onnx", "--hardware", "cpu,openvino")
    assert found["primary_recommendation"] == "cpu"
    status, out, err = recommend("--hardware", "cpu,openvino")
    assert status == 0, err
    assert "mlp.onnx" in out


def test_what_nobody_measured_is_ruled_by_what_is_here(recommend):
    code, out, _ = recommend("bert-tiny")
    assert code == 0
    assert "not here" in out  # nowhere is every platform
    assert "webgpu" not in out
    assert "webgpu" in recommend("bert-tiny", "--deployment", "browser")[1]
    assert "webgpu" in recommend("bert-tiny", "--hardware", "all")[1]

"""A slip of the fingers is told from what nobody has measured: by compare, history and matrix."""

from __future__ import annotations

import pytest
from stored_rows import store

from accelbench.judge.stored_results import NOISE, RERUN_OF
from accelbench.store.database import Database

DB = "accelbench.duckdb"
GPU = {"hardware": "cuda", "device_name": "A card", "latency_p50_ms": 2.0}


SLIPS = [
    (("--hardware", "cuad"), "There is no hardware named 'cuad'. Did you mean cuda"),
    (("--framework", "pytroch"), "There is no runtime named 'pytroch'. Did you mean pytorch"),
    (("--precision", "fp99"), "There is no precision named 'fp99'. Did you mean fp"),
]


@pytest.mark.parametrize("name", ["compare", "history"])
@pytest.mark.parametrize(("words", "said"), SLIPS)
def test_a_slip_in_a_filter_is_no_lack_of_results(tmp_path, command, name, words, said):
    store(tmp_path / DB, {}, GPU)
    code, out, err = command(name)(*words)
    assert (code, out) == (2, "")
    assert said in err
    option, slip = words
    right = {"--hardware": "cpu", "--framework": "pytorch", "--precision": "fp32"}[option]
    assert command(name)(option, f"{right},{slip}")[0] == 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--hardware", "cuad"), "Did you mean cuda"),
        (("--precision", "fp99"), "Did you mean fp"),
        (("--models", "bert-tiyn"), "Did you mean bert-tiny"),
        (("--family", "visoin"), "Did you mean vision"),
    ],
)
def test_a_slip_in_a_filter_of_a_matrix(tmp_path, command, words, said):
    store(tmp_path / DB, {})
    code, out, err = command("matrix")(*words)
    assert (code, out, said in err) == (2, "", True)


def test_a_word_that_only_results_know_is_known(tmp_path, command):
    theirs = {"hardware": "gaudi", "runtime": "synapse", "precision": "fp8"}
    store(tmp_path / DB, theirs, {**theirs, "batch_size": 8})
    words = ("--hardware", "gaudi,cpu", "--framework", "synapse", "--precision", "fp8")
    assert command("compare")("--by", "batch", *words)[0] == 0
    code, _, err = command("compare")("--by", "batch", *words, "--mode", "training")
    assert (code, "Ask for less" in err) == (4, True)  # nor can this program measure it
    assert command("matrix")("--hardware", "gaudi", "--precision", "fp8")[0] == 0


def test_what_the_program_knows_is_not_looked_for_in_the_database(tmp_path, compare, monkeypatch):
    store(tmp_path / DB, {}, GPU)
    asked: list[str] = []
    query = Database.query

    def noted(self: Database, sql: str, *more: object) -> object:
        asked.append(sql)
        return query(self, sql, *more)  # type: ignore[arg-type]

    monkeypatch.setattr(Database, "query", noted)
    assert compare("bert-tiny", "--hardware", "cpu,cuda", "--framework", "torch,onnx")[0] == 0
    assert len(asked) == 3  # its runs, where its rows lie, and these


def test_the_other_names_of_a_runtime_find_it(tmp_path, compare):
    store(tmp_path / DB, {}, GPU)
    assert compare("--framework", "torch")[0] == 0


@pytest.mark.parametrize("word", ["RESNET50", "ResNet50", "resnet-50", "microsoft/resnet-50"])
def test_a_model_in_another_spelling_is_told(tmp_path, compare, word):
    theirs = {"model": "resnet50"}
    store(tmp_path / DB, theirs, {**theirs, **GPU})
    code, out, err = compare(word)
    assert (code, out) == (2, "")
    assert f"has no results of {word!r}. Did you mean resnet50?" in err
    code, _, err = compare("resnet50", "--batch-sizes", "77")
    assert (code, "Did you mean" in err) == (4, False)


def test_names_like_a_known_model_that_nobody_measured(tmp_path, compare):
    store(tmp_path / DB, {"model": "resnet-tiny"})
    code, _, err = compare("resnet-50")
    assert code == 4
    assert "`accelbench run resnet-50`" in err
    assert "There are results of resnet-tiny." in err


@pytest.mark.parametrize(
    ("words", "run"),
    [
        (
            "bert-base --precision bf16 --batch-sizes 1,8 --hardware cuda --framework onnx",
            "bert-base --hardware cuda --framework onnxruntime --precision bf16 --batch-sizes 1,8",
        ),
        ("--mode training", "--set small --mode training"),
        ("", "--set small --hardware all"),
    ],
)
def test_what_was_asked_for_is_what_is_to_be_measured(tmp_path, compare, words, run):
    store(tmp_path / DB, *([{}] if words else []))
    code, _, err = compare(*words.split())
    assert (code, f"`accelbench run {run}`" in err) == (4, True), err


@pytest.mark.parametrize("option", ["--run", "--hardware", "--batch-sizes", "--mode"])
def test_a_model_that_is_the_only_value_of_a_list_is_told(tmp_path, compare, option):
    store(tmp_path / DB, {}, run="cpu-1")
    code, _, err = compare(option, "bert-tiny")
    assert (code, "models come before the options" in err) == (2, True)


@pytest.mark.parametrize("some", [("--batch-sizes", "1,8"), ("--hardware", "cpu", "cuda")])
def test_a_model_after_the_values_of_a_list_is_the_model(tmp_path, compare, some):
    cuda = {"hardware": "cuda", "device_name": "A card"}
    store(tmp_path / DB, {}, cuda, {"model": "gpt2"}, {**cuda, "model": "gpt2"})
    found = compare.json(*some, "bert-tiny")
    assert {one["model"] for one in found["comparisons"]} == {"bert-tiny"}


@pytest.mark.parametrize("label", [NOISE, f"{RERUN_OF}r"])
def test_what_a_check_measured_for_itself_is_left_out_unless_it_is_named(tmp_path, compare, label):
    later = {"started_at": "2026-05-01T00:00:00Z"}
    store(tmp_path / "only.duckdb", {}, GPU, run="n", about={"label": label})
    code, _, err = compare("--db", "only.duckdb")
    assert (code, "but what checks measured for themselves" in err) == (4, True)
    store(tmp_path / DB, {}, GPU, about={"label": "main"})
    slow = [{**later, "latency_p50_ms": ms} for ms in (80.0, 81.0)]
    store(tmp_path / DB, *slow, {**GPU, **later}, run="n", about={"label": label})
    assert {one["run_id"] for one in compare.json()["comparisons"]} == {"r"}
    assert {one["run_id"] for one in compare.json("--run", "n")["comparisons"]} == {"n"}
    held = compare.json("--by", "run", "--baseline", "n", "--hardware", "cuda")["comparisons"]
    assert {one["run_id"] for one in held} == {"n", "r"}


@pytest.mark.parametrize(
    ("axis", "advised"),
    [
        ("hardware", "accelbench run bert-tiny --hardware all --batch-sizes 1"),
        ("mode", "accelbench run bert-tiny --mode both --batch-sizes 1"),
        ("precision", "accelbench run bert-tiny --precision fp32,bf16 --batch-sizes 1"),
        ("batch", "accelbench run bert-tiny --batch-sizes 1,8"),
    ],
)
def test_what_an_axis_lacks_is_measured_by_the_command_that_is_named(
    tmp_path, compare, axis, advised
):
    store(tmp_path / DB, {})
    code, _, err = compare("--by", axis)
    assert code == 4
    assert f"`{advised}`" in " ".join(err.split())


def test_a_command_that_is_named_asks_for_what_was_asked(tmp_path, compare, command):
    (tmp_path / "net.onnx").touch()
    net = {"model": "net.onnx", "sequence_length": None, "batch_size": 4}
    sizes = [{**net, "dimensions": text} for text in ("edges=8,nodes=64", "edges=8,nodes=128")]
    store(tmp_path / "other.duckdb", {"sequence_length": 256, "batch_size": 8}, *sizes)
    into = f"--db {tmp_path / 'other.duckdb'}"
    for words, sizes_of in (
        ("bert-tiny --batch-sizes 8", "--batch-sizes 8 --sequence-lengths 256"),
        ("net.onnx --batch-sizes 4", "--batch-sizes 4 --dim edges=8 --dim nodes=64,128"),
    ):
        model, (*filters,) = words.split()[0], words.split()[1:]
        code, _, err = compare(model, *filters, "--by", "mode", "--hardware", "cpu", *into.split())
        said = f"`accelbench run {model} --mode both --hardware cpu {sizes_of} {into}`"
        assert (code, said in err) == (4, True), err
        code, _, err = command("check")(model, *filters, *into.split())
        asked = f"--hardware cpu --framework pytorch {sizes_of} {into}"
        said = f"`accelbench run {model} {asked} --launches 5 --label baseline`"
        assert (code, said in err) == (2, True), err


@pytest.mark.parametrize("name", ["compare", "history", "plot"])
def test_a_filter_of_a_run_names_the_command_that_measures_it(tmp_path, command, name):
    store(tmp_path / DB, {"series_key": "a"}, {**GPU, "series_key": "b"})
    code, _, err = command(name)("bert-tiny", "--run", "last", "--precision", "bf16")
    assert (code, "`accelbench run bert-tiny --precision bf16`" in err) == (4, True)


def test_a_folder_without_such_results_is_measured_by_its_name(tmp_path, command):
    (tmp_path / "my-llama").mkdir()
    store(tmp_path / DB, {"model": "my-llama/"})
    code, _, err = command("compare")("my-llama", "--precision", "bf16")
    assert (code, "`accelbench run my-llama --precision bf16`" in err) == (4, True)

"""`accelbench compare` as people and machines meet it."""

from __future__ import annotations

import csv
import json

import pytest
from stored_rows import store

from accelbench.judge import stored_results

GPU = {"hardware": "cuda", "device_name": "A card", "latency_p50_ms": 2.0}


def test_platforms_are_held_against_the_cpu(tmp_path, compare):
    store(tmp_path / "accelbench.duckdb", {}, GPU)
    code, out, _ = compare()
    assert code == 0
    assert "By hardware, on lab" in out
    assert "bert-tiny · fp32 · batch 1 · seq 128" in out
    assert "4.00×" in out  # of the means that are shown, 8.5 and 2.125 ms
    assert "baseline" in out
    assert "--launches" in out


def test_json_and_csv_say_the_same(tmp_path, compare):
    launches = [{**GPU, "launch": n, "latency_p50_ms": ms} for n, ms in enumerate((2.0, 2.1, 1.9))]
    cpus = [{"launch": n, "latency_p50_ms": ms} for n, ms in enumerate((8.0, 8.1, 7.9))]
    store(tmp_path / "accelbench.duckdb", *cpus, *launches)
    found = compare.json("bert-tiny", "--output", "analysis.csv")
    assert (found["axis"], found["other_machines"]) == ("hardware", [])
    cpu, gpu = found["comparisons"]
    assert (cpu["speedup"], gpu["baseline"], gpu["launches"]) == (1.0, "cpu A processor", 3)
    assert gpu["speedup"] == pytest.approx(4.0, rel=0.01)
    assert gpu["speedup_low"] < 4.0 < gpu["speedup_high"]
    with (tmp_path / "analysis.csv").open(encoding="utf-8", newline="") as stream:
        lines = list(csv.DictReader(stream))
    assert [float(line["speedup"]) for line in lines] == [1.0, gpu["speedup"]]
    assert lines[1]["hardware"] == "cuda"
    assert lines[0]["speedup_low"] == ""
    assert compare("--output", "analysis.csv")[0] == 2  # what is there stays


def test_the_suffix_of_the_file_says_its_format(tmp_path, compare):
    store(tmp_path / "accelbench.duckdb", {}, GPU)
    assert compare("--output", "a.md")[0] == 0
    lines = (tmp_path / "a.md").read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if line.startswith("## ")] == [
        "## bert-tiny · fp32 · batch 1 · seq 128"
    ]
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines if line[:1] == "|"]
    assert cells[0][0] == "hardware"
    assert cells[0][-1] == "times as fast"
    assert [row[0] for row in cells[2:]] == ["cpu A processor", "cuda A card"]
    assert compare("--output", "a.json")[0] == 0
    assert json.loads((tmp_path / "a.json").read_text(encoding="utf-8")) == compare.json()


@pytest.mark.parametrize("more", [(), ("--json",), ("--output", "a.csv"), ("--output", "a.md")])
def test_a_comparison_that_refuses_every_side_is_inconclusive(tmp_path, compare, more):
    store(tmp_path / "accelbench.duckdb", {"weights_digest": "a"}, {**GPU, "weights_digest": "b"})
    code, _, err = compare(*more)
    assert (code, "Nothing was compared: not alike: weights" in err) == (4, True)
    assert compare(*more[:1], *(("b.csv",) if more[1:] else ()), "--allow", "weights")[0] == 0


@pytest.mark.parametrize(
    ("word", "axis"),
    [
        *(("batch_size", "batch"), ("batch-sizes", "batch"), ("started_at", "date")),
        *(("framework", "engine"), ("device_name", "hardware"), ("precison", "precision")),
    ],
)
def test_a_column_or_another_word_for_an_axis_is_understood(compare, word, axis):
    code, _, err = compare("--by", word)
    assert (code, f"Did you mean {axis}?" in err) == (2, True)


def test_the_figures_of_one_platform_are_written_without_a_baseline(tmp_path, compare):
    store(tmp_path / "accelbench.duckdb", {}, {"batch_size": 8})
    code, out, err = compare("--output", "one.csv")
    assert (code, out) == (0, "")
    assert "has results at two values of hardware. The figures are written" in err
    with (tmp_path / "one.csv").open(encoding="utf-8", newline="") as stream:
        lines = list(csv.DictReader(stream))
    assert [(one["hardware"], one["batch_size"]) for one in lines] == [("cpu", "1"), ("cpu", "8")]
    assert {(one["baseline"], one["speedup"], one["refused"]) for one in lines} == {("", "", "")}
    assert all(float(one["latency_ms"]) > 0 for one in lines)
    assert compare()[0] == 4  # on a terminal there is nothing to compare


def test_a_name_of_others_is_found_beside_the_catalogues(tmp_path, compare):
    theirs = {"model": "resnet50", "sequence_length": None}
    store(tmp_path / "accelbench.duckdb", theirs, theirs | GPU, {}, GPU)
    assert {line["model"] for line in compare.json("resnet50")["comparisons"]} == {"resnet50"}


def test_a_device_is_named_by_a_part_of_its_name(tmp_path, compare):
    other = GPU | {"device_name": "Another one", "latency_p50_ms": 4.0}
    store(tmp_path / "accelbench.duckdb", {}, GPU, other)
    devices = {
        (line["hardware"], line["device_name"])
        for line in compare.json("--hardware", "cpu,cuda:a CARD")["comparisons"]
    }
    assert devices == {("cpu", "A processor"), ("cuda", "A card")}
    assert "Not shown" not in compare("--hardware", "cpu,cuda:a card")[1]
    assert "Not shown" not in compare("--hardware", "cpu,gpu:card")[1]
    code, _, err = compare("--hardware", "cpu,cuda:h100")
    assert code == 2
    assert "'cuda:A card', 'cuda:Another one'" in err
    assert "'cuda:Another one'" in compare("--hardware", "another")[2]


def test_results_are_narrowed_down(tmp_path, compare):
    sides = [{"batch_size": b, **more} for b in (1, 8) for more in ({}, GPU, {"precision": "int8"})]
    store(tmp_path / "accelbench.duckdb", *sides)
    some = compare.json("--batch-sizes", "8", "--precision", "fp32")["comparisons"]
    assert {(one["batch_size"], one["precision"]) for one in some} == {(8, "fp32")}
    by = compare.json("--by", "precision", "--hardware", "cpu", "--baseline", "int8")["comparisons"]
    assert {one["baseline"] for one in by} == {"int8"}


def test_machines_are_not_mixed(tmp_path, compare):
    path = tmp_path / "accelbench.duckdb"
    store(path, {"started_at": "2025-01-01T00:00:00Z"}, run="old", machine="attic")
    store(path, GPU, {})
    assert "attic" in compare.json()["other_machines"][0]
    code, _, err = compare("--machine", "attic")
    assert code == 4
    assert "No configuration on attic" in err
    assert "name one with --by" not in err
    assert "Other machines, by --machine: lab" in err


def test_where_nothing_is_alike_the_other_axes_are_named(tmp_path, compare):
    store(tmp_path / "accelbench.duckdb", {}, {"batch_size": 8})
    store(tmp_path / "accelbench.duckdb", {}, run="again")
    code, _, err = compare()
    assert code == 4
    assert "They differ in batch, run: name one with --by." in err
    code, out, _ = compare("--by", "batch")
    assert code == 0
    assert "knee" in out


@pytest.mark.parametrize(
    "words", [("--by", "mood"), ("--allow", "all"), ("--batch-sizes", "many"), ("--machine", "no")]
)
def test_wrong_words_are_told(tmp_path, compare, words):
    store(tmp_path / "accelbench.duckdb", {}, GPU)
    code, out, err = compare(*words)
    assert (code, out) == (2, "")
    assert words[1] in err


def test_a_place_that_nobody_measured_is_no_baseline(tmp_path, compare):
    store(tmp_path / "accelbench.duckdb", {}, GPU)
    code, _, err = compare("--baseline", "tpu")
    assert (code, "Nothing was measured at 'tpu'" in err, "cpu A processor" in err) == (
        2,
        True,
        True,
    )


def test_without_a_database_the_way_to_one_is_told(compare):
    code, _, err = compare()
    assert code == 3
    assert "accelbench run" in err


def test_more_than_anybody_wants_to_see_is_to_be_narrowed_down(tmp_path, compare, monkeypatch):
    store(tmp_path / "accelbench.duckdb", {}, GPU, {"model": "vit-tiny"})
    monkeypatch.setattr(stored_results, "_MOST", 2)
    code, out, err = compare()
    assert (code, out) == (2, "")
    assert "More than 2 results answer to that. Name models" in err
    assert compare("bert-tiny")[0] == 0

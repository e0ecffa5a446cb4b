"""A precision that is asked of stored results finds them under their source's spelling too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from recommend_world import ASKED, DB, answer
from stored_rows import store

from accelbench.core.precision import spellings
from accelbench.judge.filters import by_word, filters_of

CARD = {"hardware": "cuda", "device_name": "A card", "latency_p50_ms": 1.0}


@pytest.fixture
def stored(tmp_path: Path) -> None:
    """Two places in each of three precisions of somebody else's, and of one of ours."""
    rows: list[dict[str, Any]] = [
        {**ASKED, **place, "precision": name}
        for name in ("float", "INT8", "UINT4", "fp16")
        for place in ({}, CARD)
    ]
    store(tmp_path / DB, *rows)


def test_what_is_typed_comes_last_of_what_it_may_be_stored_as():
    assert spellings("float") == ("fp32", "FP32", "FLOAT", "float")
    assert spellings("INT4") == ("int4", "INT4")
    found = filters_of(precisions=["int8,INT4"])["precision"]
    assert by_word("precision", found) == {"int8": ["INT8", "int8"], "INT4": ["int4", "INT4"]}


@pytest.mark.usefixtures("stored")
@pytest.mark.parametrize(
    ("word", "kept"), [("float", "float"), ("int8", "INT8"), ("uint4", "UINT4")]
)
def test_every_command_finds_it(command, recommend, word, kept):
    found = command("compare").json("--precision", word)["comparisons"]
    assert [line["precision"] for line in found] == [kept, kept]
    assert command("matrix").json("--precision", word)["precision"] == kept
    scores = answer(recommend, "bert-tiny", "--precision", word)["all_scores"]
    assert [scores[name]["precision"] for name in ("cuda", "cpu")] == [kept, kept]


@pytest.mark.usefixtures("stored")
def test_what_no_result_has_is_a_slip_in_its_own_letters(command):
    code, _, error = command("compare")("--precision", "UINT5,fp16")
    assert code == 2
    assert "There is no precision named 'UINT5'." in error
    assert "UINT4" in error
    # Ours that nothing was measured in is no slip, and is said once.
    said = command("compare").json("--precision", "fp16,bf16")["not_shown"]
    assert [one.partition(":")[2].partition(":")[0] for one in said] == [" precision bf16"]


def test_other_words_of_an_import_are_asked_of_a_choice(tmp_path, recommend):
    name = "default(fp16/fp32)"
    store(tmp_path / DB, {**ASKED, "precision": name})
    scores = answer(recommend, "bert-tiny", "--precision", name)["all_scores"]
    assert scores["cpu"]["precision"] == name

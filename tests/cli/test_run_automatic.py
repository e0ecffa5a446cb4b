"""`accelbench run --hardware auto`: what is chosen is said, planned and measured."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb
import pytest
from shells import QUICK, Shell

SMALL = ("--framework", "scripted", "--iterations", "3", "--warmup", "1", "--batch-sizes", "1")


def plan(shell: Shell, *words: str) -> Any:
    return json.loads(shell(*words, "--dry-run", "--json").stdout)


def test_the_plan_shows_what_was_chosen_and_why(shell):
    found = plan(shell, "bert-tiny", "--hardware", "auto", *SMALL)
    (case,) = found["cases"]
    (note,) = [n for n in found["notes"] if n.startswith("bert-tiny fp32 inference is measured on")]
    assert f"measured on {case['hardware']}" in note
    assert case["status"] == "planned"


def test_every_model_and_mode_has_a_choice_of_its_own(shell):
    words = ("--hardware", "AUTO", "--mode", "both", "--framework", "pytorch", "--batch-sizes", "1")
    found = plan(shell, "bert-tiny", "resnet-tiny", *words)
    # Beside other work a note says that the machine is busy.
    chosen = (note.partition(" is measured on ") for note in found["notes"])
    said = [what for what, told, _ in chosen if told]
    assert said == [
        *("bert-tiny fp32 inference", "bert-tiny fp32 training"),
        *("resnet-tiny fp32 inference", "resnet-tiny fp32 training"),
    ]


def test_it_is_measured_there_and_the_run_remembers_why(shell):
    done = shell("bert-tiny", "--hardware", "auto", "--json", *SMALL)
    (result,) = json.loads(done.stdout)["results"]
    assert result["status"] == "ok"
    assert f"is measured on {result['hardware']}" in done.stderr
    with duckdb.connect(str(shell.work / "accelbench.duckdb")) as con:
        ((body,),) = con.execute("SELECT body FROM fact WHERE kind = 'run_started'").fetchall()
    assert any("is measured on" in note for note in json.loads(body)["notes"])


@pytest.mark.parametrize("form", [("--db", "mine.duckdb"), ("--no-database",), ()])
def test_it_needs_no_results_to_choose_by(shell, form):
    done = shell("bert-tiny", "--hardware", "auto", *SMALL, *form)
    assert "Total configurations: 1 (1 ok)" in done.stdout


def test_the_documents_spellings_of_the_runner_are_taken(shell):
    words = ("--multiple-models", "--model-families", "embedding,vision", "--set", "small")
    found = plan(shell, *words, "--hardware", "auto", *SMALL)
    models = {case["model"] for case in found["cases"]}
    assert {"bert-tiny", "resnet-tiny"} <= models
    assert "gpt2-tiny" not in models
    alone = plan(shell, "--model", "gpt2-tiny", "--model-family", "text_generation", *QUICK)
    assert {case["model"] for case in alone["cases"]} == {"gpt2-tiny"}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--hardware", "auto,cpu"), "--hardware auto and cpu contradict each other"),
        (("--hardware", "auto", "--simulate"), "--simulate requires --hardware"),
        (("--hardware", "cpu", "--model-family", "vision"), "No model is left after the filters"),
    ],
)
def test_what_contradicts_itself_is_refused(shell, words, said):
    assert said in shell.refused("bert-tiny", *words, "--no-database", code=2)


def test_nothing_is_left_of_a_plan_that_is_only_shown(shell):
    before = shell.listing()
    plan(shell, "bert-tiny", "--hardware", "auto", *SMALL)
    assert shell.listing() == before
    assert not list(Path(shell.work).rglob("*.duckdb"))

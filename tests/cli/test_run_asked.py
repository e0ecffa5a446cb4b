"""`accelbench run`: how people type what they want, and the plan that it becomes."""

from __future__ import annotations

import json

import pytest
from shells import SCRIPTED, Shell

from accelbench.cli.services import before_run
from accelbench.store.database import Database


def planned(shell: Shell, *words: str) -> list[tuple[str, str, int]]:
    document = json.loads(shell(*words, "--dry-run", "--json").stdout)
    return [(c["model"], c["precision"], c["batch_size"]) for c in document["cases"]]


def test_lists_take_commas_spaces_and_repetition(shell):
    expected = [
        (model, precision, batch)
        for model in ("bert-tiny", "vit-tiny")
        for precision in ("fp32", "bf16")
        for batch in (1, 4, 8)
    ]
    for words in (
        "bert-tiny vit-tiny --batch-sizes 1,4,8 --precision fp32,bf16",
        "bert-tiny vit-tiny --batch-sizes 1 4 8 --precision float32 bfloat16",
        "bert-tiny,vit-tiny --batch-sizes 1 --batch-sizes 8 4 --precision fp32 --precision bf16",
        "--batch-sizes 1, 4, 8 --precision fp32 bf16 --model bert-tiny vit-tiny",
    ):
        assert planned(shell, *words.split(), *SCRIPTED) == expected, words


def test_the_documents_spellings_work(shell):
    done = shell(
        *("--device", "cpu", "--model-id", "bert-tiny", "--batch-size", "1", "--save"),
        *("--db-path", "mine.duckdb", "--framework", "scripted", "--json", "--quiet"),
    )
    (row,) = json.loads(done.stdout)["results"]
    assert (row["model"], row["batch_size"], row["status"]) == ("bert-tiny", 1, "ok")
    assert len(Database(shell.work / "mine.duckdb").results()) == 1


def test_a_dry_run_writes_nothing_and_says_what_would_be(shell):
    done = shell("bert-tiny", "--batch-sizes", "1", "8", "--dry-run", *SCRIPTED)
    assert not list(shell.work.iterdir())
    assert "batch 8" in done.stdout
    assert "2 cases" in done.stdout
    assert "estimated" in done.stdout


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("--hardware", "cpu"), 0),
        (("--hardware", "tpu"), 3),
        (("--hardware", "cpu,tpu"), 3),
        (("--hardware", "cpu", "--batch-sizes", "100000000"), 3),  # beyond all memory
    ],
)
@pytest.mark.parametrize("more", [(), ("--json",)])
def test_a_dry_run_ends_as_the_run_would(command, words, code, more):
    batch = () if "--batch-sizes" in words else ("--batch-sizes", "1")
    asked = ("bert-tiny", *batch, "--framework", "pytorch", *words)
    assert command("run")(*asked, "--dry-run", *more)[0] == code


def test_a_dry_run_says_that_a_busy_machine_takes_longer(command, monkeypatch, tmp_path):
    monkeypatch.setattr(before_run, "busy_warning", lambda now: "The machine is busy.")
    (tmp_path / "script.json").write_text("{}", encoding="utf-8")
    monkeypatch.setenv("ACCELBENCH_SCRIPT", str(tmp_path / "script.json"))
    words = ("bert-tiny", "--batch-sizes", "1", "--dry-run", *SCRIPTED)
    code, out, _ = command("run")(*words)
    assert (code, "Note: The machine is busy.\n" in out) == (0, True)
    assert "for an idle machine" in out
    assert "The machine is busy." in command("run").json(*words)["notes"]


def test_a_limit_takes_the_first_cases_and_says_so(shell):
    document = json.loads(
        shell("bert-tiny", "--limit", "2", "--dry-run", "--json", *SCRIPTED).stdout
    )
    assert len(document["cases"]) == 2
    assert any("--limit 2" in note for note in document["notes"])

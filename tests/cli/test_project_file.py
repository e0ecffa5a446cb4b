"""accelbench.toml: defaults of a project, which go behind what is typed and the environment."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from shells import Command

from accelbench.cli.services.project_file import project_file

FILE = Path("accelbench.toml")
DEFAULTS = """\
database = "data/mine.duckdb"
hardware = "cpu"
framework = ["pytorch"]
batch-sizes = [2]
launches = 3

[doctor]
timeout = 5
"""


@pytest.fixture
def run(command: Callable[..., Command]) -> Command:
    made = command("run")
    FILE.write_text(DEFAULTS, encoding="utf-8")
    return made


def planned(run: Command, *words: str) -> dict[str, Any]:
    code, out, err = run(*words, "--dry-run", "--json")
    assert code == 0, err
    document: dict[str, Any] = json.loads(out)
    return document


def batches(document: dict[str, Any]) -> list[int]:
    return [case["batch_size"] for case in document["cases"]]


def test_it_says_what_is_not_typed(run):
    document = planned(run, "bert-tiny")
    assert batches(document) == [2]
    assert {c["hardware"] for c in document["cases"]} == {"cpu"}
    assert document["launches"] == 3
    keys = "database, hardware, framework, batch_sizes, launches"
    assert document["notes"][0] == f"Where nothing else is said, {FILE.absolute()} does: {keys}."


@pytest.mark.parametrize("spelling", ["--batch-sizes", "--batch-size"])
def test_what_is_typed_goes_first_in_any_spelling(run, spelling):
    assert batches(planned(run, "bert-tiny", spelling, "4")) == [4]


def test_a_plan_file_goes_before_it(run):
    Path("plan.yaml").write_text(
        "models: bert-tiny\nmatrix: {batch_sizes: 8}\nrun: {launches: 1}\n"
    )
    document = planned(run, "plan.yaml")
    assert (batches(document), document["launches"]) == ([8], 1)
    assert {case["hardware"] for case in document["cases"]} == {"cpu"}


def test_the_database_is_every_command_s(run, command, monkeypatch):
    history = command("history")
    _, _, err = history()
    assert str(Path("data/mine.duckdb").absolute()) in " ".join(err.split()).replace(" ", "")
    monkeypatch.setenv("ACCELBENCH_DB", "other.duckdb")
    assert "other.duckdb" in history()[2]
    assert "third.duckdb" in history("--db", "third.duckdb")[2]
    monkeypatch.delenv("ACCELBENCH_DB")
    history()
    assert "ACCELBENCH_DB" not in os.environ


def test_hardware_of_the_project_asks_for_nothing_by_itself(run):
    code, _, err = run()
    assert (code, "No model is named" in err) == (2, True)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("databse = 'x'", "line 1, 'databse': there is no such key. Did you mean database"),
        ("launches = 'many'", "line 1, 'launches': 'many' is not a whole number"),
        ("launches = 0", "line 1, 'launches': 0 is not from 1 on"),
        ("hardware = [[]]", "a word or a number was expected"),
        ("launches = ", "invalid value"),
        ("[run]\nlaunchs = 2", "line 2, 'run.launchs': `accelbench run` has no such option"),
        ("dry_run = true", "there is no such key"),
        ("x = " + "[" * 5000, "nested deeper"),
    ],
)
def test_what_is_wrong_in_it_gets_a_sentence(run, text, sentence):
    FILE.write_text(text, encoding="utf-8")
    code, out, err = run("bert-tiny", "--dry-run")
    assert (code, out) == (2, "")
    said = " ".join(err.split())
    assert sentence in said
    assert "accelbench.toml" in said


def test_it_is_looked_for_up_to_the_repository_s_root(tmp_path, monkeypatch):
    monkeypatch.setattr(Path, "home", lambda: tmp_path / "home")
    deep = tmp_path / "repository" / "sub" / "deep"
    deep.mkdir(parents=True)
    stray = tmp_path / "accelbench.toml"
    stray.touch()
    monkeypatch.chdir(deep)
    assert project_file() is None  # outside of a repository in the working folder alone
    (tmp_path / "repository" / ".git").mkdir()
    assert project_file() is None  # not above the root
    (tmp_path / "repository" / "accelbench.toml").touch()
    assert project_file() == tmp_path / "repository" / "accelbench.toml"
    (deep / "accelbench.toml").touch()
    assert project_file() == deep / "accelbench.toml"
    monkeypatch.chdir(tmp_path)
    assert project_file() == stray


def test_the_doctor_says_where_it_is(command):
    from accelbench.cli.commands.doctor import _project

    command("doctor")
    assert _project() == []
    FILE.touch()
    ((group, finding),) = _project()
    assert (group, finding.name, str(FILE.absolute()) in finding.said) == (
        *("project", "accelbench.toml", True),
    )

"""The action and the documented job: their steps run as a runner would run them."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from accelbench.cli.commands import check, run

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "continuous-integration.md").read_text(encoding="utf-8")
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
COMMANDS = {"run": run.app, "check": check.app}

#: Stands for every program that a step starts: what it was asked is kept, the gate says no.
STAND_IN = """#!/bin/sh
echo "$(basename "$0") $*" >> "$ASKED"
echo $(ls) >> "$ASKED.where"
[ "$1" = check ] && exit "${OUTCOME:-0}"
[ "$1" = run ] && exit "${RAN:-0}"
exit 0
"""


def jobs_in(page: str) -> list[Any]:
    return [yaml.safe_load(text) for text in re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)]


def understood(words: list[str]) -> None:
    """The command line takes these words."""
    program, name, *rest = words
    assert program == "accelbench"
    command = typer.main.get_command(COMMANDS[name])
    command.make_context(name, rest)


def git(folder: Path, *words: str) -> str:
    line = ["git", "-c", "user.name=a", "-c", "user.email=a@b", *words]
    done = subprocess.run(line, cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Two commits, and programs that only write down what they were asked."""
    folder = tmp_path / "project"
    folder.mkdir()
    git(folder, "init", "-q")
    for name in ("first", "second"):
        (folder / name).write_text(name)
        git(folder, "add", ".")
        git(folder, "commit", "-qm", name)
    (tmp_path / "bin").mkdir()
    for name in ("accelbench", "python"):
        program = tmp_path / "bin" / name
        program.write_text(STAND_IN)
        program.chmod(0o755)
    return folder


def steps(
    folder: Path, inputs: dict[str, str], outcome: int = 0, ran: int = 0
) -> tuple[int, list[str]]:
    """Run the action's steps: how the last ended, and what was asked of programs."""
    aside = folder.parent
    given = {name: one.get("default", "") for name, one in ACTION["inputs"].items()} | inputs
    temp = aside / "temp"
    temp.mkdir(exist_ok=True)
    code = 0
    for step in ACTION["runs"]["steps"]:
        said = {
            name: value.replace("${{ runner.temp }}", str(temp)).replace(
                "${{ github.run_id }}", "7"
            )
            for name, value in step.get("env", {}).items()
        }
        for name, value in said.items():
            of = re.fullmatch(r"\$\{\{ inputs\.([a-z-]+) \}\}", value)
            said[name] = given[of[1]] if of else value
            if out := re.fullmatch(r"\$\{\{ steps\.[a-z]+\.outputs\.([a-z]+) \}\}", value):
                lines = (temp / "output").read_text().splitlines()
                said[name] = dict(line.split("=", 1) for line in lines)[out[1]]
        about = {
            "PATH": f"{aside / 'bin'}:{os.environ['PATH']}", "HOME": str(aside),
            "ASKED": str(aside / "asked"), "OUTCOME": str(outcome), "RAN": str(ran),
            "GITHUB_ACTION_PATH": "/the/action", "RUNNER_TEMP": str(temp),
            "GITHUB_STEP_SUMMARY": str(temp / "summary.md"), "GITHUB_OUTPUT": str(temp / "output"),
        }  # fmt: skip
        line = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
        done = subprocess.run(
            line, cwd=folder, env=about | said, check=False, capture_output=True, text=True
        )
        (aside / "errors").write_text(
            "\n".join(text for text in done.stdout.splitlines() if text.startswith("::error"))
        )
        if code := done.returncode:
            break
    return code, (aside / "asked").read_text().splitlines()


def test_both_commits_are_measured_and_checked(repository):
    first = git(repository, "rev-parse", "HEAD~1")
    inputs = {
        "models": "bert-base vit-base",
        "arguments": "--hardware cpu --batch-sizes 1,8",
        "baseline": first,
        "threshold": "0.1",
        "install": "python -m pip install -e .",
    }
    code, asked = steps(repository, inputs)
    assert code == 0
    assert asked[:2] == ["python -m pip install /the/action", "accelbench setup torch"]
    (measured,) = [line for line in asked if line.startswith("accelbench run")]
    environment = repository.parent / "temp" / "baseline-environment"
    assert measured.endswith(f"--label head --against {environment}")
    assert f"python -m venv --clear --system-site-packages {environment}" in asked
    seen = (repository.parent / "asked.where").read_text().splitlines()
    installed = [where for line, where in zip(asked, seen, strict=True) if line.endswith("-e .")]
    assert installed == ["first second", "first"]
    for line in asked:
        if line.startswith(("accelbench run", "accelbench check")):
            understood(shlex.split(line))
    assert "--threshold 0.1" in asked[-1]


@pytest.mark.parametrize(
    ("outcome", "cannot_tell", "code"),
    [(0, "fail", 0), (1, "fail", 1), (1, "pass", 1), (4, "fail", 4), (4, "pass", 0)],
)
def test_the_job_ends_as_the_check_does(repository, outcome, cannot_tell, code):
    first = git(repository, "rev-parse", "HEAD~1")
    inputs = {"models": "bert-base", "baseline": first, "cannot-tell": cannot_tell}
    found, asked = steps(repository, inputs, outcome)
    assert found == code
    # Nothing has to be installed there: this environment with that commit's files.
    assert asked[-2].endswith(f"--against commit:{first}")
    assert "--threshold" not in asked[-1]
    said = (repository.parent / "temp" / "output").read_text()
    assert f"outcome={outcome}\n" in said


@pytest.mark.parametrize(("ran", "code"), [(1, 0), (3, 1)])
def test_a_case_that_fails_is_for_the_check_to_judge(repository, ran, code):
    inputs = {"models": "bert-base", "baseline": git(repository, "rev-parse", "HEAD~1")}
    found, asked = steps(repository, inputs, ran=ran)
    assert found == code
    assert (asked[-1].split()[1] == "check") == (code == 0)


def test_a_branch_of_a_shallow_clone_is_fetched_and_a_second_job_finds_its_place_free(
    repository, tmp_path
):
    branch = git(repository, "branch", "--show-current")
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", "--depth", "1", f"file://{repository}", str(clone))
    git(clone, "commit", "-q", "--allow-empty", "-m", "third")
    for word in (f"origin/{branch}", branch):
        found, asked = steps(clone, {"models": "bert-base", "baseline": word, "install": "true"})
        assert found == 0, asked
    # What is registered, and was taken away, is no obstacle.
    git(clone, "worktree", "add", "--detach", str(tmp_path / "temp" / "baseline"), "HEAD")
    shutil.rmtree(tmp_path / "temp" / "baseline")
    again = {"models": "bert-base", "baseline": branch, "install": "true"}
    assert steps(clone, again)[0] == 0


@pytest.mark.parametrize("word", ["", "0" * 40])
def test_an_event_without_a_commit_before_is_compared_with_the_default_branch(
    repository, tmp_path, word
):
    """Such as a manual run, a scheduled one, or a push of a new branch."""
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", "--depth", "1", f"file://{repository}", str(clone))
    default = git(clone, "rev-parse", "HEAD")
    git(clone, "checkout", "-qb", "new")
    git(clone, "commit", "-q", "--allow-empty", "-m", "third")
    found, asked = steps(clone, {"models": "bert-base", "baseline": word})
    assert found == 0
    assert asked[-2].endswith(f"--against commit:{default}")


@pytest.mark.parametrize("word", ["", "0" * 40, "HEAD", "mian", "--all", "--upload-pack=touch x"])
def test_a_baseline_that_is_none_is_refused_by_name(repository, tmp_path, word):
    """The default branch itself, and words that are no commit."""
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", "--depth", "1", f"file://{repository}", str(clone))
    found, asked = steps(clone, {"models": "bert-base", "baseline": word})
    assert found == 2
    assert not any(line.startswith("accelbench run") for line in asked)
    (error,) = (tmp_path / "errors").read_text().splitlines()
    named = word if word.strip("0") and word != "HEAD" else git(clone, "rev-parse", "HEAD")
    assert named in error
    assert "`baseline`" in error
    assert not (clone / "x").exists()


def test_without_a_default_branch_a_baseline_has_to_be_named(repository):
    found, _ = steps(repository, {"models": "bert-base", "baseline": ""})
    assert found == 2
    assert "default branch" in (repository.parent / "errors").read_text()


def test_words_of_inputs_reach_programs_as_they_are(repository):
    """`first` and `second` are files here, which a pattern would find."""
    inputs = {
        "models": "./* $(touch x)\n  ~", "arguments": "--batch-sizes 1,8 --tag [fs]*",
        "baseline": git(repository, "rev-parse", "HEAD~1"), "launches": "5 6",
        "threshold": "0.1; touch x", "extras": "torch f*",
    }  # fmt: skip
    found, asked = steps(repository, inputs)
    assert found == 0
    assert "accelbench setup torch f*" in asked
    (measured,) = [line for line in asked if line.startswith("accelbench run")]
    words = "./* $(touch x) ~ --batch-sizes 1,8 --tag [fs]* --launches 5 6"
    assert measured.startswith(f"accelbench run {words}")
    assert "--threshold 0.1; touch x" in asked[-1]
    assert not (repository / "x").exists()


def test_no_input_is_written_into_a_script():
    for step in ACTION["runs"]["steps"]:
        assert "${{" not in step["run"]


def test_what_the_page_shows_is_taken():
    workflow, gitlab = jobs_in(PAGE)
    (action,) = [step for step in workflow["jobs"]["performance"]["steps"] if "with" in step][1:]
    assert set(action["with"]) <= set(ACTION["inputs"])
    for line in gitlab["performance"]["script"]:
        for part in re.findall(r"accelbench (?:run|check) [^)]*", line):
            understood(shlex.split(part))
    for name in ACTION["inputs"]:
        assert f"`{name}`" in PAGE

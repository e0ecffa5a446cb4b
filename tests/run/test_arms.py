"""Two arms of one run: in turns, apart in the store, gone on with, in whichever interpreter."""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import time
import venv
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from fixed_machine import FOUND, models
from scripted_runs import Watcher

import accelbench
from accelbench.core import processes
from accelbench.core.errors import SurroundingsError, UsageError
from accelbench.core.facts import RESULT, RUN_STARTED
from accelbench.run.conduct import lifecycle
from accelbench.run.plan import expand
from accelbench.run.plan.request import (
    FORMS,
    Against,
    AgainstKind,
    OtherArm,
    Request,
    asked_otherwise,
    meant,
)
from accelbench.run.process import introduction, other_interpreter
from accelbench.run.process.other_interpreter import Interpreter, introduced

SETTING = Against(AgainstKind.SETTING, "threads=1", "threads=1")


def with_arm(planned, what=SETTING):
    """The same compared with what is named; a setting is one thread."""
    if what.kind is not AgainstKind.SETTING:
        return replace(planned, other=OtherArm(what, planned.plan, planned.settings))
    batches = tuple(one.case.shapes.batch for one in planned.plan.cases)
    request = Request(
        models("bert-tiny"), hardware=("cpu",), runtimes=("scripted",), batch_sizes=batches
    )
    otherwise, settings = asked_otherwise(request, planned.settings, "threads", 1)
    plan = expand.plan_for(otherwise, FOUND, planned.runtimes)
    return replace(planned, other=OtherArm(what, plan, settings))


def of(rows):
    return [(row["arm"], row["launch"], row["batch_size"]) for row in rows]


def test_launches_of_two_arms_go_in_turns_group_by_group(scripted):
    watcher = Watcher()
    scripted.start(with_arm(scripted.journey(batches=[1], launches=3)), watcher)
    arms = [row["arm"] for row in watcher.rows]
    a, b = "this", "threads=1"
    assert arms == [a, b, b, a, a, b]
    assert [row["launch"] for row in watcher.rows] == [1, 1, 2, 2, 3, 3]
    assert [number for _, number in watcher.started_cases] == list(range(1, 7))

    # Batches of one model share a worker: of each group first one arm, then the other.
    watcher = Watcher()
    scripted.start(with_arm(scripted.journey(batches=[1, 4], launches=2)), watcher)
    a, b = "this", "threads=1"
    expected = [(a, 1, 1), (a, 1, 4), (b, 1, 1), (b, 1, 4)]
    expected += [(b, 2, 1), (b, 2, 4), (a, 2, 1), (a, 2, 4)]
    assert of(watcher.rows) == expected


def test_results_and_the_run_say_their_arm(scripted):
    same = Against(AgainstKind.ENVIRONMENT, "here", sys.executable)
    ended = scripted.start(with_arm(scripted.journey(batches=[1], launches=2), same), Watcher())
    assert len({row["result_id"] for row in ended.rows}) == 4
    assert len({row["case_id"] for row in ended.rows}) == 1
    assert {row["status"] for row in ended.rows} == {"ok"}
    alone = scripted.run(batches=[1])
    assert {row["arm"] for row in alone} == {""}

    ended = scripted.start(with_arm(scripted.journey(batches=[1])), Watcher())
    options = {row["arm"]: row["options"] for row in ended.rows}
    assert options == {"this": {}, "threads=1": {"threads": 1}}
    assert {row["arm"]: row["threads"] for row in ended.rows}["threads=1"] == 1

    planned = with_arm(scripted.journey(batches=[1]))
    scripted.start(planned, Watcher())
    (begun,) = [f.body for f in scripted.facts(planned.settings.run_id) if f.kind == RUN_STARTED]
    told = begun["against"]
    assert (told["kind"], told["name"], told["settings"]["threads"]) == ("setting", "threads=1", 1)


class Cut(Watcher):
    """Presses Ctrl-C in the nth launch."""

    def __init__(self, nth):
        super().__init__()
        self._nth = nth

    def progress(self, progress):
        super().progress(progress)
        if len(self.rows) == self._nth and progress.phase == "steady state":
            os.kill(os.getpid(), 2)


@pytest.mark.parametrize("nth", [1, 3])
def test_a_half_done_pair_is_gone_on_with(scripted, nth):
    planned = with_arm(scripted.journey(batches=[1], launches=3))
    first = scripted.start(planned, Cut(nth))
    assert (first.interrupted, len(first.rows)) == (True, nth)
    watcher = Watcher()
    run = planned.settings.run_id
    ended = lifecycle.resume(run, scripted.journals, watcher, {}, FOUND)
    a, b = "this", "threads=1"
    whole = [(a, 1, 1), (b, 1, 1), (b, 2, 1), (a, 2, 1), (a, 3, 1), (b, 3, 1)]
    assert of(list(ended.rows)) == whole
    assert of(watcher.rows) == whole[nth:]
    assert not watcher.alive()
    done = lifecycle.resume(run, scripted.journals, watcher, {}, FOUND)
    assert len(done.rows) == 6


# -- another environment


def linked(place):
    """An environment with links to all that is installed here; its Python."""
    venv.create(place, symlinks=True, with_pip=False)
    packages = Path(sysconfig.get_path("purelib", "venv", {"base": str(place)}))
    here = Path(sysconfig.get_path("purelib"))
    for entry in here.iterdir():
        if entry.name != "__pycache__":
            (packages / entry.name).symlink_to(entry)
    return place / "bin" / "python"


@pytest.mark.skipif(os.name == "nt", reason="links")
def test_another_environment_measures_its_arm(scripted, tmp_path, monkeypatch):
    program = linked(tmp_path / "other")
    what = meant(str(tmp_path / "other"))
    assert what == Against(AgainstKind.ENVIRONMENT, str(tmp_path / "other"), str(program))
    monkeypatch.setenv("PYTHONPATH", str(Path(accelbench.__file__).parents[1]))
    watcher = Watcher()
    ended = scripted.start(with_arm(scripted.journey(batches=[1], launches=2), what), watcher)
    assert {row["status"] for row in ended.rows} == {"ok"}
    facts = scripted.facts(ended.run_id)
    begun = next(f.body for f in facts if f.kind == RUN_STARTED)
    assert begun["against"]["environment"]["packages"]["accelbench"] == accelbench.__version__
    theirs = [f.body["conditions"] for f in facts if f.kind == RESULT and f.body["arm"] != "this"]
    assert all(one["packages"]["accelbench"] for one in theirs)
    assert not watcher.alive()


@pytest.mark.skipif(os.name == "nt", reason="a shell's script")
def test_a_command_that_starts_an_interpreter_is_an_environment(scripted, tmp_path):
    """As a container is: its processes have numbers that mean nothing here, so none is forked."""
    script = tmp_path / "contained"
    script.write_text(f'#!/bin/sh\nshift\nexec "{sys.executable}" "$@"\n')
    script.chmod(0o755)
    what = meant(f"{script} run")
    assert (what.kind, what.word) == (AgainstKind.ENVIRONMENT, f"{script} run")
    watcher = Watcher()
    ended = scripted.start(with_arm(scripted.journey(batches=[1], launches=1), what), watcher)
    assert [(row["arm"], row["status"]) for row in ended.rows] == [
        ("this", "ok"),
        (f"{script} run", "ok"),
    ]
    assert not watcher.alive()


@pytest.mark.parametrize(
    ("said", "about"),
    [
        ("import sys; sys.exit('No module named accelbench')", "No module named accelbench"),
        ("print('Hello')", "Hello"),
        ('print(\'{"wire": 0, "rules": 1, "accelbench": "0.0"}\')', "speak protocol 0"),
        ('print(\'{"wire": 1, "rules": 7, "accelbench": "9.0"}\')', "measure by rules 7"),
    ],
)
def test_an_environment_that_does_not_fit_is_refused_in_a_sentence(said, about, tmp_path, scripted):
    program = tmp_path / "python"
    program.write_text(f"#!{sys.executable}\n{said}\n")
    program.chmod(0o755)
    with pytest.raises(SurroundingsError, match=about) as refused:
        introduced(Interpreter([str(program)]), "other")
    assert refused.value.advice == f"Install accelbench {accelbench.__version__} there."
    planned = scripted.journey(batches=[1])
    what = Against(AgainstKind.ENVIRONMENT, "other", str(program))
    with pytest.raises(SurroundingsError):
        scripted.start(with_arm(planned, what), Watcher())
    assert not list(scripted.journals.glob("*"))  # nothing was begun


@pytest.mark.skipif(os.name == "nt", reason="a shell's script")
def test_one_that_never_answers_is_waited_for_within_the_limit(tmp_path, scripted, monkeypatch):
    monkeypatch.setattr(processes, "_SILENT_SECONDS", 0.1)
    program = tmp_path / "sleeping"
    program.write_text(f"#!/bin/sh\necho $$ > {tmp_path}/pid\nsleep 1000\n")
    program.chmod(0o755)
    what = Against(AgainstKind.ENVIRONMENT, str(program), str(program))
    planned = with_arm(scripted.journey(batches=[1], timeout=2.0), what)
    watcher = Watcher()
    with pytest.raises(SurroundingsError) as refused:
        scripted.start(planned, watcher)
    assert isinstance(refused.value.__cause__, processes.TimeoutExpired)
    assert str(program) in refused.value.message
    assert "2 s" in refused.value.message
    assert len([note for note in watcher.notes if str(program) in note and "2 s" in note]) == 1
    pid = int((tmp_path / "pid").read_text())
    ends_by = time.monotonic() + 10.0
    while psutil.pid_exists(pid) and time.monotonic() < ends_by:
        time.sleep(0.05)  # it was killed; the system may take a moment to clear it away
    assert not psutil.pid_exists(pid)
    assert not list(scripted.journals.glob("*"))


def test_our_own_introduction_fits(capsys):
    introduction.main()
    said = json.loads(capsys.readouterr().out)
    assert (said["wire"], said["rules"]) == (
        other_interpreter.WIRE_VERSION,
        other_interpreter.PROTOCOL_VERSION,
    )


# -- a commit


def git(folder, *words):
    line = ["git", "-c", "user.name=a", "-c", "user.email=a@b", *words]
    return subprocess.run(
        line, cwd=folder, check=True, capture_output=True, text=True
    ).stdout.strip()


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """A package of the user's with two commits, imported from where it lies."""
    folder = tmp_path / "project"
    package = folder / "src" / "measured_here"
    package.mkdir(parents=True)
    git(folder, "init", "-q")
    for text in ("first", "second"):
        (package / "__init__.py").write_text(f"WHICH = {text!r}\n")
        git(folder, "add", ".")
        git(folder, "commit", "-qm", text)
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(str(folder / "src"))
    yield folder
    assert len(git(folder, "worktree", "list").splitlines()) == 1


def test_a_commit_brings_its_own_code_and_is_gone_afterwards(repository):
    what = meant("commit:HEAD~1")
    assert what.word == git(repository, "rev-parse", "HEAD~1")
    with other_interpreter.interpreter_of(what) as (there, checkout):
        assert checkout is not None
        assert there.folder is not None
        code = "import measured_here; print(measured_here.WHICH)"
        environment = there.environment(os.environ)
        done = subprocess.run(
            [*there.program, "-P", "-c", code],
            cwd=there.folder, env=environment, capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert done.stdout == "first\n"
        checked_out = there.folder
    assert not checked_out.exists()


def test_a_commit_is_gone_after_ctrl_c(repository, scripted):
    what = meant("commit:HEAD~1")
    planned = with_arm(scripted.journey(batches=[1], launches=2), what)
    ended = scripted.start(planned, Cut(2))
    assert ended.interrupted
    assert len(git(repository, "worktree", "list").splitlines()) == 1
    run = planned.settings.run_id
    whole = lifecycle.resume(run, scripted.journals, Watcher(), {}, FOUND)
    assert len(whole.rows) == 4
    commits = {row["arm"]: row["conditions"].get("commit") for row in whole.rows}
    assert commits["commit:HEAD~1"] == what.word


def test_a_commit_with_changes_that_are_in_none_says_so(scripted):
    planned = scripted.journey(batches=[1])
    against = Against(AgainstKind.COMMIT, "commit:main", "a" * 40)
    other = OtherArm(against, planned.plan, planned.settings)
    arm = other_interpreter.Arm(other, None, planned.plan)
    for dirty, said in ((False, "b1"), (True, "b1 with uncommitted changes")):
        assert arm.conditions({"git": {"commit": "b1", "dirty": dirty}}) == {"commit": said}
    assert arm.conditions({}) == {"commit": None}


# -- words


@pytest.mark.parametrize(
    "word",
    ["nothing-like-it", "main", "speed=", "=1", "a b c", "commit:nowhere", "python9.99", "'"],
)
def test_what_is_none_of_the_three_is_refused_with_all_of_them(word, repository):
    with pytest.raises(UsageError) as refused:
        meant(word)
    assert refused.value.advice == FORMS


@pytest.mark.parametrize("word", ["threads=1", "commit:HEAD"])
def test_what_is_two_of_the_three_is_refused(word, repository):
    (repository / word).mkdir()
    with pytest.raises(UsageError, match="may mean something else") as refused:
        meant(word)
    assert refused.value.advice == FORMS
    shutil.rmtree(repository / word)


def test_a_folder_without_a_python_is_no_environment(tmp_path):
    with pytest.raises(UsageError, match="names nothing that a run can be compared with"):
        meant(str(tmp_path))


def test_a_commit_is_of_a_repository(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    with pytest.raises(UsageError, match="is in no git repository"):
        meant("commit:HEAD")

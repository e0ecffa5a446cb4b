"""Own code in the arm of a commit: what is looked at, and measured, is the commit's."""

from dataclasses import replace

import pytest
from tests.committed_code import BENCH, answer_of, git, looked_at, plan_of

from accelbench.core.errors import SurroundingsError
from accelbench.core.model import FileFormat, ModelFile
from accelbench.models.file_models.unchanged import digest_of
from accelbench.run.conduct import artifacts
from accelbench.run.plan.request import meant
from accelbench.run.process.other_interpreter import as_committed, interpreter_of, shared_by_both


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A benchmark whose package was another one before the newest commit."""
    folder = tmp_path / "project"
    folder.mkdir()
    git(folder, "init", "-q")
    (folder / "bench.py").write_text(BENCH)
    for text in ("first", "second"):
        (folder / "mylib.py").write_text(f"def work():\n    return {text!r}\n")
        git(folder, "add", ".")
        git(folder, "commit", "-qm", text)
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def before(project):
    with interpreter_of(meant("commit:HEAD~1")) as (_, checkout):
        assert checkout is not None
        yield checkout


@pytest.mark.parametrize("word", ["bench.py:step", "bench:step"])
def test_what_lies_beside_the_code_is_the_commits(word, before):
    model = looked_at(word)
    plan, notes = as_committed(plan_of(model), before)
    there = plan.cases[0].case.model
    assert (answer_of(model, replace(before, variables={})), answer_of(there, before)) == (
        "second",
        "first",
    )
    assert there.id == model.id
    assert there.code.digest != model.code.digest
    assert not notes


def test_code_that_no_commit_changed_is_said_to_be_the_same(project):
    with interpreter_of(meant("commit:HEAD")) as (_, checkout):
        assert checkout is not None
        _, notes = as_committed(plan_of(looked_at("bench.py:step")), checkout)
    (note,) = notes
    assert note == (
        "bench.py:step and what it imports from its repository are the same in commit:HEAD as here;"
        " what it imports or reads only as it runs was not compared."
    )


def test_a_benchmark_that_the_commit_lacks_runs_there_with_the_commits_packages(project, before):
    (project / "newer.py").write_text(BENCH)
    plan, notes = as_committed(plan_of(looked_at("newer.py:step")), before)
    assert answer_of(plan.cases[0].case.model, before) == "first"
    (note,) = notes
    assert note.startswith("commit:HEAD~1 has no newer.py: that of here is run there")


def test_code_that_fails_in_the_commit_is_refused(project, before):
    (project / "mylib.py").write_text("def work():\n    return 1\n\n\ndef other():\n    return 2\n")
    (project / "newer.py").write_text(BENCH.replace("import work", "import other as work"))
    with pytest.raises(SurroundingsError, match=r"newer.py:step is not measured in commit:HEAD~1"):
        as_committed(plan_of(looked_at("newer.py:step")), before)


def test_what_both_arms_import_from_beside_the_code_is_said(project):
    """Another environment may have a mylib: Python finds the one that lies here."""
    (note,) = shared_by_both(plan_of(looked_at("bench.py:step")))
    assert note.startswith("bench.py:step imports mylib.py from beside it in both arms")
    (project / "alone.py").write_text("def step():\n    pass\n\nstep.example_inputs = ()\n")
    assert shared_by_both(plan_of(looked_at("alone.py:step"))) == []


def test_code_of_elsewhere_is_the_same_in_both(tmp_path, before):
    elsewhere = tmp_path / "elsewhere.py"
    elsewhere.write_text(BENCH.replace("from mylib import work", "work = list"))
    plan = plan_of(looked_at(f"{elsewhere}:step"))
    same, (note,) = as_committed(plan, before)
    assert same == plan
    assert note.startswith("elsewhere.py:step lies outside the repository: both arms run the same")


def test_a_graph_that_the_commit_has_otherwise_is_refused(project):
    """It is looked at once: its sizes, inputs and costs are of the file that lies here."""
    path = project / "net.onnx"
    file = ModelFile(FileFormat.ONNX, str(path), "", "", "fp32", ())
    model = replace(looked_at("bench.py:step"), id="net.onnx", code=None, file=file)
    path.write_bytes(b"first")
    git(project, "add", ".")
    git(project, "commit", "-qm", "a graph")
    for content, alike in ((b"first", True), (b"second", False)):
        path.write_bytes(content)
        same = replace(file, digest=digest_of([path]))
        with interpreter_of(meant("commit:HEAD")) as (_, checkout):
            assert checkout is not None
            plan = plan_of(replace(model, file=same))
            if alike:
                assert as_committed(plan, checkout) == (plan, [])
                continue
            with pytest.raises(SurroundingsError, match=r"another file in commit:HEAD"):
                as_committed(plan, checkout)


def test_what_code_needed_is_remembered_of_that_code_alone(project):
    """bench.py:step is a name that other projects, and other commits, have as well."""
    here = plan_of(looked_at("bench.py:step")).cases[0].case
    (project / "mylib.py").write_text("def work():\n    return 'third'\n")
    changed = plan_of(looked_at("bench.py:step")).cases[0].case
    assert here.case_id == changed.case_id
    assert artifacts._cell(here) != artifacts._cell(changed)

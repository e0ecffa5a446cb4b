"""Own code in the arm of a commit, wherever a repository has its packages and its benchmarks."""

import os
from pathlib import Path

import pytest
from tests.committed_code import BENCH, answer_of, git, looked_at, plan_of

from accelbench.core.errors import SurroundingsError
from accelbench.run.plan.request import meant
from accelbench.run.process.other_interpreter import as_committed, interpreter_of, shared_by_both

#: What a benchmark of a folder of its own begins with.
_ABOVE = "import sys\nfrom pathlib import Path\nsys.path.append(str(Path(__file__).parents[1]))\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A repository without a commit, in a path with a blank."""
    folder = tmp_path / "my project"
    folder.mkdir()
    git(folder, "init", "-q")
    monkeypatch.chdir(folder)
    return folder


def committed(folder, **content):
    for name, text in content.items():
        path = folder / f"{name.replace('__', '/')}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "of a test")


def work(answer):
    return f"def work():\n    return {answer!r}\n"


def test_what_a_benchmark_imports_from_above_it_is_its_code(folder):
    """Of benchmarks/bench.py the file alone was: a changed package was called the same."""
    committed(folder, benchmarks__bench=_ABOVE + BENCH, mylib=work("first"))
    committed(folder, mylib=work("second"))
    model = looked_at("benchmarks/bench.py:step")
    with interpreter_of(meant("commit:HEAD~1")) as (_, checkout):
        assert checkout is not None
        plan, notes = as_committed(plan_of(model), checkout)
    there = plan.cases[0].case.model.code
    assert [Path(source).name for source in model.code.sources] == ["bench.py", "mylib.py"]
    assert there.digest != model.code.digest
    assert not notes


def test_code_is_the_same_from_wherever_it_is_named(folder, monkeypatch):
    """From a folder below, by .. or by a link, what it imports was not counted."""
    committed(folder, bench=BENCH, mylib=work("first"), below__x="")
    (folder.parent / "link").symlink_to(folder)
    codes = [looked_at("bench.py:step").code, looked_at(f"{folder.parent}/link/bench.py:step").code]
    monkeypatch.chdir(folder / "below")
    codes.append(looked_at("../bench.py:step").code)
    assert len({code.digest for code in codes if code is not None}) == 1
    (note,) = shared_by_both(plan_of(looked_at("../bench.py:step")))
    assert note.startswith("bench.py:step imports mylib.py from beside it in both arms")


def test_an_extension_that_is_built_in_place_is_its_code(folder):
    """An extension of C by its name and bytes: whatever it holds, it was imported."""
    from importlib.machinery import EXTENSION_SUFFIXES

    name = f"fast{EXTENSION_SUFFIXES[0]}"
    imports = (
        "import sys, types\nfast = types.ModuleType('fast')\n"
        f"fast.__file__ = {str(folder / name)!r}\nsys.modules['fast'] = fast\n"
    )
    digests = set()
    for content in (b"first", b"second"):
        (folder / name).write_bytes(content)
        (folder / "bench.py").write_text(
            imports + "def step():\n    pass\n\nstep.example_inputs = ()\n"
        )
        code = looked_at("bench.py:step").code
        digests.add(code.digest)
    assert len(digests) == 2


def test_files_that_are_opened_by_a_relative_path_are_the_commits(folder):
    """It was looked at in the folder of here, and measured in the commit's."""
    text = "text = open({!r}).read()\n\ndef step():\n    return text\n\nstep.example_inputs = ()\n"
    for name in ("first.txt", "second.txt"):
        (folder / "first.txt").unlink(missing_ok=True)
        (folder / name).write_text(name)
        committed(folder, bench=text.format(name))
    model = looked_at("bench.py:step")
    with interpreter_of(meant("commit:HEAD~1")) as (_, checkout):
        assert checkout is not None
        plan, _ = as_committed(plan_of(model), checkout)
        assert answer_of(plan.cases[0].case.model, checkout) == "first.txt"


def test_a_link_is_the_commits(folder):
    """That of here led to another file, which was measured in both arms."""
    for name in ("first", "second"):
        (folder / "bench.py").unlink(missing_ok=True)
        (folder / "bench.py").symlink_to(f"{name}.py")
        committed(folder, **{name: work(name).replace("work", "step") + "step.example_inputs = ()"})
    model = looked_at("bench.py:step")
    with interpreter_of(meant("commit:HEAD~1")) as (_, checkout):
        assert checkout is not None
        plan, notes = as_committed(plan_of(model), checkout)
        assert answer_of(plan.cases[0].case.model, checkout) == "first"
    assert not notes


#: An editable installation that does not ask where a process searches, as meson-python's.
_HOOK = """
import sys
from importlib.machinery import PathFinder

class Editable:
    @staticmethod
    def find_spec(name, path=None, target=None):
        return PathFinder.find_spec(name, [{place!r}]) if name == "mylib" else None

sys.meta_path.insert(0, Editable)
"""


def editable(folder, monkeypatch):
    """Have mylib found in the repository's src, whatever stands on the search path."""
    place = folder.parent / "installed"
    place.mkdir()
    (place / "sitecustomize.py").write_text(_HOOK.format(place=str(folder / "src")))
    monkeypatch.setenv("PYTHONPATH", str(place), prepend=os.pathsep)


def test_a_package_that_is_imported_from_here_is_not_called_the_commits(folder, monkeypatch):
    """An editable installation's hook came first: both arms ran what lay here, without a word."""
    for text in ("first", "second"):
        committed(folder, bench=BENCH, src__mylib=work(text))
    editable(folder, monkeypatch)
    model = looked_at("bench.py:step")
    with interpreter_of(meant("commit:HEAD~1")) as (_, checkout):
        assert checkout is not None
        with pytest.raises(SurroundingsError, match=r"imports src/mylib.py from here, and not"):
            as_committed(plan_of(model), checkout)


def test_a_file_that_only_lies_here_is_said_to_be_in_both_arms(folder, monkeypatch):
    """As an extension that was built in place, or what nobody has added yet."""
    committed(folder, bench=BENCH)
    (folder / "src").mkdir()
    (folder / "src" / "mylib.py").write_text(work("of here"))
    editable(folder, monkeypatch)
    with interpreter_of(meant("commit:HEAD")) as (_, checkout):
        assert checkout is not None
        _, notes = as_committed(plan_of(looked_at("bench.py:step")), checkout)
    assert notes == [
        "bench.py:step imports src/mylib.py from here in both arms: commit:HEAD has no such file."
    ]

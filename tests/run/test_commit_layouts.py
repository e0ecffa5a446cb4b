"""Own code in the arm of a commit, wherever a repository has its packages and its benchmarks."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.committed_code import BENCH, git, looked_at, plan_of

from accelbench.run.plan.against import meant
from accelbench.run.process.commit_models import as_committed, shared_by_both
from accelbench.run.process.other_interpreter import interpreter_of

#: What a benchmark of a folder of its own begins with.
_ABOVE = "import sys\nfrom pathlib import Path\nsys.path.append(str(Path(__file__).parents[1]))\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository without a commit, in a path with a blank."""
    folder = tmp_path / "my project"
    folder.mkdir()
    git(folder, "init", "-q")
    monkeypatch.chdir(folder)
    return folder


def committed(folder: Path, **content: str) -> None:
    for name, text in content.items():
        path = folder / f"{name.replace('__', '/')}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "of a test")


def work(answer: str) -> str:
    return f"def work():\n    return {answer!r}\n"


def test_what_a_benchmark_imports_from_above_it_is_its_code(folder: Path) -> None:
    """Of benchmarks/bench.py the file alone was: a changed package was called the same."""
    committed(folder, benchmarks__bench=_ABOVE + BENCH, mylib=work("first"))
    committed(folder, mylib=work("second"))
    model = looked_at("benchmarks/bench.py:step")
    with interpreter_of(meant("commit:HEAD~1")) as (_, checkout):
        assert checkout is not None
        plan, notes = as_committed(plan_of(model), checkout)
    there = plan.cases[0].case.model.code
    assert model.code is not None
    assert there is not None
    assert [Path(source).name for source in model.code.sources] == ["bench.py", "mylib.py"]
    assert there.digest != model.code.digest
    assert not notes


def test_code_is_the_same_from_wherever_it_is_named(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From a folder below, by .. or by a link, what it imports was not counted."""
    committed(folder, bench=BENCH, mylib=work("first"), below__x="")
    (folder.parent / "link").symlink_to(folder)
    codes = [looked_at("bench.py:step").code, looked_at(f"{folder.parent}/link/bench.py:step").code]
    monkeypatch.chdir(folder / "below")
    codes.append(looked_at("../bench.py:step").code)
    assert len({code.digest for code in codes if code is not None}) == 1
    (note,) = shared_by_both(plan_of(looked_at("../bench.py:step")))
    assert note.startswith("bench.py:step imports mylib.py from beside it in both arms")


def test_an_extension_that_is_built_in_place_is_its_code(folder: Path) -> None:
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
        assert code is not None
        digests.add(code.digest)
    assert len(digests) == 2

"""A further option of a run that reaches its workers touches two files: made up here, in a copy.

Its field and the runtime that uses it. Everything between them is made from the fields, so the copy
is changed nowhere else and the value arrives.
"""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from accelbench.core.facts import RUN_STARTED
from accelbench.core.run_options import JobSettings, RunSettings
from accelbench.store.journal import read

SOURCES = Path(__file__).parents[2] / "src"
#: What is changed, by file: a line that is there, and what comes after it.
CHANGES = {
    "core/run_options.py": [
        (
            '    """Settings that a worker',
            '    haste: Annotated[int, option(MEASURING, "Made up.")] = 0',
        )
    ],
    "engines/scripted.py": [
        (
            '        self.weights_digest = f"scripted-{job.settings.seed}"',
            '        self.weights_digest += f" haste {job.settings.haste}"',
        )
    ],
}


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sources with the option."""
    copy = tmp_path_factory.mktemp("option") / "src"
    shutil.copytree(SOURCES, copy)
    for name, changes in CHANGES.items():
        path = copy / "accelbench" / name
        text = path.read_text(encoding="utf-8")
        for before, more in changes:
            (line,) = [one for one in text.splitlines() if one.startswith(before)]
            text = text.replace(f"{line}\n", f"{line}\n{more}\n")
        path.write_text(text, encoding="utf-8")
    return copy


@pytest.fixture(scope="module")
def ended(copy: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """What a run with the option comes to, and what its journal says it began with."""
    folder = copy.parent
    script = folder / "script.json"
    script.write_text('{"step_ns": 1000000}', encoding="utf-8")
    words = "run bert-tiny --framework scripted --hardware cpu --batch-sizes 1 --iterations 2"
    out = printed(copy, *words.split(), "--haste", "7", "--json")
    (journal,) = folder.rglob("*.jsonl")
    begun = next(fact.body for fact in read(journal) if fact.kind == RUN_STARTED)
    return json.loads(out), dict(begun)


def printed(copy: Path, *words: str) -> str:
    """What a command of the copy prints."""
    folder = copy.parent
    done = subprocess.run(
        [sys.executable, "-m", "accelbench", *words],
        cwd=folder,
        env={
            **os.environ,
            "PYTHONPATH": str(copy),
            "ACCELBENCH_SCRIPT": str(folder / "script.json"),
        },
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_an_option(ended, copy):
    (row,) = ended[0]["results"]
    assert row["weights_digest"] == "scripted-0 haste 7"
    # Its key is made of the option: nothing else names it.
    schema = json.loads(printed(copy, "run", "--plan-schema"))
    assert schema["properties"]["run"]["properties"]["haste"]["description"] == "Made up."
    plan = copy.parent / "plan.toml"
    plan.write_text('models = "bert-tiny"\n[run]\nhaste = 9\n', encoding="utf-8")
    printed(copy, "run", str(plan), "--save-plan", "again.json")
    saved = json.loads((copy.parent / "again.json").read_text(encoding="utf-8"))
    assert saved["run"] == {"haste": 9}
    assert ended[1]["settings"]["haste"] == 7


def test_at_most_two_files_are_touched():
    assert len(CHANGES) <= 2


def test_no_other_source_lists_the_settings():
    """All but one of them, as fields, parameters, arguments or keys: others name what they heed."""
    listing = {
        str(path.relative_to(SOURCES / "accelbench"))
        for path in SOURCES.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if len(_named(node) & set(JobSettings.names())) > len(JobSettings.names()) - 2
    }
    assert listing == {"core/run_options.py"}


def _named(node: ast.AST) -> set[str]:
    """What one call, definition, class or mapping names."""
    if isinstance(node, ast.Call):
        given = {one.arg for one in node.keywords if one.arg}
        return given | {one.attr for one in node.args if isinstance(one, ast.Attribute)}
    if isinstance(node, ast.ClassDef):
        fields = [one.target for one in node.body if isinstance(one, ast.AnnAssign)]
        return {one.id for one in fields if isinstance(one, ast.Name)}
    if isinstance(node, ast.FunctionDef):
        return {one.arg for one in (*node.args.args, *node.args.kwonlyargs)}
    if isinstance(node, ast.Dict):
        return {one.value for one in node.keys if isinstance(one, ast.Constant)}
    return set()


def test_settings():
    # Settings are the same from json.
    settings = RunSettings(run_id="run", seed=3, data="/pictures", launches=5, budget=60.0)
    body = json.loads(json.dumps(settings.to_dict()))
    assert RunSettings.from_dict(body) == settings
    assert list(body)[: 1 + len(JobSettings.names())] == ["run_id", *JobSettings.names()]
    assert RunSettings.from_dict({"run_id": "run"}) == RunSettings(run_id="run")


@pytest.mark.parametrize("kind", [JobSettings, RunSettings])
def test_a_setting_that_nobody_knows_is_refused(kind):
    with pytest.raises(ValueError, match="does not know the setting haste"):
        kind.from_dict({"haste": 7})

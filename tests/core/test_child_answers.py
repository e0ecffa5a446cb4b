"""Asking a module in a process of its own: what it looks at may do anything there."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import psutil
import pytest

from accelbench.core.child_answers import NoAnswerError, answers_of

LEAVES = """
import subprocess, sys
from accelbench.core.child_answers import tell
left = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
tell({"left": left.pid})
"""
TELLS = """
import os
os.write(1, b"\\naccelbench-answer: WHAT\\n")
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    there = os.environ.get("PYTHONPATH")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, (str(tmp_path), there))))
    return tmp_path / "module_asked.py"


@pytest.mark.skipif(sys.platform == "win32", reason="there are no groups of processes")
def test_what_a_module_has_left_running_is_not_waited_for_and_killed(module: Path) -> None:
    module.write_text(LEAVES)
    (answer,) = answers_of("module_asked", [], 30, "Looking at it")
    try:
        left = psutil.Process(answer["left"])
        psutil.wait_procs([left], timeout=30)
        assert not left.is_running() or left.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        pass


@pytest.mark.parametrize("what", ["{nope", "3", "true"])
def test_what_only_looks_like_an_answer_is_none(module: Path, what: str) -> None:
    module.write_text(TELLS.replace("WHAT", what))
    with pytest.raises(NoAnswerError, match="Looking at it gave an answer that is none"):
        answers_of("module_asked", [], 30, "Looking at it")

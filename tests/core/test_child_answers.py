"""Asking a module in a process of its own: what it looks at may do anything there."""

import os
import sys

import psutil
import pytest

from accelbench.core.processes import NoAnswerError, limit_seconds, request_answers

LEAVES = """
import subprocess, sys
from accelbench.core.processes import send_answer
left = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
send_answer({"left": left.pid})
"""
TELLS = """
import os
os.write(1, b"\\naccelbench-answer: WHAT\\n")
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    there = os.environ.get("PYTHONPATH")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, (str(tmp_path), there))))
    return tmp_path / "module_asked.py"


@pytest.mark.skipif(sys.platform == "win32", reason="there are no groups of processes")
def test_what_a_module_has_left_running_is_not_waited_for_and_killed(module):
    module.write_text(LEAVES)
    (answer,) = request_answers("module_asked", [], 30, "Looking at it")
    assert is_gone(answer["left"])


@pytest.mark.parametrize("what", ["{nope", "3", "true"])
def test_what_only_looks_like_an_answer_is_none(module, what):
    module.write_text(TELLS.replace("WHAT", what))
    with pytest.raises(NoAnswerError, match="invalid answer"):
        request_answers("module_asked", [], 30, "Looking at it")


HANGS = """
import subprocess, sys, time
left = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
with open("FILE", "w") as file:
    file.write(str(left.pid))
time.sleep(600)
"""


def is_gone(pid):
    try:
        process = psutil.Process(pid)
        psutil.wait_procs([process], timeout=30)
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


@pytest.mark.skipif(sys.platform == "win32", reason="there are no groups of processes")
def test_a_limit_ends_a_module_that_hangs_and_what_it_has_started(module):
    started = module.with_name("pid")
    module.write_text(HANGS.replace("FILE", str(started)))
    with limit_seconds(6.0), pytest.raises(NoAnswerError) as ended:
        request_answers("module_asked", [], 300, "Looking at it")
    assert "6 s" in str(ended.value)
    assert "--timeout" in ended.value.advice
    assert is_gone(int(started.read_text()))


def test_a_limit_may_be_longer_and_ends_with_its_command(module):
    module.write_text(
        "import time; time.sleep(1); "
        + TELLS.strip().replace("WHAT", "[]").replace("import os\n", "import os; ")
    )
    with limit_seconds(60.0):
        assert request_answers("module_asked", [], 0.01, "Looking at it") == [[]]
    with pytest.raises(NoAnswerError):
        request_answers("module_asked", [], 0.01, "Looking at it")

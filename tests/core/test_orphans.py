"""No process outlives the one that started it: every way of starting one, and a parent that dies.

Each parent is killed by SIGKILL, so nothing in it can tell anybody. What it has started, and what
that has started in turn, must be gone a moment later.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import TypeVar

import psutil
import pytest

from accelbench.core import processes

pytestmark = pytest.mark.skipif(os.name == "nt", reason="parents are killed by SIGKILL")

T = TypeVar("T")
#: Longer than a test may take: what still runs afterwards was left behind.
_LONG = 600
#: Says that it runs, and starts another that says so too.
_PROGRAM = f"""#!/bin/sh
: > "$PIDS/$$"
sh -c ': > "$PIDS/$$"; exec sleep {_LONG}' &
: > "$PIDS/$!"
wait
"""
#: The same as a module, for whatever imports it or calls its main().
_MODULE = f"""
import os, pathlib, time
def main():
    pathlib.Path(os.environ["PIDS"], str(os.getpid())).touch()
    time.sleep({_LONG})
"""


_PORTABLE = "processes.BY_KERNEL = False"
_START = "one = processes.start(['./program'], subprocess.DEVNULL)"
_PYTHON = "processes.start_python('held_main', [], subprocess.DEVNULL)"
_FORK = "import held\nif processes.fork() == 0:\n    held.main()"
_POOL = (
    "import held\npool = processes.create_pool(2)\nfor _ in range(2):\n    pool.submit(held.main)"
)
_RUN = f"processes.run(['./program'], {_LONG})"
_RUN_PYTHON = f"processes.run_python('held_main', [], {_LONG})"
_DESCRIBE = """
from accelbench.models.own import OwnModels, describe
from accelbench.core.vocabulary import Family
describe([OwnModels("mine", "BertModel", {}, Family.EMBEDDING, "small", ("text",))])
"""
_REPORT = """
from types import SimpleNamespace
from accelbench.api.enhanced import reported
pathlib.Path("database").write_text("something")
ended, database = SimpleNamespace(run_id="r"), SimpleNamespace(name="database")
reported(pathlib.Path("page.html"), {}, ended, database)
"""
_TOOL = f"""
from accelbench.hardware.common import run_command
run_command(['./program'], {_LONG})
"""
_LIBRARY = f"""
from accelbench.hardware.common import probe_in_process
probe_in_process('held', {_LONG})
"""
_NPM = """
from accelbench.engines.browser.assets import npm_pack
from accelbench.engines.browser.assets import ENGINE
npm_pack(ENGINE, pathlib.Path.cwd())
"""
_BROWSER = """
from accelbench.engines.browser.process import BrowserProcess
browser = BrowserProcess(pathlib.Path("program").absolute(), "wasm", "", "about:blank")
"""
#: It waits for its orders.
_RUNNER = """
from accelbench.fleet.ray_worker import KeptRunner
runner = KeptRunner(os.environ, pathlib.Path("errors"))
(pathlib.Path(os.environ["PIDS"]) / str(runner.pid)).touch()
"""
#: A worker does nothing but wait: it is a child of the process, and has no file of its own.
_WORKERS = """
import dataclasses
from accelbench.run.process.worker_pool import WorkerPool
from accelbench.engines.scripted import ScriptedRuntime
made, workers = WorkerPool(), []
for how in {}:
    runtime = ScriptedRuntime()
    runtime.info = dataclasses.replace(runtime.info, isolation=how)
    workers.append(made.worker(runtime, None))
    (pathlib.Path(os.environ["PIDS"]) / str(workers[-1].pid)).touch()
"""


@dataclass(frozen=True)
class Doors:
    """Ways of starting a process that one parent takes, and how many processes say they run."""

    count: int
    passing: tuple[str, ...] = ()
    waiting: tuple[str, ...] = ()  # each in a thread of its own: it returns when all is over


DOORS = {
    "the doors": Doors(8, (_START, _PYTHON, _FORK, _POOL), (_RUN, _RUN_PYTHON)),
    "the doors, by a pipe": Doors(4, (_PORTABLE, _PYTHON, _FORK, _POOL)),
    "a worker, by a pipe": Doors(2, (_PORTABLE, _WORKERS.format(("spawn",)), _RUNNER)),
    "whoever goes through": Doors(
        12,
        (_BROWSER, _RUNNER, _WORKERS.format(("fork", "spawn"))),
        (_DESCRIBE, _REPORT, _TOOL, _LIBRARY, _NPM),
    ),
}
_PARENT = """
import os, pathlib, signal, subprocess, sys, threading
from accelbench.core import processes
passing, waiting = eval(sys.argv[1])
for code in passing:
    exec(code, globals())
for code in waiting:
    threading.Thread(target=exec, args=(code, dict(globals())), daemon=True).start()
signal.pause()
"""


class Parent:
    """A process that starts others, and waits."""

    def __init__(self, name, doors, folder):
        self.name, self._count, self._pids = name, doors.count, folder / "pids"
        self._pids.mkdir(parents=True)
        stubs = folder / "stubs"
        stubs.mkdir()
        (stubs / "held.py").write_text(_MODULE)
        for module in ("held_main", "torch", "transformers"):
            (stubs / f"{module}.py").write_text("import held; held.main()")
        # A worker_pool imports it too, while it waits for a template: a report alone holds at it.
        held = "import sys\nif 'report' in sys.argv:\n    import held\n    held.main()"
        (stubs / "duckdb.py").write_text(held)
        for program in ("program", "npm"):
            (folder / program).write_text(_PROGRAM)
            (folder / program).chmod(0o755)
        environment = {
            **os.environ,
            "PIDS": str(self._pids),
            "PYTHONPATH": os.pathsep.join(filter(None, (str(stubs), os.environ.get("PYTHONPATH")))),
            "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}",
        }
        code = repr((doors.passing, doors.waiting))
        self._process = subprocess.Popen(
            [sys.executable, "-c", _PARENT, code],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
        )

    def ready(self):
        """Whether all that is to run does."""
        assert self._process.poll() is None, f"{self.name}: the parent has ended"
        return len(list(self._pids.iterdir())) >= self._count

    def killed(self):
        """Kill it, and it alone; whatever it had started, and what that had."""
        family = psutil.Process(self._process.pid).children(recursive=True)
        numbers = {one.pid for one in family}
        assert {int(one.name) for one in self._pids.iterdir()} <= numbers
        self.end()
        return family

    def end(self):
        self._process.kill()
        self._process.wait()


def gone(process):
    """Ended, though whoever adopted it may not have looked yet."""
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def wait_for(what, done, seconds):
    """Those that were not done in that time."""
    deadline = time.monotonic() + seconds
    while left := [one for one in what if not done(one)]:
        if time.monotonic() > deadline:
            return left
        time.sleep(0.02)
    return []


def test_whatever_a_killed_process_had_started_is_gone(tmp_path):
    parents = [
        Parent(name, doors, tmp_path / str(number))
        for number, (name, doors) in enumerate(DOORS.items())
    ]
    try:
        assert not [one.name for one in wait_for(parents, Parent.ready, 120.0)]
        family = [child for one in parents for child in one.killed()]
    finally:
        for one in parents:
            one.end()
    left = wait_for(family, gone, 30.0)
    said = [" ".join(one.cmdline()) for one in left]
    for child in left:
        child.kill()
    assert not said


def test_programs_end_as_they_would_alone(tmp_path):
    said = processes.run(["sh", "-c", "echo out; echo wrong >&2; exit 7"], 60)
    assert (said.returncode, said.stdout, said.stderr) == (7, "out\n", "wrong\n")
    assert said.last_line == "wrong"
    assert processes.run(["sh", "-c", "kill -TERM $$"], 60).returncode == -signal.SIGTERM
    assert processes.run(["cat"], 60).stdout == ""  # nothing to read, and no pipe to wait for
    assert processes.run(["pwd"], 60, folder=tmp_path).stdout.strip() == str(tmp_path)
    # Python itself ignores it, and so would all that it starts.
    assert processes.run(["sh", "-c", "kill -PIPE $$"], 60).returncode == -signal.SIGPIPE

    with pytest.raises(FileNotFoundError, match="no program no-such-program"):
        processes.run(["no-such-program"], 60)
    (tmp_path / "text").write_text("\x7fELF, but not really")
    (tmp_path / "text").chmod(0o755)
    ended = processes.run([str(tmp_path / "text")], 60)
    assert ended.returncode == 1
    assert "cannot be started: Exec format error" in ended.last_line


def test_a_module_sees_its_own_arguments_and_no_file_of_the_users(tmp_path, monkeypatch):
    (tmp_path / "stubs").mkdir()
    (tmp_path / "stubs" / "asked.py").write_text(
        "import json, sys\nprint(__name__, sys.argv[1:], json.__name__)"
    )
    (tmp_path / "json.py").write_text("raise SystemExit('the user\\'s own json.py')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "stubs"))
    monkeypatch.chdir(tmp_path)
    assert processes.run_python("asked", ["a", "b"], 60).stdout == "__main__ ['a', 'b'] json\n"
    with (tmp_path / "out").open("wb") as out:
        assert processes.start_python("asked", ["c"], out).wait(60) == 0
    assert (tmp_path / "out").read_text() == "__main__ ['c'] json\n"

"""Code of a fleet in Ray's workers: it starts a process that measures, and forwards its facts.

Starting Python, detecting devices and importing an engine take seconds, so each worker of Ray keeps
one such process for its units. It is ended if an attempt fails, and with its worker.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import shutil
import socket
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from accelbench.core import processes
from accelbench.core.facts import PART_SEPARATOR, node_run_id
from accelbench.fleet.fleet_nodes import format_node_name
from accelbench.run.process.process_control import InterruptHold
from accelbench.store.journal import SUFFIX, is_being_written, journal_path, scan


def state_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the folder for files that outlast a command.

    It has tokens, started processes and journals of nodes.
    """
    if sys.platform == "win32":
        base = Path(environment.get("LOCALAPPDATA", "~/AppData/Local"))
    elif sys.platform == "darwin":
        base = Path("~/Library/Application Support")
    else:
        base = Path(environment.get("XDG_STATE_HOME") or "~/.local/state")
    return base.expanduser() / "accelbench" / "fleet"


RUNNER = "accelbench.fleet.unit_runner"


class KeptRunner:
    """Process that measures the units that it receives.

    It prints to `errors` until its first unit.
    """

    def __init__(self, environment: Mapping[str, str], errors: Path) -> None:
        self._environment = dict(environment)
        with errors.open("ab") as out:
            self._process = processes.start_python(
                RUNNER, ["serve"], processes.PIPE, out, environment=environment, takes_orders=True
            )
        self._hold = InterruptHold(self._process.pid)
        assert self._process.stdout is not None
        self._lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        # A daemon thread, which does not keep an ending worker alive.
        threading.Thread(
            target=_forward_lines, args=(self._process.stdout, self._lines), daemon=True
        ).start()

    @property
    def pid(self) -> int:
        return self._process.pid

    def can_serve(self, environment: Mapping[str, str]) -> bool:
        """Return whether it is alive and has that environment, which selects its device."""
        return self._process.poll() is None and self._environment == environment

    def begin(self, task: Path, folder: Path, errors: Path) -> None:
        """Start measuring a unit; raise OSError if the process is gone."""
        order = {"task": str(task), "folder": str(folder), "errors": str(errors)}
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(order).encode() + b"\n")
        self._process.stdin.flush()

    def read_lines(self, tick: float) -> list[bytes]:
        """Return the lines that it wrote within `tick` seconds.

        The last line is empty if the process has ended.
        """
        try:
            lines = [self._lines.get(timeout=tick)]
        except queue.Empty:
            return []
        while not self._lines.empty():
            lines.append(self._lines.get())
        return lines

    def end(self, patience: float = 0.0) -> int:
        """End it, after `patience` seconds if it is ending by itself; return its exit code."""
        if patience:
            with contextlib.suppress(processes.TimeoutExpired):
                self._process.wait(patience)
        if self._process.poll() is None:  # else another process may have its number
            self._hold.kill()
        code = self._process.wait()
        self._hold.close()
        with contextlib.suppress(OSError):
            assert self._process.stdin is not None
            self._process.stdin.close()
        return code


class RunnerSlot:
    """The runner that a worker keeps, if any."""

    def __init__(self) -> None:
        self._kept: KeptRunner | None = None

    @contextmanager
    def runner(
        self, environment: Mapping[str, str], task: Path, folder: Path, errors: Path
    ) -> Iterator[KeptRunner]:
        """Yield a runner that has begun a unit; keep it if the unit ends well, else end it."""
        runner = self._start_unit(environment, task, folder, errors)
        try:
            yield runner
        except BaseException:  # also GeneratorExit of an abandoned generator
            runner.end()
            raise
        self._kept = runner

    def close(self) -> None:
        if self._kept is not None:
            self._kept.end()
            self._kept = None

    def _start_unit(
        self, environment: Mapping[str, str], task: Path, folder: Path, errors: Path
    ) -> KeptRunner:
        kept, self._kept = self._kept, None
        if kept is not None:
            with contextlib.suppress(OSError):
                if kept.can_serve(environment):
                    kept.begin(task, folder, errors)
                    return kept
            kept.end()
        runner = KeptRunner(environment, errors)
        try:
            runner.begin(task, folder, errors)
        except BaseException:
            runner.end()
            raise
        return runner


def _forward_lines(pipe: IO[bytes], lines: queue.SimpleQueue[bytes]) -> None:
    for line in pipe:
        lines.put(line)
    lines.put(b"")


#: Time for detectors, which query slow drivers.
_DESCRIBE_SECONDS = 180.0
#: Time for a process to end after it has closed its output.
_END_SECONDS = 5.0
#: Age at which a fleet's files on a node are removed.
_KEPT_SECONDS = 14 * 86_400.0
#: File in an attempt's folder with the current measurement.
_ACTIVITY_FILE = "at.txt"
#: Variables that select devices. Ray sets them for a worker, and a fleet's processes for children.
_DEVICE_VARIABLES = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES")
#: Slot of this worker; Ray gives a worker one unit at a time.
_slot = RunnerSlot()


def describe() -> dict[str, Any]:
    """Return this node's environment and devices, or why it cannot measure."""
    try:
        ended = processes.run(
            [sys.executable, "-P", "-m", RUNNER, "describe"],
            _DESCRIBE_SECONDS,
            environment=node_environment(),
        )
    except (OSError, processes.TimeoutExpired) as error:
        return {"broken": f"detecting its devices failed: {error}"}
    if ended.returncode != 0:
        return {"broken": f"detecting its devices failed: {ended.last_line}"}
    body: dict[str, Any] = json.loads(ended.stdout.splitlines()[-1])
    return body


def measure(task: Mapping[str, Any], node: str, tick: float) -> Iterator[dict[str, Any]]:
    """Measure a unit; yield its journal lines as they come, and a message every `tick` seconds.

    Raises RuntimeError if the process that measures ends too early.
    """
    yield {"began": node}
    task = {
        **task,
        "run_id": node_run_id(str(task["fleet"]), format_node_name(node, socket.gethostname())),
    }
    folder = _create_folder(task)
    task_file = folder / "task.json"
    task_file.write_text(json.dumps(task), encoding="utf-8")
    journal, errors = journal_path(folder, str(task["run_id"])), folder / "errors.txt"
    shared = bool(task.get("device_of_node"))
    environment = node_environment(os.environ if shared else {})
    end = number = 0
    with _slot.runner(environment, task_file, folder, errors) as runner:
        is_over = False
        while not is_over:
            lines = runner.read_lines(tick)
            message, is_over = _parse_message(lines)
            if "at" in message:
                (folder / _ACTIVITY_FILE).write_text(message["at"], encoding="utf-8")
            if journal.is_file():
                more = scan(journal, end, number)
                end, number = more.end, more.last_number
                message["lines"] = [line.payload for line in more.lines]
            yield message
            if b"" in lines and not is_over:
                (folder / _ACTIVITY_FILE).unlink(missing_ok=True)
                code = runner.end(_END_SECONDS)
                raise RuntimeError(
                    f"the process that measures ended with {code}: {_last_line(errors)}"
                )
        (folder / _ACTIVITY_FILE).unlink(missing_ok=True)


def read_activity(name: str) -> str:
    """Return the unit that the node of this name measures now; empty if there is none."""
    for path in (state_folder() / "units").glob(f"*{PART_SEPARATOR}{name}/unit-*/{_ACTIVITY_FILE}"):
        # A killed attempt leaves its file, but does not write a journal.
        if any(is_being_written(journal) for journal in path.parent.glob(f"*{SUFFIX}")):
            return path.read_text(encoding="utf-8")
    return ""


def node_environment(handed: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment that the node was started with.

    Variables in `handed` that select a device are added.
    """
    # Ray sets OMP_NUM_THREADS for its workers, and hides devices from those that asked for none.
    # Its raylet, their parent, has the environment of the node.
    import psutil

    try:
        own = psutil.Process(os.getppid()).environ()
    except (psutil.Error, OSError):
        own = dict(os.environ)
        own.pop("OMP_NUM_THREADS", None)
    kept = {name: value for name, value in own.items() if not name.startswith("RAY_")}
    if own.get("LD_PRELOAD") == own.get("RAY_JEMALLOC_LIB_PATH", _ray_allocator()):
        # Ray preloads its allocator into the raylet if nothing else is preloaded. OpenVINO crashes
        # under it, and every engine's memory differs.
        kept.pop("LD_PRELOAD", None)
        kept.pop("MALLOC_CONF", None)
    return kept | {name: handed[name] for name in _DEVICE_VARIABLES if handed and name in handed}


def _ray_allocator() -> str:
    import ray

    return str(Path(ray.__file__).parent / "core" / "libjemalloc.so")


def _create_folder(task: Mapping[str, Any]) -> Path:
    """Create a folder for an attempt; remove those of old fleets."""
    folder = state_folder() / "units"
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.iterdir():
        if time.time() - old.stat().st_mtime > _KEPT_SECONDS:
            shutil.rmtree(old, ignore_errors=True)
    own = folder / str(task["run_id"]) / f"unit-{task['unit']}-{task['attempt']}"
    shutil.rmtree(own, ignore_errors=True)
    own.mkdir(parents=True)
    return own


def _parse_message(lines: list[bytes]) -> tuple[dict[str, Any], bool]:
    """Return the driver's message from a runner's lines, and whether the unit has ended."""
    message: dict[str, Any] = {}
    is_over = False
    for line in lines:
        if not line.endswith(b"\n"):
            continue  # an incomplete line, or the end
        event = json.loads(line)
        is_over = is_over or "over" in event
        if "at" in event:
            message["at"] = event["at"]
        if "note" in event:
            message.setdefault("notes", []).append(event["note"])
    return message, is_over


def _last_line(path: Path) -> str:
    lines = path.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return lines[-1] if lines else "it printed nothing"

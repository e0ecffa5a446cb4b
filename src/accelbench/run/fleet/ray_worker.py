"""What runs in Ray's workers on the nodes: starts a process that measures, and passes its facts on.

The process that measures knows nothing of Ray. This one sleeps in the kernel until that one says
something, or until it is time to say that it still lives.
"""

from __future__ import annotations

import json
import os
import queue
import shutil
import socket
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from accelbench.core import processes
from accelbench.core.facts import PART, part_id
from accelbench.run.fleet.fleet_nodes import node_name
from accelbench.run.fleet.state_folder import state_folder
from accelbench.store.journal import SUFFIX, being_written, journal_path, scan

_RUNNER = "accelbench.run.fleet.unit_runner"
#: Detectors ask drivers, which may take their time.
_DESCRIBE_SECONDS = 180.0
#: How long what a fleet left on a node is kept.
_KEPT_SECONDS = 14 * 86_400.0
#: Of an attempt's folder: what is measured, while it is.
_AT = "at.txt"
#: What Ray hands out to a worker, and what a fleet's own processes may set for their children.
_HANDED_ON = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES")


def describe() -> dict[str, Any]:
    """What this node is: its environment and its devices; or why nothing can be measured here."""
    try:
        ended = processes.run(
            [sys.executable, "-P", "-m", _RUNNER, "describe"],
            _DESCRIBE_SECONDS,
            environment=node_environment(),
        )
    except (OSError, processes.TimeoutExpired) as error:
        return {"broken": f"asking for its devices failed: {error}"}
    if ended.returncode != 0:
        return {"broken": f"asking for its devices failed: {ended.last_line}"}
    body: dict[str, Any] = json.loads(ended.stdout.splitlines()[-1])
    return body


def measure(task: Mapping[str, Any], node: str, tick: float) -> Iterator[dict[str, Any]]:
    """Measure a unit; says journal lines as they come, and something every `tick` seconds.

    Args:
        task: what the fleet's run asks for.
        node: this node's id.
        tick: seconds.

    Raises:
        RuntimeError: the process that measured ended before its time.
    """
    yield {"began": node}
    task = {**task, "run_id": part_id(str(task["fleet"]), node_name(node, socket.gethostname()))}
    folder = _fresh_folder(task)
    told = folder / "task.json"
    told.write_text(json.dumps(task), encoding="utf-8")
    journal = journal_path(folder, str(task["run_id"]))
    shared = bool(task.get("device_of_node"))
    with (folder / "errors.txt").open("wb") as errors:
        process = processes.start_python(
            _RUNNER,
            ["measure", str(told), str(folder)],
            processes.PIPE,
            errors,
            environment=node_environment(os.environ if shared else {}),
        )
    assert process.stdout is not None
    said: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(process.stdout, said), daemon=True).start()
    end = number = 0
    open_pipe = True
    while open_pipe:
        heard = _heard(said, tick)
        open_pipe = b"" not in heard
        message = _message(heard)
        if "at" in message:
            (folder / _AT).write_text(message["at"], encoding="utf-8")
        if journal.is_file():
            more = scan(journal, end, number)
            end, number = more.end, more.last_number
            message["lines"] = [line.payload for line in more.lines]
        yield message
    code = process.wait()
    (folder / _AT).unlink(missing_ok=True)
    if code != 0:
        raise RuntimeError(
            f"the process that measures ended with {code}: {_last_line(errors.name)}"
        )


def occupied(name: str) -> str:
    """The unit that the node of this name is at; "" where it is at none."""
    for path in (state_folder() / "units").glob(f"*{PART}{name}/unit-*/{_AT}"):
        # An attempt that was ended by force leaves its word behind, but holds no journal.
        if any(being_written(journal) for journal in path.parent.glob(f"*{SUFFIX}")):
            return path.read_text(encoding="utf-8")
    return ""


def node_environment(handed: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of a process that measures: the node's own, as it was before Ray.

    Ray sets OMP_NUM_THREADS for its workers and hides devices from those that asked for none;
    its raylet, which starts them, has what the node was started with.

    Args:
        handed: where a device was handed out, the environment that says which.
    """
    import psutil

    try:
        own = psutil.Process(os.getppid()).environ()
    except (psutil.Error, OSError):
        own = dict(os.environ)
        own.pop("OMP_NUM_THREADS", None)
    kept = {name: value for name, value in own.items() if not name.startswith("RAY_")}
    return kept | {name: handed[name] for name in _HANDED_ON if handed and name in handed}


def _fresh_folder(task: Mapping[str, Any]) -> Path:
    """A folder for an attempt; those of fleets of long ago are removed."""
    folder = state_folder() / "units"
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.iterdir():
        if time.time() - old.stat().st_mtime > _KEPT_SECONDS:
            shutil.rmtree(old, ignore_errors=True)
    own = folder / str(task["run_id"]) / f"unit-{task['unit']}-{task['attempt']}"
    shutil.rmtree(own, ignore_errors=True)
    own.mkdir(parents=True)
    return own


def _listen(pipe: IO[bytes], said: queue.SimpleQueue[bytes]) -> None:
    for line in pipe:
        said.put(line)
    said.put(b"")


def _heard(said: queue.SimpleQueue[bytes], tick: float) -> list[bytes]:
    """What was said, at least one thing where something is within that time."""
    try:
        heard = [said.get(timeout=tick)]
    except queue.Empty:
        return []
    while not said.empty():
        heard.append(said.get())
    return heard


def _message(heard: list[bytes]) -> dict[str, Any]:
    message: dict[str, Any] = {}
    for line in heard:
        if not line.startswith(b"{"):
            continue  # an engine's own words
        what = json.loads(line)
        if "at" in what:
            message["at"] = what["at"]
        if "note" in what:
            message.setdefault("notes", []).append(what["note"])
    return message


def _last_line(path: str) -> str:
    lines = Path(path).read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return lines[-1] if lines else "it said nothing"

"""The end of a fleet's processes on this machine, and of what Ray has written meanwhile."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from accelbench.run.fleet.session import StartedNode, record_path, started

#: A raylet tells the head that it leaves, which has to be there for it.
_LEAVE_SECONDS = 10.0
#: For the others; Ray's monitor takes no notice, and has nothing to finish.
_STOP_SECONDS = 2.0


@dataclass(frozen=True)
class StoppedFleet:
    """What was ended here.

    Attributes:
        processes: how many.
        logs: folders of Ray's logs that are still there.
        failed: whether a node had failed before, which the logs may tell of.
    """

    processes: int
    logs: tuple[Path, ...] = ()
    failed: bool = False


def stop(*, keep_logs: bool = False) -> StoppedFleet:
    """End what was started on this machine, and remove Ray's logs where nothing went wrong.

    Args:
        keep_logs: leave the logs where they are.
    """
    nodes = started()
    failed = any(node.failed for node in nodes)
    ended = _end([process for node in nodes for process in _family(node)])
    record_path().unlink(missing_ok=True)
    folders = {Path(node.session) for node in nodes if node.session}
    if not keep_logs and not failed:
        for folder in folders:
            if not _in_use(folder):
                shutil.rmtree(folder, ignore_errors=True)
                _forget(folder)
    logs = tuple(sorted(folder / "logs" for folder in folders if folder.is_dir()))
    return StoppedFleet(ended, logs, failed)


def _family(node: StartedNode) -> list[psutil.Process]:
    found = node.alive
    for process in node.alive:
        with suppress(psutil.Error):
            found += process.children(recursive=True)
    return found


def _end(processes: Iterable[psutil.Process]) -> int:
    """End raylets, and all that these have started, before the head that they talk to."""
    family = {process.pid: process for process in processes}
    raylets = [process for process in family.values() if _is_raylet(process)]
    _terminate(raylets)
    psutil.wait_procs(raylets, timeout=_LEAVE_SECONDS)
    _terminate(family.values())
    _, stubborn = psutil.wait_procs(family.values(), timeout=_STOP_SECONDS)
    for process in stubborn:
        with suppress(psutil.Error):
            process.kill()
    psutil.wait_procs(stubborn, timeout=_STOP_SECONDS)
    return len(family)


def _terminate(processes: Iterable[psutil.Process]) -> None:
    for process in processes:
        with suppress(psutil.Error):
            process.terminate()


def _is_raylet(process: psutil.Process) -> bool:
    try:
        return process.name() == "raylet"
    except psutil.Error:
        return False


def _in_use(folder: Path) -> bool:
    """Whether a node of this machine that was started from elsewhere has its logs there."""
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            if _is_raylet(process) and any(str(folder) in word for word in process.cmdline()):
                return True
    return False


def _forget(session: Path) -> None:
    """Remove the link to a session that is gone, and Ray's own folder where it is empty then."""
    latest = session.parent / "session_latest"
    if latest.is_symlink() and not latest.exists():
        latest.unlink(missing_ok=True)
        (session.parent / "ray_current_cluster").unlink(missing_ok=True)
    with suppress(OSError):
        session.parent.rmdir()
        session.parent.parent.rmdir()

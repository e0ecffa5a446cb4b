"""Worker templates without their imports: forked from a process that has them already.

Of what a scripted run costs, four fifths are the start of Python and the imports of the template
that its workers are forked from, and of a small run with PyTorch three quarters. A nursery imports
them once a test process and forks every template from itself. All else is as it is: real templates
and workers, with the environment, the parent, the socket and the deaths that they have otherwise.

PyTorch's come from there on one thread alone, which is what tests have: the library's threads are
settled where it is loaded.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import functools
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import psutil
import pytest

from accelbench.run.process import template, worker_pool

start_cold = worker_pool.start_process
_PR_SET_CHILD_SUBREAPER = 36
NURSERY = Path(__file__).with_name("warm_nursery.py")
_SCRIPTED, _ENGINE = "scripted", "pytorch"
_PRELOADED = (
    "import runpy, sys; from accelbench.run.process import template;"
    f" template.preload(template.find_runtime({_ENGINE!r}));"
    f" runpy.run_path({str(NURSERY)!r}, run_name='__main__')"
)


class Adopted:
    """A child of this process that another one started; what the worker_pool asks of a `Popen`."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        return self._look(os.WNOHANG)

    def wait(self, timeout: float | None = None) -> int:
        deadline = None if timeout is None else time.monotonic() + timeout
        while (code := self._look(0 if deadline is None else os.WNOHANG)) is None:
            if deadline is not None and time.monotonic() > deadline:
                assert timeout is not None
                raise subprocess.TimeoutExpired("a warm template", timeout)
            time.sleep(0.001)
        return code

    def kill(self) -> None:
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)

    def _look(self, how: int) -> int | None:
        if self.returncode is None:
            try:
                pid, status = os.waitpid(self.pid, how)
            except ChildProcessError:  # somebody else has waited for it
                pid, status = self.pid, 0
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode


class Nursery:
    """A process that has imported what templates import: it runs `warm_nursery.py` in the end."""

    def __init__(self, *program: str, env: Mapping[str, str] | None = None) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", *(program or (str(NURSERY),)), str(theirs.fileno())],
                env=env,
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
            )
        self._socket = ours
        self.pid = self._process.pid
        atexit.register(self.close)

    def start(self, arguments: Sequence[str], env: Mapping[str, str], out: IO[bytes]) -> Adopted:
        """A template by its arguments, as a child of this process."""
        request = {"arguments": arguments, "env": dict(env), "cwd": str(Path.cwd())}
        # What forks it leaves at once, and the nearest subreaper above gets the orphan: us.
        libc = ctypes.CDLL(None)
        libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        try:
            body = json.dumps({**request, "parent": os.getpid()}).encode()
            socket.send_fds(self._socket, [len(body).to_bytes(4)], [out.fileno()])
            self._socket.sendall(body)
            return Adopted(int.from_bytes(self._socket.recv(4, socket.MSG_WAITALL)))
        finally:
            libc.prctl(_PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)

    def close(self) -> None:
        self._socket.close()
        self._process.wait()


@functools.cache
def _nursery(owner: int, runtime: str) -> Nursery:
    made = _engine_nursery() if runtime == _ENGINE else Nursery()
    _nurseries.append(made)
    return made


#: Those of this process, and of the one that it was forked from.
_nurseries: list[Nursery] = []


def _engine_nursery() -> Nursery:
    runtime = template.find_runtime(_ENGINE)
    environment = worker_pool.worker_environment(runtime, threads=1)
    return Nursery("-c", _PRELOADED, env=environment)


def start_warm(
    arguments: Sequence[str], env: Mapping[str, str], out: IO[bytes], *other: Any
) -> Adopted | subprocess.Popen[bytes]:
    """A scripted template from its nursery, and all others as `start_engine_warm` has them."""
    if other or _SCRIPTED not in arguments or "fork" not in arguments:
        return start_engine_warm(arguments, env, out, *other)
    return _nursery(os.getpid(), _SCRIPTED).start(arguments, env, out)


def start_engine_warm(
    arguments: Sequence[str], env: Mapping[str, str], out: IO[bytes], *other: Any
) -> Adopted | subprocess.Popen[bytes]:
    """PyTorch's template on one thread from its nursery, others, or of another Python, as ever."""
    warm = _ENGINE in arguments and "fork" in arguments and env.get("OMP_NUM_THREADS") == "1"
    if other or not warm:
        return start_cold(arguments, env, out, *other)
    return _nursery(os.getpid(), _ENGINE).start(arguments, env, out)


def warm_templates() -> contextlib.AbstractContextManager[None]:
    """Scripted templates, and those of PyTorch on one thread, come from nurseries meanwhile."""
    return _started_by(start_warm)


def warm_engine() -> contextlib.AbstractContextManager[None]:
    """PyTorch's templates on one thread come from a nursery meanwhile."""
    return _started_by(start_engine_warm)


@contextlib.contextmanager
def _started_by(start: Any) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        if sys.platform == "linux":
            patch.setattr(worker_pool, "start_process", start)
        yield


def is_nursery(process: psutil.Process) -> bool:
    """Whether a child of this process is a nursery, which no run has started."""
    return process.pid in {one.pid for one in _nurseries}

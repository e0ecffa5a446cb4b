"""The one place that starts processes: none of them outlives the process that started it.

The kernel of Linux ends our own Python processes; others learn it from a pipe that nothing is
written to (`core/child_launcher.py`). The kernel counts the *thread* that started a process as its
parent: start what is to last from a thread that lasts.

Libraries may leave a freed signal stack behind. Python handles signals on the thread's alternate
stack; OpenVINO's CPU plugin installs its own and, of two engines that end in the order in which
they began, restores what the first had freed: the next handled signal is a SIGSEGV.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from accelbench.core import child_launcher
from accelbench.core.jsonc import JsonError, loads

if TYPE_CHECKING:
    from concurrent.futures import ProcessPoolExecutor


#: Whether the kernel says when a parent dies; without, a pipe does.
BY_KERNEL = sys.platform == "linux"
#: How long a killed process may take to be gone before it is left to the kernel.
#: One that hangs inside a driver cannot be killed, and must not hang us as well.
_GRACE_SECONDS = 1.0
#: How often somebody hears what a process says, and how much of it.
_HEARD_SECONDS, _TAIL_BYTES = 0.25, 4096
#: How long a process may take before whoever waits for it is informed.
_SILENT_SECONDS = 3.0
#: -P: a file of the user's in the current directory must not stand in for a module.
_PYTHON = (sys.executable, "-P")

#: A shell's program that waits for the end of its input, then removes the folder $0. Processes that
#: die as well may write there for a moment, so it looks again.
_REMOVE = 'read -r _; for _ in 1 2 3 4 5 6; do rm -rf -- "$0"; sleep 1; [ -e "$0" ] || exit; done'

Process = subprocess.Popen[bytes]
TimeoutExpired = subprocess.TimeoutExpired
PIPE = subprocess.PIPE


@dataclass(frozen=True)
class ProcessEnd:
    """A process that has ended."""

    returncode: int
    stdout: str
    stderr: str

    @property
    def last_line(self) -> str:
        """The last thing that it said, empty where it said nothing."""
        output = self.stderr.strip() or self.stdout.strip()
        return output.splitlines()[-1] if output else ""


def describe_end(status: int | None) -> str:
    """An exit status in words."""
    if status is None:
        return "its template ended too, so how is not known"
    if status >= 0:
        return f"exit code {status}"
    try:
        return f"killed by {signal.Signals(-status).name}"
    except ValueError:
        return f"killed by signal {-status}"


def start(
    program: Sequence[str],
    out: IO[bytes] | int,
    errors: IO[bytes] | int | None = None,
    *,
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> Process:
    """Start a program that is not ours, in a process group of its own.

    What is returned is a small process beside it, which ends as the program ends; the program is
    its child. Whatever the program starts dies with it where this process dies. Raises OSError if
    there is no such program, or none that may be run.
    """
    path = shutil.which(program[0])
    if path is None:
        raise FileNotFoundError(f"there is no program {program[0]}")
    # Isolated and without site: nothing of the user's is read before the program runs.
    beside = [sys.executable, "-I", "-S", child_launcher.__file__, child_launcher.WATCHED, "family"]
    return subprocess.Popen(
        [*beside, path, *program[1:]],
        stdin=_lifeline(),
        stdout=out,
        stderr=out if errors is None else errors,
        env=environment,
        cwd=folder,
        start_new_session=True,
    )


def start_python(
    module: str,
    arguments: Sequence[str],
    out: IO[bytes] | int,
    errors: IO[bytes] | int | None = None,
    *,
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
    interpreter: Sequence[str] = (),
    alone: bool = False,
    ordered: bool = False,
) -> Process:
    """Start a Python module as a process of its own, with nothing beside it.

    `interpreter` is another environment's Python, which has this module as well. `alone`: that is a
    command that starts one in a process of its own, or in a container. `ordered`: its standard
    input is a pipe, by which it is told what to do. It has to end by itself where that pipe does:
    only the kernel of Linux would end it otherwise.
    """
    parent: str = child_launcher.WATCHED
    stdin: int = subprocess.PIPE if ordered else _lifeline()
    if BY_KERNEL and not alone:
        parent, stdin = str(os.getpid()), stdin if ordered else subprocess.DEVNULL
    elif ordered:
        parent = child_launcher.ORDERED
    # Our file is not there in a container, and another environment has its own.
    python = (
        [*interpreter, "-P", "-m", child_launcher.__name__]
        if interpreter
        else [*_PYTHON, child_launcher.__file__]
    )
    return subprocess.Popen(
        [*python, parent, "module", module, *arguments],
        stdin=stdin,
        stdout=out,
        stderr=out if errors is None else errors,
        env=environment,
        cwd=folder,
    )


def run(
    program: Sequence[str],
    timeout: float,
    *,
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
    on_wait: Callable[[], None] | None = None,
) -> ProcessEnd:
    """Run a program that is not ours to its end; call `on_wait` once if that takes 3 seconds.

    After `timeout` it and what it has started are killed, and TimeoutExpired is raised.
    """
    pipe = subprocess.PIPE
    process = start(program, pipe, pipe, environment=environment, folder=folder)
    return _to_its_end(process, timeout, on_wait)


def run_heard(program: Sequence[str], hear: Callable[[str], None]) -> int:
    """Run a program that is not ours to its end, `hear` its lines at once, return its exit code."""
    process = start(program, subprocess.PIPE, subprocess.STDOUT)
    assert process.stdout is not None
    try:
        for line in process.stdout:
            hear(line.decode(errors="replace").rstrip())
        return process.wait()
    except BaseException:  # Ctrl-C does not reach another session
        kill_family(process)
        raise


def run_python(
    module: str,
    arguments: Sequence[str],
    timeout: float,
    *,
    hear: Callable[[str], None] | None = None,
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> ProcessEnd:
    """Run a Python module to its end; raise TimeoutExpired as `run` does.

    What it has started and left running is killed: it may hold the output open for as long as it
    likes, as a service does that code of an owner's starts when it is imported. `hear` is told now
    and then the last line of its standard error; what that raises ends the process.
    """
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
        program = [*_PYTHON, "-m", module, *arguments]
        process = start(program, out, errors, environment=environment, folder=folder)
        try:
            if hear is None:
                process.wait(timeout)
            else:
                _wait_hearing(process, timeout, lambda: hear(_last_line(errors)))
        finally:
            with contextlib.suppress(PermissionError):  # of a group that has just ended
                kill_family(process)
        output, words = (_written(file) for file in (out, errors))
    return ProcessEnd(process.returncode, output, words)


def _wait_hearing(process: Process, timeout: float, hear: Callable[[], None]) -> None:
    ends = time.monotonic() + timeout
    while True:
        hear()
        left = ends - time.monotonic()
        try:
            process.wait(min(_HEARD_SECONDS, max(left, 0.0)))
            return
        except subprocess.TimeoutExpired:
            if left <= _HEARD_SECONDS:
                raise


def _last_line(file: IO[bytes]) -> str:
    """Of what was written so far, without moving the place where more is written."""
    if not hasattr(os, "pread"):
        return ""
    size = os.fstat(file.fileno()).st_size
    tail = os.pread(file.fileno(), _TAIL_BYTES, max(size - _TAIL_BYTES, 0))
    lines = tail.decode(errors="replace").splitlines()
    return lines[-1] if lines else ""


def _written(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode(errors="replace")


def fork() -> int:
    """As os.fork, with a child that dies with this process."""
    parent = os.getpid()
    watched = None if BY_KERNEL else _lifeline()
    pid = os.fork()
    if pid == 0:
        if watched is None:
            child_launcher.die_with_parent(parent)
        else:
            child_launcher.die_with_pipe(watched)
    return pid


def remove_if_killed(folder: Path) -> Process | None:
    """Start a process that removes a folder when this process dies; None if there is no shell.

    It alone outlives this process, by a second. It has a session of its own, so that
    a kill of the whole process group spares it. End it once the folder is gone.
    """
    shell = shutil.which("sh", path=os.defpath) if os.name == "posix" else None
    if shell is None:
        return None
    try:
        return subprocess.Popen(
            [shell, "-c", _REMOVE, str(folder.absolute())],
            stdin=_lifeline(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={"PATH": os.defpath},
            cwd="/",
            start_new_session=True,
        )
    except OSError:  # no more processes are allowed: the next run removes it
        return None


def pool(workers: int) -> ProcessPoolExecutor:
    """Processes that share out work of ours."""
    from concurrent.futures import ProcessPoolExecutor

    return ProcessPoolExecutor(workers, initializer=_join_pool, initargs=(os.getpid(), BY_KERNEL))


def out_of_memory_kills() -> int | None:
    """How many processes the kernel has killed for memory since boot; None where unknown."""
    try:
        lines = Path("/proc/vmstat").read_text().splitlines()
    except OSError:
        return None
    for line in lines:
        name, _, value = line.partition(" ")
        if name == "oom_kill":
            return int(value)
    return None


def kill_family(process: Process) -> None:
    """Kill a process that leads its group, with that group, and wait for it only briefly."""
    with contextlib.suppress(ProcessLookupError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    with contextlib.suppress(TimeoutExpired):
        process.communicate(timeout=_GRACE_SECONDS)


def _to_its_end(process: Process, timeout: float, on_wait: Callable[[], None] | None) -> ProcessEnd:
    try:
        silent = timeout if on_wait is None else min(timeout, _SILENT_SECONDS)
        try:
            output, errors = process.communicate(timeout=silent)
        except TimeoutExpired:
            if on_wait is None or silent == timeout:
                raise
            on_wait()
            output, errors = process.communicate(timeout=timeout - silent)
    except BaseException:  # Ctrl-C does not reach another session
        kill_family(process)
        raise
    return ProcessEnd(
        process.returncode, output.decode(errors="replace"), errors.decode(errors="replace")
    )


#: The end of the pipe that this process holds, and nobody else.
_held: list[int] = []


@cache
def _lifeline() -> int:
    """The other end of that pipe, to be watched by whoever is to die with this process."""
    watched, held = os.pipe()
    _held.append(held)
    return watched


def _let_go() -> None:
    """A fork that went on holding it would stand in for this process after its death."""
    while _held:
        os.close(_held.pop())
    _lifeline.cache_clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_go)


def _join_pool(parent: int, by_kernel: bool) -> None:
    if by_kernel:
        child_launcher.die_with_parent(parent)
        return
    import threading
    from multiprocessing import parent_process

    def wait() -> None:
        if (above := parent_process()) is not None:
            above.join()
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


#: Before each answer: whatever else is printed there is not mistaken for one.
_MARK = "accelbench-answer: "


#: Seconds that a process may take, if the user set a limit.
_limit: ContextVar[float | None] = ContextVar("limit", default=None)


class NoAnswerError(Exception):
    """A process that ended without an answer; its text is a sentence."""

    def __init__(self, sentence: str, advice: str = "") -> None:
        super().__init__(sentence)
        self.advice = advice  # what to do if it took too long; else empty


@contextmanager
def limited_to(seconds: float | None) -> Iterator[None]:
    """Give every process that is asked so many seconds; None leaves it to whoever asks."""
    token = _limit.set(seconds)
    try:
        yield
    finally:
        _limit.reset(token)


def tell(answer: Any) -> None:
    """Say something to whoever asked, in the process that was asked."""
    sys.stdout.write(f"\n{_MARK}{json.dumps(answer)}\n")
    sys.stdout.flush()


def answers_of(
    module: str,
    arguments: Sequence[str],
    patience: float,
    doing: str,
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> list[Any]:
    """Return what a module tells, in its order: one answer or more, or raise NoAnswerError.

    `patience` is the seconds that it may take, if `limited_to` gives it no others; `doing` is what
    it does, as a sentence about it begins: "Looking at it".
    """
    limit = _limit.get()
    patience = patience if limit is None else limit
    try:
        done = run_python(
            module, arguments, timeout=patience, environment=environment, folder=folder
        )
    except TimeoutExpired as error:
        raise NoAnswerError(
            f"{doing} took more than {patience:g} s, and was given up.",
            "--timeout gives it longer."
            if limit is not None
            else f"It has to be done within {patience:g} s; accelbench run --timeout gives it"
            " longer.",
        ) from error
    lines = [line for line in done.stdout.splitlines() if line.startswith(_MARK)]
    if not lines:
        words = f"; it said: {done.last_line.rstrip('.')}" if done.last_line else ""
        end = describe_end(done.returncode)
        raise NoAnswerError(f"{doing} failed: its process ended ({end}){words}.")
    try:
        answers = [loads(line.removeprefix(_MARK)) for line in lines]
    except JsonError as error:  # of what it looked at, which can print anything
        raise NoAnswerError(f"{doing} gave an answer that is none.") from error
    if not all(isinstance(answer, (dict, list)) for answer in answers):
        raise NoAnswerError(f"{doing} gave an answer that is none.")
    return answers


class SignalStack(ctypes.Structure):
    """stack_t, as Linux has it."""

    _fields_ = (("place", ctypes.c_void_p), ("flags", ctypes.c_int), ("size", ctypes.c_size_t))


def signal_stack() -> SignalStack | None:
    """Where this thread handles signals; None where nobody can be asked."""
    if sys.platform != "linux":
        return None
    stack = SignalStack()
    failed = ctypes.CDLL(None).sigaltstack(None, ctypes.byref(stack))
    return None if failed else stack


def put_back(stack: SignalStack | None) -> None:
    """Let this thread handle signals there again."""
    if stack is not None:
        ctypes.CDLL(None).sigaltstack(ctypes.byref(stack), None)


@contextmanager
def signal_stack_kept() -> Iterator[None]:
    """What is done in it leaves this thread's stack for signals as it was."""
    before = signal_stack()
    try:
        yield
    finally:
        put_back(before)

"""Start of processes, so that no process outlives the one that started it.

The Linux kernel ends our own Python processes; others notice a pipe that closes
(`core/child_launcher.py`). The kernel regards the *thread* that started a process as its parent:
start lasting processes from a lasting thread.

Libraries may leave a freed signal stack behind. Python handles signals on the thread's alternate
stack. OpenVINO's CPU plugin installs its own, and of two engines that end in the order in which
they began, the second restores the stack that the first has freed: the next handled signal is a
SIGSEGV.
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


#: Whether the kernel signals a parent's death; otherwise a pipe does.
BY_KERNEL = sys.platform == "linux"
#: Longest wait for a killed process. One that hangs inside a driver cannot be killed, and must not
#: block this process too.
_GRACE_SECONDS = 1.0
#: Interval between reads of a process's output, and the bytes that are read.
_POLL_SECONDS, _TAIL_BYTES = 0.25, 4096
#: Wait for a process before `on_wait` is called.
_SILENT_SECONDS = 3.0
#: -P: a file of the user's in the current directory must not stand in for a module.
_PYTHON = (sys.executable, "-P")

#: Shell program that waits for the end of its input and then removes the folder $0. Other dying
#: processes may still write there for a moment, so it repeats.
_REMOVE = 'read -r _; for _ in 1 2 3 4 5 6; do rm -rf -- "$0"; sleep 1; [ -e "$0" ] || exit; done'

Process = subprocess.Popen[bytes]
TimeoutExpired = subprocess.TimeoutExpired
PIPE = subprocess.PIPE


@dataclass(frozen=True)
class ProcessEnd:
    """Result of a process that has ended."""

    returncode: int
    stdout: str
    stderr: str

    @property
    def last_line(self) -> str:
        """Last line of its errors or output; empty if there is none."""
        output = self.stderr.strip() or self.stdout.strip()
        return output.splitlines()[-1] if output else ""


def describe_end(status: int | None) -> str:
    """Return a text for an exit status."""
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
    """Start another program in a process group of its own.

    The result is a small launcher process that ends when the program, its child, ends. The program
    and its descendants die when this process dies. Raises OSError if the program does not exist or
    cannot be executed.
    """
    path = shutil.which(program[0])
    if path is None:
        raise FileNotFoundError(f"there is no program {program[0]}")
    # Isolated and without site: no file of the user is read before the program runs.
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
    is_indirect: bool = False,
    takes_orders: bool = False,
) -> Process:
    """Start a Python module as a process, without a launcher.

    `interpreter` is the Python of another environment that has this module. `is_indirect` means
    that it is a command that starts Python in another process or a container. `takes_orders`
    connects standard input to a pipe for orders; the module must end itself when the pipe closes,
    because only the Linux kernel would end it otherwise.
    """
    parent: str = child_launcher.WATCHED
    stdin: int = subprocess.PIPE if takes_orders else _lifeline()
    if BY_KERNEL and not is_indirect:
        parent, stdin = str(os.getpid()), stdin if takes_orders else subprocess.DEVNULL
    elif takes_orders:
        parent = child_launcher.ORDERED
    # A container lacks our file, and another environment has its own.
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
    """Run another program to its end; call `on_wait` once if that takes 3 seconds.

    After `timeout` the program and its descendants are killed, and TimeoutExpired is raised.
    """
    pipe = subprocess.PIPE
    process = start(program, pipe, pipe, environment=environment, folder=folder)
    return _wait_for_end(process, timeout, on_wait)


def run_with_lines(program: Sequence[str], on_line: Callable[[str], None]) -> int:
    """Run another program to its end, call `on_line` for each line, and return its exit code."""
    process = start(program, subprocess.PIPE, subprocess.STDOUT)
    assert process.stdout is not None
    try:
        for line in process.stdout:
            on_line(line.decode(errors="replace").rstrip())
        return process.wait()
    except BaseException:  # Ctrl-C does not reach another session
        kill_group(process)
        raise


def run_python(
    module: str,
    arguments: Sequence[str],
    timeout: float,
    *,
    on_line: Callable[[str], None] | None = None,
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> ProcessEnd:
    """Run a Python module to its end; raise TimeoutExpired as `run` does.

    Processes that it leaves running are killed: a service that a user's code starts on import may
    hold the output open indefinitely. `on_line` regularly receives the last line of its standard
    error; an exception from `on_line` ends the process.
    """
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
        program = [*_PYTHON, "-m", module, *arguments]
        process = start(program, out, errors, environment=environment, folder=folder)
        try:
            if on_line is None:
                process.wait(timeout)
            else:
                _wait_polling(process, timeout, lambda: on_line(_last_line(errors)))
        finally:
            with contextlib.suppress(PermissionError):  # the group has just ended
                kill_group(process)
        output, words = (_read_all(file) for file in (out, errors))
    return ProcessEnd(process.returncode, output, words)


def _wait_polling(process: Process, timeout: float, poll: Callable[[], None]) -> None:
    ends = time.monotonic() + timeout
    while True:
        poll()
        left = ends - time.monotonic()
        try:
            process.wait(min(_POLL_SECONDS, max(left, 0.0)))
            return
        except subprocess.TimeoutExpired:
            if left <= _POLL_SECONDS:
                raise


def _last_line(file: IO[bytes]) -> str:
    """Return the last line so far, without moving the position where more is written."""
    if not hasattr(os, "pread"):
        return ""
    size = os.fstat(file.fileno()).st_size
    tail = os.pread(file.fileno(), _TAIL_BYTES, max(size - _TAIL_BYTES, 0))
    lines = tail.decode(errors="replace").splitlines()
    return lines[-1] if lines else ""


def _read_all(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode(errors="replace")


def fork() -> int:
    """Call os.fork; the child dies with this process."""
    parent = os.getpid()
    lifeline = None if BY_KERNEL else _lifeline()
    pid = os.fork()
    if pid == 0:
        if lifeline is None:
            child_launcher.die_with_parent(parent)
        else:
            child_launcher.die_with_pipe(lifeline)
    return pid


def remove_if_killed(folder: Path) -> Process | None:
    """Start a process that removes a folder when this process dies; None if there is no shell.

    It outlives this process by a second. It has its own session, so that a kill of the process
    group spares it. End it once the folder is gone.
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


def create_pool(workers: int) -> ProcessPoolExecutor:
    """Return a pool of worker processes that die with this process."""
    from concurrent.futures import ProcessPoolExecutor

    return ProcessPoolExecutor(workers, initializer=_join_pool, initargs=(os.getpid(), BY_KERNEL))


def out_of_memory_kills() -> int | None:
    """Return how many processes the kernel killed for memory since boot; None if unknown."""
    try:
        lines = Path("/proc/vmstat").read_text().splitlines()
    except OSError:
        return None
    for line in lines:
        name, _, value = line.partition(" ")
        if name == "oom_kill":
            return int(value)
    return None


def kill_group(process: Process) -> None:
    """Kill a process that leads its group, with the group, and wait for it briefly."""
    with contextlib.suppress(ProcessLookupError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    with contextlib.suppress(TimeoutExpired):
        process.communicate(timeout=_GRACE_SECONDS)


def _wait_for_end(
    process: Process, timeout: float, on_wait: Callable[[], None] | None
) -> ProcessEnd:
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
        kill_group(process)
        raise
    return ProcessEnd(
        process.returncode, output.decode(errors="replace"), errors.decode(errors="replace")
    )


#: The end of the lifeline pipe that only this process holds.
_held_ends: list[int] = []


@cache
def _lifeline() -> int:
    """Return the other end of that pipe, for processes that must die with this process."""
    watched, held = os.pipe()
    _held_ends.append(held)
    return watched


def _close_held_ends() -> None:
    """Close the held end in a fork, which would otherwise keep the pipe open after our death."""
    while _held_ends:
        os.close(_held_ends.pop())
    _lifeline.cache_clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_close_held_ends)


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


#: Precedes each answer, to distinguish it from other output.
_MARK = "accelbench-answer: "


#: Time limit of a process in seconds, if the user set one.
_limit: ContextVar[float | None] = ContextVar("limit", default=None)


class NoAnswerError(Exception):
    """Process that ended without an answer; the text is a sentence."""

    def __init__(self, sentence: str, advice: str = "") -> None:
        super().__init__(sentence)
        self.advice = advice  # if it took too long; else empty


@contextmanager
def limit_seconds(seconds: float | None) -> Iterator[None]:
    """Limit every requested process to a number of seconds; None keeps the caller's limit."""
    token = _limit.set(seconds)
    try:
        yield
    finally:
        _limit.reset(token)


def send_answer(answer: Any) -> None:
    """Send an answer from a requested process to the process that requested it."""
    sys.stdout.write(f"\n{_MARK}{json.dumps(answer)}\n")
    sys.stdout.flush()


def request_answers(
    module: str,
    arguments: Sequence[str],
    timeout: float,
    activity: str,
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> list[Any]:
    """Return the answers of a module in order, at least one; raise NoAnswerError without any.

    `timeout` is the limit in seconds unless `limit_seconds` sets another. `activity` begins a
    sentence about it: "Inspecting it".
    """
    limit = _limit.get()
    timeout = timeout if limit is None else limit
    try:
        done = run_python(
            module, arguments, timeout=timeout, environment=environment, folder=folder
        )
    except TimeoutExpired as error:
        raise NoAnswerError(
            f"{activity} took more than {timeout:g} s and was stopped.",
            "Set a longer --timeout."
            if limit is not None
            else f"The limit is {timeout:g} s; accelbench run --timeout sets a longer one.",
        ) from error
    lines = [line for line in done.stdout.splitlines() if line.startswith(_MARK)]
    if not lines:
        words = f"; its last output: {done.last_line.rstrip('.')}" if done.last_line else ""
        end = describe_end(done.returncode)
        raise NoAnswerError(f"{activity} failed: its process ended ({end}){words}.")
    try:
        answers = [loads(line.removeprefix(_MARK)) for line in lines]
    except JsonError as error:  # inspected code can print anything
        raise NoAnswerError(f"{activity} gave an invalid answer.") from error
    if not all(isinstance(answer, (dict, list)) for answer in answers):
        raise NoAnswerError(f"{activity} gave an invalid answer.")
    return answers


class SignalStack(ctypes.Structure):
    """The structure stack_t of Linux."""

    _fields_ = (("place", ctypes.c_void_p), ("flags", ctypes.c_int), ("size", ctypes.c_size_t))


def get_signal_stack() -> SignalStack | None:
    """Return the signal stack of this thread; None if the system has no such call."""
    if sys.platform != "linux":
        return None
    stack = SignalStack()
    failed = ctypes.CDLL(None).sigaltstack(None, ctypes.byref(stack))
    return None if failed else stack


def restore_signal_stack(stack: SignalStack | None) -> None:
    """Set the signal stack of this thread."""
    if stack is not None:
        ctypes.CDLL(None).sigaltstack(ctypes.byref(stack), None)


@contextmanager
def keep_signal_stack() -> Iterator[None]:
    """Restore this thread's signal stack on exit."""
    before = get_signal_stack()
    try:
        yield
    finally:
        restore_signal_stack(before)

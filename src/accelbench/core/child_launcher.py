"""Program that starts another one, which ends when the process that requested it ends.

    python child_launcher.py PARENT module NAME ARGUMENT …    becomes a Python module
    python child_launcher.py PARENT family PROGRAM ARGUMENT … starts a program as its child

PARENT is the requesting process's number: the Linux kernel sends SIGKILL when that process dies. It
is "-" if standard input is a pipe that only the requesting process holds and never writes to: the
pipe closes when that process ends. This works everywhere. It is "+" if that pipe carries orders for
a module: the module reads them, and calls `end_group` when the pipe closes.

A program and the processes it starts share a process group, which is killed as a whole. This file
runs before anything else and by its file name, so it imports nothing of accelbench.
"""

from __future__ import annotations

import _thread
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1
WATCHED = "-"
ORDERED = "+"


def die_with_parent(parent: int) -> None:
    """Ask the Linux kernel for SIGKILL when the parent dies; exit at once if it is gone."""
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(0)


def die_with_pipe(fd: int) -> None:
    """End this process, and the group that it leads, when the other end of a pipe closes."""
    _thread.start_new_thread(_wait_for_close, (fd,))


def _wait_for_close(fd: int) -> None:
    while os.read(fd, 512):
        continue
    end_group()


def end_group() -> None:
    """End this process at once, and the group that it leads."""
    if sys.platform == "win32":
        import subprocess

        subprocess.call(
            ["taskkill", "/F", "/T", "/PID", str(os.getpid())],  # noqa: S607 - Windows' own
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os._exit(1)
    leads = os.getpgrp() == os.getpid()
    (os.killpg if leads else os.kill)(os.getpid(), signal.SIGKILL)


def _run_module(parent: str, module: str) -> None:
    if parent == WATCHED:
        die_with_pipe(sys.stdin.fileno())
    elif parent != ORDERED:
        die_with_parent(int(parent))
    import runpy

    runpy.run_module(module, run_name="__main__", alter_sys=True)


def _run_program(program: list[str]) -> int:
    die_with_pipe(sys.stdin.fileno())
    if sys.platform == "win32":
        import subprocess

        return subprocess.call(program, stdin=subprocess.DEVNULL)
    # Python ignores these two signals, and a started program would inherit that.
    defaults = [signal.SIGPIPE, signal.SIGXFSZ]
    nothing = (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0)
    # Not subprocess: its import takes half of the time that this program needs to start.
    pid = os.posix_spawnp(
        program[0], program, os.environ, file_actions=[nothing], setsigdef=defaults
    )
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if code < 0:
        if -code != signal.SIGKILL:
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    return code


if __name__ == "__main__":
    _parent, _kind, *_rest = sys.argv[1:]
    if _kind == "module":
        sys.argv = _rest
        _run_module(_parent, _rest[0])
    else:
        try:
            sys.exit(_run_program(_rest))
        except OSError as error:
            sys.exit(f"{_rest[0]} cannot be started: {error.strerror or error}")

"""Run as a program: starts another one that ends when whoever asked for it ends, however that was.

    python tied.py PARENT module NAME ARGUMENT …    becomes a Python module
    python tied.py PARENT family PROGRAM ARGUMENT … starts a program and stays beside it

PARENT is the asking process's number, where the kernel is to send SIGKILL at its death. It is "-"
where standard input is a pipe that the asking process alone could write to, and never does: its
end is the end of that process. The second works everywhere. It is "+" where that pipe brings a
module its orders: the module reads it, and ends itself by `end_family` where it is over.

A program and whatever it starts share a process group, which is killed as a whole. Nothing of
accelbench is imported here: this runs before anything else, and by its file's name.
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
    """Ask the kernel of Linux for SIGKILL when the parent goes; leave at once if it is gone."""
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(0)


def die_with_pipe(fd: int) -> None:
    """End this process, and its group where it leads one, when the other end of a pipe is gone."""
    _thread.start_new_thread(_wait_for_the_end, (fd,))


def _wait_for_the_end(fd: int) -> None:
    while os.read(fd, 512):
        continue
    end_family()


def end_family() -> None:
    """End this process at once, and its group where it leads one."""
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


def _become(parent: str, module: str) -> None:
    if parent == WATCHED:
        die_with_pipe(sys.stdin.fileno())
    elif parent != ORDERED:
        die_with_parent(int(parent))
    import runpy

    runpy.run_module(module, run_name="__main__", alter_sys=True)


def _beside(program: list[str]) -> int:
    die_with_pipe(sys.stdin.fileno())
    if sys.platform == "win32":
        import subprocess

        return subprocess.call(program, stdin=subprocess.DEVNULL)
    # Python ignores these two, which a program that it starts would inherit.
    defaults = [signal.SIGPIPE, signal.SIGXFSZ]
    nothing = (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0)
    # Without subprocess, whose import is half of what starting this takes.
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
    _parent, _manner, *_rest = sys.argv[1:]
    if _manner == "module":
        sys.argv = _rest
        _become(_parent, _rest[0])
    else:
        try:
            sys.exit(_beside(_rest))
        except OSError as error:
            sys.exit(f"{_rest[0]} cannot be started: {error.strerror or error}")

"""How commands of the map are run: in this process, in one of their own, or as a server."""

from __future__ import annotations

import io
import logging
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from urllib.request import urlopen

import pytest
from shells import ended

Done = subprocess.CompletedProcess[str]
PROGRAM = (sys.executable, "-m", "accelbench")


def in_process(folder: Path, *words: str) -> Done:
    """Run the program in this process, in a folder, without the user's own settings."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    with (
        pytest.MonkeyPatch.context() as patch,
        redirect_stdout(out),
        redirect_stderr(err),
        nothing_logged_yet(),
    ):
        patch.chdir(folder)
        for name in settings_of_the_user():
            patch.delenv(name)
        code = ended(patch, *words)
    return Done([*words], code, *(said(stream) for stream in (out, err)))


@contextmanager
def nothing_logged_yet() -> Iterator[None]:
    """Logging as a process finds it, for --debug to settle; afterwards the test's own again."""
    root, noisy = logging.getLogger(), logging.getLogger("asyncio")
    handlers, levels = root.handlers[:], (root.level, noisy.level)
    root.handlers[:] = []
    try:
        yield
    finally:
        root.handlers[:] = handlers
        root.setLevel(levels[0])
        noisy.setLevel(levels[1])


def said(stream: io.TextIOWrapper) -> str:
    """What was written to a stream that stood for a pipe."""
    stream.flush()
    stream.seek(0)
    return stream.read()


def on_its_own(folder: Path, *words: str) -> Done:
    """Run the program in a process of its own, in a folder, without the user's own settings."""
    return subprocess.run(
        [*PROGRAM, *words],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=600,
        stdin=subprocess.DEVNULL,
    )


def served(folder: Path, *words: str) -> Done:
    """A server is started, asked for its first page and its results, and ended as people end it."""
    program = [*PROGRAM, *words, "--port", "0", "--no-open"]
    with subprocess.Popen(
        program, cwd=folder, env=environment(), stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None
        heard = ""
        try:
            while (found := re.search(r"http://\S+", heard)) is None:
                line = server.stdout.readline()
                assert line, f"it said no address: {heard}"
                heard += line
            with urlopen(found[0], timeout=60) as page:
                assert page.status == 200
            # The first page names no model whose times are all unusable, as on a busy machine.
            with urlopen(f"{found[0].rstrip('/')}/results", timeout=60) as page:
                assert b"bert-tiny" in page.read()
        finally:
            server.send_signal(signal.SIGINT)
        rest = server.communicate(timeout=60)[0]
    return Done(program, server.returncode, heard + rest, "")


def environment() -> dict[str, str]:
    """This process's, without the user's own settings."""
    return {k: v for k, v in os.environ.items() if k not in settings_of_the_user()}


def settings_of_the_user() -> list[str]:
    """Variables that would lead a command to the user's own database."""
    return [name for name in os.environ if name.startswith("ACCELBENCH_")]

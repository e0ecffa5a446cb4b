"""A process on a node that measures one unit after another, seen from the worker that feeds it.

Starting Python, looking at the machine and importing an engine take seconds: once a worker of Ray,
not once a unit. There is one such process a worker, so no two units share one at once; it is ended
where an attempt fails or is ended, and with its worker, however that ends.
"""

from __future__ import annotations

import contextlib
import json
import queue
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from accelbench.core import processes
from accelbench.run.process.process_control import InterruptHold

RUNNER = "accelbench.run.fleet.unit_runner"


class KeptRunner:
    """A process that measures units as it is told to.

    Args:
        environment: what it runs in.
        errors: the file that it prints into until its first unit.
    """

    def __init__(self, environment: Mapping[str, str], errors: Path) -> None:
        self._environment = dict(environment)
        with errors.open("ab") as out:
            self._process = processes.start_python(
                RUNNER, ["serve"], processes.PIPE, out, environment=environment, ordered=True
            )
        self._hold = InterruptHold(self._process.pid)
        assert self._process.stdout is not None
        self._said: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        # Daemonic: it must not keep the worker that is ending.
        threading.Thread(
            target=_listen, args=(self._process.stdout, self._said), daemon=True
        ).start()

    @property
    def pid(self) -> int:
        """The process's number."""
        return self._process.pid

    def serves(self, environment: Mapping[str, str]) -> bool:
        """Whether it is there, and runs in that environment: on that device, among others."""
        return self._process.poll() is None and self._environment == environment

    def begin(self, task: Path, folder: Path, errors: Path) -> None:
        """Have it measure a unit. Raises OSError where it is gone."""
        order = {"task": str(task), "folder": str(folder), "errors": str(errors)}
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(order).encode() + b"\n")
        self._process.stdin.flush()

    def heard(self, tick: float) -> list[bytes]:
        """The lines that it said, at least one where it says something within that time.

        The last is empty where it has ended.
        """
        try:
            lines = [self._said.get(timeout=tick)]
        except queue.Empty:
            return []
        while not self._said.empty():
            lines.append(self._said.get())
        return lines

    def end(self, patience: float = 0.0) -> int:
        """Make sure that it is gone; its exit code.

        Args:
            patience: seconds that one which is ending may take to do so by itself.
        """
        if patience:
            with contextlib.suppress(processes.TimeoutExpired):
                self._process.wait(patience)
        if self._process.poll() is None:  # else its number may be another's
            self._hold.kill()
        code = self._process.wait()
        self._hold.close()
        with contextlib.suppress(OSError):
            assert self._process.stdin is not None
            self._process.stdin.close()
        return code


class RunnerSlot:
    """The one runner that a worker keeps, if any."""

    def __init__(self) -> None:
        self._kept: KeptRunner | None = None

    @contextmanager
    def runner(
        self, environment: Mapping[str, str], task: Path, folder: Path, errors: Path
    ) -> Iterator[KeptRunner]:
        """A runner that has begun with a unit; kept if the unit ends well, else ended."""
        runner = self._begun(environment, task, folder, errors)
        try:
            yield runner
        except BaseException:  # among them what ends a generator that nobody listens to any more
            runner.end()
            raise
        self._kept = runner

    def close(self) -> None:
        """End the runner that is kept."""
        if self._kept is not None:
            self._kept.end()
            self._kept = None

    def _begun(
        self, environment: Mapping[str, str], task: Path, folder: Path, errors: Path
    ) -> KeptRunner:
        kept, self._kept = self._kept, None
        if kept is not None:
            with contextlib.suppress(OSError):
                if kept.serves(environment):
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


def _listen(pipe: IO[bytes], said: queue.SimpleQueue[bytes]) -> None:
    for line in pipe:
        said.put(line)
    said.put(b"")

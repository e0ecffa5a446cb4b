"""Processes of the conductor: templates, workers, and how they end."""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from accelbench.core import processes
from accelbench.core.errors import SurroundingsError
from accelbench.core.protocols import Runtime
from accelbench.run.process.other_interpreter import Interpreter
from accelbench.run.process.process_control import InterruptHold
from accelbench.run.process.wire import (
    ADDRESS_VARIABLE,
    TOKEN_VARIABLE,
    Channel,
    ClosedError,
    Switchboard,
)
from accelbench.store import insert
from accelbench.store.files import Scratch

_log = logging.getLogger(__name__)

_PATIENCE = 5.0
START_SECONDS = 300.0  # importing an engine from a cold disk has been seen to take a minute

#: Read when an engine's libraries are loaded, so they must be there before the exec.
_THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


def worker_environment(runtime: Runtime, threads: int | None) -> dict[str, str]:
    """Return the environment that an engine starts in."""
    # Threads are set only if asked for: the engine's own default is what its users get, and part of
    # what is measured.
    environment = dict(os.environ)
    if threads is not None:
        environment.update(dict.fromkeys(_THREAD_VARIABLES, str(threads)))
    environment.update(runtime.info.environment)
    return environment


def start_process(
    arguments: Sequence[str],
    environment: Mapping[str, str],
    out: IO[bytes],
    interpreter: Interpreter | None = None,
) -> processes.Process:
    """Start `run/process/template.py`; it reads nothing and prints into a file."""
    module = "accelbench.run.process.template"
    if interpreter is None:
        return processes.start_python(module, arguments, out, environment=environment)
    return processes.start_python(
        module,
        arguments,
        out,
        environment=interpreter.environment(environment),
        folder=interpreter.folder,
        interpreter=interpreter.program,
        is_indirect=interpreter.alone,
    )


def forks(runtime: Runtime) -> bool:
    """Return whether a warm template can serve; otherwise each worker is started afresh."""
    return runtime.info.isolation == "fork" and sys.platform == "linux"


class Worker:
    """One worker process and the conversation with it."""

    def __init__(
        self,
        channel: Channel,
        hold: InterruptHold,
        log: Path,
        parent: Template | None,
        process: processes.Process | None = None,
    ) -> None:
        self.channel = channel
        self._hold = hold
        self._log = log
        self._parent = parent
        self._process = process

    @property
    def pid(self) -> int:
        return self._hold.pid

    def end(self) -> int | None:
        """End it; return its exit code, minus a signal, or None if unknown."""
        self.channel.close()
        if not hasattr(os, "killpg") and self._process is not None:
            # Nothing here ends what it has started: it is left the time to do so itself.
            with contextlib.suppress(processes.TimeoutExpired):
                self._process.wait(_PATIENCE)
        self._hold.kill()
        status: int | None = None
        if self._process is not None:
            status = self._process.wait()
        elif self._parent is not None:
            status = self._parent.reap(self._hold.pid)
        self._hold.close()
        return status

    def fate(self, patience: float = 2.0) -> int | None:
        """Return how a worker that hung up by itself ended; kill it only if it lingers."""
        if self._process is not None:
            with contextlib.suppress(processes.TimeoutExpired):
                self._process.wait(patience)
        else:
            self._hold.ended_within(patience)
        return self.end()

    def last_words(self, lines: int = 5) -> str:
        try:
            text = self._log.read_text(errors="replace")
        except OSError:
            return ""
        _log.info("what the worker printed: %s", text)
        return " | ".join(line for line in text.strip().splitlines()[-lines:] if line.strip())


class Template:
    """A warm template of one engine in one environment."""

    def __init__(self, worker_pool: WorkerPool, runtime: Runtime, threads: int | None) -> None:
        self._worker_pool = worker_pool
        self._name, self._process, log = worker_pool.launch(runtime, threads, "fork")
        # Nothing is measured while an engine is imported, and the conductor would only wait.
        insert.import_libraries()
        self._channel = worker_pool.connect(self._name, self._process, log)
        worker_pool.answer(self._channel, self._process, log, START_SECONDS)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def ended_within(self, seconds: float) -> bool:
        """Return whether the process ends by itself in that time: its socket closes a moment
        before."""
        try:
            self._process.wait(seconds)
        except processes.TimeoutExpired:
            return False
        return True

    def fork(self) -> Worker:
        """Return a fresh worker, after some 10 ms; raise ClosedError or TimeoutError."""
        name, log = self._worker_pool.new_name("worker")
        self._channel.send({"do": "fork", "name": name, "log": str(log)})
        hold = InterruptHold(self._channel.receive(60.0)["pid"])
        try:
            channel = self._worker_pool.switchboard.accept(name, 60.0, _alive(hold.pid))
        except (ClosedError, TimeoutError) as error:
            hold.kill()
            status = self.reap(hold.pid)
            hold.close()
            raise ClosedError(
                f"a worker ended at birth ({processes.describe_end(status)})"
            ) from error
        return Worker(channel, hold, log, parent=self)

    def reap(self, pid: int) -> int | None:
        """Return how an ending child ended; None if that cannot be known."""
        try:
            self._channel.send({"do": "reap", "pid": pid})
            # An answer that came too late for its question is passed over.
            while (answer := self._channel.receive(60.0)).get("pid") != pid:
                continue
        except (ClosedError, TimeoutError):
            return None
        status: int | None = answer.get("status")
        return status

    def close(self) -> None:
        """End the template; its workers die with it."""
        self._channel.close()
        self._process.kill()
        self._process.wait()


class WorkerPool:
    """All processes of a conductor; none is left after `close`."""

    def __init__(self, interpreter: Interpreter | None = None) -> None:
        self._interpreter = interpreter  # None: ours
        self._scratch = Scratch()
        self.switchboard = Switchboard(self._scratch.folder)
        self._started: list[processes.Process] = []
        self._templates: dict[tuple[str, int | None], Template] = {}
        self._count = 0

    def warm(self, runtime: Runtime, threads: int | None) -> None:
        """Have a template ready, so that no case pays for the engine's import."""
        if self._forks(runtime):
            self._template(runtime, threads)

    def worker(self, runtime: Runtime, threads: int | None) -> Worker:
        """Return a fresh worker of an engine, forked from a warm template if possible.

        Raises ClosedError or TimeoutError if it fails, SurroundingsError if no process could start.
        """
        if self._forks(runtime):
            return self._forked(runtime, threads)
        name, process, log = self.launch(runtime, threads, "spawn")
        channel = self.connect(name, process, log)
        self.answer(channel, process, log, START_SECONDS)
        return Worker(channel, InterruptHold(process.pid), log, parent=None, process=process)

    def _forks(self, runtime: Runtime) -> bool:
        return forks(runtime) and not (self._interpreter and self._interpreter.alone)

    def _forked(self, runtime: Runtime, threads: int | None) -> Worker:
        template = self._template(runtime, threads)
        try:
            return template.fork()
        except (ClosedError, TimeoutError) as error:
            died = template.ended_within(2.0)
            # One that lives may still answer late, and the answer would be taken for another's.
            self.retire_templates()
            if not died:
                raise
            _log.debug("a template died before it had forked: %s", error)
        return self._template(runtime, threads).fork()

    def _template(self, runtime: Runtime, threads: int | None) -> Template:
        key = (runtime.info.name, threads)
        if key not in self._templates:
            # Idle ones stay: they sleep in the kernel, and a grid goes to and fro between
            # the engine that is measured, the reference and the exporter.
            self._templates[key] = Template(self, runtime, threads)
        return self._templates[key]

    def begin_launch(self, number: int) -> None:
        # Forks of one template share its address layout, and with it its luck.
        if number > 1:
            self.retire_templates()

    def retire_templates(self) -> None:
        for template in self._templates.values():
            template.close()
        self._templates.clear()

    def launch(
        self, runtime: Runtime, threads: int | None, manner: str
    ) -> tuple[str, processes.Process, Path]:
        name, log = self.new_name(manner)
        environment = worker_environment(runtime, threads)
        environment[ADDRESS_VARIABLE] = self.switchboard.address
        environment[TOKEN_VARIABLE] = self.switchboard.token
        with log.open("ab") as out:
            arguments = [name, runtime.info.name, manner]
            process = (
                start_process(arguments, environment, out)
                if self._interpreter is None
                else start_process(arguments, environment, out, self._interpreter)
            )
            self._started.append(process)
        return name, process, log

    def new_name(self, kind: str) -> tuple[str, Path]:
        self._count += 1
        name = f"{kind}-{self._count}"
        return name, self._scratch.folder / f"{name}.log"

    def new_folder(self, kind: str) -> Path:
        self._count += 1
        folder = self._scratch.folder / f"{kind}-{self._count}"
        folder.mkdir(mode=0o700)
        return folder

    def connect(self, name: str, process: processes.Process, log: Path) -> Channel:
        try:
            return self.switchboard.accept(name, START_SECONDS, lambda: process.poll() is None)
        except (ClosedError, TimeoutError) as error:
            raise _did_not_start(process, log) from error

    def answer(
        self, channel: Channel, process: processes.Process, log: Path, timeout: float
    ) -> dict[str, Any]:
        try:
            return channel.receive(timeout)
        except (ClosedError, TimeoutError) as error:
            raise _did_not_start(process, log) from error

    def close(self) -> None:
        self.retire_templates()
        for process in self._started:  # one that an interrupt caught on its way in
            process.kill()
            process.wait()
        self.switchboard.close()
        self._scratch.close()


def _alive(pid: int) -> Any:
    def alive() -> bool:
        """Return whether it can still call; a zombie cannot."""
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return False
        return state != "Z"

    return alive


def _did_not_start(process: processes.Process, log: Path) -> SurroundingsError:
    process.kill()
    status = process.wait()
    text = log.read_text(errors="replace").strip().splitlines()
    _log.info("what the worker printed: %s", "\n".join(text))
    last = text[-1] if text else "it printed nothing"
    return SurroundingsError(
        f"A worker process could not start ({processes.describe_end(status)}): {last}.",
        "Run again with --debug, or check the installation with accelbench hardware.",
    )


#: Templates that stay at most: a sleeping one of PyTorch holds about 200 MB.
_MOST = 6


class KeptWorkerPool(WorkerPool):
    """A pool whose warm templates serve one run after another; empty after `end`."""

    # The n-th launches of all runs come from one template, and other launches from others: as in
    # one run of all of their cases.

    def __init__(self) -> None:
        super().__init__()
        self._launch = 1
        self._by_launch: dict[tuple[str, int | None, int], Template] = {}  # the last used last

    def begin_launch(self, number: int) -> None:
        self._launch = number

    def retire_templates(self) -> None:
        for template in self._by_launch.values():
            template.close()
        self._by_launch.clear()

    def close(self) -> None:
        """End a run: remove its workers and files, keep the templates."""
        templates = {template.pid for template in self._by_launch.values()}
        for process in [p for p in self._started if p.pid not in templates]:
            process.kill()
            process.wait()
            self._started.remove(process)
        for path in self._scratch.folder.iterdir():
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            elif path.suffix == ".log" and not path.name.startswith("fork-"):
                path.unlink(missing_ok=True)
        self._launch = 1

    def end(self) -> None:
        """Leave no process and no file behind."""
        super().close()

    def _template(self, runtime: Runtime, threads: int | None) -> Template:
        key = (runtime.info.name, threads, self._launch)
        template = self._by_launch.pop(key, None)
        if template is None:
            while len(self._by_launch) >= _MOST:
                self._by_launch.pop(next(iter(self._by_launch))).close()
            template = Template(self, runtime, threads)
        self._by_launch[key] = template
        return template

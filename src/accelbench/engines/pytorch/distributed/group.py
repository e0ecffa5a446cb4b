"""A group of ranks as the worker has it: started, asked, and ended whatever happens."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import signal
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from multiprocessing.connection import Client, Connection
from pathlib import Path
from typing import Any

from accelbench.core import processes
from accelbench.core.errors import CaseError, OutOfMemoryError
from accelbench.hardware.machine import threads_of_each
from accelbench.store.files import Scratch

#: Of the environment of ranks: the folder, the agent's number, the key that admits who asks.
FOLDER_VARIABLE = "ACCELBENCH_RANKS"
AGENT_VARIABLE = "ACCELBENCH_RANKS_AGENT"
KEY_VARIABLE = "ACCELBENCH_RANKS_KEY"

_BACKENDS = {"cpu": "gloo"}  # NCCL on GPUs, and what ROCm's PyTorch calls so

LAUNCH, FAILURE, DOOR = "launch.json", "failure.json", "door"


@dataclass(frozen=True)
class RankLaunch:
    """One group of ranks, as one node starts its own."""

    here: int  # ranks of this node
    backend: str = "gloo"  # or nccl, which ROCm's PyTorch calls RCCL's too
    threads: int = 1  # of each
    #: Within which the others have to come: importing torch and transformers in every rank, from a
    #: cold disk.
    seconds: float = 300.0
    #: That a collective waits for a rank that does not come. Shorter than what a case may take, so
    #: that it is told which rank did not come.
    collective_seconds: float = 240.0
    nodes: int = 1
    node: int = 0
    rendezvous: str = ""  # host:port of node 0, where there are several

    def write(self, folder: Path) -> None:
        (folder / LAUNCH).write_text(json.dumps(asdict(self)))

    @classmethod
    def read(cls, folder: Path) -> RankLaunch:
        return cls(**json.loads((folder / LAUNCH).read_text()))


def error_file(folder: Path, rank: int) -> Path:
    """Return the file in which a rank leaves why it gave up."""
    return folder / f"rank-{rank}.json"


def backend_of(hardware: str) -> str:
    """Return what carries out collectives."""
    return _BACKENDS.get(hardware, "nccl")


_AGENT = "accelbench.engines.pytorch.distributed.agent"
#: What the agent may take to end the others and to leave its note.
_NOTE_SECONDS = 10.0
_LOG = "agent.log"
_LESS = "Use a smaller batch, --accumulate or --strategy fsdp2."
_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


class RankGroup:
    """A group of ranks that wait for questions; one that fails ends them all."""

    def __init__(self, launch: RankLaunch, variables: Mapping[str, str] | None = None) -> None:
        """Start this node's ranks, and wait until rank 0 answers."""
        self._launch = launch
        self.ranks = launch.here * launch.nodes
        self._scratch = Scratch()
        self._folder = self._scratch.folder
        self._key = secrets.token_bytes(32)
        self._asked: Connection | None = None
        self._kills_before = processes.out_of_memory_kills()
        key = {KEY_VARIABLE: self._key.hex()}
        self._agent = _agent(launch, self._folder, {**key, **(variables or {})})
        try:
            self._asked = self._joined()
        except BaseException:
            self.close()
            raise

    def _joined(self) -> Connection:
        door, deadline = self._folder / DOOR, time.monotonic() + self._launch.seconds
        while time.monotonic() < deadline:
            if door.exists():
                with contextlib.suppress(ConnectionRefusedError):
                    return Client(str(door), authkey=self._key)
            with contextlib.suppress(processes.TimeoutExpired):
                self._agent.wait(0.05)
                raise self._failure()
        raise CaseError(
            "ranks_did_not_start",
            f"the ranks did not come together within {self._launch.seconds:g} s",
            "Run again with --debug.",
        )

    def ask(self, do: str, **what: Any) -> list[Any]:
        """Return every rank's answer in order; raise CaseError if one failed: all are gone then."""
        if self._asked is None:
            raise CaseError("ranks_ended", "the ranks have ended", "Start them anew.")
        try:
            self._asked.send({"do": do, **what})
            answers: list[Any] = self._asked.recv()
        except (EOFError, OSError):
            error = self._failure()
            self.close()
            raise error from None
        return answers

    def close(self) -> None:
        asked, self._asked = self._asked, None
        if asked is not None:
            with contextlib.suppress(OSError):
                asked.close()
            if self._launch.nodes > 1:
                # Another machine's agent has to see that its ranks ended as they should. Here
                # nobody looks, and ending each interpreter would take seconds.
                with contextlib.suppress(processes.TimeoutExpired):
                    self._agent.wait(_NOTE_SECONDS)
        # Its end is the end of every rank that it has started, stopped ones too.
        self._agent.kill()
        self._agent.wait()
        self._scratch.close()

    def _failure(self) -> CaseError:
        with contextlib.suppress(processes.TimeoutExpired):
            self._agent.wait(_NOTE_SECONDS)
        notes = {
            rank: json.loads(file.read_text())
            for rank in range(self.ranks)
            if (file := error_file(self._folder, rank)).is_file()
        }
        # What was waited for in vain says nothing of who is at fault.
        own = {rank: note for rank, note in notes.items() if not note.get("in_vain")}
        ended = self._ended()
        if own:
            return _error(next(iter(own.values())))
        if ended is not None and ended["rank"] not in notes:
            return _killed(ended, self._killed_for_memory())
        if notes:
            missing = [str(rank) for rank in range(self.ranks) if rank not in notes]
            return _vain(next(iter(notes.values())), missing)
        return CaseError(
            "ranks_did_not_start",
            f"torch's elastic agent ended by itself: {_last_line(self._folder)}",
            "Run again with --debug.",
        )

    def _killed_for_memory(self) -> bool:
        before, now = self._kills_before, processes.out_of_memory_kills()
        return before is not None and (now or 0) > before

    def _ended(self) -> dict[str, Any] | None:
        file = self._folder / FAILURE
        ended: dict[str, Any] | None = json.loads(file.read_text()) if file.is_file() else None
        return ended


def take_part(launch: RankLaunch) -> str | None:
    """Run this machine's ranks of a group that another one asks, until it has ended.

    Return why it did not end as it should, or None.
    """
    with contextlib.closing(Scratch()) as scratch:
        agent = _agent(launch, scratch.folder, {})
        try:
            return None if agent.wait() == 0 else _last_line(scratch.folder)
        finally:
            agent.kill()
            agent.wait()


def _agent(launch: RankLaunch, folder: Path, variables: Mapping[str, str]) -> processes.Process:
    launch.write(folder)
    threads = dict.fromkeys(_THREADS, str(launch.threads))
    environment = {**os.environ, **threads, **variables}
    with (folder / _LOG).open("wb") as log:
        return processes.start_python(_AGENT, [str(folder)], log, environment=environment)


def _last_line(folder: Path) -> str:
    file = folder / FAILURE
    if file.is_file():
        ended = json.loads(file.read_text())
        note = error_file(folder, ended["rank"])
        if note.is_file():
            return str(json.loads(note.read_text())["message"])
        said = [line for line in ended["last_lines"] if line.strip()]
        return f"rank {ended['rank']}: {said[-1][:300]}" if said else f"rank {ended['rank']} ended"
    log = folder / _LOG
    words = log.read_text(errors="replace").strip() if log.is_file() else ""
    return words.splitlines()[-1][:300] if words else "it said nothing"


def _error(note: dict[str, Any]) -> CaseError:
    if note["status"] == OutOfMemoryError.status:
        return OutOfMemoryError(note["message"], note["advice"], note["reason"])
    error = CaseError(note["reason"], note["message"], note["advice"])
    error.status = note["status"]
    return error


def _killed(ended: dict[str, Any], for_memory: bool) -> CaseError:
    if for_memory and ended["exit_code"] == -signal.SIGKILL:
        return OutOfMemoryError(
            f"the kernel killed rank {ended['rank']} for memory", _LESS, "killed_for_memory"
        )
    code, lines = ended["exit_code"], [line for line in ended["last_lines"] if line.strip()]
    how = f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}"
    words = f"; its last line: {lines[-1][:300]}" if lines else ""
    return CaseError(
        "rank_lost",
        f"rank {ended['rank']} {how}{words}",
        f"The other ranks were ended with it. If memory was short: {_LESS}",
    )


def _vain(note: dict[str, Any], missing: list[str]) -> CaseError:
    who = f"rank {', '.join(missing)}" if missing else "each other"
    error = CaseError(
        "rank_lost",
        f"{who} was waited for in vain ({note['message']})",
        "All ranks were ended. Look at what that one does, or allow fewer processes.",
    )
    error.status = note["status"]
    return error


#: Between two tries to meet a machine that is not there yet.
_PAUSE_SECONDS = 1.0


@dataclass(frozen=True)
class MachinePart:
    """The part of one machine in steps that several make together."""

    hardware: str  # the platform
    processes: int  # of this machine, as of each other
    nodes: int  # machines
    node: int  # which of them this is; 0 measures
    rendezvous: str  # host:port of machine 0
    # of this machine's processes together; None for the engine's default
    threads: int | None = None

    def launch(self, seconds: float, collective_seconds: float) -> RankLaunch:
        return RankLaunch(
            here=self.processes,
            backend=backend_of(self.hardware),
            threads=threads_of_each(self.threads, self.processes),
            seconds=seconds,
            collective_seconds=collective_seconds,
            nodes=self.nodes,
            node=self.node,
            rendezvous=self.rendezvous,
        )


def groups_taken_part_in(
    part: MachinePart, patience: float, collective_seconds: float
) -> Iterator[str]:
    """Take part in every group that machine 0 starts; yield why each ended early, "" if it did not.

    `patience` is the seconds without any group after which there are taken to be no more.
    """
    last = time.monotonic()
    while (left := patience - (time.monotonic() - last)) > 0:
        trouble = take_part(part.launch(left, collective_seconds))
        if trouble is None or trouble.startswith("rank "):
            yield trouble or ""
            last = time.monotonic()
        else:
            time.sleep(_PAUSE_SECONDS)

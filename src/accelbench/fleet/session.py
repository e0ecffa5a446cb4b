"""A fleet's processes on this machine: started with a token, on the loopback address, and stopped.

What was started is recorded with the moment of each process, so that only these are stopped. Ray
makes its own folder writable for everybody, and its sockets need no token: it lies in a folder that
only this user may enter.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import socket
import stat
import sys
import tempfile
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path

import psutil

from accelbench.core import processes
from accelbench.core.errors import MissingExtraError, SurroundingsError, UsageError
from accelbench.core.facts import utc_now
from accelbench.core.jsonc import JsonError, loads
from accelbench.core.protocols import Inventory
from accelbench.core.safe_text import in_quotes
from accelbench.fleet.ray_cluster import (
    RayCluster,
    connect,
    gpus_of,
    is_loopback,
    ray_address,
    refuse_silent,
    resources_of,
)
from accelbench.fleet.ray_worker import state_folder

_PREFIX = "accelbench-ray-"
_PRIVATE = 0o700


def ray_folder() -> Path:
    """Return Ray's folder; raise SurroundingsError if the folder around it belongs to somebody
    else."""
    # It is short, because a socket's path has at most 107 bytes.
    user = _user()
    outer = Path(tempfile.gettempdir()) / f"{_PREFIX}{'user' if user is None else user}"
    outer.mkdir(mode=_PRIVATE, exist_ok=True)
    if not _is_own(outer):
        raise SurroundingsError(
            f"{in_quotes(str(outer))} is no folder of this user's, and Ray's sockets would lie in"
            " it.",
            "Have it removed, or set TMPDIR to a folder of your own.",
        )
    outer.chmod(_PRIVATE)
    return outer / "ray"


def keep_private(session: str) -> None:
    """Protect the folder of a joined node's session: the head names it, by the head's user."""
    outer = Path(session).parent.parent
    if session and outer.name.startswith(_PREFIX) and _is_own(outer):
        outer.chmod(_PRIVATE)


def _is_own(folder: Path) -> bool:
    there = folder.lstat()
    return stat.S_ISDIR(there.st_mode) and _user() in (None, there.st_uid)


def _user() -> int | None:
    return os.getuid() if hasattr(os, "getuid") else None


LOOPBACK = "127.0.0.1"
#: The program `ray`, wherever it is installed.
_RAY = (sys.executable, "-P", "-m", "ray.scripts.scripts")
_START_SECONDS = 300.0
#: As Ray names it, in its own folder.
_SESSION = re.compile(r"(?<==)/.*?/session_\d[\w-]*")
#: Results are small and leave at once; Ray would take a third of the memory that is measured.
_OBJECT_STORE_BYTES = 100_000_000
_TOKEN_CHARACTERS = 32


@dataclass(frozen=True)
class StartedNode:
    """A node of a fleet that was started on this machine."""

    address: str  # HOST:PORT of the fleet's head
    token_file: str  # the file of its token
    head: bool  # whether this is the head
    started_at: str  # when
    #: the number and the moment of creation of each process.
    processes: tuple[tuple[int, float], ...]
    session: str = ""  # the folder of Ray's sockets and logs; "" where it is not known

    @property
    def failed(self) -> bool:
        """Whether any of its processes has ended, as all last as long as the node."""
        return len(self.alive) < len(self.processes)

    @property
    def alive(self) -> list[psutil.Process]:
        found = []
        for number, created in self.processes:
            with suppress(psutil.Error):
                process = psutil.Process(number)
                there = process.status() != psutil.STATUS_ZOMBIE
                if there and abs(process.create_time() - created) < 1.0:
                    found.append(process)
        return found


def start(host: str, port: int, inventory: Inventory, *, measures: bool = True) -> StartedNode:
    """Start the head of a fleet, reachable at `host`; with `measures`, this machine takes units
    too.

    Raises UsageError if a fleet was started here, SurroundingsError if Ray does not start.
    """
    _refuse_without_ray()
    host = LOOPBACK if is_loopback(host) else host
    running = [node for node in started() if node.head and node.alive]
    if running:
        raise UsageError(
            f"A fleet was started here already, at {running[0].address}.",
            "Use it, or end it with accelbench fleet stop.",
        )
    _refuse_taken(host, port)
    token_file = state_folder() / "token"
    write_token(token_file)
    resources = resources_of(inventory) if measures else {}
    options = [
        *("--head", f"--node-ip-address={host}", f"--port={port}"),
        *("--include-dashboard=false", "--disable-usage-stats"),
        f"--temp-dir={ray_folder()}",
        *_offered(resources, gpus_of(inventory) if measures else 0),
    ]
    environment = _ray_environment(token_file)
    if host == LOOPBACK:
        # Otherwise Ray puts the address of a network interface in place of 127.0.0.1.
        environment["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
    return _started(f"{host}:{port}", token_file, options, environment, head=True)


def join(
    address: str, token_file: Path | None, host: str | None, inventory: Inventory
) -> StartedNode:
    """Let this machine measure for a fleet; without a token file, by the token that `start` wrote
    here.

    Raises SurroundingsError if the head does not answer or refuses the token, or if Ray fails.
    """
    _refuse_without_ray()
    there = parsed(address)
    token = token_file or state_folder() / "token"
    if not token.is_file():
        raise UsageError(
            f"There is no token file {in_quotes(str(token))}.",
            "Copy the one that accelbench fleet start names to this machine, for you alone to"
            " read, and name it with --token-file.",
        )
    ray_folder()  # before Ray makes it; mostly the head's user has the same number
    environment = _ray_environment(token)
    _ask_head(address, environment)
    own = [f"--node-ip-address={host}"] if host and not is_loopback(there[0]) else []
    options = [
        *(f"--address={ray_address(address)}", "--disable-usage-stats", *own),
        *_offered(resources_of(inventory), gpus_of(inventory)),
    ]
    return _started(address, token, options, environment, head=False)


def _ask_head(address: str, environment: dict[str, str]) -> None:
    """Raise SurroundingsError if a head does not answer or refuses the token."""
    # `ray start` itself reports a refused token only in a log.
    refuse_silent(address)
    asked = [*_RAY, "health-check", "--address", ray_address(address)]
    ended = processes.run(asked, _START_SECONDS, environment=environment)
    said = ended.stdout + ended.stderr
    if ended.returncode == 0:
        return
    if "nauthenticated" in said or "AuthenticationError" in said:
        raise SurroundingsError(
            f"The fleet at {address} refused the token.",
            "Copy the file that accelbench fleet start names on its head, and name it with"
            " --token-file.",
        )
    raise SurroundingsError(
        f"No fleet answers at {address}: {ended.last_line or 'it said nothing'}.",
        "Look whether it runs there, with accelbench fleet status.",
    )


def started() -> list[StartedNode]:
    """Return the nodes that were started on this machine; they may have ended since."""
    try:
        entries = loads(record_path().read_text(encoding="utf-8"))
        return [
            StartedNode(**{**entry, "processes": tuple(map(tuple, entry["processes"]))})
            for entry in entries
        ]
    except FileNotFoundError:
        return []
    except (OSError, JsonError, TypeError, KeyError) as error:
        raise SurroundingsError(
            f"{record_path()} cannot be read: {error}.",
            "It says what accelbench fleet started here: remove it once none of that runs.",
        ) from error


def parsed(address: str) -> tuple[str, int]:
    """Return host and port of an address; raise UsageError if it has none."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal():
        raise UsageError(f"{in_quotes(address)} is no address.", "Name it as HOST:PORT.")
    return host, int(port)


def write_token(path: Path) -> None:
    """Write a new token that only this user can read."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(secrets.token_hex(_TOKEN_CHARACTERS))


def _offered(resources: dict[str, float], gpus: int) -> list[str]:
    return [
        f"--resources={json.dumps(resources)}",
        f"--num-gpus={gpus}",
        f"--object-store-memory={_OBJECT_STORE_BYTES}",
    ]


def _ray_environment(token_file: Path) -> dict[str, str]:
    return {
        **{name: value for name, value in os.environ.items() if name != "RAY_AUTH_TOKEN"},
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN_PATH": str(token_file),
        "RAY_USAGE_STATS_ENABLED": "0",
        # Ray's own is 15: what is measured would give way to everything else on the machine.
        "RAY_worker_niceness": "0",
    }


def _started(
    address: str,
    token_file: Path,
    options: Sequence[str],
    environment: dict[str, str],
    *,
    head: bool,
) -> StartedNode:
    pipe = processes.PIPE
    process = processes.start([*_RAY, "start", *options], pipe, pipe, environment=environment)
    try:
        output, errors = process.communicate(timeout=_START_SECONDS)
    except BaseException:
        processes.kill_group(process)
        raise
    if process.returncode != 0:
        processes.kill_group(process)
        raise _refusal((errors or output).decode(errors="replace"))
    members = tuple(sorted(_members(process.pid)))
    session = _session_of(number for number, _ in members)
    keep_private(session)
    node = StartedNode(address, str(token_file), head, utc_now(), members, session)
    record_path().write_text(
        json.dumps([asdict(each) for each in [*_still_there(), node]]), encoding="utf-8"
    )
    return node


def _members(leader: int) -> list[tuple[int, float]]:
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            if os.getsid(process.pid) == leader:
                found.append((process.pid, process.create_time()))
    return found


def _session_of(numbers: Iterable[int]) -> str:
    """Return the folder that Ray's processes use, or an empty text."""
    for number in numbers:
        with suppress(psutil.Error, OSError):
            found = _SESSION.search("\n".join(psutil.Process(number).cmdline()))
            if found:
                return found[0]
    return ""


def _still_there() -> list[StartedNode]:
    return [node for node in started() if node.alive]


def _refusal(said: str) -> SurroundingsError:
    if "timed out during startup" in said:
        return SurroundingsError(
            "Ray did not start within the half minute that it gives a node.",
            "The machine has much other work: try again when it has less.",
        )
    lines = [line for line in said.splitlines() if line.strip()]
    return SurroundingsError(
        f"Ray did not start: {lines[-1] if lines else 'it said nothing'}",
        "Its logs are in " + str(ray_folder()) + ".",
    )


def _refuse_taken(host: str, port: int) -> None:
    try:
        with socket.create_server((host, port)):
            return
    except OSError as error:
        raise SurroundingsError(
            f"{host}:{port} cannot be listened on: {error.strerror}.",
            "Name an address of this machine with --host, or another port with --port.",
        ) from error


def _refuse_without_ray() -> None:
    if find_spec("ray") is None:
        raise MissingExtraError("ray", "fleet", "A fleet")


def record_path() -> Path:
    """Return the file that lists the nodes that were started here."""
    return state_folder() / "started.json"


#: A raylet tells the head that it leaves, which has to be there for it.
_LEAVE_SECONDS = 10.0
#: For the others; Ray's monitor takes no notice, and has nothing to finish.
_STOP_SECONDS = 2.0


@dataclass(frozen=True)
class StoppedFleet:
    """What `stop` ended."""

    processes: int  # how many
    logs: tuple[Path, ...] = ()  # folders of Ray's logs that are still there
    failed: bool = False  # whether a node had failed before, which the logs may tell of


def stop(*, keep_logs: bool = False) -> StoppedFleet:
    """End the nodes of this machine; remove Ray's logs if no node had failed."""
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
    """End raylets and their children before the head that they talk to."""
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
    """Return whether another node of this machine has its logs there."""
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            if _is_raylet(process) and any(str(folder) in word for word in process.cmdline()):
                return True
    return False


def _forget(session: Path) -> None:
    """Remove the link to a session that is gone, and Ray's own folder if it is empty then."""
    latest = session.parent / "session_latest"
    if latest.is_symlink() and not latest.exists():
        latest.unlink(missing_ok=True)
        (session.parent / "ray_current_cluster").unlink(missing_ok=True)
    with suppress(OSError):
        session.parent.rmdir()
        session.parent.parent.rmdir()


@dataclass(frozen=True)
class FleetAddress:
    """The address of a fleet's head, and the file of its token."""

    address: str
    token_file: Path | None

    @classmethod
    def of(cls, address: str | None, token_file: Path | None) -> FleetAddress:
        """Return the named fleet, or the one that was started or joined on this machine."""
        if address is not None:
            if address != "auto":
                parsed(address)
            own = [node for node in started() if node.address == address]
            return cls(address, token_file or (Path(own[0].token_file) if own else None))
        here = [node for node in started() if node.alive]
        if not here:
            raise UsageError(
                "No fleet was started on this machine.",
                "Start one with accelbench fleet start, or name one with --address HOST:PORT.",
            )
        return cls(here[0].address, token_file or Path(here[0].token_file))

    def connected(self) -> RayCluster:
        if self.token_file is not None and not self.token_file.is_file():
            name = in_quotes(str(self.token_file))
            raise UsageError(f"There is no token file {name}.", "Name another one.")
        connect(self.address, self.token_file)
        return RayCluster()

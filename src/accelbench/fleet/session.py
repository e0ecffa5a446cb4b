"""Processes of a fleet on this machine: started with a token, on the loopback address, and stopped.

Started processes are recorded with their time of creation, so that only these are stopped. Ray
makes its own folder writable for everybody, and its sockets need no token. The folder is therefore
inside one that only this user may enter.
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
    build_resources,
    connect,
    count_gpus,
    is_loopback,
    ray_address,
    refuse_unreachable,
)
from accelbench.fleet.ray_worker import state_folder

_PREFIX = "accelbench-ray-"
_PRIVATE = 0o700


def ray_folder() -> Path:
    """Return Ray's folder.

    Raises SurroundingsError if another user owns the folder around it.
    """
    # A short path, because a socket's path has at most 107 bytes.
    user = _user()
    outer = Path(tempfile.gettempdir()) / f"{_PREFIX}{'user' if user is None else user}"
    outer.mkdir(mode=_PRIVATE, exist_ok=True)
    if not _is_own(outer):
        raise SurroundingsError(
            f"{in_quotes(str(outer))}, for Ray's sockets, is not a folder of this user.",
            "Have it removed, or set TMPDIR to a folder of your own.",
        )
    outer.chmod(_PRIVATE)
    return outer / "ray"


def keep_private(session: str) -> None:
    """Protect the folder of a joined node's session, which the head names by its user."""
    outer = Path(session).parent.parent
    if session and outer.name.startswith(_PREFIX) and _is_own(outer):
        outer.chmod(_PRIVATE)


def _is_own(folder: Path) -> bool:
    there = folder.lstat()
    return stat.S_ISDIR(there.st_mode) and _user() in (None, there.st_uid)


def _user() -> int | None:
    return os.getuid() if hasattr(os, "getuid") else None


LOOPBACK = "127.0.0.1"
#: The program `ray` of this installation.
_RAY = (sys.executable, "-P", "-m", "ray.scripts.scripts")
_START_SECONDS = 300.0
#: Path of a session in Ray's folder.
_SESSION = re.compile(r"(?<==)/.*?/session_\d[\w-]*")
#: Results are small and sent at once; by default Ray takes a third of the measured memory.
_OBJECT_STORE_BYTES = 100_000_000
_TOKEN_CHARACTERS = 32


@dataclass(frozen=True)
class StartedNode:
    """Node of a fleet that was started on this machine."""

    address: str  # HOST:PORT of the fleet's head
    token_file: str  # the file of its token
    head: bool  # whether this is the head
    started_at: str  # time
    #: number and time of creation of each process.
    processes: tuple[tuple[int, float], ...]
    session: str = ""  # the folder of Ray's sockets and logs; "" if unknown

    @property
    def has_failed(self) -> bool:
        """Whether any of its processes has ended; they all last as long as the node."""
        return len(self.alive_processes) < len(self.processes)

    @property
    def alive_processes(self) -> list[psutil.Process]:
        found = []
        for number, created in self.processes:
            with suppress(psutil.Error):
                process = psutil.Process(number)
                there = process.status() != psutil.STATUS_ZOMBIE
                if there and abs(process.create_time() - created) < 1.0:
                    found.append(process)
        return found


def start(host: str, port: int, inventory: Inventory, *, measures: bool = True) -> StartedNode:
    """Start the head of a fleet, reachable at `host`.

    With `measures`, this machine takes units too. Raises UsageError if a fleet was started here,
    SurroundingsError if Ray does not start.
    """
    _refuse_without_ray()
    host = LOOPBACK if is_loopback(host) else host
    running = [node for node in list_started() if node.head and node.alive_processes]
    if running:
        raise UsageError(
            f"A fleet already runs here, at {running[0].address}.",
            "Use it, or end it with accelbench fleet stop.",
        )
    _refuse_used_port(host, port)
    token_file = state_folder() / "token"
    write_token(token_file)
    resources = build_resources(inventory) if measures else {}
    options = [
        *("--head", f"--node-ip-address={host}", f"--port={port}"),
        *("--include-dashboard=false", "--disable-usage-stats"),
        f"--temp-dir={ray_folder()}",
        *_resource_options(resources, count_gpus(inventory) if measures else 0),
    ]
    environment = _ray_environment(token_file)
    if host == LOOPBACK:
        # Otherwise Ray puts the address of a network interface in place of 127.0.0.1.
        environment["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
    return _start_ray(f"{host}:{port}", token_file, options, environment, head=True)


def join(
    address: str, token_file: Path | None, host: str | None, inventory: Inventory
) -> StartedNode:
    """Let this machine measure for a fleet.

    Without a token file, the token that `start` wrote here is used. Raises SurroundingsError if the
    head does not answer or refuses the token, or if Ray fails.
    """
    _refuse_without_ray()
    head = parse_address(address)
    token = token_file or state_folder() / "token"
    if not token.is_file():
        raise UsageError(
            f"There is no token file {in_quotes(str(token))}.",
            "Copy the file that accelbench fleet start names to this machine, readable only for"
            " you, and name it with --token-file.",
        )
    ray_folder()  # before Ray creates it; usually the head's user has the same number
    environment = _ray_environment(token)
    _check_head(address, environment)
    own = [f"--node-ip-address={host}"] if host and not is_loopback(head[0]) else []
    options = [
        *(f"--address={ray_address(address)}", "--disable-usage-stats", *own),
        *_resource_options(build_resources(inventory), count_gpus(inventory)),
    ]
    return _start_ray(address, token, options, environment, head=False)


def _check_head(address: str, environment: dict[str, str]) -> None:
    """Raise SurroundingsError if a head does not answer or refuses the token."""
    # `ray start` itself reports a refused token only in a log.
    refuse_unreachable(address)
    command = [*_RAY, "health-check", "--address", ray_address(address)]
    ended = processes.run(command, _START_SECONDS, environment=environment)
    output = ended.stdout + ended.stderr
    if ended.returncode == 0:
        return
    if "nauthenticated" in output or "AuthenticationError" in output:
        raise SurroundingsError(
            f"The fleet at {address} refused the token.",
            "Copy the file that accelbench fleet start names on its head, and name it with"
            " --token-file.",
        )
    raise SurroundingsError(
        f"No fleet answers at {address}: {ended.last_line or 'it printed nothing'}.",
        "Check with accelbench fleet status that it runs there.",
    )


def list_started() -> list[StartedNode]:
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
            "It lists the processes that accelbench fleet started: remove it when none of them"
            " runs.",
        ) from error


def parse_address(address: str) -> tuple[str, int]:
    """Return host and port of an address; raise UsageError if it has none."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal():
        raise UsageError(f"{in_quotes(address)} is not an address.", "Write it as HOST:PORT.")
    return host, int(port)


def write_token(path: Path) -> None:
    """Write a new token that only this user can read."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(secrets.token_hex(_TOKEN_CHARACTERS))


def _resource_options(resources: dict[str, float], gpus: int) -> list[str]:
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
        # Ray's default is 15: measurements would give way to all other work on the machine.
        "RAY_worker_niceness": "0",
    }


def _start_ray(
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
        raise _start_error((errors or output).decode(errors="replace"))
    members = tuple(sorted(_find_members(process.pid)))
    session = _find_session(number for number, _ in members)
    keep_private(session)
    node = StartedNode(address, str(token_file), head, utc_now(), members, session)
    record_path().write_text(
        json.dumps([asdict(each) for each in [*_list_alive(), node]]), encoding="utf-8"
    )
    return node


def _find_members(leader: int) -> list[tuple[int, float]]:
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            if os.getsid(process.pid) == leader:
                found.append((process.pid, process.create_time()))
    return found


def _find_session(numbers: Iterable[int]) -> str:
    """Return the folder that Ray's processes use; empty if it is not found."""
    for number in numbers:
        with suppress(psutil.Error, OSError):
            found = _SESSION.search("\n".join(psutil.Process(number).cmdline()))
            if found:
                return found[0]
    return ""


def _list_alive() -> list[StartedNode]:
    return [node for node in list_started() if node.alive_processes]


def _start_error(output: str) -> SurroundingsError:
    if "timed out during startup" in output:
        return SurroundingsError(
            "Ray did not start within its limit of half a minute.",
            "The machine is busy: try again when it has less work.",
        )
    lines = [line for line in output.splitlines() if line.strip()]
    return SurroundingsError(
        f"Ray did not start: {lines[-1] if lines else 'it printed nothing'}",
        "Its logs are in " + str(ray_folder()) + ".",
    )


def _refuse_used_port(host: str, port: int) -> None:
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


#: Time for a raylet to sign off at the head, which must still run.
_LEAVE_SECONDS = 10.0
#: Time for other processes; Ray's monitor ignores the signal, and has nothing to finish.
_STOP_SECONDS = 2.0


@dataclass(frozen=True)
class StoppedFleet:
    """Processes and logs of a stopped fleet."""

    processes: int  # their number
    logs: tuple[Path, ...] = ()  # remaining folders of Ray's logs
    failed: bool = False  # whether a node had failed before; the logs may show why


def stop(*, keep_logs: bool = False) -> StoppedFleet:
    """End the nodes of this machine; remove Ray's logs if no node had failed."""
    nodes = list_started()
    failed = any(node.has_failed for node in nodes)
    ended = _end_processes([process for node in nodes for process in _find_family(node)])
    record_path().unlink(missing_ok=True)
    folders = {Path(node.session) for node in nodes if node.session}
    if not keep_logs and not failed:
        for folder in folders:
            if not _is_in_use(folder):
                shutil.rmtree(folder, ignore_errors=True)
                _remove_link(folder)
    logs = tuple(sorted(folder / "logs" for folder in folders if folder.is_dir()))
    return StoppedFleet(ended, logs, failed)


def _find_family(node: StartedNode) -> list[psutil.Process]:
    found = node.alive_processes
    for process in node.alive_processes:
        with suppress(psutil.Error):
            found += process.children(recursive=True)
    return found


def _end_processes(processes: Iterable[psutil.Process]) -> int:
    """End raylets and their children before the head that they are connected to."""
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


def _is_in_use(folder: Path) -> bool:
    """Return whether another node of this machine has its logs in a folder."""
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            if _is_raylet(process) and any(str(folder) in word for word in process.cmdline()):
                return True
    return False


def _remove_link(session: Path) -> None:
    """Remove the link to a removed session, and Ray's folder if it is then empty."""
    latest = session.parent / "session_latest"
    if latest.is_symlink() and not latest.exists():
        latest.unlink(missing_ok=True)
        (session.parent / "ray_current_cluster").unlink(missing_ok=True)
    with suppress(OSError):
        session.parent.rmdir()
        session.parent.parent.rmdir()


@dataclass(frozen=True)
class FleetAddress:
    """Address of a fleet's head, and the file of its token."""

    address: str
    token_file: Path | None

    @classmethod
    def resolve(cls, address: str | None, token_file: Path | None) -> FleetAddress:
        """Return the named fleet, or the one that was started or joined on this machine."""
        if address is not None:
            if address != "auto":
                parse_address(address)
            own = [node for node in list_started() if node.address == address]
            return cls(address, token_file or (Path(own[0].token_file) if own else None))
        here = [node for node in list_started() if node.alive_processes]
        if not here:
            raise UsageError(
                "No fleet was started on this machine.",
                "Start one with accelbench fleet start, or name one with --address HOST:PORT.",
            )
        return cls(here[0].address, token_file or Path(here[0].token_file))

    def connect(self) -> RayCluster:
        if self.token_file is not None and not self.token_file.is_file():
            name = in_quotes(str(self.token_file))
            raise UsageError(
                f"There is no token file {name}.", "Give the path of an existing file."
            )
        connect(self.address, self.token_file)
        return RayCluster()

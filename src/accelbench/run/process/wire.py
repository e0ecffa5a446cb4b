"""The conversation of conductor, template and worker: JSON frames over a local socket.

A socket's end of file tells of a death on every system: the kernel closes it however a process
ended. Unix sockets if there are any, loopback TCP elsewhere; a random token admits only our own
processes.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import socket
import struct
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

#: Raised whenever what conductor and worker say to each other changes: a worker of another
#: environment may be of another version of this program. A further setting of a job raises it not:
#: a worker refuses one that it does not know.
WIRE_VERSION = 1
_HEADER = struct.Struct("!I")
_HAS_UNIX = hasattr(socket, "AF_UNIX")

ADDRESS_VARIABLE = "ACCELBENCH_WIRE"
TOKEN_VARIABLE = "ACCELBENCH_TOKEN"  # noqa: S105 - the name of a variable


class ClosedError(Exception):
    """The other side is gone."""


class Channel:
    """A connection that carries one conversation."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._buffer = bytearray()

    def fileno(self) -> int:
        return self._socket.fileno()

    def send(self, message: Mapping[str, Any]) -> None:
        """Send one message; raise ClosedError if nobody listens, ValueError or TypeError if it
        has a NaN."""
        body = json.dumps(message, allow_nan=False).encode()
        try:
            self._socket.settimeout(None)
            self._socket.sendall(_HEADER.pack(len(body)) + body)
        except OSError as error:
            raise ClosedError(str(error)) from error

    def receive(self, timeout: float | None = None) -> dict[str, Any]:
        """Return the next message; raise TimeoutError or ClosedError. It blocks without
        spinning."""
        deadline = None if timeout is None else time.monotonic() + timeout
        size = _HEADER.unpack(self._take(_HEADER.size, deadline, peek=True))[0]
        body = self._take(_HEADER.size + size, deadline)[_HEADER.size :]
        message: dict[str, Any] = json.loads(body)
        return message

    def _take(self, wanted: int, deadline: float | None, peek: bool = False) -> bytes:
        """Take bytes only when the whole frame is there, so that a timeout loses nothing."""
        while len(self._buffer) < wanted:
            if deadline is None:
                self._socket.settimeout(None)
            else:
                left = deadline - time.monotonic()
                if left <= 0:
                    raise TimeoutError
                self._socket.settimeout(left)
            try:
                chunk = self._socket.recv(1 << 20)
            except TimeoutError:
                raise
            except OSError as error:
                raise ClosedError(str(error)) from error
            if not chunk:
                raise ClosedError("end of file")
            self._buffer += chunk
        taken = bytes(self._buffer[:wanted])
        if not peek:
            del self._buffer[:wanted]
        return taken

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._socket.close()


class Switchboard:
    """The conductor's end: an address in `folder`, and the calls that come in."""

    def __init__(self, folder: Path) -> None:
        self.token = secrets.token_hex(16)
        if _HAS_UNIX:
            path = str(folder / "wire")
            self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self._socket.bind(path)
            self.address = path
        else:
            self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
            self._socket.bind(("127.0.0.1", 0))
            self.address = f"127.0.0.1:{self._socket.getsockname()[1]}"
        self._socket.listen(8)

    def accept(self, name: str, timeout: float, alive: Callable[[], bool]) -> Channel:
        """Wait for the process called `name`, hang up on others; raise ClosedError if it ended
        before."""
        deadline = time.monotonic() + timeout
        while True:
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError
            self._socket.settimeout(min(left, 0.5))
            try:
                connection, _ = self._socket.accept()
            except TimeoutError:
                if alive():
                    continue
                raise ClosedError("it ended before it called") from None
            channel = Channel(connection)
            if self._is_called(name, channel, min(left, 5.0)):
                return channel
            channel.close()

    def _is_called(self, name: str, channel: Channel, timeout: float) -> bool:
        try:
            hello: Any = channel.receive(timeout)
        except (ClosedError, TimeoutError, ValueError):
            return False
        if not isinstance(hello, dict):
            return False
        token = str(hello.get("token")).encode("utf-8", "backslashreplace")
        return secrets.compare_digest(token, self.token.encode()) and hello.get("name") == name

    def close(self) -> None:
        self._socket.close()


def call(name: str) -> Channel:
    """Call the conductor that the environment names."""
    address = os.environ[ADDRESS_VARIABLE]
    if _HAS_UNIX:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.connect(address)
    else:
        host, port = address.rsplit(":", 1)
        connection = socket.create_connection((host, int(port)))
    channel = Channel(connection)
    channel.send({"name": name, "token": os.environ[TOKEN_VARIABLE]})
    return channel

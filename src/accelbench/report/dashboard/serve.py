"""The socket: opened before anything is said, so that the address that is printed is true."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import TYPE_CHECKING

import uvicorn

from accelbench.core.errors import SurroundingsError
from accelbench.report.dashboard.guard import AccessRule

if TYPE_CHECKING:
    from starlette.types import ASGIApp

#: Where it is looked for first.
USUAL_PORT = 8501
_GRACE_SECONDS = 2


def listening(host: str, port: int | None) -> socket.socket:
    """A socket that listens; without a port the usual one, or a free one where that is taken.

    Raises:
        SurroundingsError: The host is none of this machine, or the port is taken.
    """
    wanted = [USUAL_PORT, 0] if port is None else [port]
    for number, candidate in enumerate(wanted):
        try:
            return _bound(host, candidate)
        except OSError as error:
            if number + 1 < len(wanted):
                continue
            raise SurroundingsError(
                f"{host} port {candidate} cannot be listened on: {error.strerror or error}.",
                "--port 0 takes any that is free.",
            ) from error
    raise AssertionError("a port is tried")


def _bound(host: str, port: int) -> socket.socket:
    family, kind, protocol, _, address = socket.getaddrinfo(
        host.strip("[]"), port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    made = socket.socket(family, kind, protocol)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(address)
        made.listen(128)
    except BaseException:
        made.close()
        raise
    return made


def address(door: AccessRule, made: socket.socket) -> str:
    """What a browser is to open."""
    host = door.host.strip("[]")
    shown = f"[{host}]" if ":" in host else host
    if host in ("0.0.0.0", "::"):  # noqa: S104 — told apart, not bound
        shown = socket.gethostname()
    token = f"?token={door.token}" if door.token else ""
    return f"http://{shown}:{made.getsockname()[1]}/{token}"


Stop = Callable[[], None]


def serve(app: ASGIApp, made: socket.socket, begun: Callable[[Stop], object]) -> None:
    """Answer until an interrupt.

    Args:
        app: the pages.
        made: a socket that listens.
        begun: is called when the first request can come, with what makes an end of it.
    """

    class Server(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            begun(self.stop)

        def stop(self) -> None:
            self.should_exit = True

    config = uvicorn.Config(
        app,
        log_level="critical",  # a page says what went wrong; nobody reads the terminal behind it
        access_log=False,
        server_header=False,
        lifespan="off",
        timeout_graceful_shutdown=_GRACE_SECONDS,
        limit_concurrency=200,
    )
    Server(config).run(sockets=[made])

"""The socket and the server."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from accelbench.core.errors import SurroundingsError
from accelbench.present.dashboard.guard import AccessRule

if TYPE_CHECKING:
    from starlette.types import ASGIApp

#: The default port.
USUAL_PORT = 8501
_GRACE_SECONDS = 2
#: The limit for the head of a request, which uvicorn has not.
_HEAD_SECONDS = 10.0
_IDLE_SECONDS = 5
#: Connections without a request; the oldest is closed for a new one.
_MOST_WAITING = 100
_MOST_CONNECTIONS = 200


def listening(host: str, port: int | None) -> socket.socket:
    """Return a listening socket, by default of the usual port or of a free one if that is taken."""
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
    """Return the address for a browser."""
    host = door.host.strip("[]")
    shown = f"[{host}]" if ":" in host else host
    if host in ("0.0.0.0", "::"):  # noqa: S104 — told apart, not bound
        shown = socket.gethostname()
    token = f"?token={door.token}" if door.token else ""
    return f"http://{shown}:{made.getsockname()[1]}/{token}"


class ImpatientProtocol(H11Protocol):
    """HTTP with a time limit for the head of a request.

    It starts with the connection or the end of the last response, so that a byte a second does not
    extend it.
    """

    _limit: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._await_head()
        limits = {
            one._limit: one
            for one in self.connections
            if isinstance(one, ImpatientProtocol) and one._limit is not None
        }
        if len(limits) > _MOST_WAITING:
            limits[min(limits, key=lambda limit: limit.when())]._give_up()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def handle_events(self) -> None:
        before = self.cycle
        super().handle_events()
        if self.cycle is not before:
            self._stop_waiting()

    def on_response_complete(self) -> None:
        self._await_head()
        super().on_response_complete()

    def _await_head(self) -> None:
        self._stop_waiting()
        self._limit = self.loop.call_later(_HEAD_SECONDS, self._give_up)

    def _stop_waiting(self) -> None:
        if self._limit is not None:
            self._limit.cancel()
            self._limit = None

    def _give_up(self) -> None:
        self._stop_waiting()
        self.transport.abort()


Stop = Callable[[], None]


def serve(app: ASGIApp, made: socket.socket, begun: Callable[[Stop], object]) -> None:
    """Answer until an interrupt; `begun` is called when the first request can come."""

    class Server(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            begun(self.stop)

        def stop(self) -> None:
            self.should_exit = True

    config = uvicorn.Config(
        app,
        log_level="critical",  # pages show errors
        access_log=False,
        server_header=False,
        lifespan="off",
        http=ImpatientProtocol,
        ws="none",
        timeout_keep_alive=_IDLE_SECONDS,
        timeout_graceful_shutdown=_GRACE_SECONDS,
        limit_concurrency=_MOST_CONNECTIONS,
    )
    Server(config).run(sockets=[made])

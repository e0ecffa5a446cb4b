"""A web server on this machine alone: it gives a page, the engine and a model, and carries words.

Only what was put in is served, by exact name: no path is ever made from a request. The address is
loopback, the port is the system's choice, and every path begins with a token that nobody can guess.
A request for another host's name is refused, or a page from elsewhere could reach it by a name of
its own that points here.
"""

from __future__ import annotations

import contextlib
import os
import queue
import secrets
import socket
import socketserver
import threading
from collections.abc import Iterator
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import unquote, urlsplit

#: Without the first two a page has no shared memory, hence no threads, and a clock of 100 µs.
_HEADERS = {
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Embedder-Policy": "require-corp",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".mjs": "text/javascript; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".wasm": "application/wasm",
}
_BINARY = "application/octet-stream"
#: What a page has fetched once it keeps, as it would of a real site.
_KEEP = "public, max-age=31536000, immutable"
_WAKING_SECONDS = 5.0
#: How long a page waits for a command before it asks again: proxies and browsers cut idle requests.
POLL_SECONDS = 20.0


class Server:
    """A server of files by name, which hands messages to and fro."""

    def __init__(self) -> None:
        self._token = secrets.token_urlsafe(24)
        self._files: dict[str, Path] = {}
        self._lock = threading.Lock()
        self.commands: queue.Queue[bytes] = queue.Queue()
        self.answers: queue.Queue[bytes] = queue.Queue()
        self.gone = threading.Event()
        self.closed = threading.Event()
        self._visit = 0
        self._http = _Http(self)
        self._thread = threading.Thread(target=self._http.serve, name="page-server", daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        return int(self._http.server_address[1])

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}/{self._token}/"

    def give(self, name: str, path: Path) -> None:
        with self._lock:
            self._files[name] = path

    def leave(self) -> None:
        """Note that the page is to go: that is no crash."""
        with self._lock:
            self._visit += 1

    @property
    def visit(self) -> int:
        with self._lock:
            return self._visit

    def named(self, target: str) -> str | None:
        try:
            path = urlsplit(target).path
        except ValueError:  # it looks like an address, and is none
            return None
        _, token, name = [*path.split("/", 2), "", ""][:3]
        if not secrets.compare_digest(token.encode(), self._token.encode()):
            return None
        return unquote(name)

    def file(self, name: str) -> Path | None:
        with self._lock:
            return self._files.get(name)

    def close(self) -> None:
        if self.closed.is_set():
            return
        self.closed.set()
        with contextlib.suppress(OSError):  # to be woken, it must be called
            socket.create_connection(("127.0.0.1", self.port), _WAKING_SECONDS).close()
            self._thread.join(_WAKING_SECONDS)
        self._http.server_close()
        self._http.hang_up()


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    # A page that has gone must not hold up the end.
    block_on_close = False
    # The port is new each time. On Windows another program could listen on one that is shared.
    allow_reuse_address = False
    allow_reuse_port = False

    def __init__(self, owner: Server) -> None:
        self.owner = owner
        self._connected: set[Any] = set()
        self._lock = threading.Lock()
        super().__init__(("127.0.0.1", 0), _Handler)

    def server_bind(self) -> None:
        # The base would ask for this address's name, which takes seconds where nobody answers.
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = "127.0.0.1", int(self.server_address[1])

    def serve(self) -> None:
        # The base's own loop would wake twice a second.
        while not self.owner.closed.is_set():
            self.handle_request()

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._lock:
            self._connected.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        with self._lock:
            self._connected.discard(request)
        super().shutdown_request(request)

    def hang_up(self) -> None:
        # Connections outlive the listening: browsers keep them for their next request.
        with self._lock:
            for connection in self._connected:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Return a connection that broke is a page that went: nothing to print."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # An answer goes out as a head and a body: without this the second waits for the page's
    # acknowledgement of the first, up to 40 ms.
    disable_nagle_algorithm = True
    server: _Http
    server_version = "accelbench"
    sys_version = ""

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base's word
        """Requests are not news."""

    def do_GET(self) -> None:
        name = self._asked_for()
        if name is None:
            return
        if name == "next":
            self._next()
        elif name == "alive":
            self._alive()
        else:
            self._file(name)

    def do_POST(self) -> None:
        name = self._asked_for()
        if name is None:
            return
        if name != "answer":
            self._refuse(HTTPStatus.NOT_FOUND)
            return
        length = self.headers.get("Content-Length", "")
        if not (length.isascii() and length.isdigit() and len(length) <= 18):
            self._refuse(HTTPStatus.LENGTH_REQUIRED)
            return
        data = self.rfile.read(int(length))
        if len(data) < int(length):  # the page went in the middle of it
            self.close_connection = True
            return
        self._say(HTTPStatus.NO_CONTENT, {})
        self.server.owner.answers.put(data)

    # -- what is asked for

    def _asked_for(self) -> str | None:
        if self.headers.get("Host") != f"127.0.0.1:{self.server.owner.port}":
            self._refuse(HTTPStatus.MISDIRECTED_REQUEST)
            return None
        name = self.server.owner.named(self.path)
        if name is None:
            self._refuse(HTTPStatus.NOT_FOUND)
        return name

    def _next(self) -> None:
        try:
            data = self.server.owner.commands.get(timeout=POLL_SECONDS)
        except queue.Empty:
            self._say(HTTPStatus.NO_CONTENT, {})
            return
        headers = {"Content-Type": _BINARY, "Cache-Control": "no-store"}
        self._say(HTTPStatus.OK, {**headers, "Content-Length": str(len(data))})
        self.wfile.write(data)

    def _alive(self) -> None:
        # Never answered to its end: when the page goes, its browser hangs up.
        visit = self.server.owner.visit  # before the page knows: it may be told to leave then
        self._say(HTTPStatus.OK, {"Content-Type": _BINARY, "Cache-Control": "no-store"}, True)
        with contextlib.suppress(OSError):
            while self.connection.recv(1):
                continue
        self.close_connection = True
        if visit == self.server.owner.visit and not self.server.owner.closed.is_set():
            self.server.owner.gone.set()

    def _file(self, name: str) -> None:
        path = self.server.owner.file(name)
        try:
            file = path.open("rb") if path else None
        except OSError:  # it was removed since
            file = None
        if path is None or file is None:
            self._refuse(HTTPStatus.NOT_FOUND)
            return
        with file:
            left = os.fstat(file.fileno()).st_size
            headers = {
                "Content-Type": _TYPES.get(path.suffix, _BINARY),
                "Content-Length": str(left),
                "Cache-Control": _KEEP,
            }
            self._say(HTTPStatus.OK, headers)
            for piece in _pieces(file, left):
                self.wfile.write(piece)
                left -= len(piece)
            # A file that has become shorter: the page must not wait for what never comes.
            self.close_connection = self.close_connection or left > 0

    # -- answers

    def _say(self, code: HTTPStatus, headers: dict[str, str], endless: bool = False) -> None:
        self.send_response(code)
        for key, value in {**_HEADERS, **headers}.items():
            self.send_header(key, value)
        if endless:
            self.send_header("Connection", "close")
        self.end_headers()

    def _refuse(self, code: HTTPStatus) -> None:
        self._say(code, {"Content-Length": "0"}, True)


def _pieces(file: BinaryIO, left: int, size: int = 1 << 20) -> Iterator[bytes]:
    while left > 0 and (piece := file.read(min(size, left))):
        left -= len(piece)
        yield piece

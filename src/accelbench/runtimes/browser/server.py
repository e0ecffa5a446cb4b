"""A web server on this machine alone: it gives a page, the engine and a model, and carries words.

Only what was put in is served, by exact name: no path is ever made from a request, so there is
none to climb out of. The address is loopback, the port is the system's choice, and every path
begins with a token that nobody can guess; a request for another host's name is refused, or a page
from elsewhere could reach it by a name of its own that points here.
"""

from __future__ import annotations

import contextlib
import queue
import re
import secrets
import threading
from collections.abc import Iterator
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
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
_RANGE = re.compile(r"bytes=(\d*)-(\d*)")
#: How long a page waits for a command before it asks again: proxies and browsers cut idle requests.
POLL_SECONDS = 20.0


class Server:
    """Serves files by name, and hands messages to and fro."""

    def __init__(self) -> None:
        self._token = secrets.token_urlsafe(24)
        self._files: dict[str, Path] = {}
        self._lock = threading.Lock()
        self.commands: queue.Queue[bytes] = queue.Queue()
        self.answers: queue.Queue[bytes] = queue.Queue()
        self.gone = threading.Event()
        self._visit = 0
        self._http = _Http(self)
        self._thread = threading.Thread(
            target=self._http.serve_forever, name="page-server", daemon=True
        )
        self._thread.start()

    @property
    def port(self) -> int:
        """Chosen by the system."""
        return int(self._http.server_address[1])

    @property
    def address(self) -> str:
        """Where everything lies."""
        return f"http://127.0.0.1:{self.port}/{self._token}/"

    def give(self, name: str, path: Path) -> None:
        """Serve this file under this name from now on."""
        with self._lock:
            self._files[name] = path

    def take_back(self, prefix: str) -> None:
        """No longer serve what lies under this."""
        with self._lock:
            for name in [one for one in self._files if one.startswith(prefix)]:
                del self._files[name]

    def leave(self) -> None:
        """The page that is there now is to go: that is no crash."""
        with self._lock:
            self._visit += 1

    @property
    def visit(self) -> int:
        """Which of the pages that came one after another."""
        with self._lock:
            return self._visit

    def named(self, target: str) -> str | None:
        """The name that a request's path stands for; None where the token is wrong."""
        _, token, name = [*urlsplit(target).path.split("/", 2), "", ""][:3]
        if not secrets.compare_digest(token.encode(), self._token.encode()):
            return None
        return unquote(name)

    def file(self, name: str) -> Path | None:
        """What lies under a name."""
        with self._lock:
            return self._files.get(name)

    def close(self) -> None:
        """Serve nothing more."""
        self._http.shutdown()
        self._http.server_close()


class _Http(ThreadingHTTPServer):
    """Listens, and gives each connection a thread."""

    daemon_threads = True
    # A page that has gone must not hold up the end.
    block_on_close = False

    def __init__(self, owner: Server) -> None:
        self.owner = owner
        super().__init__(("127.0.0.1", 0), _Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A connection that broke is a page that went: nothing to print."""


class _Handler(BaseHTTPRequestHandler):
    """One request."""

    protocol_version = "HTTP/1.1"
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

    def do_HEAD(self) -> None:
        name = self._asked_for()
        if name is not None:
            self._file(name)

    def do_POST(self) -> None:
        name = self._asked_for()
        if name is None:
            return
        if name != "answer":
            self._refuse(HTTPStatus.NOT_FOUND)
            return
        length = int(self.headers.get("Content-Length") or 0)
        data = self.rfile.read(length)
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
        """Never answered to its end: when the page goes, its browser hangs up."""
        self._say(HTTPStatus.OK, {"Content-Type": _BINARY, "Cache-Control": "no-store"}, True)
        self.wfile.flush()
        visit = self.server.owner.visit
        with contextlib.suppress(OSError):
            while self.connection.recv(1):
                continue
        self.close_connection = True
        if visit == self.server.owner.visit:
            self.server.owner.gone.set()

    def _file(self, name: str) -> None:
        path = self.server.owner.file(name)
        if path is None:
            self._refuse(HTTPStatus.NOT_FOUND)
            return
        with path.open("rb") as file:
            size = path.stat().st_size
            part = _part(self.headers.get("Range"), size)
            if part is None:
                self._refuse(
                    HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE,
                    {"Content-Range": f"bytes */{size}"},
                )
                return
            start, end = part
            headers = {
                "Content-Type": _TYPES.get(path.suffix, _BINARY),
                "Content-Length": str(end - start),
                "Accept-Ranges": "bytes",
                "Cache-Control": _KEEP,
            }
            code = HTTPStatus.OK
            if self.headers.get("Range") and (start, end) != (0, size):
                code = HTTPStatus.PARTIAL_CONTENT
                headers["Content-Range"] = f"bytes {start}-{end - 1}/{size}"
            self._say(code, headers)
            if self.command == "HEAD":
                return
            for piece in _pieces(file, start, end):
                self.wfile.write(piece)

    # -- answers

    def _say(self, code: HTTPStatus, headers: dict[str, str], endless: bool = False) -> None:
        self.send_response(code)
        for key, value in {**_HEADERS, **headers}.items():
            self.send_header(key, value)
        if endless:
            self.send_header("Connection", "close")
        self.end_headers()

    def _refuse(self, code: HTTPStatus, headers: dict[str, str] | None = None) -> None:
        self._say(code, {"Content-Length": "0", **(headers or {})}, True)


def _part(asked: str | None, size: int) -> tuple[int, int] | None:
    """Which bytes a Range header asks for; everything without one, None where there are none."""
    found = _RANGE.fullmatch(asked.strip()) if asked else None
    if found is None or not any(found.groups()):
        return 0, size
    first, last = found.groups()
    if not first:
        start, end = max(0, size - int(last)), size
    else:
        start, end = int(first), min(size, int(last) + 1 if last else size)
    return (start, end) if start < end else None


def _pieces(file: Any, start: int, end: int, size: int = 1 << 20) -> Iterator[bytes]:
    file.seek(start)
    while start < end and (piece := file.read(min(size, end - start))):
        start += len(piece)
        yield piece

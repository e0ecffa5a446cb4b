"""Clients that send nothing, half a head or a byte now and then are closed, and block no other."""

from __future__ import annotations

import contextlib
import http.client
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from accelbench.present.dashboard import serve

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

HEAD = b"GET / HTTP/1.1\r\nHost: localhost\r\n"
BODY = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\nx"
Client = Callable[..., socket.socket]


async def answer(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer at once; nothing reads a body."""
    headers = [(b"content-length", b"2")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b"ok"})


@pytest.fixture
def client() -> Iterator[Client]:
    """Connect to a server that runs meanwhile."""
    begun, stops = threading.Event(), list[serve.Stop]()

    def note(stop: serve.Stop) -> None:
        stops.append(stop)
        begun.set()

    with serve.listening("127.0.0.1", 0) as made, ExitStack() as opened:
        server = threading.Thread(target=serve.serve, args=(answer, made, note))
        server.start()
        assert begun.wait(30)
        place = made.getsockname()

        def connect(data: bytes = b"") -> socket.socket:
            one = opened.enter_context(socket.create_connection(place, timeout=30))
            one.sendall(data)
            return one

        yield connect
        opened.close()
        for stop in stops:
            stop()
        server.join(30)


def got(one: socket.socket) -> bytes:
    """Everything that comes until the connection is closed."""
    parts = []
    with contextlib.suppress(ConnectionResetError):
        while part := one.recv(65536):
            parts.append(part)
    return b"".join(parts)


@pytest.mark.parametrize(("sent", "answered"), [(b"", 0), (HEAD, 0), (BODY, 1)])
def test_what_is_never_finished_is_closed(sent, answered, client, monkeypatch):
    monkeypatch.setattr(serve, "_HEAD_SECONDS", 0.2)
    assert got(client(sent)).count(b"200 OK") == answered


@pytest.mark.parametrize(("sent", "answered"), [(HEAD, 0), (BODY, 1)])
def test_a_byte_now_and_then_gains_no_time(sent, answered, client, monkeypatch):
    monkeypatch.setattr(serve, "_HEAD_SECONDS", 0.5)
    one = client(sent)
    deadline = time.monotonic() + 20
    with contextlib.suppress(ConnectionError):
        while time.monotonic() < deadline:
            one.sendall(b"x")
            time.sleep(0.05)
    assert time.monotonic() < deadline
    assert got(one).count(b"200 OK") <= answered


def test_a_connection_serves_several_requests(client):
    one = client()
    for _ in range(3):
        one.sendall(HEAD + b"\r\n")
        response = http.client.HTTPResponse(one)
        response.begin()
        assert (response.status, response.read()) == (200, b"ok")
    one.sendall((HEAD + b"\r\n") * 2)  # both at once
    assert one.recv(65536).count(b"200 OK") in (1, 2)


def test_three_hundred_half_requests_keep_nobody_from_an_answer(client):
    slow = [client(HEAD) for _ in range(300)]
    began = time.monotonic()
    one = client(HEAD + b"Connection: close\r\n\r\n")
    assert b"200 OK" in got(one)
    assert time.monotonic() - began < serve._HEAD_SECONDS
    for each in slow[:150]:  # the oldest were closed for newer ones
        assert got(each) == b""

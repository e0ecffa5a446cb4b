"""Frames over a local socket: whole, once, and only from our own."""

import json
import math
import socket
import struct
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accelbench.run.process.wire import (
    ADDRESS_VARIABLE,
    TOKEN_VARIABLE,
    Channel,
    ClosedError,
    Switchboard,
    call,
)


def pair():
    ours, theirs = socket.socketpair()
    return ours, Channel(theirs)


def frame(message):
    data = json.dumps(message).encode()
    return struct.pack("!I", len(data)) + data


def test_a_frame_may_be_split_at_every_byte():
    messages = [{"a": 1}, {}, {"text": "µ · ✓", "list": [1, 2.5, None]}]
    data = b"".join(map(frame, messages))
    for cut in range(len(data) + 1):
        ours, channel = pair()
        ours.sendall(data[:cut])
        found = []
        while True:
            try:
                found.append(channel.receive(0.0 if cut == 0 else 0.0005))
            except TimeoutError:
                break
        ours.sendall(data[cut:])  # a timeout has lost nothing
        found += [channel.receive(5) for _ in range(len(messages) - len(found))]
        assert found == messages
        ours.close()
        channel.close()


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(st.dictionaries(st.text(), json_values))
def test_what_is_sent_is_what_is_received(message):
    a, b = socket.socketpair()
    sender, receiver = Channel(a), Channel(b)
    sender.send(message)
    assert receiver.receive(5) == message
    sender.close()
    receiver.close()


def test_a_large_frame_comes_through_whole():
    a, b = socket.socketpair()
    sender, receiver = Channel(a), Channel(b)
    samples = list(range(300_000))
    thread = threading.Thread(target=sender.send, args=({"samples": samples},))
    thread.start()
    assert receiver.receive(30)["samples"] == samples
    thread.join()
    sender.close()
    receiver.close()


@pytest.mark.parametrize("value", [math.nan, math.inf, object(), {1, 2}])
def test_what_json_does_not_hold_is_refused_before_a_byte_has_left(value):
    a, b = socket.socketpair()
    sender, receiver = Channel(a), Channel(b)
    with pytest.raises((ValueError, TypeError)):
        sender.send({"x": value})
    sender.send({"next": 1})
    assert receiver.receive(5) == {"next": 1}
    sender.close()
    receiver.close()


def test_a_peer_that_is_gone_is_told_from_one_that_is_silent():
    ours, channel = pair()
    with pytest.raises(TimeoutError):
        channel.receive(0.01)
    ours.sendall(frame({"a": 1})[:5])
    ours.close()
    with pytest.raises(ClosedError):
        channel.receive(5)
    with pytest.raises(ClosedError):
        channel.send({"a": 1})
    channel.close()


@pytest.fixture
def board(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made = Switchboard(Path())  # relative: pytest's folders can be longer than a socket's path
    monkeypatch.setenv(ADDRESS_VARIABLE, made.address)
    monkeypatch.setenv(TOKEN_VARIABLE, made.token)
    return made


def test_a_caller_with_the_token_and_the_name_is_let_in(board):
    child = call("worker-1")
    channel = board.accept("worker-1", 5, lambda: True)
    child.send({"hello": 1})
    assert channel.receive(5) == {"hello": 1}
    child.close()
    channel.close()
    board.close()


STRANGERS = {
    "wrong token": frame({"name": "worker-1", "token": "0" * 32}),
    "no token": frame({"name": "worker-1"}),
    "token not ascii": frame({"name": "worker-1", "token": "é"}),
    "half a surrogate pair": frame({"name": "worker-1", "token": "\ud800"}),
    "not an object": frame([1, 2]),
    "not json": struct.pack("!I", 4) + b"oops",
    "nothing": b"",
}


@pytest.mark.parametrize("kind", STRANGERS)
def test_strangers_are_hung_up_on(board, kind):
    stranger = socket.socket(socket.AF_UNIX)
    stranger.connect(board.address)
    stranger.sendall(STRANGERS[kind])
    if not STRANGERS[kind]:
        stranger.shutdown(socket.SHUT_WR)
    child = call("worker-1")
    channel = board.accept("worker-1", 5, lambda: True)
    stranger.settimeout(5)
    assert stranger.recv(1) == b""
    child.send({"right": True})
    assert channel.receive(5) == {"right": True}
    for one in (stranger, child, channel, board):
        one.close()


def test_our_own_process_under_another_name_is_hung_up_on(board):
    late = call("worker-1")
    child = call("worker-2")
    channel = board.accept("worker-2", 5, lambda: True)
    with pytest.raises(ClosedError):
        late.receive(5)
    for one in (late, child, channel, board):
        one.close()


def test_a_process_that_ended_without_a_call_is_not_waited_for(board):
    with pytest.raises(ClosedError, match="before it called"):
        board.accept("worker-1", 60, lambda: False)
    board.close()


def test_waiting_has_an_end(board):
    with pytest.raises(TimeoutError):
        board.accept("worker-1", 0.01, lambda: True)
    board.close()

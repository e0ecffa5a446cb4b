"""The loopback server: what it gives, what it refuses, and how words come and go."""

import http.client
import os
import socket
import threading
from urllib.parse import urlsplit

import psutil
import pytest

from accelbench.engines.browser import server as module
from accelbench.engines.browser.server import Server

SECONDS = 20.0  # far more than anything here takes
BODY = bytes(range(256)) * 8
SECRET = b"nobody is given this"


class Page:
    """Asks as a browser would, and as one never would."""

    def __init__(self, server):
        self.server = server
        self.token = urlsplit(server.address).path.strip("/")
        self.host = f"127.0.0.1:{server.port}"

    def ask(
        self,
        name,
        method="GET",
        body=None,
        target=None,
        **headers,
    ):
        there = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=SECONDS)
        try:
            target = target if target is not None else f"/{self.token}/{name}"
            there.putrequest(method, target, skip_host=True, skip_accept_encoding=True)
            named = {"Host": self.host, **headers}
            if body is not None:
                named.setdefault("Content-Length", str(len(body)))
            for key, value in named.items():
                if value:
                    there.putheader(key.replace("_", "-"), value)
            there.endheaders(body)
            said = there.getresponse()
            return said.status, {k.lower(): v for k, v in said.getheaders()}, said.read()
        finally:
            there.close()

    def hold(self, name="alive"):
        """A connection on which something was asked for, once its answer has begun."""
        there = socket.create_connection(("127.0.0.1", self.server.port), SECONDS)
        request = f"GET /{self.token}/{name} HTTP/1.1\r\nHost: {self.host}\r\n\r\n"
        there.sendall(request.encode())
        said = b""
        while b"\r\n\r\n" not in said:
            said += there.recv(4096)
        assert said.startswith(b"HTTP/1.1 200 ")
        return there


@pytest.fixture
def server():
    made = Server()
    yield made
    made.close()


@pytest.fixture
def page(server, tmp_path):
    (tmp_path / "secret").write_bytes(SECRET)
    folder = tmp_path / "given"
    folder.mkdir()
    for name, given in {
        "index.html": "index.html",
        "page.mjs": "page.mjs",
        "engine.wasm": "ort/engine.wasm",
        "manifest.json": "model/manifest.json",
        "model.onnx": "model/model.onnx",
    }.items():
        (folder / name).write_bytes(BODY)
        server.give(given, folder / name)
    (folder / "beside.onnx").write_bytes(SECRET)
    return Page(server)


# -- what is given


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("index.html", "text/html; charset=utf-8"),
        ("page.mjs", "text/javascript; charset=utf-8"),
        ("ort/engine.wasm", "application/wasm"),
        ("model/manifest.json", "application/json"),
        ("model/model.onnx", "application/octet-stream"),
    ],
)
def test_files_are_given_by_name_and_with_their_types(page, name, kind):
    status, headers, body = page.ask(name)
    assert (status, headers["content-type"], body) == (200, kind, BODY)


@pytest.mark.parametrize("name", ["index.html", "model/model.onnx", "nothing"])
def test_every_answer_isolates_the_page(page, name):
    _, headers, _ = page.ask(name)
    assert headers["cross-origin-opener-policy"] == "same-origin"
    assert headers["cross-origin-embedder-policy"] == "require-corp"
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert headers["x-content-type-options"] == "nosniff"
    assert "access-control-allow-origin" not in headers


def test_nothing_says_what_runs_here(page):
    assert page.ask("index.html")[1]["server"].strip() == "accelbench"


def test_one_connection_carries_many_requests(page):
    there = http.client.HTTPConnection("127.0.0.1", page.server.port, timeout=SECONDS)
    there.connect()
    held = there.sock
    for name in ("index.html", "model/model.onnx", "page.mjs"):
        there.request("GET", f"/{page.token}/{name}")
        assert there.getresponse().read() == BODY
    assert there.sock is held
    there.close()


def test_a_file_that_was_removed_is_not_there(page, tmp_path):
    (tmp_path / "given" / "model.onnx").unlink()
    assert page.ask("model/model.onnx")[0] == 404
    page.server.give("folder", tmp_path / "given")
    assert page.ask("folder")[0] == 404


def test_an_empty_file_is_given(page, tmp_path):
    (tmp_path / "empty").touch()
    page.server.give("empty", tmp_path / "empty")
    assert page.ask("empty")[0::2] == (200, b"")


def test_a_file_that_became_shorter_ends_the_answer(page, tmp_path, monkeypatch):
    whole = module._pieces

    def shortened(file, taken, size=1 << 20):
        os.truncate(tmp_path / "given" / "model.onnx", 100)
        return whole(file, taken, size)

    monkeypatch.setattr(module, "_pieces", shortened)
    with pytest.raises(http.client.IncompleteRead) as cut:
        page.ask("model/model.onnx")
    assert cut.value.partial == BODY[:100]


# -- what is refused


@pytest.mark.parametrize(
    "name",
    [
        "",
        "nothing",
        "model",
        "model/",
        "MODEL/model.onnx",
        "model.onnx",
        "model/model.onnx/",
        "model//model.onnx",
        "model/beside.onnx",
        "../secret",
        "model/../index.html",
        "model/../../secret",
        "%2e%2e%2fsecret",
        "model/%2e%2e%2f%2e%2e%2fsecret",
        "%252e%252e%252fsecret",
        "..%5csecret",
        "..\\secret",
        "{secret}",
        "/{secret}",
        "%2F{secret}",
        "file://{secret}",
        "index.html%00",
        "%ff",
        "é",
    ],
)
def test_only_exact_names_are_given(page, tmp_path, name):
    target = f"/{page.token}/{name.format(secret=tmp_path / 'secret')}"
    there = socket.create_connection(("127.0.0.1", page.server.port), SECONDS)
    # As it stands: a client of any kind would tidy it up first.
    request = f"GET {target} HTTP/1.1\r\nHost: {page.host}\r\nConnection: close\r\n\r\n"
    with there, there.makefile("rb") as answer:
        there.sendall(request.encode("latin-1"))
        said = answer.read()
    assert said.startswith(b"HTTP/1.1 404 ")
    assert SECRET not in said
    assert BODY not in said


def test_a_name_may_be_spelt_in_percents(page):
    assert page.ask("model%2Fmodel%2eonnx")[2] == BODY


@pytest.mark.parametrize("name", ["index.html", "next", "alive", "model/model.onnx"])
def test_without_the_token_there_is_nothing(page, name):
    wrong = ["/", f"/{name}", f"/wrong/{name}", f"//{name}", f"/{page.token[:-1]}/{name}", "*"]
    wrong += [f"/{page.token}x/{name}", f"/x/{page.token}/{name}", f"/é/{name}", "http://["]
    for target in wrong:
        there = socket.create_connection(("127.0.0.1", page.server.port), SECONDS)
        request = f"GET {target} HTTP/1.1\r\nHost: {page.host}\r\nConnection: close\r\n\r\n"
        with there, there.makefile("rb") as answer:
            there.sendall(request.encode("latin-1"))
            assert answer.read().startswith(b"HTTP/1.1 404 "), target


def test_each_server_has_a_token_of_its_own(server):
    other = Server()
    try:
        assert urlsplit(other.address).path != urlsplit(server.address).path
        assert len(urlsplit(other.address).path) >= 32
    finally:
        other.close()


@pytest.mark.parametrize("host", ["", "evil.example", "localhost:{port}", "127.0.0.1", "[::1]"])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_another_hosts_name_is_refused(page, host, method):
    status, headers, body = page.ask(
        "answer" if method == "POST" else "index.html",
        method,
        b"" if method == "POST" else None,
        Host=host.format(port=page.server.port),
    )
    assert (status, body) == (421, b"")
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert page.server.answers.empty()


@pytest.mark.parametrize("name", ["index.html", "model/model.onnx", "next", "alive", "nothing"])
def test_only_answers_are_taken(page, name, tmp_path):
    assert page.ask(name, "POST", b"")[0] == 404
    assert page.server.answers.empty()
    assert (tmp_path / "given" / "model.onnx").read_bytes() == BODY


@pytest.mark.parametrize("method", ["HEAD", "PUT", "DELETE", "OPTIONS", "PATCH", "CONNECT"])
def test_no_other_method_is_known(page, method):
    assert page.ask("index.html", method)[0] == 501


@pytest.mark.parametrize("length", ["", "-1", "+3", "three", "1e3", "9" * 5000])
def test_an_answer_without_a_length_is_refused(page, length):
    assert page.ask("answer", "POST", Content_Length=length)[0] == 411
    assert page.server.answers.empty()


def test_an_answer_that_breaks_off_is_none(page):
    there = socket.create_connection(("127.0.0.1", page.server.port), SECONDS)
    head = f"POST /{page.token}/answer HTTP/1.1\r\nHost: {page.host}\r\nContent-Length: 9"
    there.sendall(f"{head}\r\n\r\nhalf".encode())
    there.shutdown(socket.SHUT_WR)
    with there:
        assert there.recv(100) == b""
    assert page.server.answers.empty()


# -- words to and fro


def test_commands_go_out_and_answers_come_back(page):
    page.server.commands.put(BODY)
    page.server.commands.put(b"second")
    status, headers, body = page.ask("next")
    assert (status, body) == (200, BODY)
    assert headers["cache-control"] == "no-store"
    assert page.ask("answer", "POST", b"\0one\xff")[0] == 204
    assert page.server.answers.get(timeout=SECONDS) == b"\0one\xff"
    assert page.ask("next")[2] == b"second"

    found = []
    asking = threading.Thread(target=lambda: found.append(page.ask("next")[2]))
    asking.start()
    page.server.commands.put(b"late")
    asking.join(SECONDS)
    assert found == [b"late"]


def test_a_page_that_waits_for_long_asks_again(page, monkeypatch):
    monkeypatch.setattr(module, "POLL_SECONDS", 0.01)
    assert page.ask("next")[0] == 204
    page.server.commands.put(b"now")
    assert page.ask("next")[::2] == (200, b"now")


# -- a page that goes


def test_a_page_that_goes_is_noticed(page):
    there = page.hold()
    assert not page.server.gone.is_set()
    there.close()
    assert page.server.gone.wait(SECONDS)


def test_a_page_that_was_told_to_leave_is_no_crash(page):
    first = page.hold()
    page.server.leave()
    second = page.hold()
    first.shutdown(socket.SHUT_WR)
    assert first.recv(100) == b""  # the server has seen it go
    first.close()
    assert not page.server.gone.is_set()
    second.close()
    assert page.server.gone.wait(SECONDS)


# -- where it listens


def test_it_listens_on_this_machine_alone(server):
    ours = [
        one.laddr
        for one in psutil.Process().net_connections("tcp")
        if one.status == psutil.CONN_LISTEN and one.laddr.port == server.port
    ]
    assert [one.ip for one in ours] == ["127.0.0.1"]


def test_a_closed_server_gives_nothing_more(page):
    there = http.client.HTTPConnection("127.0.0.1", page.server.port, timeout=SECONDS)
    there.request("GET", f"/{page.token}/index.html")
    assert there.getresponse().read() == BODY
    held = page.hold()
    page.server.close()
    page.server.close()  # twice is once
    with pytest.raises(OSError):
        socket.create_connection(("127.0.0.1", page.server.port), SECONDS)
    # A browser keeps connections for its next request: this one as well.
    assert there.sock.recv(1) == b""
    there.close()
    assert held.recv(1) == b""
    held.close()
    assert not page.server.gone.is_set()

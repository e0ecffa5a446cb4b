from __future__ import annotations

import re
import socket
from collections.abc import Iterator

import pytest
from dashboard_world import served, visitor
from starlette.testclient import TestClient

from accelbench.present.dashboard.guard import POLICY, AccessRule, is_loopback
from accelbench.store.database import Database

TOKEN = "a-token-of-some-length"


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:8501", 200),
        ("localhost:8501", 200),
        ("LocalHost", 200),
        ("[::1]:8501", 200),
        ("127.0.0.2", 200),
        ("evil.example", 421),
        ("evil.example:8501", 421),
        ("127.0.0.1.evil.example", 421),
        ("localhost.evil.example:8501", 421),
        ("10.0.0.1:8501", 421),
        ("[fe80::1]:8501", 421),
        ("", 421),
    ],
)
def test_another_sites_name_that_points_here_gains_nothing(site, host, status):
    assert site.get("/", headers={"host": host}).status_code == status


def test_the_host_that_it_was_bound_to_is_known(stored):
    bound = visitor(stored, AccessRule("lab.example", TOKEN))
    said = {"authorization": f"Bearer {TOKEN}"}
    assert bound.get("/", headers={**said, "host": "LAB.example:8501"}).status_code == 200
    assert bound.get("/", headers={**said, "host": "evil.example"}).status_code == 421


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_nothing_can_be_changed(site, method):
    answer = site.request(method, "/")
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET, HEAD")


def test_answers_without_programs(site):
    answer = site.head("/")
    assert (answer.status_code, answer.content) == (200, b"")
    # A picture opened by itself runs nothing.
    for form in ("svg", "html"):
        headers = site.get(f"/chart/trend.{form}").headers
        assert headers["content-security-policy"].endswith("sandbox")
    # Pages hold no program and no style of their own.
    page = site.get("/").text
    scripts = re.findall("<script[^>]*>[^<]*</script>", page)
    assert scripts
    assert all(
        re.fullmatch('<script src="/static/[a-z]+.js" [^>]*></script>', one) for one in scripts
    )
    assert page.count("<script") == len(scripts)
    assert "style=" not in page
    assert "http://" not in page
    assert "https://" not in page


@pytest.mark.parametrize(
    "address", ["/", "/static/app.js", "/cells.csv", "/nothing", "/results?hardware=abacus"]
)
def test_every_answer_forbids_all_that_is_not_ours(site, address):
    headers = site.get(address).headers
    assert headers["content-security-policy"] == POLICY
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert "server" not in headers
    assert "access-control-allow-origin" not in headers


# -- the token


@pytest.fixture
def locked(stored: Database) -> TestClient:
    return visitor(stored, AccessRule("127.0.0.1", TOKEN))


@pytest.mark.parametrize("address", ["/", "/cells.csv", "/static/app.js", "/chart/trend.svg"])
def test_without_the_token_nothing_is_shown(locked, address):
    for query, headers in (
        ("", {}),
        ("?token=wrong", {}),
        ("?token=", {}),
        ("", {"authorization": "Bearer wrong"}),
        ("", {"authorization": f"Basic {TOKEN}"}),
        ("", {"cookie": f"accelbench_8501={TOKEN}"}),
        ("", {"cookie": 'accelbench_8501="\\377;;='}),
    ):
        answer = locked.get(f"{address}{query}", headers=headers)
        assert answer.status_code == 401
        assert "token" in answer.text
        assert "bert" not in answer.text
        assert "set-cookie" not in answer.headers


def test_a_token(locked):
    said = {"authorization": f"Bearer {TOKEN}"}
    assert locked.get("/", headers=said).status_code == 200
    # The token becomes a cookie and leaves the address.
    answer = locked.get(f"/?hardware=cuda&token={TOKEN}&model=bert")
    assert (answer.status_code, answer.headers["location"]) == (303, "/?hardware=cuda&model=bert")
    cookie = answer.headers["set-cookie"]
    assert cookie.endswith("; HttpOnly; SameSite=Strict; Path=/")
    assert TOKEN not in cookie
    assert locked.get("/results?hardware=cuda").status_code == 200  # the client has kept it
    # Who comes with both is led on too: the token stays in no history.
    assert locked.get(f"/?token={TOKEN}").status_code == 303
    # The way on leads nowhere else.
    for path in ("//evil.example/", "/\\evil.example", "///evil.example"):
        answer = locked.get(f"http://127.0.0.1:8501{path}?token={TOKEN}")
        assert answer.status_code == 303
        assert answer.headers["location"].startswith("/evil.example")


@pytest.mark.parametrize(
    ("host", "here"),
    [
        ("127.0.0.1", True),
        ("127.8.8.8", True),
        ("::1", True),
        ("[::1]", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("::", False),
        ("", False),
        ("192.168.0.1", False),
        ("localhost.example", False),
        ("2130706433", False),
    ],
)
def test_what_is_this_machine_alone(host, here):
    assert is_loopback(host) is here


# -- bytes as they come


@pytest.fixture(scope="module")
def port(stored: Database) -> Iterator[int]:
    with served(stored) as address:
        yield int(address.rpartition(":")[2])


def raw(port: int, path: bytes, *headers: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", port), timeout=30) as line:
        lines = [b"GET " + path + b" HTTP/1.1", b"Host: 127.0.0.1", b"Connection: close", *headers]
        line.sendall(b"\r\n".join(lines) + b"\r\n\r\n")
        return b"".join(iter(lambda: line.recv(65536), b""))


@pytest.mark.parametrize(
    "path",
    [
        b"/static/../app.py",
        b"/static/../../__init__.py",
        b"/static/%2e%2e/app.py",
        b"/static/..%2fapp.py",
        b"/static/..%5capp.py",
        b"/static/....//app.py",
        b"/static//etc/passwd",
        b"/static/%2fetc%2fpasswd",
        b"/static/style.css%00.png",
        b"/static/",
        b"/static",
        b"/run/..%2f..%2f..%2fetc%2fpasswd",
        b"/run/%2e%2e",
        b"/cell/..%2f..%2fetc%2fpasswd.json",
        b"/chart/..%2f..%2fetc%2fpasswd.svg",
        b"/../../../../etc/passwd",
        b"/templates/base.html",
    ],
)
def test_nothing_but_our_own_files_is_served(port, path):
    answer = raw(port, path)
    status = int(answer.split(b" ", 2)[1])
    assert status in (400, 404)
    assert b"root:" not in answer
    assert b"import" not in answer
    assert b"Traceback" not in answer


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        (b"/results?model=%ff%fe%00", ()),
        (b"/results?model=" + b"a" * 20_000, ()),
        (b"/results?page=" + b"9" * 5_000, ()),
        (b"/results?" + b"&".join(b"hardware=%d" % n for n in range(2_000)), ()),
        (b"/results?from=0000-00-00", ()),
        (b"/results?to=9999-12-31", ()),
        (b"/cell/%00", ()),
        (b"/run/%00", ()),
        (b"/run/" + b"r" * 5_000, ()),
        (b"/", (b"Cookie: \xff\xfe;;;=",)),
        (b"/", (b"Accept: \xff",)),
        (b"/results?cell=" + b"&cell=".join(b"x%d" % n for n in range(500)), ()),
    ],
)
def test_nonsense_is_no_trouble(port, path, headers):
    status = int(raw(port, path, *headers).split(b" ", 2)[1])
    assert status < 500
    assert raw(port, b"/").startswith(b"HTTP/1.1 200")

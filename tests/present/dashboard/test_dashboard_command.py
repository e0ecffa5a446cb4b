from __future__ import annotations

import http.client
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from dashboard_world import result, stored_in

from accelbench.cli import main
from accelbench.present.dashboard import serve
from accelbench.present.dashboard.guard import AccessRule


@contextmanager
def started(folder: Path, *words: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The command, and the address that it prints."""
    line = [sys.executable, "-m", "accelbench", "dashboard", "--port", "0", *words]
    environment = {k: v for k, v in os.environ.items() if k != "ACCELBENCH_DB"}
    with subprocess.Popen(
        line,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            yield process, process.stdout.readline().split()[-1]
        finally:
            process.kill()


def asked(address: str, **headers: str) -> tuple[int, str]:
    parts = urlsplit(address)
    line = http.client.HTTPConnection(str(parts.hostname), parts.port, timeout=30)
    line.request("GET", f"{parts.path}?{parts.query}", headers=headers)
    answer = line.getresponse()
    return answer.status, answer.read().decode()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    stored_in(tmp_path / "accelbench.duckdb", result())
    return tmp_path


def test_a_taken_port_ends_it_with_a_sentence(folder):
    """Again and again: a reader of the store must not be left behind."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        line = [sys.executable, "-m", "accelbench", "dashboard", "--port", port]
        for _ in range(3):
            done = subprocess.run(line, cwd=folder, capture_output=True, text=True, check=False)
            assert (done.returncode, done.stdout) == (3, "")
            assert done.stderr.startswith(
                f"accelbench: 127.0.0.1 port {port} cannot be listened on"
            )
            assert done.stderr.count("\n") == 1


def test_what_is_no_database_is_refused_before_an_address_is_given(tmp_path):
    (tmp_path / "see.md").write_text("# no database\n" * 2000)
    line = [sys.executable, "-m", "accelbench", "dashboard", "--db", "see.md"]
    done = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (3, ""), done.stderr


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM])
def test_it_answers_until_it_is_interrupted_and_ends_well(folder, sign):
    before = sorted(p.name for p in folder.iterdir())
    with started(folder) as (process, address):
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/", address)
        status, page = asked(address)
        assert (status, "1 configuration" in page) == (200, True)
        process.send_signal(sign)
        _, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (0, "")
    assert sorted(p.name for p in folder.iterdir()) == before


def test_a_token_is_made_and_wanted(folder):
    with started(folder, "--token", "new") as (_, address):
        found = re.search(r"\?token=([\w-]{20,})$", address)
        assert found
        assert asked(address.partition("?")[0])[0] == 401
        assert asked(address.partition("?")[0], Authorization=f"Bearer {found[1]}")[0] == 200
        assert asked(address)[0] == 303


def ended(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr(sys, "argv", ["accelbench", "dashboard", *words])
    with pytest.raises(SystemExit) as end:
        main.main()
    return int(end.value.code or 0)


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (["--host", "0.0.0.0"], 2, "0.0.0.0 can be reached by others, who have to know a token."),
        (["--host", "::"], 2, ":: can be reached by others"),
        (["--host", "lab.example"], 2, "lab.example can be reached by others"),
        (["--token", "short"], 2, "A token has 16 plain characters or more."),
        (["--token", "ü" * 20], 2, "A token has 16 plain characters or more."),
        (["--db", "none.duckdb"], 3, "There is no database at "),
    ],
)
def test_what_it_refuses_it_says_in_one_line(folder, monkeypatch, capsys, words, code, sentence):
    monkeypatch.chdir(folder)
    assert ended(monkeypatch, *words) == code
    err = capsys.readouterr().err
    assert err.startswith(f"accelbench: {sentence}")
    assert err.count("\n") == 1


def test_a_taken_port_is_said_and_the_usual_one_is_passed_over(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    with serve.listening("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        assert ended(monkeypatch, "--port", str(port)) == 3
        assert f"127.0.0.1 port {port} cannot be listened on" in capsys.readouterr().err
        monkeypatch.setattr(serve, "USUAL_PORT", port)
        with serve.listening("127.0.0.1", None) as other:
            assert other.getsockname()[1] != port


def test_without_its_packages_it_names_the_install(folder, monkeypatch, capsys):
    import importlib.util

    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "uvicorn" else found(name)
    )
    assert ended(monkeypatch) == 3
    assert "accelbench setup dashboard" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("host", "said"), [("127.0.0.1", "http://127.0.0.1:{}/"), ("::1", "http://[::1]:{}/")]
)
def test_the_address_that_is_printed_can_be_opened(host, said):
    try:
        made = serve.listening(host, 0)
    except Exception:
        pytest.skip(f"{host} is not there")
    with made:
        assert serve.address(AccessRule(host), made) == said.format(made.getsockname()[1])


def test_a_wildcard_is_printed_as_a_name():
    with serve.listening("0.0.0.0", 0) as made:
        printed = serve.address(AccessRule("0.0.0.0", "t" * 16), made)
    assert printed.startswith(f"http://{socket.gethostname()}:")
    assert printed.endswith(f"/?token={'t' * 16}")

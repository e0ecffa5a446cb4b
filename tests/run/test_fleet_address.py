"""A fleet that is named wrongly: what people are told, before anything of Ray is begun."""

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from accelbench.core.errors import UsageError
from accelbench.fleet import session
from accelbench.fleet.session import FleetAddress

ABSENT = Path("no\x1b[31mwhere")


def test_an_absent_token_file_is_quoted_as_text(monkeypatch):
    monkeypatch.setattr(session, "_refuse_without_ray", lambda: None)
    messages = []
    for ask in (
        FleetAddress("127.0.0.1:6379", ABSENT).connect,
        lambda: session.join("127.0.0.1:6379", ABSENT, None, {}),
    ):
        with pytest.raises(UsageError) as caught:
            ask()
        messages.append(caught.value.message)
    assert messages == ["There is no token file 'no<U+001B>[31mwhere'."] * 2


def test_an_address_where_nothing_listens_is_said_at_once(tmp_path):
    """Ray by itself tries for longer than two minutes."""
    pytest.importorskip("ray")
    token = tmp_path / "token"
    token.write_text("0" * 64)
    with socket.socket() as taken:  # bound, and not listening: nobody else gets the port
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        asked = [sys.executable, "-m", "accelbench", "fleet", "status"]
        asked += ["--address", f"127.0.0.1:{port}", "--token-file", str(token)]
        told = subprocess.run(asked, capture_output=True, text=True, timeout=60, check=False)
    assert told.returncode == 3
    assert told.stderr.startswith(f"accelbench: No fleet answers at 127.0.0.1:{port}: ")

"""How the program ends where it has no answer: never with 1, which is one."""

from __future__ import annotations

import subprocess
import sys

import pytest
from shells import ended
from stored_rows import store

from accelbench.cli import main
from accelbench.core.errors import UsageError


@pytest.mark.parametrize("debug", [(), ("--debug",)])
@pytest.mark.parametrize(("error", "code"), [(RuntimeError("bad"), 3), (UsageError("bad"), 2)])
def test_debug_shows_a_traceback_and_changes_no_exit_code(monkeypatch, capsys, debug, error, code):
    def broken(**_: object) -> None:
        raise error

    monkeypatch.setattr(main, "app", broken)
    assert ended(monkeypatch, "compare", *debug) == code
    said = capsys.readouterr().err
    assert ("Traceback" in said) == bool(debug)
    assert "bad" in said.splitlines()[-1]


@pytest.mark.skipif(sys.platform == "win32", reason="pipes there end in another way")
@pytest.mark.parametrize(
    "words", [("compare",), ("compare", "--json"), ("compare", "--help"), ("--version",)]
)
def test_a_reader_that_went_away_is_no_answer(tmp_path, command, words):
    gpu = {"hardware": "cuda", "device_name": "A card"}
    store(tmp_path / "accelbench.duckdb", {}, gpu)
    started = subprocess.Popen(
        [sys.executable, "-m", "accelbench", *words],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert started.stdout is not None
    started.stdout.close()
    assert started.stderr is not None
    said = started.stderr.read()
    assert (started.wait(60), said) == (141, "")

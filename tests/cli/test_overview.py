"""`accelbench` alone: the machine, the database, and what to type next."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from stored_rows import store

from accelbench import __version__
from accelbench.cli.main import main


def shown(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    monkeypatch.setattr(sys, "argv", ["accelbench"])
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit) as end:
        main()
    return int(end.value.code or 0), capsys.readouterr().out


def test_where_nothing_is_measured_it_says_how_to_begin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ACCELBENCH_DB", raising=False)
    code, said = shown(monkeypatch, capsys)
    assert code == 0
    assert said.startswith(f"accelbench {__version__} on ")
    assert "Engines: PyTorch" in said
    assert "Database: none at" in said
    assert "accelbench run bert-tiny" in said
    assert not list(tmp_path.iterdir())


def test_the_fastest_of_each_model_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "results.duckdb"
    monkeypatch.setenv("ACCELBENCH_DB", str(path))
    slow = {"latency_p50_ms": 8.0, "runtime": "pytorch"}
    fast = {"latency_p50_ms": 3.25, "runtime": "onnxruntime"}
    wrong = {"latency_p50_ms": 1.0, "runtime": "openvino", "verification": "failed"}
    noise = {"latency_p50_ms": 1.5, "runtime": "jax", "quality": "unusable"}
    large = {"latency_p50_ms": 0.5, "batch_size": 8}
    failed = {"model": "gpt2", "status": "failed", "reason": "crash"}
    store(path, slow, fast, wrong, noise, large, failed)
    code, said = shown(monkeypatch, capsys)
    assert code == 0
    assert "6 results of 2 models in 1 run" in said
    assert "Last run: r, 5 of 6 ok, 1 failed" in said
    lines = [line for line in said.splitlines() if line.startswith(("bert-tiny", "gpt2"))]
    assert len(lines) == 1
    assert "ort/cpu fp32" in lines[0]
    assert "3.25" in lines[0]
    assert "accelbench compare" in said


def test_a_database_that_cannot_be_read_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "results.duckdb"
    path.write_bytes(b"no database")
    monkeypatch.setenv("ACCELBENCH_DB", str(path))
    monkeypatch.setattr(sys, "argv", ["accelbench"])
    with pytest.raises(SystemExit) as end:
        main()
    found = capsys.readouterr()
    assert not end.value.code
    assert "results.duckdb" in found.err
    assert "accelbench hardware" in found.out

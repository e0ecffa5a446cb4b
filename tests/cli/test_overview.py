"""`accelbench` alone: the machine, the database, and what to type next."""

from __future__ import annotations

import sys

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


def test_where_nothing_is_measured_it_says_how_to_begin(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ACCELBENCH_DB", raising=False)
    code, said = shown(monkeypatch, capsys)
    assert code == 0
    assert said.startswith(f"accelbench {__version__} on ")
    assert "Engines: PyTorch" in said
    assert "Database: none at" in said
    assert "accelbench run bert-tiny" in said
    assert not list(tmp_path.iterdir())


def test_the_fastest_of_each_model_is_shown(tmp_path, monkeypatch, capsys):
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
    rows = [line for line in said.splitlines() if not line.startswith("  ")]
    lines = [line for line in rows if {"bert-tiny", "gpt2"} & set(line.split())]
    assert len(lines) == 1
    assert "ort/cpu" in lines[0].split()
    assert "3.25" in lines[0]
    assert "accelbench compare" in said


def test_the_fastest_is_by_the_launches_that_stand(tmp_path, monkeypatch, capsys):
    """A lucky launch of another day, and code that is no longer there, are nobody's figure."""
    path = tmp_path / "results.duckdb"
    monkeypatch.setenv("ACCELBENCH_DB", str(path))
    own = {"model": "net.py:make", "series_key": "own", "weights": "code"}
    lucky = {"latency_p50_ms": 2.0, "latency_mean_ms": 2.0}
    old = {**own, **lucky, "weights_digest": "before"}
    store(path, *(lucky | {"launch": n} for n in range(2)), old, run="r1")
    later = {"started_at": "2026-02-03T00:00:00.000000Z"}
    times = [
        {"latency_p50_ms": ms, "latency_mean_ms": ms, "launch": n, **later}
        for n, ms in enumerate((8.0, 9.0, 8.1, 8.2, 8.3))
    ]
    store(path, *times, {**times[0], **own, "weights_digest": "now"}, run="r2")
    _, said = shown(monkeypatch, capsys)
    (bert,) = (line for line in said.splitlines() if "bert-tiny" in line and "seq" not in line[:9])
    (net,) = (line for line in said.splitlines() if "net.py:make" in line and "/cpu" in line)
    assert "8.30" in bert
    assert "8.00" in net


def test_a_database_that_cannot_be_read_is_said(tmp_path, monkeypatch, capsys):
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


def test_models_stand_by_their_tasks_the_fastest_first(tmp_path, monkeypatch, capsys):
    path = tmp_path / "results.duckdb"
    monkeypatch.setenv("ACCELBENCH_DB", str(path))
    embeds = {"task": "text_embedding"}
    interval = {"latency_ci_low_ms": 1.9, "latency_ci_high_ms": 2.1}
    store(
        path,
        {**embeds, "model": "bert-base", "latency_p50_ms": 8.0},
        {**embeds, "model": "bert-tiny", "latency_p50_ms": 2.0, **interval},
        {"task": "image_classification", "model": "vit-tiny", "latency_p50_ms": 1.0},
    )
    _, said = shown(monkeypatch, capsys)
    models = ("bert-base", "bert-tiny", "vit-tiny")
    rows = [line.split() for line in said.splitlines() if any(name in line for name in models)]
    table = [row for row in rows if "accelbench" not in row]
    names = [next(word for word in row if word in models) for row in table]
    assert names.index("bert-tiny") + 1 == names.index("bert-base")
    assert "±5.0%" in said
    assert said.count("text embedding") == 1
    assert said.split().count("classification") == 1


def test_what_is_unsteady_is_named_with_the_command_that_measures_it_again(
    tmp_path, monkeypatch, capsys
):
    path = tmp_path / "results.duckdb"
    monkeypatch.setenv("ACCELBENCH_DB", str(path))
    before = {"series_key": "a", "quality": "unsteady", "started_at": "2026-01-01T00:00:00Z"}
    steady = {"series_key": "a", "quality": "converged", "started_at": "2026-01-03T00:00:00Z"}
    wide = {"latency_ci_low_ms": 2.0, "latency_ci_high_ms": 30.0, "sequence_length": 512}
    unusable = {"series_key": "b", "batch_size": 8, "quality": "unusable", **wide}
    own = {"model": "mine.onnx", "series_key": "c", "quality": "throttled"}
    store(path, before, steady, unusable, own, {"series_key": "d", "quality": "noise_limited"})
    _, said = shown(monkeypatch, capsys)
    assert "Unsteady: 2 of 4 figures, each the newest of its configuration:" in said
    assert "bert-tiny pytorch/cpu fp32 batch 8: 8.00 ms 2.00 … 30.0 ms, unusable" in said
    assert "mine.onnx" in said  # no command says what its inputs hold
    command = "accelbench run bert-tiny --hardware cpu --framework pytorch --precision fp32"
    assert f"{command} --batch-sizes 8 --sequence-lengths 512 --launches 5" in said

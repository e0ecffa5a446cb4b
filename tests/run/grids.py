"""Whole commands in processes of their own, and what holds for each result that they print."""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from accelbench.cli import main

Row = Mapping[str, Any]


def said(folder: Path, words: str, seconds: float, **environment: str) -> tuple[int, Any]:
    """A command's exit code and its one document; nobody's settings reach it but these."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("ACCELBENCH_")}
    done = subprocess.run(
        [sys.executable, "-m", "accelbench", *words.split(), "--json", "--db", "grid.duckdb"],
        cwd=folder,
        env={**kept, **environment},
        capture_output=True,
        text=True,
        timeout=seconds,
    )
    assert done.stdout.strip(), done.stderr[-3000:]
    return done.returncode, json.loads(done.stdout)


def asked(folder: Path, words: str) -> Any:
    """The document of a command that only reads, asked in this process."""
    out = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(out):
        patch.chdir(folder)
        command = ["accelbench", *words.split(), "--json", "--db", "grid.duckdb"]
        patch.setattr(sys, "argv", command)
        with contextlib.suppress(SystemExit):
            main.main()
    return json.loads(out.getvalue())


def hold_nulls(rows: Sequence[Row]) -> None:
    """Every empty column has its reason."""
    for row in rows:
        which = (row["model"], row["runtime"], row["hardware"], row["precision"], row["mode"])
        empty = {name for name, value in row.items() if value is None and name != "nulls"}
        assert set(row["nulls"]) == empty, which
        assert "not known" not in row["nulls"].values(), which

"""The rooms import in one direction only."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "src" / "accelbench"


def contracts() -> list[dict[str, object]]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return project["tool"]["importlinter"]["contracts"]


@pytest.mark.full  # `make check`, which `make test` begins with, has just asked the same
def test_the_import_contracts_hold():
    program = Path(sysconfig.get_path("scripts")) / "lint-imports"
    done = subprocess.run(
        [sys.executable, str(program), "--no-cache"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def layers() -> set[str]:
    """Each room, and each floor of a room, that a contract gives a layer."""
    return {
        room.strip().removeprefix("accelbench.")
        for contract in contracts()
        if contract["type"] == "layers" and "containers" not in contract
        for layer in contract["layers"]  # type: ignore[attr-defined]
        for room in str(layer).split("|")
    }


def packages(room: str = "") -> set[str]:
    return {p.parent.name for p in (SOURCES / room).glob("*/__init__.py")}


def test_rooms_and_floors():
    assert packages() == {name for name in layers() if "." not in name}
    floors = {name for name in layers() if name.startswith("run.")}
    assert {f"run.{name}" for name in packages("run")} <= floors

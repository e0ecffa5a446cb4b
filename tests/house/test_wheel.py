"""What people install holds everything the tree holds."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import accelbench

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    folder = tmp_path_factory.mktemp("wheel")
    done = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (path,) = folder.glob("*.whl")
    assert accelbench.__version__ in path.name
    return zipfile.ZipFile(path)


def test_the_wheel_holds_every_file_of_the_package(wheel):
    source = ROOT / "src"
    tree = {
        p.relative_to(source).as_posix()
        for p in (source / "accelbench").rglob("*")
        if p.is_file() and "__pycache__" not in p.parts
    }
    assert {"accelbench/py.typed", "accelbench/models/costs.json"} <= tree
    packed = {n for n in wheel.namelist() if ".dist-info/" not in n}
    assert packed == tree


def test_the_wheel_brings_the_program_the_plugins_and_the_licence(wheel):
    names = {n.split(".dist-info/")[1]: n for n in wheel.namelist() if ".dist-info/" in n}
    points = wheel.read(names["entry_points.txt"]).decode()
    assert "accelbench = accelbench.cli.main:main" in points
    assert "[accelbench.engines]" in points
    assert "[accelbench.hardware]" in points
    assert "licenses/LICENSE" in names

"""A bare machine: a Python with PyTorch of its own, no network, and accelbench not installed.

The repository is a folder, and the few packages that such a machine lacks are wheels beside it.
They are unpacked into a folder of the day; nothing is installed. accelbench finds its runtimes and
detectors by entry points, which are package metadata: made here from pyproject.toml.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Mapping, Sequence
from importlib import invalidate_caches
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
#: What a machine with PyTorch for CUDA is expected to have: large, or of one build with it.
OF_THE_MACHINE = ("torch", "transformers", "safetensors", "numpy", "pyarrow")
#: What it may lack, each with the packages that it needs in turn: 29 MiB, 23 of them DuckDB.
CARRIED: Mapping[str, tuple[str, ...]] = {
    "duckdb": (),
    "jinja2": ("markupsafe",),
    "msgspec": (),
    "psutil": (),
    "pyyaml": (),
    "nvidia-ml-py": (),
    "rich": ("markdown-it-py", "mdurl", "pygments"),
    "typer": (
        "shellingham", "annotated-doc", "pydantic", "pydantic-core", "annotated-types",
        "typing-inspection", "typing-extensions",
    ),
}  # fmt: skip
#: Tags of wheels for Linux on x86-64, by the glibc that they need.
PLATFORMS = ("2014", *(f"_2_{minor}" for minor in (17, 24, 26, 27, 28)))


class BareMachineError(Exception):
    """What a bare machine lacks, in a sentence."""


def project() -> dict[str, Any]:
    """The project's own table of pyproject.toml."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    found: dict[str, Any] = tomllib.loads(text)["project"]
    return found


def missing(without: Sequence[str] = ()) -> list[str]:
    """Packages of both lists that this Python has not, but for some that are not needed."""
    wanted = (*OF_THE_MACHINE, *CARRIED)
    return [name for name in wanted if name not in without and not _installed(name)]


def with_their_needs(names: Sequence[str]) -> list[str]:
    """Those of these packages that are carried, and what they need that is missing too."""
    found = [one for name in names if name in CARRIED for one in (name, *CARRIED[name])]
    return [name for name in found if not _installed(name)]


def _installed(name: str) -> bool:
    try:
        version(name)
    except PackageNotFoundError:
        return False
    return True


def ready(folder: Path, wheels: Path, without: Sequence[str] = ()) -> None:
    """Make accelbench importable here and in every process started from here.

    Raises:
        BareMachineError: packages are missing that no wheel beside the repository brings.
    """
    site, metadata = folder / "site", folder / "metadata"
    entry_points(metadata)
    on_path([ROOT / "src", site, metadata])
    lacking = missing(without)
    if lacking and wheels.is_dir():
        unpack(with_their_needs(lacking), wheels, site)
        invalidate_caches()
        lacking = missing(without)
    if lacking:
        raise BareMachineError(what_to_do(lacking, wheels))


def entry_points(folder: Path) -> Path:
    """accelbench's metadata as an installation would have written it."""
    about = project()
    made = folder / f"accelbench-{about['version']}.dist-info"
    made.mkdir(parents=True)
    header = f"Metadata-Version: 2.1\nName: accelbench\nVersion: {about['version']}\n"
    (made / "METADATA").write_text(header, encoding="utf-8")
    groups = {"console_scripts": about["scripts"], **about["entry-points"]}
    lines = [
        line
        for group, points in groups.items()
        for line in (f"[{group}]", *(f"{name} = {value}" for name, value in points.items()), "")
    ]
    (made / "entry_points.txt").write_text("\n".join(lines), encoding="utf-8")
    return made


def on_path(folders: Sequence[Path]) -> None:
    """Put folders before everything else, here and for processes that are started from here."""
    names = [str(folder) for folder in folders]
    sys.path[1:1] = names
    kept = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join([*names, *([kept] if kept else [])])
    invalidate_caches()


def unpack(names: Sequence[str], wheels: Path, site: Path) -> None:
    """Unpack the wheels of these packages that lie there for this Python."""
    lying = {_distribution(wheel) for wheel in wheels.glob("*.whl")}
    chosen = [name for name in names if name in lying]
    if not chosen:
        return
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    command += ["--no-index", "--no-deps", "--find-links", str(wheels), "--target", str(site)]
    done = subprocess.run([*command, *chosen], capture_output=True, text=True, check=False)
    if done.returncode:
        said = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:]
        raise BareMachineError(f"The wheels in {wheels} cannot be unpacked: {' '.join(said)}")


def _distribution(wheel: Path) -> str:
    return re.sub(r"[-_.]+", "-", wheel.name.partition("-")[0]).lower()


def what_to_do(lacking: Sequence[str], wheels: Path) -> str:
    """The missing packages, and the command line that brings those that are small."""
    said = f"Missing packages: {', '.join(lacking)}."
    fetched = with_their_needs(lacking)
    if fetched:
        python = ".".join(map(str, sys.version_info[:2]))
        line = " ".join(("pip", *_download(wheels, python, fetched)))
        said += f" Fetch them where there is a network, and name the folder by --wheels: {line}."
    heavy = [name for name in lacking if name not in CARRIED]
    if heavy:
        said += f" This Python itself has to have {', '.join(heavy)}."
    return said


def _download(folder: Path, python: str, names: Sequence[str]) -> list[str]:
    tags = [part for tag in PLATFORMS for part in ("--platform", f"manylinux{tag}_x86_64")]
    return ["download", "--no-deps", "--only-binary=:all:", "--python-version", python, *tags,
            "--dest", str(folder), *names]  # fmt: skip


def fetch(folder: Path, python: str) -> None:
    """Download all carried wheels, in the versions that are tested."""
    carried = [one for name, needs in CARRIED.items() for one in (name, *needs)]
    command = [sys.executable, "-m", "pip", *_download(folder, python, carried)]
    if subprocess.call([*command, "--constraint", str(ROOT / "constraints.txt")]):
        raise BareMachineError("pip could not download all wheels; its own words are above.")
    size = sum(wheel.stat().st_size for wheel in folder.glob("*.whl"))
    print(f"{folder}: {size / 2**20:.0f} MiB for Python {python} on Linux x86-64")

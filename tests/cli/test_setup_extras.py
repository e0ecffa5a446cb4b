"""`accelbench setup NAME`: what is installed where, by which installer, and why not."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from collections.abc import Callable
from dataclasses import replace
from importlib.metadata import requires
from pathlib import Path

import pytest

from accelbench.core.errors import EXIT_ENVIRONMENT, EXIT_USAGE, SurroundingsError, UsageError
from accelbench.engines.shared.names import no_such_runtime
from accelbench.hardware import installing
from accelbench.hardware.doctor.packages import Requirement
from accelbench.hardware.installing import (
    Environment,
    ExtraRequirement,
    as_arguments,
    extras_of,
    find_missing,
    installed_extras,
    refuse_clashes,
    requirements_of,
)

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

LINES = (
    "numpy<3,>=2.0",
    "onnx<2,>=1.18; extra == 'onnx'",
    "onnxruntime<2,>=1.22; extra == 'onnx'",
    "amdsmi>=6.3; extra == 'rocm'",
    'ray[default]>=2.50; (sys_platform != "win32") and extra == "fleet"',
)
OURS = extras_of(("onnx", "rocm", "fleet", "dev", "openvino"), LINES)


def here(tmp_path: Path, **more: object) -> Environment:
    made = Environment(
        python="/env/bin/python",
        folder=Path("/env"),
        packages=tmp_path,
        writable=True,
        managed=False,
        pip=True,
        by_uv=False,
        uv=None,
    )
    return replace(made, **more)  # type: ignore[arg-type]


def of(**versions: str) -> Callable[[str], str | None]:
    return lambda name: versions.get(name.replace("-", "_"))


def test_extras():
    # What an extra asks for is read from the metadata.
    assert [one.text for one in OURS.wanted["onnx"]] == ["onnx<2,>=1.18", "onnxruntime<2,>=1.22"]
    (ray,) = OURS.wanted["fleet"]
    assert ray.text == 'ray[default]>=2.50; sys_platform != "win32"'
    assert OURS.other_bounds(OURS.wanted["onnx"]) == ("numpy<3,>=2.0", "amdsmi>=6.3")
    asked = [line for line in requires("accelbench") or () if line.startswith("accelbench")]
    assert [line for line in asked if not line.startswith("accelbench-")] == []
    # What is here is not installed again.
    onnx = requirements_of(OURS, ["onnx", "onnx"])
    needed, said = find_missing(onnx, of(onnx="1.17", onnxruntime="1.23"))
    assert ([one.about.name for one in needed], said) == (["onnx"], ())
    # The plain build would overwrite the one for other hardware.
    needed, said = find_missing(onnx, of(onnx="1.19", onnxruntime_gpu="1.23"))
    assert (needed, said) == ((), ("onnxruntime-gpu is here, in the place of onnxruntime.",))


@pytest.mark.parametrize(
    ("word", "extra"),
    [("onnx", "onnx"), ("ONNX", "onnx"), ("ort", "onnx"), ("onnxruntime", "onnx")],
)
def test_an_engine_names_the_extra_that_brings_it(word, extra):
    assert OURS.resolve_extra(word) == extra


@pytest.mark.parametrize(
    ("word", "said"), [("opnvino", "Did you mean openvino?"), ("toaster", "Known: onnx, rocm, ")]
)
def test_another_word_is_refused_with_names_like_it(word, said):
    with pytest.raises(UsageError) as refused:
        OURS.resolve_extra(word)
    assert said in str(refused.value)
    assert "dev" not in str(refused.value)


@pytest.mark.parametrize(
    ("names", "there"), [(["rocm"], of(ray="2.5")), (["rocm", "fleet"], of()), (["rocm"], of())]
)
def test_packages_that_do_not_get_along_are_refused(names, there):
    needed, _ = find_missing(requirements_of(OURS, names), there)
    if names == ["rocm"] and there("ray") is None:
        refuse_clashes(needed, there)
        return
    with pytest.raises(SurroundingsError, match=r"amdsmi and ray do not get along.*KeyError"):
        refuse_clashes(needed, there)


@pytest.mark.parametrize(
    ("environment", "installer"),
    [
        ({}, "pip"),
        ({"uv": "/bin/uv"}, "pip"),
        ({"by_uv": True, "uv": "/bin/uv"}, "uv"),
        ({"by_uv": True}, "pip"),
        ({"pip": False, "uv": "/bin/uv"}, "uv"),
    ],
)
def test_whichever_made_the_environment_installs(tmp_path, environment, installer):
    made = here(tmp_path, **environment)
    made.refuse()
    assert made.installer == installer
    command = made.command(["onnx>=1"], tmp_path / "bounds", ["https://x"], True)
    assert command[-5:] == [
        *("--extra-index-url", "https://x", "-c", str(tmp_path / "bounds"), "onnx>=1")
    ]
    assert command[: command.index("install") + 1] == (
        ["/env/bin/python", "-m", "pip", "install"]
        if installer == "pip"
        else ["/bin/uv", "pip", "install"]
    )


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        ({"managed": True}, "managed by the system"),
        ({"writable": False}, "cannot be written"),
        ({"pip": False}, "has no pip: /env. Bring pip: /env/bin/python -m ensurepip"),
        ({"pip": False, "by_uv": True}, "uv made this environment, and neither uv nor pip"),
    ],
)
def test_what_cannot_be_installed_is_refused_with_the_reason(tmp_path, environment, said):
    with pytest.raises(SurroundingsError, match=re.escape(said)):
        here(tmp_path, **environment).refuse()


# -- engines in packages of their own ------------------------------------------------------


def arguments(monkeypatch: pytest.MonkeyPatch, source: dict[str, object] | None) -> list[str]:
    """What an installer is given for ncnn by an accelbench that came from somewhere."""

    class Came:
        def read_text(self, name: str) -> str | None:
            return json.dumps(source) if source is not None else None

    monkeypatch.setattr(installing, "distribution", lambda _: Came())
    need = ExtraRequirement("accelbench-ncnn>=0.1", Requirement("accelbench-ncnn", ">=0.1"))
    return as_arguments([need, *OURS.wanted["onnx"][:1]])


def test_an_engine_of_a_package_of_its_own_comes_from_the_checkout(monkeypatch):
    tree, folder = ROOT.as_uri(), str(ROOT / "plugins" / "accelbench-ncnn")
    edited = {"url": tree, "dir_info": {"editable": True}}
    assert arguments(monkeypatch, edited) == ["--editable", folder, "onnx<2,>=1.18"]
    assert arguments(monkeypatch, {"url": tree, "dir_info": {}}) == [folder, "onnx<2,>=1.18"]


@pytest.mark.parametrize(
    "source",
    [
        None,
        {"url": "file:///gone", "dir_info": {}},
        {"url": "https://gone/x.git", "vcs_info": {"vcs": "git", "commit_id": "1"}},
    ],
)
def test_without_a_checkout_it_comes_by_name(monkeypatch, source):
    assert arguments(monkeypatch, source) == ["accelbench-ncnn>=0.1", "onnx<2,>=1.18"]


def test_engines_that_are_not_here():
    needs = [one.about.name for one in installed_extras().wanted["ncnn"]]
    assert needs == ["accelbench-ncnn", "ncnn"]
    # An engine that is not here is told how to come.
    error = no_such_runtime("executorch", ())
    assert (error.exit_code, error.advice) == (
        EXIT_ENVIRONMENT,
        "Install it with: accelbench setup executorch",
    )
    # No advice names an index that has no accelbench.
    files = [
        *(ROOT / "src").rglob("*.py"),
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / name for name in ("README.md", "action.yml", "Makefile")),
    ]
    found = [f.name for f in files if re.search(r"pip install [^\n]*accelbench\[", f.read_text())]
    assert found == []


# -- an environment of its own, with a real pip ------------------------------------------


def wheel(folder: Path, name: str) -> None:
    """The smallest package that an installer takes."""
    info = f"{name}-1.0.dist-info"
    files = {
        f"{name}.py": "here = True\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    listed = []
    for path, text in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=")
        listed.append(f"{path},sha256={digest.decode()},{len(text)}")
    files[f"{info}/RECORD"] = "\n".join([*listed, f"{info}/RECORD,,"]) + "\n"
    with zipfile.ZipFile(folder / f"{name}-1.0-py3-none-any.whl", "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)


class Installed:
    """An environment that accelbench was installed into, and a folder of packages for it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.links = folder, folder / "links"
        self.links.mkdir(parents=True)
        made = [sys.executable, "-m", "venv", "--without-pip", str(folder / "env")]
        subprocess.run(made, check=True)
        self.python = folder / "env" / "bin" / "python"
        version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
        self.packages = folder / "env" / "lib" / version / "site-packages"
        # pip and what accelbench itself needs are those of this environment.
        seen = f"{ROOT / 'src'}\n{sysconfig.get_path('purelib')}\n"
        (self.packages / "seen.pth").write_text(seen)
        self.info = self.packages / "accelbench-0.1.0.dist-info"
        self.info.mkdir()
        extras = "".join(
            f"Provides-Extra: {name}\nRequires-Dist: {name}_thing>=1; extra == '{name}'\n"
            for name in ("small", "tiny", "gone")
        )
        about = "Metadata-Version: 2.1\nName: accelbench\nVersion: 0.1.0\n"
        (self.info / "METADATA").write_text(about + extras)
        for name in ("small_thing", "tiny_thing"):
            wheel(self.links, name)

    def came_from(self, direct_url: object) -> None:
        (self.info / "direct_url.json").write_text(json.dumps(direct_url))

    def setup(self, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
        about = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(self.links), **environment}
        return subprocess.run(
            [self.python, "-m", "accelbench", "setup", *words],
            capture_output=True,
            text=True,
            cwd=self.folder,
            env={**os.environ, **about},
            check=False,
        )


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    return Installed(tmp_path_factory.mktemp("made"))


@pytest.mark.parametrize(
    ("extra", "direct_url"),
    [
        ("tiny", {"url": "file:///gone", "dir_info": {"editable": True}}),
        ("small", {"url": "https://gone/x.git", "vcs_info": {"vcs": "git", "commit_id": "1"}}),
    ],
)
def test_extras_are_installed_wherever_accelbench_came_from(environment, extra, direct_url):
    environment.came_from(direct_url)
    before = sorted(environment.info.iterdir())
    done = environment.setup(extra, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "environment": str(environment.folder / "env"),
        "installer": "pip",
        "extras": [extra],
        "installed": [{"package": f"{extra}-thing", "version": "1.0", "before": None}],
    }
    assert (environment.packages / f"{extra}_thing.py").is_file()
    # accelbench itself stays what it was: no copy of it has come.
    assert sorted(environment.info.iterdir()) == before
    assert not (environment.packages / "accelbench").exists()


def test_what_the_installer_refuses_is_said(environment):
    done = environment.setup("gone")
    assert done.returncode == EXIT_ENVIRONMENT
    assert "accelbench: pip ended with 1: ERROR: No matching distribution found for" in done.stderr
    assert "Traceback" not in done.stderr


# -- on the command line, where everything is here -----------------------------------------


def test_what_is_here_is_listed(command):
    code, out, err = command("setup")("charts", "frames")
    assert (code, err) == (0, "")
    charts, frames = out.splitlines()
    assert charts.startswith("Extra charts: vl-convert-python 1.")
    assert frames.startswith("Extra frames: pandas ")


def test_a_slip_names_what_was_meant(command):
    code, out, err = command("setup")("chrts")
    assert (code, out) == (EXIT_USAGE, "")
    assert err == "accelbench: There is no extra named 'chrts'. Did you mean charts?\n"


def test_help_names_every_extra(command):
    said = " ".join(command("setup")("--help")[1].split())
    for extra in PROJECT["optional-dependencies"]:
        assert extra == "dev" or re.search(rf"\b{extra}\b", said), extra


# -- what is advised ----------------------------------------------------------------------


def made(tmp_path: Path, *words: str) -> str:
    line = ["make", "-n", "install", f"VENV={tmp_path}", *words]
    done = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout


def test_a_copy_of_the_package_is_replaced_by_the_tree(tmp_path):
    for name in (".made", ".installed"):
        (tmp_path / name).touch()
    assert "install" not in made(tmp_path).replace("for 'install'", "").replace("'install'", "")
    copy = tmp_path / "lib" / "python3.11" / "site-packages" / "accelbench"
    copy.mkdir(parents=True)
    (copy / "__init__.py").touch()
    assert "-e '.[" in made(tmp_path)


def test_an_index_comes_beside_those_that_are_configured(tmp_path):
    assert "install --extra-index-url https://x -c" in made(tmp_path, "INDEX=https://x")
    assert "PIP_EXTRA_INDEX_URL" not in (ROOT / "README.md").read_text(encoding="utf-8")

"""What is pinned can be compared with what comes."""

import base64
import re
from pathlib import Path

import pytest

from accelbench.engines.browser.assets import CHROMIUM, ENGINE, chromium_runs_here, folder_of
from accelbench.hardware.browsers import InstalledPrograms

PAGE = Path(__file__).parents[3] / "src" / "accelbench" / "engines" / "browser" / "page"


@pytest.mark.parametrize("package", [ENGINE, CHROMIUM], ids=str)
def test_each_is_pinned_to_one_version_by_a_sum(package):
    assert re.fullmatch(r"\d+\.\d+\.\d+", package.version)
    kind, _, sum_ = package.integrity.partition("-")
    assert kind == "sha512"
    assert len(base64.b64decode(sum_, validate=True)) == 64
    assert package.licence
    assert str(package) == f"{package.name}@{package.version}"


@pytest.mark.parametrize("package", [ENGINE, CHROMIUM], ids=str)
def test_what_is_taken_lies_in_one_folder(package):
    assert all(re.fullmatch(r"package/(dist|bin)/[\w.-]+", one) for one in package.files)
    assert all(re.fullmatch(r"\w[\w.-]*", name) for name in package.files.values())


def test_the_page_has_every_file_of_the_engine_that_it_asks_for():
    source = (PAGE / "engine.mjs").read_text(encoding="utf-8")
    scripts = set(re.findall(r'script: "([^"]+)"', source))
    cores = set(re.findall(r'core: "([^"]+)"', source))
    assert scripts
    wanted = scripts | {f"{core}.{kind}" for core in cores for kind in ("mjs", "wasm")}
    assert wanted == set(ENGINE.files.values())


def test_the_fetched_browser_is_found_among_the_programs(tmp_path):
    program = folder_of(CHROMIUM, tmp_path) / "chromium"
    program.parent.mkdir(parents=True)
    program.touch(0o755)
    (found,) = InstalledPrograms({"PATH": "", "ACCELBENCH_CACHE": str(tmp_path)}, "linux").find()
    assert Path(found.path) == program


@pytest.mark.parametrize(
    ("system", "machine", "runs"),
    [
        ("linux", "x86_64", True),
        ("linux", "AMD64", True),
        ("linux", "aarch64", False),
        ("linux", "i686", False),
        ("darwin", "x86_64", False),
        ("win32", "AMD64", False),
    ],
)
def test_the_browser_runs_on_linux_on_x86_64(system, machine, runs):
    assert chromium_runs_here(system, machine) is runs

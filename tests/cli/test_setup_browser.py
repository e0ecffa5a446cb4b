"""`accelbench setup browser`: what is fetched where, and what it says of it."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import brotli
import pytest

from accelbench.core.errors import EXIT_ENVIRONMENT, EXIT_USAGE
from accelbench.engines.browser import assets
from accelbench.engines.browser.assets import Package
from accelbench.hardware import browsers
from accelbench.hardware.browsers import Browser
from fetched import fetched_browser

CHROME = Browser("Google Chrome", "/opt/chrome", "chromium")
FIREFOX = Browser("Firefox", "/opt/firefox", "firefox")


class Machine:
    """A cache, a registry and the browsers that somebody has installed."""

    def __init__(self, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.cache = cache
        self.runs_here = True
        self.installed: list[Browser] = []
        self.asked: list[str] = []
        self._archives: dict[str, bytes] = {}
        engine = self._made("onnxruntime-web", "1.2.3", "engine.mjs", b"engine", "MIT")
        chromium = self._made(
            "@some/chromium", "4.5.6", "chromium.br", brotli.compress(b"program"), "BSD-3"
        )
        for module in (assets, assets):
            monkeypatch.setattr(module, "ENGINE", engine)
            monkeypatch.setattr(module, "CHROMIUM", chromium)
            monkeypatch.setattr(module, "chromium_runs_here", lambda: self.runs_here)
        monkeypatch.setattr(assets, "npm_pack", self.pack)
        monkeypatch.setattr(browsers, "InstalledPrograms", lambda: self)
        monkeypatch.setenv("ACCELBENCH_CACHE", str(cache))
        monkeypatch.delenv(browsers.BROWSER_VARIABLE, raising=False)

    def _made(self, name: str, version: str, file: str, content: bytes, licence: str) -> Package:
        made = io.BytesIO()
        with tarfile.open(fileobj=made, mode="w:gz") as archive:
            about = tarfile.TarInfo(f"package/{file}")
            about.size = len(content)
            archive.addfile(about, io.BytesIO(content))
        data = self._archives[name] = made.getvalue()
        integrity = "sha512-" + base64.b64encode(hashlib.sha512(data).digest()).decode()
        return Package(name, version, integrity, {f"package/{file}": file}, licence)

    def pack(self, package: Package, into: Path) -> Path:
        self.asked.append(package.name)
        path = into / "archive.tgz"
        path.write_bytes(self._archives[package.name])
        return path

    def explain_missing(self) -> str:
        """Nobody names one, unless a test takes the real look for programs."""
        return ""

    def find(self) -> list[Browser]:
        """As the look for programs: what is installed, then what was fetched."""
        program = fetched_browser()
        there = [Browser(browsers.FETCHED, str(program), "chromium")] if program else []
        return [*self.installed, *there]


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(tmp_path / "cache", monkeypatch)


@pytest.fixture
def naming(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], None]:
    """Names the one browser that is to be used."""

    def name(program: Path) -> None:
        monkeypatch.setattr(browsers, "InstalledPrograms", LOOK)
        monkeypatch.setenv(browsers.BROWSER_VARIABLE, str(program))

    return name


LOOK = browsers.InstalledPrograms
ENGINE, CHROMIUM = "onnxruntime-web", "@some/chromium"


def test_without_a_browser_both_are_fetched_and_told(machine, setup):
    code, out, err = setup("browser")
    engine = machine.cache / "browser" / "onnxruntime-web-1.2.3"
    chromium = machine.cache / "browser" / "chromium-4.5.6"
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        "Fetching onnxruntime-web 1.2.3 (MIT) …",
        f"  It lies in {engine}",
        "Fetching @some/chromium 4.5.6 (BSD-3) …",
        f"  It lies in {chromium}",
        f"Pages can run in {browsers.FETCHED}:",
        f"  {chromium / 'chromium'}",
    ]
    assert (engine / "engine.mjs").read_bytes() == b"engine"
    assert (chromium / "chromium").read_bytes() == b"program"


def test_what_is_there_is_said_to_be_and_not_fetched(machine, setup):
    setup("browser")
    code, out, _ = setup("browser")
    assert code == 0
    assert machine.asked == [ENGINE, CHROMIUM]
    engine = machine.cache / "browser" / "onnxruntime-web-1.2.3"
    # The browser that was fetched is none of the user's own: it goes on being looked after.
    assert out.splitlines()[:3] == [
        "onnxruntime-web 1.2.3 (MIT)",
        f"  is there already: {engine}",
        "@some/chromium 4.5.6 (BSD-3)",
    ]


@pytest.mark.parametrize(
    ("installed", "words", "fetched"),
    [
        ([], [], [ENGINE, CHROMIUM]),
        ([FIREFOX], [], [ENGINE, CHROMIUM]),
        ([CHROME], [], [ENGINE]),
        ([FIREFOX, CHROME], [], [ENGINE]),
        ([CHROME], ["--with-chromium"], [ENGINE, CHROMIUM]),
        ([], ["--with-chromium"], [ENGINE, CHROMIUM]),
        ([], ["--without-chromium"], [ENGINE]),
        ([CHROME], ["--without-chromium"], [ENGINE]),
    ],
)
def test_the_browser_is_fetched_where_none_is_suitable(machine, setup, installed, words, fetched):
    machine.installed = installed
    assert setup("browser", *words)[0] == 0
    assert machine.asked == fetched


def test_where_the_browser_does_not_run_it_is_not_fetched(machine, setup):
    machine.runs_here = False
    code, out, _ = setup("browser")
    assert (code, machine.asked) == (0, [ENGINE])
    assert out.splitlines()[-2:] == [
        "No browser is here that pages could run in.",
        "Install Chrome, Edge or Chromium, or name one: export ACCELBENCH_BROWSER=PATH",
    ]
    machine.installed = [CHROME]
    assert setup("browser")[1].splitlines()[-2:] == [
        "Pages can run in Google Chrome:",
        "  /opt/chrome",
    ]


def test_a_browser_that_would_not_run_is_refused(machine, setup):
    machine.runs_here = False
    code, out, err = setup("browser", "--with-chromium")
    assert (code, out) == (EXIT_ENVIRONMENT, "")
    assert err.startswith("accelbench: The Chromium that can be fetched runs on Linux on x86-64")
    assert "ACCELBENCH_BROWSER" in err
    assert (machine.asked, machine.cache.exists()) == ([], False)


def test_a_name_that_leads_nowhere_is_said_before_anything_is_fetched(
    machine, setup, naming, tmp_path
):
    naming(tmp_path / "gone")
    for words in ((), ("--with-chromium",), ("--json",)):
        code, out, err = setup("browser", *words)
        assert (code, out) == (EXIT_ENVIRONMENT, "")
        assert err == (
            f"accelbench: There is no program at {tmp_path / 'gone'}, which ACCELBENCH_BROWSER or"
            " --browser names. Name a browser's program, or none: unset ACCELBENCH_BROWSER\n"
        )
    assert (machine.asked, machine.cache.exists()) == ([], False)


@pytest.mark.parametrize(("name", "mode"), [("firefox", 0o755), ("chrome", 0o644)])
def test_what_is_named_and_would_not_run_pages_is_refused(
    machine, setup, naming, tmp_path, name, mode
):
    program = tmp_path / name
    program.touch(mode)
    naming(program)
    code, out, err = setup("browser")
    assert (code, out, machine.asked) == (EXIT_ENVIRONMENT, "", [])
    assert str(program) in err
    assert "unset ACCELBENCH_BROWSER" in err


def test_an_option_names_a_browser_too(machine, setup, naming, tmp_path):
    mine, gone = tmp_path / "mine", tmp_path / "gone"
    mine.touch(0o755)
    naming(gone)  # the option goes before what the environment says
    code, out, err = setup("browser", "--browser", str(gone))
    assert (code, out, machine.asked) == (EXIT_USAGE, "", [])
    assert err == f"accelbench: There is no browser at '{gone}'. Give the program's path.\n"
    code, out, _ = setup("browser", "--browser", str(mine))
    assert (code, machine.asked) == (0, [ENGINE])
    assert out.splitlines()[-2:] == ["Pages can run in mine:", f"  {mine}"]


def test_json_is_one_document(machine, setup):
    machine.installed = [CHROME, FIREFOX]
    code, out, err = setup("browser", "--with-chromium", "--json")
    assert code == 0
    folder = machine.cache / "browser"
    document: dict[str, Any] = {
        "packages": [
            {
                "name": ENGINE,
                "version": "1.2.3",
                "licence": "MIT",
                "folder": str(folder / "onnxruntime-web-1.2.3"),
                "fetched": True,
            },
            {
                "name": CHROMIUM,
                "version": "4.5.6",
                "licence": "BSD-3",
                "folder": str(folder / "chromium-4.5.6"),
                "fetched": True,
            },
        ],
        "browsers": [
            {"name": "Google Chrome", "path": "/opt/chrome", "fetched": False},
            {
                "name": browsers.FETCHED,
                "path": str(folder / "chromium-4.5.6" / "chromium"),
                "fetched": True,
            },
        ],
    }
    assert json.loads(out) == document
    assert "Fetching onnxruntime-web 1.2.3" in err
    for package in document["packages"]:
        package["fetched"] = False
    assert setup.json("browser", "--with-chromium") == document


def test_a_failure_is_one_sentence_and_keeps_what_came_before(machine, setup):
    machine._archives[CHROMIUM] = b"another"
    code, out, err = setup("browser", "--json")
    assert (code, out) == (EXIT_ENVIRONMENT, "")
    assert "accelbench: What came as @some/chromium@4.5.6 is not what was asked for" in err
    assert "Traceback" not in err
    kept = [path.name for path in (machine.cache / "browser").iterdir()]
    assert kept == ["onnxruntime-web-1.2.3"]


def test_without_npm_it_says_what_to_do(setup, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("ACCELBENCH_CACHE", str(tmp_path / "cache"))
    code, out, err = setup("browser", "--without-chromium")
    assert code == EXIT_ENVIRONMENT
    assert out.startswith(f"Fetching onnxruntime-web {assets.ENGINE.version} (MIT) …")
    (line,) = err.splitlines()
    assert line.startswith("accelbench: npm is not installed, and onnxruntime-web@")
    assert "Install Node.js" in line


def test_without_brotli_the_browser_is_not_fetched(machine, setup, monkeypatch):
    monkeypatch.setitem(sys.modules, "brotli", None)
    code, _, err = setup("browser")
    assert code == EXIT_ENVIRONMENT
    assert "accelbench setup browser" in err
    assert machine.asked == [ENGINE]


def test_help_says_what_an_installed_browser_is_worth(machine, setup):
    code, out, _ = setup("browser", "--help")
    assert code == 0
    said = " ".join(out.split())
    assert "WebNN, however, works in few installed browsers" in said
    for word in ("--with-chromium", "--without-chromium", "--json", "npm", "$ACCELBENCH_CACHE"):
        assert word in said
    assert machine.asked == []
    assert "browser" in setup("--help")[1]


def test_what_cannot_be_set_up_is_refused(machine, setup):
    assert setup("toaster")[0] == EXIT_USAGE
    assert setup("browser", "chrome")[0] == EXIT_USAGE
    assert machine.asked == []

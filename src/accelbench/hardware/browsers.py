"""Browsers on this machine that run WebGPU, WebNN and WebAssembly.

Without starting a browser only its existence is known. Only a page can ask for its adapter, and
whether that is a GPU or software.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import ClassVar, Protocol

from accelbench.core.protocols import Absent, Device
from accelbench.hardware.common import HardwareError, run_command
from accelbench.store.files import default_folder

#: A snap's wrapper takes seconds at its first start.
_VERSION_SECONDS = 10.0

_CHROMIUM, _FIREFOX, _WEBKIT = "chromium", "firefox", "webkit"

#: Name and engine of each program that PATH may have, the best supported first.
_PROGRAMS = {
    "google-chrome": ("Google Chrome", _CHROMIUM),
    "google-chrome-stable": ("Google Chrome", _CHROMIUM), "chrome": ("Google Chrome", _CHROMIUM),
    "chromium": ("Chromium", _CHROMIUM), "chromium-browser": ("Chromium", _CHROMIUM),
    "microsoft-edge": ("Microsoft Edge", _CHROMIUM),
    "microsoft-edge-stable": ("Microsoft Edge", _CHROMIUM), "msedge": ("Microsoft Edge", _CHROMIUM),
    "firefox": ("Firefox", _FIREFOX),
}  # fmt: skip
_MAC = {
    "Google Chrome.app/Contents/MacOS/Google Chrome": ("Google Chrome", _CHROMIUM),
    "Chromium.app/Contents/MacOS/Chromium": ("Chromium", _CHROMIUM),
    "Microsoft Edge.app/Contents/MacOS/Microsoft Edge": ("Microsoft Edge", _CHROMIUM),
    "Firefox.app/Contents/MacOS/firefox": ("Firefox", _FIREFOX),
    "Safari.app/Contents/MacOS/Safari": ("Safari", _WEBKIT),
}
_WINDOWS = {
    "Google/Chrome/Application/chrome.exe": ("Google Chrome", _CHROMIUM),
    "Chromium/Application/chrome.exe": ("Chromium", _CHROMIUM),
    "Microsoft/Edge/Application/msedge.exe": ("Microsoft Edge", _CHROMIUM),
    "Mozilla Firefox/firefox.exe": ("Firefox", _FIREFOX),
}

#: Variable that names the only browser to use.
BROWSER_VARIABLE = "ACCELBENCH_BROWSER"
#: Name of the downloaded browser, which engines/browser/assets.py describes.
FETCHED = "Chromium (fetched)"

#: Advice if the named browser does not exist.
NAME_ANOTHER = f"Name a browser's program, or none: unset {BROWSER_VARIABLE}"
#: Advice if there is no browser; the command reports where it can download one.
HAVE_ONE = (
    "Run: accelbench setup browser (fetches one on Linux on x86-64), or install Google Chrome,"
    " Chromium or Microsoft Edge."
)

NOT_ASKED = "not known until a page asks this browser for one"


@dataclass(frozen=True)
class Browser:
    """Browser that could be started."""

    name: str
    path: str
    engine: str


class Programs(Protocol):
    """Finder of programs, which tests replace."""

    def find(self) -> list[Browser]:
        """Return every known browser, the best supported first."""

    def explain_missing(self) -> str:
        """Return why the browser that the user named is not usable; "" if it is."""

    def version(self, browser: Browser) -> str:
        """Return a browser's version, or ""."""


@dataclass
class InstalledPrograms:
    """Programs of this machine."""

    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)
    system: str = sys.platform

    def find(self) -> list[Browser]:
        path = self._named_path()
        if path is not None:
            return [Browser(path.stem, str(path), _kind(path))] if _can_start(path) else []
        browsers: dict[str, Browser] = {}
        for path, (name, engine) in [*self._candidate_paths(), *self._downloaded_paths()]:
            # A later name of the same file (chromium-browser → chromium) is the same browser.
            if _can_start(path):
                browsers.setdefault(str(path.resolve()), Browser(name, str(path), engine))
        # The first one is used by default: an installed Firefox must not hide a downloaded one.
        return sorted(browsers.values(), key=lambda browser: browser.engine != _CHROMIUM)

    def explain_missing(self) -> str:
        path = self._named_path()
        if path is None or _can_start(path):
            return ""
        return f"there is no program at {path}, which {BROWSER_VARIABLE} or --browser names"

    def _named_path(self) -> Path | None:
        named = self.environment.get(BROWSER_VARIABLE)
        return Path(named).expanduser().absolute() if named else None

    def _candidate_paths(self) -> list[tuple[Path, tuple[str, str]]]:
        folders = [Path(p) for p in self.environment.get("PATH", "").split(os.pathsep) if p]
        suffix = ".exe" if self.system == "win32" else ""
        places = [
            (folder / f"{program}{suffix}", kind)
            for program, kind in _PROGRAMS.items()
            for folder in folders
        ]
        if self.system == "darwin":
            roots = [Path("/Applications"), Path.home() / "Applications"]
            places += [(root / inside, kind) for inside, kind in _MAC.items() for root in roots]
        if self.system == "win32":
            names = ("PROGRAMFILES", "PROGRAMFILES(X86)", "LOCALAPPDATA")
            roots = [Path(self.environment[n]) for n in names if n in self.environment]
            places += [(root / inside, kind) for inside, kind in _WINDOWS.items() for root in roots]
        return places

    def _downloaded_paths(self) -> list[tuple[Path, tuple[str, str]]]:
        folder = default_folder(self.environment) / "browser"
        builds = folder.glob("chromium-*/chromium")
        # Downloads of earlier releases stay in the cache, and are not used.
        newest_first = sorted(builds, key=_build_numbers, reverse=True)
        return [(path, (FETCHED, _CHROMIUM)) for path in newest_first]

    def version(self, browser: Browser) -> str:
        # On Windows the option for the version opens a window; Safari lacks the option.
        if self.system == "win32" or browser.engine == _WEBKIT:
            return ""
        return _version(browser.path)


def _build_numbers(program: Path) -> list[int]:
    return [int(number) for number in re.findall("[0-9]+", program.parent.name)]


def _can_start(program: Path) -> bool:
    return program.is_file() and os.access(program, os.X_OK)


_OTHERS = {"firefox": _FIREFOX, "safari": _WEBKIT}


def _kind(program: Path) -> str:
    name = program.name.lower()
    return next((kind for word, kind in _OTHERS.items() if word in name), _CHROMIUM)


@lru_cache
def _version(path: str) -> str:
    try:
        lines = run_command([path, "--version"], _VERSION_SECONDS).strip().splitlines()
    except HardwareError:
        return ""
    return lines[-1] if lines else ""


@dataclass(frozen=True)
class _Browsers:
    hardware: ClassVar[str]
    engines: ClassVar[tuple[str, ...]] = (_CHROMIUM, _FIREFOX, _WEBKIT)
    #: Details about the adapter; empty if it does not matter.
    asked: ClassVar[Mapping[str, str]] = {"adapter": NOT_ASKED}

    programs: Programs = field(default_factory=InstalledPrograms)

    def detect(self) -> list[Device | Absent]:
        if vain := self.programs.explain_missing():
            return [Absent(self.hardware, vain, NAME_ANOTHER)]
        browsers = self.programs.find()
        suitable = [browser for browser in browsers if browser.engine in self.engines]
        if not suitable:
            only = ", ".join(browser.name for browser in browsers)
            reason = f"no suitable browser found, only {only}" if browsers else "no browser found"
            return [Absent(self.hardware, reason, HAVE_ONE)]
        return [
            Device(
                hardware=self.hardware,
                name=browser.name,
                ordinal=ordinal,
                driver=self.programs.version(browser),
                details={"path": browser.path, "engine": browser.engine, **self.asked},
            )
            for ordinal, browser in enumerate(suitable)
        ]


class WasmDetector(_Browsers):
    """Detector of browsers, which all have WebAssembly with SIMD."""

    hardware = "wasm"
    colour = "#009c78"
    asked: ClassVar[Mapping[str, str]] = {}


class WebgpuDetector(_Browsers):
    """Detector of browsers that may have WebGPU; without a GPU they use a software adapter."""

    hardware = "webgpu"
    colour = "#9c6024"


class WebnnDetector(_Browsers):
    """Detector of browsers that may have WebNN; many builds of Chromium have no backend for it."""

    hardware = "webnn"
    colour = "#c048c0"
    engines = (_CHROMIUM,)

    def detect(self) -> list[Device | Absent]:
        # The downloaded one has a backend, which many others lack.
        return sorted(
            super().detect(), key=lambda dev: not (isinstance(dev, Device) and dev.name == FETCHED)
        )

"""Browsers on this machine, in which WebGPU, WebNN and WebAssembly run.

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

#: What PATH may have: program → (name, engine), the best supported first.
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

#: The one browser that is to be used, and no other.
BROWSER_VARIABLE = "ACCELBENCH_BROWSER"
#: As the browser that was fetched is called; what it is, is said in runtimes/browser/assets.py.
FETCHED = "Chromium (fetched)"

#: What to do where the browser that was named is not there.
NAME_ANOTHER = f"Name a browser's program, or none: unset {BROWSER_VARIABLE}"
#: What to do where there is none; the command itself says where it can fetch one.
HAVE_ONE = (
    "Run: accelbench setup browser (fetches one on Linux on x86-64), or install Google Chrome,"
    " Chromium or Microsoft Edge."
)

NOT_ASKED = "not known until a page asks this browser for one"


@dataclass(frozen=True)
class Browser:
    """A browser that could be started."""

    name: str
    path: str
    engine: str


class Programs(Protocol):
    """Finds programs; replaced by a record in tests."""

    def find(self) -> list[Browser]:
        """Return every known browser, the best supported first."""

    def named_in_vain(self) -> str:
        """Return what is wrong with the browser that the user named, or ""."""

    def version(self, browser: Browser) -> str:
        """Return a browser's version, or ""."""


@dataclass
class InstalledPrograms:
    """The programs of this machine."""

    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)
    system: str = sys.platform

    def find(self) -> list[Browser]:
        path = self._named()
        if path is not None:
            return [Browser(path.stem, str(path), _kind(path))] if _can_start(path) else []
        browsers: dict[str, Browser] = {}
        for path, (name, engine) in [*self._places(), *self._fetched()]:
            # A later name of the same file (chromium-browser → chromium) is the same browser.
            if _can_start(path):
                browsers.setdefault(str(path.resolve()), Browser(name, str(path), engine))
        # Who names none gets the first: an installed Firefox must not hide one that was fetched.
        return sorted(browsers.values(), key=lambda browser: browser.engine != _CHROMIUM)

    def named_in_vain(self) -> str:
        path = self._named()
        if path is None or _can_start(path):
            return ""
        return f"there is no program at {path}, which {BROWSER_VARIABLE} or --browser names"

    def _named(self) -> Path | None:
        named = self.environment.get(BROWSER_VARIABLE)
        return Path(named).expanduser().absolute() if named else None

    def _places(self) -> list[tuple[Path, tuple[str, str]]]:
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

    def _fetched(self) -> list[tuple[Path, tuple[str, str]]]:
        folder = default_folder(self.environment) / "browser"
        builds = folder.glob("chromium-*/chromium")
        # Those that earlier releases fetched stay in the cache, and are not the one that is meant.
        newest_first = sorted(builds, key=_build_numbers, reverse=True)
        return [(path, (FETCHED, _CHROMIUM)) for path in newest_first]

    def version(self, browser: Browser) -> str:
        # On Windows asking for the version opens a window; Safari does not know the question.
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
    #: What may be known of a browser's adapter; none where it does not matter.
    asked: ClassVar[Mapping[str, str]] = {"adapter": NOT_ASKED}

    programs: Programs = field(default_factory=InstalledPrograms)

    def detect(self) -> list[Device | Absent]:
        if vain := self.programs.named_in_vain():
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
    """Finds browsers: every one of today has WebAssembly with SIMD."""

    hardware = "wasm"
    colour = "#009c78"
    asked: ClassVar[Mapping[str, str]] = {}


class WebgpuDetector(_Browsers):
    """Finds browsers that may have WebGPU; without a GPU they answer with a software adapter."""

    hardware = "webgpu"
    colour = "#9c6024"


class WebnnDetector(_Browsers):
    """Finds browsers that may have WebNN; many builds of Chromium have no backend for it."""

    hardware = "webnn"
    colour = "#c048c0"
    engines = (_CHROMIUM,)

    def detect(self) -> list[Device | Absent]:
        # The one that was fetched has a backend, which many others have not.
        return sorted(
            super().detect(), key=lambda dev: not (isinstance(dev, Device) and dev.name == FETCHED)
        )

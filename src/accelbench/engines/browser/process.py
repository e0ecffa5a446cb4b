"""A browser process: started for one worker, measured from outside, gone with the worker.

A small process next to it ends it and all that it has started when the worker is killed
(`core/processes.py`). The end of a run or the next run removes its profile if the worker could not.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from accelbench.core import processes
from accelbench.core.errors import CaseError, UnsupportedError
from accelbench.hardware.cpu import detect_container
from accelbench.store.files import Scratch

#: Of every browser: no first-run pages, no calls home, no slowing of what is not looked at.
_ALWAYS = (
    "--headless=new", "--no-first-run", "--no-default-browser-check", "--metrics-recording-only",
    "--disable-background-networking", "--disable-background-timer-throttling",
    "--disable-backgrounding-occluded-windows", "--disable-renderer-backgrounding",
    "--disable-breakpad", "--disable-component-update", "--disable-default-apps",
    "--disable-domain-reliability", "--disable-extensions", "--disable-sync", "--mute-audio",
    "--password-store=basic", "--use-mock-keychain",
    # Nothing is looked up, so nothing is asked of anybody but this machine.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)  # fmt: skip
_WEBNN = "WebMachineLearningNeuralNetwork"
#: What a provider needs switched on where it is not on by default.
SWITCHES = {
    "wasm": (),
    "webgpu": ("--enable-unsafe-webgpu", "--ignore-gpu-blocklist"),
    "webnn": (f"--enable-features={_WEBNN}",),
}
_LISTS = ("--enable-features", "--disable-features")
_NO_SANDBOX, _NO_NAMESPACES = "--no-sandbox", "No usable sandbox"
_SWITCHED_OFF = "--option browser.switches=--no-sandbox measures without it."
_PATIENCE = 5.0


@dataclass(frozen=True)
class Started:
    """How a browser was started."""

    switches: Sequence[str]
    sandboxed: bool
    without: str = ""  # why there is no sandbox, as a sentence


class BrowserProcess:
    """One running browser."""

    def __init__(self, program: Path, provider: str, extra: str, address: str) -> None:
        own = merged([*SWITCHES[provider], *parted(extra)])
        without = "" if _NO_SANDBOX not in own else _ASKED
        without = without or unsandboxed(program)
        self._closed = False
        self._cpu_seconds: dict[tuple[int, float], float] = {}
        self._scratch = Scratch()
        self._log = self._scratch.folder / "browser.log"
        profile = f"--user-data-dir={self._scratch.folder / 'profile'}"
        self._program = program
        self._words = [*_ALWAYS, *own, profile, address]
        self.started = Started(tuple(own), not without, without)
        try:
            self._start()
        except OSError as error:
            self._scratch.close()
            raise CaseError(
                "browser_ended",
                f"the browser {program} cannot be started: {error}",
                "Use another browser: --browser PATH",
            ) from error

    def _start(self) -> None:
        loose = [] if self.started.sandboxed else [_NO_SANDBOX]
        with self._log.open("wb") as log:
            self._process = processes.start(
                [str(self._program), *loose, *self._words],
                log,
                environment=_environment(self._program),
            )

    def refuse_without_sandbox(self) -> None:
        """Raise UnsupportedError if it ended because the system forbids what a sandbox is made of.

        A sandbox is never given up unasked: the page is our own, but a model may be
        somebody else's.
        """
        if self.started.sandboxed and _NO_NAMESPACES in self._log.read_text(errors="replace"):
            raise UnsupportedError(
                "no_sandbox",
                f"this system forbids the user namespaces that the sandbox of {self._program} is"
                " made of",
                "Allow them: sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0 on Ubuntu,"
                " kernel.unprivileged_userns_clone=1 on Debian, a seccomp profile that has them in"
                f" a container. Or: {_SWITCHED_OFF}",
            )

    @property
    def folder(self) -> Path:
        return self._scratch.folder

    @property
    def ended(self) -> int | None:
        return self._process.poll()

    def ended_within(self, seconds: float) -> bool:
        with contextlib.suppress(processes.TimeoutExpired):
            self._process.wait(seconds)
        return self.ended is not None

    def last_words(self, lines: int = 3) -> str:
        text = self._log.read_text(errors="replace").strip().splitlines()
        return " | ".join(line.strip() for line in text[-lines:])

    def processes(self) -> list[psutil.Process]:
        try:
            return psutil.Process(self._process.pid).children(recursive=True)
        except psutil.NoSuchProcess:
            return []

    def renderers(self) -> list[psutil.Process]:
        page_processes = []
        for process in self.processes():
            with contextlib.suppress(psutil.Error):
                if "--type=renderer" in process.cmdline():
                    page_processes.append(process)
        return page_processes

    def gone_within(self, some: Collection[psutil.Process], seconds: float) -> bool:
        until = time.monotonic() + seconds
        while any(map(_alive, some)):
            if time.monotonic() > until:
                return False
            time.sleep(0.005)
        return True

    def cpu_seconds(self) -> float:
        """Return processor time of all of it; of processes that have ended, what was last seen."""
        for process in self.processes():
            with contextlib.suppress(psutil.Error):
                times = process.cpu_times()
                self._cpu_seconds[process.pid, process.create_time()] = times.user + times.system
        return sum(self._cpu_seconds.values())

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        all_of_it = self.processes()
        for process in all_of_it:
            with contextlib.suppress(psutil.Error):
                process.kill()
        processes.kill_group(self._process)
        with contextlib.suppress(processes.TimeoutExpired):
            self._process.wait(_PATIENCE)
        self.gone_within(all_of_it, _PATIENCE)
        self._scratch.close()


def parted(switches: str) -> list[str]:
    """Split what somebody typed as switches, as a shell would."""
    try:
        return shlex.split(switches)
    except ValueError as error:
        raise UnsupportedError(
            "option", f"browser.switches cannot be read: {error}", "Quote it as for a shell."
        ) from error


_ASKED = "The browser ran without its sandbox, as its switches said."


def is_root() -> bool:
    """Return whether this is root's process: Chromium makes no sandbox for root."""
    return hasattr(os, "geteuid") and os.geteuid() == 0


def unsandboxed(program: Path) -> str:
    """Return why a browser has to do without its sandbox, as a sentence; "" if it has one.

    Root in a container is mostly the only user there is, and the container is a wall as well.
    Root outside a container, who can be another user, is refused.
    """
    if not is_root():
        return ""
    if where := detect_container():
        return f"The browser ran without its sandbox: root in a container gets none ({where})."
    raise UnsupportedError(
        "no_sandbox",
        f"{program} has no sandbox where root starts it, and nothing says that this is a container",
        f"Run as a normal user. {_SWITCHED_OFF}",
    )


def merged(switches: Sequence[str]) -> list[str]:
    """Join lists of features: of several, a browser hears the last alone."""
    joined: dict[str, str] = {}
    for switch in switches:
        name, _, value = switch.partition("=")
        key = name if name in _LISTS else switch
        joined[key] = f"{joined[key]},{value}" if key in _LISTS and key in joined else switch
    return list(joined.values())


def _alive(process: psutil.Process) -> bool:
    # One that only waits to be reaped has let go of all.
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def _environment(program: Path) -> dict[str, str]:
    # A system may have none of the libraries that were fetched next to the browser.
    environment = dict(os.environ)
    if (program.parent / "libnss3.so").exists():
        folders = [str(program.parent), environment.get("LD_LIBRARY_PATH", "")]
        environment["LD_LIBRARY_PATH"] = os.pathsep.join(filter(None, folders))
    return environment

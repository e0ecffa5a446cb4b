"""Finding what is registered: our own and what other packages bring, by entry point.

Runtimes and hardware detectors are named in package metadata and imported only
when asked for, so that looking at the list costs nothing. Code of other packages is contained:
it cannot end the program, and what it prints goes to standard error.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator
from functools import cache, lru_cache
from importlib.metadata import EntryPoint, PackageNotFoundError, entry_points, version
from typing import Any

from accelbench.core.errors import SurroundingsError
from accelbench.core.protocols import RuntimeInfo
from accelbench.core.safe_text import in_quotes

_log = logging.getLogger(__name__)

ENGINES = "accelbench.engines"
HARDWARE = "accelbench.hardware"
#: The kind of plugin in a group, and the attributes that accelbench uses of each.
_KINDS = {ENGINES: "engine", HARDWARE: "hardware"}
_REQUIRED = {ENGINES: ("info", "probe", "supports", "clock", "open"), HARDWARE: ("detect",)}
_OWN = "accelbench."
_LONGEST_MESSAGE = 300
_warned: set[str] = set()
#: How folders end that say what a package registers.
_ABOUT = (".dist-info", ".egg-info")


def version_of(package: str) -> str | None:
    """Return the version of an installed package, or None."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def registered(group: str) -> dict[str, EntryPoint]:
    """Entry points of a group by name; a name registered twice is refused."""
    return dict(_registered(group, _installed()))


def _installed() -> tuple[tuple[str, int], ...]:
    """Where packages are installed, and when one was last: their folders change then."""
    return tuple((path, _changed(path)) for path in sys.path)


def _changed(path: str) -> int:
    """When a folder of packages was last changed; others, such as people work in, change often."""
    path = path or "."
    try:
        packages = any(name.endswith(_ABOUT) for name in os.listdir(path))  # noqa: PTH208 - quick
        return os.stat(path).st_mtime_ns if packages else 0  # noqa: PTH116 - as quick
    except NotADirectoryError:  # packed into a file
        return os.stat(path).st_mtime_ns  # noqa: PTH116
    except OSError:
        return 0


@lru_cache(maxsize=8)
def _registered(group: str, _: object) -> dict[str, EntryPoint]:
    """The same, by what is installed: the files of 200 packages are read in 20 ms."""
    points: dict[str, EntryPoint] = {}
    for point in entry_points(group=group):
        other = points.get(point.name)
        if other is not None and other.value != point.value:
            raise SurroundingsError(
                f"Two packages register {in_quotes(point.name)} as {group}:"
                f" {other.value} and {point.value}.",
                "Uninstall one of them.",
            )
        points[point.name] = point
    return points


@cache
def own_runtimes() -> tuple[str, ...]:
    """This program's own runtimes; others come from other packages, with reasons of their own."""
    return tuple(n for n, point in registered(ENGINES).items() if point.value.startswith(_OWN))


class PluginError(SurroundingsError):
    """A plugin that fails to import or to construct, or that lacks what its group requires."""

    def __init__(self, point: EntryPoint, error: BaseException) -> None:
        self.package = point.dist.name if point.dist else point.value.partition(":")[0]
        text = " ".join(f"{type(error).__name__}: {error}".split())
        self.cause = text[:_LONGEST_MESSAGE].rstrip(".: ")
        kind = _KINDS.get(point.group, point.group)
        super().__init__(
            f"The {kind} plugin {in_quotes(point.name)} of the package {self.package} cannot be"
            f" used: {self.cause}.",
            f"Update, reinstall or uninstall {self.package}; --debug shows where it failed.",
        )


def load(point: EntryPoint) -> Any:
    """Return the registered object, called if it is a class or a factory; or raise PluginError."""
    with contained(point):
        made = point.load()
        made = made() if callable(made) else made
        lacks = [name for name in _REQUIRED.get(point.group, ()) if not hasattr(made, name)]
        if lacks:
            raise AttributeError(f"it has no {', '.join(lacks)}")
        if point.group == ENGINES and not isinstance(made.info, RuntimeInfo):
            raise TypeError("its info is not a RuntimeInfo")
        return made


def load_all(group: str) -> Iterator[tuple[str, Any]]:
    """Yield every registered object by name; one that cannot be used as its PluginError."""
    for name, point in sorted(registered(group).items()):
        try:
            yield name, load(point)
        except PluginError as error:
            yield name, error


@contextlib.contextmanager
def contained(point: EntryPoint) -> Iterator[None]:
    """Raise PluginError for whatever a plugin's code raises, SystemExit included.

    Standard output becomes standard error meanwhile: it may be one JSON document. A Ctrl-C of the
    user stays a KeyboardInterrupt. Our own code is trusted with both.
    """
    if point.value.startswith(_OWN):
        try:
            yield
        except Exception as error:
            raise PluginError(point, error) from error
        return
    with _LOCK, _interrupts_noted() as interrupts, _output_as_errors():
        try:
            yield
        except BaseException as error:
            if interrupts:
                raise
            raise PluginError(point, error) from error


def was_written(text: str) -> bool:
    """Return whether `warn_once` has written this line."""
    return text in _warned


def warn_once(text: str, error: PluginError | None = None) -> None:
    """Write one line about a plugin that was not named; several lists meet the same one."""
    if text not in _warned:
        _warned.add(text)
        _log.warning("%s", text)
        _log.debug("the plugin failed here", exc_info=error)


#: Standard output is the whole process's: two threads must not exchange it at the same time.
_LOCK = threading.RLock()


@contextlib.contextmanager
def _interrupts_noted() -> Iterator[list[int]]:
    """Collect the user's interrupts, which a plugin's own KeyboardInterrupt resembles."""
    interrupts: list[int] = []
    before = signal.getsignal(signal.SIGINT)
    main = threading.current_thread() is threading.main_thread()
    if not main or not callable(before):
        yield interrupts
        return

    def note(number: int, frame: Any) -> None:
        interrupts.append(number)
        before(number, frame)

    signal.signal(signal.SIGINT, note)
    try:
        yield interrupts
    finally:
        signal.signal(signal.SIGINT, before)


@contextlib.contextmanager
def _output_as_errors() -> Iterator[None]:
    try:
        sys.stdout.flush()
        kept = os.dup(1)
        os.dup2(2, 1)
    except (OSError, ValueError, AttributeError):  # no such streams: nothing can be printed
        with contextlib.redirect_stdout(sys.stderr):
            yield
        return
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    finally:
        _flush_c_streams()
        os.dup2(kept, 1)
        os.close(kept)


def _flush_c_streams() -> None:
    """Write out what C code printed: into a pipe or file it waits until the program ends."""
    with contextlib.suppress(Exception):
        import ctypes

        ctypes.CDLL(None).fflush(None)

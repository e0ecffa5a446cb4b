"""Registry of engines and hardware detectors, from this and other packages, by entry point.

They are named in package metadata and imported only on use, so listing them is cheap. Code of other
packages is contained: it cannot end the program, and its output goes to standard error.
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
#: The kind of plugin in each group, and the attributes that it must have.
_KINDS = {ENGINES: "engine", HARDWARE: "hardware"}
_REQUIRED = {ENGINES: ("info", "probe", "supports", "clock", "open"), HARDWARE: ("detect",)}
_OWN = "accelbench."
_LONGEST_MESSAGE = 300
_warned: set[str] = set()
#: Suffixes of folders with the metadata of packages.
_ABOUT = (".dist-info", ".egg-info")


def version_of(package: str) -> str | None:
    """Return the version of an installed package, or None."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def find_entry_points(group: str) -> dict[str, EntryPoint]:
    """Return the entry points of a group by name; raise if a name is registered twice."""
    return dict(_read_entry_points(group, _installation_state()))


def _installation_state() -> tuple[tuple[str, int], ...]:
    """Return the folders with packages and when each was changed, as a cache key."""
    return tuple((path, _changed_at_ns(path)) for path in sys.path)


def _changed_at_ns(path: str) -> int:
    """Return when a folder of packages was changed; 0 for other folders, which change often."""
    path = path or "."
    try:
        packages = any(name.endswith(_ABOUT) for name in os.listdir(path))  # noqa: PTH208 - quick
        return os.stat(path).st_mtime_ns if packages else 0  # noqa: PTH116 - as quick
    except NotADirectoryError:  # packed into a file
        return os.stat(path).st_mtime_ns  # noqa: PTH116
    except OSError:
        return 0


@lru_cache(maxsize=8)
def _read_entry_points(group: str, _: object) -> dict[str, EntryPoint]:
    """Return entry points, cached by installation: reading 200 packages takes 20 ms."""
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
    """Return the built-in engines; engines of other packages have reasons of their own."""
    return tuple(
        n for n, point in find_entry_points(ENGINES).items() if point.value.startswith(_OWN)
    )


class PluginError(SurroundingsError):
    """Plugin that fails to import or construct, or that lacks a required attribute."""

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
    with contain_errors(point):
        made = point.load()
        made = made() if callable(made) else made
        lacks = [name for name in _REQUIRED.get(point.group, ()) if not hasattr(made, name)]
        if lacks:
            raise AttributeError(f"it has no {', '.join(lacks)}")
        if point.group == ENGINES and not isinstance(made.info, RuntimeInfo):
            raise TypeError("its info is not a RuntimeInfo")
        return made


def load_all(group: str) -> Iterator[tuple[str, Any]]:
    """Yield every registered object by name, or the PluginError of one that fails."""
    for name, point in sorted(find_entry_points(group).items()):
        try:
            yield name, load(point)
        except PluginError as error:
            yield name, error


@contextlib.contextmanager
def contain_errors(point: EntryPoint) -> Iterator[None]:
    """Raise PluginError for every exception of a plugin's code, SystemExit included.

    Standard output becomes standard error meanwhile, because it may be one JSON document. A Ctrl-C
    of the user stays a KeyboardInterrupt. Our own code is trusted with both.
    """
    if point.value.startswith(_OWN):
        try:
            yield
        except Exception as error:
            raise PluginError(point, error) from error
        return
    with _LOCK, _record_interrupts() as interrupts, _redirect_output():
        try:
            yield
        except BaseException as error:
            if interrupts:
                raise
            raise PluginError(point, error) from error


def has_warned(text: str) -> bool:
    """Return whether `warn_once` has written this line."""
    return text in _warned


def warn_once(text: str, error: PluginError | None = None) -> None:
    """Log a warning about a plugin once, although several lists meet it."""
    if text not in _warned:
        _warned.add(text)
        _log.warning("%s", text)
        _log.debug("the plugin failed here", exc_info=error)


#: Standard output belongs to the process: two threads must not replace it at the same time.
_LOCK = threading.RLock()


@contextlib.contextmanager
def _record_interrupts() -> Iterator[list[int]]:
    """Record the user's interrupts, to distinguish them from a plugin's own KeyboardInterrupt."""
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
def _redirect_output() -> Iterator[None]:
    try:
        sys.stdout.flush()
        kept = os.dup(1)
        os.dup2(2, 1)
    except (OSError, ValueError, AttributeError):  # no streams, so nothing is printed
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
    """Flush the buffers of C code, which otherwise wait until the program ends."""
    with contextlib.suppress(Exception):
        import ctypes

        ctypes.CDLL(None).fflush(None)

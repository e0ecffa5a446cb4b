"""Finding what is registered: our own and what other packages bring, by entry point.

Runtimes and hardware detectors are named in package metadata and imported only
when asked for, so that looking at the list costs nothing.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from functools import cache, lru_cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from accelbench.core.errors import SurroundingsError
from accelbench.core.visible import in_quotes

RUNTIMES = "accelbench.runtimes"
HARDWARE = "accelbench.hardware"
#: How folders end that say what a package registers.
_ABOUT = (".dist-info", ".egg-info")


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
    ours = f"{RUNTIMES}."
    return tuple(n for n, point in registered(RUNTIMES).items() if point.value.startswith(ours))


def load(point: EntryPoint) -> Any:
    """The registered object: a class or factory is called without arguments."""
    made = point.load()
    return made() if callable(made) else made


def load_all(group: str) -> Iterator[tuple[str, Any]]:
    """Every registered object; one that cannot be imported is handed back as its exception."""
    for name, point in sorted(registered(group).items()):
        try:
            yield name, load(point)
        except Exception as error:
            yield name, error

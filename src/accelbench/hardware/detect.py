"""Every platform, present or absent: asks each registered detector."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.metadata import EntryPoint
from typing import Any

from accelbench.core.errors import UsageError
from accelbench.core.near import meant
from accelbench.core.plugins import HARDWARE as GROUP
from accelbench.core.plugins import load, registered
from accelbench.core.protocols import Absent, Device
from accelbench.core.visible import in_quotes
from accelbench.core.vocabulary import HARDWARE
from accelbench.hardware.common import log


def known() -> tuple[str, ...]:
    """Names of all registered platforms: the design's order, then plugins' by name."""
    return _ordered(registered(GROUP))


def _ordered(names: Iterable[str]) -> tuple[str, ...]:
    have = set(names)
    own = [name for name in HARDWARE if name in have]
    return (*own, *sorted(have - set(own)))


def detect_all() -> dict[str, list[Device | Absent]]:
    """What every registered detector finds, platform by platform."""
    points = registered(GROUP)
    return {name: _detect(name, points[name]) for name in _ordered(points)}


class Detected(Mapping[str, Sequence[Device | Absent]]):
    """What every registered detector finds; each is asked when its platform is looked up.

    Asking some takes a process of its own: OpenVINO's devices a third of a second.
    """

    def __init__(self) -> None:
        self._points = registered(GROUP)
        self._found: dict[str, list[Device | Absent]] = {}

    def __getitem__(self, hardware: str) -> list[Device | Absent]:
        if hardware not in self._found:
            self._found[hardware] = _detect(hardware, self._points[hardware])
        return self._found[hardware]

    def __contains__(self, hardware: object) -> bool:
        """Whether anybody registered it, which is known without asking."""
        return hardware in self._points

    def __iter__(self) -> Iterator[str]:
        return iter(_ordered(self._points))

    def __len__(self) -> int:
        return len(self._points)


def detect(hardware: str) -> list[Device | Absent]:
    """What one platform's detector finds. Raises UsageError for a name that nobody registered."""
    point = registered(GROUP).get(hardware)
    if point is None:
        advice = meant(hardware, known())
        raise UsageError(f"There is no hardware named {in_quotes(hardware)}.", advice)
    return _detect(hardware, point)


def _detect(hardware: str, point: EntryPoint) -> list[Device | Absent]:
    try:
        detector = load(point)
    except Exception as error:
        return [_failed(hardware, "cannot be imported", point.value, error)]
    return ask(hardware, detector)


def ask(hardware: str, detector: Any) -> list[Device | Absent]:
    """A detector's answer; one that raises or says nothing becomes an Absent with that reason."""
    try:
        answers = list(detector.detect())
    except Exception as error:
        return [_failed(hardware, "failed", type(detector).__name__, error)]
    if not answers:
        return [
            Absent(hardware, "its detector gave no answer", "Report it to the detector's author.")
        ]
    for answer in answers:
        log.debug("%s: %s", hardware, answer)
    return answers


def _failed(hardware: str, what: str, who: str, error: Exception) -> Absent:
    log.debug("detector of %s %s", hardware, what, exc_info=error)
    message = " ".join(str(error).split()) or "no message"
    return Absent(
        hardware,
        f"its detector {what}: {type(error).__name__}: {message}",
        f"Run again with --debug and report what it shows of {who}.",
    )

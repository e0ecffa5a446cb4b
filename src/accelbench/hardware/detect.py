"""All platforms, present or absent, and the names that people type for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib.metadata import EntryPoint
from typing import Any, TypeGuard

from accelbench.core.device_facts import find_documented_device
from accelbench.core.errors import SurroundingsError, UsageError
from accelbench.core.formatting import suggest
from accelbench.core.plugins import HARDWARE as GROUP
from accelbench.core.plugins import PluginError, contain_errors, find_entry_points, load, warn_once
from accelbench.core.protocols import Absent, Device
from accelbench.core.safe_text import in_quotes
from accelbench.core.vocabulary import HARDWARE
from accelbench.hardware.common import log

_BROKEN = "broken"


def list_platforms() -> tuple[str, ...]:
    """Return the names of all registered platforms: the built-in order, then plugins' by name."""
    return _order_names(find_entry_points(GROUP))


def _order_names(names: Iterable[str]) -> tuple[str, ...]:
    have = set(names)
    own = [name for name in HARDWARE if name in have]
    return (*own, *sorted(have - set(own)))


def detect_all() -> dict[str, list[Device | Absent]]:
    """Return the answers of every registered detector, by platform."""
    points = find_entry_points(GROUP)
    return {name: _detect(name, points[name]) for name in _order_names(points)}


class LazyInventory(Mapping[str, Sequence[Device | Absent]]):
    """Devices by platform; each detector runs when its platform is looked up.

    A failing detector is reported in one line on standard error. Some need a process of their own:
    OpenVINO's takes a third of a second.
    """

    def __init__(self) -> None:
        self._points = find_entry_points(GROUP)
        self._found: dict[str, list[Device | Absent]] = {}

    def __getitem__(self, hardware: str) -> list[Device | Absent]:
        if hardware not in self._found:
            answers = self._found[hardware] = _detect(hardware, self._points[hardware])
            if is_broken(first := answers[0]):
                warn_once(f"{hardware}: {first.reason}. {first.remedy}")
        return self._found[hardware]

    def __contains__(self, hardware: object) -> bool:
        return hardware in self._points

    def __iter__(self) -> Iterator[str]:
        return iter(_order_names(self._points))

    def __len__(self) -> int:
        return len(self._points)


def detect(hardware: str) -> list[Device | Absent]:
    """Return one platform's devices; raise UsageError for an unregistered name."""
    point = find_entry_points(GROUP).get(hardware)
    if point is None:
        advice = suggest(hardware, list_platforms())
        raise UsageError(f"There is no hardware named {in_quotes(hardware)}.", advice)
    return _detect(hardware, point)


def is_broken(answer: Device | Absent) -> TypeGuard[Absent]:
    """Return whether the detector itself failed, rather than found no device."""
    return isinstance(answer, Absent) and bool(answer.details.get(_BROKEN))


def _detect(hardware: str, point: EntryPoint) -> list[Device | Absent]:
    try:
        detector = load(point)
        with contain_errors(point):
            return run_detector(hardware, detector)
    except PluginError as error:
        log.debug("detector of %s", hardware, exc_info=error)
        reason = f"its detector, of the package {error.package}, cannot be used: {error.cause}"
        return [Absent(hardware, reason, error.advice, {_BROKEN: True})]


def run_detector(hardware: str, detector: Any) -> list[Device | Absent]:
    """Return a detector's answers; one that raises or returns nothing becomes an Absent."""
    try:
        answers = list(detector.detect())
        strange = next((one for one in answers if not isinstance(one, Device | Absent)), None)
        if strange is not None:
            raise TypeError(f"{type(strange).__name__} is neither a Device nor an Absent")
    except Exception as error:
        log.debug("detector of %s failed", hardware, exc_info=error)
        message = " ".join(str(error).split()) or "no message"
        reason = f"its detector failed: {type(error).__name__}: {message}"
        remedy = f"Run again with --debug and report what it shows of {type(detector).__name__}."
        return [Absent(hardware, reason, remedy, {_BROKEN: True})]
    if not answers:
        remedy = "Report it to the detector's author."
        return [Absent(hardware, "its detector gave no answer", remedy, {_BROKEN: True})]
    for answer in answers:
        log.debug("%s: %s", hardware, answer)
    return answers


GPU = "gpu"
#: Platforms of GPUs, in the order of the search.
GPU_PLATFORMS = ("cuda", "rocm", "mps", "directml")
#: Intel's GPUs are devices of another platform.
_INTEL_GPU = ("openvino", "openvino:gpu")

Detect = Callable[[str], Sequence[Device | Absent]]


def parse_platform(word: str, detect: Detect = detect) -> str:
    """Return the checked platform that was typed; a colon and a device may follow.

    `gpu` is the platform of the GPU that is present, `gpu:1` its second. The name of a documented
    device is a device of its platform.
    """
    name, colon, device = word.lower().partition(":")
    if name == GPU:
        return f"{find_gpu(detect)}{colon}{device}"
    if not colon and name not in list_platforms() and (place := find_documented_device(name)):
        return place
    refuse_unknown_platform(word)
    return word.lower()


def refuse_unknown_platform(word: str) -> None:
    """Raise UsageError for a name without a platform; nothing is detected."""
    name, names = word.lower().partition(":")[0], list_platforms()
    if name not in (GPU, *names):
        raise UsageError(f"There is no hardware named {in_quotes(word)}.", suggest(name, names))


def stored_platforms(word: str) -> tuple[str, ...]:
    """Return the platforms of a word among stored results: `gpu` for all platforms of GPUs.

    A device after a colon stays as it was typed.
    """
    name, colon, device = word.partition(":")
    names = GPU_PLATFORMS if name.lower() == GPU else (name.lower(),)
    return tuple(f"{name}{colon}{device}" for name in names)


def find_gpu(detect: Detect = detect) -> str:
    """Return the platform of the GPU that is present, or raise SurroundingsError."""
    reasons = []
    for name in GPU_PLATFORMS:
        answers = detect(name)
        if any(isinstance(answer, Device) for answer in answers):
            return name
        reasons += [f"{name}: {answer.reason}" for answer in answers if isinstance(answer, Absent)]
    platform, intels = _INTEL_GPU
    if any(isinstance(answer, Device) and answer.unit == GPU for answer in detect(platform)):
        return intels
    raise SurroundingsError(
        f"No GPU is here. {'; '.join(reasons)}.", f"accelbench hardware {GPU} says what brings one."
    )

"""Platforms by the names that people type: checked, and `gpu` for the one that is here."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from accelbench.core.errors import SurroundingsError, UsageError
from accelbench.core.near import meant
from accelbench.core.protocols import Absent, Device
from accelbench.core.visible import in_quotes
from accelbench.hardware.detect import detect, known

GPU = "gpu"
#: The platforms whose devices are GPUs, in the order in which one is looked for.
GPU_PLATFORMS = ("cuda", "rocm", "mps", "directml")
#: Intel's are devices of another platform.
_INTELS = ("openvino", "openvino:gpu")

Detect = Callable[[str], Sequence[Device | Absent]]


def platform_named(word: str, detect: Detect = detect) -> str:
    """A platform as it was typed, checked; what follows a colon is a device of it.

    Args:
        word: what was typed. `gpu` is the platform of the GPU that is here, `gpu:1` its second.
        detect: finds a platform's devices.

    Raises:
        UsageError: there is no such platform.
        SurroundingsError: a GPU is asked for, and there is none.
    """
    name, colon, device = word.lower().partition(":")
    if name == GPU:
        return f"{gpu_here(detect)}{colon}{device}"
    refuse_unknown_platform(word)
    return word.lower()


def refuse_unknown_platform(word: str) -> None:
    """Raise UsageError for a name that no platform has; nothing is detected."""
    name, names = word.lower().partition(":")[0], known()
    if name not in (GPU, *names):
        raise UsageError(f"There is no hardware named {in_quotes(word)}.", meant(name, names))


def platforms_named(word: str) -> tuple[str, ...]:
    """What a word stands for among stored results: `gpu` for all platforms of GPUs.

    What follows a colon is a device, a part of its name or all of it, and stays as it was typed.
    """
    name, colon, device = word.partition(":")
    names = GPU_PLATFORMS if name.lower() == GPU else (name.lower(),)
    return tuple(f"{name}{colon}{device}" for name in names)


def gpu_here(detect: Detect = detect) -> str:
    """The platform of the GPU that is here.

    Raises:
        SurroundingsError: none is.
    """
    reasons = []
    for name in GPU_PLATFORMS:
        answers = detect(name)
        if any(isinstance(answer, Device) for answer in answers):
            return name
        reasons += [f"{name}: {answer.reason}" for answer in answers if isinstance(answer, Absent)]
    platform, intels = _INTELS
    if any(isinstance(answer, Device) and answer.unit == GPU for answer in detect(platform)):
        return intels
    raise SurroundingsError(
        f"No GPU is here. {'; '.join(reasons)}.", f"accelbench hardware {GPU} says what brings one."
    )

"""Made-up machines for the doctor to look at."""

from __future__ import annotations

from dataclasses import replace

from accelbench.core.protocols import RuntimeInfo
from accelbench.hardware.doctor.world import Finding, World
from accelbench.hardware.machine import CpuSeconds, MachineSnapshot

QUIET = MachineSnapshot(
    taken_ns=0,
    cpus=8,
    cpu=CpuSeconds(1.0, 0.1, 0.0),
    load=(0.1, 0.1, 0.1),
    memory_available=2**34,
    swapped_bytes=0,
    governor="performance",
)
OUR_NEEDS = ["numpy<3,>=2.0", "torch<3,>=2.6; extra == 'torch'", "jax<0.12,>=0.7; extra == 'jax'"]


class Records:
    """Files by path."""

    def __init__(self, **texts):
        self._texts = {key.replace("__", "/"): text for key, text in texts.items()}

    def text(self, path):
        return next((t for key, t in self._texts.items() if path.endswith(key)), None)

    def names(self, path):
        return []


class NoPrograms:
    def find(self):
        return []

    def explain_missing(self):
        return ""

    def version(self, browser):
        return ""


class FakeRuntime:
    """A runtime's card and nothing behind it."""

    def __init__(self, **info):
        said = {"name": "fake", "hardware": ("cpu",), "package": "fake", "extra": "fake", **info}
        self.info = RuntimeInfo(**said)

    def probe(self):
        raise AssertionError("an engine was asked in this process")

    supports = clock = open = probe


def answering(text):
    return lambda args, seconds: text


def raising(error):
    def command(args, seconds):
        raise error

    return command


def installed(world: World, needs: dict[str, list[str]] | None = None, **versions: str) -> World:
    have = {"numpy": "2.4.6", **{k.replace("_", "-"): v for k, v in versions.items()}}
    asked = {"accelbench": OUR_NEEDS, **(needs or {})}
    return replace(world, version_of=have.get, requires_of=lambda name: asked.get(name, []))


def only(findings: list[Finding]) -> Finding:
    (one,) = findings
    return one


def healths(findings):
    return {one.name: one.health for one in findings}

"""What a worker was doing, as a sentence about its end says it. Pure."""

from __future__ import annotations

#: The phases that a worker names, which label a progress line, after "while".
_WORDS = {
    "accuracy": "measuring accuracy",
    "average memory": "measuring its average memory",
    "communication": "measuring communication",
    "compile": "compiling",
    "device timers": "timing by the device's own timers",
    "energy": "measuring energy",
    "energy: idle": "measuring the idle device's power",
    "first inference": "running the first inference",
    "phases": "timing the phases of a step",
    "prepare": "preparing",
    "self-check": "comparing the model with itself",
    "steady state": "measuring the steady state",
    "warm-up": "warming up",
}


def phase_said(phase: str) -> str:
    """A phase after the word "while"; what is asked of a worker is worded so already."""
    return _WORDS.get(phase, phase)

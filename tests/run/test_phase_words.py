"""What a worker was doing when it ended, in English: of each phase that anything names."""

import ast
from pathlib import Path

import accelbench
from accelbench.run.process.worker_client import phase_said

_SOURCES = Path(accelbench.__file__).parent


def bound(call):
    """Return what a call binds a later request to."""
    values = [keyword.value for keyword in call.keywords if keyword.arg == "doing"]
    return {value.value for value in values if isinstance(value, ast.Constant)}


def named():
    """What the product's code names as a phase, and what it asks workers for."""
    found = set()
    for folder in ("measure", "run", "runtimes"):
        for path in (_SOURCES / folder).rglob("*.py"):
            text = path.read_text(encoding="utf-8")
            if "phase(" not in text and ".ask(" not in text:
                continue
            for call in ast.walk(ast.parse(text)):
                if not isinstance(call, ast.Call):
                    continue
                found |= bound(call)
                if not isinstance(call.func, ast.Attribute):
                    continue
                place = {"phase": 0, "_phase": 0, "ask": 1}.get(call.func.attr)
                if place is not None and len(call.args) > place:
                    word = call.args[place]
                    if isinstance(word, ast.Constant) and isinstance(word.value, str):
                        found.add(word.value)
    return found


def test_every_phase_is_said_as_what_is_being_done():
    phases = named()
    assert {"prepare", "warm-up", "energy: idle", "accuracy", "loading", "verifying"} <= phases
    for phase in phases:
        assert phase_said(phase).split()[0].endswith("ing"), phase
    assert phase_said("warm-up") == "warming up"

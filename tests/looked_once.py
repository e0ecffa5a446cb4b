"""What this machine has, asked once a test process: each look starts Python and loads OpenVINO.

Tests look at the machine hundreds of times, and each time the same program answers the same, for
half a second of a core. A program that is told anything else, by arguments or by its environment,
is asked again; so is one that failed.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from accelbench.core import processes
from accelbench.hardware import common

#: What tests set that no such program reads.
_UNREAD = ("PYTEST_", "ACCELBENCH_", "TMPDIR", "COLUMNS")
_answers: dict[Any, Any] = {}
_run = processes.run


def _looks(program: Sequence[str]) -> bool:
    """Whether it is a look at our own modules' devices, or asks a browser for its version."""
    probes = [*program[:4]] == [sys.executable, "-P", "-c", common._PROBE]
    browser = len(program) == 2 and "chrom" in str(program[0]) and program[1] == "--version"
    return browser or (probes and str(program[4]).startswith("accelbench."))


def _once(program: Sequence[str], timeout: float, **more: Any) -> Any:
    if more or not _looks(program):
        return _run(program, timeout, **more)
    around = frozenset((k, v) for k, v in os.environ.items() if not k.startswith(_UNREAD))
    asked = (tuple(map(str, program)), around)
    if asked not in _answers:
        answer = _run(program, timeout)
        if answer.returncode:
            return answer
        _answers[asked] = answer
    return _answers[asked]


@contextlib.contextmanager
def looked_once() -> Iterator[None]:
    """Each look at the machine is asked once meanwhile."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(processes, "run", _once)
        yield

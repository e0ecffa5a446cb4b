"""The API on a machine that is the same wherever the tests run, with scripted latencies.

Real runs: planned, journalled and measured in worker processes. Only the engine
behind "pytorch" is the scripted one, whose time is virtual.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from accelbench.core.protocols import Absent, Device, Runtime
from accelbench.engines.scripted import SCRIPT_VARIABLE, ScriptedRuntime
from accelbench.run import execute
from accelbench.run.plan import expand, run_forecast
from accelbench.store.database import ENVIRONMENT
from warm_start import warm_templates

CPU = Device("cpu", "test processor", memory_bytes=64 * 2**30, count=2)
GPU = Device("cuda", "test accelerator", memory_bytes=80 * 2**30)
MPS = Device("mps", "test Mac")
COMMIT = "0123456789abcdef"


@dataclass
class Machine:
    """What is present, and how long a step takes."""

    folder: Path
    patch: pytest.MonkeyPatch

    def script(self, *faults: dict[str, Any], **script: Any) -> None:
        body = {"step_ns": 1_000_000, **script, "faults": list(faults)}
        (self.folder / "script.json").write_text(json.dumps(body))

    def has(self, *devices: Device) -> None:
        found: dict[str, list[Device | Absent]] = {
            name: [Absent(name, "there is none in this test", "Buy one.")]
            for name in ("cpu", "cuda", "rocm", "mps", "tpu")
        }
        found |= {one.hardware: [one] for one in devices}
        self.patch.setattr(execute, "LazyInventory", lambda: found)


def _scripted() -> Runtime:
    """In the place of the engine that serves a platform where nobody names one."""
    made: Runtime = ScriptedRuntime()
    made.info = replace(made.info, default_for=("cpu", "cuda", "mps"))
    return made


@contextlib.contextmanager
def scripted_machine(folder: Path) -> Iterator[Machine]:
    """Runs in a folder of its own, with a CPU and nothing else."""
    work = folder / "work"
    work.mkdir()
    with pytest.MonkeyPatch.context() as patch, warm_templates():
        patch.chdir(work)
        patch.delenv(ENVIRONMENT, raising=False)
        patch.setenv(SCRIPT_VARIABLE, str(folder / "script.json"))
        patch.setattr(expand, "installed_runtimes", lambda: {"pytorch": _scripted()})
        # What else happens on the machine must not decide whether batch 128 is tried.
        patch.setattr(run_forecast, "memory", lambda case: None)
        git = {"git": {"commit": COMMIT, "branch": "b"}}
        patch.setattr(execute, "describe_environment", lambda: git)
        machine = Machine(folder, patch)
        machine.script()
        machine.has(CPU)
        yield machine

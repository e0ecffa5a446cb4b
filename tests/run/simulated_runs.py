"""Runs beside a device that is not here: what is here is scripted, what is not is calculated."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from fixed_machine import CPU, models
from scripted_runs import Scripted, Watcher

from accelbench.core.facts import new_run_id
from accelbench.core.protocols import Absent, Device, Inventory, Runtime
from accelbench.core.run_options import RunSettings
from accelbench.engines.browser import BrowserRuntime
from accelbench.engines.pytorch import PytorchRuntime
from accelbench.engines.qnn import QnnRuntime
from accelbench.engines.scripted import ScriptedRuntime
from accelbench.predict.roofline import simulated
from accelbench.run.conduct import lifecycle
from accelbench.run.conduct.lifecycle import PlannedRun, RunResult
from accelbench.run.plan import expand
from accelbench.run.plan.request import Plan, Request

NO_CARD = Absent("cuda", "no driver is loaded", "get one")
BROWSER = Device("webgpu", "a browser")
FOUND: Mapping[str, Sequence[Device | Absent]] = {
    "cpu": [CPU],
    "cuda": [NO_CARD],
    "webgpu": [BROWSER],
    "qnn": [Absent("qnn", "no NPU", "get one")],
    "wasm": [Absent("wasm", "no browser", "get one")],
}


def card(runtime: Runtime, *hardware: str) -> Runtime:
    """A runtime that is the default of these platforms and of no other."""
    runtime.info = dataclasses.replace(runtime.info, default_for=hardware)
    return runtime


RUNTIMES: dict[str, Runtime] = {
    "scripted": card(ScriptedRuntime(), "cpu"),
    "pytorch": card(PytorchRuntime(), "cuda"),
    "browser": card(BrowserRuntime(), "webgpu", "wasm"),
    "qnn": card(QnnRuntime(), "qnn"),
}


def planned(*names: str, found: Inventory = FOUND, simulate: bool = True, **asked: Any) -> Plan:
    request = Request(
        models(*(names or ("bert-tiny",))),
        **{"batch_sizes": (1,), "hardware": ("cuda",), "simulate": simulate, **asked},
    )
    return expand.plan_for(request, found, RUNTIMES)


def run(
    scripted: Scripted, plan: Plan, watcher: Watcher | None = None, **settings: Any
) -> RunResult:
    how = RunSettings.from_dict({"run_id": new_run_id(), **settings})
    made = PlannedRun(plan, how, RUNTIMES, simulate=simulated)
    return lifecycle.start(made, scripted.journals, watcher or Watcher(), {})

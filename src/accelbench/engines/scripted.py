"""A runtime that does what a script says: for testing everything around a runtime.

It takes scripted latencies on a virtual clock, and crashes, hangs, leaks, lies
and runs out of memory if it is told to. It runs only while the environment
names a script, and its results are marked `simulated`: it can never pass for a
measurement.

The script is a JSON object:

    step_ns      a number, or a list that is cycled through: latency of one item
    lognormal    {"median_ns", "sigma", "seed", "rho"?}: random latencies instead,
                 with first-order autocorrelation rho
    warm_up_ns   extra time of the first steps, a list
    build_ns, load_ns, compile_ns
    real         true: steps really sleep, on the real clock
    faults       [{"how", "when", "batch"?, "step"?, "message"?, "code"?, "flag"?}, …]
                 when: open · prepare · step · profile
                 how: raise · oom · unsupported · abort · segv · kill · exit · hang · fallback
                 flag: a file; the fault strikes only while it does not exist, and makes it
    leak_bytes   memory each step keeps
    probe        devices the engine claims to see
    operators    {kind: share of a step's time}, for a profile; none: it cannot be profiled
"""

from __future__ import annotations

import json
import math
import os
import random
import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from accelbench.core.case import Case
from accelbench.core.clock import Clock, MonotonicClock
from accelbench.core.errors import CaseError, OutOfMemoryError, UnsupportedError
from accelbench.core.option_types import RuntimeOption
from accelbench.core.profile import OperatorTime, Profile, build_profile
from accelbench.core.protocols import (
    SUPPORTED,
    Absent,
    Block,
    Device,
    DeviceMemory,
    Evidence,
    Job,
    RuntimeInfo,
    Support,
)
from accelbench.core.vocabulary import HARDWARE, Belongs, Provenance, Timing
from accelbench.engines.shared.local import LocalSampler, walls

SCRIPT_VARIABLE = "ACCELBENCH_SCRIPT"


class VirtualClock:
    """Time that passes only when it is told to."""

    def __init__(self, tick_ns: float = 1.0) -> None:
        self.time_ns = 0
        self._tick_ns = tick_ns

    def now_ns(self) -> int:
        return self.time_ns

    def tick_ns(self) -> float:
        return self._tick_ns

    def advance(self, ns: float) -> None:
        self.time_ns += round(ns)


class ScriptedLatency:
    """The latencies of successive steps."""

    def __init__(self, script: Mapping[str, Any]) -> None:
        self._fixed = script.get("step_ns", 1_000_000)
        self._warm_up = list(script.get("warm_up_ns", ()))
        self._random = script.get("lognormal")
        if self._random:
            self._source = random.Random(self._random["seed"])  # noqa: S311 - a script, not a secret
            self._state = self._source.gauss(0, 1)
        self._taken = 0

    def next_ns(self) -> float:
        i = self._taken
        self._taken += 1
        extra = self._warm_up[i] if i < len(self._warm_up) else 0
        if self._random:
            rho = self._random.get("rho", 0.0)
            shock = self._source.gauss(0, 1)
            self._state = rho * self._state + math.sqrt(1 - rho * rho) * shock
            spread = math.exp(self._random["sigma"] * self._state)
            return float(self._random["median_ns"]) * spread + float(extra)
        if isinstance(self._fixed, list):
            return float(self._fixed[i % len(self._fixed)]) + float(extra)
        return float(self._fixed) + float(extra)


def _strike(fault: Mapping[str, Any]) -> None:
    flag = fault.get("flag")
    if flag:
        if Path(flag).exists():
            return
        Path(flag).touch()
    _FAULTS[fault["how"]](fault)


def _raise(fault: Mapping[str, Any]) -> None:
    raise RuntimeError(fault.get("message", "scripted failure"))


def _oom(_: Mapping[str, Any]) -> None:
    raise OutOfMemoryError("the scripted device has no memory left")


def _unsupported(_: Mapping[str, Any]) -> None:
    raise UnsupportedError("scripted", "the script says this is not supported")


def _hang(_: Mapping[str, Any]) -> None:
    while True:
        time.sleep(3600)


_FAULTS: Mapping[str, Callable[[Mapping[str, Any]], None]] = {
    "raise": _raise,
    "oom": _oom,
    "unsupported": _unsupported,
    "hang": _hang,
    "abort": lambda _: os.abort(),
    "segv": lambda _: os.kill(os.getpid(), signal.SIGSEGV),
    "kill": lambda _: os.kill(os.getpid(), signal.SIGKILL),
    "exit": lambda fault: os._exit(int(fault.get("code", 3))),
}


@dataclass(frozen=True)
class ScriptedInputs:
    """What a step is given: seeded numbers, on which the outputs depend."""

    batch: int
    values: tuple[float, ...]


class ScriptedSession:
    """A session that follows the script."""

    phases = ("step",)
    device_timed = False

    def __init__(self, job: Job, script: Mapping[str, Any], clock: Clock) -> None:
        self._job = job
        self._case = job.case
        self._script = script
        self._clock = clock
        self._latency = ScriptedLatency(script)
        self._steps = 0
        self._kept: list[bytearray] = []
        self._faults("open")
        self.timings: Mapping[str, int] = {
            "build": int(script.get("build_ns", 0)),
            "load": int(script.get("load_ns", 0)),
        }
        self.weights_digest = f"scripted-{job.settings.seed}"
        self._sampler = LocalSampler(clock=clock, step=self._step)

    def _faults(self, when: str) -> None:
        for fault in self._script.get("faults", ()):
            if fault["when"] != when or fault["how"] == "fallback":
                continue
            if fault.get("batch", self._case.shapes.batch) != self._case.shapes.batch:
                continue
            if fault.get("step", self._steps) == self._steps:
                _strike(fault)

    def _step(self, inputs: Any) -> None:
        self._faults("step")
        self._steps += 1
        leak = self._script.get("leak_bytes", 0)
        if leak:
            self._kept.append(bytearray(os.urandom(1) * leak))
        took = self._latency.next_ns() * self._case.shapes.batch
        if isinstance(self._clock, VirtualClock):
            self._clock.advance(took)
        else:
            time.sleep(took / 1e9)

    def prepare(self, case: Case, seed: int | None = None) -> ScriptedInputs:
        self._case = case
        self._steps = 0
        self._faults("prepare")
        source = random.Random(self._job.settings.seed if seed is None else seed)  # noqa: S311 - a script, not a secret
        return ScriptedInputs(case.shapes.batch, tuple(source.random() for _ in range(4)))

    def compile(self, inputs: Any) -> int | None:
        return self._script.get("compile_ns") if self._case.compiled else None

    def sample(self, inputs: Any, n: int, timing: Timing) -> Block:
        return self._sampler.sample(inputs, n, timing)

    def inspect(self, inputs: Any) -> None:
        self._step(inputs)

    def outputs(self, inputs: ScriptedInputs) -> Mapping[str, Any]:
        import numpy as np

        weights = np.random.default_rng(self._job.settings.seed).standard_normal((inputs.batch, 4))
        return {"scripted": weights * np.asarray(inputs.values)}

    def profile(self, inputs: Any, steps: int, traces: Path | None) -> Profile:
        shares = self._script.get("operators")
        if shares is None:
            raise UnsupportedError("no_profiler", "the script names no operators")
        self._faults("profile")
        times = walls(self._clock, steps, lambda: self._step(inputs))
        where = str(self._job.device)
        spent = [
            OperatorTime("", kind, share * sum(times), steps, where)
            for kind, share in shares.items()
        ]
        report = build_profile("the script", spent, times)
        if traces is None:
            return report
        (traces / "trace.json").write_text("[]")
        return replace(report, trace="trace.json")

    def reset_memory(self) -> None:
        return None

    def device_memory(self) -> DeviceMemory | None:
        return None

    def evidence(self) -> Evidence:
        fell = any(f["how"] == "fallback" for f in self._script.get("faults", ()))
        return Evidence(
            devices=("elsewhere:0",) if fell else (str(self._job.device),),
            requested=str(self._job.device),
            engine="script",
        )

    def close(self) -> None:
        self._kept.clear()


class ScriptedRuntime:
    """Follows the script named by ACCELBENCH_SCRIPT; without one it supports nothing."""

    info = RuntimeInfo(
        name="scripted",
        hardware=HARDWARE,
        package="accelbench",
        extra="",
        precisions=("fp32", "fp16", "bf16"),
        options=(
            RuntimeOption("pace", "nothing", choices=("slow", "fast"), default="slow"),
            RuntimeOption("patient", "nothing", kind="truth"),
        ),
        isolation="fork",
        provenance=Provenance.SIMULATED,
        reasons={"not_scripted": Belongs.QUESTION, "scripted": Belongs.QUESTION},
    )

    def __init__(self, script: Mapping[str, Any] | None = None) -> None:
        self._given = script
        self._clock: Clock | None = None

    def _script(self) -> Mapping[str, Any] | None:
        if self._given is not None:
            return self._given
        path = os.environ.get(SCRIPT_VARIABLE)
        if not path:
            return None
        loaded: Mapping[str, Any] = json.loads(Path(path).read_text(encoding="utf-8"))
        return loaded

    def probe(self) -> list[Device | Absent]:
        script = self._script()
        if script is None:
            return [Absent("cpu", "no script is named", f"set {SCRIPT_VARIABLE}")]
        return [Device(**dev) for dev in script.get("probe", ({"hardware": "cpu", "name": "s"},))]

    def supports(self, case: Case, device: Device) -> Support:
        if self._script() is None:
            return Support(
                ok=False,
                reason="not_scripted",
                message="the scripted runtime is for tests and no script is named",
                advice="Choose another framework.",
            )
        return SUPPORTED

    def clock(self) -> Clock:
        if self._clock is None:
            real = (self._script() or {}).get("real", False)
            self._clock = MonotonicClock() if real else VirtualClock()
        return self._clock

    def open(self, job: Job) -> ScriptedSession:
        script = self._script()
        if script is None:
            raise CaseError("not_scripted", "no script is named")
        return ScriptedSession(job, script, self.clock())

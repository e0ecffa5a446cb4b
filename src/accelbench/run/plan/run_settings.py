"""Settings of a run: how it goes about its cases."""

from __future__ import annotations

from dataclasses import dataclass

DEFAULT_TIMEOUT = 600.0


@dataclass(frozen=True)
class RunSettings:
    """How a run goes about its cases."""

    run_id: str
    seed: int = 0
    weights: str = "random"
    data: str | None = None  # a folder of real inputs
    trust_remote_code: bool = False
    threads: int | None = None
    launches: int = 1
    iterations: int | None = None
    warmup: int | None = None
    timeout: float = DEFAULT_TIMEOUT  # for opening a model, and for each case
    budget: float | None = None  # seconds for the whole run
    verify: str = "auto"  # auto · require · only · off
    fix: bool = True  # try workarounds
    profile: bool = False  # say afterwards where each case's time goes

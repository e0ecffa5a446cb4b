"""Fidelity and perturbation on a GPU: reported medians against bare loops, in turns A B B A.

The comparisons are those of `fidelity.py` and `perturbation.py`; how many pairs a comparison has
is decided by its time, before its first pair.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import fidelity as host
from gpu_day.part import NotHereError, Recorder
from keeping import LIMIT, accelbench_median, bare_median, interleaved

FEWEST, MOST = 4, 24
STEPS, WARMUP = "400", "100"
THREADS = "1"


def fidelity(at: Recorder) -> None:
    models = at.day.pick(("bert-tiny", "resnet-50"), ("resnet-tiny",))
    _harness(at)
    for model in models:
        found = host.same_process(model, at.day.hardware, at.day.pick(10, 2), int(THREADS))
        bounded(at, f"{model}, same process", found)
    if at.day.dry:
        at.absent("bare process", "two fresh processes of PyTorch a pair are too long for it")
        return
    across(at, f"{models[-1]}, bare process", models[-1], at.seconds_left())


def _harness(at: Recorder) -> None:
    if at.day.dry:
        at.absent("harness", "fidelity.py counts it on a CPU")
        return
    harness = host.harness_cost()
    at.figure("harness", harness)
    at.timing("harness cost, ns a step", harness["ns_per_step"], host.HARNESS_NS)


def perturbation(at: Recorder) -> None:
    """Conductor and worker on one core of the host, against a bare process alone on it."""
    if at.day.dry:
        raise NotHereError("two fresh processes of PyTorch a pair are too long for the dry form")
    across(at, "bert-tiny on one core", "bert-tiny", at.seconds_left(), core())


def core() -> int:
    """A core of the host that this process may use."""
    return min(os.sched_getaffinity(0))


def across(at: Recorder, name: str, model: str, seconds: float, cpu: int | None = None) -> None:
    """A whole `accelbench run` against a bare process, as many pairs as fit into the time."""
    # PyTorch's own default, and so the bare process's, lets convolutions round to TF32.
    os.environ["NVIDIA_TF32_OVERRIDE"] = "0"
    ours = [model, "--framework", "pytorch", "--hardware", at.day.hardware, "--batch-sizes", "1"]
    ours += ["--iterations", STEPS, "--warmup", WARMUP, "--threads", THREADS, "--benchmark-only"]
    theirs = [model, "1", STEPS, WARMUP, THREADS, at.day.hardware]
    sides = partial(accelbench_median, ours, cpu), partial(bare_median, theirs, cpu)
    pairs = pairs_within(seconds, *sides)
    if pairs < FEWEST:
        at.absent(name, f"{seconds:.0f} s are too short for {FEWEST} pairs of processes")
        return
    bounded(at, name, interleaved(*sides, pairs))


def pairs_within(
    seconds: float, ours: Callable[[], float], theirs: Callable[[], float], most: int = MOST
) -> int:
    """How many pairs fit, by a first one that counts for nothing and fills the disk's cache."""
    start = time.monotonic()
    ours()
    theirs()
    took = time.monotonic() - start
    # A tenth is kept back: what does not end in time is ended without a figure.
    return min(most, int((0.9 * seconds - took) / took))


def bounded(at: Recorder, name: str, found: dict[str, Any]) -> None:
    """Keep a comparison, and check the upper end of its interval."""
    at.figure(name, found)
    at.timing(f"{name}, upper bound", found["high_95"], LIMIT)

"""Fidelity: is the reported median what a bare loop finds?

Three questions, each answered from interleaved measurements:

- in one process: blocks sampled by the session against a plain loop over the
  same model and inputs;
- across processes: `accelbench run` against `bare.py`, one fresh process each;
- the harness's own cost for a step: an empty step sampled against the same loop.

    python benchmarks/fidelity.py [--hardware cuda] [--model bert-tiny] [--pairs 24]
"""

from __future__ import annotations

import argparse
import statistics
import time
from typing import Any

from keeping import accelbench_median, bare_median, bounded, interleaved, keep, verdict

HARNESS_NS = 1000.0


def same_process(model: str, hardware: str, pairs: int, threads: int) -> dict[str, Any]:
    """Sampled blocks against a bare loop, on one opened session."""
    import torch

    from accelbench.core.case import Case, Shapes, Target
    from accelbench.core.protocols import Device, Job
    from accelbench.core.run_options import JobSettings
    from accelbench.core.vocabulary import Timing
    from accelbench.engines.pytorch.runtime import PytorchRuntime
    from accelbench.engines.pytorch.session import PytorchSession
    from accelbench.models.find import find

    spec = find(model)
    case = Case(spec, Target("pytorch", hardware), "fp32", Shapes(1, spec.sequence, spec.image))
    session = PytorchRuntime().open(
        Job(case, Device(hardware, hardware), JobSettings(threads=threads))
    )
    assert isinstance(session, PytorchSession)
    inputs = session.prepare(case)
    module = session._module
    wait = torch.cuda.synchronize if hardware == "cuda" else None
    session.sample(inputs, 20, Timing.EACH)
    first = session.sample(inputs, 5, Timing.EACH).phase_ns["step"]
    steps = max(5, min(500, int(400e6 / statistics.median(first))))

    def ours() -> float:
        return statistics.median(session.sample(inputs, steps, Timing.EACH).phase_ns["step"]) / 1e6

    def theirs() -> float:
        times = []
        with torch.inference_mode():
            for _ in range(steps):
                start = time.perf_counter_ns()
                module(**inputs)
                if wait is not None:
                    wait()
                times.append(time.perf_counter_ns() - start)
        return statistics.median(times) / 1e6

    return interleaved(ours, theirs, pairs)


def across_processes(model: str, hardware: str, pairs: int, threads: int) -> dict[str, Any]:
    """A whole `accelbench run` against a bare process, the same number of steps each."""
    steps, warmup = ("400", "100") if model.endswith("tiny") else ("20", "3")
    ours = [model, "--hardware", hardware, "--batch-sizes", "1", "--iterations", steps]
    ours += ["--warmup", warmup, "--threads", str(threads)]
    theirs = [model, "1", steps, warmup, str(threads), hardware]
    return interleaved(lambda: accelbench_median(ours), lambda: bare_median(theirs), pairs)


def harness_cost() -> dict[str, Any]:
    """Nanoseconds that sampling adds to a step that does nothing."""
    from accelbench.core.clock import MonotonicClock
    from accelbench.core.vocabulary import Timing
    from accelbench.engines.shared.local import LocalSampler

    def step(inputs: object) -> None:
        return None

    sampler = LocalSampler(clock=MonotonicClock(), step=step)
    n, costs = 200_000, []
    for _ in range(15):
        start = time.perf_counter_ns()
        sampler.sample(None, n, Timing.EACH)
        sampled = time.perf_counter_ns() - start
        start = time.perf_counter_ns()
        for _ in range(n):
            step(None)
        costs.append((sampled - (time.perf_counter_ns() - start)) / n)
    return {"ns_per_step": statistics.median(costs), "ns_per_step_max": max(costs), "n": n}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--hardware", default="cpu")
    parser.add_argument("--models", default="bert-tiny,resnet-50")
    parser.add_argument("--pairs", type=int, default=24)
    parser.add_argument("--process-pairs", type=int, default=28)
    parser.add_argument("--threads", type=int, default=1)
    asked = parser.parse_args()
    about: dict[str, Any] = {"hardware": asked.hardware, "threads": asked.threads}
    if asked.hardware != "cpu":
        import torch

        about["device"] = torch.cuda.get_device_name().lower().replace(" ", "-")
    harness = harness_cost()
    cheap = verdict("harness cost, ns a step", harness["ns_per_step"], HARNESS_NS)
    for model in asked.models.split(","):
        reached = [cheap]
        figures: dict[str, Any] = {**about, "model": model, "harness": harness}
        for name, measured, pairs in (
            ("same_process", same_process, asked.pairs),
            ("across_processes", across_processes, asked.process_pairs),
        ):
            print(f"{model}, {name.replace('_', ' ')}: a bare, b ours")
            found = measured(model, asked.hardware, pairs, asked.threads)
            reached.append(bounded(f"{model} {name}", found))
            figures[name] = found
        keep(f"fidelity-{model}", {**figures, "reached": all(reached)})


if __name__ == "__main__":
    main()

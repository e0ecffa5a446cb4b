"""Engines beside PyTorch: is the reported median what a bare loop over the same file finds?

Each comparison interleaved, one thread:

- in one process: blocks sampled by a session against a plain loop over what the session opened,
  of a tenth of a second each, as clocks of a shared host change every few seconds;
- in one process: the same blocks against benchmark_app's own loop over the same opened model;
- across processes: `accelbench run` of one case against a plain loop in a process of its own
  (`bare_engine.py`), and against OpenVINO's own `benchmark_app`.

    python benchmarks/native_loops.py [--models bert-tiny] [--pairs 192] [--process-pairs 24]
    python benchmarks/native_loops.py --models /path/of/mine.onnx
"""

from __future__ import annotations

import argparse
import statistics
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from accelbench.core.case import Case, Shapes, Target
from accelbench.core.plugins import ENGINES, find_entry_points, load
from accelbench.core.protocols import Device, Job
from accelbench.core.run_options import JobSettings
from accelbench.core.vocabulary import Timing
from accelbench.models.selection import choose
from bare_engine import Step, looped
from keeping import accelbench_median, artefact, bare_median, bounded, interleaved, keep

THREADS = "1"
#: An engine of ours, and what it is compared with across processes.
COMPARED = (
    ("onnxruntime", "onnxruntime"),
    ("openvino", "openvino"),
    ("openvino", "benchmark_app"),
)
PLACES = {"onnxruntime": "cpu", "openvino": "openvino:cpu"}
#: Seconds that benchmark_app measures for.
APP_SECONDS = "3"


def case(model: str, engine: str) -> list[str]:
    """What is asked of accelbench, but for the number of steps."""
    return [
        model, "--framework", engine, "--hardware", PLACES[engine], "--batch-sizes", "1",
        "--new-tokens", "0", "--threads", THREADS, "--benchmark-only",
    ]  # fmt: skip


def plain(engine: str, session: Any, inputs: Any) -> Step:
    """A step on what a session of ours has opened, with nothing of ours around it."""
    if engine == "onnxruntime":
        return lambda: session._session.run(None, inputs)
    return lambda: session._compiled.request.infer(share_outputs=True)


def loop_of_benchmark_app(session: Any, steps: int) -> float:
    """The median that benchmark_app's own loop finds over what a session of ours has opened.

    It takes each request's own `latency`, which leaves the call from Python out; ours has it.
    """
    from openvino.tools.benchmark.benchmark import Benchmark

    app = Benchmark("CPU", number_iterations=steps, api_type="sync", inference_only=True)
    queue = SimpleNamespace(get_next_batch_size=lambda: 1)
    return float(app.main_loop([session._compiled.request], queue, [1], 50, False)[1])


def same_process(
    model: str, engine: str, folder: Path, pairs: int, other: str = ""
) -> dict[str, Any]:
    """Sampled blocks against a bare loop, or benchmark_app's, on one opened session."""
    (spec,), (hardware, _, unit) = choose([model]), PLACES[engine].partition(":")
    case = Case(
        spec,
        Target(engine, hardware, unit or None),
        "fp32",
        Shapes(1, spec.sequence, spec.image),
    )
    device = Device(hardware, hardware, unit=unit)
    job = Job(case, device, JobSettings(threads=int(THREADS)), artefact=str(folder))
    session = load(find_entry_points(ENGINES)[engine]).open(job)
    inputs = session.prepare(case)
    first = session.sample(inputs, 25, Timing.EACH).phase_ns["step"]
    steps = max(5, min(500, int(100e6 / statistics.median(first[-5:]))))
    step = plain(engine, session, inputs)

    def ours() -> float:
        times = session.sample(inputs, steps, Timing.EACH).phase_ns["step"]
        return float(statistics.median(times)) / 1e6

    def theirs() -> float:
        if other == "benchmark_app":
            return loop_of_benchmark_app(session, steps)
        return looped(step, steps, 0)

    found = interleaved(ours, theirs, pairs)
    session.close()
    return found | {"steps": steps}


def across_processes(
    model: str, engine: str, other: str, folder: Path, steps: int, pairs: int
) -> dict[str, Any]:
    """One engine's figure by a whole `accelbench run`, and by another program.

    A process measures twelve times the `steps` of a block of 0.1 s, as blocks of one process are:
    the median of 30 steps of 1.5 ms is a matter of the 45 ms that they happened to fall in.
    """
    measured, warmup = str(12 * steps), str(max(5, steps))
    ours = [*case(model, engine), "--iterations", measured, "--warmup", warmup]
    theirs = (APP_SECONDS,) if other == "benchmark_app" else (measured, warmup)
    loop = [other, str(folder), THREADS, *theirs]
    return interleaved(
        partial(accelbench_median, ours),
        partial(bare_median, loop, program="bare_engine.py"),
        pairs,
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--models", default="bert-tiny,resnet-50")
    parser.add_argument("--pairs", type=int, default=192)
    parser.add_argument("--process-pairs", type=int, default=24, help="0: leave them out")
    asked = parser.parse_args()
    for model in asked.models.split(","):
        figures: dict[str, Any] = {"model": Path(model).name, "threads": int(THREADS)}
        reached = []
        folders = {engine: artefact(case(model, engine)) for engine in PLACES}
        loops = (*((engine, "") for engine in PLACES), ("openvino", "benchmark_app"))
        for engine, other in loops:
            name = f"{engine}, {other and f'the loop of {other}, '}same process"
            print(f"{model}, {name}: a bare, b ours")
            figures[name] = same_process(model, engine, folders[engine], asked.pairs, other)
            reached.append(bounded(f"{model}, {name}", figures[name]))
        for engine, other in COMPARED if asked.process_pairs else ():
            name = f"{engine} against {'a bare process' if other == engine else other}"
            print(f"{model}, {name}: a theirs, b ours")
            figures[name] = across_processes(
                model,
                engine,
                other,
                folders[engine],
                figures[f"{engine}, same process"]["steps"],
                asked.process_pairs,
            )
            reached.append(bounded(f"{model}, {name}", figures[name]))
        keep(f"native-loops-{Path(model).stem}", {**figures, "reached": all(reached)})


if __name__ == "__main__":
    main()

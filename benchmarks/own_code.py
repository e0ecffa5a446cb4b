"""Code of one's own: is the reported time what pyperf and torch.utils.benchmark find?

Each comparison interleaved, one thread:

- two torch modules in one process: blocks of a session against `torch.utils.benchmark.Timer`
  over the module that the session opened;
- the same module across processes: `accelbench run` against a process with that Timer;
- a function across processes: `accelbench run` against `python -m pyperf timeit`.

In one process both sides give the median of means of blocks; across processes the reported median,
of single steps here and of blocks there.

    pip install pyperf
    python benchmarks/own_code.py [--pairs 192] [--process-pairs 24]
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

from accelbench.core.case import Case, Shapes, Target
from accelbench.core.plugins import ENGINES, find_entry_points, load
from accelbench.core.protocols import Device, Job
from accelbench.core.run_options import JobSettings
from accelbench.core.vocabulary import Timing
from accelbench.models.code_models.loading import code_word
from accelbench.models.code_models.models import model_of_code
from keeping import accelbench_median, bare_median, bounded, interleaved, keep

OWN = Path(__file__).with_name("own_work.py")
STEPS, WARMUP = "2000", "200"
#: Of one side, of some fifty milliseconds each.
BLOCKS = 2


def module_session(name: str) -> tuple[Any, Any]:
    """A module opened by a session of ours, and what it is fed."""
    word = code_word(f"{OWN}:{name}")
    assert word is not None
    case = Case(model_of_code(word), Target("pytorch", "cpu"), "fp32", Shapes(1))
    job = Job(case, Device("cpu", "cpu"), JobSettings(threads=1))
    session = load(find_entry_points(ENGINES)["pytorch"]).open(job)
    return session, session.prepare(case)


def same_process(name: str, pairs: int) -> dict[str, Any]:
    """Sampled blocks against a Timer of torch over the same module and inputs.

    Single steps are timed here, as a run reports them, and blocks by torch: of a step of 0.15 ms
    the two readings of the clock are one per cent, as in a plain loop that reads it around each.
    """
    import torch
    from torch.utils.benchmark import Timer

    session, inputs = module_session(name)
    first = session.sample(inputs, 25, Timing.EACH).phase_ns["step"]
    each = max(1, min(500, int(50e6 / statistics.median(first[-5:]))))  # steps of a block
    timer = Timer("step(inputs)", globals={"step": session._sampler.step, "inputs": inputs})

    def ours() -> float:
        # As `timeit` of torch does before each block: what ran between two blocks has the caches.
        session.sample(inputs, max(2, each // 100), Timing.EACH)
        blocks = (session.sample(inputs, each, Timing.EACH).phase_ns["step"] for _ in range(BLOCKS))
        return statistics.median(statistics.mean(times) for times in blocks) / 1e6

    def theirs() -> float:
        with torch.inference_mode():  # as a session's blocks are
            return statistics.median(timer.timeit(each).mean for _ in range(BLOCKS)) * 1e3

    found = interleaved(ours, theirs, pairs)
    session.close()
    return found


def pyperf_median() -> float:
    """What a run of pyperf's own command finds, in milliseconds."""
    with tempfile.TemporaryDirectory(prefix="accelbench-benchmark-") as folder:
        found = Path(folder) / "found.json"
        command = [
            sys.executable, "-m", "pyperf", "timeit", "--quiet", "--processes", "1",
            "--values", "20", "--inherit-environ", "OMP_NUM_THREADS,PYTHONPATH",
            "-s", "from own_work import digest", "digest()", "-o", str(found),
        ]  # fmt: skip
        environment = {**os.environ, "PYTHONPATH": str(OWN.parent), "OMP_NUM_THREADS": "1"}
        subprocess.run(command, check=True, capture_output=True, env=environment)
        runs = json.loads(found.read_text())["benchmarks"][0]["runs"]
    return statistics.median(value for run in runs for value in run.get("values", ())) * 1e3


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--pairs", type=int, default=192)
    parser.add_argument("--process-pairs", type=int, default=24, help="0: leave them out")
    asked = parser.parse_args()
    asked_of_all = ["--threads", "1", "--benchmark-only", "--iterations", STEPS, "--warmup", WARMUP]
    run = [f"{OWN}:network", "--framework", "pytorch", "--hardware", "cpu", *asked_of_all]
    run += ["--batch-sizes", "1"]
    call = [f"{OWN}:digest", "--hardware", "cpu", *asked_of_all]
    compared = {
        "a module, torch.utils.benchmark in the same process": partial(
            same_process, "network", asked.pairs
        ),
        "a wide module, torch.utils.benchmark in the same process": partial(
            same_process, "wide_network", asked.pairs
        ),
        "a module, a process with torch.utils.benchmark": partial(
            interleaved,
            partial(accelbench_median, run),
            partial(bare_median, [], program=OWN.name),
            asked.process_pairs,
        ),
        "a function, pyperf timeit": partial(
            interleaved, partial(accelbench_median, call), pyperf_median, asked.process_pairs
        ),
    }
    figures, reached = dict[str, Any](), list[bool]()
    if not asked.process_pairs:
        compared = dict(list(compared.items())[:2])
    for name, measured in compared.items():
        print(f"{name}: a theirs, b ours")
        figures[name] = measured()
        reached.append(bounded(name, figures[name]))
    keep("own-code", {**figures, "reached": all(reached)})


if __name__ == "__main__":
    main()

"""Several processes: is a step of theirs what a script for torchrun takes, by hand?

Interleaved, a fresh group of processes each: `accelbench run --distributed` against
`torchrun_step.py` on the same work, for DDP and FSDP2. Scaling efficiency is one process's time
over theirs, and one process's is the same on both sides (`fidelity.py` holds it): the ratio of
steps is the ratio of efficiencies, turned round.

    python benchmarks/distributed.py [--model bert-tiny] [--batch 16] [--processes 2] [--pairs 12]
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from typing import Any

from keeping import HERE, accelbench_median, bounded, interleaved, keep

STEPS, WARMUP = 60, 10
#: What accelbench tells the host's allocator of ranks that are sharded; a fair script does as well.
ALLOCATOR = {"fsdp2": {"MALLOC_MMAP_THRESHOLD_": str(2**20)}}


def by_hand(model: str, strategy: str, batch: int, processes: int) -> float:
    """The median that the script prints."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    command += ["--nproc_per_node", str(processes), str(HERE / "torchrun_step.py"), model]
    command += [strategy, str(batch), str(STEPS), str(WARMUP), "1"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **ALLOCATOR.get(strategy, {})}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if done.returncode:
        raise SystemExit(done.stderr.strip()[-2000:])
    return float(done.stdout.strip().splitlines()[-1])


def compared(strategy: str, options: argparse.Namespace) -> dict[str, Any]:
    """Whole runs against whole scripts."""
    ours = [options.model, "--mode", "training", "--distributed", "--hardware", "cpu"]
    ours += ["--processes", str(options.processes), "--threads", str(options.processes)]
    ours += ["--batch-sizes", str(options.batch), "--strategy", strategy, "--no-baseline"]
    ours += ["--iterations", str(STEPS), "--warmup", str(WARMUP), "--benchmark-only"]
    return interleaved(
        lambda: accelbench_median(ours),
        lambda: by_hand(options.model, strategy, options.batch, options.processes),
        options.pairs,
    )


def main() -> int:
    """Compare, and keep the figures."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", default="bert-tiny")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--pairs", type=int, default=12)
    parser.add_argument("--strategies", default="ddp,fsdp2")
    options = parser.parse_args()
    found = {strategy: compared(strategy, options) for strategy in options.strategies.split(",")}
    reached = [bounded(f"{strategy} against torchrun", f) for strategy, f in found.items()]
    keep("distributed", {"model": options.model, "batch": options.batch, **found})
    return 0 if all(reached) else 1


if __name__ == "__main__":
    sys.exit(main())

"""Several processes: is a step of theirs what a script for torchrun takes, by hand?

Both sides are open at once, and make blocks of steps in turn (A B B A …) while the other waits: a
machine whose clock wanders by a third from minute to minute, as virtual ones do, wanders for both.
A launch starts both anew; the interval is over launches. Launches of 20 seconds one after the
other, 34 of each side, had differed by 20 % (standard deviation), and showed nothing.

Scaling efficiency is one process's time over theirs, and one process's is the same on both sides
(`fidelity.py` holds it): the ratio of steps is the ratio of efficiencies, turned round.

    python benchmarks/distributed.py [--model bert-tiny] [--batch 16] [--processes 2] [--launches 8]
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from accelbench.core.case import Case, Shapes, Target
from accelbench.core.protocols import Device, Job
from accelbench.core.run_options import JobSettings
from accelbench.core.vocabulary import Mode, Timing
from accelbench.engines.pytorch.distributed.session import DistributedSession
from accelbench.measure.launch_verdicts import abba_order, paired_interval
from accelbench.models.find import find
from keeping import HERE, bounded, keep

WARMUP, STEPS = 10, 8
#: What accelbench tells the host's allocator of ranks that are sharded; a fair script does as well.
ALLOCATOR = {"fsdp2": {"MALLOC_MMAP_THRESHOLD_": str(2**20)}}


@dataclass
class Script:
    """A group of ranks of the script, waiting for its next block."""

    asks: IO[str]
    process: subprocess.Popen[str]

    def block(self, steps: int) -> float:
        """What a step took, the mean of some, in milliseconds."""
        self.asks.write(f"{steps}\n")
        self.asks.flush()
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit("the script for torchrun ended early")
        return float(line)


@contextmanager
def script(strategy: str, options: argparse.Namespace) -> Iterator[Script]:
    """The script of one launch."""
    with tempfile.TemporaryDirectory(prefix="accelbench-distributed-") as folder:
        pipe = Path(folder) / "steps"
        os.mkfifo(pipe)
        command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
        command += ["--nproc_per_node", str(options.processes), str(HERE / "torchrun_step.py")]
        command += [options.model, strategy, str(options.batch), "1", str(pipe)]
        environment = {**os.environ, "OMP_NUM_THREADS": "1", **ALLOCATOR.get(strategy, {})}
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
        try:
            with pipe.open("w", encoding="ascii") as asks:
                yield Script(asks, process)
                asks.write("0\n")
            process.wait(60)
        finally:
            process.kill()


def launch(strategy: str, options: argparse.Namespace) -> tuple[float, float]:
    """What a step of the script takes, and one of ours, over one launch of both."""
    job = Job(
        Case(
            model=find(options.model),
            target=Target("pytorch", "cpu"),
            precision="fp32",
            shapes=Shapes(options.batch),
            mode=Mode.TRAINING,
            world_size=options.processes,
            options={"strategy": strategy},
        ),
        Device("cpu", "this machine's processor"),
        JobSettings(threads=options.processes),
    )
    session = DistributedSession(job)
    try:
        inputs = session.prepare(job.case)

        def ours(steps: int) -> float:
            block = session.sample(inputs, steps, Timing.EACH)
            return sum(block.phase_ns["step"]) / steps / 1e6

        with script(strategy, options) as theirs:
            theirs.block(WARMUP)
            ours(WARMUP)
            times: dict[str, list[float]] = {"a": [], "b": []}
            for arm in abba_order(options.blocks):
                times[arm].append((theirs.block if arm == "a" else ours)(STEPS))
    finally:
        session.close()
    # Of pairs of blocks, each of which had the machine as it was then.
    return statistics.geometric_mean(times["a"]), statistics.geometric_mean(times["b"])


def compared(strategy: str, options: argparse.Namespace) -> dict[str, Any]:
    """The ratio of ours to the script's over launches, with its 95 % interval."""
    theirs: list[float] = []
    ours: list[float] = []
    for number in range(options.launches):
        by_hand, measured = launch(strategy, options)
        theirs.append(by_hand)
        ours.append(measured)
        print(f"  {number + 1}: {measured / by_hand:.4f} of {by_hand:.2f} ms", flush=True)
    interval = paired_interval(theirs, ours)
    assert interval is not None
    return {
        "launches": options.launches,
        "blocks": options.blocks,
        "steps": STEPS,
        "ratio": interval.ratio,
        "low_95": interval.low,
        "high_95": interval.high,
        "theirs": theirs,
        "ours": ours,
    }


def main() -> int:
    """Compare, and keep the figures."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", default="bert-tiny")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--launches", type=int, default=8)
    parser.add_argument("--blocks", type=int, default=10, help="of each side in a launch")
    parser.add_argument("--strategies", default="ddp,fsdp2")
    options = parser.parse_args()
    found = {strategy: compared(strategy, options) for strategy in options.strategies.split(",")}
    reached = [bounded(f"{strategy} against torchrun", f) for strategy, f in found.items()]
    keep("distributed", {"model": options.model, "batch": options.batch, **found})
    return 0 if all(reached) else 1


if __name__ == "__main__":
    sys.exit(main())

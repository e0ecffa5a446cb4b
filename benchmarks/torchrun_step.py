"""A training step as one writes it by hand for torchrun: its mean over blocks, printed by rank 0.

    torchrun --nproc_per_node 2 torchrun_step.py MODEL STRATEGY BATCH THREADS PIPE

The same module, inputs, loss and optimizer as accelbench has them, and nothing else of it. A step
is over when rank 0 is through with it. A line of the pipe says how many steps a block has; 0 ends.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TextIO

import torch
import torch.distributed as dist

from accelbench.core.case import Shapes
from accelbench.core.vocabulary import Mode
from accelbench.models.build import build_module
from accelbench.models.find import find
from accelbench.models.inputs import make_inputs, settle
from accelbench.models.losses import find_loss


def main() -> None:
    """Train, and print milliseconds."""
    model, strategy, batch, threads, pipe = sys.argv[1:]
    torch.set_num_threads(int(threads))
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    spec = find(model)
    assert spec.training is not None
    module = build_module(
        spec.training_variant, 0, "random", False, torch.float32, None
    ).module.train()
    arrays = make_inputs(spec, settle(spec, Shapes(int(batch))), 0, Mode.TRAINING)
    rows = int(batch) if strategy == "tp" else int(batch) // world
    first = 0 if strategy == "tp" else rank * rows
    inputs = {n: torch.from_numpy(a[first : first + rows].copy()) for n, a in arrays.items()}
    run = module
    if strategy == "ddp":
        from torch.nn.parallel import DistributedDataParallel

        run = DistributedDataParallel(module, gradient_as_bucket_view=True)
    elif strategy == "fsdp2":
        from torch.distributed.fsdp import fully_shard

        for block in module.bert.encoder.layer:
            fully_shard(block)
        fully_shard(module)
    labels = {label.name for label in spec.training.labels}
    fed = {n: t for n, t in inputs.items() if n not in labels}
    loss_of = find_loss(spec.training.loss)
    optimizer = torch.optim.AdamW(module.parameters(), lr=1e-4)
    asked = Path(pipe).open(encoding="ascii") if rank == 0 else None  # noqa: SIM115 - to the end
    while steps := _steps(asked):
        start = time.perf_counter_ns()
        for _ in range(steps):
            loss_of(run(**fed), inputs).backward()
            optimizer.step()
            optimizer.zero_grad()
        if rank == 0:
            print((time.perf_counter_ns() - start) / steps / 1e6, flush=True)
    dist.destroy_process_group()


def _steps(asked: TextIO | None) -> int:
    """How many steps come next: rank 0 is told, and tells the others."""
    number = torch.tensor([int(asked.readline() or 0) if asked is not None else 0])
    dist.broadcast(number, 0)
    return int(number)


if __name__ == "__main__":
    main()

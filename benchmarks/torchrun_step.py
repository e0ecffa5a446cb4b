"""A training step as one writes it by hand for torchrun: its median time, printed by rank 0.

    torchrun --nproc_per_node 2 torchrun_step.py MODEL STRATEGY BATCH STEPS WARMUP THREADS

The same module, inputs, loss and optimizer as accelbench has them, and nothing else of it. A step
is over when rank 0 is through with it.
"""

from __future__ import annotations

import statistics
import sys
import time

import torch
import torch.distributed as dist

from accelbench.catalog.build import built
from accelbench.catalog.find import find
from accelbench.catalog.inputs import make_inputs, settle
from accelbench.catalog.losses import named
from accelbench.core.case import Shapes
from accelbench.core.vocabulary import Mode


def main() -> None:
    """Train, and print milliseconds."""
    model, strategy, *numbers = sys.argv[1:]
    batch, steps, warmup, threads = map(int, numbers)
    torch.set_num_threads(threads)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    spec = find(model)
    assert spec.training is not None
    module = built(spec.trained, 0, "random", False, torch.float32, None).module.train()
    arrays = make_inputs(spec, settle(spec, Shapes(batch)), 0, Mode.TRAINING)
    rows = batch if strategy == "tp" else batch // world
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
    loss_of = named(spec.training.loss)
    optimizer = torch.optim.AdamW(module.parameters(), lr=1e-4)
    times = []
    for _ in range(warmup + steps):
        start = time.perf_counter_ns()
        loss_of(run(**fed), inputs).backward()
        optimizer.step()
        optimizer.zero_grad()
        times.append(time.perf_counter_ns() - start)
    if rank == 0:
        print(statistics.median(times[warmup:]) / 1e6)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

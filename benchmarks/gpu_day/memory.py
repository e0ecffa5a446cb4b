"""Memory: the device peak that `accelbench run` reports against the allocator of a bare loop."""

from __future__ import annotations

import gc

import torch

from gpu_day.bare_loop import BareLoop, allow_tf32, peak_mb
from gpu_day.part import NotHereError, Recorder
from gpu_day.rows import held_against, measured, recorded

MODELS = ("resnet-50", "bert-base", "gpt2")
BATCH = 8


def memory(at: Recorder) -> None:
    if at.day.hardware != "cuda":
        raise NotHereError("a CPU has no allocator that counts device memory")
    arguments = [*MODELS, "--framework", "pytorch", "--batch-sizes", str(BATCH)]
    arguments += ["--new-tokens", "0", "--benchmark-only"]
    rows = measured(at, [*arguments, "--iterations", "20", "--warmup", "5"])
    allow_tf32(False)
    for row in recorded(at, rows, verified=False):
        loop = BareLoop(row["model"], BATCH, "cuda")
        held_against(at, row, peak_mb(lambda one=loop: one.forward(20)))
        del loop
        gc.collect()
        torch.cuda.empty_cache()

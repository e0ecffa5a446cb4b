"""Training: losses finite, falling and verified in each precision; memory against the allocator."""

from __future__ import annotations

import math
from collections.abc import Sequence

from gpu_day.bare_loop import BareLoop, allow_tf32, peak_mb
from gpu_day.part import Recorder
from gpu_day.rows import Row, held_against, measured, name_of, recorded

PRECISIONS = ("fp32", "bf16", "fp16")  # fp16 with a loss scaler
STEPS = ("10", "3")


def training(at: Recorder) -> None:
    models = at.day.pick(("bert-tiny", "vit-tiny", "resnet-tiny"), ("resnet-tiny",))
    wanted = at.day.pick(PRECISIONS, PRECISIONS[:1])
    # Verifying takes ten more steps, and as many of the reference: too long for the dry form.
    unverified = at.day.pick((), ("--benchmark-only",))
    rows = measured(
        at,
        [
            *models, "--framework", "pytorch", "--mode", "training",
            "--precision", ",".join(wanted), "--batch-sizes", "2",
            "--iterations", at.day.pick("10", "2"), "--warmup", at.day.pick("3", "1"),
            *unverified,
        ],
    )  # fmt: skip
    for row in recorded(at, rows, verified=not unverified):
        losses(at, f"{name_of(row)}: losses", row["loss_per_step"])
        _scaled(at, row)
    _against_allocator(at)


def losses(at: Recorder, name: str, found: Sequence[float]) -> None:
    """Keep losses, and check that they are finite and fall."""
    at.figure(name, list(found))
    finite = all(map(math.isfinite, found))
    at.check(f"{name} finite", finite, True, finite)
    at.check(f"{name}, last < first", found[-1] - found[0], "< 0", found[-1] < found[0])


def _scaled(at: Recorder, row: Row) -> None:
    """fp16 alone scales its loss, and no step may overflow."""
    said = row["evidence"]["details"]["training"]
    at.figure(f"{name_of(row)}: scaler", [said["loss_scale"], said["skipped_steps"]])
    if row["precision"] == "fp16":
        at.check(f"{name_of(row)}: loss scale", said["loss_scale"], "set", bool(said["loss_scale"]))
        at.same(f"{name_of(row)}: steps that overflowed", said["skipped_steps"], 0)


def _against_allocator(at: Recorder) -> None:
    """The same training by hand: its losses, and on a GPU its peak of memory."""
    model = at.day.pick("bert-base", "resnet-tiny")
    loop = BareLoop(model, 2, at.day.hardware, training=True)
    if at.day.hardware != "cuda":
        losses(at, f"{model}: losses of a bare loop", loop.train(3))
        at.absent("memory", "a CPU has no allocator that counts device memory")
        return
    allow_tf32(False)
    bare_mb = peak_mb(lambda: losses(at, f"{model}: losses of a bare loop", loop.train(13)))
    arguments = [model, "--framework", "pytorch", "--mode", "training", "--batch-sizes", "2"]
    arguments += ["--iterations", STEPS[0], "--warmup", STEPS[1], "--benchmark-only"]
    for row in recorded(at, measured(at, arguments), verified=False):
        held_against(at, row, bare_mb)

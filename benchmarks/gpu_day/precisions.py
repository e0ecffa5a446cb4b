"""Precisions: fp32, fp16, bf16 and autocast, each verified and timed against fp32; TF32 by itself.

accelbench computes fp32 in fp32: TF32 is off in its workers, and the evidence says so. What TF32
would change is measured in a bare loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gpu_day.bare_loop import BareLoop, allow_tf32
from gpu_day.part import Recorder
from gpu_day.rows import Row, measured, name_of, recorded

PRECISIONS = ("fp32", "fp16", "bf16", "amp-fp16", "amp-bf16")
BATCH = 8


def precisions(at: Recorder) -> None:
    models = at.day.pick(("bert-base", "resnet-50"), ("resnet-tiny",))
    wanted = at.day.pick(PRECISIONS, ("fp32", "bf16"))
    batch = at.day.pick(BATCH, 1)
    steps = at.day.pick(("100", "20"), ("20", "2"))
    rows = measured(
        at,
        [
            *models, "--framework", "pytorch", "--precision", ",".join(wanted),
            "--batch-sizes", str(batch), "--iterations", steps[0], "--warmup", steps[1],
        ],
    )  # fmt: skip
    done = recorded(at, rows)
    at.same("cases", len(rows), len(models) * len(wanted))
    for row in done:
        _computed_in(at, row)
    at.figure("time ÷ fp32's", ratios(done))
    _tf32(at, models, batch)


def ratios(rows: Sequence[Row]) -> dict[str, float]:
    """Each case's median step as a multiple of fp32's of the same model."""
    whole = {row["model"]: row["latency_p50_ms"] for row in rows if row["precision"] == "fp32"}
    return {
        name_of(row): row["latency_p50_ms"] / whole[row["model"]]
        for row in rows
        if row["model"] in whole
    }


def _computed_in(at: Recorder, row: Row) -> None:
    """The types that the evidence names, and whether TF32 was off."""
    details: dict[str, Any] = row["evidence"]["details"]
    names = ("weight_dtypes", "output_dtypes", "autocast", "cudnn_tf32", "matmul_precision")
    said = {name: details[name] for name in names if name in details}
    at.figure(f"{name_of(row)}: evidence", said)
    if row["hardware"] == "cuda":
        tf32 = (said.get("cudnn_tf32"), said.get("matmul_precision"))
        at.same(f"{name_of(row)}: TF32 in convolutions, products", tf32, (False, "highest"))


def _tf32(at: Recorder, models: Sequence[str], batch: int) -> None:
    """A bare loop in fp32 with TF32 off and on; accelbench has no way to switch it on."""
    if at.day.hardware != "cuda":
        at.absent("TF32", "there is none on a CPU")
        return
    for model in models:
        loop = BareLoop(model, batch, "cuda")
        medians: dict[bool, list[float]] = {False: [], True: []}
        for allowed in (False, True, True, False, False, True):
            allow_tf32(allowed)
            loop.forward(20)
            medians[allowed].append(loop.forward(100))
        off, on = min(medians[False]), min(medians[True])
        at.figure(f"{model} fp32 TF32", {"off_ms": off, "on_ms": on, "on ÷ off": on / off})

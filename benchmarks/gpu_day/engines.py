"""Engines beside PyTorch on the same GPU: ONNX Runtime and JAX, where they are installed for it."""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec

from gpu_day.part import NotHereError, Recorder
from gpu_day.rows import Row, measured, name_of, recorded

PROVIDER = "CUDAExecutionProvider"
#: An engine may leave operators of shapes to the host.
LEAST_SHARE = 0.9
MODELS = ("bert-tiny", "resnet-50")


def onnxruntime(at: Recorder) -> None:
    present("onnxruntime", "onnx")
    engine = importlib.import_module("onnxruntime")
    offered = engine.get_available_providers()
    at.figure("providers", offered)
    if PROVIDER not in offered:
        raise NotHereError(
            f"onnxruntime {engine.__version__} has no {PROVIDER}: onnxruntime-gpu is not installed"
        )
    _measured(at, "onnxruntime", ("fp32", "fp16"))


def jax(at: Recorder) -> None:
    present("jax")
    asked = "import jax; print(jax.__version__, jax.devices()[0].platform)"
    done = subprocess.run(
        [sys.executable, "-c", asked], capture_output=True, text=True, check=False
    )
    said = done.stdout.strip() or done.stderr.strip()[-300:]
    at.figure("jax", said)
    if done.returncode or not said.endswith("gpu"):
        raise NotHereError(f"jax has no GPU here: {said}")
    _measured(at, "jax", ("fp32", "bf16"))


def present(*packages: str) -> None:
    """Raise NotHereError for the first package that is not installed."""
    for name in packages:
        if find_spec(name) is None:
            raise NotHereError(f"{name} is not installed")


def _measured(at: Recorder, framework: str, precisions: Sequence[str]) -> None:
    arguments = [*MODELS, "--framework", framework, "--precision", ",".join(precisions)]
    arguments += ["--batch-sizes", "8", "--iterations", "50", "--warmup", "10"]
    ran_on(at, measured(at, arguments))


def ran_on(at: Recorder, rows: Sequence[Row]) -> None:
    """Keep the rows, and check by their evidence that the work was done on the GPU."""
    for row in recorded(at, rows):
        evidence = row["evidence"]
        kept = {"devices": evidence["devices"], "shares": evidence["shares"]}
        at.figure(f"{name_of(row)}: evidence", kept)
        at.check(f"{name_of(row)}: device", kept["devices"], row["device"],
                 row["device"] in kept["devices"])  # fmt: skip
        share = kept["shares"].get(row["device"], 0.0 if kept["shares"] else 1.0)
        at.at_least(f"{name_of(row)}: share of time on the device", share, LEAST_SHARE)

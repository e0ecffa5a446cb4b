"""A plain loop over an exported model in ONNX Runtime or OpenVINO, as anybody would write it.

    python benchmarks/bare_engine.py onnxruntime|openvino|benchmark_app FOLDER STEPS WARMUP THREADS

FOLDER is an artefact's; the median in milliseconds is the last thing printed.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np


def inputs(manifest: dict[str, Any]) -> dict[str, Any]:
    """One item of each input: small ids, ones, or standard normal values."""
    random = np.random.default_rng(0)
    fed = {}
    for one in manifest["inputs"]:
        shape = [1 if size == "batch" else size for size in one["shape"]]
        if one["dtype"].startswith("float"):
            fed[one["file_name"]] = random.standard_normal(shape, np.float32)
        elif "mask" in one["name"]:
            fed[one["file_name"]] = np.ones(shape, one["dtype"])
        else:
            fed[one["file_name"]] = random.integers(5, 500, shape).astype(one["dtype"])
    return fed


def looped(step: Callable[[], Any], steps: int, warmup: int) -> float:
    """The median of so many steps."""
    for _ in range(warmup):
        step()
    times = []
    for _ in range(steps):
        start = time.perf_counter_ns()
        step()
        times.append(time.perf_counter_ns() - start)
    return statistics.median(times) / 1e6


def onnxruntime_step(path: Path, fed: dict[str, Any], threads: int) -> Callable[[], Any]:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return lambda: session.run(None, fed)


def openvino_step(path: Path, fed: dict[str, Any], threads: int) -> Callable[[], Any]:
    sys.modules["openvino_telemetry"] = None  # type: ignore[assignment]
    import openvino

    core = openvino.Core()
    model = core.read_model(str(path))
    model.reshape({name: list(value.shape) for name, value in fed.items()})
    hints = {
        "INFERENCE_PRECISION_HINT": "f32",
        "INFERENCE_NUM_THREADS": threads,
        "NUM_STREAMS": 1,
    }
    request = core.compile_model(model, "CPU", hints).create_infer_request()
    tensors = {name: openvino.Tensor(value, shared_memory=True) for name, value in fed.items()}
    for name, tensor in tensors.items():
        request.set_tensor(name, tensor)

    def step(kept: Any = tensors) -> Any:
        return request.infer(share_outputs=True)

    return step


def benchmark_app(path: Path, fed: dict[str, Any], threads: int, seconds: float) -> float:
    """The median of OpenVINO's own tool with the same settings."""
    sys.modules["openvino_telemetry"] = None  # type: ignore[assignment]
    from openvino.tools.benchmark.main import main

    shapes = ",".join(f"{name}{list(value.shape)}".replace(" ", "") for name, value in fed.items())
    with tempfile.TemporaryDirectory(prefix="accelbench-benchmark-") as folder:
        sys.argv = [
            "benchmark_app", "-m", str(path), "-d", "CPU", "-hint", "none", "-api", "sync",
            "-nthreads", str(threads), "-nstreams", "1", "-nireq", "1",
            "-infer_precision", "f32", "-shape", shapes, "-t", str(max(1, round(seconds))),
            "-report_type", "no_counters", "-report_folder", folder, "-json_stats",
        ]  # fmt: skip
        printed, sys.stdout = sys.stdout, sys.stderr
        try:
            main()
        except SystemExit:
            pass
        finally:
            sys.stdout = printed
        found = json.loads((Path(folder) / "benchmark_report.json").read_text())
    return float(found["execution_results"]["latency (ms)"])


def main() -> None:
    engine, folder, steps, warmup, threads = sys.argv[1:]
    manifest = json.loads((Path(folder) / "manifest.json").read_text())
    path, fed = Path(folder) / manifest["file"], inputs(manifest)
    if engine == "benchmark_app":
        seconds = float(steps)  # of time, not steps
        print(benchmark_app(path, fed, int(threads), seconds))
        return
    make = {"onnxruntime": onnxruntime_step, "openvino": openvino_step}[engine]
    print(looped(make(path, fed, int(threads)), int(steps), int(warmup)))


if __name__ == "__main__":
    main()

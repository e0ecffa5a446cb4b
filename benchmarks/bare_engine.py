"""A plain loop over an exported model in ONNX Runtime or OpenVINO, as anybody would write it.

    python benchmarks/bare_engine.py onnxruntime|openvino FOLDER THREADS STEPS WARMUP
    python benchmarks/bare_engine.py benchmark_app FOLDER THREADS SECONDS

FOLDER is an artefact's; the median in milliseconds is the last thing printed.
`benchmark_app` is OpenVINO's own, called here so that its median is had unrounded: its
report has two decimals, which of a step of a millisecond are a whole per cent.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import numpy as np

Manifest = dict[str, Any]
Step = Callable[[], Any]


def drawn(manifest: Manifest, taken: Collection[str]) -> dict[str, Any]:
    """One item of each input that a graph takes: small ids, ones, or standard normal values."""
    random = np.random.default_rng(0)
    fed = {}
    for one in manifest["inputs"]:
        if one["file_name"] not in taken:  # a trace did not need it
            continue
        shape = [1 if size == "batch" else size for size in one["shape"]]
        if one["dtype"].startswith("float"):
            fed[one["file_name"]] = random.standard_normal(shape, np.float32).astype(one["dtype"])
        elif "mask" in one["name"]:
            fed[one["file_name"]] = np.ones(shape, one["dtype"])
        else:
            fed[one["file_name"]] = random.integers(5, 500, shape).astype(one["dtype"])
    return fed


def looped(step: Step, steps: int, warmup: int) -> float:
    """The median of so many steps, in milliseconds."""
    for _ in range(warmup):
        step()
    times = []
    for _ in range(steps):
        start = time.perf_counter_ns()
        step()
        times.append(time.perf_counter_ns() - start)
    return statistics.median(times) / 1e6


def onnxruntime_step(path: Path, manifest: Manifest, threads: int) -> Step:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    fed = drawn(manifest, [one.name for one in session.get_inputs()])
    return lambda: session.run(None, fed)


def openvino_model(path: Path, manifest: Manifest) -> tuple[Any, dict[str, Any]]:
    """A model read, and what it is fed."""
    import openvino

    model = openvino.Core().read_model(str(path))
    names = {name for port in model.inputs for name in port.get_names()}
    return model, drawn(manifest, names)


def openvino_step(path: Path, manifest: Manifest, threads: int) -> Step:
    import openvino

    model, fed = openvino_model(path, manifest)
    model.reshape({name: list(value.shape) for name, value in fed.items()})
    how = {
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_PRECISION_HINT": "f32",
        "INFERENCE_NUM_THREADS": threads,
        "NUM_STREAMS": 1,
    }
    request = openvino.Core().compile_model(model, "CPU", how).create_infer_request()
    kept = {name: openvino.Tensor(value, shared_memory=True) for name, value in fed.items()}
    for name, tensor in kept.items():
        request.set_tensor(name, tensor)

    def step(kept: Any = kept) -> Any:
        return request.infer(share_outputs=True)

    return step


def benchmark_app(path: Path, manifest: Manifest, threads: int, seconds: int) -> float:
    """The median of OpenVINO's own tool, told the same settings: one request at a time."""
    from openvino.tools.benchmark.benchmark import Benchmark
    from openvino.tools.benchmark.main import main as app

    _, fed = openvino_model(path, manifest)
    shapes = ",".join(f"{name}{list(value.shape)}".replace(" ", "") for name, value in fed.items())
    medians: list[float] = []
    measured = Benchmark.main_loop

    def overheard(*arguments: Any) -> Any:
        found = measured(*arguments)
        medians.append(float(found[1]))  # frames a second, median, mean, …
        return found

    Benchmark.main_loop = overheard
    sys.argv = [
        "benchmark_app", "-m", str(path), "-d", "CPU", "-shape", shapes, "-t", str(seconds),
        # It takes the number of threads beside no hint alone.
        "-hint", "none", "-nthreads", str(threads), "-nstreams", "1", "-nireq", "1",
        "-api", "sync", "-infer_precision", "f32",
    ]  # fmt: skip
    printed, sys.stdout = sys.stdout, sys.stderr
    try:
        app()
    finally:
        sys.stdout = printed
    (median,) = medians
    return median


def main() -> None:
    # OpenVINO's telemetry would start a thread and ask the network.
    sys.modules["openvino_telemetry"] = None  # type: ignore[assignment]
    engine, folder, threads, *how = sys.argv[1:]
    manifest = json.loads((Path(folder) / "manifest.json").read_text())
    path = Path(folder) / manifest["file"]
    if engine == "benchmark_app":
        print(benchmark_app(path, manifest, int(threads), int(how[0])))
        return
    make = {"onnxruntime": onnxruntime_step, "openvino": openvino_step}[engine]
    print(looped(make(path, manifest, int(threads)), int(how[0]), int(how[1])))


if __name__ == "__main__":
    main()

"""The bare process: what a careful person would write by hand to time one model.

    python benchmarks/bare.py MODEL BATCH STEPS WARMUP THREADS HARDWARE

Model and inputs are those of the catalogue; everything that is timed is plain
PyTorch. Prints the median step in milliseconds.
"""

from __future__ import annotations

import statistics
import sys
import time


def main() -> None:
    name, batch, steps, warmup, threads, hardware = sys.argv[1:]
    import torch

    from accelbench.core.case import Shapes
    from accelbench.models.build import build
    from accelbench.models.find import find
    from accelbench.models.inputs import make_inputs

    torch.set_num_threads(int(threads))
    spec = find(name)
    model = build(spec, 0).to(hardware)
    shapes = Shapes(int(batch), spec.sequence, spec.image)
    inputs = {k: torch.from_numpy(v).to(hardware) for k, v in make_inputs(spec, shapes, 0).items()}
    wait = torch.cuda.synchronize if hardware == "cuda" else lambda: None
    with torch.inference_mode():
        for _ in range(int(warmup) + 1):
            model(**inputs)
        wait()
        times = []
        for _ in range(int(steps)):
            start = time.perf_counter_ns()
            model(**inputs)
            wait()
            times.append(time.perf_counter_ns() - start)
    print(statistics.median(times) / 1e6)


if __name__ == "__main__":
    main()
